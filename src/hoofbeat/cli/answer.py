"""`hoofbeat answer`: a model answers a benchmark under one or more conditions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from hoofbeat.answering import Condition, Planned, answer_all, parse_condition, plan_answers, request_for, write_run
from hoofbeat.cli.console import Screen
from hoofbeat.cli.retrieve import index_corpus
from hoofbeat.cli.session import calling_options, command_words, find_corpus, open_session, output_option
from hoofbeat.corpus import Corpus
from hoofbeat.models import Model
from hoofbeat.progress import Progress
from hoofbeat.prompts import load_prompt
from hoofbeat.recipes import Benchmark
from hoofbeat.records import Passage, Question
from hoofbeat.retrieval import IndexSet, Retriever, whole

__all__ = ["command", "plan_conditions"]


def plan_conditions(
    questions: Sequence[Question],
    conditions: Sequence[Condition],
    corpus: Corpus | None,
    model: Model,
    *,
    samples: int = 1,
    indexes: IndexSet | None = None,
    progress: Progress,
) -> list[Planned]:
    """Plan every condition; documents are chunked and indexed once for all of them."""
    planned: list[Planned] = []
    for condition in conditions:
        shown: dict[str, list[Passage]] = {}
        if condition.name == "oracle" and corpus is not None:
            shown = {q.id: [p for name in q.documents for p in whole(corpus.get(name))] for q in questions}
        elif condition.line and corpus is not None:
            if indexes is None:
                indexes = index_corpus(corpus, progress)
            found = Retriever(indexes, condition.line).search_passages(
                [(q.id, q.full_text) for q in questions], condition.top
            )
            shown = {
                question.id: [indexes.passage(hit.passage) for hit in hits]
                for question, hits in zip(questions, found, strict=True)
            }
        planned += plan_answers(questions, condition.name, shown, window=model.context, samples=samples)
    return planned


@click.command("answer")
@click.argument("benchmark", type=click.Path(path_type=Path))
@click.option("--corpus", "corpus_path", type=click.Path(path_type=Path), help="The documents to retrieve from.")
@click.option(
    "--condition", "conditions", multiple=True, default=("closed",), show_default=True,
    help="closed, oracle, or a retriever line with how many passages: 'bm25 + dense @3'. Several may be given.",
)  # fmt: skip
@click.option("--limit", type=int, help="Only the first so many questions.")
@click.option("--samples", type=click.IntRange(1, 64), default=1, show_default=True, help="Answers a question.")
@output_option("run")
@calling_options
def command(
    benchmark: Path,
    corpus_path: Path | None,
    conditions: tuple[str, ...],
    limit: int | None,
    samples: int,
    output: Path,
    model_spec: str,
    ledger_path: Path | None,
    config_path: Path | None,
    budget: str | None,
    only_estimate: bool,
    as_json: bool,
) -> None:
    """Let a model answer the questions of BENCHMARK."""
    screen = Screen(as_json=as_json)
    parsed = [parse_condition(text) for text in dict.fromkeys(conditions)]
    bench = Benchmark.open(benchmark)
    corpus = find_corpus(corpus_path, bench.artefact) if any(c.needs_corpus for c in parsed) else None
    questions = bench.first(limit)
    with open_session(screen, ledger_path=ledger_path, config_path=config_path, budget=budget) as session:
        model = session.model(model_spec)
        planned = plan_conditions(questions, parsed, corpus, model, samples=samples, progress=screen)
        if only_estimate:
            screen.estimate(model.estimate([request_for(item) for item in planned]))
            return
        answers = answer_all(model, planned, progress=screen)
        inputs = [bench.artefact.reference()] + ([corpus.artefact.reference()] if corpus else [])
        artefact = write_run(
            output,
            questions=questions,
            answers=answers,
            model=model,
            inputs=inputs,
            prompts={name: load_prompt(name).label for name in ("answer-closed", "answer-evidence")},
            settings={"conditions": [c.name for c in parsed], "samples": samples, "limit": limit},
            command=command_words(),
        )
        screen.calls(model)
        screen.finish(artefact, next_step=f"hoofbeat judge {output} --model {model_spec}")
