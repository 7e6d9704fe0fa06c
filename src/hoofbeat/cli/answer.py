"""`hoofbeat answer`: models answer a benchmark under conditions, as one grid with one estimate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import click
import msgspec
from msgspec import Struct

from hoofbeat.answering import (
    INSTRUCTIONS,
    PROTOCOLS,
    Asking,
    Condition,
    Grid,
    Library,
    Sampling,
    Showing,
    System,
    draft_run,
    parse_answerer,
    parse_condition,
    plan_systems,
    prepare,
)
from hoofbeat.answering.case_parts import TOKENS
from hoofbeat.benchmarks import Benchmark
from hoofbeat.benchmarks.benchmark import find_corpus
from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import (
    Calling,
    calling_options_of_several,
    command_words,
    edition_option,
    output_option,
)
from hoofbeat.corpus import Corpus
from hoofbeat.errors import InputError, UsageError
from hoofbeat.models import Estimate, Model
from hoofbeat.models.session import Session, UsedModels
from hoofbeat.progress import SILENT
from hoofbeat.records import Question
from hoofbeat.reports.tables import Cell, Column
from hoofbeat.retrieval import IndexSet, parse
from hoofbeat.retrieval.line import cost_bound
from hoofbeat.retrieval.rankings import index_corpus
from hoofbeat.store import Artefact, InputRef, check_target, open_artefact

__all__ = ["Answering", "Asked", "command"]


@click.command("answer")
@click.argument("benchmark", type=click.Path(path_type=Path))
@click.option("--corpus", "corpus_path", type=click.Path(path_type=Path), help="The documents to retrieve from.")
@click.option(
    "--condition", "conditions", multiple=True, default=("closed",), show_default=True,
    help="closed, images, 'first 20%', 'first 20% of sentences', oracle, a retriever line with how many passages: "
    "'bm25 + dense @3' (or whole: 'bm25 + dense @3 documents'), or 'agent over bm25 + dense'. Several may be given.",
)  # fmt: skip
@click.option(
    "--protocol", "protocols", multiple=True, type=click.Choice(PROTOCOLS),
    help="How an answer is taken; several may be given. Without: by letter where a question has options, else free.",
)  # fmt: skip
@click.option(
    "--instruction", type=click.Choice(INSTRUCTIONS), default="best", show_default=True,
    help="best: one best answer. brief: the same in few words and without visible reasoning, for medical models.",
)  # fmt: skip
@edition_option
@click.option("--limit", type=click.IntRange(1), help="Only the first so many questions.")
@click.option("--samples", type=click.IntRange(1, 64), default=1, show_default=True, help="Answers a question.")
@click.option("--temperature", type=click.FloatRange(0.0, 2.0), default=0.0, show_default=True, help="Of the answers.")
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of sampling; sample n uses seed + n."
)
@click.option(
    "--option-seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Seed of the order options are shown in.",
)
@output_option("run")
@calling_options_of_several
def command(
    benchmark: Path,
    corpus_path: Path | None,
    conditions: tuple[str, ...],
    protocols: tuple[str, ...],
    instruction: str,
    edition: str,
    limit: int | None,
    samples: int,
    temperature: float,
    seed: int,
    option_seed: int,
    output: Path,
    calling: Calling,
) -> None:
    """Let models answer the questions of BENCHMARK.

    A model may have options of its own in brackets: 'embedded[temperature=0.6,samples=3]'.
    """
    screen = calling.screen()
    sampling = Sampling(temperature=temperature, seed=seed)
    answerers = [parse_answerer(text, samples=samples, sampling=sampling) for text in calling.model_specs]
    parsed = list(dict.fromkeys(map(parse_condition, conditions)))
    for condition in parsed:
        if condition.line:
            parse(condition.line)  # what is wrong with it is said before anything is opened
    bench = Benchmark.open(benchmark, edition)
    questions = bench.first(limit)
    if not questions:
        raise InputError(
            "the benchmark holds no questions", where=str(benchmark), fix="name another, or build it again"
        )
    systems = plan_systems(list(dict.fromkeys(answerers)), parsed, questions, protocols)
    asked = Asked(
        bench=bench,
        corpus=find_corpus(corpus_path, bench.artefact) if any(c.needs_corpus for c in parsed) else None,
        questions=questions,
        systems=systems,
        asking=Asking(instruction=instruction, option_seed=option_seed),
        settings={
            "samples": samples,
            "temperature": temperature,
            "limit": limit,
            **({"edition": edition} if edition else {}),
        },
    )
    if calling.only_estimate:
        _refuse_unknowable(asked.systems)
    else:
        check_target(output.resolve(), "run")
    with calling.open() as session:
        answering = Answering(asked, session, screen)
        grid = answering.grid()
        if calling.only_estimate:
            _show_estimate(screen, grid.estimate())
            return
        artefact = answering.write(grid, output, command=command_words())
        spent = _show_spent(screen, grid)
        screen.finish(artefact, next_step=_next_step(asked.systems, output), models=spent)


class Asked(Struct, frozen=True, kw_only=True):
    """What is to be answered, by whom and how; `settings` are for the manifest."""

    bench: Benchmark
    corpus: Corpus | None
    questions: list[Question]
    systems: list[System]
    asking: Asking
    settings: dict[str, object]


class Answering:
    """The command at work: models and documents made ready, then the estimate or the answers.

    `indexes` are the corpus's where they have been made already.
    """

    def __init__(self, asked: Asked, session: Session, screen: Screen, *, indexes: IndexSet | None = None) -> None:
        self._asked = asked
        self._indexes = indexes
        self._screen = screen
        self._models: dict[str, Model] = {}
        self._lines: dict[str, UsedModels] = {}
        for answerer in dict.fromkeys(system.answerer for system in asked.systems):
            model = session.model(answerer.spec)
            model.spec = answerer.written
            self._models[answerer.written] = model
            self._lines[answerer.written] = _line_models(session, answerer.spec)

    def grid(self) -> Grid:
        """Every answer that is wanted, with what is shown for it; documents are cut and indexed once for all."""
        return Grid(self._asked.systems, self._models, self._showings(), self._asked.asking)

    def write(self, grid: Grid, output: Path, *, command: Sequence[str]) -> Artefact:
        """Answer, and write the run."""
        with draft_run(output, self._asked.questions) as draft:
            with self._screen.task("answering", grid.size) as task:
                for block in grid.answers(task):
                    draft.add(block)
            draft.finish(
                models=self._models,
                beside=self._beside(),
                inputs=self._inputs(),
                prompts={**self._line_prompts, **grid.prompts},
                settings={**self._described(), **self._asked.settings},
                seeds=self._seeds(),
                command=command,
            )
        return open_artefact(output, "run")

    def _showings(self) -> dict[tuple[str, str], Showing]:
        """Every condition made ready; a line that asks a model is searched once for each model, another once."""
        asked = self._asked
        conditions = {system.condition.base: system.condition for system in asked.systems}
        library = Library(asked.corpus, images=asked.bench.artefact)
        if asked.corpus is not None and any(condition.line for condition in conditions.values()):
            indexes = self._indexes
            if indexes is None:
                first = next(iter(self._lines.values()))
                indexes = index_corpus(asked.corpus, self._screen, models=first)
            library = Library(asked.corpus, indexes, asked.bench.artefact)
        made: dict[tuple[str, str], Showing] = {}
        self._line_prompts: dict[str, str] = {}
        self._retrievers: dict[str, object] = {}
        for name, condition in conditions.items():
            shared: Showing | None = None
            for written in self._models:
                if shared is None or _asks_a_model(condition):
                    shared = prepare(condition, asked.questions, library, self._lines[written])
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
        corpus = [self._asked.corpus.artefact.reference()] if self._asked.corpus else []
        return [self._asked.bench.artefact.reference(), *corpus]

    def _described(self) -> dict[str, object]:
        systems = self._asked.systems
        return {
            "models": list(self._models),
            "conditions": list(dict.fromkeys(system.condition.name for system in systems)),
            "protocols": list(dict.fromkeys(system.protocol or "free" for system in systems)),
            "instruction": self._asked.asking.instruction,
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
        systems = self._asked.systems
        drawn = {
            system.answerer.written: system.answerer.sampling.seed
            for system in systems
            if system.answerer.sampling.temperature
        }
        seeds = {f"sampling: {name}": seed for name, seed in drawn.items()}
        if drawn and len(self._models) == 1:
            seeds = {"sampling": next(iter(drawn.values()))}
        lettered = any(system.protocol == "letter" for system in systems)
        return seeds | ({"options": self._asked.asking.option_seed} if lettered else {})


def _next_step(systems: Iterable[System], output: Path) -> tuple[str | Path, ...]:
    """What to do with the run: free text needs a judge, another model than those that answered; choices need none."""
    if any(not system.protocol for system in systems):
        return ("hoofbeat", "judge", output, "--model", "JUDGE")
    return ("hoofbeat", "report", output)


def _line_models(session: Session, own: str) -> UsedModels:
    """The models that a retriever line may ask for one that answers: itself, where the line names none."""
    return UsedModels(lambda spec: session.model(spec or own))


def _asks_a_model(condition: Condition) -> bool:
    return bool(condition.line) and cost_bound(parse(condition.line)).calls > 0


def _refuse_unknowable(systems: Iterable[System]) -> None:
    asking = next((system.condition for system in systems if _asks_a_model(system.condition)), None)
    if asking is not None:
        raise UsageError(
            f"what {asking.base} will show is known only after it has asked a model, so it can't be estimated",
            fix="estimate the retrieval by itself: hoofbeat retrieve --estimate",
        )


def _show_estimate(screen: Screen, estimates: Sequence[tuple[System, Estimate]]) -> None:
    """One estimate for the whole grid, with each system's part."""
    total = sum((estimate for _, estimate in estimates), Estimate(max_money=0.0))
    if screen.as_json:
        parts = [
            {"model": system.answerer.written, "condition": system.condition.name, "answers": system.size}
            | {"estimate": msgspec.to_builtins(estimate)}
            for system, estimate in estimates
        ]
        screen.emit({"estimate": msgspec.to_builtins(total), "systems": parts})
        return
    for written in dict.fromkeys(system.answerer.written for system, _ in estimates):
        rows: list[tuple[Cell, ...]] = [
            (
                system.condition.name,
                system.size,
                estimate.calls,
                estimate.cached,
                estimate.tokens_in,
                estimate.max_tokens_out,
                "no price" if estimate.max_money is None else f"{estimate.max_money:.4f}",
            )
            for system, estimate in estimates
            if system.answerer.written == written
        ]
        screen.title(written)
        counts = (Column(name, "count") for name in ("answers", "calls", "in ledger", "tokens in", "out, most"))
        screen.table(["condition", *counts, "money, most"], rows)
    screen.estimate(total)


def _show_spent(screen: Screen, grid: Grid) -> dict[str, object]:
    """What each model's answers took: calls made and taken from the ledger, tokens, money, seconds, retries."""
    spent: dict[str, object] = {}
    for written, model in grid.models.items():
        cost = model.cost
        seconds, retries = round(grid.seconds[written], 1), model.troubles.total()
        screen.calls(model)
        money = f"{cost.money:.4f} in money" if model.price else "no price known"
        screen.say(f"  {cost.tokens_in:,} tokens in, {cost.tokens_out:,} out, {money}, {seconds} s, {retries} retries")
        spent[written] = {
            "made": model.made,
            "cached": model.cached,
            **msgspec.to_builtins(cost),
            "seconds": seconds,
            "retries": retries,
        }
    return spent
