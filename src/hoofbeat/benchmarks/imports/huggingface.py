"""Hoofbeat's export for the Hugging Face Hub: a Parquet file per edition, one column per part of a question."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TypeVar

import msgspec

from hoofbeat.benchmarks.benchmark_import import ImportedBenchmark, ImportFormat, ImportRow, ImportSource
from hoofbeat.errors import InputError
from hoofbeat.records import AcceptedAnswer, Facets, Question, Span, Step
from hoofbeat.store.tables import UNREADABLE

_COLUMNS = ("id", "question", "context", "answer", "options", "images", "documents", "evidence", "facets")
_EVIDENCE = re.compile(r"(?P<document>.+?):(?P<start>\d+)-(?P<end>\d+):(?P<quote>.*)", re.DOTALL)
_MAIN = "default"
T = TypeVar("T", AcceptedAnswer, Step)


class _Huggingface(ImportFormat):
    name = "huggingface"
    summary = "Hoofbeat's export for the Hugging Face Hub, also after it was saved offline (Parquet, Arrow)"

    def surety(self, source: ImportSource) -> int:
        return len(_COLUMNS) if source.has(*_COLUMNS) else 0

    def read(self, source: ImportSource) -> ImportedBenchmark:
        """All editions: each is a separate configuration."""
        result = ImportedBenchmark()
        for config, tables in groupby(source.tables, key=lambda table: table.config):
            questions = list(source.only(list(tables)).each(lambda row: self.question(row, source), result))
            if config in ("", _MAIN):
                result.questions = questions
            else:
                result.editions[config] = questions
        if not result.questions and len(result.editions) == 1:
            _, result.questions = result.editions.popitem()
        return result

    def question(self, row: ImportRow, source: ImportSource) -> Question:
        """One row; files of earlier versions lack accepted answers and lineage."""
        try:
            facets = msgspec.json.decode(row.text("facets"), type=Facets)
        except UNREADABLE as err:
            raise InputError(f"the field facets is not readable: {err}") from err
        return Question(
            id=source.name(row, "id"),
            text=row.text("question"),
            context=row.text("context", needed=False),
            answer=row.text("answer", needed=False),
            accepted=tuple(_decoded(text, AcceptedAnswer) for text in _texts(row, "accepted")),
            options=_texts(row, "options"),
            images=_texts(row, "images"),
            documents=_texts(row, "documents"),
            evidence=tuple(_span(text) for text in _texts(row, "evidence")),
            facets=facets,
            lineage=tuple(_decoded(text, Step) for text in _texts(row, "lineage")),
        )


FORMAT = _Huggingface()


def _texts(row: ImportRow, name: str) -> tuple[str, ...]:
    value = row.get(name)
    return tuple(str(each) for each in value) if isinstance(value, list) else ()


def _decoded(text: str, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(text, type=kind)
    except UNREADABLE as err:
        raise InputError(f"a field is not readable as {kind.__name__}: {err}") from err


def _span(text: str) -> Span:
    found = _EVIDENCE.fullmatch(text)
    if found is None:
        raise InputError("the field evidence is not document:start-end:quote")
    return Span(document=found["document"], start=int(found["start"]), end=int(found["end"]), quote=found["quote"])
