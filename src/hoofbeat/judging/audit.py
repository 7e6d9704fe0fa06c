"""The audit: every source answers every question it is asked, and every pair of answers is compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from hoofbeat.answering.answer import Planned
from hoofbeat.answering.run import count_outcomes
from hoofbeat.answering.source import Search, answer_from_sources, plan_sources, source_request
from hoofbeat.errors import UsageError
from hoofbeat.judging.relation import compare_answers, comparison_request
from hoofbeat.models import Estimate, Model
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import Pack, load_prompt
from hoofbeat.records import Answer, Comparison, Document, Facets, Question
from hoofbeat.store import Artefact, InputRef, Manifest, create, open_artefact
from hoofbeat.store.tables import read_jsonl, write_jsonl

__all__ = ["Audit", "AuditPlan", "Source", "audit_sources"]

KIND = "audit"


class Source(Struct, frozen=True, kw_only=True):
    """One audited source."""

    id: str
    title: str
    facets: Facets


class AuditPlan(Struct, frozen=True, kw_only=True):
    """What is audited, and how sources are shown to the model."""

    questions: Sequence[Question]
    documents: Sequence[Document]
    pack: Pack
    search: Search
    whole_up_to: int = 80_000
    max_tokens: int | None = None
    settings: dict[str, object]

    def __post_init__(self) -> None:
        for kind, items in (("source", self.documents), ("question", self.questions)):
            twice = [name for name, count in Counter(item.id for item in items).items() if count > 1]
            if twice:
                raise UsageError(f"the {kind} {twice[0]} is there more than once", fix=f"give each {kind} once")

    def planned(self, model: Model) -> list[Planned]:
        """Every (question, source) with what will be shown."""
        return plan_sources(
            self.questions,
            self.documents,
            self.pack,
            self.search,
            window=model.context,
            whole_up_to=self.whole_up_to,
            max_tokens=self.max_tokens,
        )

    def estimate(self, model: Model, judge: Model) -> Estimate:
        """What the audit would cost at most: every answer is checked for absence, and no pair is absent."""
        planned = self.planned(model)
        answers = model.estimate([source_request(item, self.pack, self.max_tokens) for item in planned])
        longest = "x" * (4 * (self.max_tokens or load_prompt("answer-source").max_tokens))
        absence = load_prompt("absence")
        checks = [
            absence.request({"question": item.question.full_text, "answer": f"{longest} {item.condition}"})
            for item in planned
        ]
        sources = Counter(item.question.id for item in planned)
        pairs = [
            comparison_request(question, f"{longest} {number}", longest, self.pack)
            for question in self.questions
            for number in range(sources[question.id] * (sources[question.id] - 1) // 2)
        ]
        return answers + model.estimate(checks) + judge.estimate(pairs)


class Audit:
    """An opened audit."""

    def __init__(self, artefact: Artefact) -> None:
        self.artefact = artefact
        self.questions: list[Question] = list(read_jsonl(artefact.file("questions.jsonl"), Question))
        self.sources: list[Source] = list(read_jsonl(artefact.file("sources.jsonl"), Source))
        self.answers: list[Answer] = list(read_jsonl(artefact.file("answers.jsonl"), Answer))
        self.comparisons: list[Comparison] = list(read_jsonl(artefact.file("comparisons.jsonl"), Comparison))

    @staticmethod
    def open(path: Path) -> Audit:
        """Open an audit folder."""
        return Audit(open_artefact(path, KIND))


def audit_sources(
    plan: AuditPlan,
    model: Model,
    judge: Model,
    target: Path,
    *,
    inputs: Sequence[InputRef],
    command: Sequence[str] = (),
    progress: Progress = SILENT,
) -> Artefact:
    """Run the audit and write its folder."""
    answers = answer_from_sources(model, plan.planned(model), plan.pack, max_tokens=plan.max_tokens, progress=progress)
    comparisons = compare_answers(judge, plan.questions, answers, plan.pack, progress=progress)
    prompts = {name: load_prompt(name).label for name in ("answer-source", "absence", "compare")}
    sources = [Source(id=item.id, title=item.title, facets=item.facets) for item in plan.documents]
    with create(target, replace_kind=KIND) as draft:
        write_jsonl(draft.path / "questions.jsonl", plan.questions)
        write_jsonl(draft.path / "sources.jsonl", sources)
        write_jsonl(draft.path / "answers.jsonl", answers)
        write_jsonl(draft.path / "comparisons.jsonl", comparisons)
        draft.finish(
            Manifest(
                kind=KIND,
                title=f"{len(sources)} sources, {len(plan.questions)} questions",
                command=list(command),
                inputs=list(inputs),
                settings={**plan.settings, "pack": f"{plan.pack.name}@{plan.pack.fingerprint}"},
                models={"answer": model.identity, "judge": judge.identity},
                prompts=prompts,
                counts=count_outcomes(item.failure.kind if item.failure else None for item in comparisons),
                cost=model.cost if model is judge else model.cost + judge.cost,
            )
        )
    return open_artefact(target, KIND)
