"""What `hoofbeat answer` does: models × conditions on one benchmark, planned and checked, then answered."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from hoofbeat.answering.answer_grid import Grid, PromptSettings, System, plan_systems
from hoofbeat.answering.answerers import SamplingSettings, parse_answerer
from hoofbeat.answering.condition_material import TOKENS, DocumentStore, PreparedCondition, prepare
from hoofbeat.answering.conditions import Condition, parse_condition
from hoofbeat.answering.run_folder import KIND, draft_run
from hoofbeat.benchmarks import Benchmark
from hoofbeat.benchmarks.benchmark import find_corpus
from hoofbeat.corpus import Corpus
from hoofbeat.errors import InputError, UsageError
from hoofbeat.findings.caveats import part_settings
from hoofbeat.models import Estimate, Model
from hoofbeat.models.model_loading import Session, UsedModels
from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import Question
from hoofbeat.retrieval import IndexSet, parse
from hoofbeat.retrieval.corpus_index import index_corpus
from hoofbeat.retrieval.line import cost_bound
from hoofbeat.store import Artefact, InputRef, check_target, open_artefact


class FinishedRun(NamedTuple):
    """A run that was written, and the grid that says what each of its models took."""

    artefact: Artefact
    grid: Grid


class RunPlan(Struct, frozen=True, kw_only=True):
    """What is to be answered, by whom and how, checked; `settings` are for the manifest."""

    bench: Benchmark
    corpus: Corpus | None
    questions: list[Question]
    systems: list[System]
    asking: PromptSettings
    settings: dict[str, object]

    def estimate(self, session: Session, *, progress: Progress = SILENT) -> list[tuple[System, Estimate]]:
        """What each system would spend; a line that asks a model shows nothing that could be estimated before."""
        asking = next((system.condition for system in self.systems if _asks_a_model(system.condition)), None)
        if asking is not None:
            raise UsageError(
                f"the cost of {asking.base} can't be estimated: its retriever asks a model first",
                fix="estimate the retrieval by itself: hoofbeat retrieve --estimate",
            )
        return _Answering(self, session, progress).grid().estimate()

    def write(
        self,
        session: Session,
        output: Path,
        *,
        indexes: IndexSet | None = None,
        command: Sequence[str] = (),
        progress: Progress = SILENT,
    ) -> FinishedRun:
        """Answer, and write the run; `indexes` are the corpus's where they have been made already."""
        check_target(output.resolve(), KIND)
        answering = _Answering(self, session, progress, indexes)
        grid = answering.grid()
        return FinishedRun(answering.write(grid, output, command=command), grid)


def plan_run(
    bench: Benchmark,
    *,
    models: Sequence[str] = ("embedded",),
    conditions: Sequence[str] = ("closed",),
    protocols: Sequence[str] = (),
    instruction: str = "best",
    corpus: Path | None = None,
    limit: int | None = None,
    samples: int = 1,
    temperature: float = 0.0,
    seed: int = 0,
    option_seed: int = 0,
) -> RunPlan:
    """Plan a run of models × conditions × protocols; what is wrong with an option is said before anything is done.

    `corpus` is where the documents are that conditions show, if not beside the benchmark. Without `protocols` an answer
    is taken by letter where a question has options, else as free text.
    """
    sampling = SamplingSettings(temperature=temperature, seed=seed)
    answerers = [parse_answerer(text, samples=samples, sampling=sampling) for text in models]
    parsed = list(dict.fromkeys(map(parse_condition, conditions)))
    for condition in parsed:
        if condition.line:
            parse(condition.line)
    questions = bench.first(limit)
    if not questions:
        raise InputError("the benchmark has no questions", where=str(bench.path), fix="name another, or build it again")
    edition = {"edition": bench.edition} if bench.edition else {}
    systems = plan_systems(list(dict.fromkeys(answerers)), parsed, questions, tuple(protocols))
    return RunPlan(
        bench=bench,
        corpus=find_corpus(corpus, bench.artefact) if any(each.needs_corpus for each in parsed) else None,
        questions=questions,
        systems=systems,
        asking=PromptSettings(instruction=instruction, option_seed=option_seed),
        settings={
            "samples": samples,
            "temperature": temperature,
            "limit": limit,
            **part_settings(len(questions), len(bench.questions)),
            **edition,
        },
    )


