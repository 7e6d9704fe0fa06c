"""PowerPoint presentations: teaching slides and short protocols."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hoofbeat.corpus.reader import DocumentEntry, Reader, SourceFile


class _Pptx(Reader):
    name = "pptx"
    summary = "PowerPoint presentations: one section per slide, with tables and speaker notes, without hidden slides"
    suffixes = (".pptx", ".pptm", ".ppsx")
    gzipped = False
    extracts_images = True

    def holds_documents(self, path: Path, mapping: str) -> bool:  # noqa: ARG002
        return not path.name.startswith("~$")  # Office's mark that a document is open

    def read(self, source: SourceFile) -> Iterator[DocumentEntry]:
        from hoofbeat.corpus.parsers.pptx_slides import read_pptx  # noqa: PLC0415 - lxml, only for presentations

        images: list[tuple[str, bytes]] = []
        document = read_pptx(source.data(binary=True), source.path, images, source.hidden)
        source.keep_images(images)
        yield DocumentEntry(document=document)


READER = _Pptx()
