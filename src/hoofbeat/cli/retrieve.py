"""`hoofbeat retrieve`: rankings by one retriever line or many, measured and compared."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import click

from hoofbeat.cli.bed import Bed, open_bed
from hoofbeat.cli.comparing import compare_rankings
from hoofbeat.cli.console import Screen
from hoofbeat.cli.evidence import find_evidence, show_evidence
from hoofbeat.cli.ranking import KIND, MEASURES, Models, explain, index_bed, rank_bed, show_measures
from hoofbeat.cli.session import Calling, Session, calling_options, check_file, command_words, output_option
from hoofbeat.errors import UsageError
from hoofbeat.findings.ranking import Measure
from hoofbeat.models import Estimate, Model
from hoofbeat.records import Hit, Question
from hoofbeat.retrieval import IndexSet, Searched, parse
from hoofbeat.retrieval.making import most_calls
from hoofbeat.retrieval.stages import SearchQuery
from hoofbeat.retrieval.variants import Variant, variants
from hoofbeat.store import Artefact
from hoofbeat.store.tables import read_jsonl

__all__ = ["command"]


@click.command("retrieve")
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--with", "lines", multiple=True, default=("bm25 + dense",), show_default=True,
              help="A retriever line; several may be given, or braces: 'bm25[k1={0.9|1.2}]'.")  # fmt: skip
@click.option("--corpus", "corpus_path", type=click.Path(path_type=Path), help="The documents to rank.")
@click.option("--query", "queries", multiple=True, help="Search a corpus for this text; several may be given.")
@click.option("--split", default="test", show_default=True, help="Which judgments of a BEIR folder.")
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
    measures = tuple(str(Measure.parse(measure)) for measure in measures)
    bed = open_bed(target, corpus_path, queries, split)
    if limit is not None:
        bed = _first(bed, limit)
    documents = bed.chosen(where)
    if calling.only_estimate:
        screen.estimate(_estimate(bed, systems))
        return
    with ExitStack() as stack:
        sessions: list[Session] = []

        def load(spec: str) -> Model:
            if not sessions:
                sessions.append(stack.enter_context(calling.open(screen)))
            return sessions[0].model(spec or calling.model_spec)

        indexes = index_bed(bed, screen, models=load)
        if each_source:
            _evidence(screen, bed, indexes, systems, documents, output, Models(load), explained)
            return
        made: list[Artefact] = []
        for number, variant in enumerate(systems, start=1):
            folder = output if len(systems) == 1 else output / f"{number:02d}-{_slug(variant.line)}"
            models = Models(load)
            artefact = rank_bed(
                bed,
                indexes,
                variant.line,
                folder,
                top=top,
                measures=measures,
                documents=documents,
                seed=seed,
                models=models,
                settings={"variant": variant.settings} if variant.settings else {},
                command=command_words(),
            )
            made.append(artefact)
            screen.calls(*models.used.values())
            _say_failures(screen, artefact)
            for note in artefact.manifest.settings.get("notes", ()):  # type: ignore[attr-defined]
                screen.say(str(note))
            if explained:
                explain(screen, _searched(artefact), indexes, explained)
    _finish(screen, bed, made, output, page, seed, target)


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
    return Bed(
        name=bed.name,
        questions=kept,
        qrels={name: grades for name, grades in bed.qrels.items() if name in names},
        documents=bed.documents,
        ids=bed.ids,
        content=bed.content,
        inputs=bed.inputs,
    )


def _estimate(bed: Bed, systems: Sequence[Variant]) -> Estimate:
    """The most calls the lines can make, by what their stages may ask for each question."""
    questions = list(bed.questions)
    asked = sum(len(question.full_text) for question in questions) // 4
    total = Estimate()
    for variant in systems:
        most = most_calls(parse(variant.line))
        total += Estimate(
            calls=most.calls * len(questions),
            tokens_in=most.calls * asked + most.tokens_in * len(questions),
            tokens_out_most=most.tokens_out * len(questions),
        )
    return total


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


def _say_failures(screen: Screen, artefact: Artefact) -> None:
    counts = artefact.manifest.counts
    if counts.failed:
        screen.say(
            f"{counts.failed} of {counts.failed + counts.kept} queries could not be searched by "
            f"{artefact.manifest.title}; they are left out of its measures (traces.jsonl says why)"
        )


def _finish(
    screen: Screen, bed: Bed, made: list[Artefact], output: Path, page: Path | None, seed: int, target: Path
) -> None:
    if made[0].manifest.metrics:
        show_measures(screen, made)
    _say_recall(screen, made)
    if len(made) > 1 and bed.qrels:
        compared = compare_rankings(screen, [artefact.path for artefact in made], output / "comparison", seed=seed)
        if page is not None:
            page.write_bytes(compared.file("report.html").read_bytes())
        screen.finish(compared, next_step=("hoofbeat", "compare", *(artefact.path for artefact in made)))
        return
    if page is not None:
        raise UsageError("a page compares lines, so it needs two or more", fix="give --with twice, or use braces")
    line = str(made[0].manifest.settings["line"])
    next_step = (
        ("hoofbeat", "answer", target, "--condition", "closed", "--condition", f"{line} @3") if bed.qrels else ()
    )
    screen.finish(made[0], next_step=next_step)


def _say_recall(screen: Screen, made: Sequence[Artefact]) -> None:
    """What approximate search found of the exact results, as its index measured."""
    for artefact in made:
        for name, measured in IndexSet.recalls(artefact.manifest.settings).items():
            screen.say(f"{artefact.manifest.title}: {name} finds {measured:.3f} of what exact search finds (recall@10)")


def _slug(line: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", line.lower()).strip("-")[:60] or KIND
