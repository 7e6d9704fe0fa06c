"""Filters on numbers: the year of publication, and the length of the text in words or characters."""

from __future__ import annotations

import operator
from collections.abc import Callable

from hoofbeat.corpus.filter import KEPT, Clause, CorpusFilter, FilterStep, FilterVerdict, per_document
from hoofbeat.facets import year_of
from hoofbeat.records import Document

COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "=": operator.eq,
}


class _Number(CorpusFilter):
    def __init__(self, name: str, summary: str, example: str, measure: Callable[[Document], int | None]) -> None:
        self.name = name
        self.summary = summary
        self.example = example
        self._measure = measure

    def build(self, clause: Clause) -> FilterStep:
        """`year>=2023`, `words>=300`, `characters<=200000`; several are several steps."""
        name = self.name
        clause.no_arguments(self.example)
        values = clause.compared(tuple(COMPARE), self.example)
        if len(values) > 1:
            clause.fail(
                values[1].at,
                f"{name} can be compared with one number only",
                f"write {self.example}; use a second step for another limit",
            )
        limit = clause.whole(values[0])
        holds = COMPARE[clause.operator]
        line = f"{name}{clause.operator}{limit}"

        def judge(document: Document) -> FilterVerdict:
            found = self._measure(document)
            if found is None:
                return FilterVerdict(f"no {name} stated")
            return KEPT if holds(found, limit) else FilterVerdict(f"not {line}", f"{name} {found}")

        return per_document(name, line, judge, {"limit": limit, "operator": clause.operator})


FILTERS = (
    _Number("year", "years of publication", "year>=2023", year_of),
    _Number("words", "lengths in words", "words>=300", lambda document: len(document.text.split())),
    _Number("characters", "lengths in characters", "characters<=200000", lambda document: len(document.text)),
)
