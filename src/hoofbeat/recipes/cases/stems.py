"""What a question may show of a case report: patient information and test results, and no diagnosis.

A stem is a row of spans of its source, word for word but for sentences that are listed as reworded. Sections say by
their role what they hold; where one section tells the whole case, its sentences are read (`data/stems.toml`). Captions
belong to figures and are left out. `complete` asks whether a report has all the parts that a case needs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

from hoofbeat.corpus.figures import figure_roles
from hoofbeat.corpus.roles import CASE_ROLES, Role, case_spans, role_spans
from hoofbeat.recipes.cases.redaction import joint
from hoofbeat.recipes.cases.residue import CALL_OUT
from hoofbeat.recipes.context import RecipeContext
from hoofbeat.recipes.recipe_items import ItemRejection, Outcome, RecipeItem
from hoofbeat.recipes.steps import RecipeStep, check
from hoofbeat.recipes.wordlists import word_data
from hoofbeat.records import Document, Section, Span
from hoofbeat.retrieval.index.chunking import sentence_spans

Spans = tuple[tuple[int, int], ...]
PARTS = {
    "patient": "patient information",
    "tests": "test results",
    "diagnosis": "diagnosis",
    "treatment": "treatment",
}
"""The parts of a complete case, by the role of their sections."""

_TABLE = " | "
_CONCLUDES = frozenset({Role.ABSTRACT, Role.CONCLUSION})
_SHOWN = frozenset({Role.CASE, Role.PATIENT, Role.TESTS})
_OVER = frozenset({Role.TREATMENT, Role.OUTCOME, Role.DISCUSSION, Role.CONCLUSION, Role.BACK})
_NUMBERED = re.compile(
    r"^(?:\W*\d[\d.]*\W+)?(?:case|patient)(?: report| no\.?)?\s*#?(\d+|[ivx]+|one|two|three|four)\b", re.I
)
_LONGEST_CAPTION = 4000


class _Rules(Struct, frozen=True):
    parts: dict[str, re.Pattern[str]]
    outcome: re.Pattern[str]
    again: re.Pattern[str]
    earlier: re.Pattern[str]
    results: re.Pattern[str]
    glued: re.Pattern[str]


@cache
def _rules() -> _Rules:
    data = word_data("stems")
    return _Rules(
        parts={part: _any(data["parts"][part]) for part in PARTS},
        outcome=_any(data["ending"]["outcome"]),
        again=_any(data["ending"]["return"]),
        earlier=_any(data["ending"]["earlier"]),
        results=_any(data["parts"]["results"]),
        glued=re.compile(data["captions"]["glued"]),
    )


def _any(patterns: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


# Completeness


def missing_parts(document: Document, *, by: Literal["text", "sections"] = "text") -> list[str]:
    """Which parts of a case a report lacks: by its sections alone, or also by what the case presentation says."""
    present = {role for role, _, _ in role_spans(document)}
    absent = [part for part in PARTS if part not in present]
    if by == "sections" or not absent:
        return absent
    case = "\n".join(document.text[start:end] for start, end in case_spans(document))
    around = (
        "\n".join(document.text[s.start : s.end] for s in document.sections if s.role in _CONCLUDES) if case else ""
    )
    told = dict.fromkeys(PARTS, case) | {"diagnosis": f"{case}\n{around}"}
    return [part for part in absent if not _rules().parts[part].search(told[part])]


def complete(name: str, *, by: Literal["text", "sections"], images: Literal["any", "captions", "files"]) -> RecipeStep:
    """Reports in which patient information, test results, diagnosis and treatment are all told.

    `images` asks for a figure in the first two as well: one with its image file, or one whose caption is there.
    """

    def judge(item: RecipeItem, context: RecipeContext) -> Outcome:
        document = context.document(item.documents[0])
        missing = missing_parts(document, by=by)
        if missing:
            lacking = ", ".join(PARTS[part] for part in missing)
            return ItemRejection(reason=f"no {PARTS[missing[0]]} in the report", details=f"missing: {lacking}")
        if images != "any" and not _illustrated(document, files=images == "files", by=by):
            what = "image" if images == "files" else "figure"
            details = f"{len(document.figures)} figures, {sum(bool(f.files) for f in document.figures)} with an image"
            return ItemRejection(reason=f"no {what} in patient information or test results", details=details)
        return item

    return check(name, judge)


def _illustrated(document: Document, *, files: bool, by: str) -> bool:
    wanted = {Role.PATIENT, Role.TESTS} if by == "sections" else _SHOWN
    figures = (figure for figure in document.figures if figure.files or not files)
    return any(not wanted.isdisjoint(figure_roles(document, figure)) for figure in figures)


def names_test(text: str) -> bool:
    """Whether words name an examination and nothing else, such as "ultrasound"."""
    return _rules().parts["tests"].fullmatch(text.strip()) is not None


# The stem


def tells_treatment(sentence: str) -> bool:
    """Whether a sentence seems to tell of treatment and of no test."""
    parts = _rules().parts
    return bool(parts["treatment"].search(sentence)) and not parts["tests"].search(sentence)


def tells_outcome(sentence: str) -> bool:
    """Whether a sentence seems to tell how a case ended."""
    return bool(_rules().outcome.search(sentence))


def stem_spans(document: Document, *, whole: bool = False) -> Spans:
    """Where patient information and test results are, without captions and, unless `whole`, without the case's end."""
    found: list[tuple[int, int]] = []
    for section in document.sections:
        if found and section.role in _OVER:
            break
        if section.role not in _SHOWN or section.body >= section.end:
            continue
        if section.role == Role.CASE:
            found.append((section.body, section.end if whole else _ending(document, section)))
        else:
            found.append((section.start, section.end))
    return _without(document.text, found, list(captions(document)))


