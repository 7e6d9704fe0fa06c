"""PDF: what most institutions publish."""

from __future__ import annotations

from collections.abc import Iterator

from hoofbeat.corpus.reader import DocumentEntry, Reader, SourceFile, numbered


class _Pdf(Reader):
    name = "pdf"
    summary = "PDF with text: headings, paragraphs and pictures, recognised by position"
    version = 3
    suffixes = (".pdf",)
    may_hold_case = True
    extracts_images = True

    def read(self, source: SourceFile) -> Iterator[DocumentEntry]:
        from hoofbeat.corpus.parsers.pdf_document import extract_pdf  # noqa: PLC0415 - PDFium and NumPy, only for PDFs

        data = source.data(binary=True)
        return numbered(extract_pdf(data, source.path, source.scratch, source.hidden))


READER = _Pdf()
