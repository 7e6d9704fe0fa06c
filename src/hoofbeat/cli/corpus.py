"""`hoofbeat corpus`: documents in, filtered, counted, shown, and out again."""

from __future__ import annotations

import importlib
import time
from pathlib import Path

import click

from hoofbeat.benchmarks import Benchmark
from hoofbeat.benchmarks.benchmark import find_corpus
from hoofbeat.benchmarks.rarity_aging import HEADER, AgingRow, aging_counts, aging_rows, aging_table
from hoofbeat.cli.console import FunnelRow, Screen
from hoofbeat.cli.session import (
    CommandWithList,
    ExtensionName,
    check_file,
    command_words,
    json_option,
    on_option,
    output_option,
    plot_option,
)
from hoofbeat.corpus import Corpus, import_corpus
from hoofbeat.corpus.corpus import CorpusFormat, export_corpus
from hoofbeat.corpus.corpus_import import other_files_note
from hoofbeat.corpus.file_facets import file_facets_note
from hoofbeat.corpus.filter import CorpusFilter, parse_filters
from hoofbeat.corpus.filters.rare import RarityLimits
from hoofbeat.corpus.funnel import FunnelStep, filter_corpus, funnel_data, read_funnel
from hoofbeat.corpus.hidden_text import HIDDEN
from hoofbeat.corpus.reader import Reader
from hoofbeat.errors import UsageError
from hoofbeat.registry import registry
from hoofbeat.store import Manifest
from hoofbeat.store.files import write_bytes
from hoofbeat.store.tables import write_tsv

_LIMITS = RarityLimits()
_ELSEWHERE = {"fetch": "corpus_fetch", "label": "corpus_show", "stats": "corpus_show", "show": "corpus_show"}
_ORDER = ("import", "fetch", "filter", "label", "stats", "show", "export", "aging")


class _CorpusCommands(click.Group):
    """The commands here, and those in other files, which are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(_ORDER)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _ELSEWHERE:
            module = importlib.import_module(f"hoofbeat.cli.{_ELSEWHERE[cmd_name]}")
            found: click.Command = getattr(module, f"{cmd_name}_command")
            return found
        return super().get_command(ctx, cmd_name)


@click.group("corpus", cls=_CorpusCommands)
def command() -> None:
    """Import, fetch, filter, label, count, show and export documents."""


class _ImportCommand(CommandWithList):
    @staticmethod
    def listing() -> str:
        """The formats with their suffixes."""
        lines = "\n".join(
            f"  {each.name:<14} {' '.join(each.suffixes):<28} {each.summary}" for each in registry.all(Reader)
        )
        return f"Formats:\n{lines}"


@command.command("import", cls=_ImportCommand)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@output_option("corpus")
@click.option(
    "--facet",
    "facets",
    multiple=True,
    metavar="NAME=VALUE",
    help="Give every document this facet. Repeat it for several.",
)
@click.option(
    "--facets-from",
    type=click.Path(path_type=Path),
    metavar="TABLE",
    help="Give facets per file: a CSV or TSV table with the column file and one per facet, such as institution.",
)
@click.option(
    "--mapping", help="JSONL and CSV: which field holds what, such as id=pmcid,text=body,facets.institution=developer."
)
@click.option(
    "--hidden", type=click.Choice(("leave-out", "keep")), default="leave-out", show_default=True,
    help="Text that a person can't see, such as white on white. hidden.jsonl lists it in both cases.",
)  # fmt: skip
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the first N documents, for a first try.")
@click.option("--workers", type=click.IntRange(1, 256), help="Number of processes [default: one per core].")
@click.option("--title", default="", help="Title of the corpus.")
@on_option
@json_option
def import_command(
    paths: tuple[Path, ...],
    output: Path,
    facets: tuple[str, ...],
    facets_from: Path | None,
    mapping: str | None,
    hidden: str,
    limit: int | None,
    workers: int | None,
    title: str,
    as_json: bool,
) -> None:
    """Import files and folders as a corpus.

    A file that can't be read does not stop the import: rejected.jsonl lists it with the reason.
    """
    screen = Screen(as_json=as_json)
    artefact = import_corpus(
        paths,
        output,
        facets=dict(_facet(text) for text in facets),
        facets_from=facets_from,
        title=title,
        progress=screen,
        command=command_words(),
        mapping=mapping,
        keep_hidden=hidden == "keep",
        limit=limit,
        workers=workers,
    )
    screen.reasons(artefact.manifest.counts)
    if artefact.manifest.counts.kept == limit:
        screen.say(f"note: stopped after {limit:,} documents, as asked; there may be more")
    for note in (file_facets_note(artefact.manifest), other_files_note(artefact.manifest)):
        if note:
            screen.say(note)
    _show_hidden(screen, artefact.manifest)
    screen.finish(artefact, next_step=("hoofbeat", "corpus", "stats", output))


def _show_hidden(screen: Screen, manifest: Manifest) -> None:
    """How much text of the documents a person can't see, and why."""
    counts = manifest.metrics.get("hidden")
    if not isinstance(counts, dict):
        return
    total, kept = sum(counts.values()), manifest.settings.get("hidden") == "keep"
    whys = ", ".join(f"{why}: {count:,}" for why, count in counts.items())
    pieces = f"{total:,} piece{'s' * (total != 1)} of hidden text"
    screen.say(
        f"note: {pieces} {'kept' if kept else 'left out'} ({whys}). {HIDDEN} lists {'them' if total != 1 else 'it'}"
    )


