"""The leak guard: whether a question's stem gives its answer away, and with which words.

A stem must not mention the diagnosis: not by name, in another order, inflection, spelling or misspelling, by a synonym,
a short form, a person's name or a code, nor by a procedure that is done for little else. A denied mention ("no evidence
of sarcoidosis") is a mention too, since it puts the answer into the reader's mind, but of the kind `negated`, so that a
caller may decide. The guard calls no model and always says the same.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from weakref import WeakKeyDictionary

import msgspec
from msgspec import Struct

from hoofbeat.corpus.terms import find_abbreviations, known_abbreviations, phrase_key, term_form
from hoofbeat.corpus.vocabulary import Vocabulary, vocabulary_names
from hoofbeat.errors import UsageError
from hoofbeat.recipes.context import RecipeContext
from hoofbeat.recipes.guards.diagnosis_names import begins_with_genus, names_organism
from hoofbeat.recipes.guards.leak_patterns import (
    LeakPattern,
    LeakPatterns,
    main_part,
    operation_endings,
    signs_of,
    words_of,
)
from hoofbeat.recipes.guards.leak_words import NormalisedText, forms_of, is_disease, lists
from hoofbeat.recipes.recipe_items import ItemRejection, Outcome, RecipeItem
from hoofbeat.recipes.steps import RecipeStep, check
from hoofbeat.records import Document, Span
from hoofbeat.retrieval.index.chunking import sentence_spans

_SHORT = re.compile(r"(?<![\w-])[A-Z][A-Za-z0-9]{1,7}(?:-[A-Z0-9]{1,4})?(?=(?:s|'s|’s)?(?![\w]))")
_CODE = re.compile(r"\b[A-TV-Z]\d[0-9A-Z](?:\.[0-9A-Z]{1,4})?\b|\b(?:OMIM|ORPHA|MIM)[\s:#]*\d{2,6}\b")
_WORD = re.compile(r"[^\W\d_]{6,}")
_DEFINED_READ = 200_000
_MAX_EXTRA_LETTERS = 2
_SHORTEST_NAME = 8
_AROUND = 20


class Leak(Struct, frozen=True, kw_only=True):
    """Words of a text that give the answer away.

    `form` is the wording of the answer they mean, `kind` one of name, order, inflection, misspelling, synonym,
    term (a name of a vocabulary), eponym, abbreviation, code, procedure and negated.
    """

    start: int
    end: int
    text: str
    form: str
    kind: str


def find_leaks(
    text: str,
    diagnosis: str,
    *,
    synonyms: Sequence[str] = (),
    source: Document | None = None,
    vocabularies: Sequence[Vocabulary] = (),
    min_match: float = 0.9,
) -> list[Leak]:
    """Every mention of a diagnosis in a text, in order, none within another.

    `synonyms` are other names of it; `source` is the document whose abbreviations count; `vocabularies` add names and
    codes and tell a misspelling from another word. `min_match` is how much of a word must be right: 1 allows no slip.
    """
    if not any(map(str.isalnum, diagnosis)):
        return []
    signs = signs_of(diagnosis.strip(), tuple(filter(None, map(str.strip, synonyms))), tuple(vocabularies))
    reading = NormalisedText.of(text)
    found = [
        *_phrases(reading, signs, min_match, _known_words(vocabularies)),
        *_shorts(reading, signs, source),
        *_codes(text, signs, vocabularies),
        *_procedures(reading, signs),
        *_short_organisms(reading, synonyms),
    ]
    innocent = _innocent_spans(reading, signs) if found else []
    return _apart(leak for leak in found if not any(a <= leak.start and leak.end <= b for a, b in innocent))


_MIN_FULL_NAME = 5  # "CPR", "SCD": short forms, given as names, that mean a cause or an underlying disease as well


def names_in_full(leak: Leak, diagnosis: str) -> bool:
    """Whether a mention is the answer's full name: all words of the disease, whatever is said of its cause and course.

    Another name of the whole disease (chickenpox for varicella) counts as well. A rule is sure of these. Of a part, a
    short form or a telling procedure a reader may know better.
    """
    main = main_part(diagnosis)
    if leak.kind in {"synonym", "term"} and leak.text.casefold() == leak.form.casefold():
        return len(leak.text) > _MIN_FULL_NAME
    if leak.kind == "abbreviation" and leak.text[:1].casefold() not in {word[:1].casefold() for word in main.split()}:
        return False
    said = leak.form if leak.kind in {"abbreviation", "misspelling", "code"} else leak.text
    forms, wanted = set(NormalisedText(said).forms), words_of(main)
    return bool(wanted) and all(forms & each for each in wanted)


_PARTS = frozenset(["order", "inflection", "synonym", "term"])


def is_doubtful(leak: Leak, diagnosis: str) -> bool:
    """Whether a mention is likely a finding that only shares words with the answer: it is flagged and never masked.

    "Activated macrophages" for macrophage activation syndrome: a part of a name in another inflection, or one word of
    it, that says no disease. Words of a disease ("tuberculous"), short forms, persons' names and organisms are never
    doubtful.
    """
    if leak.kind not in _PARTS or names_in_full(leak, diagnosis):
        return False
    said, own = set(NormalisedText(leak.text).forms), set(NormalisedText(leak.form).forms)
    meant = {form for form in own if not said.isdisjoint(forms_of(form) | {form})}
    if any(is_disease(form) or names_organism(form) for form in said | meant):
        return False
    return len(said) == 1 or not said <= own


def excluded_in(text: str, disease: str) -> str:
    """The sentence of a text that denies a disease by its full name ("no evidence of pancreatitis"); none if it can be.

    A disease that the text also names without denying it is not excluded.
    """
    leaks = [leak for leak in find_leaks(text, disease) if names_in_full(leak, disease)]
    if not leaks or any(leak.kind != "negated" for leak in leaks):
        return ""
    return next((text[a:b].strip() for a, b in sentence_spans(text) if a <= leaks[0].start < b), leaks[0].text)


KEEP_FINDINGS = (
    "Cut or reword them if they name the answer or say that it was confirmed. If they are a finding as the laboratory, "
    "the pathologist or the radiologist reports it, leave them as they are: give the same answer again."
)
"""What a model is told about words that are not the answer's full name."""


