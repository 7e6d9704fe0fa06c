"""What a section of a report is: one file that turns artefacts of some kinds into chapters.

`hoofbeat.reports.sections` has the built-in ones; a plugin file with one more object of the class `ReportSection` adds
another, for a kind that exists or for one that the plugin's author writes. The report calls the sections in their order
and puts their chapters one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

from msgspec import Struct

from hoofbeat.facets import FacetTally
from hoofbeat.progress import SILENT, Progress
from hoofbeat.registry import registry
from hoofbeat.reports.charts import NARROW, WIDE, Bar, interval_bars
from hoofbeat.reports.model import Block, Card, Chart, Details, Heading, Lead, PlainSummary
from hoofbeat.reports.tables import MIN_OBSERVATIONS, Cell, Column, Form, Table, columns_of, count_of, written
from hoofbeat.store import Artefact, InputRef
from hoofbeat.text import cut

if TYPE_CHECKING:
    from hoofbeat.audit.case_records import CaseDecision

PlacedArtefact = tuple[str, Artefact]
"""An artefact and the prefix of all ids of its chapter, such as `corpus-1`."""

PlantedLabels = Mapping[tuple[str, str, str], str]
"""The label planted for (question, source, other source)."""


class OwnFigure(Struct, frozen=True, kw_only=True):
    """One of our figures, for a table that sets a paper's beside it.

    Both are matched by `measure` and, where the paper's table asks for it, by `protocol` and whether the book is
    `closed`. `n` counts questions, and `scorer` names what gave a measured score: only the same of both are comparable.
    """

    measure: str
    model: str
    condition: str
    value: Cell
    n: int
    unscored: int = 0
    protocol: str = ""
    closed: bool = False
    scorer: str = ""


class Chapter(Struct, frozen=True, kw_only=True):
    """One chapter of a report: its title and anchor, its blocks, and what the first screen says of it.

    `leads` are sentences, the most important first; those of a `background` chapter (documents, questions) give way to
    findings. `subject` is the title of a report with this chapter only. `opening` comes before the report's key
    figures. `files` (name, content) are written beside the page; `figures` can be set beside published ones.
    `summary` is the chapter in plain sentences, for one page.
    """

    title: str
    id: str
    blocks: tuple[Block, ...]
    subject: str = ""
    opening: tuple[Block, ...] = ()
    cards: tuple[Card, ...] = ()
    leads: tuple[Lead, ...] = ()
    notes: tuple[str, ...] = ()
    files: tuple[tuple[str, bytes], ...] = ()
    figures: tuple[OwnFigure, ...] = ()
    background: bool = False
    summary: PlainSummary | None = None

    def all_blocks(self) -> tuple[Block, ...]:
        """The heading and what follows it."""
        return Heading(self.title, self.id), *self.blocks


class ReportOptions(Struct, frozen=True, kw_only=True):
    """What a report shows beside its artefacts: papers by name, files of error labels, the bootstrap of mean ± sd.

    `decisions` is what a team decided on disagreements of audits, every version of it; None where nothing is given.
    """

    published: tuple[str, ...] = ()
    errors: tuple[Path, ...] = ()
    decisions: tuple[CaseDecision, ...] | None = None
    decision_files: tuple[InputRef, ...] = ()
    draws: int = 8
    size: int = 500


class ReportInputs(Struct, frozen=True, kw_only=True):
    """What a section can use: the artefacts, the options, planted labels, and the chapters that precede it."""

    artefacts: Mapping[str, Sequence[PlacedArtefact]]
    options: ReportOptions
    planted: PlantedLabels | None = None
    progress: Progress = SILENT
    chapters: Sequence[Chapter] = ()

    def of(self, *kinds: str) -> list[PlacedArtefact]:
        """The artefacts of these kinds, each with the prefix of its ids."""
        return [placed for kind in kinds for placed in self.artefacts.get(kind, ())]


class ReportSection(Struct, frozen=True, kw_only=True):
    """One section: which kinds of artefacts it shows, its place among the sections, and how its chapters are built.

    It is built where the report holds an artefact of one of its `kinds`; one without kinds is built in every report and
    decides itself.
    """

    extension_kind: ClassVar[str] = "section"
    extension_package: ClassVar[str] = "hoofbeat.reports.sections"

    name: str
    summary: str
    order: int
    build: Callable[[ReportInputs], Sequence[Chapter]]
    kinds: tuple[str, ...] = ()


def chapter_per_artefact(
    kind: str, chapter: Callable[[Artefact, str], Chapter]
) -> Callable[[ReportInputs], list[Chapter]]:
    """A section's `build` that makes one chapter of each artefact of a kind, from the artefact and its prefix."""
    return lambda report: [chapter(artefact, prefix) for prefix, artefact in report.of(kind)]


