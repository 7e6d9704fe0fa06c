"""Finding a quote in its source: the exact characters, whatever became of the white space between the words."""

from __future__ import annotations

import re

from hoofbeat.records import Document, Span

__all__ = ["locate"]


def locate(document: Document, quote: str) -> Span | None:
    """Where a quote stands in a document: exactly, or with other white space between its words; None if nowhere."""
    words = quote.split()
    if not words:
        return None
    start = document.text.find(quote)
    end = start + len(quote)
    if start < 0:
        match = re.search(r"\s+".join(re.escape(word) for word in words), document.text)
        if match is None:
            return None
        start, end = match.span()
    return Span(document=document.id, start=start, end=end, quote=document.text[start:end])
