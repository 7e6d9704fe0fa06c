"""Article type: `type=case-report` keeps what its reader, its publisher or its journal section calls a case report."""

from __future__ import annotations

import re

from hoofbeat.corpus.filter import (
    KEPT,
    Clause,
    CorpusFilter,
    FilterStep,
    FilterVerdict,
    listed_values,
    per_document,
    quoted_value,
)
from hoofbeat.facets import facet_values
from hoofbeat.records import Document

_FACETS = ("article-type", "article_type", "type", "publication-types", "subjects")
_SEPARATOR = re.compile(r"[^a-z0-9]+")


def normal_type(text: str) -> str:
    """A type in one form: lower case, hyphens, singular (`Case Reports` is `case-report`)."""
    words = [word for word in _SEPARATOR.split(text.lower()) if word]
    if words and len(words[-1]) > 3 and words[-1].endswith("s") and not words[-1].endswith(("ss", "series")):
        words[-1] = words[-1][:-1]
    return "-".join(words)


class _Type(CorpusFilter):
    name = "type"
    summary = "these article types"
    example = "type=case-report"

    def build(self, clause: Clause) -> FilterStep:
        """One of the types must be among those the document goes by."""
        clause.no_arguments(self.example)
        values = [value.text for value in clause.compared(("=",), self.example)]
        wanted = {normal_type(value) for value in values}

        def judge(document: Document) -> FilterVerdict:
            found = [value for value in (document.kind, *facet_values(document.facets, *_FACETS)) if value]
            if not wanted.isdisjoint(map(normal_type, found)):
                return KEPT
            return FilterVerdict("other article type" if found else "no article type", listed_values(found))

        return per_document("type", f"type={','.join(map(quoted_value, values))}", judge, {"types": sorted(wanted)})


FILTER = _Type()
