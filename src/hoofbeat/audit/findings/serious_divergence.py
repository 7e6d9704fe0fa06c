"""The most serious divergences: single pairs with both answers side by side, and rankings weighted by significance.

Does the order of things change when serious pairs count for more? Each diverging pair counts once in one ranking, and
by the weight of its significance in the other. Rankings are of questions, of sources, of what sources differ in (the
judge's topic phrases), or of the groups of a facet. Only things with a diverging pair are ranked: a common place at the
end would make any two rankings look alike. Counts of pairs are correlated almost by themselves (what has many pairs has
much of everything), so the rates per judged pair are correlated beside them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import polars
from msgspec import Struct
from numpy.typing import NDArray

from hoofbeat.audit.citations import cites_heading
from hoofbeat.audit.findings.pair_arrays import AuditPairs, Frame, diverging_rows, pairs_of, sure_rows
from hoofbeat.audit.findings.relations import FIVE_RELATIONS, RelationLabels, groups_of, unknown_question
from hoofbeat.audit.source_names import judged_order
from hoofbeat.errors import UsageError
from hoofbeat.findings.intervals import FEW, LEVEL, SAMPLES, Interval, percentiles
from hoofbeat.records import Answer, Passage, Question

LEVELS = ("low", "medium", "high")
"""The levels of significance, least first."""

_TEXTS = ("reasoning", "topic", "basis", "judge")


class SeriousPair(Struct, frozen=True, kw_only=True):
    """One diverging pair. `alike` counts the pairs of its question with the same significance and label, itself too."""

    question: str
    a: str
    b: str
    label: str
    significance: str
    topic: str
    reasoning: str
    basis: str
    judge: str
    alike: int

    @property
    def order(self) -> tuple[str, str]:
        """The two sources in the order in which the judge saw them, which its topic is in."""
        return judged_order(self.reasoning, self.a, self.b)


class SourceSide(Struct, frozen=True, kw_only=True):
    """What one source said: its answer, the headings it cites, and the passage that stands behind it.

    The passage is the first that was shown under a cited heading, else the first of all; None where none was kept.
    """

    source: str
    text: str
    citations: tuple[str, ...]
    passage: Passage | None
    cited: bool


class SideBySide(Struct, frozen=True, kw_only=True):
    """A serious pair with its question's text and what both sources said; None where an answer is not known."""

    pair: SeriousPair
    text: str
    a: SourceSide | None
    b: SourceSide | None


def serious_pairs(
    table: Frame,
    domain: RelationLabels = FIVE_RELATIONS,
    levels: Sequence[str] = LEVELS,
    top: int = 20,
    *,
    per_question: int = 1,
) -> list[SeriousPair]:
    """The `top` diverging pairs by significance, then by label, then in the order of the table.

    `per_question` is how many of one question are listed at most (0: any number), so that one contested question does
    not fill the list. A pair without a significance comes after all that have one.
    """
    ranks = {name: place for place, name in enumerate(levels)}
    labels = {name: domain.order.index(name) for name in domain.diverging}
    keys = ("question", "a", "b", "label", "significance")
    rows = sure_rows(table)
    present = rows.collect_schema().names()
    found = (
        rows.with_row_index("row")
        .filter(polars.col("label").cast(polars.String).is_in(list(labels)))
        .select("row", *(polars.col(name).cast(polars.String) for name in keys))
        .with_columns(
            rank=polars.col("significance").replace_strict(ranks, default=-1, return_dtype=polars.Int64),
            place=polars.col("label").replace_strict(labels, return_dtype=polars.Int64),
        )
        .with_columns(alike=polars.len().over("question", "rank", "place"))
        .sort("rank", "place", "question", "a", "b", descending=[True, True, False, False, False])
    )
    if per_question:
        found = found.filter(polars.int_range(polars.len()).over("question") < per_question)
    chosen = found.head(top).collect()
    texts = [name for name in _TEXTS if name in present]
    behind = (
        rows.with_row_index("row")
        .filter(polars.col("row").is_in(chosen["row"].to_list()))
        .select("row", *(polars.col(name).cast(polars.String) for name in texts))
        .collect()
    )
    words = {row["row"]: row for row in behind.iter_rows(named=True)}
    return [
        SeriousPair(
            question=row["question"],
            a=row["a"],
            b=row["b"],
            label=row["label"],
            significance=row["significance"] or "",
            alike=row["alike"],
            **{name: words[row["row"]].get(name) or "" for name in _TEXTS},
        )
        for row in chosen.iter_rows(named=True)
    ]


def side_by_side(
    pairs: Sequence[SeriousPair], questions: Iterable[Question], answers: Iterable[Answer]
) -> list[SideBySide]:
    """The pairs with both answers and passages; only the answers that are needed are kept of those that go by."""
    wanted = {(pair.question, source) for pair in pairs for source in (pair.a, pair.b)}
    asked = {pair.question for pair in pairs}
    texts = {question.id: question.text for question in questions if question.id in asked}
    sides = {
        (answer.question, answer.source): _side(answer)
        for answer in answers
        if (answer.question, answer.source) in wanted
    }
    return [
        SideBySide(
            pair=pair,
            text=texts.get(pair.question, ""),
            a=sides.get((pair.question, pair.a)),
            b=sides.get((pair.question, pair.b)),
        )
        for pair in pairs
    ]


