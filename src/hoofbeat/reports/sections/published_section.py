"""Figures that papers published, marked as theirs, and ours beside them where the two may be compared.

The figures are in `data/published.toml`, each with the table it is from. Ours are in one table with theirs only where
they were measured over the same number of questions, by the same kind of protocol and by the same scorer. All other
figures of ours of the same measure have a table of their own, with the reason.
"""

from __future__ import annotations

import re
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
    "Rows marked “published” are copied from papers. Prompts, models and judges differ from ours, so a published row "
    "is a point of reference only, and no difference to ours was tested. Ours are in the same table only where the "
    "same number of questions was asked in the same way. The others are in separate tables, with the reason."
)

_NONE_OF_OURS = " This report has no figure that can be compared with these."
_OURS = 12


class PaperTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table of a paper: rows of system, condition, figure, then the standard deviation or both ends of an interval.

    Figures are as printed; `per` is what they are a part of (100 for percent). `measure` is what ours are called;
    `protocol` and `book` say which of ours were made in the same way (free text or choice, closed or open book). `n` is
    the number of questions and `scorer` a part of the scorer's name: ours are comparable if both are the same, never
    where `n` is 0. A table by set has a figure for each of `columns`, and in `sizes` the questions of each set.
    """

    table: str
    caption: str
    measure: str
    form: Form
    rows: tuple[tuple[str, ...], ...]
    per: float = 1.0
    protocol: Literal["", "free text", "choice"] = ""
    book: Literal["", "closed", "open"] = ""
    n: int = 0
    scorer: str = ""
    columns: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()

    def takes(self, row: OwnFigure) -> bool:
        """Whether this figure of ours belongs beside the paper's."""
        return (
            row.measure == self.measure
            and self.protocol in {"", "choice" if row.protocol else "free text"}
            and self.book in {"", "closed" if row.closed else "open"}
        )

    def objection(self, row: OwnFigure) -> str:
        """Why a figure of ours can't be compared with the paper's; empty where it can."""
        if self.scorer and self.scorer not in row.scorer:
            return f"scored by {row.scorer or 'another scorer'}, not by {self.scorer}"
        n = self.n
        if self.columns:
            place = self.place(row.condition)
            n = 0 if place is None else self.sizes[place]
        if row.n != n:
            return f"{row.n:,} questions; the paper has {n:,}" if n else "not measured over the paper's items"
        return ""

    def place(self, name: str) -> int | None:
        """The column of a set, however its name is spelled."""
        plain = [_plain(each) for each in self.columns]
        return plain.index(_plain(name)) if _plain(name) in plain else None

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
        for number, table in enumerate(paper.tables, start=1):
            blocks += _tables(f"published-{name}-{number}", paper, table, ours)
    return Chapter(title="Published figures", id="published", blocks=tuple(blocks))


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).lower()


def _height(row: OwnFigure) -> float:
    value = row.value[0] if isinstance(row.value, tuple) else row.value
    return value if isinstance(value, int | float) else 0.0


def _tables(name: str, paper: Paper, table: PaperTable, ours: Sequence[OwnFigure]) -> list[Block]:
    """The paper's table with ours that may be compared, then ours that may not."""
    mine = sorted((row for row in ours if table.takes(row)), key=_height, reverse=True)
    beside = [row for row in mine if not table.objection(row)]
    named = [row for row in mine if not table.columns or table.place(row.condition) is not None]
    apart = [row for row in named if table.objection(row)]
    made = _by_set(name, paper, table, beside) if table.columns else _table(name, paper, table, beside)
    blocks: list[Block] = [folded(made, 30)]
    if apart:
        blocks.append(folded(_apart(f"{name}-ours", paper, table, apart), _OURS))
    return blocks


def _form(table: PaperTable) -> Form:
    decimals = max(len(printed.partition(".")[2]) for _, _, printed, *_ in table.rows)
    return "hundredths" if table.form == "share" and decimals > 1 else table.form


def _caption(paper: Paper, table: PaperTable, ours: bool) -> str:
    return f"{table.caption}: published by {paper.title}" + (" and ours" if ours else "")


def _table(name: str, paper: Paper, table: PaperTable, all_ours: Sequence[OwnFigure]) -> Table:
    mine, form = all_ours[:_OURS], _form(table)
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
    beside = "" if mine else _NONE_OF_OURS
    beside += f" The {_OURS} highest of our {len(all_ours)} figures." if len(all_ours) > _OURS else ""
    columns = (
        *columns_of("origin | model | condition"),
        Column(table.measure, form),
        Column("sd", form),
        *columns_of("n:count | unscored:count"),
    )
    filled = [place for place in range(len(columns)) if any(row[place] not in (None, "") for row in rows)]
    return Table(
        name=name,
        caption=_caption(paper, table, bool(mine)),
        n=len(rows),
        unit="figures",
        columns=tuple(columns[place] for place in filled),
        rows=tuple(tuple(row[place] for place in filled) for row in rows),
        note=f"Prompts, models and judges differ.{beside}",
    )


def _by_set(name: str, paper: Paper, table: PaperTable, ours: Sequence[OwnFigure]) -> Table:
    """One column for each set of the paper; a line of ours has a figure for each set that it was measured on."""
    lines: dict[str, dict[int, Cell]] = {}
    for row in ours:
        place = table.place(row.condition)
        if place is not None:
            lines.setdefault(row.model, {})[place] = row.value
    rows: list[tuple[Cell, ...]] = [
        ("this report", model, *(found.get(place) for place in range(len(table.columns))))
        for model, found in lines.items()
    ]
    for system, _, *printed in table.rows:
        rows.append((f"published, {table.table}", system, *(float(each) / table.scale for each in printed)))
    return Table(
        name=name,
        caption=_caption(paper, table, bool(lines)),
        n=len(rows),
        unit="systems",
        columns=(*columns_of("origin | model"), *(Column(each, _form(table)) for each in table.columns)),
        rows=tuple(rows),
        note="Ours are shown for a set where all of its questions were asked." + ("" if lines else _NONE_OF_OURS),
    )


def _apart(name: str, paper: Paper, table: PaperTable, ours: Sequence[OwnFigure]) -> Table:
    return Table(
        name=name,
        caption=f"{table.caption}: ours, not comparable with {paper.title}'s",
        n=len(ours),
        unit="figures",
        columns=(
            *columns_of("model | condition"),
            Column(table.measure, _form(table)),
            *columns_of("n:count | unscored:count | why not"),
        ),
        rows=tuple((row.model, row.condition, row.value, row.n, row.unscored, table.objection(row)) for row in ours),
    )


def _build(report: ReportInputs) -> list[Chapter]:
    names = report.options.published
    ours = [figure for chapter in report.chapters for figure in chapter.figures]
    return [published_chapter(names, ours)] if names else []


SECTION = ReportSection(
    name="published", summary="figures that papers published, beside ours (--published)", order=130, build=_build
)
