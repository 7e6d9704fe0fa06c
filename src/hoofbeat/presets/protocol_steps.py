"""The steps of a protocol: runs, judgments, rankings and audits, each with its estimate and its folder.

A step holds the plan that the command of its stage would make. It estimates before it spends, and it writes what that
command writes. Every call is in the ledger, so a protocol that was stopped is repeated: no call is made twice, and the
folders have the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar, Protocol

from msgspec import Struct

from hoofbeat.answering import System, draft_run
from hoofbeat.answering.answer_calls import prompt_for
from hoofbeat.answering.conditions import SCORING
from hoofbeat.answering.run_plan import RunPlan
from hoofbeat.audit import AuditPlan, audit_sources
from hoofbeat.audit.audit_estimate import estimate_audit
from hoofbeat.judging import AnswerFolder
from hoofbeat.judging.catalogue import criteria_named
from hoofbeat.judging.judge_plan import JudgePlan, plan_judging
from hoofbeat.judging.scorers import Scorer
from hoofbeat.models import Estimate, Model
from hoofbeat.models.model_loading import Session, UsedModels
from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import Answer, Passage, Question
from hoofbeat.retrieval.rankings.ranking_plan import RankingPlan, rank
from hoofbeat.store import Artefact, InputRef
from hoofbeat.window import BYTES_PER_TOKEN


class StepTools(Struct, frozen=True, kw_only=True):
    """What a step works with: models, the folder that all steps write into, the command's words, and progress."""

    session: Session
    output: Path
    command: tuple[str, ...] = ()
    progress: Progress = SILENT


class ProtocolStep(Protocol):
    """One step of a protocol."""

    @property
    def folder(self) -> str:
        """The name of its folder below the output."""
        ...

    @property
    def needs(self) -> Sequence[str]:
        """The folders of earlier steps that it reads."""
        ...

    def estimates(self, tools: StepTools) -> dict[str, Estimate]:
        """What it would spend at most, by part."""
        ...

    def write(self, tools: StepTools) -> list[Artefact]:
        """Do it; the artefacts that the report shows."""
        ...


class AnswerStep(Struct, frozen=True, kw_only=True):
    """Models answer questions under conditions, as `hoofbeat answer` does."""

    needs: ClassVar[Sequence[str]] = ()

    folder: str
    plan: RunPlan

    def estimates(self, tools: StepTools) -> dict[str, Estimate]:
        """What each condition would spend."""
        found: dict[str, Estimate] = {}
        for system, estimate in self.plan.estimate(tools.session, progress=tools.progress):
            name = f"{self.folder}: {system.condition.name}"
            found[name] = found.get(name, Estimate(max_money=0.0)) + estimate
        return found

    def write(self, tools: StepTools) -> list[Artefact]:
        """Answer, and write the run."""
        target = tools.output / self.folder
        done = self.plan.write(tools.session, target, command=tools.command, progress=tools.progress)
        return [done.artefact]


class JudgeStep(Struct, frozen=True, kw_only=True):
    """The answers of an earlier step are judged, as `hoofbeat judge` does. `encoder` is BERTScore's."""

    folder: str
    answers: AnswerStep
    judge: str
    by: tuple[str, ...]
    encoder: str
    seed: int = 0

    @property
    def needs(self) -> Sequence[str]:
        """The answers."""
        return (self.answers.folder,)

    @property
    def uses_encoder(self) -> bool:
        """Whether one of the measures needs the encoder."""
        return any(isinstance(each, Scorer) and each.uses_encoder for each in criteria_named(self.by))

    def estimates(self, tools: StepTools) -> dict[str, Estimate]:
        """What each aspect would spend at most: for answers as long as they can be, all of them wrong."""
        with TemporaryDirectory() as place:
            run = Path(place) / "run"
            write_longest_answers(self.answers.plan, run)
            plan = self._plan(run, tools.session)
            return {f"{self.folder}: {name}": estimate for name, estimate in plan.estimates().items()}

    def write(self, tools: StepTools) -> list[Artefact]:
        """Judge, and write the judgments."""
        plan = self._plan(tools.output / self.answers.folder, tools.session)
        return [plan.write(tools.output / self.folder, command=tools.command, progress=tools.progress)]

    def _plan(self, run: Path, session: Session) -> JudgePlan:
        folder = AnswerFolder.open(run)
        return plan_judging(folder, session, models=(self.judge,), by=self.by, encoder=self.encoder, seed=self.seed)


