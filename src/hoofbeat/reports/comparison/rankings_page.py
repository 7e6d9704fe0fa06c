"""Rankings of several systems as one page: who is better, by how much, how surely, and where.

Everything comes in as plain mappings (system to question to measure to value), so that rankings folders, runs of other
programs and figures of a paper can be set side by side.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from hoofbeat.errors import UsageError
from hoofbeat.facets import facet_names, facet_values
from hoofbeat.findings.ablation import Ablation, AblationCell
from hoofbeat.findings.breakdown import by_facet, over_sets, values_of
from hoofbeat.findings.correlation import AnswersAndRetrieval
from hoofbeat.findings.systems import Systems, SystemTable, compare_systems
from hoofbeat.records import Facets
from hoofbeat.reports.comparison.folder import KIND, NOTICE, Sheet, write_comparison
from hoofbeat.reports.comparison.ranking_blocks import (
    ablation_blocks,
    answer_blocks,
    difference_blocks,
    facet_blocks,
    measure_bars,
    measure_blocks,
    recall_blocks,
    set_blocks,
    system_blocks,
)
from hoofbeat.reports.comparison.rankings import RankingsComparison
from hoofbeat.reports.model import Block, Card, Report
from hoofbeat.reports.section_blocks import spread
from hoofbeat.reports.words import count_of, written
from hoofbeat.store import Artefact, Counts, Manifest
from hoofbeat.version import __version__

_MAIN = "nDCG@10"
_FACETS = 4


def rankings_report(
    systems: Systems,
    *,
    title: str = "Rankings compared",
    main: str = "",
    baseline: str = "",
    facets: Mapping[str, Facets] | None = None,
    sets: Mapping[str, str] | None = None,
    clusters: Mapping[str, str] | None = None,
    ablations: Sequence[Ablation] = (),
    answers: Sequence[AnswersAndRetrieval] = (),
    seed: int = 0,
) -> Report:
    """Systems compared by every measure they share, as a report.

    `main` is the measure that systems are placed, tested and broken down by (nDCG@10 where it was measured);
    `baseline` the system that the others are set against (every pair without it). `facets` are the facets of each
    question, `sets` the set each belongs to, `clusters` what questions have in common. `ablations` are grids of
    settings, `answers` the models whose right answers are set against their retrieval by the main measure.
    """
    measures = _measures(systems)
    chosen = main or (_MAIN if _MAIN in measures else measures[0])
    table = compare_systems(systems, chosen, baseline=baseline, clusters=clusters, seed=seed)
    bars = measure_bars(systems, [chosen, *(name for name in measures if name != chosen)], clusters=clusters, seed=seed)
    order = [row.system for row in table.ranked]
    shared = _shared(systems, chosen)
    blocks: list[Block] = [*system_blocks(table), *measure_blocks(bars, table), *difference_blocks(systems, table)]
    blocks += recall_blocks(bars, table)
    values = {name: {q: v for q, v in values_of(systems[name], chosen).items() if q in shared} for name in order}
    for facet in _telling(shared, facets or {}):
        tables = {name: by_facet(values[name], facets or {}, facet, clusters=clusters, seed=seed) for name in order}
        blocks += facet_blocks(tables, chosen)
    if sets:
        tallies = {name: over_sets(_by_set(values[name], sets), clusters=clusters, seed=seed) for name in order}
        blocks += set_blocks(tallies, chosen)
    blocks += ablation_blocks(ablations)
    blocks += answer_blocks(answers, chosen, seed=seed)
    return Report(
        title=title,
        notice=NOTICE,
        version=__version__,
        subtitle=f"{count_of(len(order), 'system')}, {count_of(table.n, 'question')}, placed by {chosen}.",
        cards=_cards(table),
        blocks=tuple(blocks),
    )


def write_rankings(target: Path, compared: RankingsComparison, *, command: Sequence[str] = ()) -> Artefact:
    """Write the folder: `systems.tsv`, `pairs.tsv`, the settings' grid and the answers if any, and the report."""
    main = compared.tables[0]
    report = rankings_report(
        compared.systems,
        title="Retrievers compared",
        main=main.measure,
        baseline=compared.baseline,
        facets={question.id: question.facets for question in compared.questions},
        sets=compared.sets,
        clusters=compared.clusters,
        ablations=[compared.grid] if compared.grid else [],
        answers=compared.answers,
        seed=compared.seed,
    )
    manifest = Manifest(
        kind=KIND,
        title=f"{len(compared.systems)} retrievers over {main.n} questions",
        command=list(command),
        inputs=[artefact.reference() for artefact in compared.folders],
        settings={"systems": list(compared.systems), "baseline": compared.baseline},
        seeds={"bootstrap and randomisation": compared.seed},
        counts=Counts(kept=len(compared.folders)),
        metrics={
            row.system: {"measure": main.measure, "value": row.mean, "low": row.interval.low,
                         "high": row.interval.high, "n": main.n}
            for row in main.means
        },
    )  # fmt: skip
    return write_comparison(target, report, manifest, _sheets(compared))