def _facet(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name.strip():
        raise UsageError(f"{text!r} is not a facet", fix="write --facet NAME=VALUE")
    return name.strip(), value.strip()


class _FilterCommand(CommandWithList):
    @staticmethod
    def listing() -> str:
        """The filters, with an example of each."""
        lines = "\n".join(f"  {each.example:<52} {each.summary}" for each in registry.all(CorpusFilter))
        return f"Filters, applied in the order you write them; `not` before a filter inverts it:\n{lines}"


@command.command("filter", cls=_FilterCommand)
@click.argument("corpus", type=click.Path(path_type=Path))
@click.option(
    "--keep", "lines", multiple=True, required=True, metavar="FILTER", help="A filter, or several separated by ;"
)
@output_option("filtered")
@click.option("--title", default="", help="Title of the new corpus.")
@plot_option
@on_option
@json_option
def filter_command(
    corpus: Path, lines: tuple[str, ...], output: Path, title: str, plot: Path | None, as_json: bool
) -> None:
    """Keep the documents of CORPUS that pass every filter, as a new corpus.

    rejected.jsonl lists rejected documents with step and reason, funnel.tsv has the counts.
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
        from hoofbeat.reports.sections.statistics_section import funnel_svg

        write_bytes(plot, funnel_svg(funnel).encode())
        screen.line(f"plot: {plot}")
    screen.finish(artefact, next_step=("hoofbeat", "corpus", "stats", output), funnel=funnel_data(funnel))


def show_funnel(screen: Screen, funnel: list[FunnelStep]) -> None:
    """The counts of every step, then the reasons below them."""
    screen.funnel([FunnelRow(each.step, each.came, each.kept, each.rejected, reasons=each.reasons) for each in funnel])


@command.command("aging")
@click.argument("benchmark", type=click.Path(path_type=Path))
@click.option(
    "--corpus", "corpus_path", type=click.Path(path_type=Path), help="The corpus, if it is not beside the benchmark."
)
@click.option("--citations", type=click.Path(path_type=Path), required=True, help="Newer citations: a file or folder.")
@click.option("--before", type=click.Path(path_type=Path), help="Older citations, for comparison.")
@click.option(
    "--year", type=int, default=_LIMITS.year, show_default=True, help="Documents of this year or earlier are not rare."
)
@click.option(
    "--total",
    type=click.IntRange(0),
    default=_LIMITS.total,
    show_default=True,
    help="Maximum number of citing articles.",
)
@click.option(
    "--other",
    type=click.IntRange(0),
    default=_LIMITS.other,
    show_default=True,
    help="Maximum number of citing articles that are not case reports.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the table to this .tsv file.")
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
    """List the questions of BENCHMARK whose source documents are no longer rare, by newer citations."""
    began = time.monotonic()
    screen = Screen(as_json=as_json)
    check_file(output, ".tsv", ours="\t".join(HEADER).encode())
    bench = Benchmark.open(benchmark)
    corpus = find_corpus(corpus_path, bench.artefact)
    rows = aging_rows(bench, corpus, citations, RarityLimits(year=year, total=total, other=other), before=before)
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
        screen.table(["question", "document", "cited by", "not case reports"], aged)
    listed = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
    click.echo(f"{len(bench.questions)} questions: {listed or 'none of them names a document'}")
    if output is not None:
        click.echo(f"Wrote the table → {output}")


def _lines(row: AgingRow) -> list[list[str]]:
    cited = f"{_number(row.cited_before)} → {_number(row.cited_now)}"
    others = f"{_number(row.others_before)} → {_number(row.others_now)}"
    return [[row.question, row.document, cited, others], [f"  {row.why.partition(':')[0]}", "", "", ""]]


def _number(count: int | None) -> str:
    return "?" if count is None else str(count)


class _ExportCommand(CommandWithList):
    @staticmethod
    def listing() -> str:
        """The formats."""
        lines = "\n".join(f"  {each.name:<14} {each.summary}" for each in registry.all(CorpusFormat))
        return f"Formats:\n{lines}"


@command.command("export", cls=_ExportCommand)
@click.argument("corpus", type=click.Path(path_type=Path))
@click.option("--format", "form", type=ExtensionName(CorpusFormat), default="beir", show_default=True, help="Format.")
@click.option("--questions", "benchmark", type=click.Path(path_type=Path), help="Benchmark to export with it.")
@output_option("export")
@json_option
def export_command(corpus: Path, form: CorpusFormat, benchmark: Path | None, output: Path, as_json: bool) -> None:
    """Write the documents of CORPUS in a format that other software reads."""
    screen = Screen(as_json=as_json)
    bench = Benchmark.open(benchmark) if benchmark else None
    artefact = export_corpus(
        Corpus.open(corpus),
        output,
        form.name,
        questions=bench.questions if bench else (),
        inputs=[bench.artefact.reference()] if bench else (),
        command=command_words(),
        progress=screen,
    )
    screen.finish(artefact)