def _side(answer: Answer) -> SourceSide:
    under = [
        passage for cited in answer.citations for passage in answer.evidence if cites_heading(cited, passage.heading)
    ]
    return SourceSide(
        source=answer.source,
        text=answer.text,
        citations=answer.citations,
        passage=next(iter([*under, *answer.evidence]), None),
        cited=bool(under),
    )


BY_QUESTION, BY_SOURCE, BY_TOPIC = "@question", "@source", "@topic"
"""What can be ranked beside the groups of a facet."""

WEIGHTS: Mapping[str, float] = {"low": 1.0, "medium": 2.0, "high": 3.0}
_MIN_RANKED = 3
"""So many things are needed for a coefficient, and for its interval."""


class SeverityRow(Struct, frozen=True, kw_only=True):
    """One thing in both rankings: its diverging pairs, their weight, and its places (1 is most; equals share a mean).

    `judged` is None where pairs can't be attributed (topics are of diverging pairs only). `levels` counts its pairs by
    significance, `unrated` those without one.
    """

    name: str
    diverging: int
    weighted: float
    rank: float
    weighted_rank: float
    judged: int | None
    levels: dict[str, int]
    unrated: int


class SeverityRanking(Struct, frozen=True, kw_only=True):
    """The rows, heaviest first, and how far the two rankings go together.

    `spearman` correlates the counts of diverging pairs with their weights, `rate_spearman` the same by judged pair;
    intervals resample the things ranked. All are None where they have no value: fewer than three things (five for an
    interval), or all the same.
    """

    by: str
    weights: dict[str, float]
    rows: tuple[SeverityRow, ...]
    spearman: float | None
    interval: Interval | None
    rate_spearman: float | None
    rate_interval: Interval | None


def severity_ranking(
    table: Frame,
    questions: Sequence[Question],
    by: str = BY_QUESTION,
    domain: RelationLabels = FIVE_RELATIONS,
    weights: Mapping[str, float] = WEIGHTS,
    *,
    unrated: float | None = None,
    pairs: AuditPairs | None = None,
    samples: int = SAMPLES,
    seed: int = 0,
) -> SeverityRanking:
    """Rank by disagreement and by weighted disagreement; `by` is one of the constants above or a facet's name.

    A diverging pair without a significance (or with one that has no weight) weighs `unrated`, by default the least of
    the weights. `pairs` is the table already read, if it was.
    """
    if not weights or min(weights.values()) < 0:
        raise UsageError("severity needs a weight of 0 or more for each level", fix="for example low=1,medium=2,high=3")
    known = pairs if pairs is not None else pairs_of(table, domain)
    rows = _diverging(table, by, known, weights, min(weights.values()) if unrated is None else unrated)
    names, sums = _sums(rows, questions, by, known, len(weights))
    there = np.flatnonzero(sums[:, 0])
    names, sums = [names[place] for place in there.tolist()], sums[there]
    ranks = [_ranks(-sums[:, column]) for column in (0, 1)]
    rates = sums[:, :2] / sums[:, 2:3] if by != BY_TOPIC else None
    told = [
        SeverityRow(
            name=name,
            diverging=int(sums[place, 0]),
            weighted=float(sums[place, 1]),
            rank=float(ranks[0][place]),
            weighted_rank=float(ranks[1][place]),
            judged=int(sums[place, 2]) if rates is not None else None,
            levels={name: int(sums[place, 3 + at]) for at, name in enumerate(weights)},
            unrated=int(sums[place, 3 + len(weights)]),
        )
        for place, name in enumerate(names)
    ]
    value, interval = _spearman(sums[:, 0], sums[:, 1], samples, seed)
    rate, rate_interval = None, None
    if rates is not None:
        rate, rate_interval = _spearman(rates[:, 0], rates[:, 1], samples, seed)
    return SeverityRanking(
        by=by,
        weights=dict(weights),
        rows=tuple(sorted(told, key=lambda row: (row.weighted_rank, row.rank, row.name))),
        spearman=value,
        interval=interval,
        rate_spearman=rate,
        rate_interval=rate_interval,
    )