def leak_check(
    name: str,
    *,
    stem: str = "stem",
    answer: str = "diagnosis",
    synonyms: str = "synonyms",
    negated: bool = True,
    min_match: float = 0.9,
) -> RecipeStep:
    """A step that turns away items whose stem mentions the answer; `negated` says whether a denied mention counts.

    It uses every vocabulary that is installed and the abbreviations of the item's first document.
    """
    loaded: WeakKeyDictionary[RecipeContext, tuple[Vocabulary, ...]] = WeakKeyDictionary()

    def judge(item: RecipeItem, context: RecipeContext) -> Outcome:
        if context not in loaded:
            loaded[context] = _installed(context)
        source = context.document(item.documents[0]) if item.documents else None
        leaks = find_leaks(
            str(item[stem]),
            str(item[answer]),
            synonyms=tuple(map(str, item.get(synonyms) or ())),
            source=source,
            vocabularies=loaded[context],
            min_match=min_match,
        )
        counted = [leak for leak in leaks if negated or leak.kind != "negated"]
        if not counted:
            return item
        told = "; ".join(dict.fromkeys(f"{leak.text!r} ({leak.kind} of {leak.form})" for leak in counted))
        span = _in_source(counted[0], str(item[stem]), source) if source else None
        return ItemRejection(reason="the stem gives the answer away", details=told, span=span)

    return check(name, judge)


def _in_source(leak: Leak, stem: str, source: Document) -> Span | None:
    """Where the words stand in the source, if the stem has them from there with what is around them."""
    around = stem[max(0, leak.start - _AROUND) : leak.end + _AROUND]
    place = source.text.find(around)
    if place < 0:
        return None
    start = place + min(leak.start, _AROUND)
    return Span(document=source.id, start=start, end=start + len(leak.text), quote=leak.text)


def _installed(context: RecipeContext) -> tuple[Vocabulary, ...]:
    found = []
    for name in vocabulary_names():
        try:
            found.append(context.vocabulary(name))
        except UsageError:  # an optional package that is not here: the guard works without it, knowing fewer names
            continue
    return tuple(found)


def _leak(reading: NormalisedText, first: int, last: int, form: str, kind: str) -> Leak:
    start, end = reading.span(first, last)
    kind = "negated" if reading.denied(first, last) else kind
    return Leak(start=start, end=end, text=reading.text[start:end], form=form, kind=kind)


# names, synonyms, other orders, inflections and misspellings


