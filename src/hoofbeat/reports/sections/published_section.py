"""Figures that papers published, beside ours and marked as theirs.

The figures stand in `data/published.toml`, each with the table it is from. They are references, not results: papers
asked other questions, of other models, in other words.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Literal

import msgspec
from msgspec import Struct

from hoofbeat.errors import UsageError
from hoofbeat.reports.model import Block, Heading, Notice, Text
from hoofbeat.reports.section import Chapter, OwnFigure, ReportInputs, ReportSection
from hoofbeat.reports.sections.scores.accuracy_table import folded
from hoofbeat.reports.tables import Cell, Column, Form, Table, columns_of

_NOTICE = (
    "Rows marked “published” are copied from papers. Questions, prompts, models and judges differ from ours, so a row "
    "of theirs is a point of reference, and no difference between theirs and ours was tested."
)

_OURS = 12


class PaperTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table of a paper: rows of system, condition, figure, then the standard deviation or both ends of an interval.

    Figures are as printed; `per` is what they are a part of (100 for percent). `measure` is what ours are called;
    `protocol` and `book` say which of ours were made in the same way (free text or choice, closed or open book).
    """

    table: str
    caption: str
    measure: str
    form: Form
    rows: tuple[tuple[str, ...], ...]
    per: float = 1.0
    protocol: Literal["", "free text", "choice"] = ""
    book: Literal["", "closed", "open"] = ""

    def takes(self, row: OwnFigure) -> bool:
        """Whether this figure of ours belongs beside the paper's."""
        return (
            row.measure == self.measure
            and self.protocol in {"", "choice" if row.protocol else "free text"}
            and self.book in {"", "closed" if row.closed else "open"}
        )

    @property
    def scale(self) -> float:
        """What a printed figure is divided by."""
        return 100.0 if self.form == "share" else self.per


class Paper(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A paper and those of its tables that are kept."""

    title: str
    source: str
    questions: str
    protocol: str
    tables: tuple[PaperTable, ...]


@cache
def papers() -> dict[str, Paper]:
    """Every paper by its name."""
    text = (resources.files("hoofbeat.reports") / "data" / "published.toml").read_text("utf-8")
    return {name: msgspec.convert(value, Paper) for name, value in tomllib.loads(text).items()}


def check_papers(names: Sequence[str]) -> None:
    """Refuse the name of a paper whose figures are not kept."""
    unknown = [name for name in names if name not in papers()]
    if unknown:
        raise UsageError(f"there are no published figures of {unknown[0]!r}", fix=f"there are: {', '.join(papers())}")


def published_chapter(names: Sequence[str], ours: Sequence[OwnFigure]) -> Chapter:
    """The chapter on these papers' figures, with ours of the same measure above them."""
    check_papers(names)
    blocks: list[Block] = [Notice(_NOTICE)]
    for name in dict.fromkeys(names):
        paper = papers()[name]
        blocks += [
            Heading(paper.title, f"published-{name}", 3),
            Text(f"{paper.source}. {paper.questions}; {paper.protocol}."),
        ]
        blocks += [
            folded(_table(f"published-{name}-{number}", paper, table, ours), 30)
            for number, table in enumerate(paper.tables, start=1)
        ]
    return Chapter(title="Published figures", id="published", blocks=tuple(blocks))


def _height(row: OwnFigure) -> float:
    value = row.value[0] if isinstance(row.value, tuple) else row.value
    return value if isinstance(value, int | float) else 0.0


def _table(name: str, paper: Paper, table: PaperTable, ours: Sequence[OwnFigure]) -> Table:
    all_ours = sorted((row for row in ours if table.takes(row)), key=_height, reverse=True)
    mine = all_ours[:_OURS]
    decimals = max(len(printed.partition(".")[2]) for _, _, printed, *_ in table.rows)
    form: Form = "hundredths" if table.form == "share" and decimals > 1 else table.form
    rows: list[tuple[Cell, ...]] = [
        ("this report", row.model, row.condition, row.value, None, row.n, row.unscored) for row in mine
    ]
    origin = f"published, {table.table}"
    for system, condition, printed, *spread in table.rows:
        numbers = [float(each) / table.scale for each in spread]
        value: Cell = float(printed) / table.scale if printed else None
        sd: Cell = numbers[0] if len(numbers) == 1 else None
        if len(numbers) == 2:
            value = (numbers[0], numbers[1]) if not isinstance(value, float) else (value, numbers[0], numbers[1])
        rows.append((origin, system, condition, value, sd, None, None))
    beside = "" if mine else " This report holds no figure of this kind."
    beside += f" The {_OURS} highest of our {len(all_ours)} figures." if len(all_ours) > _OURS else ""
    return Table(
        name=name,
        caption=f"{table.caption}: published by {paper.title}" + (" and ours" if mine else ""),
        n=len(mine),
        unit="figures of this report",
        columns=(
            *columns_of("origin | model | condition"),
            Column(table.measure, form),
            Column("sd", form),
            *columns_of("n:count | unscored:count"),
        ),
        rows=tuple(rows),
        note=f"Protocol, questions and models differ.{beside}",
    )


def _build(report: ReportInputs) -> list[Chapter]:
    names = report.options.published
    ours = [figure for chapter in report.chapters for figure in chapter.figures]
    return [published_chapter(names, ours)] if names else []


SECTION = ReportSection(
    name="published", summary="figures that papers published, beside ours (--published)", order=80, build=_build
)
