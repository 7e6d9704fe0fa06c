"""What the sections of a report share: their shape, charts drawn for page and phone, counts and reasons in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Protocol

from hoofbeat.facets import FacetTally
from hoofbeat.reports.charts import NARROW, WIDE, Bar, interval_bars
from hoofbeat.reports.model import Block, Chart, Details
from hoofbeat.reports.tables import Column, Table
from hoofbeat.reports.words import Form, written
from hoofbeat.text import cut

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
    return (
        f"95% {method or 'interval'} {written(interval, form)}, n\u00a0=\u00a0{n}" if interval else f"n\u00a0=\u00a0{n}"
    )


def counted(
    name: str, caption: str, head: str, counts: Iterable[tuple[str, int]], total: int, unit: str, note: str = ""
) -> Table:
    """How often each thing was seen, with its share of the total."""
    rows = tuple((label, count, count / total if total else None) for label, count in counts)
    columns = (Column(head), Column("count", "count"), Column("share", "share"))
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
