"""Plain text with its structure written inline: case reports from text-mining corpora, handbooks."""

from __future__ import annotations

from collections.abc import Iterator

from hoofbeat.corpus.parsers.prose import TextBuilder, assemble, lay_out, split_front_matter
from hoofbeat.corpus.reader import DocumentEntry, Reader, SourceFile
from hoofbeat.records import Document


class _Text(Reader):
    name = "text"
    summary = "plain text: headings on separate lines, captions, tables with tabs"
    version = 2
    suffixes = (".txt",)
    may_hold_case = True

    def read(self, source: SourceFile) -> Iterator[DocumentEntry]:
        yield DocumentEntry(document=read_text(source.text(), source.stem))


def read_text(text: str, stem: str) -> Document:
    """The one document of a plain text file."""
    front, rest = split_front_matter(text)
    builder = TextBuilder()
    lay_out(rest, builder)
    return assemble(front, builder, stem)


READER = _Text()
