"""What every filter is: a name, a line that writes it down, and a judge that keeps a document or says why not.

A filter sees one document at a time and remembers nothing, so a corpus of any size streams through. One that must
compare documents with each other is `two_pass`: it reads the whole stream once before it can judge. Filters are pure:
the same documents in the same order give the same verdicts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct, field

from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import Document, Facets

__all__ = [
    "KEPT",
    "Documents",
    "Filter",
    "Judge",
    "Ready",
    "Rejected",
    "Table",
    "Verdict",
    "judged",
    "per_document",
    "sift",
    "split",
]


class Verdict(Struct, frozen=True):
    """What a filter says of a document.

    `reason` is empty when the document is kept; else it is in words that many documents share, so that it can be
    counted. `details` says what in this document made it so. `facets` are marks that the document carries on.
    """

    reason: str = ""
    details: str = ""
    facets: Facets = field(default_factory=dict)

    @property
    def kept(self) -> bool:
        """Whether the document stays."""
        return not self.reason


KEPT = Verdict()

Judge = Callable[[Document], Verdict]
Documents = Callable[[], Iterator[Document]]


class Table(Struct, frozen=True):
    """Rows that a filter leaves beside its verdicts, such as the pairs of near-duplicates."""

    header: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]


class Ready(Struct, frozen=True):
    """A filter ready to judge, with the tables and the model it used, by name."""

    judge: Judge
    tables: Mapping[str, Table] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)


class Filter(Struct, frozen=True, kw_only=True):
    """One step of a selection. `line` is how it is written, `settings` everything that can change its verdicts.

    `files` are what it reads besides the documents. `prepare` makes it ready; it may call the documents (again and
    again) only when the filter is `two_pass`.
    """

    name: str
    line: str
    prepare: Callable[[Documents, Progress], Ready]
    settings: Mapping[str, object] = field(default_factory=dict)
    seeds: Mapping[str, int] = field(default_factory=dict)
    files: tuple[Path, ...] = ()
    two_pass: bool = False

    def __str__(self) -> str:
        return self.line


class Rejected(Struct, frozen=True, kw_only=True):
    """A document that a step did not keep."""

    id: str
    step: str
    reason: str
    details: str = ""


def per_document(name: str, line: str, judge: Judge, settings: Mapping[str, object] | None = None) -> Filter:
    """A filter that needs nothing but the document before it."""
    return Filter(name=name, line=line, prepare=lambda _documents, _progress: Ready(judge), settings=settings or {})


def judged(document: Document, step: Filter, judge: Judge) -> Document | Rejected:
    """The document as the step leaves it (with its marks), or as rejected."""
    verdict = judge(document)
    if verdict.reason:
        return Rejected(id=document.id, step=step.line, reason=verdict.reason, details=verdict.details)
    if verdict.facets:
        return msgspec.structs.replace(document, facets={**document.facets, **verdict.facets})
    return document


def sift(documents: Iterable[Document], step: Filter, judge: Judge) -> Iterator[Document | Rejected]:
    """Each document as the step leaves it, or as rejected, in their order."""
    for document in documents:
        yield judged(document, step, judge)


def split(
    documents: Sequence[Document], step: Filter, progress: Progress = SILENT
) -> tuple[list[Document], list[Rejected]]:
    """What one step keeps and what it rejects, for documents that fit in memory."""
    ready = step.prepare(lambda: iter(documents), progress)
    kept: list[Document] = []
    rejected: list[Rejected] = []
    for outcome in sift(documents, step, ready.judge):
        if isinstance(outcome, Rejected):
            rejected.append(outcome)
        else:
            kept.append(outcome)
    return kept, rejected
