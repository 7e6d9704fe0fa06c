"""An answer in one line, with the strength of the recommendation: asked for with the answer, and checked against it.

A table for the wall has one line per answer. The line is held against the answer and its quote by the rules that hold
an answer against its passages: numbers, comparators, denials and directions. The strength must be written in the
passages. What breaks a rule is shown with a warning and never changed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hoofbeat.benchmarks.statement_check import objections
from hoofbeat.records import Answer, Passage
from hoofbeat.text import cut, for_word_matching, one_line

NONE_GIVEN = "none given"
"""The strength of a recommendation that the source does not grade."""

MAX_LINE, MAX_STRENGTH = 110, 160
_NO_STRENGTH = frozenset(
    ("", "none", NONE_GIVEN, "not given", "not graded", "not stated", "n a", "na", "null", "no grade")
)
_BETWEEN = re.compile(r"\s/\s")
_STRENGTHS = re.compile(rf"{_BETWEEN.pattern}|;")
_SENTENCE = re.compile(r"(?<=[.!?])(?<!\b[A-Z]\.)(?<!e\.g\.)(?<!i\.e\.)(?<!vs\.)(?<!\bDr\.)\s+(?=[A-Z0-9“\"(])")
_CITED = re.compile(r"(?:(?<!\s)\s*+)?\[[^\[\]]{2,120}\]")  # long white space is read once, not from each sign


def given_strength(written: str) -> str:
    """The strength as a model wrote it; one form for the many words for none."""
    parts = _BETWEEN.split(written)
    return NONE_GIVEN if all(for_word_matching(each) in _NO_STRENGTH for each in parts) else one_line(written)


def line_of(answer: Answer) -> tuple[str, bool]:
    """An answer in one line, and whether it is the answer's first sentence because no line was asked for."""
    if answer.statement:
        return one_line(answer.statement), False
    first = _SENTENCE.split(one_line(_CITED.sub("", answer.text)), maxsplit=1)[0]
    return cut(first, MAX_LINE), True


def line_doubts(
    statement: str, strength: str, answer: str, quote: str, passages: Sequence[Passage], question: str = ""
) -> list[str]:
    """What is wrong with a line and a strength, in words; nothing where the rules find no fault."""
    found = [
        f"its table line differs from its answer: {each.kind}: {each.claim}"
        + (f"; the answer has: {each.passage}" if each.passage else "; the answer has no such number")
        for each in objections(statement, [answer, quote], question)
    ]
    if strength not in ("", NONE_GIVEN):
        texts = [for_word_matching(passage.text) for passage in passages]
        # the grades of several recommendations are apart in the passages; one grade may itself have a semicolon
        if not _is_in(strength, texts) and not all(_is_in(part, texts) for part in _STRENGTHS.split(strength)):
            found.append(f"the strength it gives is not in the passages shown: {strength}")
    return found


def _is_in(strength: str, texts: Sequence[str]) -> bool:
    words = for_word_matching(strength)
    return words in _NO_STRENGTH or any(words in text for text in texts)
