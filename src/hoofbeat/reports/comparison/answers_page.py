"""The page and the tables of a comparison of answers: differences first, what stands against them before that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from hoofbeat.findings.accuracy import Accuracy
from hoofbeat.findings.flips import CHANGES
from hoofbeat.reports.charts import Bar, interval_bars
from hoofbeat.reports.comparison.answers import AnswersComparison, Pair
from hoofbeat.reports.comparison.flips import each_flipped, flips_of, flips_viewer
from hoofbeat.reports.comparison.folder import KIND, NOTICE, write_comparison
from hoofbeat.reports.model import Block, Card, Heading, Report, Text, tables_in
from hoofbeat.reports.section_blocks import figure, reasons_text, spread
from hoofbeat.reports.tables import Cell, Column, Table, flat_rows
from hoofbeat.reports.words import count_of, written
from hoofbeat.store import Artefact, Counts, Manifest
from hoofbeat.version import __version__

_DRAWN = 40


def write_answers(target: Path, compared: AnswersComparison, *, command: Sequence[str] = ()) -> Artefact:
    """Write the folder: `pairs.tsv`, `systems.tsv`, `flips.tsv`, `flipped.jsonl`, and the report with its tables."""
    report = answers_report(compared)
    manifest = Manifest(
        kind=KIND,
        title=f"answers of {', '.join(side.name for side in compared.sides)} compared",
        command=list(command),
        inputs=[side.artefact.reference() for side in compared.sides],
        settings={
            "folders": [side.name for side in compared.sides],
            "baseline": compared.baseline,
            "systems": list(compared.picked),
            "warnings": warnings_of(compared),
        },
        seeds={"bootstrap and randomisation": compared.seed},
        counts=Counts(kept=len(compared.pairs)),
        metrics={
            "pairs": _metrics(compared),
            "flipped": sum(flips_of(compared, pair).total() for pair in compared.pairs),
        },
    )
    sheets = ((table.name, *flat_rows(table)) for table in tables_in(report.blocks))
    return write_comparison(target, report, manifest, sheets, flipped=each_flipped(compared))


def warnings_of(compared: AnswersComparison) -> list[str]:
    """What a reader must know before reading a difference."""
    many = count_of(len(compared.pairs), "pair")
    against = Counter(reason for pair in compared.pairs for reason in pair.against)
    settings = Counter(reason for pair in compared.pairs for reason in pair.settings)
    told = [
        f"NOT THE SAME MEASUREMENT in {times} of {many}: {reason}. Such a difference is not one between systems alone."
        for reason, times in against.items()
    ]
    told += [
        f"ASKED OTHERWISE in {times} of {many}: differs in {reason} (first / second). Unless that is what is compared, "
        "such a difference is not one between systems alone."
        for reason, times in settings.items()
    ]
    if compared.apart:
        told.append(f"Left out for want of a question in common: {count_of(compared.apart, 'pair')} of systems.")
    unpaired = max(row.unpaired for row in compared.differences)
    if unpaired:
        told.append(f"Up to {count_of(unpaired, 'question')} of a pair were planned for one system only and left out.")
    told += [
        f"{count_of(side.free_text, 'answer')} in {side.name} are free text that nobody has judged, and left out."
        for side in compared.sides
        if side.artefact.manifest.kind == "run" and side.free_text
    ]
    lost = [compared.name(place) for place, row in compared.accuracies.items() if _lost(row) == row.planned]
    return told + [f"No answer of {name} could be scored." for name in lost]


def answers_report(compared: AnswersComparison) -> Report:
    """The page."""
    blocks = _difference_blocks(compared)
    blocks += [Heading("Each system", "systems"), _systems_table(compared)]
    blocks += [Heading("Questions that flipped", "flipped"), _flips_table(compared)]
    viewer = flips_viewer(compared, "flipped")
    blocks.append(viewer if viewer.total else Text("No question flipped."))
    n = max(row.paired.n for row in compared.differences)
    return Report(
        title="Answers compared",
        notice=NOTICE,
        version=__version__,
        subtitle=f"{', '.join(side.name for side in compared.sides)}: {count_of(len(compared.pairs), 'pair')} of "
        f"systems, paired over up to {count_of(n, 'question')}.",
        notes=tuple(warnings_of(compared)),
        cards=_cards(compared, viewer.total),
        blocks=tuple(blocks),
    )


def _cards(compared: AnswersComparison, flipped: int) -> tuple[Card, ...]:
    rows = list(zip(compared.pairs, compared.differences, strict=True))
    pair, largest = max(rows, key=lambda item: abs(item[1].paired.difference))
    sure = sum(row.p_holm < 0.05 for row in compared.differences)
    span = largest.paired.interval
    return (
        Card(
            label=f"{'Largest difference' if len(rows) > 1 else 'Difference'}, points: {compared.title(pair)}",
            value=written(largest.paired.difference, "points"),
            detail=spread((span.low, span.high), "points", f"{largest.paired.n:,} questions"),
        ),
        Card(
            label="Differences that chance does not explain",
            value=f"{sure} of {len(rows)}",
            detail="p < 0.05, Holm-corrected over the table",
        ),
        Card(label="Questions that flipped", value=f"{flipped:,}", detail="in at least one pair"),
    )


def _difference_blocks(compared: AnswersComparison) -> list[Block]:
    rows = list(zip(compared.pairs, compared.differences, strict=True))
    shown = sorted(rows, key=lambda item: -abs(item[1].paired.difference))[:_DRAWN] if len(rows) > _DRAWN else rows
    bars = [
        Bar(
            label=("[!] " if pair.marks else "") + compared.title(pair),
            value=row.paired.difference,
            low=row.paired.interval.low,
            high=row.paired.interval.high,
        )
        for pair, row in shown
    ]
    reach = max([0.1, *(abs(end) for bar in bars for end in (bar.low or 0.0, bar.high or 0.0))])
    caption = "Difference in accuracy in percentage points, with 95% paired bootstrap intervals."
    if any(pair.marks for pair, _ in shown):
        caption += " [!] marks pairs that were not measured in the same way."
    if len(shown) < len(rows):
        caption += f" The {_DRAWN} largest of {len(rows)}; all are in the table."
    chart = figure(
        "differences",
        caption,
        lambda width: interval_bars(
            bars, title="Differences in accuracy", form="points", limits=(-reach, reach), width=width
        ),
    )
    return [Heading("Differences", "differences"), chart, _pairs_table(compared)]


def _pairs_table(compared: AnswersComparison) -> Table:
    columns = (
        Column("second"),
        Column("against first"),
        Column("same measurement"),
        Column("questions", "count"),
        Column("accuracy, first", "share"),
        Column("accuracy, second", "share"),
        Column("difference, points", "points"),
        Column("only second right", "count"),
        Column("only first right", "count"),
        Column("p", "p"),
        Column("Holm p", "p"),
        Column("unscored", "count"),
        Column("sensitivity", "points"),
        Column("test"),
    )
    rows: list[tuple[Cell, ...]] = []
    for pair, row in zip(compared.pairs, compared.differences, strict=True):
        span = row.paired.interval
        rows.append(
            (
                compared.name(pair.second),
                compared.name(pair.first),
                _same(pair),
                row.paired.n,
                row.accuracy_b,
                row.accuracy_a,
                (row.paired.difference, span.low, span.high),
                row.only_a,
                row.only_b,
                row.p,
                row.p_holm,
                row.unscored,
                row.sensitivity,
                row.test,
            )
        )
    return Table(
        name="pairs",
        caption="Second against first, paired by question",
        n=max(row.paired.n for row in compared.differences),
        unit="questions",
        columns=columns,
        rows=tuple(rows),
        note=f"Bootstrap of 1,000 samples (seed {compared.seed}); questions with the same documents stay together. "
        "Holm's correction over this table. An unscored answer stays in the denominator; where such answers exceed 1%, "
        "sensitivity is what they could make of the difference.",
    )


def _same(pair: Pair) -> str:
    """Whether two systems were measured in the same way, and what differs."""
    parts = [f"NO: {'; '.join(pair.against)}"] if pair.against else []
    parts += [f"differs in: {'; '.join(pair.settings)}"] if pair.settings else []
    return "; ".join(parts) or "yes"


def _systems_table(compared: AnswersComparison) -> Table:
    columns = (
        Column("folder"),
        Column("model"),
        Column("condition"),
        Column("protocol"),
        Column("planned", "count"),
        Column("right", "count"),
        Column("unscored", "count"),
        Column("accuracy, 95% bootstrap", "share"),
        Column("95% Wilson", "share"),
        Column("sensitivity", "share"),
        Column("why unscored"),
    )
    rows: list[tuple[Cell, ...]] = []
    for place, row in compared.accuracies.items():
        side = compared.sides[place.folder]
        rows.append(
            (
                side.name,
                place.model,
                place.condition,
                side.protocols[place.system] or "free text",
                row.planned,
                row.correct,
                _lost(row),
                (row.accuracy, row.bootstrap.low, row.bootstrap.high),
                (row.wilson.low, row.wilson.high),
                row.sensitivity,
                reasons_text(row.unscored),
            )
        )
    return Table(
        name="systems",
        caption="Accuracy of each system, over all questions planned for it",
        n=len(compared.questions),
        unit="questions",
        columns=columns,
        rows=tuple(rows),
    )


def _flips_table(compared: AnswersComparison) -> Table:
    counts = [flips_of(compared, pair) for pair in compared.pairs]
    changes = [name for name in CHANGES if any(count[name] for count in counts)]
    return Table(
        name="flips",
        caption="How many questions flipped, from first to second",
        n=max(row.paired.n for row in compared.differences),
        unit="questions",
        columns=(Column("second"), Column("against first"), *(Column(name, "count") for name in changes)),
        rows=tuple(
            (compared.name(pair.second), compared.name(pair.first), *(count[name] for name in changes))
            for pair, count in zip(compared.pairs, counts, strict=True)
        ),
    )


def _lost(row: Accuracy) -> int:
    return sum(row.unscored.values())


def _metrics(compared: AnswersComparison) -> dict[str, object]:
    """What `--json` prints of each pair."""
    return {
        compared.title(pair): {
            "difference": row.paired.difference,
            "low": row.paired.interval.low,
            "high": row.paired.interval.high,
            "n": row.paired.n,
            "accuracy_first": row.accuracy_b,
            "accuracy_second": row.accuracy_a,
            "only_second_right": row.only_a,
            "only_first_right": row.only_b,
            "unscored": row.unscored,
            "sensitivity": row.sensitivity,
            "test": row.test,
            "p": row.p,
            "p_holm": row.p_holm,
            "flips": dict(flips_of(compared, pair)),
            "not_comparable": list(pair.marks),
        }
        for pair, row in zip(compared.pairs, compared.differences, strict=True)
    }
