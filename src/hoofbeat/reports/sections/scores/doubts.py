"""What makes answers doubtful though nothing failed: a search that brought the source itself, documents left out."""

from __future__ import annotations

from hoofbeat.reports.model import Heading
from hoofbeat.reports.sections.scores.gather import Scored
from hoofbeat.reports.sections.scores.shown import ScoreBlocks
from hoofbeat.reports.tables import Column, Table

__all__ = ["doubts_section"]


def doubts_section(group: Scored) -> ScoreBlocks:
    """One row a system that was shown something; nothing where no answer is doubtful."""
    rows = tuple(
        (*system, tally.answers, tally.own_source, tally.own_title, tally.dropped)
        for system, tally in group.tallies.items()
        if tally.own_source or tally.own_title or tally.dropped
    )
    if not rows:
        return ScoreBlocks()
    table = Table(
        name=f"{group.prefix}-doubts",
        caption="What answers were shown that they should not have been, or were not",
        n=sum(tally.answers for tally in group.tallies.values()),
        unit="planned answers",
        columns=(
            Column("model"),
            Column("condition"),
            Column("answers", "count"),
            Column("read their own source", "count"),
            Column("read its title elsewhere", "count"),
            Column("documents left out", "count"),
        ),
        rows=rows,
        note="An agent may find the report that its question was made from, or another document with the same title: "
        "its answer is then no better than the oracle's. Documents are left out where the model's window is too small. "
        "Systems without any of these are not listed.",
    )
    return ScoreBlocks(blocks=(Heading("Answers to doubt", f"{group.prefix}-doubts", 3), table))
