"""How relevant what was shown is: grades of passages by a judge, for every system that was shown some."""

from __future__ import annotations

from collections import Counter

from hoofbeat.findings.intervals import bootstrap_mean, wilson
from hoofbeat.findings.outcomes import HUMAN, SystemKey
from hoofbeat.judging.aspects.relevance import RELEVANCE
from hoofbeat.records import Judgment
from hoofbeat.reports.model import Heading
from hoofbeat.reports.sections.scores.gather import Scored
from hoofbeat.reports.sections.scores.shown import UNSCORED, ScoreBlocks, triple
from hoofbeat.reports.tables import Cell, Column, Table

__all__ = ["relevance_section"]

_LABELS = RELEVANCE.labels


def relevance_section(group: Scored) -> ScoreBlocks:
    """One row a system; nothing where no passage was graded."""
    graded: dict[SystemKey, list[Judgment]] = {}
    for each in group.judgments:
        if each.aspect == RELEVANCE.name and not each.judge.startswith(HUMAN):
            graded.setdefault((each.model, each.condition), []).append(each)
    if not graded:
        return ScoreBlocks()
    columns = (
        Column("model"),
        Column("condition"),
        Column("passages", "count"),
        UNSCORED,
        *(Column(label, "count") for label in _LABELS),
        Column("relevant, 95% Wilson", "share"),
        Column("mean grade, 95% bootstrap", "number"),
    )
    rows = tuple(_row(system, graded[system]) for system in group.tallies if system in graded)
    table = Table(
        name=f"{group.prefix}-relevance",
        caption="Relevance of the passages shown",
        n=sum(len(each) for each in graded.values()),
        unit="graded passages",
        columns=columns,
        rows=rows,
        note="Grades from 0 to 10. A passage whose grade failed stays in the denominator of the share and is left out "
        "of the mean, whose interval resamples questions.",
    )
    return ScoreBlocks(blocks=(Heading(RELEVANCE.heading, f"{group.prefix}-relevance", 3), table))


def _row(system: SystemKey, judged: list[Judgment]) -> tuple[Cell, ...]:
    labels = Counter(each.label for each in judged if not each.failure)
    scored = [(each.score, each.question) for each in judged if each.score is not None and not each.failure]
    grades: Cell = None
    if scored:
        values = [value for value, _ in scored]
        span = bootstrap_mean(values, clusters=[question for _, question in scored])
        grades = triple(sum(values) / len(values), span)
    right = labels[_LABELS[0]]
    share = triple(right / len(judged), wilson(right, len(judged)))
    failed = sum(each.failure is not None for each in judged)
    return (*system, len(judged), failed, *(labels[label] for label in _LABELS), share, grades)
