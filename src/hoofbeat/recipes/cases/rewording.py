"""Whether a reworded sentence of a case says what its source says, and nothing else: rules that compare the two.

A sentence may hold the decisive finding and the answer's name at once ("the X-ray confirmed the position of the
guidewire"). Cutting the name takes the finding with it, so a model may put neutral words in its place ("of a linear
object"), and in the place of an organism's name what the name implies ("gram-positive cocci resistant to oxacillin" for
MRSA). Rules look at facts only, not at the choice of words: on real reports a strong model's wording was right nearly
always where a word list objected. A number that the report lacks and the answer's full name are refused. The model is
asked once more about a number from another place, a denial turned round, and a disease, organism, drug, test or class
of organisms that the report lacks, and about words that are vaguer than the report's in an organism, a structure or a
test result ("organelles" for mitochondria): a finding keeps its words, and only the answer's names are hidden. If it
insists, its words are shown, flagged. Much text beyond the sentence's and a corrected unit are flagged only. The words
are data (`rewording.toml`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from functools import cache

from msgspec import Struct

from hoofbeat.corpus.terms import content_forms, find_abbreviations, tokens
from hoofbeat.recipes.cases.redaction import Redaction
from hoofbeat.recipes.cases.residue import is_table, without_pointers
from hoofbeat.recipes.cases.stems import captions, names_test
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
_SHOWN = 160
_GROUP = re.compile(r"\bgroup [A-G]\b(?= (?:[\w-]+ )?streptococc)", re.IGNORECASE)
_ORGANISM = re.compile(r"\b[A-Z]\.\s?[a-z]{4,}|\b[A-Z][a-z]{3,}(?: [a-z]{4,})?|[^\W\d_]{3,}")
_SHORTEST_STEM = 4
_SAME_STEM = 5  # letters: "esophagus" and "esophageal", "lacerated" and "laceration"


class RewordingDoubts(Struct, frozen=True):
    """What rules have against a rewording: why it is refused, what the model is asked about, what is only flagged."""

    refused: str = ""
    objection: str = ""
    remark: str = ""

    def told(self, number: int, words: str) -> str:
        """What to tell the model about its rewording of the sentence with this number; nothing without objection."""
        if not self.refused and not self.objection:
            return ""
        verdict = "is refused" if self.refused else "is doubted"
        return f"The rewording of sentence {number}, {words[:_SHOWN]!r}, {verdict}: {self.refused or self.objection}."

    def flags(self, words: str) -> list[str]:
        """What a reviewer is told of a rewording that is shown in spite of doubts."""
        return [
            f"a rewording is shown although {each}: {words[:_SHOWN]!r}"
            for each in (self.objection, self.remark)
            if each
        ]


class _Lists(Struct, frozen=True):
    neutral: frozenset[str]
    denying: frozenset[str]
    drugs: frozenset[str]
    classes: frozenset[str]
    named_negative: re.Pattern[str]
    gram_stain: re.Pattern[str]
    marks: re.Pattern[str]
    implied: tuple[tuple[re.Pattern[str], frozenset[str]], ...]
    vague_organism: frozenset[str]
    vague_structure: frozenset[str]
    vague_result: frozenset[str]
    structures: frozenset[str]
    results: re.Pattern[str]
    value: re.Pattern[str]


@cache
def _lists() -> _Lists:
    data, drugs = word_data("rewording"), word_data("drugs")["drugs"]
    named = " ".join([*drugs, *(each for brands in drugs.values() for each in brands)])
    plain = frozenset(content_forms(f"{data['neutral']} {data['little']}")) | frozenset(data["little"].split())
    return _Lists(
        neutral=plain,
        denying=frozenset(content_forms(data["denying"])),
        drugs=frozenset(content_forms(named)) - plain,
        classes=frozenset(content_forms(data["classes"])),
        named_negative=re.compile(data["named_negative"]),
        gram_stain=re.compile(data["gram_stain"]),
        marks=re.compile(data["marks"]),
        implied=tuple((re.compile(each["by"]), frozenset(content_forms(each["words"]))) for each in data["implied"]),
        vague_organism=frozenset(content_forms(data["vague_organism"])),
        vague_structure=frozenset(content_forms(data["vague_structure"])),
        vague_result=frozenset(content_forms(data["vague_result"])),
        structures=frozenset(content_forms(data["structures"])),
        results=re.compile(data["results"]),
        value=re.compile(data["value"]),
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


def rewording_doubts(
    case: Redaction, place: tuple[int, int], words: str, full_names: Sequence[str] = (), names: Sequence[str] = ()
) -> RewordingDoubts:
    """What rules have against these words in the place of a sentence.

    `full_names` of the answer are those in the words, `names` all that it has: what these say may be hidden.
    """
    report = f"{case.document.title}\n\n{case.document.text}"
    if full_names:
        return RewordingDoubts(refused=f"it names the answer, {full_names[0]!r}")
    if added := new_numbers(words, report):
        return RewordingDoubts(refused=f"the number {added[0]} is not in the report")
    source, near = case.document.text[slice(*place)], _neighbourhood(case, place)
    return RewordingDoubts(
        objection=_wrong_fact(report, source, near, words) or (_less_said(source, words, names) if names else ""),
        remark=corrected(source, words) or _beyond(report, source, near, words),
    )


def _wrong_fact(report: str, source: str, near: str, words: str) -> str:
    """A fact of a rewording that its report does not tell, or tells elsewhere; nothing if there is none."""
    if added := new_numbers(words, near):
        return f"the number {added[0]} is not in the sentence, its neighbours or a caption"
    if words and _denies(source) != _denies(words):
        return "it denies what the sentence says, or says what it denies"
    lists, known, implied = _lists(), set(content_forms(report)), implied_words(report)
    signs = {sign.lower() for sign in lists.gram_stain.findall(words)}
    for sign in sorted(signs - {sign.lower() for sign in lists.gram_stain.findall(report)} - implied):
        return f"no organism that the report names is gram-{sign}"
    for form, written in _named(words).items():
        if form in implied or among(form, known):
            continue
        if form in lists.classes:
            return f"no organism that the report names is what {written!r} says"
        if kind := _kind(form):
            return f"it names {kind}, {written!r}, that the report does not have"
    return ""


def _beyond(report: str, source: str, near: str, words: str) -> str:
    """What a rewording has beyond its sentence though the report may tell it: names, length, many other words."""
    nearby, implied = set(content_forms(near)), implied_words(report)
    longs = [long for short, long in find_abbreviations(report).items() if short in near]
    nearby |= {form for long in longs for form in content_forms(long)}
    said = {form: written for form, written in _named(words).items() if form not in implied}
    for form, written in said.items():
        if not among(form, nearby) and (kind := _kind(form)):
            return f"it names {kind}, {written!r}, that the sentence and its neighbours do not have"
    before, after = len(source.split()), len(words.split())
    if after > max(_MAX_LONGER * before, before + _FEW) + sum(form in implied for form in content_forms(words)):
        return f"it has {after} words, and the sentence has {before}"
    shared = sum(among(form, nearby) for form in said)
    if shared < _MIN_SHARED * len(said):
        return f"only {shared} of its {len(said)} telling words are those of the sentence and its neighbours"
    return ""


def _named(words: str) -> dict[str, str]:
    """The telling words of a rewording, in normal form, each as it is written."""
    written = {form: words[a:b] for form, a, b in zip(*tokens(words), strict=True)}
    plain = _lists().neutral | _lists().denying
    return {form: written[form] for form in content_forms(words) if form not in plain}


def vaguer(source: str, words: str, names: Sequence[str]) -> str:
    """What a text names that its source says in plain words, such as "organelles" for mitochondria; nothing if none.

    What an answer with these `names` hides by right is left out: the organism that it names. A structure or a result
    that shares a word with the answer is a finding.
    """
    lists, said, known = _lists(), content_forms(words), set(content_forms(source))
    vague = {form: words[a:b] for form, a, b in zip(*tokens(words), strict=True)}
    for blurred, specific in (
        (lists.vague_organism, _organisms_in(source, names)),
        (lists.vague_structure - known, [source[a:b] for f, a, b in zip(*tokens(source), strict=True) if _is_part(f)]),
        (lists.vague_result, [each for each in lists.results.findall(source) if not _is_held(each, " ".join(names))]),
    ):
        for form in blurred.intersection(said):
            for name in specific:
                if not _is_held(name, words) and not _last_word_in(name, said):
                    return (
                        f"it says {vague.get(form, form)!r} where the report names {name!r}; a finding keeps the "
                        "report's words, even if it shares one with the answer, unless they are a name of the answer"
                    )
    return ""


def _less_said(source: str, words: str, names: Sequence[str]) -> str:
    """What a rewording lost of its sentence: a name that became vaguer, or an organism that is gone."""
    if is_table(source):
        return ""
    gone = [
        each
        for each in _organisms_in(source, names)
        if implied_words(each) - implied_words(words) and not _is_held(each, words)
    ]
    lost = f"it lacks {gone[0]!r} of its sentence; only the answer's names are hidden" if gone else ""
    return vaguer(source, words, names) or lost


def _is_part(form: str) -> bool:
    return form in _lists().structures


def _last_word_in(name: str, forms: Sequence[str]) -> bool:
    """Whether the last word of a name, such as the species, is among others; a single letter ("group A") is no word."""
    last = (content_forms(name) or [""])[-1]
    return len(last) > 1 and among(last, set(forms))


def _is_held(name: str, text: str) -> bool:
    return name.casefold() in text.casefold()


def _organisms_in(source: str, names: Sequence[str]) -> list[str]:
    """The organisms that a text names, but for those that an answer with these names is an infection with."""
    told = " ".join(names)
    stems = [form[: max(_SHORTEST_STEM, len(form) - 4)] for form in content_forms(told) if len(form) > _SHORTEST_STEM]
    pairs = [each if names_organism(each) else each.split()[0] for each in _ORGANISM.findall(source)]
    found = [
        each
        for each in pairs
        if names_organism(each)
        and not any(stem in form for stem in stems for form in content_forms(each))
        and implied_words(each).isdisjoint(implied_words(told))
    ]
    return [*found, *(_GROUP.findall(source) if found else ())]


def corrected(source: str, words: str) -> str:
    """A value whose unit a text has changed, as "90 mg/dL became 90 g/L"; nothing if there is none."""
    before: dict[str, dict[str, str]] = {}
    for match in _lists().value.finditer(source):
        before.setdefault(_plain(match[1]), {})[_plain(match[2])] = " ".join(match[0].split())
    for match in _lists().value.finditer(words):
        units = before.get(_plain(match[1]), {})
        if units and _plain(match[2]) not in units:
            return f"it corrects a unit of the report: {next(iter(units.values()))} became {' '.join(match[0].split())}"
    return ""


def _plain(text: str) -> str:
    """A number or a unit as it is compared: "10^9 / L" is 109/l."""
    return re.sub(r"[\s^,]", "", text).casefold().replace("µ", "u").replace("μ", "u")


def turns_round(sources: Sequence[str], words: str) -> bool:
    """Whether words deny where none of their sources does, or deny nothing where each of them does."""
    denied = [_denies(each) for each in sources if each.strip()]
    denies = _denies(words)
    return bool(denied) and ((denies and not any(denied)) or (not denies and all(denied)))


def lost_numbers(source: str, words: str, diagnosis: str) -> list[str]:
    """Numbers of a sentence that its rewording lacks, but for those that tell nothing of the patient.

    These are numbers of figures, marks of literature such as (5), magnifications, and those of the answer's name. A
    table loses those of its columns that run beyond the diagnosis; the second pass sees it before and after.
    """
    if is_table(source):
        return []
    told = without_pointers(_lists().marks.sub(" ", source))
    return [each for each in dict.fromkeys(numbers(told)) if new_numbers(each, f"{words} {diagnosis}")]


def _neighbourhood(case: Redaction, place: tuple[int, int]) -> str:
    """A sentence, the one before and the one after it, and the captions: what its pronouns and marks refer to."""
    text = case.document.text
    sentences = sentence_spans(text, case.start, case.end)
    touched = [at for at, (start, end) in enumerate(sentences) if start < place[1] and place[0] < end]
    start, end = place
    if touched:
        first, last = sentences[max(0, touched[0] - 1)], sentences[min(len(sentences) - 1, touched[-1] + 1)]
        start, end = min(first[0], start), max(last[1], end)
    return "\n".join((text[start:end], *(text[slice(*each)] for each in captions(case.document))))


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
