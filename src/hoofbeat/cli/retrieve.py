"""`hoofbeat retrieve`: rankings by one retriever line or many, measured and compared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import click

from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import (
    Calling,
    calling_options,
    check_file,
    command_words,
    edition_option,
    index_options,
    output_option,
)
from hoofbeat.errors import UsageError
from hoofbeat.models.model_loading import UsedModels
from hoofbeat.registry import registry
from hoofbeat.retrieval import IndexSet, SearchResult
from hoofbeat.retrieval.hero.hero_evidence import SourceEvidence, explain_trace
from hoofbeat.retrieval.line import Stage, StageOption
from hoofbeat.retrieval.rankings.ranking_plan import RankingPlan, find_evidence, plan_rankings, rank, read_lines
from hoofbeat.retrieval.rankings.rankings_folder import MEASURES, read_result, remarks, stage_notes
from hoofbeat.retrieval.rankings.test_collection import open_collection
from hoofbeat.store import Artefact
from hoofbeat.store.files import atomic_write
from hoofbeat.store.tables import read_jsonl

_LINE = "bm25 + dense"
_SHOWN = 3
_PASSAGES_SHOWN = 5


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
              help=f"A retriever line. Repeat it for several, or use braces: 'bm25[k1={{0.9|1.2}}]'.  "
              f"[default: {_LINE}; none with --run]")  # fmt: skip
@click.option("--stages", is_flag=True, is_eager=True, expose_value=False, callback=_list_stages,
              help="List the stages of retriever lines with their options, and exit.")  # fmt: skip
@click.option("--run", "runs", multiple=True, type=click.Path(path_type=Path), metavar="FILE",
              help="Also measure this TREC run of other software. Repeat it for several.")  # fmt: skip
@click.option(
    "--corpus",
    "corpus_path",
    type=click.Path(path_type=Path),
    help="Corpus to rank [default: the one beside the benchmark].",
)
@click.option("--query", "queries", multiple=True, help="Search a corpus for this text. Repeat it for several.")
@click.option("--split", default="test", show_default=True, help="Split of a BEIR folder.")
@edition_option
@click.option(
    "--where", multiple=True, metavar="FACET=VALUE", help="Only documents with this facet. Repeat it for several."
)
@click.option("--top", type=click.IntRange(1, 10_000), default=100, show_default=True, help="Documents per question.")
@click.option(
    "--measure", "measures", multiple=True, default=MEASURES, show_default=True, help="Measure. Repeat it for several."
)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the first N questions.")
@click.option("--explain", "explained", type=click.IntRange(1, 100), metavar="N",
              help="Show for each query what was searched for, and which stage found the first N hits.")  # fmt: skip
@click.option("--each-source", is_flag=True,
              help="Search inside every document separately instead of ranking documents.")  # fmt: skip
@click.option("--page", type=click.Path(path_type=Path), help="Also write the comparison to this HTML file.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed for intervals and tests.")
@output_option("rankings")
@calling_options
@index_options
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

    TARGET is a benchmark, a corpus to search with --query, or a folder in BEIR's or R2MED's layout.
    """
    screen = calling.screen()
    check_file(page, ".html")
    _check_texts(queries)
    systems = read_lines(lines or (() if runs else (_LINE,)))
    collection = open_collection(target, corpus=corpus_path, queries=queries, split=split, edition=edition).first(limit)
    if runs and each_source:
        raise UsageError(
            "--each-source has no effect on a --run, whose ranking is given", fix="leave out one of the two"
        )
    plan = plan_rankings(
        collection,
        systems,
        runs=runs,
        where=where,
        top=top,
        measures=measures if not each_source else (),
        seed=seed,
        edition=edition,
        command=command_words(),
    )
    _check_page(page, plan, each_source)
    if calling.only_estimate:
        with calling.late_models() as load:
            screen.estimate(plan.estimate(load, screen))
        return
    if asked := plan.language_models():
        specs = [name or calling.model_spec for name in asked]
        calling.warn_if_tiny(screen, "rerank or rewrite searches", specs=specs)
    with calling.late_models() as load:
        encoders = UsedModels(load)
        indexes = collection.indexes(screen, models=encoders)
        if indexes.trouble:
            screen.say(indexes.trouble)
        if each_source:
            _evidence(screen, plan, indexes, output, UsedModels(load), encoders, explained)
            return
        made = []
        for artefact, models in rank(plan, indexes, output, load=load, encoders=encoders):
            made.append(artefact)
            screen.calls(*models)
            for remark in remarks(artefact):
                screen.say(remark)
            if explained or not collection.qrels:
                _explain(screen, read_result(artefact), indexes, explained or _SHOWN)
        screen.calls(*encoders.used.values())
    _say_recall(screen, made if plan.documents is None else ())
    _finish(screen, plan, made, output, page, target if plan.systems else None)


def _check_page(page: Path | None, plan: RankingPlan, each_source: bool) -> None:
    systems = len(plan.systems) + len(plan.runs)
    if page is not None and (each_source or systems < 2 or not plan.collection.qrels):
        raise UsageError(
            "a page compares lines on judged questions, so it needs two lines and judgments",
            fix="give --with twice, or use braces; or leave out --page",
        )