class RankStep(Struct, frozen=True, kw_only=True):
    """Retriever lines rank the documents of one test collection, as `hoofbeat retrieve` does."""

    needs: ClassVar[Sequence[str]] = ()

    folder: str
    plan: RankingPlan
    model: str

    def estimates(self, tools: StepTools) -> dict[str, Estimate]:
        """The maximum that the lines can spend."""
        return {self.folder: self.plan.estimate(lambda spec: tools.session.model(spec or self.model))}

    def write(self, tools: StepTools) -> list[Artefact]:
        """Rank and measure; a folder for each line."""
        session, target = tools.session, tools.output / self.folder
        encoders = UsedModels(session.model)
        indexes = self.plan.collection.indexes(tools.progress, models=encoders)

        def load(spec: str) -> Model:
            return session.model(spec or self.model)

        return [each.artefact for each in rank(self.plan, indexes, target, load=load, encoders=encoders)]


class AuditStep(Struct, frozen=True, kw_only=True):
    """Every source answers every question, and the answers are compared, as `hoofbeat audit` does."""

    needs: ClassVar[Sequence[str]] = ()

    folder: str
    plan: AuditPlan
    model: str
    judge: str
    lines: UsedModels
    inputs: tuple[InputRef, ...]

    def estimates(self, tools: StepTools) -> dict[str, Estimate]:
        """What it would spend at most beside what the ledger has."""
        return {self.folder: estimate_audit(self.plan, *self._models(tools.session))}

    def write(self, tools: StepTools) -> list[Artefact]:
        """Answer, compare, and write the audit."""
        model, judge = self._models(tools.session)
        made = audit_sources(
            self.plan,
            model,
            judge,
            tools.output / self.folder,
            inputs=self.inputs,
            command=tools.command,
            line_cost=lambda: self.lines.cost,
            progress=tools.progress,
        )
        return [made]

    def _models(self, session: Session) -> tuple[Model, Model]:
        model = session.model(self.model)
        return model, model if self.judge == self.model else session.model(self.judge)


def write_longest_answers(plan: RunPlan, target: Path) -> None:
    """Write a run of invented answers of the maximum length, one for each that is planned, all different and wrong.

    What judging real answers will cost is not known before they exist; it can't be more than what these cost.
    """
    with draft_run(target, plan.questions) as draft:
        for system in plan.systems:
            draft.add(_longest_answers(system, plan))
        draft.finish(models={}, inputs=[], prompts={}, settings={})


def _longest_answers(system: System, plan: RunPlan) -> Iterator[Answer]:
    condition, answerer = system.condition, system.answerer
    prompt = prompt_for(system.protocol, plan.asking.instruction, documents=condition.needs_corpus)
    tokens = 0 if system.protocol in SCORING else answerer.sampling.max_tokens or prompt.max_tokens
    for question in system.questions:
        wrong = next((each for each in question.options if each != question.answer), None)
        for sample in range(system.samples):
            yield Answer(
                question=question.id,
                model=answerer.written,
                condition=condition.name,
                sample=sample,
                protocol=system.protocol,
                text=f"{answerer.written} {condition.name} {sample} " + "x" * (BYTES_PER_TOKEN * tokens),
                options=question.options if system.protocol else (),
                choice=wrong if system.protocol else None,
                evidence=tuple(_sources(question, plan)) if condition.kind == "oracle" else (),
            )


def _sources(question: Question, plan: RunPlan) -> Iterator[Passage]:
    """The question's source documents, as the oracle shows them."""
    if plan.corpus is None:
        return
    for name in question.documents:
        text = plan.corpus.get(name).text
        yield Passage(id=name, document=name, text=text, end=len(text))
