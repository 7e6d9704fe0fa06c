"""The leaderboard of a folder as a data frame for Python: the figures that the terminal and reports show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hoofbeat.findings.accuracy import leaderboard
from hoofbeat.reports.sections.scores.accuracy_table import missing
from hoofbeat.reports.sections.scores.outcome_sets import gather

if TYPE_CHECKING:
    import polars

    from hoofbeat.store import Artefact


def leaderboard_frame(artefact: Artefact) -> polars.DataFrame:
    """The systems of a run or of judgments, best first and each protocol by itself; without a score no accuracy."""
    import polars  # noqa: PLC0415 - 0.2 s that the terminal need not pay

    columns = {
        "protocol": polars.String, "model": polars.String, "condition": polars.String, "accuracy": polars.Float64,
        "low": polars.Float64, "high": polars.Float64, "right": polars.Int64, "planned": polars.Int64,
        "unscored": polars.Int64, "questions": polars.Int64, "clusters": polars.Int64,
    }  # fmt: skip
    rows: list[tuple[str | float | None, ...]] = []
    [group] = gather([("scores", artefact)], [])
    for part in group.protocols() if group.outcomes else ():
        protocol = part.tallies[part.order[0]].protocol
        for place in leaderboard(part.outcomes, clusters=part.clusters):
            found = place.accuracy
            unscored = missing(found.unscored)
            span = found.bootstrap
            share = (found.accuracy, span.low, span.high) if unscored < found.planned else (None, None, None)
            counts = (found.correct, found.planned, unscored, found.questions, found.clusters)
            rows.append((protocol, *place.system, *share, *counts))
    return polars.DataFrame(rows, schema=columns, orient="row")
