"""Filters on numbers: the year of publication, and the length of the text in words or characters."""

from __future__ import annotations

import operator
from collections.abc import Callable

from hoofbeat.corpus.filters.base import KEPT, Filter, Verdict, per_document
from hoofbeat.corpus.filters.line import Clause
from hoofbeat.facets import year_of
from hoofbeat.records import Document

__all__ = ["COMPARE", "build_number"]

COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "=": operator.eq,
}


_MEASURES: dict[str, Callable[[Document], int | None]] = {
    "year": year_of,
    "words": lambda document: len(document.text.split()),
    "characters": lambda document: len(document.text),
}


def build_number(clause: Clause) -> Filter:
    """`year>=2023`, `words>=300`, `characters<=200000`; several are several steps."""
    name = clause.name
    example = "year>=2023" if name == "year" else f"{name}>=300"
    clause.no_arguments(example)
    values = clause.compared(tuple(COMPARE), example)
    if len(values) > 1:
        clause.fail(values[1].at, f"{name} is compared with one number", f"write {example}, and a second step")
    limit = clause.whole(values[0])
    measure, holds = _MEASURES[name], COMPARE[clause.operator]
    line = f"{name}{clause.operator}{limit}"

    def judge(document: Document) -> Verdict:
        found = measure(document)
        if found is None:
            return Verdict(f"no {name} stated")
        return KEPT if holds(found, limit) else Verdict(f"not {line}", f"{name} {found}")

    return per_document(name, line, judge, {"limit": limit, "operator": clause.operator})
