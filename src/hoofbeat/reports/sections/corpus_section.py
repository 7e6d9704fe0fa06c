"""A corpus in a report: how many documents, of which kinds, under which licences, and what was not imported and why.

One that was filtered tells its funnel instead of its import.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import islice

import msgspec

from hoofbeat.corpus.corpus import REJECTED, ImportRejection
from hoofbeat.corpus.filter import RejectedDocument
from hoofbeat.corpus.funnel import FunnelStep, read_funnel
from hoofbeat.corpus.hidden_text import HIDDEN, HiddenText
from hoofbeat.errors import InputError
from hoofbeat.facets import FacetTally
from hoofbeat.records import Document
from hoofbeat.reports.model import Block, Card, Details, Heading, Lead, Notice, Text
from hoofbeat.reports.section import (
    Chapter,
    ReportSection,
    chapter_per_artefact,
    counted,
    facet_blocks,
    figure,
    reasons_text,
)
from hoofbeat.reports.sections.statistics_section import FUNNEL_TITLE, funnel_plot
from hoofbeat.reports.tables import Cell, Table, columns_of, count_of
from hoofbeat.store import Artefact
from hoofbeat.store.tables import read_jsonl, read_tsv
from hoofbeat.text import cut

_LISTED = 200
_DETAILS = 240

_CAPTION = "What each filter kept and rejected, on one scale. A document counts at the first filter that rejects it."


def funnel_of(artefact: Artefact) -> list[FunnelStep]:
    """The steps of a corpus that was filtered; none for one that was not."""
    if "funnel" not in artefact.manifest.metrics:
        return []
    try:
        return read_funnel(artefact)
    except msgspec.ValidationError as err:
        raise InputError(
            f"the funnel in the manifest can't be read: {err}", where=str(artefact.path), fix="filter the corpus again"
        ) from err


def funnel_blocks(artefact: Artefact, steps: Sequence[FunnelStep], prefix: str) -> list[Block]:
    """The funnel as a chart and a table, then behind lines what was rejected and which documents are alike."""
    if not steps:
        return []
    blocks: list[Block] = [
        Heading("Funnel", f"{prefix}-funnel", 3),
        figure(f"{prefix}-funnel", _CAPTION, funnel_plot(steps)),
        _funnel_table(steps, prefix),
    ]
    if rejected := artefact.manifest.counts.rejected:
        blocks.append(
            Details(count_of(rejected, "rejected document"), (_rejected_by_filters(artefact, prefix, rejected),))
        )
    return blocks + _duplicates(artefact, steps, prefix)


def _funnel_table(steps: Sequence[FunnelStep], prefix: str) -> Table:
    rows = tuple((step.step, step.came, step.kept, step.rejected, reasons_text(step.reasons)) for step in steps)
    return Table(
        name=f"{prefix}-funnel",
        caption=FUNNEL_TITLE,
        n=steps[0].came,
        unit="documents",
        columns=columns_of("step | in:count | kept:count | rejected:count | reasons"),
        rows=rows,
    )


def _rejected_by_filters(artefact: Artefact, prefix: str, total: int) -> Table:
    found = read_jsonl(artefact.file(REJECTED), RejectedDocument) if artefact.has(REJECTED) else iter(())
    rows = tuple((item.id, item.step, item.reason, cut(item.details, _DETAILS)) for item in islice(found, _LISTED))
    return Table(
        name=f"{prefix}-rejected-list",
        caption="Rejected documents",
        n=total,
        unit="documents",
        columns=columns_of("document | step | reason | details"),
        rows=rows,
        note=f"The first {_LISTED} of {total:,}; all are in {REJECTED}." if total > _LISTED else "",
    )


def _duplicates(artefact: Artefact, steps: Sequence[FunnelStep], prefix: str) -> list[Block]:
    """The pairs of each step that looks for near-duplicates, most alike first; tables are numbered as the steps are."""
    names = sorted(
        (name for name in artefact.manifest.files if fnmatchcase(name, "duplicates*.tsv")),
        key=lambda name: (len(name), name),
    )
    lines = [step.step for step in steps if step.step.startswith("unique")]
    blocks: list[Block] = []
    for number, name in enumerate(names):
        pairs = sorted(_pairs(artefact, name), key=lambda pair: (-pair[2], pair[0], pair[1]))
        step = f" of {lines[number]}" if len(lines) == len(names) else ""
        rows: tuple[tuple[Cell, ...], ...] = tuple(pairs[:_LISTED])
        table = Table(
            name=f"{prefix}-{name.removesuffix('.tsv')}",
            caption=f"Near-duplicate pairs{step}",
            n=len(pairs),
            unit="pair" if len(pairs) == 1 else "pairs",
            columns=columns_of("earlier | later | score:number | kept"),
            rows=rows,
            note=f"The {_LISTED} most alike of {len(pairs):,}; all are in {name}." if len(pairs) > _LISTED else "",
        )
        blocks.append(Details(f"{count_of(len(pairs), 'near-duplicate pair')}{step}", (table,)))
    return blocks


def _pairs(artefact: Artefact, name: str) -> list[tuple[str, str, float, str]]:
    path = artefact.file(name)
    try:
        return [
            (row["first"], row["second"], float(row["score"]), row["kept"] or "neither: a third one is kept")
            for row in read_tsv(path)
        ]
    except ValueError as err:
        raise InputError(
            f"not a table of near-duplicates: {err}", where=str(path), fix="filter the corpus again"
        ) from err


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
        blocks.append(Notice("This corpus has no documents."))
    blocks += facet_blocks(facets, f"{prefix}-documents", "documents")
    if documents:
        ordered = sorted(licences.items(), key=lambda pair: (-pair[1], pair[0]))
        table = counted(f"{prefix}-licences", "Documents by licence", "licence", ordered, documents, "documents")
        blocks += [Details("Licences", (table,)), Details("Documents", (_documents(prefix, rows, documents),))]
    if not steps:
        blocks += [*_not_imported(artefact, prefix, counts.rejected), *_hidden(artefact, prefix)]
    name = _name(artefact, steps)
    detail = f"of {steps[0].came:,} before filtering" if steps else f"{counts.rejected:,} not imported"
    card = Card(label=f"Documents: {name}", value=f"{documents:,}", detail=detail)
    leads = (Lead(f"Corpus {name}: {words}", f"#{prefix}", "See the documents"),)
    return Chapter(
        title=f"Corpus: {name}", id=prefix, blocks=tuple(blocks), cards=(card,), leads=leads, background=True
    )


def _name(artefact: Artefact, steps: Sequence[FunnelStep]) -> str:
    """The title or else the folder; a filtered corpus has the title of its origin and says that it is not that."""
    title = artefact.manifest.title
    name = title if title and title != "corpus" else artefact.path.name
    return f"{name}, filtered" if steps and "filter" not in name.casefold() else name


def _fate(rejected: int, steps: Sequence[FunnelStep]) -> str:
    if not steps:
        return f"; {rejected:,} were not imported" if rejected else ""
    return f"; {count_of(len(steps), 'filter')} rejected {rejected:,} of {count_of(steps[0].came, 'document')}"


def _documents(prefix: str, rows: list[tuple[str, str, int, int, int]], total: int) -> Table:
    columns = columns_of("document | title | sections:count | figures:count | characters:count")
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


def _not_imported(artefact: Artefact, prefix: str, total: int) -> list[Block]:
    reasons = sorted(artefact.manifest.counts.reasons.items(), key=lambda pair: (-pair[1], pair[0]))
    if not reasons:
        return []
    table = counted(f"{prefix}-rejected", "Not imported, by reason", "reason", reasons, total, "files or documents")
    blocks: list[Block] = [table]
    if artefact.has(REJECTED):
        found = [(item.source, item.reason) for item in read_jsonl(artefact.file(REJECTED), ImportRejection)]
        listed = Table(
            name=f"{prefix}-rejected-list",
            caption="Files that were not imported",
            n=len(found),
            unit="files or documents",
            columns=columns_of("file | reason"),
            rows=tuple(found[:_LISTED]),
            note=f"The first {_LISTED} of {len(found):,}." if len(found) > _LISTED else "",
        )
        blocks.append(Details("Each file and its reason", (listed,)))
    return blocks


def _hidden(artefact: Artefact, prefix: str) -> list[Block]:
    """Text that a person can't see in the documents; nothing where none was found."""
    if not artefact.has(HIDDEN):
        return []
    found = list(read_jsonl(artefact.file(HIDDEN), HiddenText))
    pieces = f"{count_of(len(found), 'piece')} of hidden text"
    fate = "kept in the documents" if any(each.kept for each in found) else "left out"
    listed = Table(
        name=f"{prefix}-hidden",
        caption=f"Text that a person can't see: {fate}",
        n=len(found),
        unit="pieces of text",
        columns=columns_of("document | place | why | text"),
        rows=tuple((each.document, each.place, each.why, cut(each.text, _DETAILS)) for each in found[:_LISTED]),
        note=f"The first {_LISTED} of {len(found):,}; all are in {HIDDEN}." if len(found) > _LISTED else "",
    )
    return [Details(f"{pieces}, {fate}", (listed,))]


SECTION = ReportSection(
    name="corpus",
    summary="documents by facet and licence, the funnel of its filters, what was not imported and why",
    order=230,
    kinds=("corpus",),
    build=chapter_per_artefact("corpus", corpus_chapter),
)
