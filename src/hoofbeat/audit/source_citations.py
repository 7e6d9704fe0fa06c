"""What an answer from a source rests on, checked: is the section it names among those shown, do its quotes exist.

What the answer states is held against the passages that it cites as well: comparators, denials, directions and numbers
must be the same (`statement_check`). A fault is told, and is a reason to ask once more; it is never mended here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from hoofbeat.audit.citations import format_citation, left_out, long_enough, quote_in_passage
from hoofbeat.benchmarks.statement_check import Objection, objections
from hoofbeat.benchmarks.text_overlap import turned_wording
from hoofbeat.prompts import label
from hoofbeat.records import Answer, Passage, TraceStep
from hoofbeat.text import for_word_matching

NO_SECTION = "none"
STAGE = "citations"
_CITATION = re.compile(r"\[([^\[\]]{2,120})\]")
_QUOTED = re.compile(r"[\"“„«]([^\"“”„«»]{20,600})[\"”«»]")
_LETTERS = re.compile(r"[^\W\d_]{3}")
_SOME_PAGES = r"(?:pages?|pp?)\b\.?\s*\d+(?:\s*(?:[-–,]|and|to)\s*\d+)*"
_PAGES = re.compile(rf"\A\W*{_SOME_PAGES}\W*|[\s,;:(–-]*\b(?:on\s+)?{_SOME_PAGES}\W*\Z", re.IGNORECASE)
_SEE = re.compile(r"\A\W*(?:see|cf\.?|compare)\s+(?:also\s+)?", re.IGNORECASE)
_SECTION = re.compile(
    r"\A\W*(?:the\s+)?(?:(?:section|sect?\.|chapter|heading|passage)\s*:?\s+)?|\s+section\W*\Z", re.IGNORECASE
)
_ASIDE = re.compile(
    r"[A-Z][\w+-]*[A-Z][\w+-]*s?|[^A-Za-z]*\d[\d.,%–-]*\s?(?:%|CI\b|mg\b|years?\b|\d).*|\d+%.*|sic|i\.e\..*|e\.g\..*"
)
_SHORT = 160
_DOUBTS = {
    "quote not found": "its quote is not in the passages shown",
    "quote elsewhere": "its quote is under another heading than the one it names; the quote's heading is cited",
    "quote too short": "its quote is too short to locate",
    "quote changed": "its quote changes the words of the source",
    "quote cut": "its quote leaves out a word that reverses its meaning",
}
_OBJECTIONS = {
    "quote changed": "quote changed",
    "quote cut": "quote cut",
    "statement differs": "a sentence of the field answer differs",  # the reply has a field "statement" as well
}
FOUND = ("quoted", "quote elsewhere")
"""What a step says of a quote that is in the source word for word."""

_ONLY_SHOWN = ("negation:", "direction:")


class CitationCheck(NamedTuple):
    """The headings an answer cites (with the page where one is known), what was found, and what is doubtful."""

    citations: tuple[str, ...]
    steps: tuple[TraceStep, ...]
    warnings: tuple[str, ...]

    @property
    def objections(self) -> list[str]:
        """What the checks of words object to, with the field that it is in: a reason to ask the model once more.

        Denials and directions of a statement are only shown: in trials no such objection was right (docs/audit.md).
        """
        asked = [
            each for each in self.steps if each.what != "statement differs" or not each.text.startswith(_ONLY_SHOWN)
        ]
        steps = [(_OBJECTIONS[step.what], step) for step in asked if step.what in _OBJECTIONS]
        return [": ".join(filter(None, (told, step.text, step.reasoning))) for told, step in steps]


def section_names(passages: Sequence[Passage]) -> dict[str, str]:
    """The sections shown: the name a model sees, one for each heading and never `none`, and the heading itself."""
    names: dict[str, str] = {}
    for heading in dict.fromkeys(passage.heading for passage in passages):
        plain = name = label(heading).strip() or "untitled"
        number = 1
        while name in names or name.lower() == NO_SECTION:
            number += 1
            name = f"{plain[:110].strip()} ({number})"
        names[name] = heading
    return names


def check_citations(
    section: str, quote: str, text: str, passages: Sequence[Passage], question: str = ""
) -> CitationCheck:
    """Check the section an answer chose, the sections it names in brackets, and every quote, against what was shown.

    An answer that chose none (`NO_SECTION`) may quote from any passage; it is doubtful if its text names none either.
    Where the words copied from the source stand under another heading than the one chosen, that heading is cited, for
    the words are what the answer rests on. The text may use the numbers of its question.
    """
    shown = section_names(passages)
    by_words = {for_word_matching(name): heading for name, heading in shown.items()}
    chosen = None if section == NO_SECTION else shown[section]
    quotes = dict.fromkeys(each.strip() for each in (quote, *_QUOTED.findall(text)) if each.strip())
    found = {words: _find(words, chosen, passages) for words in quotes}
    headings = [] if chosen is None else [_where(found.get(quote.strip()), chosen, passages)]
    steps: list[TraceStep] = []
    warnings: list[str] = []
    for name in _CITATION.findall(text):
        heading = _heading(name, by_words)
        if heading is not None:
            headings.append(heading)
        elif _LETTERS.search(_bare(name)) and not _is_aside(name, passages):
            steps.append(TraceStep(stage=STAGE, what="section not shown", text=name))
            warnings.append(f"it names a section that was not shown: {name}")
    if not headings:
        steps.append(TraceStep(stage=STAGE, what="no section named"))
        warnings.append("no section named")
    for words, step in found.items():
        steps.append(step)
        if step.what in _DOUBTS:
            why = f" ({step.reasoning})" if step.reasoning else ""
            warnings.append(f"{_DOUBTS[step.what]}: {words[:_SHORT]}{why}")
    copied = [words for words, step in found.items() if step.what in FOUND]
    for objection in check_statement(text, headings, passages, question, copied):
        steps.append(TraceStep(stage=STAGE, what="statement differs", text=str(objection)))
        warnings.append(f"it may differ from the source ({objection.kind}): {objection.claim}{objection.there}")
    pages = {passage.heading: passage.page for passage in reversed(passages) if passage.page is not None}
    cited = [format_citation(heading, pages.get(heading)) for heading in dict.fromkeys(headings) if heading]
    return CitationCheck(tuple(cited), tuple(steps), tuple(warnings))


def check_statement(
    text: str, headings: Sequence[str], passages: Sequence[Passage], question: str = "", quotes: Sequence[str] = ()
) -> list[Objection]:
    """What an answer states otherwise than the passages under these headings, first of all than what it quotes.

    A number may be in any passage shown, or in the question.
    """
    stated = _QUOTED.sub(" ", _CITATION.sub("", text))
    cited = [passage.text for passage in passages if passage.heading in headings] or [each.text for each in passages]
    found = objections(stated, cited, question, quotes)
    if not any(each.kind in ("threshold", "unit") for each in found):
        return found
    shown = [_with_heading(each) for each in passages]
    everywhere = {(each.kind, each.claim) for each in objections(stated, shown, question, quotes)}
    return [each for each in found if each.kind not in ("threshold", "unit") or (each.kind, each.claim) in everywhere]


def _with_heading(passage: Passage) -> str:
    return f"{passage.heading}.\n{passage.text}"


def _where(quoted: TraceStep | None, chosen: str, passages: Sequence[Passage]) -> str:
    """The heading that an answer's own quote stands under, if that is another one; else the one that was chosen."""
    if quoted is None or quoted.what != "quote elsewhere":
        return chosen
    return next(passage.heading for passage in passages if passage.id == quoted.found[0])


