"""A report as data: what stands in it, in order, before anyone decides how it looks.

Sections of a report are built as these blocks; HTML, Markdown and CSV are written from the same blocks, so that they
never tell different stories. All text is plain text: no block carries markup, except charts, which are SVG of our own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

from msgspec import Struct

from hoofbeat.reports.words import Form

__all__ = [
    "AnswerView",
    "Block",
    "Card",
    "Cell",
    "Chart",
    "Column",
    "Columns",
    "Details",
    "Entry",
    "Heading",
    "Notice",
    "PairView",
    "PassageView",
    "QuestionView",
    "Report",
    "Table",
    "Text",
    "Verdict",
    "Viewer",
    "charts_in",
    "tables_in",
]

Cell = str | int | float | tuple[float, float] | tuple[float, float, float] | None
"""A table's cell; a pair of numbers is a range, three a value with its interval, None a figure that has no value."""

Verdict = Literal["right", "wrong", "unscored", "plain"]


class Heading(Struct, frozen=True):
    """A heading of level 2 or 3; `id` is its anchor. One that is not `listed` is left out of the contents."""

    kind: ClassVar[str] = "heading"
    text: str
    id: str
    level: int = 2
    listed: bool = True


class Text(Struct, frozen=True):
    """A paragraph, or with `label` a labelled one; line breaks are kept."""

    kind: ClassVar[str] = "text"
    text: str
    label: str = ""


class Notice(Struct, frozen=True):
    """A sentence that must not be overlooked: nothing to show, something left out, a reason for care."""

    kind: ClassVar[str] = "notice"
    text: str


class Card(Struct, frozen=True, kw_only=True):
    """A key figure: what it is, its value, and below it its interval and n."""

    label: str
    value: str
    detail: str = ""


class Column(Struct, frozen=True):
    """A column of a table and how its numbers are written."""

    title: str
    form: Form = "text"


class Table(Struct, frozen=True, kw_only=True):
    """A table. `name` is the stem of its CSV file, `n` how many of `unit` it speaks of.

    `links` holds an anchor (`#...`) for each row, or an empty string; it may be left out.
    """

    kind: ClassVar[str] = "table"
    name: str
    caption: str
    n: int
    unit: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    links: tuple[str, ...] = ()
    note: str = ""


class Chart(Struct, frozen=True, kw_only=True):
    """A chart as SVG, drawn for a wide page and, where that would be too small on a phone, again for a narrow one."""

    kind: ClassVar[str] = "chart"
    name: str
    caption: str
    wide: str
    narrow: str = ""


class Columns(Struct, frozen=True):
    """Blocks side by side where there is room."""

    kind: ClassVar[str] = "columns"
    blocks: tuple[Block, ...]


class Details(Struct, frozen=True):
    """Blocks behind a line that opens them."""

    kind: ClassVar[str] = "details"
    summary: str
    blocks: tuple[Block, ...]


class PassageView(Struct, frozen=True, kw_only=True):
    """A piece of a document: evidence for a gold answer, or what a model was shown.

    Where the words around it are known, the text is marked between them.
    """

    source: str
    text: str
    before: str = ""
    after: str = ""


class QuestionView(Struct, frozen=True, kw_only=True):
    """A question with its case, options, gold answer and the evidence for it."""

    kind: ClassVar[str] = "question"
    text: str
    context: str = ""
    options: tuple[str, ...] = ()
    gold: str = ""
    evidence: tuple[PassageView, ...] = ()


class AnswerView(Struct, frozen=True, kw_only=True):
    """One answer: who gave it and how, its verdict in words, the judge's reasoning, and the passages shown."""

    kind: ClassVar[str] = "answer"
    system: str
    verdict: Verdict
    verdict_text: str
    text: str
    reasoning: str = ""
    judge: str = ""
    judge_reasoning: str = ""
    passages: tuple[PassageView, ...] = ()
    failure: str = ""


class PairView(Struct, frozen=True, kw_only=True):
    """Two sources on one question: how they relate, why, and what each says. `tone` is the label's place in order."""

    kind: ClassVar[str] = "pair"
    id: str
    a: str
    b: str
    label: str
    tone: int
    facts: tuple[str, ...] = ()
    reasoning: str = ""
    answer_a: str = ""
    answer_b: str = ""


class Entry(Struct, frozen=True, kw_only=True):
    """One item of a viewer: a line that opens; `marks` (text, tone) stand on it, `states` are what it is found by."""

    id: str
    name: str
    title: str
    marks: tuple[tuple[str, str], ...] = ()
    states: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = ()


class Viewer(Struct, frozen=True, kw_only=True):
    """A list of items that can be searched and filtered by state; `left_out` items did not fit."""

    kind: ClassVar[str] = "viewer"
    id: str
    noun: str
    entries: tuple[Entry, ...]
    left_out: int = 0


Block = Heading | Text | Notice | Table | Chart | Columns | Details | QuestionView | AnswerView | PairView | Viewer


class Report(Struct, frozen=True, kw_only=True):
    """A whole report: the first screen, then blocks in order."""

    title: str
    notice: str
    version: str
    subtitle: str = ""
    notes: tuple[str, ...] = ()
    cards: tuple[Card, ...] = ()
    models: tuple[tuple[str, str], ...] = ()
    blocks: tuple[Block, ...] = ()

    @property
    def headings(self) -> tuple[Heading, ...]:
        """The listed headings in order: the table of contents."""
        return tuple(block for block in self.blocks if isinstance(block, Heading) and block.listed)


def tables_in(blocks: Sequence[Block]) -> Iterator[Table]:
    """Every table, however deep, in order."""
    for block in blocks:
        if isinstance(block, Table):
            yield block
        yield from tables_in(_inside(block))


def charts_in(blocks: Sequence[Block]) -> Iterator[Chart]:
    """Every chart outside of viewers, in order."""
    for block in blocks:
        if isinstance(block, Chart):
            yield block
        elif not isinstance(block, Viewer):
            yield from charts_in(_inside(block))


def _inside(block: Block) -> tuple[Block, ...]:
    match block:
        case Columns() | Details():
            return block.blocks
        case Viewer():
            return tuple(inner for entry in block.entries for inner in entry.blocks)
        case _:
            return ()
