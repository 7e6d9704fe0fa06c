"""Facets: what documents and questions say of themselves, read, compared and counted in one way.

A facet is one value or a list of them. Every reader here gives a list in which each value is there once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from hoofbeat.records import Document, Facets, Question

_YEAR = re.compile(r"(?<!\d)(1[89]\d\d|20\d\d)(?!\d)")
_MAX_VALUES = 40


def facet_values(facets: Facets, *names: str) -> list[str]:
    """The values of these facets, each once; none where they are missing."""
    found: list[str] = []
    for name in names:
        value = facets.get(name, [])
        found += [value] if isinstance(value, str) else value
    return list(dict.fromkeys(found)) if len(found) > 1 else found


def facet_value(facets: Facets, name: str) -> str:
    """The value of a facet, the first where there are several; empty where there is none."""
    return next(iter(facet_values(facets, name)), "")


def has_facets(facets: Facets, wanted: Mapping[str, Collection[str]]) -> bool:
    """Whether each of these facets has at least one of the values wanted of it."""
    return all(not set(values).isdisjoint(facet_values(facets, name)) for name, values in wanted.items())


def year_of(document: Document) -> int | None:
    """The year a document was published in, if it says so."""
    for value in facet_values(document.facets, "year", "date", "released"):
        if match := _YEAR.search(value):
            return int(match[1])
    return None


class FacetTally:
    """Values of facets counted one item at a time; a facet with too many values is dropped."""

    def __init__(self, items: Iterable[Facets] = ()) -> None:
        self.total = 0
        self._counts: dict[str, Counter[str] | None] = {}
        for facets in items:
            self.add(facets)

    def add(self, facets: Facets) -> None:
        """Count one item."""
        self.total += 1
        for name in facets:
            counter = self._counts.setdefault(name, Counter())
            if counter is not None:
                counter.update(facet_values(facets, name))
                if len(counter) > _MAX_VALUES:
                    self._counts[name] = None

    def counts(self) -> dict[str, list[tuple[str, int]]]:
        """The counts of each facet that tells items apart, largest first; the specialty comes first."""
        useful = {name: counter for name, counter in self._counts.items() if counter and len(counter) > 1}
        return {
            name: sorted(useful[name].items(), key=lambda pair: (-pair[1], pair[0]))
            for name in sorted(useful, key=lambda name: (name != "specialty", name))
        }


def facet_names(items: Iterable[Facets]) -> list[str]:
    """Facets by which items fall into at least two and not too many groups; the specialty comes first."""
    return list(FacetTally(items).counts())


def source_is_asked(question: Question, document: Document, group_facet: str) -> bool:
    """Whether a source is asked a question: general questions go to all, others to the sources of their group.

    Case and white space around a group's name do not count.
    """
    groups = _group_names(question.facets, "group")
    return groups <= {""} or "general" in groups or bool(groups & _group_names(document.facets, group_facet))


def _group_names(facets: Facets, name: str) -> set[str]:
    return {value.strip().casefold() for value in facet_values(facets, name)}