def sections() -> list[ReportSection]:
    """All sections in the order of the report."""
    return sorted(registry.all(ReportSection), key=lambda each: (each.order, each.name))


def report_kinds() -> tuple[str, ...]:
    """The kinds of artefacts that a report can show, in the order of its sections."""
    return tuple(dict.fromkeys(kind for section in sections() for kind in section.kinds))


_REASONS = 6
_CHARTED = 12


class ChartRenderer(Protocol):
    """A chart that can be drawn at any width."""

    def __call__(self, *, width: int) -> str:
        """Draw it."""
        ...


def figure(name: str, caption: str, draw: ChartRenderer) -> Chart:
    """A chart for the page and for the phone."""
    return Chart(name=name, caption=caption, wide=draw(width=WIDE), narrow=draw(width=NARROW))


def spread(interval: tuple[float, float] | None, form: Form, n: str, method: str = "") -> str:
    """The small print of a key figure: its interval, by which method, and n."""
    count = f"n\u00a0=\u00a0{n}"
    if interval is None or not all(map(isfinite, interval)):
        return count
    return f"95% {method or 'interval'} {written(interval, form)}, {count}"


def share_in_words(count: int, of: int, interval: tuple[float, float] | None = None, noun: str = "") -> str:
    """`19 of 20 answers (95.0%, 95% interval 76.4–99.1%)`; of fewer than five, only `1 of 3 answers`."""
    words = f"{count:,} of {count_of(of, noun) if noun else f'{of:,}'}"
    if of < MIN_OBSERVATIONS:
        return words
    sure = f", 95% interval {written(interval, 'share')}" if interval and all(map(isfinite, interval)) else ""
    return f"{words} ({written(count / of, 'share')}{sure})"


def counted(
    name: str, caption: str, head: str, counts: Iterable[tuple[str, int]], total: int, unit: str, note: str = ""
) -> Table:
    """How often each thing was seen, with its share of the total."""
    rows = tuple((label, count, count / total if total else None) for label, count in counts)
    columns = (Column(head), *columns_of("count:count | share:share"))
    return Table(name=name, caption=caption, n=total, unit=unit, columns=columns, rows=rows, note=note)


def facet_blocks(tally: FacetTally, prefix: str, unit: str) -> list[Block]:
    """How items spread over their facets: the first as a chart, the rest behind a line."""
    blocks: list[Block] = []
    for place, (name, ordered) in enumerate(tally.counts().items()):
        table = counted(f"{prefix}-{name}", f"{unit.capitalize()} by {name}", name, ordered, tally.total, unit)
        if place or len(ordered) > _CHARTED:
            blocks.append(Details(f"{table.caption} ({len(ordered)})", (table,)))
            continue
        bars = [Bar(label=label, value=count) for label, count in ordered]
        draw = partial(interval_bars, bars, title=table.caption, form="count")
        chart = figure(f"{prefix}-{name}", f"{table.caption}.", draw)
        blocks += [chart, Details(f"{table.caption} as a table", (table,))]
    return blocks


def reasons_text(reasons: Mapping[str, int]) -> str:
    """Reasons with their counts in one line, the most frequent first; what is too long to read is only counted."""
    ordered = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    rest = len(ordered) - _REASONS
    told = [f"{count:,} {cut(reason, 80)}" for reason, count in ordered[:_REASONS]]
    return "; ".join([*told, f"and {rest:,} other reasons"] if rest > 0 else told)