def several_patients(document: Document) -> bool:
    """Whether headings number two or more patients."""
    headings = (section.heading for section in document.sections if section.role in CASE_ROLES)
    return len({match[1].lower() for heading in headings if (match := _NUMBERED.match(heading.strip()))}) > 1


def sentences(document: Document, spans: Spans) -> list[tuple[int, int]]:
    """The sentences of a stem, as places of its source."""
    return [each for start, end in spans for each in sentence_spans(document.text, start, end)]


Wordings = Mapping[tuple[int, int], str]
"""Spans of a stem that are shown in other words."""


def stem_text(document: Document, spans: Spans, wordings: Wordings = MappingProxyType({})) -> str:
    """The stem as it is shown: its spans, word for word or reworded, joined as their source keeps them apart."""
    text = ""
    for at, span in enumerate(spans):
        words = wordings.get(span) or document.text[slice(*span)]
        text += (joint(document.text[spans[at - 1][1] : span[0]], words) if at else "") + words
    return text


def wordings_of(item: RecipeItem) -> dict[tuple[int, int], str]:
    """The spans of an item's case that are reworded, and in which words."""
    return {
        (int(each["start"]), int(each["end"])): str(each["shown"])
        for each in item.get("removed", ())
        if each.get("shown")
    }


def joined(spans: Sequence[tuple[int, int]], wordings: Wordings = MappingProxyType({})) -> Spans:
    """Spans in reading order, those that touch as one; a reworded span stays alone."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(set(spans)):
        if found and start <= found[-1][1] and found[-1] not in wordings and (start, end) not in wordings:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return tuple(found)


def stem_place(document: Document, spans: Spans, offset: int) -> int:
    """The place in the source of a character of the stem's text, which is word for word."""
    for at, (start, end) in enumerate(spans):
        gap = joint(document.text[spans[at - 1][1] : start], document.text[start : start + 1]) if at else ""
        offset = max(0, offset - len(gap))
        if offset < end - start:
            return start + offset
        offset -= end - start
    return spans[-1][1] if spans else 0


def stem_evidence(document: Document, spans: Spans) -> tuple[Span, ...]:
    """The stem's spans as evidence."""
    told = [(a, b) for a, b in spans if document.text[a:b].strip()]  # a sentence may be inserted in a blank
    return tuple(Span(document=document.id, start=a, end=b, quote=document.text[a:b]) for a, b in told)


def cut_before(document: Document, spans: Spans, place: int) -> Spans:
    """What is left when the sentence at this place, and everything after it, is cut; a heading left alone goes too."""
    begin = next((start for start, end in sentences(document, spans) if start <= place < end), place)
    kept = _without(document.text, list(spans), [(begin, len(document.text))])
    headings = {section.start: section.body for section in document.sections if section.body > section.start}
    while kept and headings.get(kept[-1][0], 0) >= kept[-1][1]:
        kept = kept[:-1]
    return kept


