"""An answer in one line, with the strength of the recommendation: asked for with the answer, and checked against it.

A table for the wall has one line per answer. The line must not say more than the answer: its numbers must be in the
answer or the quote, with the same bounds, and it may not deny what the answer affirms. The strength must be written in
the passages. What breaks a rule is shown with a warning and never changed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hoofbeat.records import Answer, Passage
from hoofbeat.text import cut, for_word_matching, one_line

if TYPE_CHECKING:
    from hoofbeat.audit.answer_facts import AnswerFacts

NONE_GIVEN = "none given"
"""The strength of a recommendation that the source does not grade."""

MAX_LINE, MAX_STRENGTH = 140, 60
_NO_STRENGTH = frozenset(
    ("", "none", NONE_GIVEN, "not given", "not graded", "not stated", "n a", "na", "null", "no grade")
)
_SENTENCE = re.compile(r"(?<=[.!?])(?<!\b[A-Z]\.)(?<!e\.g\.)(?<!i\.e\.)(?<!vs\.)(?<!\bDr\.)\s+(?=[A-Z0-9“\"(])")
_CITED = re.compile(r"\s*\[[^\[\]]{2,120}\]")


def given_strength(written: str) -> str:
    """The strength as a model wrote it; one form for the many words for none."""
    return NONE_GIVEN if for_word_matching(written) in _NO_STRENGTH else one_line(written)


def line_of(answer: Answer) -> tuple[str, bool]:
    """An answer in one line, and whether it is the answer's first sentence because no line was asked for."""
    if answer.statement:
        return one_line(answer.statement), False
    first = _SENTENCE.split(one_line(_CITED.sub("", answer.text)), maxsplit=1)[0]
    return cut(first, MAX_LINE), True


def line_doubts(statement: str, strength: str, answer: str, quote: str, passages: Sequence[Passage]) -> list[str]:
    """What is wrong with a line and a strength, in words; nothing where the rules find no fault."""
    from hoofbeat.audit.answer_facts import facts_of  # noqa: PLC0415 - commands that only help need no word lists

    found = []
    known = facts_of(f"{answer} {quote}"), f"{answer} {quote}"
    if statement and (why := _beyond(facts_of(statement), facts_of(answer), *known)):
        found.append(f"its line for the table {why}: {statement}")
    if strength not in ("", NONE_GIVEN):
        words = for_word_matching(strength)
        if not any(words in for_word_matching(passage.text) for passage in passages):
            found.append(f"the strength that it gives is not in what was shown: {strength}")
    return found


def _beyond(line: AnswerFacts, answer: AnswerFacts, known: AnswerFacts, text: str) -> str:
    """Why a line says more than, or other than, the answer; empty where words do not show it."""
    bounds: dict[tuple[str, str], set[str]] = {}
    for each in known.quantities:
        bounds.setdefault((each.value, each.unit), set()).add(each.bound)
    for each in sorted(line.quantities):
        if (each.value, each.unit) not in bounds:
            if not each.unit and re.search(rf"(?<![\d.,]){re.escape(each.value)}(?![\d]|[.,]\d)", text):
                continue  # the line leaves the unit to the reader
            return "has a number that the answer does not have"
        if each.bound and {"", each.bound}.isdisjoint(bounds[each.value, each.unit]):
            return "has another threshold than the answer"
    if (line.denied - line.affirmed) & (answer.affirmed - answer.denied):
        return "denies what the answer affirms"
    if (line.affirmed - line.denied) & (answer.denied - answer.affirmed):
        return "affirms what the answer denies"
    if any(-side in answer.sides for side in line.sides):
        return "takes another side than the answer"
    return ""