def _check_texts(queries: Sequence[str]) -> None:
    """Refuse a query that is not text: a terminal may pass bytes that are not UTF-8."""
    for number, text in enumerate(queries, start=1):
        if not text.isascii() and text.encode("utf-8", "ignore").decode("utf-8") != text:
            raise UsageError(f"query {number} is not UTF-8 text", fix="write --query in UTF-8")


def _evidence(
    screen: Screen,
    plan: RankingPlan,
    indexes: IndexSet,
    output: Path,
    models: UsedModels,
    encoders: UsedModels,
    explained: int | None,
) -> None:
    artefact = find_evidence(plan, indexes, output, models=models, encoders=encoders)
    screen.calls(*models.used.values(), *encoders.used.values())
    for note in stage_notes(artefact):
        screen.say(note)
    if explained:
        _show_evidence(screen, artefact, explained)
    screen.finish(artefact)


def _show_evidence(screen: Screen, artefact: Artefact, count: int) -> None:
    """Show how the evidence was found, for each question and the first sources."""
    shown: dict[str, int] = {}
    for each in read_jsonl(artefact.file("evidence.jsonl"), SourceEvidence):
        shown[each.question] = shown.get(each.question, 0) + 1
        if shown[each.question] > count:
            continue
        screen.title(f"{each.question} in {each.document}")
        if each.failure is not None:
            screen.say(f"  failed: {each.failure.kind}: {each.failure.message}")
        if each.trace is not None:
            screen.say(explain_trace(each.trace))
        for passage in each.passages[:_PASSAGES_SHOWN]:
            screen.say(f"  {passage.heading}: {' '.join(passage.text.split())[:160]}")
        if len(each.passages) > _PASSAGES_SHOWN:
            screen.say(f"  and {len(each.passages) - _PASSAGES_SHOWN} more passages")


def show_measures(screen: Screen, artefacts: Sequence[Artefact]) -> None:
    """A table of rankings, a row each; the first measure with its 95% interval, all others' are in the manifest."""
    names = list(artefacts[0].manifest.metrics)
    rows = []
    for artefact in artefacts:
        cells = [str(artefact.manifest.settings["line"])]
        for place, name in enumerate(names):
            metric = artefact.manifest.metrics.get(name)
            if not isinstance(metric, dict):
                cells.append("none")
                continue
            interval = f" [{metric['low']:.2f}, {metric['high']:.2f}]" if place == 0 else ""
            cells.append(f"{metric['value']:.3f}{interval}")
        rows.append(cells)
    screen.table(["retriever", *names], rows)


def _explain(screen: Screen, searched: SearchResult, indexes: IndexSet, count: int) -> None:
    """Show for each query what was written and which stage found each of the first hits."""
    for query, hits in zip(searched.queries, searched.hits, strict=True):
        screen.title(f"{query.id}: {' '.join(query.text.split())[:160]}")
        for step in query.steps:
            screen.say(f"  {step.stage} {step.what}: {' '.join(step.text.split())[:300]}")
        if query.failure is not None:
            screen.say(f"  failed: {query.failure.kind}: {query.failure.message}")
        for hit in hits[:count]:
            ways = "; ".join(f"{stage}: rank {rank}, {score:.4f}" for stage, (rank, score) in hit.via.items())
            ways = ways or f"{hit.score:.4f}"
            screen.say(f"  {hit.rank}. {hit.document}  ({ways})")
            if hit.passage:
                passage = indexes.passage(hit.passage)
                screen.say(f"     {passage.heading}: {' '.join(passage.text.split())[:200]}")


def _finish(
    screen: Screen, plan: RankingPlan, made: list[Artefact], output: Path, page: Path | None, target: Path | None
) -> None:
    """Show the measures, compare what can be compared; `target` is what the first line could be answered from."""
    if any(artefact.manifest.metrics for artefact in made):
        show_measures(screen, made)
    measured = [artefact for artefact in made if artefact.manifest.metrics]
    if len(measured) > 1:
        from hoofbeat.cli.compare import show_rankings
        from hoofbeat.reports.comparison.rankings import compare_rankings
        from hoofbeat.reports.comparison.rankings_page import write_rankings

        found = compare_rankings([artefact.path for artefact in measured], seed=plan.seed)
        show_rankings(screen, found)
        compared = write_rankings(output / "comparison", found, command=command_words())
        if page is not None:
            with atomic_write(page) as stream:
                stream.write(compared.file("report.html").read_bytes())
        page_of = ("open", compared.path / "report.html")
        screen.finish(compared, next_step=page_of, artefacts=[str(artefact.path) for artefact in made])
        return
    for artefact in made[1:] if not screen.as_json else ():
        screen.line(f"{artefact.manifest.title} → {artefact.path}")
    line = str(made[0].manifest.settings["line"])
    answerable = target is not None and (target / "manifest.json").is_file() and plan.collection.qrels
    next_step = ("hoofbeat", "answer", target, "--condition", "closed", "--condition", f"{line} @3")
    screen.finish(
        made[0], next_step=next_step if answerable else (), artefacts=[str(artefact.path) for artefact in made]
    )


def _say_recall(screen: Screen, made: Sequence[Artefact]) -> None:
    """How much of the exact results approximate search finds, as its index measured."""
    for artefact in made:
        for name, measured in IndexSet.recalls(artefact.manifest.settings).items():
            screen.say(f"{artefact.manifest.title}: {name} finds {measured:.1%} of what exact search finds (recall@10)")
