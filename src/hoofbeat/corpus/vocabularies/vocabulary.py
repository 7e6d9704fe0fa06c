"""A compiled vocabulary: look a wording up, or find every term in a text.

All wordings of all terms lie in one table under their normal forms; a second table says for a phrase's first word how
long the phrases are that begin with it. A text is read once from left to right, and at each word the longest phrase
that is in the table is taken: time grows with the text, hardly with the vocabulary.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from functools import cached_property

from msgspec import Struct

from hoofbeat.corpus.vocabularies.abbreviations import (
    find_abbreviations,
    short_form_places,
    well_known_abbreviations,
)
from hoofbeat.corpus.vocabularies.terms import Match, Term, Via, is_short_form, term_keys
from hoofbeat.corpus.vocabularies.word_forms import BREAK, COMMA, phrase_key, tokens, word_lists

_RANK: Mapping[Via, int] = {"name": 0, "synonym": 1, "family": 2, "abbreviation": 3, "code": 4}
Wording = tuple[int, Via]
_MAX_DROPPED = 2
_MAX_DEFINED = 1000  # a text that defines more is no prose, and would take time with its square


class CompiledVocabulary(Struct, frozen=True, kw_only=True):
    """Terms with every wording they are found under: what is kept in the cache."""

    name: str
    release: str
    credit: str
    terms: tuple[Term, ...]
    table: dict[str, tuple[Wording, ...]]


def compile_terms(name: str, terms: Sequence[Term], *, release: str = "", credit: str = "") -> CompiledVocabulary:
    """Work out every wording of every term."""
    table: dict[str, list[Wording]] = {}
    for number, term in enumerate(terms):
        if term.in_text:
            for key, via in term_keys(term).items():
                table.setdefault(key, []).append((number, via))
    ordered = {
        key: tuple(sorted(entries, key=lambda entry: (_RANK[entry[1]], len(terms[entry[0]].code), entry[0])))
        for key, entries in table.items()
    }
    return CompiledVocabulary(name=name, release=release, credit=credit, terms=tuple(terms), table=ordered)


class Vocabulary:
    """A named vocabulary, ready to match."""

    def __init__(self, compiled: CompiledVocabulary) -> None:
        self.name = compiled.name
        self.release = compiled.release
        self.credit = compiled.credit
        self.terms = compiled.terms
        self._table = compiled.table

    @classmethod
    def of(cls, name: str, terms: Sequence[Term]) -> Vocabulary:
        """A vocabulary of these terms."""
        return cls(compile_terms(name, terms))

    def __len__(self) -> int:
        return len(self.terms)

    def term(self, code: str) -> Term | None:
        """The term with this code, written with or without dots."""
        number = self._codes.get(_plain_code(code))
        return None if number is None else self.terms[number]

    def lookup(self, text: str) -> list[Match]:
        """The terms whose code or wording is this whole text, the best first."""
        whole = text.strip()
        start = text.find(whole) if whole else 0
        entries: list[Wording] = []
        if (number := self._codes.get(_plain_code(whole))) is not None:
            entries.append((number, "code"))
        for key in _lookup_keys(whole):
            entries += self._table.get(key, ())
            entries += self._other_names.get(key, ())
        entries += [(number, "abbreviation") for number in self._abbreviations.get(whole, ())]
        if not entries and (long := well_known_abbreviations().get(whole)) and long != whole:
            return [_moved(match, start, whole) for match in self.lookup(long)]
        kept: dict[int, Via] = {}
        for number, via in entries:
            kept.setdefault(number, via)
        return [self._match(((number, via),), start, start + len(whole), whole) for number, via in kept.items()]

    def find_in(self, text: str, *, abbreviations: Mapping[str, str] | None = None) -> list[Match]:
        """Every term in a text with its place: longest first, never inside a word, none within another.

        Short forms count where the text defines them (or `abbreviations` does), and the few that have one meaning only.
        """
        found = self.find_phrases(text)
        taken = [(match.start, match.end) for match in found]
        defined = {**well_known_abbreviations(), **find_abbreviations(text), **(abbreviations or {})}
        extra: list[Match] = []
        for short, long in list(defined.items())[:_MAX_DEFINED]:
            if short not in text or not (entries := self._entries_of(long)):
                continue
            for start, end in short_form_places(text, short):
                if _insert_free(taken, start, end):
                    extra.append(self._match(entries, start, end, short, via="abbreviation"))
        return sorted([*found, *extra], key=lambda match: match.start) if extra else found

    def find_phrases(self, text: str) -> list[Match]:
        """Every term that is written out in a text: `find_in` without short forms."""
        forms, starts, ends = tokens(text)
        lengths, table = self._lengths, self._table
        found: list[Match] = []
        at, count = 0, len(forms)
        while at < count:
            choices = lengths.get(forms[at])
            step = 1
            if choices is not None:
                room = count - at
                for length in choices:
                    if length > room:
                        continue
                    key = " ".join(forms[at : at + length]) if length > 1 else forms[at]
                    entries = table.get(key)
                    if entries is None or (length > 1 and not _holds_together(forms, at, length)):
                        continue
                    start, end = starts[at], ends[at + length - 1]
                    if _is_whole(text, start, end) and not _shouted(text[start:end]):
                        found.append(self._match(entries, start, end, text[start:end]))
                        step = length
                        break
            at += step
        return found

    def _entries_of(self, long: str) -> tuple[Wording, ...]:
        """The terms a long form names: as it stands, else the longest phrase that ends it."""
        key = phrase_key(long)
        if key in self._table:
            return self._table[key]
        words = key.split(" ")
        for start in range(1, min(_MAX_DROPPED, len(words) - 2) + 1):
            if entries := self._table.get(" ".join(words[start:])):
                return entries
        return ()

    def _match(self, entries: Sequence[Wording], start: int, end: int, text: str, via: Via | None = None) -> Match:
        best = self.terms[entries[0][0]]
        codes = tuple(dict.fromkeys(self.terms[number].code for number, _ in entries))
        return Match(
            code=best.code, name=best.name, start=start, end=end, text=text, via=via or entries[0][1], codes=codes
        )

    @cached_property
    def _lengths(self) -> dict[str, tuple[int, ...]]:
        lengths: dict[str, set[int]] = {}
        for key in self._table:
            first, _, rest = key.partition(" ")
            lengths.setdefault(first, set()).add(rest.count(" ") + 2 if rest else 1)
        return {first: tuple(sorted(sizes, reverse=True)) for first, sizes in lengths.items()}

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {_plain_code(term.code): number for number, term in enumerate(self.terms)}

    @cached_property
    def _other_names(self) -> dict[str, tuple[Wording, ...]]:
        """Full names of terms that are not searched for in texts."""
        return {phrase_key(t.name): ((number, "name"),) for number, t in enumerate(self.terms) if not t.in_text}

    @cached_property
    def _abbreviations(self) -> dict[str, list[int]]:
        shorts: dict[str, list[int]] = {}
        for number, term in enumerate(self.terms):
            for short in (*term.abbreviations, *(name for name in (term.name, *term.synonyms) if is_short_form(name))):
                shorts.setdefault(short, []).append(number)
        return shorts


def _plain_code(code: str) -> str:
    return code.replace(".", "").upper()


def _lookup_keys(text: str) -> list[str]:
    """The text's key, and those with what stands after a comma in front or with no comma."""
    keys = [phrase_key(text)]
    parts = [part.strip() for part in text.split(",")]
    if 1 < len(parts) <= 4:
        keys += [phrase_key(" ".join(reversed(parts))), phrase_key(" ".join(parts))]
    return [key for key in dict.fromkeys(keys) if key and key != COMMA]


