"""Retraction: `not retracted` drops what was retracted, withdrawn or is under an expression of concern."""

from __future__ import annotations

import re

from hoofbeat.corpus.filters.base import Filter, Verdict, per_document
from hoofbeat.corpus.filters.facets import shown
from hoofbeat.corpus.filters.line import Clause
from hoofbeat.records import Document

__all__ = ["build_retracted"]

_NOTICE = re.compile(r"\b(retract|withdraw|expression[\s-]of[\s-]concern)", re.IGNORECASE)
_TITLE = re.compile(
    r"\W*(retracted( article)?|retraction|withdrawn)(\s*[:\]]| (notice|note)\b)"
    r"|\W*(editorial )?expression of concern\b",
    re.IGNORECASE,
)


def build_retracted(clause: Clause) -> Filter:
    """Keeps what a notice or the title says was retracted; use it with `not`."""
    clause.alone("not retracted")

    def judge(document: Document) -> Verdict:
        notices = [notice for notice in document.notices if _NOTICE.search(notice)]
        if not notices and not _TITLE.match(document.title):
            return Verdict("no notice of retraction")
        return Verdict("", shown(notices) or document.title)

    return per_document("retracted", "retracted", judge)
