"""Images: `images` keeps documents with a figure whose file is there, `images(patient, tests)` with one there.

A figure belongs to the sections it stands in; one that stands in none with a role (journals gather figures at the end)
belongs where the text first speaks of it.
"""

from __future__ import annotations

import re

from hoofbeat.corpus.filters.base import KEPT, Filter, Verdict, per_document
from hoofbeat.corpus.filters.line import Clause
from hoofbeat.corpus.filters.sections import known_roles, role_spans
from hoofbeat.records import Document, Figure

__all__ = ["build_images", "figure_roles"]

EXAMPLE = "images(patient, tests)"
_LABEL_NUMBER = re.compile(r"\d+")


def figure_roles(document: Document, figure: Figure) -> set[str]:
    """The roles of the sections a figure belongs to."""
    spans = list(role_spans(document))
    found = {role for role, start, end in spans if start <= figure.start < end}
    number = _LABEL_NUMBER.search(figure.label)
    if found or not number:
        return found
    mention = re.compile(rf"\bfig(?:ure|s|ures)?\b\.?\s*{number[0]}(?!\d)", re.IGNORECASE)
    for match in mention.finditer(document.text):
        if not figure.start <= match.start() < figure.end:
            return {role for role, start, end in spans if start <= match.start() < end}
    return found


def build_images(clause: Clause) -> Filter:
    """A figure with a file must be there, if roles are given in a section with one of them."""
    if clause.operator:
        clause.alone(EXAMPLE)
    wanted = known_roles(clause, clause.arguments)
    line = f"images({', '.join(wanted)})" if wanted else "images"

    def judge(document: Document) -> Verdict:
        figures = [figure for figure in document.figures if figure.files]
        if not figures:
            details = f"{len(document.figures)} figures without a file" if document.figures else "no figures"
            return Verdict("no images", details)
        if not wanted:
            return KEPT
        roles = {role for figure in figures for role in figure_roles(document, figure)}
        if not roles.isdisjoint(wanted):
            return KEPT
        return Verdict(f"no images in {' or '.join(wanted)}", f"images in: {', '.join(sorted(roles)) or 'no role'}")

    return per_document("images", line, judge, {"roles": wanted})
