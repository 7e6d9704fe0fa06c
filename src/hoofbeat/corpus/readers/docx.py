"""Word documents: what hospitals write their handbooks in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hoofbeat.corpus.reader import DocumentEntry, Reader, SourceFile


class _Docx(Reader):
    name = "docx"
    summary = "Word documents: headings, lists, tables, footnotes and pictures, without tracked deletions and comments"
    suffixes = (".docx", ".docm")
    gzipped = False
    may_hold_case = True
    extracts_images = True

    def holds_documents(self, path: Path, mapping: str) -> bool:  # noqa: ARG002
        return not path.name.startswith("~$")  # Office's mark that a document is open

    def read(self, source: SourceFile) -> Iterator[DocumentEntry]:
        from hoofbeat.corpus.parsers.docx_document import read_docx  # noqa: PLC0415 - lxml, only for Word files

        images: list[tuple[str, bytes]] = []
        document = read_docx(source.data(binary=True), source.path, images, source.hidden)
        source.keep_images(images)
        yield DocumentEntry(document=document)


READER = _Docx()
