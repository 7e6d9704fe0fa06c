"""How an output names an option: by its letter, its number, its text, or letter and text together.

A letter is also a word ("A 45-year-old"), a vitamin, a virus and a bacterium's first name; what may be one of these is
no letter of an option. A text counts where its words stand as they are in the option, or with a slip of the pen.

Case, accents, British and American spellings, articles and Greek letters written out make no difference between words.
A slip of the pen may be forgiven; a slip that turns one medical word into another never is.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise

from msgspec import Struct, convert
from rapidfuzz.distance import OSA

from hoofbeat.text import without_accents


class NameLists(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The word lists of the data file, which explains each of them."""

    species: tuple[str, ...]
    names_after: tuple[str, ...]
    names_before: tuple[str, ...]
    after_letter_a: tuple[str, ...]
    none_of: tuple[str, ...]
    all_of: tuple[str, ...]
    swaps: tuple[tuple[str, str], ...]


@cache
def load_names() -> NameLists:
    """The names, read once."""
    raw = (files("hoofbeat.answering") / "data" / "names.toml").read_text(encoding="utf-8")
    return convert(tomllib.loads(raw), NameLists)


def one_of(words: Iterable[str]) -> str:
    """A pattern for any of the words."""
    return "|".join(re.escape(word) for word in words)


class FoldedWord(Struct, frozen=True):
    """A word of a text: how it is compared, and where it stands."""

    folded: str
    start: int
    end: int


_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"  # scripts without spaces: one sign, one word
    r"|(?<![\w.)])[-−]?\d+(?:[.,]\d+)*|\d+(?:[.,]\d+)*|(?:(?![\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])[^\W\d_])+"
    r"|[<>≤≥±+%↑↓=&]"
)
_WRITTEN = {
    "&": "and", "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "κ": "kappa", "λ": "lambda",
    "μ": "mu", "ω": "omega", "Δ": "delta",
}  # fmt: skip
_LONG = 7  # letters; in a shorter word one letter makes another word
_ARTICLES = {"the", "The", "an", "An", "a"}


def option_words(text: str, *, keep_articles: bool = False) -> list[FoldedWord]:
    """The words in which an option is looked for: folded, with signed numbers; no articles, no possessive s."""
    words = []
    for match in _WORD.finditer(text):
        raw = match.group()
        if raw == "s" and match.start() and text[match.start() - 1] in "'’":
            continue
        article = raw in _ARTICLES or (raw == "A" and _opens_sentence(text, match.start()))
        if keep_articles or not article:
            words.append(FoldedWord(_fold(raw), match.start(), match.end()))
    return words


def _opens_sentence(text: str, position: int) -> bool:
    """Whether the letter A here can be an article: at a sentence's beginning, and more follows. Vitamin A is none."""
    before = text[max(0, position - 40) : position].rstrip(" ")
    return (not before or before[-1] in ".!?:\n") and bool(re.match(r"A \w", text[position : position + 3]))


@lru_cache(maxsize=50_000)
def _fold(raw: str) -> str:
    if raw in _WRITTEN:
        return _WRITTEN[raw]
    if raw.isascii():
        return raw.lower().replace("ae", "e").replace("oe", "e")
    bare = without_accents(raw)
    return bare.casefold().replace("ae", "e").replace("oe", "e").replace("−", "-")


def near(said: str, meant: str) -> bool:
    """Whether a word is another with a slip of the pen in it: a longer word, the same beginning, no other word."""
    if said == meant:
        return True
    if not (said.isalpha() and meant.isalpha()):
        return False
    if said in (meant + "s", meant + "es") or meant in (said + "s", said + "es"):
        return True
    if min(len(said), len(meant)) < _LONG or said[:2] != meant[:2] or OSA.distance(said, meant, score_cutoff=1) > 1:
        return False
    return not any(_swapped(said, meant, one, other) for one, other in load_names().swaps)


def _swapped(said: str, meant: str, one: str, other: str) -> bool:
    """Whether the words differ in nothing but one of the pairs, either way round."""
    for first, second in ((one, other), (other, one)):
        if first and first in said and said.replace(first, second, 1) == meant:
            return True
    return False


