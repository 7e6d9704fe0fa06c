"""`hyde`: searches with an invented document that answers the question (Gao and others 2023)."""

from __future__ import annotations

from hoofbeat.retrieval.document_writers import DocumentWriter


class HydeStage(DocumentWriter):
    """The documents replace the question for lexical rankers and are averaged with it for dense ones."""

    name = "hyde"
    summary = "searches with an invented document that answers the question"


STAGE = HydeStage()