def _phrases(
    reading: NormalisedText, signs: LeakPatterns, min_match: float, known: Callable[[str], bool]
) -> Iterator[Leak]:
    exact: dict[frozenset[str], list[tuple[int, int, str]]] = {}
    loose: dict[str, list[tuple[int, int, str]]] = {}
    for wanted in signs.wanted:
        for forms in wanted.words:
            if forms not in exact:
                exact[forms] = reading.where_one_of(forms)
        places = [exact[forms] for forms in wanted.words]
        found = False
        for chosen in reading.together(places):
            if wanted.bare and not reading.is_name_of_disease(chosen[0][0], plain=wanted.plain):
                continue
            found = True
            yield _leak(reading, *_ends(chosen), wanted.name, _kind(wanted, chosen))
        if found or wanted.kind == "procedure":
            continue
        if wanted.bare and len(wanted.bases[0]) < _SHORTEST_NAME:
            continue
        for base, forms in zip(wanted.bases, wanted.words, strict=True):
            if base not in loose:
                slips = reading.slips(base, min_match)
                loose[base] = [slip for slip in slips if not known(slip[2]) and slip[2] not in forms]
        if any(loose[base] for base in wanted.bases):
            both = [
                sorted([*exact[forms], *loose[base]]) for base, forms in zip(wanted.bases, wanted.words, strict=True)
            ]
            for chosen in reading.together(both):
                yield _leak(reading, *_ends(chosen), wanted.name, "misspelling")


def _ends(chosen: Sequence[tuple[int, int, str]]) -> tuple[int, int]:
    return min(first for first, _, _ in chosen), max(last for _, last, _ in chosen)


def _kind(wanted: LeakPattern, chosen: Sequence[tuple[int, int, str]]) -> str:
    if wanted.kind != "name":
        return wanted.kind
    forms = [form for _, _, form in sorted(chosen)]
    if sorted(forms) != sorted(wanted.bases):
        return "inflection"
    first, last = _ends(chosen)
    return "name" if forms == list(wanted.bases) and last - first < 2 * len(forms) else "order"


def _known_words(vocabularies: Sequence[Vocabulary]) -> Callable[[str], bool]:
    """Whether a form is a word of a vocabulary: then it is no misspelling. Words are gathered when first asked for."""
    return lambda form: any(form in _vocabulary_words(vocabulary) for vocabulary in vocabularies)


@lru_cache(maxsize=8)
def _vocabulary_words(vocabulary: Vocabulary) -> frozenset[str]:
    names = {name for term in vocabulary.terms for name in (term.name, *term.synonyms)}
    return frozenset(term_form(word) for word in {word for name in names for word in _WORD.findall(name)})


# short forms


def _shorts(reading: NormalisedText, signs: LeakPatterns, source: Document | None) -> Iterator[Leak]:
    defined = dict(known_abbreviations(source.text[:_DEFINED_READ])) if source else {}
    defined.update(find_abbreviations(reading.text[:_DEFINED_READ]))
    for match in _SHORT.finditer(reading.text):
        short = match.group()
        if short in defined:
            form = defined[short] if short in signs.given or _names_it(defined[short], signs) else ""
        else:
            form = signs.shorts.get(short, "") or _initials(short, signs)
        if form:
            start, end = match.span()
            place = max((at for at, begin in enumerate(reading.starts) if begin <= start), default=0)
            kind = "negated" if reading.denied(place, place) else "abbreviation"
            yield Leak(start=start, end=end, text=short, form=form, kind=kind)


def _names_it(long: str, signs: LeakPatterns) -> bool:
    """Whether a long form names the whole diagnosis, not a word of it, its cause or what lies beneath it."""
    reading = NormalisedText(long)
    for wanted in signs.whole:
        for chosen in reading.together([reading.where_one_of(forms) for forms in wanted.words]):
            if not wanted.bare or reading.is_name_of_disease(chosen[0][0]):
                return True
    return phrase_key(long) in {phrase_key(wanted.name) for wanted in signs.wanted}


def _initials(short: str, signs: LeakPatterns) -> str:
    """The words a short form may be made of: one letter of each in order, or a few more from inside long words."""
    letters = short.replace("-", "")
    if len(letters) < 3 or not letters.isalpha() or letters.upper() in lists().not_short:
        return ""
    if not letters.isupper():
        chunks = re.findall(r"[A-Z][a-z]*", letters)
        fits = (words for words in signs.initials if len(words) == len(chunks) > 1)
        begun = (words for words in fits if all(map(str.startswith, words, map(str.lower, chunks))))
        return " ".join(next(begun, ()))
    for words, own in signs.initials.items():
        extra = len(letters) - len(words)
        if 0 <= extra <= (_MAX_EXTRA_LETTERS if own else 0) and _spelt_by(letters.lower(), words):
            return " ".join(words)
    return ""


