"""The part of a leakage check that needs no model's answers: near-duplicates and canary strings."""

from __future__ import annotations

from collections.abc import Sequence

from hoofbeat.leakage.canaries import FoundCanary
from hoofbeat.leakage.leakage_figures import CAVEATS, Figure, LeakageSummary
from hoofbeat.leakage.near_duplicates import NearDuplicate
from hoofbeat.reports.model import Block, Heading, Text
from hoofbeat.reports.tables import Cell, Column, Table
from hoofbeat.reports.words import count_of, written
from hoofbeat.text import cut

__all__ = ["canary_blocks", "near_blocks", "value_cell"]

_PAIRS = 200
_WORDS = 160
_WHERE = {"document": "document that is not its source", "question": "another question"}


def value_cell(found: Figure) -> Cell:
    """A figure with its interval as a table's cell."""
    if found.value is None or found.low is None or found.high is None:
        return None
    return found.value, found.low, found.high


def near_blocks(summary: LeakageSummary, pairs: Sequence[NearDuplicate], prefix: str) -> list[Block]:
    """Where questions stand besides their own source."""
    told = "; ".join(f"{_WHERE.get(where, where)}: {count:,}" for where, count in summary.near.items())
    words = f"At least {summary.near_threshold:g} of a question's five-word runs stand in … {told}."
    if not summary.documents:
        words += " No corpus was at hand, so no documents were searched."
    elif summary.own_source.value is not None:
        own = written(value_cell(summary.own_source), "share")
        words += f" In their own sources stand {own} of them on average, which is where they come from."
    if summary.near_too_short:
        words += f" {count_of(summary.near_too_short, 'question')} too short to be looked for."
    blocks: list[Block] = [Heading("Near-duplicates", f"{prefix}-near", 3), Text(words)]
    if pairs:
        columns = (
            Column("question"), Column("stands in"), Column("which"), Column("share", "share"),
            Column("words in a row", "count"), Column("the words"), Column("characters"), Column("there"),
        )  # fmt: skip
        rows: list[tuple[Cell, ...]] = [
            (
                pair.question,
                _WHERE.get(pair.where, pair.where),
                pair.other,
                pair.score,
                pair.run,
                cut(pair.question_text, _WORDS),
                f"{pair.question_span[0]:,}–{pair.question_span[1]:,}",
                f"{pair.other_span[0]:,}–{pair.other_span[1]:,}",
            )
            for pair in pairs[:_PAIRS]
        ]
        blocks.append(
            Table(
                name=f"{prefix}-near",
                caption="Questions that stand elsewhere, closest first",
                n=len(pairs),
                unit="pairs",
                columns=columns,
                rows=tuple(rows),
                note=f"The first {_PAIRS:,}; near.jsonl holds all." if len(pairs) > _PAIRS else "",
            )
        )
    return [*blocks, Text(CAVEATS["near"])]


def canary_blocks(summary: LeakageSummary, found: Sequence[FoundCanary], prefix: str) -> list[Block]:
    """Canaries that were found, and whether models completed them."""
    blocks: list[Block] = [Heading("Canary strings", f"{prefix}-canaries", 3)]
    if found:
        rows: list[tuple[Cell, ...]] = [(each.place, each.name or "not known", each.guid) for each in found]
        blocks.append(
            Table(
                name=f"{prefix}-canaries-found",
                caption="Canaries in the corpus and in the benchmark's files",
                n=len(found),
                unit="canaries",
                columns=(Column("where"), Column("whose"), Column("GUID")),
                rows=tuple(rows),
            )
        )
    else:
        blocks.append(Text("None stands in the corpus or in the benchmark's files."))
    if summary.canaries:
        columns = (Column("model"), Column("canary of"), Column("hidden digits", "count"), Column("came", "count"))
        blocks += [
            Table(
                name=f"{prefix}-canaries",
                caption="Canaries that models were asked to complete from their first half",
                n=len(summary.canaries),
                unit="probes",
                columns=(*columns, Column("unscored")),
                rows=tuple(
                    (
                        row.model,
                        row.name,
                        row.hidden,
                        None if row.failure else row.matched,
                        row.failure.kind if row.failure else "",
                    )
                    for row in summary.canaries
                ),
            ),
            Text(CAVEATS["canary"]),
        ]
    return blocks
