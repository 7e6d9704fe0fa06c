"""The funnel of a filtered corpus in a report: each step, every document it dropped with the reason, and duplicates."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import islice

import msgspec

from hoofbeat.corpus.corpus_import import REJECTED
from hoofbeat.corpus.filter import RejectedDocument
from hoofbeat.corpus.funnel import FunnelStep, read_funnel
from hoofbeat.errors import InputError
from hoofbeat.reports.model import Block, Details, Heading
from hoofbeat.reports.plots import FUNNEL_TITLE, funnel_plot
from hoofbeat.reports.sections.common import figure, reasons_text
from hoofbeat.reports.tables import Cell, Column, Table
from hoofbeat.reports.words import count_of
from hoofbeat.store import Artefact
from hoofbeat.store.tables import read_jsonl, read_tsv
from hoofbeat.text import cut

__all__ = ["funnel_blocks", "funnel_of"]

_LISTED = 200
_DETAILS = 240

_CAPTION = (
    "What each filter kept and rejected, on one scale: a bar is as long as what the step before it left. "
    "A document counts at the first step that rejects it."
)


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
        _table(steps, prefix),
    ]
    if rejected := artefact.manifest.counts.rejected:
        blocks.append(Details(count_of(rejected, "rejected document"), (_rejected(artefact, prefix, rejected),)))
    return blocks + _duplicates(artefact, steps, prefix)


def _table(steps: Sequence[FunnelStep], prefix: str) -> Table:
    rows = tuple((step.step, step.came, step.kept, step.rejected, reasons_text(step.reasons)) for step in steps)
    return Table(
        name=f"{prefix}-funnel",
        caption=FUNNEL_TITLE,
        n=steps[0].came,
        unit="documents",
        columns=(
            Column("step"),
            Column("in", "count"),
            Column("kept", "count"),
            Column("rejected", "count"),
            Column("reasons"),
        ),
        rows=rows,
    )


def _rejected(artefact: Artefact, prefix: str, total: int) -> Table:
    found = read_jsonl(artefact.file(REJECTED), RejectedDocument) if artefact.has(REJECTED) else iter(())
    rows = tuple((item.id, item.step, item.reason, cut(item.details, _DETAILS)) for item in islice(found, _LISTED))
    return Table(
        name=f"{prefix}-rejected-list",
        caption="Rejected documents",
        n=total,
        unit="documents",
        columns=(Column("document"), Column("step"), Column("reason"), Column("details")),
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
            columns=(Column("earlier"), Column("later"), Column("score", "number"), Column("kept")),
            rows=rows,
            note=f"The {_LISTED} most alike of {len(pairs):,}; all are in {name}." if len(pairs) > _LISTED else "",
        )
        blocks.append(Details(f"{count_of(len(pairs), 'near-duplicate pair')}{step}", (table,)))
    return blocks


def _pairs(artefact: Artefact, name: str) -> list[tuple[str, str, float, str]]:
    path = artefact.file(name)
    try:
        return [
            (row["first"], row["second"], float(row["score"]), row["kept"] or "neither: a third is kept")
            for row in read_tsv(path)
        ]
    except (KeyError, ValueError) as err:
        raise InputError(
            f"not a table of near-duplicates: {err}", where=str(path), fix="filter the corpus again"
        ) from err
