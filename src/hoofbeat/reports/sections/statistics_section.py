"""The figures of a corpus in a report, and the plots of a corpus: its funnel, specialties, years and venues.

`funnel_svg` and `stats_svg` give a whole SVG file as text: it brings its colours for light and dark, and needs nothing
else to be seen.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from msgspec import Struct

from hoofbeat.corpus.funnel import FunnelStep
from hoofbeat.corpus.stats import NO_TOKENIZER, UNKNOWN, CorpusStats, Quantiles, Share
from hoofbeat.errors import InputError
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
from hoofbeat.reports.model import Block, Card, Details, Heading, Lead, Notice, Text
from hoofbeat.reports.section import Chapter, ChartRenderer, ReportSection, chapter_per_artefact, counted, figure
from hoofbeat.reports.tables import Column, Table, count_of, written
from hoofbeat.store import Artefact
from hoofbeat.store.tables import read_jsonl

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


_LISTED = 200
_BY_RULE = "Specialties are labelled by rule; a document with weak evidence counts as unknown."


def stats_chapter(artefact: Artefact, prefix: str) -> Chapter:
    """The chapter on the statistics of one corpus."""
    path = artefact.file("stats.jsonl")
    stats = next(read_jsonl(path, CorpusStats), None)
    if stats is None:
        raise InputError("the statistics are empty", where=str(path), fix="make them again: hoofbeat corpus stats")
    name = _corpus_name(artefact)
    blocks: list[Block] = [Text(_opening(stats))]
    if not stats.documents:
        blocks.append(Notice("No documents were counted."))
    else:
        plots = stats_plots(stats)
        blocks += [_lengths(stats, prefix), *_plain(plots, stats.documents, prefix)]
        for plot in plots:
            if not plot.single:
                blocks += _blocks(plot, stats.documents, prefix)
    cards = _cards(stats, name)
    median = f" of {cards[0].value} each (median)" if cards else ""
    leads = (Lead(f"{name} has {count_of(stats.documents, 'document')}{median}.", f"#{prefix}", "See the figures"),)
    return Chapter(
        title=f"Statistics: {name}", id=prefix, blocks=tuple(blocks), cards=cards, leads=leads, background=True
    )


def _corpus_name(artefact: Artefact) -> str:
    corpora = [ref.name for ref in artefact.manifest.inputs if ref.kind == "corpus"]
    return corpora[0] if len(corpora) == 1 else artefact.path.name


def _opening(stats: CorpusStats) -> str:
    words = f"{count_of(stats.documents, 'document')}."
    if stats.tokenizer != NO_TOKENIZER:
        words += f" Tokens are those of {stats.tokenizer}."
    return f"{words} {_BY_RULE}" if stats.specialties else words


def _cards(stats: CorpusStats, name: str) -> tuple[Card, ...]:
    words = stats.lengths.get("words")
    if words is None:
        return ()
    value = f"{written(words.median, 'amount')} words"
    return (Card(label=f"Median length: {name}", value=value, detail=f"n\u00a0=\u00a0{stats.documents:,} documents"),)


def _lengths(stats: CorpusStats, prefix: str) -> Table:
    measured: dict[str, Quantiles] = {**stats.lengths, **({"figures": stats.figures} if stats.figures else {})}
    heads = ("total", "min", "median", "mean", "75th", "95th", "max")
    rows = tuple(
        (unit, each.total, each.minimum, each.median, each.mean, each.p75, each.p95, each.maximum)
        for unit, each in measured.items()
    )
    return Table(
        name=f"{prefix}-lengths",
        caption="Length of a document",
        n=stats.documents,
        unit="documents",
        columns=(Column("unit"), *(Column(head, "amount") for head in heads)),
        rows=rows,
        note="75th and 95th are percentiles: 75% and 95% of the documents are at most this long.",
    )


def _plain(plots: Sequence[StatsPlot], documents: int, prefix: str) -> list[Block]:
    """What is one and the same for all documents, in words; its tables behind a line."""
    single = [plot for plot in plots if plot.single and plot.rows]
    if not single:
        return []
    named = [(plot.title if plot.head == "specialty" else plot.head, plot.rows[0].value) for plot in single]
    same = [f"{name} ({value})" for name, value in named if value != UNKNOWN]
    unknown = [name for name, value in named if value == UNKNOWN]
    told = [f"The same for all documents: {', '.join(same)}."] if same else []
    told += [f"Unknown for all documents: {', '.join(unknown)}."] if unknown else []
    tables = tuple(_table(plot, documents, prefix) for plot in single)
    return [Text(" ".join(told)), Details("The same as tables", tables)]


def _blocks(plot: StatsPlot, documents: int, prefix: str) -> list[Block]:
    table = _table(plot, documents, prefix)
    chart = figure(f"{prefix}-{plot.name}", f"{plot.caption}.", plot.draw)
    return [
        Heading(plot.title.partition(",")[0], f"{prefix}-{plot.name}", 3),
        chart,
        Details(f"As a table ({len(plot.rows):,} rows)", (table,)),
    ]


def _table(plot: StatsPlot, documents: int, prefix: str) -> Table:
    rows = [(row.value, row.documents) for row in plot.rows]
    note = f"The first {_LISTED} of {len(rows):,}; all are in {plot.name}.tsv." if len(rows) > _LISTED else ""
    return counted(f"{prefix}-{plot.name}", plot.caption, plot.head, rows[:_LISTED], documents, "documents", note)


SECTION = ReportSection(
    name="corpus-statistics",
    summary="lengths, years, journals, specialties and figures of a corpus",
    order=220,
    kinds=("stats",),
    build=chapter_per_artefact("stats", stats_chapter),
)
