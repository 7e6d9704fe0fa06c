"""JATS and NLM XML, the format of PubMed Central: one file with one or more articles."""

from __future__ import annotations

from collections.abc import Iterator

from hoofbeat.corpus.reader import DocumentEntry, Reader, SourceFile, numbered


class _Jats(Reader):
    name = "jats"
    summary = "JATS and NLM XML, as PubMed Central publishes articles"
    version = 2
    suffixes = (".xml", ".nxml")
    may_hold_case = True

    def read(self, source: SourceFile) -> Iterator[DocumentEntry]:
        from hoofbeat.corpus.parsers.jats_article import read_jats  # noqa: PLC0415 - lxml, only for XML files

        return numbered(read_jats(source.data(), source.stem))


READER = _Jats()
