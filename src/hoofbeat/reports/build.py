"""From artefact folders to a report folder: one page, the same as Markdown, its charts and all its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import hoofbeat
from hoofbeat.errors import UsageError
from hoofbeat.reports.charts import standalone
from hoofbeat.reports.markdown import to_markdown
from hoofbeat.reports.model import Block, Card, Chart, Notice, Report, Table, charts_in, tables_in
from hoofbeat.reports.page import to_html
from hoofbeat.reports.sections.audits import audit_part
from hoofbeat.reports.sections.benchmark import benchmark_part
from hoofbeat.reports.sections.common import Part
from hoofbeat.reports.sections.corpus import corpus_part
from hoofbeat.reports.sections.judgments import judgments_parts
from hoofbeat.reports.sections.origin import origin_blocks
from hoofbeat.reports.sections.rankings import rankings_parts
from hoofbeat.reports.sections.runs import run_part
from hoofbeat.reports.sections.stats import stats_part
from hoofbeat.reports.sheets import to_csv
from hoofbeat.reports.words import count_of, model_name, slug
from hoofbeat.store import Artefact, Counts, Manifest, create, open_artefact
from hoofbeat.store.files import write_bytes

__all__ = ["KINDS", "assemble", "build_report"]

KIND = "report"

KINDS = ("corpus", "stats", "benchmark", "rankings", "run", "judgments", "audit")
"""The kinds of artefacts a report can show, in the order of its chapters."""

_NOTICE = "Research software. Not for clinical use."
_CARDS = 8
_COUNTS = ("Documents: ", "Median length: ", "Questions in")

Planted = Mapping[tuple[str, str, str], str]

T = TypeVar("T", Table, Chart)


def build_report(
    paths: Sequence[Path],
    target: Path,
    *,
    title: str,
    notes: Sequence[str] = (),
    planted: Planted | None = None,
    command: Sequence[str] = (),
) -> Artefact:
    """Write a report on any mix of artefacts.

    `notes` are warnings for the first screen; `planted` maps (question, source, other source) to the label planted
    there, against which an audit's judge is set. The folder holds `report.html`, `report.md`, `charts/` and `tables/`.
    """
    if not paths:
        raise UsageError("a report needs at least one artefact", fix="name folders that hoofbeat commands wrote")
    artefacts = [open_artefact(path, KINDS) for path in dict.fromkeys(path.resolve() for path in paths)]
    report = assemble(artefacts, title=title, notes=notes, planted=planted)
    tables = _named(list(tables_in(report.blocks)), "csv")
    charts = _named(list(charts_in(report.blocks)), "svg")
    with create(target, replace_kind=KIND) as draft:
        write_bytes(draft.path / "report.html", to_html(report).encode())
        files = {chart.name: f"charts/{name}" for name, chart in charts.items()}
        write_bytes(draft.path / "report.md", to_markdown(report, files).encode())
        for name, table in tables.items():
            write_bytes(draft.path / "tables" / name, to_csv(table).encode())
        for name, chart in charts.items():
            write_bytes(draft.path / "charts" / name, standalone(chart.wide).encode())
        draft.finish(
            Manifest(
                kind=KIND,
                title=title,
                command=list(command),
                inputs=[artefact.reference() for artefact in artefacts],
                settings={"title": title, "notes": list(notes), "planted": len(planted or {})},
                seeds={"bootstrap": 0},
                models=dict(report.models),
                counts=Counts(kept=len(artefacts)),
                metrics={
                    card.label: f"{card.value} ({card.detail})" if card.detail else card.value for card in report.cards
                },
            )
        )
    return open_artefact(target, KIND)


def assemble(
    artefacts: Sequence[Artefact], *, title: str, notes: Sequence[str] = (), planted: Planted | None = None
) -> Report:
    """The report as blocks, chapter by chapter in the order of the flow, whatever the order of the artefacts."""
    parts = _parts(artefacts, planted)
    blocks: list[Block] = [block for part in parts for block in part.all_blocks()]
    if not parts:
        blocks.append(Notice("There is nothing to show."))
    blocks += origin_blocks(artefacts)
    kinds = [kind for kind in KINDS if any(artefact.manifest.kind == kind for artefact in artefacts)]
    return Report(
        title=title,
        notice=_NOTICE,
        version=hoofbeat.__version__,
        subtitle=f"{count_of(len(artefacts), 'artefact')}: {', '.join(kinds)}.",
        notes=tuple(notes),
        cards=_cards(parts),
        models=_models(artefacts),
        blocks=tuple(blocks),
    )


def _parts(artefacts: Sequence[Artefact], planted: Planted | None) -> list[Part]:
    placed: dict[str, list[tuple[str, Artefact]]] = {kind: [] for kind in KINDS}
    for artefact in artefacts:
        of_kind = placed[artefact.manifest.kind]
        of_kind.append((f"{artefact.manifest.kind}-{len(of_kind) + 1}", artefact))
    judged = {ref.sha256 for _, artefact in placed["judgments"] for ref in artefact.manifest.inputs}
    parts = [corpus_part(artefact, prefix) for prefix, artefact in placed["corpus"]]
    parts += [stats_part(artefact, prefix) for prefix, artefact in placed["stats"]]
    parts += [benchmark_part(artefact, prefix) for prefix, artefact in placed["benchmark"]]
    parts += rankings_parts(placed["rankings"])
    parts += [run_part(artefact, prefix, artefact.reference().sha256 in judged) for prefix, artefact in placed["run"]]
    parts += judgments_parts(placed["judgments"])
    parts += [audit_part(artefact, prefix, planted) for prefix, artefact in placed["audit"]]
    return parts


def _cards(parts: Sequence[Part]) -> tuple[Card, ...]:
    """The key figures, the findings' before the counts'."""
    last_first = [card for part in parts for card in part.cards]
    counts = [card for card in last_first if card.label.startswith(_COUNTS)]
    return tuple([card for card in last_first if card not in counts] + counts)[:_CARDS]


def _models(artefacts: Sequence[Artefact]) -> tuple[tuple[str, str], ...]:
    """Each role and the models that filled it."""
    roles: dict[str, dict[str, None]] = {}
    for artefact in artefacts:
        for role, identity in artefact.manifest.models.items():
            roles.setdefault(role, {})[model_name(identity)] = None
    return tuple((role, ", ".join(names)) for role, names in roles.items())


def _named(items: Sequence[T], suffix: str) -> dict[str, T]:
    """A file name for each, safe and used once."""
    named: dict[str, T] = {}
    for item in items:
        stem, number = slug(item.name), 1
        while (name := f"{stem}.{suffix}" if number == 1 else f"{stem}-{number}.{suffix}") in named:
            number += 1
        named[name] = item
    return named
