"""`hoofbeat retrieve`: rankings by one retriever line or many, measured and compared."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import click
from msgspec.structs import replace

from hoofbeat.cli.bed import Bed, open_bed
from hoofbeat.cli.comparing import KIND as COMPARISON
from hoofbeat.cli.comparing import compare_rankings
from hoofbeat.cli.console import Screen
from hoofbeat.cli.evidence import find_evidence, show_evidence
from hoofbeat.cli.ranking import KIND, MEASURES, Models, explain, index_bed, rank_bed, say_what_is_odd, show_measures
from hoofbeat.cli.session import (
    Calling,
    Session,
    calling_options,
    check_file,
    command_words,
    edition_option,
    output_option,
)
from hoofbeat.errors import OutputError, UsageError
from hoofbeat.findings.ranking import Measure
from hoofbeat.models import Estimate, Model
from hoofbeat.records import Hit, Question
from hoofbeat.retrieval import IndexSet, Searched, parse
from hoofbeat.retrieval.line import stages
from hoofbeat.retrieval.making import most_calls
from hoofbeat.retrieval.stages import SearchQuery
from hoofbeat.retrieval.variants import Variant, variants
from hoofbeat.store import Artefact, open_artefact
from hoofbeat.store.files import output_errors
from hoofbeat.store.tables import read_jsonl, read_tsv, write_tsv

__all__ = ["command"]

_EMBEDDED_AT_ONCE = 32
_PASSAGE_TOKENS = 250
_PASSAGE_CHARACTERS = 800


@click.command("retrieve")
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--with", "lines", multiple=True, default=("bm25 + dense",), show_default=True,
              help="A retriever line; several may be given, or braces: 'bm25[k1={0.9|1.2}]'.")  # fmt: skip
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
    systems = _systems(lines)
    names = _measures(measures, top)
    bed = open_bed(target, corpus_path, queries, split, edition)
    if limit is not None:
        bed = _first(bed, limit)
    documents = bed.chosen(where)
    _check_page(page, bed, systems, each_source)
    if calling.only_estimate:
        screen.estimate(_estimate(bed, systems))
        return
    with ExitStack() as stack:
        sessions: list[Session] = []

        def load(spec: str) -> Model:
            if not sessions:
                sessions.append(stack.enter_context(calling.open(screen)))
            return sessions[0].model(spec or calling.model_spec)

        encoders = Models(load)
        indexes = index_bed(bed, screen, models=encoders)
        if indexes.trouble:
            screen.say(indexes.trouble)
        if each_source:
            _evidence(screen, bed, indexes, systems, documents, output, Models(load), explained)
            return
        made = []
        for folder, variant in _places(output, systems):
            models = Models(load)
            rank = partial(rank_bed, bed, indexes, variant.line, folder, models=models, encoders=encoders, seed=seed)
            settings = _settings(variant, edition)
            made.append(rank(top=top, measures=names, documents=documents, settings=settings, command=command_words()))
            screen.calls(*models.used.values())
            say_what_is_odd(screen, made[-1])
            if explained:
                explain(screen, _searched(made[-1]), indexes, explained)
    if documents is None:
        _say_recall(screen, made)
    _finish(screen, bed, made, output, page, seed, target)


def _settings(variant: Variant, edition: str) -> dict[str, object]:
    """What the manifest says of a line besides the line itself."""
    said = {"variant": variant.settings, "edition": edition}
    return {name: value for name, value in said.items() if value}


def _check_page(page: Path | None, bed: Bed, systems: Sequence[Variant], each_source: bool) -> None:
    if page is not None and (each_source or len(systems) < 2 or not bed.qrels):
        raise UsageError(
            "a page compares lines over judged questions, so it needs two lines or more and judgments",
            fix="give --with twice, or use braces; or leave --page out",
        )


def _measures(measures: Sequence[str], top: int) -> list[str]:
    """The measures by their names; one that looks deeper than the rankings go would measure the limit, not the line."""
    parsed = [Measure.parse(measure) for measure in measures]
    deep = next((measure for measure in parsed if measure.cutoff is not None and measure.cutoff > top), None)
    if deep is not None:
        raise UsageError(f"{deep} looks at more than the {top} documents that are ranked", fix=f"--top {deep.cutoff}")
    return [str(measure) for measure in parsed]


def _places(output: Path, systems: Sequence[Variant]) -> list[tuple[Path, Variant]]:
    """Where each line's rankings go: the output folder itself, or for several lines folders in it.

    The folder of several lines lists them in `lines.tsv`. One that is listed from before is replaced; a folder that
    holds anything else is left alone and refused.
    """
    if len(systems) == 1:
        return [(output, systems[0])]
    listing = output / "lines.tsv"
    before = [row["folder"] for row in read_tsv(listing)] if listing.is_file() else []
    known = {*before, "lines.tsv", "comparison"}
    strange = sorted(path.name for path in output.iterdir() if path.name not in known) if output.is_dir() else []
    if strange or (output.exists() and not output.is_dir()):
        raise OutputError(
            f"something stands there that is no earlier run of several lines ({', '.join(strange[:3]) or 'a file'})",
            where=str(output),
            fix="choose another folder with -o",
        )
    places = [(output / f"{number:02d}-{_slug(each.line)}", each) for number, each in enumerate(systems, start=1)]
    for name in {*before, "comparison"} - {folder.name for folder, _ in places}:
        folder = output / Path(name).name
        if folder.is_dir():
            open_artefact(folder, (KIND, COMPARISON))
            shutil.rmtree(folder)
    with output_errors(output):
        output.mkdir(parents=True, exist_ok=True)
    write_tsv(listing, ("folder", "line"), [(folder.name, each.line) for folder, each in places])
    return places


def _evidence(
    screen: Screen,
    bed: Bed,
    indexes: IndexSet,
    systems: Sequence[Variant],
    documents: Sequence[str] | None,
    output: Path,
    models: Models,
    explained: int | None,
) -> None:
    if len(systems) > 1:
        raise UsageError("evidence is found by one line at a time", fix="give one --with, without braces")
    artefact = find_evidence(
        bed, indexes, systems[0].line, output, sources=documents, models=models, command=command_words()
    )
    screen.calls(*models.used.values())
    if explained:
        show_evidence(screen, artefact, explained)
    screen.finish(artefact)


def _systems(lines: Sequence[str]) -> list[Variant]:
    """Every line to run, checked before anything is done; the same line twice is run once."""
    found = {str(parse(variant.line)): variant for line in lines for variant in variants(line)}
    return [Variant(line, variant.settings) for line, variant in found.items()]


def _first(bed: Bed, limit: int) -> Bed:
    kept = list(bed.questions)[:limit]
    names = {question.id for question in kept}
    return replace(bed, questions=kept, qrels={name: each for name, each in bed.qrels.items() if name in names})


def _estimate(bed: Bed, systems: Sequence[Variant]) -> Estimate:
    """The most calls the lines can make, by what their stages may ask for each question."""
    questions = list(bed.questions)
    asked = sum(len(question.full_text) for question in questions) // 4
    total = Estimate()
    for variant in systems:
        most = most_calls(parse(variant.line))
        encoded = _encoded(bed, variant.line)
        total += Estimate(
            calls=most.calls * len(questions) + -(-encoded // _EMBEDDED_AT_ONCE),
            tokens_in=most.calls * asked + most.tokens_in * len(questions) + encoded * _PASSAGE_TOKENS,
            tokens_out_most=most.tokens_out * len(questions),
        )
    return total


def _encoded(bed: Bed, line: str) -> int:
    """About how many texts an embeddings endpoint would encode for a line; none where it names no endpoint."""
    spaces = [stage.word("encoder") for stage in stages(parse(line)) if stage.spec.name in {"dense", "hero"}]
    if not any(":" in spec for spec in spaces):
        return 0
    passages = sum(1 + len(document.text) // _PASSAGE_CHARACTERS for document in bed.documents)
    return len(list(bed.questions)) + passages


def _searched(artefact: Artefact) -> Searched:
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
    return Searched(traced, [hits.get(query.id, []) for query in traced])


def _finish(
    screen: Screen, bed: Bed, made: list[Artefact], output: Path, page: Path | None, seed: int, target: Path
) -> None:
    if any(artefact.manifest.metrics for artefact in made):
        show_measures(screen, made)
    measured = [artefact for artefact in made if artefact.manifest.metrics]
    if len(measured) > 1:
        compared = compare_rankings(
            screen,
            [artefact.path for artefact in measured],
            output / "comparison",
            seed=seed,
            command=command_words(),
        )
        if page is not None:
            page.write_bytes(compared.file("report.html").read_bytes())
        screen.finish(compared, artefacts=[str(artefact.path) for artefact in made])
        return
    line = str(made[0].manifest.settings["line"])
    answerable = (target / "manifest.json").is_file() and bed.qrels
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
    return re.sub(r"[^a-z0-9.]+", "-", line.lower()).strip("-")[:60] or KIND
