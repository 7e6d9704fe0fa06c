"""`hoofbeat answer`: a model answers a benchmark under one or more conditions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import click

from hoofbeat.answering import (
    Condition,
    Planned,
    Sampling,
    answer_all,
    parse_condition,
    plan_answers,
    request_for,
    write_run,
)
from hoofbeat.benchmarks import Benchmark
from hoofbeat.cli.ranking import index_corpus
from hoofbeat.cli.session import Calling, calling_options, command_words, edition_option, find_corpus, output_option
from hoofbeat.corpus import Corpus
from hoofbeat.errors import UsageError
from hoofbeat.models import Model
from hoofbeat.progress import Progress
from hoofbeat.prompts import load_prompt
from hoofbeat.records import Failure, Passage, Question
from hoofbeat.retrieval import IndexSet, Retriever, parse, whole
from hoofbeat.retrieval.making import most_calls

__all__ = ["command", "plan_conditions"]


def plan_conditions(
    questions: Sequence[Question],
    conditions: Sequence[Condition],
    corpus: Corpus | None,
    model: Model,
    *,
    samples: int = 1,
    indexes: IndexSet | None = None,
    models: Callable[[str], Model] | None = None,
    progress: Progress,
) -> list[Planned]:
    """Plan every condition; documents are cut and indexed once for all of them, `models` serves lines that ask one."""
    planned: list[Planned] = []
    for condition in conditions:
        shown: dict[str, list[Passage]] = {}
        failures: dict[str, Failure] = {}
        if condition.name == "oracle" and corpus is not None:
            shown = {q.id: [p for name in q.documents for p in whole(corpus.get(name))] for q in questions}
        elif condition.line and corpus is not None:
            if indexes is None:
                indexes = index_corpus(corpus, progress, models=models)
            searched = Retriever(indexes, condition.line, model=models).run(
                [(q.id, q.full_text) for q in questions], condition.top, by_document=False
            )
            failures = searched.failures
            shown = {
                question.id: [indexes.passage(hit.passage) for hit in hits]
                for question, hits in zip(questions, searched.hits, strict=True)
            }
        planned += plan_answers(
            questions, condition.name, shown, window=model.context, samples=samples, failures=failures
        )
    return planned


@click.command("answer")
@click.argument("benchmark", type=click.Path(path_type=Path))
@click.option("--corpus", "corpus_path", type=click.Path(path_type=Path), help="The documents to retrieve from.")
@click.option(
    "--condition", "conditions", multiple=True, default=("closed",), show_default=True,
    help="closed, oracle, or a retriever line with how many passages: 'bm25 + dense @3'. Several may be given.",
)  # fmt: skip
@edition_option
@click.option("--limit", type=click.IntRange(1), help="Only the first so many questions.")
@click.option("--samples", type=click.IntRange(1, 64), default=1, show_default=True, help="Answers a question.")
@click.option("--temperature", type=click.FloatRange(0.0, 2.0), default=0.0, show_default=True, help="Of the answers.")
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of sampling; sample n uses seed + n."
)
@output_option("run")
@calling_options
def command(
    benchmark: Path,
    corpus_path: Path | None,
    conditions: tuple[str, ...],
    edition: str,
    limit: int | None,
    samples: int,
    temperature: float,
    seed: int,
    output: Path,
    calling: Calling,
) -> None:
    """Let a model answer the questions of BENCHMARK."""
    screen = calling.screen()
    sampling = Sampling(temperature=temperature, seed=seed)
    if samples > 1 and not temperature:
        raise UsageError(
            f"{samples} samples at temperature 0 would all be the same", fix="give --temperature 0.6, or one sample"
        )
    parsed = list({condition.name: condition for condition in map(parse_condition, conditions)}.values())
    bench = Benchmark.open(benchmark, edition)
    corpus = find_corpus(corpus_path, bench.artefact) if any(c.needs_corpus for c in parsed) else None
    questions = bench.first(limit)
    with calling.open(screen) as session:
        model = session.model(calling.model_spec)
        asking = [c.name for c in parsed if c.line and most_calls(parse(c.line)).calls]
        if calling.only_estimate and asking:
            raise UsageError(
                f"what {asking[0]} will show is known only after it has asked a model, so it can't be estimated",
                fix="estimate the retrieval by itself: hoofbeat retrieve --estimate",
            )
        planned = plan_conditions(
            questions,
            parsed,
            corpus,
            model,
            samples=samples,
            models=lambda spec: session.model(spec or calling.model_spec),
            progress=screen,
        )
        if calling.only_estimate:
            asked = [request_for(item, sampling) for item in planned]
            screen.estimate(model.estimate(asked))
            return
        answers = answer_all(model, planned, sampling=sampling, progress=screen)
        inputs = [bench.artefact.reference()] + ([corpus.artefact.reference()] if corpus else [])
        artefact = write_run(
            output,
            questions=questions,
            answers=answers,
            model=model,
            inputs=inputs,
            prompts=_prompts(parsed),
            settings={
                "conditions": [c.name for c in parsed],
                "samples": samples,
                "temperature": temperature,
                "limit": limit,
                **({"edition": edition} if edition else {}),
            },
            seeds={"sampling": seed} if temperature else {},
            command=command_words(),
        )
        screen.calls(model)
        screen.finish(artefact, next_step=("hoofbeat", "judge", output, "--model", calling.model_spec))


def _prompts(conditions: Sequence[Condition]) -> dict[str, str]:
    used = {"answer-evidence" if condition.needs_corpus else "answer-closed" for condition in conditions}
    return {name: load_prompt(name).label for name in sorted(used)}