def _spelt_by(letters: str, words: Sequence[str]) -> bool:
    """Whether letters are the first ones of words, with those of known parts of the words among them."""
    if not words or not letters or letters[0] != words[0][0]:
        return not words and not letters
    tails = [letters[1:]]
    if len(letters) > len(words):
        inner = [(part[0], at) for part in lists().inner_parts if (at := words[0].find(part, 1)) > 0]
        tails += [letters[2:] for letter, _ in inner if letters[1:2] == letter]
        tails += [
            letters[3:]
            for letter, at in inner
            for other, later in inner
            if later > at and letters[1:3] == letter + other
        ]
    return any(_spelt_by(tail, words[1:]) for tail in tails)


def _short_organisms(reading: NormalisedText, synonyms: Sequence[str]) -> Iterator[Leak]:
    """Organisms that are given as another name by the letter of their genus: P. shigelloides."""
    for name in filter(begins_with_genus, map(str.strip, synonyms)):
        letter, species = name.split(".", 1)
        for match in re.finditer(rf"\b{letter}\.?\s*{re.escape(species.strip())}\b", reading.text):
            place = max((at for at, begin in enumerate(reading.starts) if begin <= match.start()), default=0)
            yield msgspec.structs.replace(
                _leak(reading, place, place, name, "synonym"), start=match.start(), end=match.end(), text=match.group()
            )


# codes and procedures


def _codes(text: str, signs: LeakPatterns, vocabularies: Sequence[Vocabulary]) -> Iterator[Leak]:
    if not signs.codes:
        return
    for match in _CODE.finditer(text):
        code = re.sub(r"^(?:OMIM|ORPHA|MIM)[\s:#]*", lambda m: f"{m.group()[:5].strip(' :#')}:", match.group())
        code = code.replace("MIM:", "OMIM:") if code.startswith("MIM:") else code
        told = next((own for own in signs.codes if code == own or code.startswith(own) or _above(own, code)), "")
        if told:
            names = (term.name for vocabulary in vocabularies if (term := vocabulary.term(told)))
            start, end = match.span()
            yield Leak(start=start, end=end, text=match.group(), form=f"{told} {next(names, '')}".strip(), kind="code")


def _above(own: str, code: str) -> bool:
    """Whether a code is the one above ours, not further up than what has a dot or is a category."""
    return len(code) >= 3 and own.startswith(code) and len(own) - len(code) <= 2


def _procedures(reading: NormalisedText, signs: LeakPatterns) -> Iterator[Leak]:
    endings = operation_endings()

    def telling(form: str) -> str:
        if form.startswith("anti") and form[4:] in signs.anti:
            return form
        if not form.endswith(endings):
            return ""
        stem = form.removesuffix(next(each for each in endings if form.endswith(each)))
        return form if stem in signs.stems or stem + "i" in signs.stems else ""

    for first, last, form in reading.where(lambda form: bool(telling(form))):
        yield _leak(reading, first, last, form, "procedure")


# what is left


def _innocent_spans(reading: NormalisedText, signs: LeakPatterns) -> list[tuple[int, int]]:
    """Where a phrase stands that speaks of something else."""
    forms = frozenset(reading.forms)
    return [
        reading.span(at, at + len(phrase) - 1)
        for phrase in lists().innocent
        if forms.issuperset(phrase) and not signs.own_words.issuperset(phrase)
        for at in range(len(reading.forms) - len(phrase) + 1)
        if tuple(reading.forms[at : at + len(phrase)]) == phrase
    ]


def _apart(leaks: Iterable[Leak]) -> list[Leak]:
    """One leak a place: the longest, in the order of the text."""
    kept: list[Leak] = []
    for leak in sorted(leaks, key=lambda each: (each.start - each.end, each.start, _RANK.get(each.kind, 0), each.form)):
        at = bisect(kept, leak.start, key=lambda each: each.start)
        if (not at or kept[at - 1].end <= leak.start) and (at == len(kept) or leak.end <= kept[at].start):
            kept.insert(at, leak)
    return kept


_RANK = {
    kind: rank for rank, kind in enumerate(("negated", "name", "order", "inflection", "abbreviation", "synonym"), -6)
}
