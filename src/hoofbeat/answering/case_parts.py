"""The first part of a case, for the question how much of it a model needs.

The case is the question's context; without one, its text less the question itself, which always stays: the last
sentence that asks, or else the last. Tokens are counted here, not by a model's tokenizer: a word, a number, a mark, or
an ideograph is one, so that every model is shown the same characters.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from hoofbeat.records import Question
from hoofbeat.retrieval.index.chunking import sentence_spans

TOKENS = "a word, a number, a mark, or an ideograph is a token"
"""How tokens are counted, as a manifest records it."""

_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_TOKEN = re.compile(rf"[{_IDEOGRAPHS}]|\d+(?:[.,]\d+)+|[^\W{_IDEOGRAPHS}]+|[^\w\s]")
_CLOSING = "\"'”’)]」』"

Spans = list[tuple[int, int]]


class ShortenedCase(NamedTuple):
    """What is left of a question: its text as asked, and how many units of how many of its case were kept."""

    text: str
    kept: int
    of: int


def shorten(question: Question, percent: int, *, by_sentences: bool = False) -> ShortenedCase:
    """The question with the first so many percent of its case; at least one token or sentence of it is kept."""
    if question.context:
        kept, count, of = _cut(question.context, percent, (0, 0), by_sentences=by_sentences)
        return ShortenedCase(f"{kept}\n\n{question.text}", count, of)
    asking = _asking(question.text)
    kept, count, of = _cut(question.text, percent, asking, by_sentences=by_sentences)
    if len(kept) >= asking[1]:
        return ShortenedCase(kept, count, of)
    return ShortenedCase(f"{kept} {question.text[slice(*asking)]}".strip(), count, of)


def _asking(text: str) -> tuple[int, int]:
    """Where the sentence that asks stands."""
    spans = sentence_spans(text)
    asking = [span for span in spans if text[slice(*span)].rstrip(_CLOSING).endswith(("?", "？"))]
    return (asking or spans or [(0, len(text))])[-1]


def _cut(text: str, percent: int, without: tuple[int, int], *, by_sentences: bool) -> tuple[str, int, int]:
    """The beginning of a text that holds so many percent of its units, those inside `without` not counted."""
    found = sentence_spans(text) if by_sentences else [match.span() for match in _TOKEN.finditer(text)]
    units: Spans = [span for span in found if not without[0] <= span[0] < without[1]]
    if not units:
        return "", 0, 0
    count = max(1, len(units) * percent // 100)
    end = len(text) if count == len(units) and units[-1][1] > without[1] else units[count - 1][1]
    return text[:end], count, len(units)
