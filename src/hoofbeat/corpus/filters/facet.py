"""Facets: `facet.organ=kidney` keeps documents with that value, `facet.organ~kid` with a word that begins so."""

from __future__ import annotations

from hoofbeat.corpus.filter import Clause, CorpusFilter, FilterStep, compared_values
from hoofbeat.facets import facet_values

_PREFIX = "facet."


class _Facet(CorpusFilter):
    name = "facet"
    summary = "values of a facet"
    example = "facet.organ=kidney"

    def accepts(self, name: str) -> bool:
        return name.startswith(_PREFIX)

    def build(self, clause: Clause) -> FilterStep:
        """`facet.NAME=…` and `facet.NAME~…`: any facet a document carries."""
        name = clause.name.removeprefix(_PREFIX)
        example = f"{_PREFIX}{name}=value"
        clause.no_arguments(example)
        values = [value.text for value in clause.compared(("=", "~"), example)]
        return compared_values(
            clause.name, clause.operator, values, lambda document: facet_values(document.facets, name)
        )


FILTER = _Facet()
