"""`hoofbeat audit`: the same questions, one source at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from hoofbeat.benchmarks import Benchmark
from hoofbeat.cli.ranking import index_corpus
from hoofbeat.cli.session import Calling, calling_options, command_words, output_option
from hoofbeat.corpus import Corpus
from hoofbeat.errors import UsageError
from hoofbeat.judging import AuditPlan, audit_sources
from hoofbeat.progress import Progress
from hoofbeat.prompts import load_pack
from hoofbeat.recipes import teaching_patient_questions
from hoofbeat.records import Document, Passage, Question
from hoofbeat.retrieval import Retriever

__all__ = ["command", "plan_audit"]


def plan_audit(
    corpus: Corpus,
    questions: Sequence[Question],
    *,
    sources: Sequence[str] = (),
    pack: str = "transplant",
    line: str = "bm25 + dense",
    passages: int = 5,
    whole_up_to: int = 80_000,
    max_tokens: int | None = None,
    progress: Progress,
) -> AuditPlan:
    """Plan an audit of a corpus, or of some of its documents."""
    documents: list[Document] = (
        [corpus.get(name) for name in dict.fromkeys(sources)] if sources else list(corpus.documents())
    )
    if len({document.id for document in documents}) < 2:
        raise UsageError("an audit compares sources, so it needs at least two", fix="name more documents with --source")
    retriever = Retriever(index_corpus(corpus, progress), line)

    def search(asked: Sequence[Question], source: str) -> list[list[Passage]]:
        found = retriever.evidence([(q.id, q.full_text) for q in asked], [source], passages)
        return [list(each.parts) for each in found]

    return AuditPlan(
        questions=questions,
        documents=documents,
        pack=load_pack(pack),
        search=search,
        whole_up_to=whole_up_to,
        max_tokens=max_tokens,
        settings={"line": retriever.line, "passages": passages, "whole_up_to": whole_up_to, "max_tokens": max_tokens},
    )


@click.command("audit")
@click.argument("corpus", type=click.Path(path_type=Path))
@click.argument("questions")
@click.option("--judge", "judge_spec", help="Model that compares the answers [default: the answering model].")
@click.option("--source", "sources", multiple=True, help="Audit only these documents (ids); several may be given.")
@click.option("--pack", default="transplant", show_default=True, help="Domain pack.")
@click.option("--with", "line", default="bm25 + dense", show_default=True, help="Retriever line inside a long source.")
@click.option("--passages", type=click.IntRange(1, 50), default=5, show_default=True, help="Passages shown of one.")
@click.option("--whole-up-to", type=click.IntRange(0), default=80_000, show_default=True, metavar="CHARACTERS",
              help="Sources up to this length are shown whole.")  # fmt: skip
@click.option("--question", "ids", multiple=True, help="Ask only these questions (ids); several may be given.")
@click.option("--limit", type=click.IntRange(1), help="Only the first so many questions.")
@click.option("--max-tokens", type=click.IntRange(1), help="Length limit of an answer [default: the prompt's].")
@output_option("audit")
@calling_options
def command(
    corpus: Path,
    questions: str,
    judge_spec: str | None,
    sources: tuple[str, ...],
    pack: str,
    line: str,
    passages: int,
    whole_up_to: int,
    ids: tuple[str, ...],
    limit: int | None,
    max_tokens: int | None,
    output: Path,
    calling: Calling,
) -> None:
    """Ask every source of CORPUS the QUESTIONS (a benchmark folder, or `teaching`) and compare the answers."""
    screen = calling.screen()
    opened = Corpus.open(corpus)
    inputs = [opened.artefact.reference()]
    if questions == "teaching":
        asked = teaching_patient_questions()
    else:
        bench = Benchmark.open(Path(questions))
        asked = bench.questions
        inputs.append(bench.artefact.reference())
    asked = _chosen(asked, ids, limit)
    plan = plan_audit(
        opened,
        asked,
        sources=sources,
        pack=pack,
        line=line,
        passages=passages,
        whole_up_to=whole_up_to,
        max_tokens=max_tokens,
        progress=screen,
    )
    with calling.open(screen) as session:
        model = session.model(calling.model_spec)
        judge = session.model(judge_spec) if judge_spec and judge_spec != calling.model_spec else model
        if calling.only_estimate:
            screen.estimate(plan.estimate(model, judge))
            return
        artefact = audit_sources(plan, model, judge, output, inputs=inputs, command=command_words(), progress=screen)
        screen.calls(model, judge)
        screen.finish(artefact, next_step=("hoofbeat", "report", output, "-o", "report"))


def _chosen(questions: Sequence[Question], ids: Sequence[str], limit: int | None) -> list[Question]:
    unknown = set(ids) - {question.id for question in questions}
    if unknown:
        raise UsageError(f"there is no question {', '.join(sorted(unknown))}", fix="check --question")
    return [question for question in questions if not ids or question.id in ids][:limit]
