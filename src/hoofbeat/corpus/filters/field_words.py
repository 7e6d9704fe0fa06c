"""Words in a document's fields and facets: `title~rare`, `text~autopsy`, `keywords~diagnos`, `facet.organ=kidney`.

`=` compares whole values, `~` finds a value that holds a word beginning so (`diagnos` finds
"Diagnosis, differential" but not "misdiagnosis"); both without regard to case.
"""

from __future__ import annotations

from collections.abc import Callable

from hoofbeat.corpus.filter import Clause, CorpusFilter, FilterStep, compared_values
from hoofbeat.facets import facet_values
from hoofbeat.records import Document

_PREFIX = "facet."


class _FieldWords(CorpusFilter):
    def __init__(self, name: str, summary: str, example: str, field: Callable[[Document], list[str]]) -> None:
        self.name = name
        self.summary = summary
        self.example = example
        self._field = field

    def build(self, clause: Clause) -> FilterStep:
        """One of the words must be there."""
        clause.no_arguments(self.example)
        values = [value.text for value in clause.compared(("~", "="), self.example)]
        return compared_values(self.name, clause.operator, values, self._field, details=self.name != "text")


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


FILTERS = (
    _Facet(),
    _FieldWords(
        "keywords",
        "keywords and subjects with a word that begins with one of these",
        "keywords~diagnos",
        lambda document: facet_values(document.facets, "keywords", "subjects", "mesh"),
    ),
    _FieldWords(
        "title",
        "titles with a word that begins with one of these",
        "title~rare,unusual",
        lambda document: [document.title],
    ),
    _FieldWords(
        "text", "texts with a word that begins with one of these", "text~autopsy", lambda document: [document.text]
    ),
)