class _Answering:
    """A plan at work: models and documents made ready, then the estimate or the answers."""

    def __init__(self, plan: RunPlan, session: Session, progress: Progress, indexes: IndexSet | None = None) -> None:
        self._plan = plan
        self._indexes = indexes
        self._progress = progress
        self._models: dict[str, Model] = {}
        self._lines: dict[str, UsedModels] = {}
        for answerer in dict.fromkeys(system.answerer for system in plan.systems):
            model = session.model(answerer.spec)
            model.spec = answerer.written
            self._models[answerer.written] = model
            self._lines[answerer.written] = _line_models(session, answerer.spec)

    def grid(self) -> Grid:
        """Every answer that is wanted, with what is shown for it; documents are cut and indexed once for all."""
        return Grid(self._plan.systems, self._models, self._showings(), self._plan.asking)

    def write(self, grid: Grid, output: Path, *, command: Sequence[str]) -> Artefact:
        """Answer, and write the run."""
        with draft_run(output, self._plan.questions) as draft:
            with self._progress.task("answering", grid.size) as task:
                for block in grid.answers(task):
                    draft.add(block)
            draft.finish(
                models=self._models,
                beside=self._beside(),
                inputs=self._inputs(),
                prompts={**self._line_prompts, **grid.prompts},
                settings={**self._described(), **self._plan.settings},
                seeds=self._seeds(),
                command=command,
                output_limits=grid.output_limits(),
            )
        return open_artefact(output, "run")

    def _showings(self) -> dict[tuple[str, str], PreparedCondition]:
        """Every condition made ready; a line that asks a model is searched once for each model, another once."""
        plan = self._plan
        conditions = {system.condition.base: system.condition for system in plan.systems}
        library = DocumentStore(plan.corpus, images=plan.bench.artefact)
        if plan.corpus is not None and any(condition.line for condition in conditions.values()):
            indexes = self._indexes
            if indexes is None:
                first = next(iter(self._lines.values()))
                indexes = index_corpus(plan.corpus, self._progress, models=first)
            library = DocumentStore(plan.corpus, indexes, plan.bench.artefact)
        made: dict[tuple[str, str], PreparedCondition] = {}
        self._line_prompts: dict[str, str] = {}
        self._retrievers: dict[str, object] = {}
        for name, condition in conditions.items():
            shared: PreparedCondition | None = None
            for written in self._models:
                if shared is None or _asks_a_model(condition):
                    shared = prepare(condition, plan.questions, library, self._lines[written])
                made[written, name] = shared
            if shared is not None and shared.retriever is not None:
                self._line_prompts |= shared.retriever.prompts
                self._retrievers[shared.retriever.line] = shared.retriever.describe()
        if library.searches:
            library.indexes.progress = SILENT  # what agents search for from now on happens inside one bar
        return made

    def _beside(self) -> dict[str, Model]:
        """Models that retriever lines asked, by the name of the model they worked for and their own."""
        return {
            f"line of {written}{f': {spec}' if spec else ''}": model
            for written, models in self._lines.items()
            for spec, model in models.used.items()
            if model.cost.calls
        }

    def _inputs(self) -> list[InputRef]:
        corpus = [self._plan.corpus.artefact.reference()] if self._plan.corpus else []
        return [self._plan.bench.artefact.reference(), *corpus]

    def _described(self) -> dict[str, object]:
        systems = self._plan.systems
        return {
            "models": list(self._models),
            "conditions": list(dict.fromkeys(system.condition.name for system in systems)),
            "protocols": list(dict.fromkeys(system.protocol or "free" for system in systems)),
            "instruction": self._plan.asking.instruction,
            "sampling": {
                system.answerer.written: {"samples": system.answerer.samples}
                | msgspec.structs.asdict(system.answerer.sampling)
                for system in systems
            },
            **({"retrievers": self._retrievers} if self._retrievers else {}),
            **({"tokens": TOKENS} if any(system.condition.kind == "first" for system in systems) else {}),
        }

    def _seeds(self) -> dict[str, int]:
        """The seeds that mattered: of sampling, each model's where there are several, and of the options' order."""
        systems = self._plan.systems
        drawn = {
            system.answerer.written: system.answerer.sampling.seed
            for system in systems
            if system.answerer.sampling.temperature
        }
        seeds = {f"sampling: {name}": seed for name, seed in drawn.items()}
        if drawn and len(self._models) == 1:
            seeds = {"sampling": next(iter(drawn.values()))}
        lettered = any(system.protocol == "letter" for system in systems)
        return seeds | ({"options": self._plan.asking.option_seed} if lettered else {})


def _line_models(session: Session, own: str) -> UsedModels:
    """The models that a retriever line may ask for one that answers: itself, where the line names none."""
    return UsedModels(lambda spec: session.model(spec or own))


def _asks_a_model(condition: Condition) -> bool:
    return bool(condition.line) and cost_bound(parse(condition.line)).calls > 0
