"""A corpus in a report: how many documents, of which kinds, under which licences, and what was not taken and why.

One that was filtered tells its funnel instead of its import (`sections.funnel`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hoofbeat.corpus.corpus_import import REJECTED, ImportRejection
from hoofbeat.corpus.funnel import FunnelStep
from hoofbeat.facets import FacetTally
from hoofbeat.records import Document
from hoofbeat.reports.model import Block, Card, Details, Notice, Text
from hoofbeat.reports.section import Chapter, ReportSection, chapter_per_artefact
from hoofbeat.reports.sections.common import counted, facet_blocks
from hoofbeat.reports.sections.funnel import funnel_blocks, funnel_of
from hoofbeat.reports.tables import Column, Table
from hoofbeat.reports.words import count_of
from hoofbeat.store import Artefact
from hoofbeat.store.tables import read_jsonl

__all__ = ["SECTION", "corpus_chapter"]


_LISTED = 200


def corpus_chapter(artefact: Artefact, prefix: str) -> Chapter:
    """The chapter on one corpus."""
    facets = FacetTally()
    rows: list[tuple[str, str, int, int, int]] = []
    licences: Counter[str] = Counter()
    characters = figures = documents = 0
    for document in read_jsonl(artefact.file("documents.jsonl"), Document):
        documents += 1
        facets.add(document.facets)
        licences[document.licence or "not stated"] += 1
        characters += len(document.text)
        figures += len(document.figures)
        if len(rows) < _LISTED:
            size = len(document.text)
            rows.append((document.id, document.title, len(document.sections), len(document.figures), size))
    counts, steps = artefact.manifest.counts, funnel_of(artefact)
    words = (
        f"{count_of(documents, 'document')} with {count_of(characters, 'character')} of text and "
        f"{count_of(figures, 'figure')}{_fate(counts.rejected, steps)}."
    )
    blocks: list[Block] = [Text(words), *funnel_blocks(artefact, steps, prefix)]
    if not documents:
        blocks.append(Notice("This corpus holds no documents."))
    blocks += facet_blocks(facets, f"{prefix}-documents", "documents")
    if documents:
        ordered = sorted(licences.items(), key=lambda pair: (-pair[1], pair[0]))
        table = counted(f"{prefix}-licences", "Documents by licence", "licence", ordered, documents, "documents")
        blocks += [Details("Licences", (table,)), Details("Documents", (_documents(prefix, rows, documents),))]
    if not steps:
        blocks += _rejected(artefact, prefix, counts.rejected)
    name = _name(artefact, steps)
    detail = f"of {steps[0].came:,} before filtering" if steps else f"{counts.rejected:,} not taken"
    card = Card(label=f"Documents: {name}", value=f"{documents:,}", detail=detail)
    return Chapter(title=f"Corpus: {name}", id=prefix, blocks=tuple(blocks), cards=(card,))


def _name(artefact: Artefact, steps: Sequence[FunnelStep]) -> str:
    """The title or else the folder; a filtered corpus has the title of its origin and says that it is not that."""
    title = artefact.manifest.title
    name = title if title and title != "corpus" else artefact.path.name
    return f"{name}, filtered" if steps and "filter" not in name.casefold() else name


def _fate(rejected: int, steps: Sequence[FunnelStep]) -> str:
    if not steps:
        return f"; {rejected:,} were not taken" if rejected else ""
    return f"; {count_of(len(steps), 'filter')} rejected {rejected:,} of {count_of(steps[0].came, 'document')}"


def _documents(prefix: str, rows: list[tuple[str, str, int, int, int]], total: int) -> Table:
    columns = (
        Column("document"),
        Column("title"),
        Column("sections", "count"),
        Column("figures", "count"),
        Column("characters", "count"),
    )
    note = f"The first {_LISTED} of {total:,}." if total > _LISTED else ""
    return Table(
        name=f"{prefix}-list",
        caption="Documents",
        n=total,
        unit="documents",
        columns=columns,
        rows=tuple(rows),
        note=note,
    )


def _rejected(artefact: Artefact, prefix: str, total: int) -> list[Block]:
    reasons = sorted(artefact.manifest.counts.reasons.items(), key=lambda pair: (-pair[1], pair[0]))
    if not reasons:
        return []
    table = counted(f"{prefix}-rejected", "Not taken, by reason", "reason", reasons, total, "files or documents")
    blocks: list[Block] = [table]
    if artefact.has(REJECTED):
        found = [(item.source, item.reason) for item in read_jsonl(artefact.file(REJECTED), ImportRejection)]
        listed = Table(
            name=f"{prefix}-rejected-list",
            caption="What was not taken",
            n=len(found),
            unit="files or documents",
            columns=(Column("file"), Column("reason")),
            rows=tuple(found[:_LISTED]),
            note=f"The first {_LISTED} of {len(found):,}." if len(found) > _LISTED else "",
        )
        blocks.append(Details("Each file and its reason", (listed,)))
    return blocks


SECTION = ReportSection(
    name="corpus",
    summary="documents by facet and licence, the funnel of its filters, what was not taken and why",
    order=10,
    kinds=("corpus",),
    build=chapter_per_artefact("corpus", corpus_chapter),
)
