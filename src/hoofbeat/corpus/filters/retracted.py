"""Retraction: `not retracted` drops what was retracted, withdrawn or is under an expression of concern."""

from __future__ import annotations

import re

from hoofbeat.corpus.filter import Clause, CorpusFilter, FilterStep, FilterVerdict, listed_values, per_document
from hoofbeat.records import Document

_NOTICE = re.compile(r"\b(retract|withdraw|expression[\s-]of[\s-]concern)", re.IGNORECASE)
_TITLE = re.compile(
    r"\W*(retracted( article)?|retraction|withdrawn)(\s*[:\]]| (notice|note)\b)"
    r"|\W*(editorial )?expression of concern\b",
    re.IGNORECASE,
)


class _Retracted(CorpusFilter):
    name = "retracted"
    summary = "retracted or doubted reports (usually written: not retracted)"
    example = "not retracted"

    def build(self, clause: Clause) -> FilterStep:
        """Keeps what a notice or the title says was retracted; use it with `not`."""
        clause.alone(self.example)

        def judge(document: Document) -> FilterVerdict:
            notices = [notice for notice in document.notices if _NOTICE.search(notice)]
            if not notices and not _TITLE.match(document.title):
                return FilterVerdict("no notice of retraction")
            return FilterVerdict("", listed_values(notices) or document.title)

        return per_document("retracted", "retracted", judge)


FILTER = _Retracted()