def _diverging(
    table: Frame, by: str, pairs: AuditPairs, weights: Mapping[str, float], unrated: float
) -> polars.DataFrame:
    """Every diverging pair: its question and sources by number, its topic, its level by number, its weight."""
    columns = ["question", "a", "b", "significance", *(["topic"] if by == BY_TOPIC else [])]
    rows = diverging_rows(table, columns, pairs.domain)
    levels = {name: place for place, name in enumerate(weights)}
    numbers = {name: place for place, name in enumerate(pairs.questions)}
    sources = {name: place for place, name in enumerate(pairs.sources)}
    level = polars.col("significance").replace_strict(levels, default=len(levels), return_dtype=polars.Int64)
    return rows.with_columns(
        polars.col("question").replace_strict(numbers, return_dtype=polars.Int64),
        *(polars.col(side).replace_strict(sources, return_dtype=polars.Int64) for side in ("a", "b")),
        level=level,
        weight=level.replace_strict(dict(enumerate([*weights.values(), unrated])), return_dtype=polars.Float64),
    )


def _sums(
    rows: polars.DataFrame, questions: Sequence[Question], by: str, pairs: AuditPairs, levels: int
) -> tuple[Sequence[str], NDArray[np.float64]]:
    """The names of the things, and of each: diverging pairs, weight, judged pairs, pairs of each level and of none."""
    question = rows["question"].to_numpy()
    names: Sequence[str]
    if by == BY_QUESTION:
        names, judged = pairs.questions, pairs.by_question(pairs.judged)
        item, row = question, np.arange(len(rows))
    elif by == BY_SOURCE:
        names, judged = pairs.sources, pairs.by_source(pairs.judged).sum(axis=0)
        item, row = np.concatenate([rows["a"].to_numpy(), rows["b"].to_numpy()]), np.tile(np.arange(len(rows)), 2)
    elif by == BY_TOPIC:
        phrases = rows["topic"].fill_null("").to_list()
        names = sorted(set(phrases) - {""})
        places = {name: place for place, name in enumerate(names)}
        judged = np.zeros(len(names), np.int64)
        row = np.array([number for number, phrase in enumerate(phrases) if phrase], np.int64)
        item = np.array([places[phrase] for phrase in phrases if phrase], np.int64)
    else:
        names, member = _members(questions, by, pairs)
        judged = pairs.by_question(pairs.judged) @ member
        row, item = member[question].nonzero()
    sums = np.zeros((len(names), 4 + levels))
    level = rows["level"].to_numpy()[row]
    sums[:, 0] = np.bincount(item, minlength=len(names))
    sums[:, 1] = np.bincount(item, rows["weight"].to_numpy()[row], len(names))
    sums[:, 2] = judged
    by_level = np.bincount(item * (levels + 1) + level, minlength=len(names) * (levels + 1))
    sums[:, 3:] = by_level.reshape(-1, levels + 1)
    return names, sums


def _members(questions: Sequence[Question], facet: str, pairs: AuditPairs) -> tuple[list[str], NDArray[np.bool_]]:
    """The groups of a facet, and which of the audit's questions are in each."""
    groups = {question.id: groups_of(question, facet) for question in questions}
    for name in pairs.questions:
        if name not in groups:
            raise unknown_question(name)
    names = sorted({group for mine in groups.values() for group in mine})
    places = {name: place for place, name in enumerate(names)}
    member = np.zeros((len(pairs.questions), len(names)), bool)
    for number, name in enumerate(pairs.questions):
        member[number, [places[group] for group in groups[name]]] = True
    return names, member


def _spearman(
    xs: NDArray[np.float64], ys: NDArray[np.float64], samples: int, seed: int
) -> tuple[float | None, Interval | None]:
    """Spearman's coefficient and its interval from resampling the points.

    A resample is how often each point was drawn: ranks of few different values need no sorting then.
    """
    n = len(xs)
    if n < _MIN_RANKED:
        return None, None
    places = [np.unique(values, return_inverse=True)[1] for values in (xs, ys)]
    value = _weighted(places, np.ones(n))
    if math.isnan(value):
        return None, None
    if n < FEW:
        return value, None
    rng = np.random.default_rng(seed)
    drawn = (np.bincount(rng.integers(n, size=n), minlength=n).astype(np.float64) for _ in range(samples))
    replicates = np.array([_weighted(places, times) for times in drawn])
    known = replicates[~np.isnan(replicates)]
    found = percentiles(known, LEVEL, "bootstrap") if len(known) else None
    return value, found if found and found.has_width else None


def _weighted(places: Sequence[NDArray[np.int64]], times: NDArray[np.float64]) -> float:
    """Spearman's coefficient where each point counts with its weight; `places` are its values' places on each axis."""
    centred = []
    for mine in places:
        sizes = np.bincount(mine, times)
        ranks = (np.cumsum(sizes) - (sizes - 1) / 2)[mine]
        centred.append(ranks - (times * ranks).sum() / times.sum())
    first, second = centred
    spread = float((times * first * first).sum()) * float((times * second * second).sum())
    shared = float((times * first * second).sum())
    return max(-1.0, min(1.0, shared / math.sqrt(spread))) if spread > 0 else math.nan


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Places from 1, least first; equal values share the mean of their places."""
    _, places, sizes = np.unique(values, return_inverse=True, return_counts=True)
    ranks: NDArray[np.float64] = (np.cumsum(sizes) - (sizes - 1) / 2)[places]
    return ranks