class OptionMention(Struct, frozen=True, kw_only=True):
    """What is named at one place: which options (several: joined by and/or), where, and by what.

    No options at all: a letter beyond them. `clash`: the letter says one option and the text beside it another.
    """

    options: tuple[int, ...]
    start: int
    end: int
    by: str
    clash: bool = False


class OutputText:
    """A text to look into, with its words."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lowered = text.lower()
        self.words = option_words(text)
        self._starts = [word.start for word in self.words]

    def word_at(self, position: int) -> int:
        """The number of the first word at or after a position."""
        return bisect_left(self._starts, position)


_WORDS = (
    r"options?|choices?|answers?|letter|alternative|statement|antwort|buchstabe|réponse|lettre|opción|opcion|letra|"
    r"alternativa|opção|选项|選項|項"
)
_LABEL = re.compile(
    r"""(?P<open>["'(\[{<]{0,4})\s?"""
    rf"(?:(?P<word>{_WORDS})\s*(?:choice\s+)?[:#]?\s*)?"
    r"""(?:(?:number|no\.|nr\.)\s*)?(?P<inner>["'(\[{<]{0,4})(?P<label>[A-Za-z]|\d{1,2})"""
    r"""(?![A-Za-z0-9_À-ɏ]|['’]\w|[-‐]\w|\.\d|,\d|%|/\d)(?P<close>["')\]}>]{0,4})""",
    re.IGNORECASE,
)
_MARKED = re.compile(rf"""["'(\[{{<]|\b(?:{_WORDS})|选项|選項|項""", re.IGNORECASE)
_NAMES = load_names()
_SPECIES = re.compile(rf"\.?\s(?:{one_of(_NAMES.species)})\b")
_NAME_AFTER = re.compile(rf"[ -](?:{one_of(_NAMES.names_after)})\b", re.IGNORECASE)
_NAME_BEFORE = re.compile(rf"(?:{one_of(_NAMES.names_before)})[ -]$", re.IGNORECASE)
_AFTER_LETTER_A = re.compile(
    r"\s*(?:$|[\n.,;:!?)\]}*=\-–—(|/&\u3000-\u9fff\uac00-\ud7af]|" rf"(?:{one_of(_NAMES.after_letter_a)})\b)"
)
_HEDGE = (
    r"(?:(?:(?:al)?though|but|maybe|perhaps|possibly|also|even|else|either|less likely|equally|indeed|then|"
    r"just as well|likely|probably|the answer|it|this|"
    r"(?:might|may|could|can|would)(?: also| even| well| equally)? be)\s+)"
)
_JOINED = re.compile(
    r"[)\]\"'*]*\s*(?:"
    rf"(?:[,.…;]*\s*|\s*\()(?:and/or|and|or|und|oder|et|ou|y|o|e|&|和|或|及),?\s+{_HEDGE}{{0,3}}"
    rf"|[,;]\s*(?:(?:maybe|perhaps|possibly)\s+|(?:(?:but|though|although)\s+)?(?:it|this)\s+(?:might|may|could)\s+(?:\w+\s+)?be\s+)"
    r"|[,/&+、]|/)\s*(?:also\s+|either\s+)?",
    re.IGNORECASE,
)
_SINGULAR_AFTER = re.compile(r"\s*(?:is|was|does|can|could|would|may|has|seems|ist|est|es)\b", re.IGNORECASE)
_BETWEEN = re.compile(r"""[\s.:,;)\]}("'\-–—*|=>]{0,12}(?:(?:i\.e\.|namely|that is|which is|is)[\s,:]+)?["'(\[]?""")
_PARENTHESIS = re.compile(r"(?<!\s)\s*\([^()]*\)")  # from the first space on: from each one, long runs take seconds
_SHORT_GENUS = re.compile(r"[A-Z]\.\s*[a-z]{3,}")
_OWN_LABEL = re.compile(r"^\s*(?:\(?[A-Za-z]\)|[A-Za-z][.:])\s+(?=\S)")
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_ORDINAL = re.compile(
    rf"[\s\"'(]{{0,4}}(?:the\s+)?(?P<word>{'|'.join(_ORDINALS)})\s+(?:option|choice|answer|alternative|one)\b",
    re.IGNORECASE,
)
_CALLED = ("option", "choice", "letter", "alternative")  # what follows these is a letter, be it one that is a word
_LOOSE_GAP = 3  # words that may come before an option's text after a cue: "an acute, severe …"


class QuestionOptions:
    """The options of one question, and how each may be named."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = tuple(texts)
        self.forms: list[tuple[tuple[str, ...], int]] = []
        for index, text in enumerate(self.texts):
            for form in _forms(text):
                folded = tuple(word.folded for word in option_words(form))
                if folded and (folded, index) not in self.forms:
                    self.forms.append((folded, index))
        whole = {tuple(word.folded for word in option_words(text)): index for index, text in enumerate(self.texts)}
        self.forms = [
            (form, index) for form, index in self.forms if whole.get(form, index) == index or self._same(form, index)
        ]
        self.forms.sort(key=lambda pair: (-len(pair[0]), pair[1]))
        self._by_first: dict[str, list[tuple[tuple[str, ...], int]]] = {}
        for words, index in self.forms:
            self._by_first.setdefault(words[0], []).append((words, index))
        self.longest = max((len(form) for form, _ in self.forms), default=0) + 1
        first = [option_words(text, keep_articles=True) for text in self.texts]
        self.counted = not any(said and said[0].folded.lstrip("-")[:1].isdigit() for said in first)
        self.letters = {
            said[0].folded.upper(): i for i, said in enumerate(first) if len(said) == 1 and len(said[0].folded) == 1
        }

    def _same(self, form: tuple[str, ...], index: int) -> bool:
        return tuple(word.folded for word in option_words(self.texts[index])) == form

    def at(self, text: OutputText, position: int, *, loose: bool = False) -> OptionMention | None:
        """What is named at a position, with everything joined to it; None where nothing is.

        `loose` lets a few words stand before an option's text.
        """
        found = self._one(text, position, loose)
        if found is None:
            return None
        options, end, clash = list(found.options), found.end, found.clash
        while joint := _JOINED.match(text.text, end):
            more = self._one(text, joint.end(), loose=False)
            if more is None or ("," in joint.group() and _SINGULAR_AFTER.match(text.text, more.end)):
                break  # "B, and A is wrong": a new sentence
            options += [index for index in more.options if index not in options]
            end, clash = more.end, clash or more.clash
        return OptionMention(options=tuple(options), start=found.start, end=end, by=found.by, clash=clash)

    def _one(self, text: OutputText, position: int, loose: bool) -> OptionMention | None:
        return self._letter(text, position) or self._ordinal(text, position) or self._text(text, position, loose)

    def _ordinal(self, text: OutputText, position: int) -> OptionMention | None:
        """ "The second option"."""
        match = _ORDINAL.match(text.text, position)
        index = _ORDINALS.index(match["word"].lower()) if match else len(self.texts)
        if match is None or index >= len(self.texts):
            return None
        return OptionMention(options=(index,), start=match.start("word"), end=match.end(), by="letter")

    def _letter(self, text: OutputText, position: int) -> OptionMention | None:
        """A letter or number at a position, with the text of the option where that follows."""
        match = _LABEL.match(text.text, position)
        if match is None:
            return None
        label = match["label"]
        called = (match["word"] or "").lower()
        bracketed = bool(match["close"] or (called and label not in ("AI" if called not in _CALLED else "I")))
        index = int(label) - 1 if label.isdigit() else ord(label.upper()) - ord("A")
        if label.isdigit() and not (self.counted and index >= 0):
            return None
        start = _BETWEEN.match(text.text, match.end())
        after = start.end() if start else match.end()
        own = self._begins(text, after, index) if index < len(self.texts) else 0
        if not own and not bracketed and (self._is_genus(text, match) or not self._stands_alone(text.text, match)):
            return None
        if index >= len(self.texts):
            beyond = label.isupper() and (bracketed or index < 12)
            return (
                OptionMention(options=(), start=match.start("label"), end=match.end(), by="letter") if beyond else None
            )
        if own:
            return OptionMention(options=(index,), start=match.start("label"), end=own, by="letter-and-text")
        twin = self.letters.get(label.upper(), index)
        beside = self._text(text, after, loose=False) if after - match.end() <= 6 else None
        clash = twin != index or (beside is not None and index not in beside.options)
        end = beside.end if beside is not None else match.end()
        return OptionMention(options=(index,), start=match.start("label"), end=end, by="letter", clash=clash)

    def _is_genus(self, text: OutputText, match: re.Match[str]) -> bool:
        """Whether a letter begins the text of another option, as in "M. canis sepsis": it shortens a genus there."""
        start = match.start("label")
        first = text.word_at(start)  # in a text that folds to no words there is none
        named = self._exact(text, first) if first < len(text.words) else None
        if named is None or named.start != start:
            return False
        return any(_SHORT_GENUS.match(self.texts[index]) for index in named.options)

    def _stands_alone(self, text: str, match: re.Match[str]) -> bool:
        """Whether a letter without brackets is meant as a letter."""
        label, end = match["label"], match.end()
        rest = text[end : end + 40]
        if _SPECIES.match(rest) or _NAME_AFTER.match(rest) or _NAME_BEFORE.search(text[: match.start()][-20:]):
            return False
        if label.isdigit():
            return bool(re.match(r"\s*(?:$|[\n.):;,!*|])", rest))
        if label == "I":
            return bool(re.match(r"\s*(?:$|[\n.):;,!*|])", rest))
        if label == "A":
            return bool(_AFTER_LETTER_A.match(rest))
        return label.isupper() or bool(re.match(r"\s*(?:$|[\n.):;,!*|]|because\b|since\b)", rest))

    def _begins(self, text: OutputText, position: int, index: int) -> int:
        """Where the option's text ends that begins at a position, if it does: whole, cut short, or with a slip."""
        if self.letters.get(text.text[position : position + 1].upper()) == index:
            return position + 1 if re.match(r"\w\b", text.text[position:]) else 0
        first = text.word_at(position)
        if first >= len(text.words) or text.words[first].start - position > 3:
            return 0
        for form, option in self.forms:
            if option == index and (end := _agree(text.words, first, form)):
                return end
        phrase = _phrase(text, first, self.longest)
        for form, option in self.forms:
            if (
                option == index
                and 2 <= len(phrase) < len(form)
                and form[: len(phrase)] == tuple(w.folded for w in phrase)
            ):
                return phrase[-1].end
        return 0

    def _text(self, text: OutputText, position: int, loose: bool) -> OptionMention | None:
        """An option's text at a position: the longest that fits; equal texts are all named."""
        first = text.word_at(position)
        gap = text.text[position : text.words[first].start] if first < len(text.words) else ""
        if first >= len(text.words) or "\n\n" in gap or len(gap) > 8:
            return None
        for shift in range(_LOOSE_GAP + 1 if loose else 1):
            if first + shift >= len(text.words) or _broken(text, first, first + shift):
                break
            if found := self._exact(text, first + shift):
                return found
        return self._cut_or_slip(text, first)

    def _exact(self, text: OutputText, first: int) -> OptionMention | None:
        forms = self._by_first.get(text.words[first].folded, ())
        best = [(form, index) for form, index in forms if _same_words(text.words, first, form)]
        if not best:
            return None
        longest = len(best[0][0])
        named = tuple(dict.fromkeys(index for form, index in best if len(form) == longest))
        last = text.words[first + longest - 1]
        return OptionMention(options=named, start=text.words[first].start, end=last.end, by="text")

    def _cut_or_slip(self, text: OutputText, first: int) -> OptionMention | None:
        """One option only, whose text is cut short at the end of the phrase or has a slip of the pen in it."""
        phrase = _phrase(text, first, self.longest)
        said = tuple(word.folded for word in phrase)
        cut = {index for form, index in self.forms if 2 <= len(said) < len(form) and form[: len(said)] == said}
        if len(cut) == 1:
            return OptionMention(options=tuple(cut), start=phrase[0].start, end=phrase[-1].end, by="text")
        slips = [(index, end) for form, index in self.forms if (end := _agree(text.words, first, form))]
        if len({index for index, _ in slips}) == 1:
            index, end = slips[0]
            return OptionMention(options=(index,), start=text.words[first].start, end=end, by="text")
        return None

    def mentions(self, text: OutputText) -> list[OptionMention]:
        """Every place where an option's whole text stands, or its letter in a form that can be nothing else.

        Texts of one short word are left out: they are words of any sentence.
        """
        found: list[OptionMention] = []
        reach = 0
        for first, word in enumerate(text.words):
            if word.start < reach:
                continue
            named = self._exact(text, first)
            if named and named.end - named.start > 3:
                found.append(named)
                reach = named.end
        reach = 0
        for mark in _MARKED.finditer(text.text):
            start = mark.start()
            if start > reach and text.text[start - 1].isspace():
                start -= 1
            match = _LABEL.match(text.text, start) if start >= reach else None
            if match is None:
                continue
            reach = match.end()
            if match["label"].isdigit() or not (
                match["word"] or ((match["open"] or match["inner"]) and match["close"])
            ):
                continue
            if self._letter(text, match.start()) and (named := self.at(text, match.start())):
                found.append(named)
        return sorted(found, key=lambda named: named.start)


def _forms(text: str) -> list[str]:
    """How an option's text may be written: as it is, without its own letter, without what is in brackets."""
    bare = _OWN_LABEL.sub("", text)
    forms = [text, bare, _PARENTHESIS.sub("", bare)]
    plain = " ".join(word.folded for word in option_words(bare))
    for family in (_NAMES.none_of, _NAMES.all_of):
        if plain in _plain(family):
            forms += family
    return forms


@cache
def _plain(family: tuple[str, ...]) -> frozenset[str]:
    return frozenset(" ".join(word.folded for word in option_words(form)) for form in family)


@lru_cache(maxsize=2048)
def options_named(texts: tuple[str, ...]) -> QuestionOptions:
    """The options of a question, made once for all answers to it."""
    return QuestionOptions(texts)


def _same_words(words: list[FoldedWord], first: int, form: tuple[str, ...]) -> bool:
    here = words[first : first + len(form)]
    if len(here) < len(form) or any(word.folded != said for word, said in zip(here, form, strict=True)):
        return False
    return all(after.start - before.end <= 6 for before, after in pairwise(here))


def _agree(words: list[FoldedWord], first: int, form: tuple[str, ...]) -> int:
    """Where the form ends that stands here, slips allowed in one word of four; 0 where it does not."""
    here = words[first : first + len(form)]
    if len(here) < len(form):
        return 0
    off = [(word.folded, said) for word, said in zip(here, form, strict=True) if word.folded != said]
    if len(off) > max(1, len(form) // 4) or not all(near(said, meant) for said, meant in off):
        return 0
    return here[-1].end


def _phrase(text: OutputText, first: int, max_words: int) -> list[FoldedWord]:
    """The words from here to the end of the sentence or line, at most `max_words`."""
    phrase: list[FoldedWord] = []
    for word in text.words[first : first + max_words]:
        if phrase and re.search(r"[\n.!?;,:()\[\]*|]", text.text[phrase[-1].end : word.start]):
            break
        phrase.append(word)
    return phrase


def _broken(text: OutputText, first: int, last: int) -> bool:
    """Whether a sentence ends, or something is denied, between two words."""
    between = text.text[text.words[first].start : text.words[last].start]
    return bool(
        re.search(
            r"[\n.!?;:]|\b(?:not|no|than|unlike|without|never|neither|nor|rather|instead|other|except)\b",
            between,
            re.IGNORECASE,
        )
    )
