"""Retrieval: documents into passages, passages into indexes, and a retriever line that searches them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hoofbeat.lazy import lazy_names

if TYPE_CHECKING:
    from hoofbeat.retrieval.index.analysis import ENGLISH, Analyzer
    from hoofbeat.retrieval.index.chunking import chunk, indexed_text, sections, whole
    from hoofbeat.retrieval.index_set import IndexSet
    from hoofbeat.retrieval.line import parse
    from hoofbeat.retrieval.retriever import Retriever, SearchResult

__all__ = [
    "ENGLISH",
    "Analyzer",
    "IndexSet",
    "Retriever",
    "SearchResult",
    "chunk",
    "indexed_text",
    "parse",
    "sections",
    "whole",
]

__getattr__ = lazy_names(
    __name__,
    {
        "index.chunking": "chunk indexed_text sections whole",
        "index.analysis": "ENGLISH Analyzer",
        "index_set": "IndexSet",
        "line": "parse",
        "retriever": "Retriever SearchResult",
    },
)
