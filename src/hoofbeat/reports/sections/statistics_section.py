"""The statistics of a corpus in a report: the tables and plots that papers print about their documents."""

from __future__ import annotations

from collections.abc import Sequence

from hoofbeat.corpus.stats import NO_TOKENIZER, UNKNOWN, CorpusStats, Quantiles
from hoofbeat.errors import InputError
from hoofbeat.reports.model import Block, Card, Details, Heading, Notice, Text
from hoofbeat.reports.section import Chapter, ReportSection, chapter_per_artefact, counted, figure
from hoofbeat.reports.stats_plots import StatsPlot, stats_plots
from hoofbeat.reports.tables import Column, Table, count_of, written
from hoofbeat.store import Artefact
from hoofbeat.store.tables import read_jsonl

_LISTED = 200
_BY_RULE = "Specialties are labelled by rule; a document whose evidence is weak counts as unknown."


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
    return Chapter(title=f"Statistics: {name}", id=prefix, blocks=tuple(blocks), cards=_cards(stats, name))


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
        note="75th and 95th are percentiles: so many in a hundred documents are no longer than this.",
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
    return [Text(" ".join(told)), Details("These as tables", tables)]


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
    summary="lengths, years, journals, specialties and figures of a corpus, as papers print them",
    order=20,
    kinds=("stats",),
    build=chapter_per_artefact("stats", stats_chapter),
)
