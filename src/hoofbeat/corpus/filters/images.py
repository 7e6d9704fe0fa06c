"""Images: `images` keeps documents with a figure whose file is there, `images(patient, tests)` with one there.

A figure belongs to the sections it stands in; one that stands in none with a role (journals gather figures at the end)
belongs where the text first speaks of it.
"""

from __future__ import annotations

from hoofbeat.corpus.figures import figure_roles
from hoofbeat.corpus.filter import KEPT, Clause, CorpusFilter, FilterStep, FilterVerdict, per_document
from hoofbeat.corpus.filters.roles import known_roles
from hoofbeat.records import Document


class _Images(CorpusFilter):
    name = "images"
    summary = "documents with images, in sections of these roles"
    example = "images(patient, tests)"

    def build(self, clause: Clause) -> FilterStep:
        """A figure with a file must be there, if roles are given in a section with one of them."""
        if clause.operator:
            clause.alone(self.example)
        wanted = known_roles(clause, clause.arguments)
        line = f"images({', '.join(wanted)})" if wanted else "images"

        def judge(document: Document) -> FilterVerdict:
            figures = [figure for figure in document.figures if figure.files]
            if not figures:
                details = f"{len(document.figures)} figures without a file" if document.figures else "no figures"
                return FilterVerdict("no images", details)
            if not wanted:
                return KEPT
            roles = {role for figure in figures for role in figure_roles(document, figure)}
            if not roles.isdisjoint(wanted):
                return KEPT
            return FilterVerdict(
                f"no images in {' or '.join(wanted)}", f"images in: {', '.join(sorted(roles)) or 'no role'}"
            )

        return per_document("images", line, judge, {"roles": wanted})


FILTER = _Images()
