"""`hoofbeat retrieve`: rankings by one retriever line or many, measured and compared."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import click
from msgspec.structs import replace

from hoofbeat.cli.bed import Bed, open_bed
from hoofbeat.cli.compare import show_rankings
from hoofbeat.cli.console import Screen
from hoofbeat.cli.evidence import find_evidence, show_evidence
from hoofbeat.cli.other_runs import read_other_runs
from hoofbeat.cli.ranking import (
    MEASURES,
    Models,
    explain,
    index_bed,
    measure_run,
    rank_bed,
    say_notes,
    say_what_is_odd,
    show_measures,
)
from hoofbeat.cli.session import Calling, calling_options, check_file, command_words, edition_option, output_option
from hoofbeat.errors import OutputError, UsageError
from hoofbeat.findings.ranking import RANKINGS, Measure
from hoofbeat.models import Estimate, Model
from hoofbeat.models.session import Session
from hoofbeat.records import Hit, Question
from hoofbeat.registry import registry
from hoofbeat.reports.comparison.folder import KIND as COMPARISON
from hoofbeat.reports.comparison.rankings import compare_rankings
from hoofbeat.reports.comparison.rankings_page import write_rankings
from hoofbeat.retrieval import IndexSet, Retriever, SearchResult, parse
from hoofbeat.retrieval.line import Stage, StageOption, Variant, cost_bound, every_stage, variants
from hoofbeat.retrieval.stage_roles import SearchQuery
from hoofbeat.store import Artefact, open_artefact
from hoofbeat.store.files import atomic_write, output_errors
from hoofbeat.store.tables import read_jsonl, read_tsv, write_tsv
from hoofbeat.window import tokens_at_most

__all__ = ["command"]

_LINE = "bm25 + dense"
_EMBEDDED_AT_ONCE = 32
_PASSAGE_TOKENS = 250
_PASSAGE_CHARACTERS = 800
_SHOWN = 3


class _Retrieve(click.Command):
    """The command; its help ends with the stages that lines can name, those of plugins among them."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        with formatter.section("Stages of a retriever line (--stages lists their options)"):
            formatter.write_dl([(stage.name, f"{stage.role}: {stage.summary}") for stage in registry.all(Stage)])


