"""HTML: what institutions publish on the web."""

from __future__ import annotations

from collections.abc import Iterator

from hoofbeat.corpus.reader import DocumentEntry, Reader, SourceFile, numbered


class _Html(Reader):
    name = "html"
    summary = "web pages: the main content, without navigation and hidden text"
    version = 2
    suffixes = (".html", ".htm", ".xhtml")

    def read(self, source: SourceFile) -> Iterator[DocumentEntry]:
        from hoofbeat.corpus.parsers.html_page import read_html  # noqa: PLC0415 - lxml, only for HTML files

        return numbered(read_html(source.data(), source.stem, source.hidden))


READER = _Html()