def _sheets(compared: RankingsComparison) -> Iterator[Sheet]:
    tables, grid, right = compared.tables, compared.grid, compared.answers
    yield (
        "systems",
        ("measure", "system", "n", "mean", "low", "high", "rank", "rank_low", "rank_high"),
        [
            (table.measure, row.system, table.n, row.mean, row.interval.low, row.interval.high, row.rank,
             *row.rank_interval)
            for table in tables
            for row in table.means
        ],
    )  # fmt: skip
    yield (
        "pairs",
        ("measure", "a", "b", "n", "difference", "low", "high", "p", "p_holm", "wins", "ties", "losses"),
        [
            (table.measure, pair.a, pair.b, pair.paired.n, pair.paired.difference, pair.paired.interval.low,
             pair.paired.interval.high, pair.test.p, pair.p_holm, pair.wins, pair.ties, pair.losses)
            for table in tables
            for pair in table.comparisons
        ],
    )  # fmt: skip
    if grid is not None:
        yield (
            "ablation",
            ("measure", grid.down, grid.across or "-", "mean", "low", "high", "gain", "gain_low", "gain_high"),
            [
                (grid.measure, cell.down, cell.across, cell.mean, cell.interval.low, cell.interval.high,
                 *_gain(cell))
                for cell in grid.cells
            ],
        )  # fmt: skip
    if right:
        yield (
            "answers",
            ("system", "n", "unscored", "accuracy", "accuracy_low", "accuracy_high",
             "score", "score_low", "score_high"),
            [
                (row.model, row.n, row.unscored, row.accuracy, row.accuracy_interval.low, row.accuracy_interval.high,
                 row.score, row.score_interval.low, row.score_interval.high)
                for row in right
            ],
        )  # fmt: skip


def _gain(cell: AblationCell) -> tuple[object, object, object]:
    """What a combination gains over the baseline, and the interval; nothing for the baseline itself."""
    if cell.gain is None:
        return "", "", ""
    return cell.gain.difference, cell.gain.interval.low, cell.gain.interval.high


def _measures(systems: Systems) -> list[str]:
    """The measures that every system has, in the order of the first."""
    if not systems:
        raise UsageError("there are no systems to compare", fix="give at least one")
    seen = [{measure: None for row in rows.values() for measure in row} for rows in systems.values()]
    shared = [measure for measure in seen[0] if all(measure in other for other in seen)]
    if not shared:
        raise UsageError("the systems share no measure", fix="measure all of them by the same measures")
    return shared


def _shared(systems: Systems, measure: str) -> set[str]:
    found = [set(values_of(rows, measure)) for rows in systems.values()]
    return set.intersection(*found)


def _telling(questions: Collection[str], facets: Mapping[str, Facets]) -> list[str]:
    """The facets worth a breakdown: groups hold two questions or more on average."""
    known = [facets[question] for question in questions if question in facets]
    groups = {name: {value for each in known for value in facet_values(each, name)} for name in facet_names(known)}
    return [name for name, values in groups.items() if 2 * len(values) <= len(known)][:_FACETS]


def _by_set(values: Mapping[str, float], sets: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """The values of each set, sets in the order they were given; a question of no set is in `(none)`."""
    grouped: dict[str, dict[str, float]] = {name: {} for name in dict.fromkeys(sets.values())}
    for question, value in values.items():
        grouped.setdefault(sets.get(question, "(none)"), {})[question] = value
    return {name: found for name, found in grouped.items() if found}


def _cards(table: SystemTable) -> tuple[Card, ...]:
    best = table.ranked[0]
    tied = sum(row.rank == 1 for row in table.means) > 1
    among = f", {'tied ' if tied else 'the '}best of {len(table.means)}" if len(table.means) > 1 else ""
    cards = [
        Card(
            label=f"{table.measure} of {best.system}{among}",
            value=written(best.mean, "number"),
            detail=spread((best.interval.low, best.interval.high), "number", f"{table.n:,} questions"),
        )
    ]
    if table.comparisons:
        sure = sum(row.p_holm < 0.05 for row in table.comparisons)
        cards.append(
            Card(
                label="Differences that chance does not explain",
                value=f"{sure} of {len(table.comparisons)}",
                detail="p < 0.05 by the paired randomisation test, Holm-corrected",
            )
        )
    return tuple(cards)