def _list_stages(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Print every stage with its options, and leave."""
    if not wanted:
        return
    for stage in registry.all(Stage):
        click.echo(f"{stage.name}  ({stage.role}) {stage.summary}")
        for option in stage.options:
            click.echo(f"    {option.name}={option.default}  {option.help}{_limits(option)}")
    ctx.exit()


def _limits(option: StageOption) -> str:
    if option.choices:
        return f" [{'|'.join(option.choices)}]"
    low, high = (f"{limit:g}" if math.isfinite(limit) else "" for limit in (option.min_, option.max_))
    return f" [{low}..{high}]" if low or high else ""


@click.command("retrieve", cls=_Retrieve)
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--with", "lines", multiple=True,
              help=f"A retriever line; several may be given, or braces: 'bm25[k1={{0.9|1.2}}]'.  "
              f"[default: {_LINE}, unless there is a --run]")  # fmt: skip
@click.option("--stages", is_flag=True, is_eager=True, expose_value=False, callback=_list_stages,
              help="List the stages of retriever lines with their options, and exit.")  # fmt: skip
@click.option("--run", "runs", multiple=True, type=click.Path(path_type=Path), metavar="FILE",
              help="A TREC run of other software, measured beside the lines; several may be given.")  # fmt: skip
@click.option("--corpus", "corpus_path", type=click.Path(path_type=Path), help="The documents to rank.")
@click.option("--query", "queries", multiple=True, help="Search a corpus for this text; several may be given.")
@click.option("--split", default="test", show_default=True, help="Which judgments of a BEIR folder.")
@edition_option
@click.option("--where", multiple=True, metavar="FACET=VALUE", help="Only documents with this facet.")
@click.option("--top", type=click.IntRange(1, 10_000), default=100, show_default=True, help="Documents a question.")
@click.option("--measure", "measures", multiple=True, default=MEASURES, show_default=True, help="Measures, by name.")
@click.option("--limit", type=click.IntRange(1), help="Only the first so many questions.")
@click.option("--explain", "explained", type=click.IntRange(1, 100), metavar="N",
              help="Show for each query what was searched for and which stage brought the first N hits.")  # fmt: skip
@click.option("--each-source", is_flag=True,
              help="Find evidence in every document by itself instead of ranking them.")  # fmt: skip
@click.option("--page", type=click.Path(path_type=Path), help="Draw the comparison to this HTML file, too.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of intervals and tests.")
@output_option("rankings")
@calling_options
def command(
    target: Path,
    lines: tuple[str, ...],
    runs: tuple[Path, ...],
    corpus_path: Path | None,
    queries: tuple[str, ...],
    split: str,
    edition: str,
    where: tuple[str, ...],
    top: int,
    measures: tuple[str, ...],
    limit: int | None,
    explained: int | None,
    each_source: bool,
    page: Path | None,
    seed: int,
    output: Path,
    calling: Calling,
) -> None:
    """Rank documents for the questions of TARGET and measure the rankings.

    TARGET is a benchmark folder, a corpus folder to be searched with --query, or a folder in BEIR's or R2MED's layout.
    """
    screen = calling.screen()
    check_file(page, ".html")
    _check_texts(queries)
    systems = _systems(lines or (() if runs else (_LINE,)))
    parsed = [Measure.parse(measure) for measure in measures]
    bed = _first(open_bed(target, corpus_path, queries, split, edition), limit)
    documents = bed.chosen(where)
    _check_page(page, bed, len(systems) + len(runs), each_source)
    _check_runs(runs, bed, where, each_source)
    _check_depth(parsed if bed.qrels and not each_source else (), top)
    if calling.only_estimate:
        screen.estimate(_estimate(bed, systems))
        return
    others = read_other_runs(runs, bed, top)
    with ExitStack() as stack:
        load = _loader(calling, stack)
        encoders = Models(load)
        indexes = index_bed(bed, screen, models=encoders)
        if indexes.trouble:
            screen.say(indexes.trouble)
        if each_source:
            _evidence(screen, bed, indexes, systems, documents, output, Models(load), encoders, explained)
            return
        for variant in systems if len(systems) + len(others) > 1 else ():
            Retriever(indexes, variant.line, model=Models(load)).prepare()
        names = list(dict.fromkeys(map(str, parsed)))
        rank = partial(rank_bed, bed, indexes, top=top, measures=names, documents=documents, seed=seed)
        rank = partial(rank, encoders=encoders, command=command_words())
        places = _places(output, [*systems, *(Variant(run.name, {}) for run in others)])
        made = []
        for folder, variant in places[: len(systems)]:
            models, settings = Models(load), _settings(variant, edition)
            made.append(rank(variant.line, folder, models=models, settings=settings))
            screen.calls(*models.used.values())
            say_what_is_odd(screen, made[-1])
            if explained or not bed.qrels:
                explain(screen, _searched(made[-1]), indexes, explained or _SHOWN)
        measure = partial(measure_run, bed, top=top, measures=names, seed=seed, command=command_words())
        for run, (folder, variant) in zip(others, places[len(systems) :], strict=True):
            made.append(measure(run, folder, settings=_settings(variant, edition)))
            say_what_is_odd(screen, made[-1])
            if explained:
                explain(screen, _searched(made[-1]), indexes, explained)
    _tidy(output, places)
    _say_recall(screen, made if documents is None else ())
    _finish(screen, bed, made, output, page, seed, target if systems else None)


def _loader(calling: Calling, stack: ExitStack) -> Callable[[str], Model]:
    """What loads language models by name; the session they belong to is opened when the first is asked for."""
    sessions: list[Session] = []

    def load(spec: str) -> Model:
        if not sessions:
            sessions.append(stack.enter_context(calling.open()))
        return sessions[0].model(spec or calling.model_spec)

    return load


def _settings(variant: Variant, edition: str) -> dict[str, object]:
    """What the manifest says of a line besides the line itself."""
    said = {"variant": variant.settings, "edition": edition}
    return {name: value for name, value in said.items() if value}


def _check_runs(runs: Sequence[Path], bed: Bed, where: Sequence[str], each_source: bool) -> None:
    if runs and not bed.qrels:
        raise UsageError(
            "a run is measured, and here is nothing to measure it by", fix="name a benchmark with judgments"
        )
    if runs and (where or each_source):
        raise UsageError(
            f"a run ranks what it ranks, so {'--each-source' if each_source else '--where'} can't change it",
            fix="leave one of the two out",
        )


def _check_page(page: Path | None, bed: Bed, systems: int, each_source: bool) -> None:
    if page is not None and (each_source or systems < 2 or not bed.qrels):
        raise UsageError(
            "a page compares lines over judged questions, so it needs two lines or more and judgments",
            fix="give --with twice, or use braces; or leave --page out",
        )


def _check_texts(queries: Sequence[str]) -> None:
    """Refuse what is no text: a terminal may hand over bytes that are no UTF-8."""
    for number, text in enumerate(queries, start=1):
        if not text.isascii() and text.encode("utf-8", "ignore").decode("utf-8") != text:
            raise UsageError(f"query {number} holds bytes that are no UTF-8 text", fix="give --query in UTF-8")


def _check_depth(measures: Sequence[Measure], top: int) -> None:
    """A measure that looks deeper than the rankings go would measure the limit, not the line."""
    deepest = max((measure for measure in measures if measure.cutoff), key=lambda each: each.cutoff or 0, default=None)
    if deepest is not None and deepest.cutoff is not None and deepest.cutoff > top:
        raise UsageError(
            f"{deepest} looks at more than the {top} documents that are ranked",
            fix=f"--top {deepest.cutoff}, or name other measures with --measure",
        )


def _places(output: Path, systems: Sequence[Variant]) -> list[tuple[Path, Variant]]:
    """Where each line's rankings go: the output folder itself, or for several lines folders in it.

    The folder of several lines lists them in `lines.tsv`. What is listed from before stays until the new rankings are
    there (`_tidy`); a folder that holds anything else is left alone and refused.
    """
    if len(systems) == 1:
        return [(output, systems[0])]
    listing = output / "lines.tsv"
    before = {row["folder"]: row["line"] for row in read_tsv(listing)} if listing.is_file() else {}
    known = {*before, "lines.tsv", "comparison"}
    strange = sorted(path.name for path in output.iterdir() if path.name not in known) if output.is_dir() else []
    if strange or (output.exists() and not output.is_dir()):
        raise OutputError(
            f"something stands there that is no earlier run of several lines ({', '.join(strange[:3]) or 'a file'})",
            where=str(output),
            fix="choose another folder with -o",
        )
    places = [(output / f"{number:02d}-{_slug(each.line)}", each) for number, each in enumerate(systems, start=1)]
    with output_errors(output):
        output.mkdir(parents=True, exist_ok=True)
    listed = before | {folder.name: each.line for folder, each in places}
    write_tsv(listing, ("folder", "line"), sorted(listed.items()))
    return places


def _tidy(output: Path, places: Sequence[tuple[Path, Variant]]) -> None:
    """Remove what an earlier run of several lines left and this one did not replace."""
    if len(places) < 2:
        return
    listing = output / "lines.tsv"
    now = {folder.name: each.line for folder, each in places}
    for name in {"comparison", *(row["folder"] for row in read_tsv(listing))} - set(now):
        folder = output / Path(name).name
        if folder.is_dir():
            open_artefact(folder, (RANKINGS, COMPARISON))
            shutil.rmtree(folder)
    write_tsv(listing, ("folder", "line"), list(now.items()))


def _evidence(
    screen: Screen,
    bed: Bed,
    indexes: IndexSet,
    systems: Sequence[Variant],
    documents: Sequence[str] | None,
    output: Path,
    models: Models,
    encoders: Models,
    explained: int | None,
) -> None:
    if len(systems) > 1:
        raise UsageError("evidence is found by one line at a time", fix="give one --with, without braces")
    find = partial(find_evidence, sources=documents, models=models, encoders=encoders, command=command_words())
    artefact = find(bed, indexes, systems[0].line, output)
    screen.calls(*models.used.values(), *encoders.used.values())
    say_notes(screen, artefact)
    if explained:
        show_evidence(screen, artefact, explained)
    screen.finish(artefact)


def _systems(lines: Sequence[str]) -> list[Variant]:
    """Every line to run, checked before anything is done; the same line twice is run once."""
    found = {str(parse(variant.line)): variant for line in lines for variant in variants(line)}
    return [Variant(line, variant.settings) for line, variant in found.items()]


def _first(bed: Bed, limit: int | None) -> Bed:
    """The bed with its first questions only, where there is a limit."""
    if limit is None:
        return bed
    kept = list(bed.questions)[:limit]
    names = {question.id for question in kept}
    return replace(bed, questions=kept, qrels={name: each for name, each in bed.qrels.items() if name in names})


def _estimate(bed: Bed, systems: Sequence[Variant]) -> Estimate:
    """The most calls the lines can make, by what their stages may ask for each question."""
    questions = list(bed.questions)
    asked = int(sum(tokens_at_most(question.full_text) for question in questions))
    total = Estimate()
    for variant in systems:
        most = cost_bound(parse(variant.line))
        encoded = _encoded(bed, variant.line)
        total += Estimate(
            calls=most.calls * len(questions) + -(-encoded // _EMBEDDED_AT_ONCE),
            tokens_in=most.calls * asked + most.tokens_in * len(questions) + encoded * _PASSAGE_TOKENS,
            tokens_out_most=most.tokens_out * len(questions),
        )
    return total


def _encoded(bed: Bed, line: str) -> int:
    """About how many texts an embeddings endpoint would encode for a line; none where it names no endpoint."""
    if not any(":" in spec for stage in every_stage(parse(line)) for spec in stage.encoders()):
        return 0
    passages = sum(1 + len(document.text) // _PASSAGE_CHARACTERS for document in bed.documents)
    return len(list(bed.questions)) + passages


def _searched(artefact: Artefact) -> SearchResult:
    """The hits of a rankings folder with the queries that led to them."""
    hits: dict[str, list[Hit]] = {}
    for hit in read_jsonl(artefact.file("hits.jsonl"), Hit):
        hits.setdefault(hit.question, []).append(hit)
    traced = (
        list(read_jsonl(artefact.file("traces.jsonl"), SearchQuery))
        if artefact.has("traces.jsonl")
        else [
            SearchQuery(id=question.id, text=question.full_text)
            for question in read_jsonl(artefact.file("questions.jsonl"), Question)
        ]
    )
    return SearchResult(traced, [hits.get(query.id, []) for query in traced])


def _finish(
    screen: Screen, bed: Bed, made: list[Artefact], output: Path, page: Path | None, seed: int, target: Path | None
) -> None:
    """Show the measures, compare what can be compared; `target` is what the first line could be answered from."""
    if any(artefact.manifest.metrics for artefact in made):
        show_measures(screen, made)
    measured = [artefact for artefact in made if artefact.manifest.metrics]
    if len(measured) > 1:
        found = compare_rankings([artefact.path for artefact in measured], seed=seed)
        show_rankings(screen, found)
        compared = write_rankings(output / "comparison", found, command=command_words())
        if page is not None:
            with atomic_write(page) as stream:
                stream.write(compared.file("report.html").read_bytes())
        screen.finish(compared, artefacts=[str(artefact.path) for artefact in made])
        return
    for artefact in made[1:] if not screen.as_json else ():
        screen.say(f"{artefact.manifest.title}: {artefact.path}")
    line = str(made[0].manifest.settings["line"])
    answerable = target is not None and (target / "manifest.json").is_file() and bed.qrels
    next_step = ("hoofbeat", "answer", target, "--condition", "closed", "--condition", f"{line} @3")
    screen.finish(
        made[0], next_step=next_step if answerable else (), artefacts=[str(artefact.path) for artefact in made]
    )


def _say_recall(screen: Screen, made: Sequence[Artefact]) -> None:
    """What approximate search found of the exact results, as its index measured."""
    for artefact in made:
        for name, measured in IndexSet.recalls(artefact.manifest.settings).items():
            screen.say(f"{artefact.manifest.title}: {name} finds {measured:.3f} of what exact search finds (recall@10)")


def _slug(line: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", line.lower()).strip("-")[:60] or RANKINGS
