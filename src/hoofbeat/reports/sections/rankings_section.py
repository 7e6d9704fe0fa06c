"""Rankings in a report: retrievers that searched the same corpus for the same questions, side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hoofbeat.findings.intervals import FEW, clusters_of
from hoofbeat.findings.ranking_measures import Measure
from hoofbeat.findings.systems import SystemTable, compare_systems
from hoofbeat.records import Hit, Question
from hoofbeat.reports.charts import Bar, Curve, curves, interval_bars
from hoofbeat.reports.interval_words import BY, clustered_unit, method_words
from hoofbeat.reports.model import Block, Card, Lead, Notice, Text
from hoofbeat.reports.ranking_tables import difference_table
from hoofbeat.reports.section import Chapter, OwnFigure, PlacedArtefact, ReportSection, figure, spread
from hoofbeat.reports.tables import Cell, Column, Table, columns_of, count_of, estimate_cell, written
from hoofbeat.store import Artefact
from hoofbeat.store.tables import number_cell, read_jsonl, read_tsv
from hoofbeat.text import some_of

_MAIN = "nDCG@10"
_SEARCHED = ("corpus", "benchmark", "beir", "r2med")
"""The kinds of inputs that say what was searched; lines with the same ones share a chapter."""


class MeasureValue(Struct, frozen=True):
    """A measure of one ranking as its manifest tells it."""

    value: float
    low: float | None = None
    high: float | None = None
    n: int = 0
    clusters: int = 0
    interval: str = ""


class RankingSummary(Struct, frozen=True, kw_only=True):
    """One ranking read: its retriever line, its measures, and each question's values by measure.

    `clusters` maps a question to what it shares with others (the same documents), as `clusters_of` finds it.
    """

    name: str
    line: str
    artefact: Artefact
    figures: dict[str, MeasureValue]
    values: dict[str, dict[str, float]]
    clusters: dict[str, str]
    questions: int
    hits: int
    failures: int


def rankings_chapters(artefacts: Sequence[PlacedArtefact]) -> list[Chapter]:
    """A chapter for each corpus that was searched; of several, the key figures name theirs."""
    groups: dict[tuple[str, ...], list[PlacedArtefact]] = {}
    for prefix, artefact in artefacts:
        key = tuple(sorted(ref.sha256 for ref in artefact.manifest.inputs if ref.kind in _SEARCHED)) or (prefix,)
        groups.setdefault(key, []).append((prefix, artefact))
    made = [_chapter(group) for group in groups.values()]
    if len(made) == 1:
        return made
    return [
        replace(part, cards=tuple(replace(card, label=f"{part.title}, {card.label}") for card in part.cards))
        for part in made
    ]


def _read(artefact: Artefact) -> RankingSummary:
    figures: dict[str, MeasureValue] = {}
    for name, raw in artefact.manifest.metrics.items():
        with suppress(msgspec.ValidationError):
            figures[name] = msgspec.convert(raw if isinstance(raw, dict) else {"value": raw}, MeasureValue)
    values: dict[str, dict[str, float]] = {}
    if artefact.has("queries.tsv"):
        for row in read_tsv(artefact.file("queries.tsv")):
            values.setdefault(row["query"], {})[row["measure"]] = number_cell(
                row, "value", artefact.path / "queries.tsv"
            )
    asked_file = artefact.file("questions.jsonl") if artefact.has("questions.jsonl") else None
    asked: Counter[str] = Counter(hit.question for hit in read_jsonl(artefact.file("hits.jsonl"), Hit))
    return RankingSummary(
        name=artefact.path.name,
        line=str(artefact.manifest.settings.get("line", artefact.path.name)),
        artefact=artefact,
        figures=figures,
        values=values,
        clusters=clusters_of(read_jsonl(asked_file, Question)) if asked_file else {},
        questions=max(len(asked), len(values)),
        hits=asked.total(),
        failures=artefact.manifest.counts.failed,
    )


def _chapter(group: Sequence[PlacedArtefact]) -> Chapter:
    prefix = group[0][0]
    rankings = [_read(artefact) for _, artefact in group]
    lines = Counter(ranking.line for ranking in rankings)
    labels = [r.line if lines[r.line] == 1 else f"{r.line} ({r.name})" for r in rankings]
    measures = list(dict.fromkeys(name for ranking in rankings for name in ranking.figures))
    questions = max(ranking.questions for ranking in rankings)
    searched = next(
        (ref.name for ref in group[0][1].manifest.inputs if ref.kind in _SEARCHED and ref.kind != "benchmark"), ""
    )
    blocks: list[Block] = [
        Text(
            f"{count_of(len(rankings), 'retriever')} searched {searched or 'the same documents'} for "
            f"{count_of(questions, 'question')}. A question without a relevant hit counts 0."
        )
    ]
    cards: tuple[Card, ...] = ()
    leads: tuple[Lead, ...] = ()
    if not measures:
        blocks.append(Notice("Nothing was measured, because the questions name no relevant documents."))
    else:
        main = _MAIN if _MAIN in measures else measures[0]
        blocks += [_chart(rankings, labels, main, prefix), *_curve(rankings, labels, measures, prefix)]
        blocks += [_table(rankings, labels, measures, prefix, questions), *_gains(rankings, labels, main, prefix)]
        cards = (_card(rankings, labels, main),)
        leads = _leads(rankings, labels, main, f"#{prefix}")
    blocks += _kept(rankings, labels, prefix, questions)
    return Chapter(
        title=f"Retrieval: {searched}" if searched else "Retrieval",
        id=prefix,
        blocks=tuple(blocks),
        subject=f"Retrieval: {some_of(labels, 3)}",
        cards=cards,
        leads=leads,
        figures=tuple(figure for _, artefact in group for figure in _own_figures(artefact)),
    )


def _interval(found: MeasureValue) -> tuple[float, float] | None:
    return (found.low, found.high) if found.low is not None and found.high is not None else None


def _card(rankings: Sequence[RankingSummary], labels: Sequence[str], main: str) -> Card:
    measured = [
        (ranking.figures[main], label)
        for ranking, label in zip(rankings, labels, strict=True)
        if main in ranking.figures
    ]
    best, label = max(measured, key=lambda pair: pair[0].value)
    tied = sum(found.value == best.value for found, _ in measured) > 1
    what = f"{main} of {label}" + (
        f", {'tied ' if tied else 'the '}best of {len(measured)}" if len(measured) > 1 else ""
    )
    n = f"{best.n:,} questions" if best.n else "not stated"
    return Card(label=what, value=written(best.value, "number"), detail=spread(_interval(best), "number", n))


def _leads(rankings: Sequence[RankingSummary], labels: Sequence[str], main: str, link: str) -> tuple[Lead, ...]:
    """How well the best retriever ranks, and whether the questions show that the next and the worst are worse."""
    measured = sorted(
        (
            (ranking.figures[main].value, label, ranking)
            for ranking, label in zip(rankings, labels, strict=True)
            if main in ranking.figures
        ),
        key=lambda each: -each[0],
    )
    best = measured[0]
    figure = best[2].figures[main]
    sure = spread(_interval(figure), "number", count_of(figure.n, "question") if figure.n else "not stated")
    value = f"{main} {written(best[0], 'number')} ({sure})"
    if best[0] == measured[-1][0]:
        who = f"all {len(measured)} retrievers have" if len(measured) > 1 else f"{best[1]} has"
        return (Lead(f"Retrieval: {who} {value}.", link, "See the rankings"),)
    of = f"the best of {len(measured)} retrievers" if len(measured) > 2 else "the better of two retrievers"
    words = f"Retrieval: {best[1]} is {of}, with {value}."
    others = {"worst" if len(measured) > 2 else "other": measured[-1]}
    if len(measured) > 2 and measured[1][0] < best[0]:
        others = {"second": measured[1], **others}
    told = [f"The {place}, {other[1]}, has {_against(best, other, main)}." for place, other in others.items()]
    return (Lead(words, link, "See the rankings"), Lead(" ".join(told)))


def _against(best: tuple[float, str, RankingSummary], other: tuple[float, str, RankingSummary], main: str) -> str:
    """The figure of a retriever, how far the best is ahead, and whether the shared questions show that it is worse."""
    words = written(other[0], "number")
    table = _compared([best[2], other[2]], [best[1], other[1]], main, baseline=other[1])
    if table is None:
        return words
    found = table.comparisons[0].paired
    span = written((found.interval.low, found.interval.high), "number")
    ahead = f"{best[1]} is ahead by {written(found.difference, 'number')} (95% interval {span})"
    if found.interval.low > 0:
        return f"{words} and is clearly worse: {ahead}"
    return f"{words}; {count_of(table.n, 'question')} do not show that it is worse: {ahead}"


def _chart(rankings: Sequence[RankingSummary], labels: Sequence[str], main: str, prefix: str) -> Block:
    bars = []
    for ranking, label in zip(rankings, labels, strict=True):
        found = ranking.figures.get(main)
        low, high = (found.low, found.high) if found else (None, None)
        bars.append(Bar(label=label, value=found.value if found else None, low=low, high=high))
    return figure(
        f"{prefix}-{main}",
        f"{main} with 95% intervals ({_methods(rankings, labels, main)}).",
        lambda width: interval_bars(bars, title=f"{main} of each retriever", form="number", limits=(0, 1), width=width),
    )


def _methods(rankings: Sequence[RankingSummary], labels: Sequence[str], measure: str) -> str:
    """By which method the intervals of a measure are, as the folders recorded it."""
    found = zip(rankings, labels, strict=True)
    return method_words((label, each.figures[measure].interval) for each, label in found if measure in each.figures)


def _curve(
    rankings: Sequence[RankingSummary], labels: Sequence[str], measures: Sequence[str], prefix: str
) -> list[Block]:
    """Recall over depth, where it was measured at three depths or more."""
    depths = sorted(cut for name in measures if name.startswith("R@") for cut in [Measure.parse(name).cutoff] if cut)
    if len(depths) < 3 or len(rankings) > 6:
        return []
    series = []
    for ranking, label in zip(rankings, labels, strict=True):
        known = [(depth, ranking.figures[f"R@{depth}"]) for depth in depths if f"R@{depth}" in ranking.figures]
        bands = [_interval(found) for _, found in known]
        band = tuple(pair for pair in bands if pair)
        points = tuple((float(depth), found.value) for depth, found in known)
        series.append(Curve(name=label, points=points, band=band if len(band) == len(points) else ()))
    return [
        figure(
            f"{prefix}-recall",
            "Share of the relevant documents among the first k, with 95% intervals.",
            lambda width: curves(
                series, title="Recall over depth", x="documents kept (k)", y="recall", log=True, width=width
            ),
        )
    ]


def _table(
    rankings: Sequence[RankingSummary], labels: Sequence[str], measures: Sequence[str], prefix: str, questions: int
) -> Table:
    columns = [Column("retriever"), *(Column(name, "number") for name in measures), Column(BY)]
    rows: list[tuple[Cell, ...]] = []
    for ranking, label in zip(rankings, labels, strict=True):
        row: list[Cell] = [label]
        for name in measures:
            found = ranking.figures.get(name)
            row.append(estimate_cell(found.value, found.low, found.high, found.n or FEW) if found else None)
        row.append(method_words((name, each.interval) for name, each in ranking.figures.items()))
        rows.append(tuple(row))
    clusters = max((each.clusters for ranking in rankings for each in ranking.figures.values()), default=0)
    return Table(
        name=f"{prefix}-measures",
        caption="Measures of each retriever, with 95% intervals",
        n=questions,
        unit=clustered_unit(questions, clusters),
        columns=tuple(columns),
        rows=tuple(rows),
    )


def _gains(rankings: Sequence[RankingSummary], labels: Sequence[str], main: str, prefix: str) -> list[Block]:
    """Each retriever against the first, paired by question."""
    table = _compared(rankings, labels, main, baseline=labels[0])
    return [difference_table(table, f"{prefix}-gains")] if table and table.comparisons else []


def _compared(
    rankings: Sequence[RankingSummary], labels: Sequence[str], main: str, *, baseline: str
) -> SystemTable | None:
    """The rankings set against the baseline as `hoofbeat compare` does it; None where no question is shared."""
    systems = {
        label: ranking.values
        for ranking, label in zip(rankings, labels, strict=True)
        if any(main in row for row in ranking.values.values())
    }
    shared = [{name for name, row in values.items() if main in row} for values in systems.values()]
    if baseline not in systems or not set.intersection(*shared):
        return None
    clusters = {question: name for ranking in rankings for question, name in ranking.clusters.items()}
    return compare_systems(systems, main, baseline=baseline, clusters=clusters)


def _kept(rankings: Sequence[RankingSummary], labels: Sequence[str], prefix: str, questions: int) -> list[Block]:
    columns = columns_of("retriever | artefact | hits kept:count | failed:count")
    rows = tuple((label, r.name, r.hits, r.failures) for r, label in zip(rankings, labels, strict=True))
    return [
        Table(name=f"{prefix}-hits", caption="Hits kept", n=questions, unit="questions", columns=columns, rows=rows)
    ]


def _own_figures(artefact: Artefact) -> list[OwnFigure]:
    """The measures of a rankings folder, for tables of published figures; the ranking is the system."""
    found = []
    for measure, raw in artefact.manifest.metrics.items():
        if isinstance(raw, dict) and {"value", "low", "high", "n"} <= raw.keys():
            value = (float(raw["value"]), float(raw["low"]), float(raw["high"]))
            title, bed = artefact.manifest.title, str(artefact.manifest.settings.get("bed", ""))
            found.append(OwnFigure(measure=measure, model=title, condition=bed, value=value, n=int(raw["n"])))
    return found


SECTION = ReportSection(
    name="rankings",
    summary="retrievers that searched the same corpus, side by side, with intervals",
    order=40,
    kinds=("rankings",),
    build=lambda report: rankings_chapters(report.of("rankings")),
)
