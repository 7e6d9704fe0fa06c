"""Finding a quote in its source: the exact characters, whatever became of the white space between the words."""

from __future__ import annotations

import re

from hoofbeat.records import Document, Span

__all__ = ["locate"]


def locate(document: Document, quote: str) -> Span | None:
    """Where a quote stands in a document, to the letter or with other white space; never inside a word."""
    words = quote.split()
    if not words:
        return None
    begin = r"\b" if re.match(r"\w", words[0]) else ""
    end = r"\b" if re.search(r"\w\Z", words[-1]) else ""
    loose = r"\s+".join(re.escape(word) for word in words)
    match = re.search(begin + re.escape(quote.strip()) + end, document.text) or re.search(
        begin + loose + end, document.text
    )
    if match is None:
        return None
    start, stop = match.span()
    return Span(document=document.id, start=start, end=stop, quote=document.text[start:stop])
