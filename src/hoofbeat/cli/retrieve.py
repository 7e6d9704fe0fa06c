"""`hoofbeat retrieve`: rankings of a corpus for a benchmark's questions, and how good they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import command_words, find_corpus, json_option, output_option
from hoofbeat.corpus import Corpus
from hoofbeat.errors import InputError
from hoofbeat.findings.intervals import bootstrap_mean
from hoofbeat.findings.ranking import Measure, evaluate, trec_run_lines
from hoofbeat.models import load_encoder
from hoofbeat.progress import Progress
from hoofbeat.recipes import Benchmark
from hoofbeat.records import Hit
from hoofbeat.retrieval import IndexSet, Retriever, chunk
from hoofbeat.store import Artefact, Counts, Manifest, create, open_artefact
from hoofbeat.store.files import atomic_write
from hoofbeat.store.tables import write_jsonl, write_tsv

__all__ = ["MEASURES", "command", "index_corpus", "rank_benchmark"]

KIND = "rankings"
MEASURES = ("nDCG@10", "R@1", "R@10", "RR")


def index_corpus(corpus: Corpus, progress: Progress) -> IndexSet:
    """The passages of a corpus, ready to be indexed by whatever lines need."""
    passages = [passage for document in corpus.documents() for passage in chunk(document)]
    return IndexSet(passages, encoder=load_encoder, progress=progress)


def rank_benchmark(
    bench: Benchmark,
    corpus: Corpus,
    indexes: IndexSet,
    line: str,
    target: Path,
    *,
    top: int = 100,
    measures: Sequence[str] = MEASURES,
    seed: int = 0,
    command: Sequence[str] = (),
) -> Artefact:
    """Rank the corpus for every question that names its documents, measure it, and write the rankings folder."""
    parsed = [Measure.parse(text) for text in measures]
    retriever = Retriever(indexes, line)
    qrels = bench.qrels()
    asked = [question for question in bench.questions if question.id in qrels]
    if not asked:
        raise InputError(
            "no question of this benchmark names the documents that answer it, so nothing can be measured",
            where=str(bench.artefact.path),
            fix="use a benchmark with qrels",
        )
    here = set(corpus.ids())
    missing = [question.id for question in asked if here.isdisjoint(qrels[question.id])]
    if len(missing) == len(asked):
        raise InputError(
            "this corpus holds none of the documents that answer the benchmark's questions",
            where=str(corpus.path),
            fix="name the corpus the benchmark was made from: --corpus",
        )
    found = retriever.search([(question.id, question.full_text) for question in asked], top)
    hits: list[Hit] = [hit for row in found for hit in row]
    result = evaluate(hits, qrels, parsed)
    metrics: dict[str, object] = {}
    for measure in map(str, parsed):
        values = [result.per_question[question.id][measure] for question in asked]
        interval = bootstrap_mean(values, seed=seed)
        metrics[measure] = {
            "value": result.means[measure],
            "low": interval.low,
            "high": interval.high,
            "n": len(values),
        }
    with create(target, replace_kind=KIND) as draft:
        write_jsonl(draft.path / "hits.jsonl", hits)
        with atomic_write(draft.path / "run.trec") as stream:
            stream.writelines(f"{row}\n".encode() for row in trec_run_lines(hits, "hoofbeat"))
        rows = [(q.id, name, result.per_question[q.id][name]) for q in asked for name in map(str, parsed)]
        write_tsv(draft.path / "queries.tsv", ("query", "measure", "value"), rows)
        draft.finish(
            Manifest(
                kind=KIND,
                title=retriever.line,
                command=list(command),
                inputs=[bench.artefact.reference(), corpus.artefact.reference()],
                settings={
                    **retriever.describe(),
                    "top": top,
                    "chunking": "160 words, 32 overlapping",
                    "unanswerable": len(missing),
                },
                seeds={"bootstrap": seed},
                counts=Counts(kept=len(asked)),
                metrics=metrics,
            )
        )
    return open_artefact(target, KIND)


@click.command("retrieve")
@click.argument("benchmark", type=click.Path(path_type=Path))
@click.option("--with", "line", default="bm25 + dense", show_default=True, help="The retriever line.")
@click.option("--corpus", "corpus_path", type=click.Path(path_type=Path), help="The documents to rank.")
@click.option("--top", type=click.IntRange(1, 10_000), default=100, show_default=True, help="Documents a question.")
@click.option("--measure", "measures", multiple=True, default=MEASURES, show_default=True, help="Measures, by name.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the bootstrap intervals.")
@output_option("rankings")
@json_option
def command(
    benchmark: Path,
    line: str,
    corpus_path: Path | None,
    top: int,
    measures: tuple[str, ...],
    seed: int,
    output: Path,
    as_json: bool,
) -> None:
    """Rank the corpus for the questions of BENCHMARK and measure the rankings."""
    screen = Screen(as_json=as_json)
    bench = Benchmark.open(benchmark)
    corpus = find_corpus(corpus_path, bench.artefact)
    artefact = rank_benchmark(
        bench,
        corpus,
        index_corpus(corpus, screen),
        line,
        output,
        top=top,
        measures=measures,
        seed=seed,
        command=command_words(),
    )
    show_measures(screen, [artefact])
    screen.finish(
        artefact, next_step=("hoofbeat", "answer", benchmark, "--condition", "closed", "--condition", f"{line} @3")
    )


def show_measures(screen: Screen, artefacts: Sequence[Artefact]) -> None:
    """A table of rankings, a row each; the first measure with its 95% interval, all others' are in the manifest."""
    names = list(artefacts[0].manifest.metrics)
    rows = []
    for artefact in artefacts:
        cells = [str(artefact.manifest.settings["line"])]
        for place, name in enumerate(names):
            metric = artefact.manifest.metrics[name]
            assert isinstance(metric, dict)
            interval = f" [{metric['low']:.2f}, {metric['high']:.2f}]" if place == 0 else ""
            cells.append(f"{metric['value']:.3f}{interval}")
        rows.append(cells)
    screen.table(["retriever", *names], rows)
