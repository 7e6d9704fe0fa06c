"""`hoofbeat corpus filter`: a corpus through a row of filters; `hoofbeat corpus aging`: what has stopped being rare."""

from __future__ import annotations

import time
from pathlib import Path

import click

from hoofbeat.benchmarks import Benchmark
from hoofbeat.cli.console import Screen
from hoofbeat.cli.extensions import CommandWithList
from hoofbeat.cli.session import check_file, command_words, find_corpus, json_option, output_option, plot_option
from hoofbeat.corpus.aging import HEADER, Aged, aging_counts, aging_table, refilter
from hoofbeat.corpus.citations import load_citations
from hoofbeat.corpus.corpus import Corpus
from hoofbeat.corpus.filter import CorpusFilter, parse_filters
from hoofbeat.corpus.filters.rare import RarityLimits
from hoofbeat.corpus.funnel import FunnelStep, filter_corpus, funnel_data, read_funnel
from hoofbeat.registry import registry
from hoofbeat.reports.plots import funnel_svg
from hoofbeat.store.files import write_bytes
from hoofbeat.store.tables import write_tsv

__all__ = ["aging_command", "filter_command"]

_LIMITS = RarityLimits()


class _FilterCommand(CommandWithList):
    @staticmethod
    def listing() -> str:
        """The filters, with an example of each."""
        lines = "\n".join(f"  {each.example:<52} {each.summary}" for each in registry.all(CorpusFilter))
        return f"Filters, in the order they are to be applied; `not` before one turns it round:\n{lines}"


@click.command("filter", cls=_FilterCommand)
@click.argument("corpus", type=click.Path(path_type=Path))
@click.option("--keep", "lines", multiple=True, required=True, metavar="FILTER", help="A filter, or several with ; .")
@output_option("filtered")
@click.option("--title", default="", help="Title of the new corpus.")
@plot_option
@json_option
def filter_command(
    corpus: Path, lines: tuple[str, ...], output: Path, title: str, plot: Path | None, as_json: bool
) -> None:
    """Keep the documents of CORPUS that pass every filter, as a new corpus.

    What is rejected is listed with step and reason in rejected.jsonl, the counts in funnel.tsv.
    """
    screen = Screen(as_json=as_json)
    check_file(plot, ".svg")
    steps = [step for line in lines for step in parse_filters(line)]
    artefact = filter_corpus(Corpus.open(corpus), steps, output, title=title, command=command_words(), progress=screen)
    funnel = read_funnel(artefact)
    show_funnel(screen, funnel)
    for step in steps:
        if step.remark is not None:
            screen.say(step.remark(Corpus.open(output).documents()))
    if plot is not None:
        write_bytes(plot, funnel_svg(funnel).encode())
        screen.say(f"plot: {plot}")
    screen.finish(artefact, next_step=("hoofbeat", "corpus", "stats", output), funnel=funnel_data(funnel))


def show_funnel(screen: Screen, funnel: list[FunnelStep]) -> None:
    """The funnel as a table, with the reasons below each step."""
    rows = []
    for step in funnel:
        rows.append([step.step, str(step.came), str(step.kept), str(step.rejected)])
        for reason, count in sorted(step.reasons.items(), key=lambda item: (-item[1], item[0])):
            rows.append([f"  {reason}", "", "", str(count)])
    screen.table(["step", "in", "kept", "rejected"], rows)


@click.command("aging")
@click.argument("benchmark", type=click.Path(path_type=Path))
@click.option("--corpus", "corpus_path", type=click.Path(path_type=Path), help="The documents of the questions.")
@click.option("--citations", type=click.Path(path_type=Path), required=True, help="Newer citations: file or folder.")
@click.option("--before", type=click.Path(path_type=Path), help="Older citations, to compare with.")
@click.option("--year", type=int, default=_LIMITS.year, show_default=True, help="Drop what is from then or before.")
@click.option("--total", type=click.IntRange(0), default=_LIMITS.total, show_default=True, help="Most citing articles.")
@click.option(
    "--other", type=click.IntRange(0), default=_LIMITS.other, show_default=True, help="Most that are no case reports."
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Table to write (TSV).")
@json_option
def aging_command(
    benchmark: Path,
    corpus_path: Path | None,
    citations: Path,
    before: Path | None,
    year: int,
    total: int,
    other: int,
    output: Path | None,
    as_json: bool,
) -> None:
    """List the questions of BENCHMARK whose source documents have stopped being rare."""
    began = time.monotonic()
    screen = Screen(as_json=as_json)
    check_file(output, ".tsv")
    bench = Benchmark.open(benchmark)
    corpus = find_corpus(corpus_path, bench.artefact)
    rows = refilter(
        bench.questions,
        corpus.get,
        load_citations(citations),
        RarityLimits(year=year, total=total, other=other),
        before=load_citations(before) if before else None,
    )
    if output is not None:
        write_tsv(output, HEADER, aging_table(rows))
    counts = aging_counts(rows)
    if as_json:
        screen.emit(
            {
                "artefact": str(output) if output else None,
                "kind": "aging",
                "counts": {
                    "kept": len(bench.questions) - counts["not rare"],
                    "rejected": counts["not rare"],
                    "failed": 0,
                },
                "metrics": counts,
                "rows": rows,
                "cost": {},
                "seconds": round(time.monotonic() - began, 3),
            }
        )
        return
    aged = [line for row in rows if row.state == "not rare" for line in _lines(row)]
    if aged:
        screen.table(["question", "document", "cited by", "no case reports"], aged)
    listed = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
    click.echo(f"{len(bench.questions)} questions: {listed or 'none names a document'}")
    if output is not None:
        click.echo(f"table: {output}")


def _lines(row: Aged) -> list[list[str]]:
    cited = f"{_number(row.cited_before)} → {_number(row.cited_now)}"
    others = f"{_number(row.others_before)} → {_number(row.others_now)}"
    return [[row.question, row.document, cited, others], [f"  {row.why.partition(':')[0]}", "", "", ""]]


def _number(count: int | None) -> str:
    return "?" if count is None else str(count)