def _moved(match: Match, start: int, text: str) -> Match:
    return Match(
        code=match.code,
        name=match.name,
        start=start,
        end=start + len(text),
        text=text,
        via="abbreviation",
        codes=match.codes,
    )


def _holds_together(forms: Sequence[str], at: int, length: int) -> bool:
    """Whether these words are one phrase: no sentence ends in them, and none goes on after a comma's second half.

    "Pain, abdominal." is abdominal pain; "pain, abdominal distension" is not.
    """
    inside = forms[at : at + length]
    if BREAK in inside:
        return False
    after = forms[at + length] if at + length < len(forms) else BREAK
    return COMMA not in inside or after in (BREAK, COMMA) or after in word_lists().little


def _is_whole(text: str, start: int, end: int) -> bool:
    """Whether these characters begin and end with whole words."""
    before = start > 0 and text[start - 1].isalnum()
    return not before and not (end < len(text) and text[end].isalnum())


def _shouted(text: str) -> bool:
    """Whether a single word is written as an abbreviation: PAIN may be a heading, but ALS, Ras and MASS are others."""
    return " " not in text and len(text) <= 5 and text.isupper()


def _insert_free(taken: list[tuple[int, int]], start: int, end: int) -> bool:
    """Take these characters if no match has any of them; `taken` stays sorted."""
    at = bisect.bisect_left(taken, (start, end))
    if (at and taken[at - 1][1] > start) or (at < len(taken) and taken[at][0] < end):
        return False
    taken.insert(at, (start, end))
    return True


def find_words(text: str, words: str) -> list[tuple[int, int]]:
    """Where these words stand in a text, in this order and in whatever case, inflection or spelling."""
    wanted = [form for form in tokens(words).forms if form]
    forms, starts, ends = tokens(text)
    size = len(wanted)
    found: list[tuple[int, int]] = []
    at = 0
    while wanted and at + size <= len(forms):
        if forms[at : at + size] == wanted and _is_whole(text, starts[at], ends[at + size - 1]):
            found.append((starts[at], ends[at + size - 1]))
            at += size
        else:
            at += 1
    return found
