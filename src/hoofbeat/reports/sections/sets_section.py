"""Rankings over several sets in a report: each line by set, and its average over sets, as R2MED reports it."""

from __future__ import annotations

from collections.abc import Sequence

from hoofbeat.findings.breakdown import SetTable, over_sets
from hoofbeat.records import Question
from hoofbeat.reports.model import Block, Card, Lead
from hoofbeat.reports.section import Chapter, OwnFigure, PlacedArtefact, ReportSection, spread
from hoofbeat.reports.tables import Cell, Column, Table, count_of, triple, written
from hoofbeat.store import Artefact
from hoofbeat.store.tables import number_cell, read_jsonl, read_tsv

_ID = "sets"

Values = dict[str, dict[str, dict[str, float]]]
"""Line to set to question to value, of one measure."""


def sets_chapters(artefacts: Sequence[PlacedArtefact]) -> list[Chapter]:
    """One chapter, where the same lines were run over two sets or more."""
    measures: dict[str, Values] = {}
    clusters: dict[str, str] = {}
    for _, artefact in artefacts:
        _read(artefact, measures, clusters)
    tables = [table for name, values in measures.items() if (table := _tallies(name, values, clusters))]
    if not tables:
        return []
    blocks: list[Block] = [_table(name, found) for name, found in tables]
    name, found = tables[0]
    best, tally = max(found.items(), key=lambda item: item[1].macro.mean)
    sets = f"average over {len(tally.sets)} sets"
    card = Card(
        label=f"{name} of {best}, {sets}",
        value=written(tally.macro.mean, "number"),
        detail=spread((tally.macro.interval.low, tally.macro.interval.high), "number", f"{tally.macro.n:,} questions"),
    )
    figures = tuple(
        OwnFigure(
            measure=f"{measure}, average over sets",
            model=line,
            condition=f"{len(each.sets)} sets",
            value=triple(each.macro.mean, each.macro.interval),
            n=each.macro.n,
        )
        for measure, lines in tables
        for line, each in lines.items()
    )
    lead = Lead(f"{best} has the best {name}, {sets}: {card.value} ({card.detail}).", f"#{_ID}", "See each set")
    return [
        Chapter(
            title="Retrieval over sets", id=_ID, blocks=tuple(blocks), cards=(card,), leads=(lead,), figures=figures
        )
    ]


def _read(artefact: Artefact, measures: dict[str, Values], clusters: dict[str, str]) -> None:
    """Add the values of one rankings folder; questions are named after their set."""
    if not artefact.has("queries.tsv"):
        return
    line, bed = artefact.manifest.title, str(artefact.manifest.settings.get("bed", ""))
    for row in read_tsv(artefact.file("queries.tsv")):
        values = measures.setdefault(row["measure"], {}).setdefault(line, {}).setdefault(bed, {})
        values[f"{bed}: {row['query']}"] = number_cell(row, "value", artefact.path / "queries.tsv")
    for question in read_jsonl(artefact.file("questions.jsonl"), Question) if artefact.has("questions.jsonl") else ():
        documents = "; ".join(sorted(question.documents))
        clusters[f"{bed}: {question.id}"] = f"{bed}: {documents or question.id}"


def _tallies(name: str, values: Values, clusters: dict[str, str]) -> tuple[str, dict[str, SetTable]] | None:
    sets = {bed for beds in values.values() for bed in beds}
    if len(sets) < 2 or any(set(beds) != sets for beds in values.values()):
        return None
    return name, {line: over_sets(beds, clusters=clusters) for line, beds in values.items()}


def _table(name: str, lines: dict[str, SetTable]) -> Table:
    first = next(iter(lines.values()))
    heads = [*(group.value for group in first.sets), f"{name}, average"]
    rows: list[tuple[Cell, ...]] = [
        (line, *(triple(group.mean, group.interval) for group in (*each.sets, each.macro)))
        for line, each in sorted(lines.items(), key=lambda item: -item[1].macro.mean)
    ]
    return Table(
        name=f"{_ID}-{name}",
        caption=f"{name} by set, {count_of(len(lines), 'line')}",
        n=first.macro.n,
        unit="questions",
        columns=(Column("line"), *(Column(head, "number") for head in heads)),
        rows=tuple(rows),
        note="Every set has the same weight in the average. Its interval is from resampling questions within sets.",
    )


SECTION = ReportSection(
    name="sets",
    summary="rankings of the same lines over several sets: by set, and on average",
    order=39,
    kinds=("rankings",),
    build=lambda report: sets_chapters(report.of("rankings")),
)
