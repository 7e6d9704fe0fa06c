"""Two audits compared as a page and a folder: the split, the labels that moved, and what each source covers now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec
import polars
from msgspec.structs import replace

from hoofbeat.audit import Audit
from hoofbeat.audit.audit_gate import GateFindings
from hoofbeat.audit.findings.audit_changes import AuditsComparison, CoverageChange
from hoofbeat.audit.findings.relations import PrevalenceIntensity, ShareChange
from hoofbeat.audit.source_names import SourceNames
from hoofbeat.findings.caveats import cut_warnings
from hoofbeat.findings.intervals import Interval
from hoofbeat.reports.charts import interval_bar, interval_dots, number_matrix
from hoofbeat.reports.comparison.gate_page import case_blocks, case_leads, write_changes
from hoofbeat.reports.model import Block, Chart, Heading, Lead, Notice, Report, Text
from hoofbeat.reports.report_writer import NOTICE, report_files
from hoofbeat.reports.section import figure
from hoofbeat.reports.sections.audits.audit_change_blocks import change_cards, change_in_words
from hoofbeat.reports.sections.audits.word_change_blocks import word_change_blocks
from hoofbeat.reports.tables import Cell, Column, Table, columns_of, count_of, triple, written
from hoofbeat.store import Artefact, Counts, Manifest, create, open_artefact
from hoofbeat.store.files import write_bytes
from hoofbeat.store.tables import write_tsv
from hoofbeat.version import __version__

AUDIT_COMPARISON = "audit-comparison"
"""The kind of folder that holds two audits compared."""

_RATES = (
    ("r_abs", "R_abs", "pairs with a silent source, of each audit's pairs"),
    ("r_div", "R_div", "pairs that diverge, of each audit's judged pairs"),
    ("intensity", "intensity", "pairs that diverge, of the pairs judged in both audits"),
    ("any_div", "pct_any_div", "questions with a pair that diverges"),
    ("prevalence", "prevalence", "the same, counting only pairs judged in both audits"),
)
"""The rates of the split: the field, its name, and what it is."""

_NOTE = (
    "Change from the first audit to the second, in percentage points, with 95% intervals from resampling the same "
    "questions in both. A silent source can't disagree. What changed only because more pairs are answered is listed "
    "under coverage."
)
_CHARTED = 40
_OTHERWISE = {"pack", "mode", "plan", "shard", "questions"}
"""Settings that are told apart from the rest, or say nothing of how answers were found."""


def altered_settings(first: Audit, second: Audit) -> dict[str, list[object]]:
    """The settings that are not the same in both audits, before and after."""
    before, after = first.artefact.manifest.settings, second.artefact.manifest.settings
    names = sorted((before.keys() | after.keys()) - _OTHERWISE)
    return {name: [before.get(name), after.get(name)] for name in names if before.get(name) != after.get(name)}


def write_audits(
    target: Path,
    audits: tuple[Audit, Audit],
    compared: AuditsComparison,
    changed: polars.DataFrame,
    findings: GateFindings,
    *,
    decided: bool = False,
    facets: Sequence[str],
    page_rows: int,
    warnings: Sequence[str],
    seed: int = 0,
    command: Sequence[str] = (),
) -> Artefact:
    """Write the folder: `summary.json`, tables of rates, labels and coverage, the changed pairs, and the report.

    A file of changed pairs has `page_rows` rows; the report begins with `warnings`. `findings` are what the sources say
    now and which cases are new; `decided` says that decisions were looked up.
    """
    names = audits[0].artefact.path.resolve().name, audits[1].artefact.path.resolve().name
    split = compared.split
    with create(target, replace_kind=AUDIT_COMPARISON) as draft:
        write_bytes(draft.path / "summary.json", msgspec.json.format(msgspec.json.encode(compared), indent=1) + b"\n")
        _write_tables(draft.path, compared)
        for number, start in enumerate(range(0, changed.height, page_rows), start=1):
            page = changed.slice(start, page_rows)
            write_tsv(draft.path / "changed" / f"changed-{number:04}.tsv", page.columns, page.iter_rows())
        write_changes(draft.path, findings, audits[1].names, decided=decided)
        words = [
            *word_change_blocks(findings.words, *audits),
            Heading("Disagreements as cases", "cases"),
            *case_blocks(findings, audits[1].names, decided=decided),
        ]
        for name, content in report_files(
            replace(
                _page(compared, names, audits[1].names, warnings, words, case_leads(findings, audits)),
                warnings=tuple(cut_warnings([audit.artefact for audit in audits])),
            ),
            ("html", "markdown"),
        ):
            write_bytes(draft.path / name, content)
        draft.finish(
            Manifest(
                kind=AUDIT_COMPARISON,
                title=f"{names[0]} and {names[1]}: {compared.questions} questions in both",
                command=list(command),
                inputs=[audit.artefact.reference() for audit in audits],
                settings={
                    "facets": list(facets),
                    "page_rows": page_rows,
                    "warnings": list(warnings),
                    "altered": altered_settings(*audits),
                },
                seeds={"bootstrap": seed},
                counts=Counts(kept=compared.shift.pairs),
                metrics={
                    name: msgspec.to_builtins(getattr(split, field)) for field, name, _ in _RATES
                } | {"by coverage": split.by_coverage},
            )
        )  # fmt: skip
    return open_artefact(target, AUDIT_COMPARISON)


def _write_tables(folder: Path, compared: AuditsComparison) -> None:
    head = ("rate", "before", "after", "change", "low", "high")
    groups = [("", "", compared.split)]
    groups += [(facet, name, found) for facet, rows in compared.groups.items() for name, found in rows.items()]
    write_tsv(
        folder / "rates.tsv",
        ("facet", "group", "questions", "pairs_in_both", *head),
        [
            (facet, name, found.questions, found.pairs_in_both, *row)
            for facet, name, found in groups
            for row in _rates(found)
        ],
    )
    labels = _shown_labels(compared.shift.labels)
    write_tsv(
        folder / "labels.tsv",
        ("before", "after", "pairs"),
        [
            (labels[down], labels[across], count)
            for down, row in enumerate(compared.shift.counts)
            for across, count in enumerate(row)
            if count
        ],
    )
    write_tsv(
        folder / "coverage.tsv",
        ("source", "asked_before", "asked_after", "before", "after", "asked_in_both", "gained", "lost", "change", "low",
         "high", "p"),
        [
            (row.source, *row.planned, *row.coverage, row.shared, row.gained, row.lost, row.change,
             *_ends(row.interval), row.p)
            for row in compared.coverage
        ],
    )  # fmt: skip
    write_tsv(
        folder / "only.tsv",
        ("what", "name", "in"),
        [
            (what, name, when)
            for what, both in (("source", compared.sources_only), ("question", compared.questions_only))
            for when, names in zip(("before", "after"), both, strict=True)
            for name in names
        ],
    )


def _rates(found: PrevalenceIntensity) -> Iterator[tuple[object, ...]]:
    for field, name, _ in _RATES:
        change: ShareChange = getattr(found, field)
        yield name, change.before, change.after, change.change, *_ends(change.interval)
    yield "by coverage", None, None, found.by_coverage, *_ends(found.by_coverage_interval)


def _ends(interval: Interval | None) -> tuple[float | None, float | None]:
    return (interval.low, interval.high) if interval else (None, None)


def _page(
    compared: AuditsComparison,
    names: tuple[str, str],
    sources: SourceNames,
    warnings: Sequence[str],
    words: Sequence[Block],
    found: Sequence[Lead],
) -> Report:
    """The whole page."""
    split = compared.split
    blocks: list[Block] = [
        *words,
        Heading("Is disagreement more frequent, or only more visible?", "split"),
        Text(
            f"{count_of(compared.questions, 'question')} and {count_of(compared.sources, 'source')} are in both "
            f"audits; {count_of(compared.shift.pairs, 'pair')} of sources were planned in both, "
            f"{split.pairs_in_both:,} were judged in both."
        ),
        *(Notice(warning) for warning in warnings),
        split_table(split),
        *(_group_table(facet, groups, compared.questions) for facet, groups in compared.groups.items() if groups),
        Heading("Labels that moved", "labels"),
        *_labels(compared),
        Heading("What each source covers", "coverage"),
        *_coverage(compared.coverage, sources),
    ]
    return Report(
        title=f"From {names[0]} to {names[1]}",
        notice=NOTICE,
        version=__version__,
        subtitle="Two audits of the same questions.",
        cards=change_cards(split),
        leads=(*found, Lead(change_in_words(split), "#split", "See the rates")),
        blocks=tuple(blocks),
    )


def _points(value: float | None, interval: Interval | None) -> Cell:
    """A change with its interval."""
    return triple(value, interval) if interval else None


def _shown_labels(labels: Sequence[str]) -> list[str]:
    """Labels as they are written; none is `no label`."""
    return [label or "no label" for label in labels]


def split_table(split: PrevalenceIntensity) -> Table:
    """Each rate before and after, its change, and what it is."""
    rows: list[tuple[Cell, ...]] = []
    for field, name, meaning in _RATES:
        change: ShareChange = getattr(split, field)
        rows.append((name, change.before, change.after, _points(change.change, change.interval), meaning))
    rows.append(
        ("by coverage", None, None, _points(split.by_coverage, split.by_coverage_interval),
         "the rest of pct_any_div: pairs that only one audit judged")
    )  # fmt: skip
    columns = columns_of("rate | before:share | after:share | change, points:points | what it is")
    return Table(
        name="split", caption="What changed", n=split.questions, unit="questions", columns=columns, rows=tuple(rows),
        note=_NOTE,
    )  # fmt: skip


def _group_table(facet: str, groups: dict[str, PrevalenceIntensity], questions: int) -> Table:
    rows = [
        (
            name,
            found.questions,
            found.pairs_in_both,
            *(_points((change := getattr(found, field)).change, change.interval) for field, _, _ in _RATES),
            _points(found.by_coverage, found.by_coverage_interval),
        )
        for name, found in groups.items()
    ]
    columns = [Column(facet), *columns_of("questions:count | judged in both:count")]
    columns += [Column(name, "points") for name in (*(name for _, name, _ in _RATES), "by coverage")]
    return Table(
        name=f"by-{facet}", caption=f"Changes by {facet}, in percentage points", n=questions, unit="questions",
        columns=tuple(columns), rows=tuple(rows), note="A question with several values counts in each.",
    )  # fmt: skip


def _labels(compared: AuditsComparison) -> list[Block]:
    shift, agreement = compared.shift, compared.agreement
    names = _shown_labels(shift.labels)
    draw = partial(
        number_matrix, names, names, [list(row) for row in shift.counts], title="Labels before and after",
        down="before", across="after",
    )  # fmt: skip
    judged = written(agreement.share, "share")
    kappa = "no κ" if agreement.kappa is None else f"κ {written(agreement.kappa, 'number')}"
    return [
        Text(
            f"{shift.same:,} of {count_of(shift.pairs, 'pair')} keep their label. Of the {agreement.n:,} that both "
            f"audits label and at least one could judge, {judged} do ({kappa}). {shift.only_before:,} pairs were "
            f"planned only in the first audit, {shift.only_after:,} only in the second."
        ),
        Chart(
            name="labels",
            caption="Pairs by their label before (down) and after (across).",
            wide=draw(width=560),
            narrow=draw(width=350),
        ),
    ]


def _coverage(rows: Sequence[CoverageChange], names: SourceNames) -> list[Block]:
    if not rows:
        return [Notice("Neither audit contains answers.")]
    moved = sorted((row for row in rows if row.change is not None), key=lambda row: (-abs(row.change or 0), row.source))
    shown = sorted(moved[:_CHARTED], key=lambda row: (-(row.change or 0), row.source))
    bars = [
        interval_bar(names.short(row.source), row.change, row.interval) for row in shown if row.interval is not None
    ]
    blocks: list[Block] = []
    if bars:
        draw = partial(
            interval_dots, [bar.label for bar in bars], {"change of coverage": bars},
            title="Change of coverage", form="share",
        )  # fmt: skip
        few = f" The {_CHARTED} that changed most." if len(moved) > _CHARTED else ""
        blocks.append(figure("coverage", f"Change of the share of questions a source addresses.{few}", draw))
    columns = columns_of(
        "source | before:share | after:share | asked in both:count | gained:count | lost:count | "
        "change, points:points | p (McNemar):p"
    )
    table = Table(
        name="coverage",
        caption="Coverage of each source",
        n=sum(row.shared for row in rows),
        unit="questions put to a source in both audits",
        columns=columns,
        rows=tuple(
            (
                names.short(row.source),
                *row.coverage,
                row.shared,
                row.gained,
                row.lost,
                _points(row.change, row.interval),
                row.p,
            )
            for row in rows
        ),
        note="Gained: addressed only in the second audit. Lost: only in the first. p is not corrected for the number "
        "of sources.",
    )
    return [*blocks, table]
