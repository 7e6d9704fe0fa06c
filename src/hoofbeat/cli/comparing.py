"""Comparison folders: rankings of the same questions set against each other, in tables and on one page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from msgspec.structs import replace

from hoofbeat.cli.console import Screen
from hoofbeat.cli.other_runs import ranked_inputs
from hoofbeat.cli.ranking import KIND as RANKINGS
from hoofbeat.errors import UsageError
from hoofbeat.findings.ablation import Ablation, AblationCell, ablation
from hoofbeat.findings.breakdown import values_of
from hoofbeat.findings.clusters import clusters_of
from hoofbeat.findings.correlation import AnswersAndRetrieval, answers_and_retrieval
from hoofbeat.findings.scoring import scored_outcomes
from hoofbeat.findings.systems import SystemTable, compare_systems
from hoofbeat.judging import Judged
from hoofbeat.records import Question
from hoofbeat.reports.rankings import rankings_files, rankings_report
from hoofbeat.store import Artefact, Counts, Manifest, create, open_artefact
from hoofbeat.store.files import write_bytes
from hoofbeat.store.tables import read_jsonl, read_tsv, write_tsv

__all__ = ["KIND", "compare_rankings", "verdicts_of"]

KIND = "comparison"

Values = dict[str, dict[str, float]]
"""Question to measure to value."""


def compare_rankings(
    screen: Screen,
    folders: Sequence[Path],
    target: Path,
    *,
    baseline: str = "",
    judged: Sequence[Path] = (),
    condition: str = "",
    seed: int = 0,
    command: Sequence[str] = (),
) -> Artefact:
    """Compare rankings folders and write the folder of their comparison; the first measure is shown on the screen.

    `judged` are folders of judgments, one for each of the rankings, in their order: how right the answers were is then
    set against how good the ranking was.
    """
    artefacts = [open_artefact(folder, RANKINGS) for folder in folders]
    common = set.intersection(*(set(artefact.manifest.metrics) for artefact in artefacts))
    measures = [name for name in artefacts[0].manifest.metrics if name in common]
    if not measures:
        raise UsageError("these rankings have no measure in common", fix="rank them with the same --measure")
    systems, asked, sets = _systems(artefacts)
    clusters = clusters_of(asked)
    tables = [
        compare_systems(systems, measure, baseline=baseline, clusters=clusters, seed=seed) for measure in measures
    ]
    grid = None if sets else _ablation(artefacts, list(systems.values()), measures[0], clusters, seed)
    right = _answers(systems, judged, condition, measures[0], clusters, seed)
    _show(screen, tables[0], grid)
    left_out = max(row.left_out for row in tables[0].means)
    if left_out:
        screen.say(f"{left_out} questions are left out, because not every line has a value for them")
    with create(target, replace_kind=KIND) as draft:
        _write_tables(draft.path, tables, grid, right)
        report = rankings_report(
            systems,
            title="Retrievers compared",
            main=measures[0],
            baseline=baseline,
            facets={question.id: question.facets for question in asked},
            sets=sets,
            clusters=clusters,
            ablations=[grid] if grid else [],
            answers=right,
            seed=seed,
        )
        for name, content in rankings_files(report).items():
            write_bytes(draft.path / name, content)
        draft.finish(
            Manifest(
                kind=KIND,
                title=f"{len(systems)} retrievers over {tables[0].n} questions",
                command=list(command),
                inputs=[artefact.reference() for artefact in artefacts],
                settings={"systems": list(systems), "baseline": baseline},
                seeds={"bootstrap and randomisation": seed},
                counts=Counts(kept=len(artefacts)),
                metrics={
                    row.system: {"measure": table.measure, "value": row.mean, "low": row.interval.low,
                                 "high": row.interval.high, "n": table.n}
                    for table in tables[:1]
                    for row in table.means
                },
            )
        )  # fmt: skip
    return open_artefact(target, KIND)


def verdicts_of(judged: Judged, condition: str) -> dict[str, bool | None]:
    """Whether each question was answered rightly in one condition by the one model; None where that is not known."""
    found = scored_outcomes(judged.questions, judged.each_answer(), judged.each_judgment())
    conditions = list(dict.fromkeys(each.condition for each in found))
    if condition and condition not in conditions:
        raise UsageError(f"nothing was judged under {condition!r}", fix=f"there are: {', '.join(conditions)}")
    if not condition and len(conditions) > 1:
        raise UsageError(
            "answers were judged under several conditions",
            where=str(judged.artefact.path),
            fix=f"choose one with --condition: {', '.join(conditions)}",
        )
    chosen = condition or next(iter(conditions), "")
    rows = [each for each in found if each.condition == chosen and each.sample == 0]
    models = list(dict.fromkeys(each.model for each in rows))
    if len(models) > 1:
        raise UsageError(
            f"these are answers of several models: {', '.join(models)}",
            where=str(judged.artefact.path),
            fix="judge a run of one model, and give its folder",
        )
    return {each.question: each.correct for each in rows}


def _systems(artefacts: Sequence[Artefact]) -> tuple[dict[str, Values], list[Question], dict[str, str] | None]:
    """Each line's measures by question, the questions, and the set that each belongs to where there are several sets.

    Rankings of one line over several sets are one system; its questions are then named after their sets. A line that
    comes twice over one set is told apart by its folder.
    """
    beds = list(dict.fromkeys(str(artefact.manifest.settings["bed"]) for artefact in artefacts))
    contents = {(artefact.manifest.settings["bed"], repr(ranked_inputs(artefact))) for artefact in artefacts}
    if len(contents) > len(beds):
        raise UsageError(
            "these rankings are of different questions or documents under one name",
            where=", ".join(beds),
            fix="compare rankings of the same benchmark and corpus",
        )
    times = Counter((artefact.manifest.title, artefact.manifest.settings["bed"]) for artefact in artefacts)
    systems: dict[str, Values] = {}
    asked: dict[str, Question] = {}
    sets: dict[str, str] = {}
    for artefact in artefacts:
        title, bed = artefact.manifest.title, str(artefact.manifest.settings["bed"])
        values = systems.setdefault(title if times[title, bed] == 1 else f"{title} ({artefact.path.name})", {})
        before = f"{bed}: " if len(beds) > 1 else ""
        if not artefact.has("queries.tsv"):
            raise UsageError(f"{artefact.path} has no measures", fix="name rankings of a benchmark with judgments")
        for question in read_jsonl(artefact.file("questions.jsonl"), Question):
            asked[before + question.id] = replace(question, id=before + question.id)
            sets[before + question.id] = bed
        for row in read_tsv(artefact.file("queries.tsv")):
            values.setdefault(before + row["query"], {})[row["measure"]] = float(row["value"])
    if len(systems) * len(beds) != len(artefacts):
        raise UsageError(
            "not every line was run over every set, or a folder is named twice",
            where=f"{len(systems)} lines, {len(beds)} sets, {len(artefacts)} folders",
            fix="name the rankings of each line over each of the sets, once",
        )
    return systems, list(asked.values()), sets if len(beds) > 1 else None


def _ablation(
    artefacts: Sequence[Artefact],
    values: Sequence[Values],
    measure: str,
    clusters: Mapping[str, str] | None,
    seed: int,
) -> Ablation | None:
    """The grid of settings, where all rankings come from one line with braces."""
    settings = [artefact.manifest.settings.get("variant") for artefact in artefacts]
    named = [dict(each) for each in settings if isinstance(each, dict)]
    if len(named) != len(artefacts) or any(list(a) != list(b) for a, b in pairwise(named)) or len(named[0]) > 2:
        return None
    down, *across = named[0]
    runs: list[tuple[Mapping[str, object], Values]] = list(zip(named, values, strict=True))
    return ablation(
        runs,
        measure,
        down=down,
        across=across[0] if across else "",
        baseline=named[0],
        clusters=clusters,
        seed=seed,
    )


def _answers(
    systems: Mapping[str, Values],
    judged: Sequence[Path],
    condition: str,
    measure: str,
    clusters: Mapping[str, str] | None,
    seed: int,
) -> list[AnswersAndRetrieval]:
    if not judged:
        return []
    if len(judged) != len(systems):
        raise UsageError(
            f"{len(systems)} rankings and {len(judged)} folders of judgments", fix="give --judged once for each ranking"
        )
    verdicts = {name: verdicts_of(Judged.open(path), condition) for name, path in zip(systems, judged, strict=True)}
    scores = {name: values_of(values, measure) for name, values in systems.items()}
    return answers_and_retrieval(verdicts, scores, clusters=clusters, seed=seed)


def _show(screen: Screen, table: SystemTable, grid: Ablation | None) -> None:
    best = table.ranked[0].system
    rows = [
        [
            f"{pair.a} against {pair.b}",
            f"{pair.paired.difference:+.3f} [{pair.paired.interval.low:+.3f}, {pair.paired.interval.high:+.3f}]",
            f"{pair.p_holm:.4f}",
            f"{pair.wins}/{pair.ties}/{pair.losses}",
        ]
        for pair in table.comparisons
        if best in {pair.a, pair.b} or len(table.comparisons) <= 10
    ]
    screen.table([f"{table.measure}, {table.n} questions", "difference", "p (Holm)", "won/tied/lost"], rows)
    if grid is not None:
        cells = [
            [row, *(f"{cell.mean:.3f}" if (cell := grid.cell(row, column)) else "" for column in grid.columns)]
            for row in grid.rows
        ]
        screen.table([f"{grid.down} by {grid.across}" if grid.across else grid.down, *grid.columns], cells)


def _write_tables(
    folder: Path, tables: Sequence[SystemTable], grid: Ablation | None, right: Sequence[AnswersAndRetrieval]
) -> None:
    write_tsv(
        folder / "systems.tsv",
        ("measure", "system", "n", "mean", "low", "high", "rank", "rank_low", "rank_high"),
        [
            (table.measure, row.system, table.n, row.mean, row.interval.low, row.interval.high, row.rank,
             *row.rank_interval)
            for table in tables
            for row in table.means
        ],
    )  # fmt: skip
    write_tsv(
        folder / "pairs.tsv",
        ("measure", "a", "b", "n", "difference", "low", "high", "p", "p_holm", "wins", "ties", "losses"),
        [
            (table.measure, pair.a, pair.b, pair.paired.n, pair.paired.difference, pair.paired.interval.low,
             pair.paired.interval.high, pair.test.p, pair.p_holm, pair.wins, pair.ties, pair.losses)
            for table in tables
            for pair in table.comparisons
        ],
    )  # fmt: skip
    if grid is not None:
        write_tsv(
            folder / "ablation.tsv",
            ("measure", grid.down, grid.across or "-", "mean", "low", "high", "gain", "gain_low", "gain_high"),
            [
                (grid.measure, cell.down, cell.across, cell.mean, cell.interval.low, cell.interval.high,
                 *_gain(cell))
                for cell in grid.cells
            ],
        )  # fmt: skip
    if right:
        write_tsv(
            folder / "answers.tsv",
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
