"""An answer's citations, checked: was the passage it cites shown, has it a word in common, do its quotes exist."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from hoofbeat.ask.ask_records import AnswerPart, Doubt
from hoofbeat.audit.answers.source_citations import NO_SECTION, check_citations
from hoofbeat.records import Passage
from hoofbeat.retrieval import ENGLISH
from hoofbeat.retrieval.chunking import sentence_spans

__all__ = ["NOT_SHOWN", "NO_WORD", "check_answer", "check_parts"]

NOT_SHOWN = "no passage of this number was shown"
NO_WORD = "the passage has no word in common with this sentence"
UNCITED = "it cites no passage"

_RANGE = r"\d{1,4}(?:\s*[-–]\s*\d{1,4})?"
_CITING = re.compile(
    rf"[\[(]\s*(?:passages?|p\.)?\s*({_RANGE}(?:\s*(?:,|;|and|&)\s*(?:passages?\s*)?{_RANGE})*)\s*[\])]", re.I
)
_BRACKETS = re.compile(r"\[|\(\s*(?:passage|p\.)", re.I)
_ONE = re.compile(r"(\d{1,4})(?:\s*[-–]\s*(\d{1,4}))?")
_MAX_WIDTH = 20
_QUOTES = {
    "quote not found": "a quote that is not in what was shown",
    "quote too short": "a quote too short to tell where it stands",
    "section not shown": "a section that was not shown",
}


def check_parts(text: str, shown: Mapping[int, Passage]) -> tuple[AnswerPart, ...]:
    """An answer as parts: its words, and each citation with what is wrong with it.

    Citations are numbers in square brackets, alone or listed or as a range, or `(passage 2)` in round ones.
    """
    sentences = sentence_spans(text)
    parts: list[AnswerPart] = []
    at = 0
    for match in _CITING.finditer(text):
        if not _BRACKETS.match(match.group()):
            continue
        parts += [AnswerPart(text=text[at : match.start()])] if match.start() > at else []
        at = match.end()
        words = _sentence(text, sentences, match.start())
        parts += [
            AnswerPart(text=f"[{number}]", cites=number, doubt=_doubt(number, words, shown))
            for number in _each(match[1])
        ]
    return (*parts, AnswerPart(text=text[at:])) if at < len(text) else tuple(parts)


def _each(listed: str) -> list[int]:
    """The numbers of a list of numbers and ranges; of a range that can't be meant only its ends."""
    found: list[int] = []
    for match in _ONE.finditer(listed):
        first, last = int(match[1]), int(match[2] or match[1])
        found += range(first, last + 1) if 0 <= last - first <= _MAX_WIDTH else [first, last]
    return list(dict.fromkeys(found))


def _sentence(text: str, sentences: Sequence[tuple[int, int]], at: int) -> str:
    """What a citation belongs to: the sentence it stands in; where it begins one, the sentence before it as well."""
    before = [span for span in sentences if span[0] <= at]
    words = text[slice(*before[-1])] if before else text
    if len(before) > 1 and not ENGLISH.terms(_CITING.sub(" ", text[before[-1][0] : at])):
        words = f"{text[slice(*before[-2])]} {words}"
    return _CITING.sub(" ", words)


def _doubt(number: int, words: str, shown: Mapping[int, Passage]) -> str:
    passage = shown.get(number)
    if passage is None:
        return NOT_SHOWN
    terms = set(ENGLISH.terms(f"{passage.heading} {passage.text}"))
    return NO_WORD if terms.isdisjoint(ENGLISH.terms(words)) else ""


def check_answer(text: str, parts: Sequence[AnswerPart], shown: Sequence[Passage]) -> tuple[Doubt, ...]:
    """All that does not stand up in an answer: citations without support, quotes that are not there, none at all."""
    doubts = [Doubt(what=part.doubt, text=part.text) for part in parts if part.doubt]
    if not any(part.cites for part in parts):
        doubts.append(Doubt(what=UNCITED))
    checked = check_citations(NO_SECTION, "", text, shown)
    doubts += [Doubt(what=_QUOTES[step.what], text=step.text) for step in checked.steps if step.what in _QUOTES]
    return tuple(dict.fromkeys(doubts))
