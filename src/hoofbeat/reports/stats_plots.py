"""The plots of a corpus: its funnel, and how it spreads over specialties, years and venues; for reports and for files.

`funnel_svg` and `stats_svg` give a whole SVG file as text: it brings its colours for light and dark, and needs nothing
else to be seen.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from msgspec import Struct

from hoofbeat.corpus.funnel import FunnelStep
from hoofbeat.corpus.stats import UNKNOWN, CorpusStats, Share
from hoofbeat.reports.charts import (
    WIDE,
    CountBar,
    FunnelBar,
    count_bars,
    funnel_bars,
    sheet,
    standalone,
    year_columns,
)
from hoofbeat.reports.section import ChartRenderer
from hoofbeat.reports.tables import count_of

FUNNEL_TITLE = "Documents through the filters"

_TITLES = {
    "year": "Years",
    "venue": "Venues",
    "licence": "Licences",
    "kind": "Kinds of documents",
    "language": "Languages",
    "figures": "Figures in a document",
}
_YEAR = re.compile(r"[0-9]{1,4}")
_BARS = 40
_FEWER = {"venue": 15, "figures": 15}
"""How many bars are drawn of a table that can be long; the rest is one bar."""


class StatsPlot(Struct, frozen=True, kw_only=True):
    """One table of the statistics: its rows, and how to draw them."""

    name: str
    title: str
    caption: str
    head: str
    rows: tuple[Share, ...]
    draw: ChartRenderer

    @property
    def single(self) -> bool:
        """Whether all documents have one and the same value, so that there is nothing to see."""
        return len(self.rows) < 2


def funnel_plot(steps: Sequence[FunnelStep]) -> ChartRenderer:
    """The funnel as a chart that can be drawn at any width."""
    stages = [FunnelBar(step.step, step.came, step.kept) for step in steps]
    return partial(funnel_bars, stages, title=FUNNEL_TITLE)


def stats_plots(stats: CorpusStats) -> list[StatsPlot]:
    """Every table of the statistics with its chart: the specialties by scheme, then year, venue and the others."""
    plots = [
        _plot(f"specialty-{name}", f"Specialties: {_scheme(name)}", "specialty", rows, stats.documents)
        for name, rows in stats.specialties.items()
    ]
    for name, rows in stats.tables.items():
        plots.append(_plot(name, _TITLES.get(name, name.capitalize()), name, rows, stats.documents))
    return plots


def funnel_svg(steps: Sequence[FunnelStep]) -> str:
    """The funnel of a filtered corpus (`read_funnel`) as an SVG file."""
    if steps:
        title = f"{FUNNEL_TITLE}: {steps[-1].kept:,} of {steps[0].came:,} stay"
    else:
        title = f"{FUNNEL_TITLE}: none were applied"
    return standalone(sheet([("", funnel_plot(steps)(width=WIDE))], title=title))


def stats_svg(stats: CorpusStats) -> str:
    """The statistics of a corpus as an SVG file: a chart for each table that has more than one value."""
    charts = [(plot.title, plot.draw(width=WIDE)) for plot in stats_plots(stats) if not plot.single]
    return standalone(sheet(charts, title=f"What the corpus holds: {count_of(stats.documents, 'document')}"))


def _plot(name: str, title: str, head: str, rows: tuple[Share, ...], total: int) -> StatsPlot:
    caption = f"Documents by {'number of figures' if name == 'figures' else head}"
    caption += f" ({title.partition(': ')[2]})" if head == "specialty" else ""
    draw: ChartRenderer
    if name == "year" and all(row.value == UNKNOWN or _YEAR.fullmatch(row.value) for row in rows):
        years = {int(row.value): row.documents for row in rows if row.value != UNKNOWN}
        unknown = sum(row.documents for row in rows if row.value == UNKNOWN)
        draw = partial(year_columns, years, unknown=unknown, title=caption)
    else:
        draw = partial(count_bars, _tallies(name, rows), total=total, title=caption)
    return StatsPlot(name=name, title=title, caption=caption, head=head, rows=rows, draw=draw)


def _tallies(name: str, rows: Sequence[Share]) -> list[CountBar]:
    """The rows as bars; of a long table the first ones, then all the rest as one, then what is unknown."""
    known = [row for row in rows if row.value != UNKNOWN]
    most = _FEWER.get(name, _BARS)
    shown = known if len(known) <= most + 1 else known[:most]
    tallies = [CountBar(row.value, row.documents) for row in shown]
    if rest := known[len(shown) :]:
        label = f"{rest[0].value} and more" if name == "figures" else f"{len(rest):,} more"
        tallies.append(CountBar(label, sum(row.documents for row in rest), rest=True))
    return tallies + [CountBar(UNKNOWN, row.documents, quiet=True) for row in rows if row.value == UNKNOWN]


def _scheme(name: str) -> str:
    """What a scheme that ships is called; one of the user's own goes by its name, and no file is read for it."""
    # Only plots of specialties need the vocabularies.
    from hoofbeat.corpus.specialties import SCHEMES, load_scheme  # noqa: PLC0415

    return load_scheme(name).title if name in SCHEMES else name
