"""Whether a reworded sentence of a case says what its source says, and nothing else: rules that compare the two.

A sentence may hold the decisive finding and the answer's name at once ("the X-ray confirmed the position of the
guidewire"). Cutting the name takes the finding with it, so a model may put neutral words in its place ("of a linear
object"). It must add nothing and turn no denial round: no number, disease, organism, drug or test that the sentence and
its neighbours lack, and few other words, each of the case or of a list (`rewording.toml`). In the place of an
organism's name it may say what the name implies ("gram-positive cocci resistant to oxacillin" for MRSA). A faulty
rewording is never shown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from functools import cache

from msgspec import Struct

from hoofbeat.corpus.terms import content_forms, find_abbreviations, tokens
from hoofbeat.recipes.cases.redaction import Redaction
from hoofbeat.recipes.cases.residue import is_table, without_pointers
from hoofbeat.recipes.cases.stems import names_test
from hoofbeat.recipes.guards.diagnosis_names import names_organism
from hoofbeat.recipes.guards.leak_words import forms_of, is_disease
from hoofbeat.recipes.guards.text_checks import new_numbers, numbers
from hoofbeat.recipes.wordlists import word_data
from hoofbeat.retrieval.index.chunking import sentence_spans

REWORDED = "reworded: it holds a finding and gives the answer away, or it read badly"
REFUSED = "its rewording was refused"

_MIN_SHARED = 0.6  # of the words that are not neutral
_MAX_LONGER = 1.3
_FEW = 3  # words that a short sentence may gain
_SAME_STEM = 5  # letters: "esophagus" and "esophageal", "lacerated" and "laceration"


class _Lists(Struct, frozen=True):
    neutral: frozenset[str]
    denying: frozenset[str]
    drugs: frozenset[str]
    named_negative: re.Pattern[str]
    implied: tuple[tuple[re.Pattern[str], frozenset[str]], ...]


@cache
def _lists() -> _Lists:
    data, drugs = word_data("rewording"), word_data("drugs")["drugs"]
    named = " ".join([*drugs, *(each for brands in drugs.values() for each in brands)])
    plain = frozenset(content_forms(f"{data['neutral']} {data['little']}")) | frozenset(data["little"].split())
    return _Lists(
        neutral=plain,
        denying=frozenset(content_forms(data["denying"])),
        drugs=frozenset(content_forms(named)) - plain,
        named_negative=re.compile(data["named_negative"]),
        implied=tuple((re.compile(each["by"]), frozenset(content_forms(each["words"]))) for each in data["implied"]),
    )


def implied_words(text: str) -> frozenset[str]:
    """What the organisms that a text names imply, in normal form: class, Gram stain, shape, resistance."""
    return frozenset().union(*(words for by, words in _lists().implied if by.search(text)))


@cache
def organism_words() -> frozenset[str]:
    """All words that name what an organism is like: bacterial, fungal, cocci."""
    return frozenset().union(*(words for _, words in _lists().implied))


def _denies(text: str) -> bool:
    """Whether a text denies something; a gram-negative rod is a finding."""
    return not _lists().denying.isdisjoint(content_forms(_lists().named_negative.sub(" ", text)))


def wrong_rewording(case: Redaction, place: tuple[int, int], words: str) -> str:
    """What is wrong with these words in the place of a sentence of a case; nothing if they add nothing."""
    text = case.document.text
    source = text[slice(*place)]
    near = _neighbourhood(case, place)
    implied = implied_words(source)
    most = max(_MAX_LONGER * len(source.split()), len(source.split()) + _FEW)
    most += sum(form in implied for form in content_forms(words))
    if len(words.split()) > most:
        return f"it has {len(words.split())} words, and the sentence has {len(source.split())}"
    if added := new_numbers(words, near):
        return f"the number {added[0]} is not in the sentence"
    own, nearby = set(content_forms(source)), set(content_forms(near))
    nearby |= {
        form for short, long in find_abbreviations(text).items() if short in near for form in content_forms(long)
    }
    if words and _denies(source) != _denies(words):
        return "it denies what the sentence says, or says what it denies"
    whole, neutral = set(content_forms(text[case.start : case.end])), _lists().neutral
    written = {form: words[a:b] for form, a, b in zip(*tokens(words), strict=True)}
    free = neutral | _lists().denying | implied
    said = [form for form in content_forms(words) if form not in free]
    for form in said:
        if among(form, nearby):
            continue
        if kind := _kind(form):
            return f"it names {kind}, {written[form]!r}, that the sentence does not have"
        if not among(form, whole):
            return f"the word {written[form]!r} is not in the case; use the sentence's words or neutral ones"
    shared = sum(among(form, own) for form in said)
    if said and shared < _MIN_SHARED * len(said):
        return f"only {shared} of its {len(said)} telling words are those of the sentence"
    return ""


def turns_round(sources: Sequence[str], words: str) -> bool:
    """Whether words deny where none of their sources does, or deny nothing where each of them does."""
    denied = [_denies(each) for each in sources if each.strip()]
    denies = _denies(words)
    return bool(denied) and ((denies and not any(denied)) or (not denies and all(denied)))


def lost_numbers(source: str, words: str, diagnosis: str) -> list[str]:
    """Numbers of a sentence that its rewording lacks, but for those of the answer's name and of pointers to figures.

    A table loses those of its columns that run beyond the diagnosis; the second pass sees it before and after.
    """
    if is_table(source):
        return []
    return [
        each for each in dict.fromkeys(numbers(without_pointers(source))) if new_numbers(each, f"{words} {diagnosis}")
    ]


def _neighbourhood(case: Redaction, place: tuple[int, int]) -> str:
    """A sentence with the one before and the one after it: what its pronouns refer to is there."""
    sentences = sentence_spans(case.document.text, case.start, case.end)
    touched = [at for at, (start, end) in enumerate(sentences) if start < place[1] and place[0] < end]
    if not touched:
        return case.document.text[slice(*place)]
    first, last = sentences[max(0, touched[0] - 1)], sentences[min(len(sentences) - 1, touched[-1] + 1)]
    return case.document.text[min(first[0], place[0]) : max(last[1], place[1])]


def among(form: str, forms: Set[str]) -> bool:
    """Whether a word, in some inflection, is among others."""
    if form in forms or not forms_of(form).isdisjoint(forms):
        return True
    stem = form[: max(_SAME_STEM, len(form) - 4)]
    return len(form) >= _SAME_STEM and any(each.startswith(stem) for each in forms)


def _kind(form: str) -> str:
    """What a word names that no rewording may add, or nothing."""
    if names_organism(form):
        return "an organism"
    if is_disease(form):
        return "a disease"
    if form in _lists().drugs:
        return "a drug"
    return "a test" if names_test(form) else ""
