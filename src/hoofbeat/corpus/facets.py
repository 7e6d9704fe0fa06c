"""What a document says of itself: facets read the same way wherever a filter or a table needs them."""

from __future__ import annotations

import re

from hoofbeat.records import Document, Question

__all__ = ["facet_values", "year_of"]

_YEAR = re.compile(r"(?<!\d)(1[89]\d\d|20\d\d)(?!\d)")


def facet_values(document: Document | Question, *names: str) -> list[str]:
    """The values of these facets of a document or a question, one list."""
    found: list[str] = []
    for name in names:
        value = document.facets.get(name, [])
        found += [value] if isinstance(value, str) else value
    return found


def year_of(document: Document) -> int | None:
    """The year a document was published in, if it says so."""
    for value in facet_values(document, "year", "date", "released"):
        if match := _YEAR.search(value):
            return int(match[1])
    return None
