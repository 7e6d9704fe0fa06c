"""Filters on facets and on words in a document's fields: `facet.organ=kidney`, `title~rare`, `keywords~diagnos`.

`=` compares whole values, `~` finds a value that holds a word beginning so (`diagnos` finds
"Diagnosis, differential" but not "misdiagnosis"); both without regard to case.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from hoofbeat.corpus.filters.base import KEPT, Filter, Verdict, per_document
from hoofbeat.corpus.filters.line import Clause
from hoofbeat.facets import facet_values
from hoofbeat.records import Document

__all__ = ["build_facet", "build_words", "shown", "word_starts", "written"]

FIELDS: dict[str, tuple[str, Callable[[Document], list[str]]]] = {
    "title": ("title~rare,unusual", lambda document: [document.title]),
    "text": ("text~autopsy", lambda document: [document.text]),
    "keywords": ("keywords~diagnos", lambda document: facet_values(document.facets, "keywords", "subjects", "mesh")),
}
_NEEDS_QUOTES = re.compile(r'[,;()"]')


def word_starts(words: Sequence[str]) -> re.Pattern[str]:
    """Finds words that begin with one of these; a space in one stands for any white space."""
    parts = (r"\s+".join(map(re.escape, word.split())) for word in words)
    return re.compile(rf"(?<!\w)(?:{'|'.join(parts)})", re.IGNORECASE)


def written(value: str) -> str:
    """A value as it is written in a filter line."""
    return f'"{value}"' if _NEEDS_QUOTES.search(value) else value


def shown(values: Sequence[str]) -> str:
    """Values for a rejection's details, not more than a few."""
    more = f" and {len(values) - 3} more" if len(values) > 3 else ""
    return (", ".join(value if len(value) <= 80 else value[:79] + "…" for value in values[:3])) + more


def build_words(clause: Clause) -> Filter:
    """`title~…`, `text~…`, `keywords~…`: one of the words must be there."""
    example, field = FIELDS[clause.name]
    clause.no_arguments(example)
    values = [value.text for value in clause.compared(("~", "="), example)]
    return _compared(clause.name, clause.operator, values, field)


def build_facet(clause: Clause) -> Filter:
    """`facet.NAME=…` and `facet.NAME~…`: any facet a document carries."""
    name = clause.name.removeprefix("facet.")
    example = f"facet.{name}=value"
    clause.no_arguments(example)
    values = [value.text for value in clause.compared(("=", "~"), example)]
    return _compared(clause.name, clause.operator, values, lambda document: facet_values(document.facets, name))


def _compared(name: str, operator: str, values: list[str], field: Callable[[Document], list[str]]) -> Filter:
    pattern = word_starts(values)
    whole = {value.casefold() for value in values}

    def matches(text: str) -> bool:
        return text.casefold() in whole if operator == "=" else bool(pattern.search(text))

    def judge(document: Document) -> Verdict:
        found = [value for value in field(document) if value]
        if any(map(matches, found)):
            return KEPT
        if not found:
            return Verdict(f"no {name}")
        return Verdict(f"{name} does not match", "" if name == "text" else shown(found))

    line = f"{name}{operator}{','.join(map(written, values))}"
    return per_document(name, line, judge, {"values": values})