def trim_treatment(document: Document, spans: Spans) -> Spans:
    """The stem without what it ends with where that tells of treatment alone: what followed is cut already.

    A sentence that tells a test or what a treatment brought stays.
    """
    rules = _rules()
    told = (rules.parts["tests"], rules.results)
    for start, end in reversed(sentences(document, spans)):
        sentence = document.text[start:end]
        if not rules.parts["treatment"].search(sentence) or any(each.search(sentence) for each in told):
            break
        if _TABLE in sentence:
            break
        spans = cut_before(document, spans, start)
    return spans


def with_stem(item: RecipeItem, document: Document, spans: Spans) -> RecipeItem:
    """The item with this stem: `stem` as text, `stem_spans` as places."""
    return item.put(stem=stem_text(document, spans, wordings_of(item)), stem_spans=[list(span) for span in spans])


def spans_of(item: RecipeItem) -> Spans:
    """The places of an item's stem."""
    return tuple((int(start), int(end)) for start, end in item["stem_spans"])


def spans_with_call_outs(item: RecipeItem) -> Spans:
    """The places of an item's stem as its source has it, with the marks that point to figures."""
    spans = spans_of(item)
    ends = {place for span in spans for place in span}
    marks = [(int(each["start"]), int(each["end"])) for each in item.get("removed", ()) if each["why"] == CALL_OUT]
    return joined([*spans, *(mark for mark in marks if not ends.isdisjoint(mark))], wordings_of(item))


def take_stem(name: str) -> RecipeStep:
    """Take the stem from the report's sections; a report of several patients has none."""

    def judge(item: RecipeItem, context: RecipeContext) -> Outcome:
        document = context.document(item.documents[0])
        if several_patients(document):
            return ItemRejection(reason="the report describes several patients")
        spans = stem_spans(document)
        if not spans:
            return ItemRejection(reason="no section with patient information or test results")
        return with_stem(item, document, spans)

    return check(name, judge)


def long_enough(name: str, minimum: int) -> RecipeStep:
    """Keep stems with at least `minimum` words."""

    def judge(item: RecipeItem, _context: RecipeContext) -> Outcome:
        count = len(str(item["stem"]).split())
        if count < minimum:
            return ItemRejection(reason="too few words of the case before the diagnosis", details=f"{count} words")
        return item

    return check(name, judge)


def _ending(document: Document, section: Section) -> int:
    """Where a case told in one section is over: at its outcome, unless the patient comes back or falls ill after it.

    An earlier visit has its own outcome ("discharged with tonsillitis; six days later she presented"). Where a
    rule can't tell, the text stays: the steps that cut at the diagnosis and the check of the cuts come after.
    """
    rules, end, beside = _rules(), section.end, list(captions(document))
    for start, stop in reversed(sentence_spans(document.text, section.body, section.end)):
        sentence = document.text[start:stop]
        if any(first <= start < last for first, last in beside):
            continue
        ended = rules.outcome.search(sentence)
        if ended and not rules.earlier.search(sentence) and not rules.again.search(sentence, ended.end()):
            end = start
        elif rules.again.search(sentence):
            break
    return end


def captions(document: Document) -> Iterator[tuple[int, int]]:
    """Where captions are: those of figures, and those that were run into a paragraph."""
    for figure in document.figures:
        if figure.start < figure.end:
            yield figure.start, figure.end
    bare = {f.start: f.end for f in document.figures if f.end - f.start <= len(f.label) + 2}
    for match in _rules().glued.finditer(document.text):
        stop = document.text.find("\n", match.end())
        end = stop if stop >= 0 else len(document.text)
        number = re.search(r"\d+", match[0])
        for start, after in bare.items():  # the label alone, after the caption's last paragraph
            if number and end < start < end + _LONGEST_CAPTION and number[0] in document.text[start:after]:
                end = after
                break
        yield match.start(), end


def _without(text: str, spans: Sequence[tuple[int, int]], holes: Sequence[tuple[int, int]]) -> Spans:
    """The spans less the holes, white space at the edges trimmed, in reading order."""
    kept: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        at = start
        for first, last in sorted(holes):
            if last <= at or first >= end:
                continue
            kept.append((at, first))
            at = max(at, last)
        kept.append((at, end))
    trimmed: list[tuple[int, int]] = []
    for start, end in kept:
        piece = text[start:end] if start < end else ""
        left, right = start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())
        if left < right and any(c.isalnum() for c in text[left:right]):
            trimmed.append((left, right))
    return tuple(trimmed)