def _heading(name: str, by_words: Mapping[str, str]) -> str | None:
    """The heading that words in brackets name, as they stand or without their page, `see` and `section`."""
    return next((by_words[words] for words in map(for_word_matching, _shorter(name)) if words in by_words), None)


def _is_aside(name: str, passages: Sequence[Passage]) -> bool:
    """Whether words in brackets cite nothing: an abbreviation ("[ARR]"), a figure, or brackets of the source itself."""
    return _ASIDE.fullmatch(name) is not None or any(f"[{name}]" in passage.text for passage in passages)


def _shorter(name: str) -> Iterator[str]:
    yield name
    for pattern in (_PAGES, _SEE, _SECTION):
        name = pattern.sub("", name)
        yield name


def _bare(name: str) -> str:
    return list(_shorter(name))[-1]


def _find(quote: str, heading: str | None, passages: Sequence[Passage]) -> TraceStep:
    """Where a quote stands: in a passage under the heading named (any where none is), in another one, or nowhere."""
    if not long_enough(quote, passages):
        return TraceStep(stage=STAGE, what="quote too short", text=quote)
    for here in (True, False):
        for passage in passages:
            if (heading is None or passage.heading == heading) is here and quote_in_passage(quote, passage):
                if word := left_out(quote, passage):
                    why = f"the source has “{word}” beside it"
                    return TraceStep(stage=STAGE, what="quote cut", text=quote, reasoning=why, found=(passage.id,))
                what = "quoted" if here else "quote elsewhere"
                return TraceStep(stage=STAGE, what=what, text=quote, found=(passage.id,))
    for passage in passages:
        there, kind = turned_wording(passage.text, quote)
        if kind:
            why = f"{kind}; the source has: {there[:_SHORT]}"
            return TraceStep(stage=STAGE, what="quote changed", text=quote, reasoning=why, found=(passage.id,))
    return TraceStep(stage=STAGE, what="quote not found", text=quote)


def is_grounded(answer: Answer) -> bool:
    """Whether an answer says something, cites what was shown and quotes it, and the checks object to nothing in it."""
    if answer.absent is not False or answer.failure is not None or not answer.citations:
        return False
    found = {step.what for step in answer.trace if step.stage == STAGE}
    return bool(found & set(FOUND)) and not found & {*_OBJECTIONS, "quote not found"}


def count_citations(answers: Iterable[Answer]) -> Counter[str]:
    """Of answers that say something: how many there are, cite a section, quote, and what is wrong with those."""
    counts: Counter[str] = Counter()
    for answer in answers:
        if answer.absent or answer.failure is not None:
            continue
        counts["answers"] += 1
        counts["citing"] += bool(answer.citations)
        for step in answer.trace:
            if step.stage == STAGE:
                counts[step.what] += 1
    return counts
