"""Article type: `type=case-report` keeps what its reader, its publisher or its journal section calls a case report."""

from __future__ import annotations

import re

from hoofbeat.corpus.filters.base import KEPT, Filter, Verdict, per_document
from hoofbeat.corpus.filters.facets import shown, written
from hoofbeat.corpus.filters.line import Clause
from hoofbeat.facets import facet_values
from hoofbeat.records import Document

__all__ = ["build_type", "normal_type"]

EXAMPLE = "type=case-report"
_FACETS = ("article-type", "article_type", "type", "publication-types", "subjects")
_SEPARATOR = re.compile(r"[^a-z0-9]+")


def normal_type(text: str) -> str:
    """A type in one form: lower case, hyphens, singular (`Case Reports` is `case-report`)."""
    words = [word for word in _SEPARATOR.split(text.lower()) if word]
    if words and len(words[-1]) > 3 and words[-1].endswith("s") and not words[-1].endswith(("ss", "series")):
        words[-1] = words[-1][:-1]
    return "-".join(words)


def build_type(clause: Clause) -> Filter:
    """One of the types must be among those the document goes by."""
    clause.no_arguments(EXAMPLE)
    values = [value.text for value in clause.compared(("=",), EXAMPLE)]
    wanted = {normal_type(value) for value in values}

    def judge(document: Document) -> Verdict:
        found = [value for value in (document.kind, *facet_values(document.facets, *_FACETS)) if value]
        if not wanted.isdisjoint(map(normal_type, found)):
            return KEPT
        return Verdict("other article type" if found else "no article type", shown(found))

    return per_document("type", f"type={','.join(map(written, values))}", judge, {"types": sorted(wanted)})
