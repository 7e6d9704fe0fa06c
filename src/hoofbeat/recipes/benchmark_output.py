"""A recipe's run as a benchmark folder, with the account of everything that was turned away.

Beside `questions.jsonl` and `qrels.tsv`: `questions-EDITION.jsonl` for other editions of the questions, `items.jsonl`
with what every step wrote, `rejected.jsonl` and `failed.jsonl`, `funnel.tsv`, `review.jsonl`, the recipe's own tables,
and the images that questions name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

import msgspec

from hoofbeat.benchmarks.benchmark import KIND, edition_file
from hoofbeat.corpus.qrels import write_qrels
from hoofbeat.corpus.stats import NO_TOKENIZER, Tokenizer, load_tokenizer, quantiles
from hoofbeat.errors import BatchPending, InputError, WeightsError
from hoofbeat.facets import facet_values
from hoofbeat.recipes.context import RecipeContext
from hoofbeat.recipes.recipe import Recipe, RecipeAccount, RecipeOutput, RecipeRun, run_steps
from hoofbeat.recipes.recipe_items import RecipeFunnelStep
from hoofbeat.recipes.review_tasks import doubtful_first
from hoofbeat.recipes.steps import RecipeStep, StepEstimate
from hoofbeat.records import Question
from hoofbeat.store import Artefact, Counts, Manifest, create, open_artefact
from hoofbeat.store.artefact import file_reference
from hoofbeat.store.files import copy_inside, output_errors
from hoofbeat.store.tables import write_jsonl, write_tsv

_BATCH = 32
FUNNEL_HEADER = ("step", "in", "kept", "rejected", "failed", "reasons", "failures")


def build_benchmark(
    recipe: Recipe, context: RecipeContext, target: Path, *, command: Sequence[str] = (), files: Sequence[Path] = ()
) -> Artefact:
    """Run a recipe and write its benchmark; `files` are what its parameters name besides the corpus."""
    steps = recipe.steps(context.settings)
    if context.estimating:
        raise AssertionError("an estimate writes nothing: use estimate_calls")
    account = RecipeAccount()
    with create(target, replace_kind=KIND) as draft:
        try:
            ran = run_steps(recipe, steps, context, account)
        except BatchPending as pending:
            _write_so_far(account, pending, target)
            raise
        made = recipe.finish(ran.items, context)
        filled = tuple(edition for edition in made.editions if edition.questions)
        made = msgspec.structs.replace(made, editions=filled)  # an edition that is empty is not offered
        _check(made)
        _write_tables(draft.path, ran, made, context)
        _copy_images(made, context, draft.path)
        used = dict.fromkeys([*files, *context.files_used.values()])
        references = [file_reference(path) for path in used]
        draft.finish(
            Manifest(
                kind=KIND,
                title=recipe.title,
                command=list(command),
                inputs=[context.corpus.artefact.reference(), *references],
                settings={
                    "recipe": recipe.name,
                    **msgspec.to_builtins(context.settings),
                    **({"limit": context.limit} if context.limit else {}),
                    **context.model_facts(),
                },
                seeds={"recipe": context.seed},
                models=dict(sorted(context.roles_used.items())),
                prompts=dict(sorted(context.prompts_used.items())),
                counts=_counts(ran),
                cost=context.cost,
                metrics={
                    "funnel": [_stage_data(stage) for stage in ran.stages],
                    "steps": _steps_data(steps),
                    "editions": {edition.name: edition.about for edition in made.editions},
                    "tokens": _token_table(made, context),
                    "facets": _facet_tables(made.questions),
                    "review": _review_counts(made),
                    "cut to fit": context.left_out(),
                    "vocabularies": dict(sorted(context.vocabularies_used.items())),
                    **({"asked again": context.asked_again} if context.asked_again else {}),
                    **context.metrics,
                },
            )
        )
    for folder in context.batch_folders:
        _remove_so_far(folder / f"{target.name}-so-far")
    return open_artefact(target, KIND)


_SO_FAR = ("funnel.tsv", "rejected.jsonl", "failed.jsonl")


def _write_so_far(account: RecipeAccount, pending: BatchPending, target: Path) -> None:
    """What became of the candidates up to the step that waits, in a folder of the batch folder, told with the pending.

    The benchmark's own folder stays free: what is not finished must not be taken for a benchmark.
    """
    folder = Path(pending.folder) / f"{target.name}-so-far"
    with output_errors(folder):
        folder.mkdir(exist_ok=True)
    rows = [(*row, stage.waiting) for row, stage in zip(funnel_rows(account.stages), account.stages, strict=True)]
    write_tsv(folder / _SO_FAR[0], (*FUNNEL_HEADER, "waiting"), rows)
    write_jsonl(folder / _SO_FAR[1], account.rejected)
    write_jsonl(folder / _SO_FAR[2], account.failed)
    pending.details["so_far"] = str(folder)
    pending.details["funnel"] = [{**_stage_data(stage), "waiting": stage.waiting} for stage in account.stages]


def _remove_so_far(folder: Path) -> None:
    if folder.is_dir():
        for name in _SO_FAR:
            (folder / name).unlink(missing_ok=True)
        with suppress(OSError):  # somebody else's file is in it
            folder.rmdir()


def estimate_calls(recipe: Recipe, context: RecipeContext) -> StepEstimate | None:
    """What the first step with calls to make would cost, without making one; None where all are in the ledger."""
    assert context.estimating, "the context was not made for an estimate"
    try:
        run_steps(recipe, recipe.steps(context.settings), context)
    except StepEstimate as found:
        return found
    return None


def funnel_rows(stages: Iterable[RecipeFunnelStep]) -> list[tuple[object, ...]]:
    """The funnel as rows under `FUNNEL_HEADER`, reasons with their counts in words."""
    return [(s.step, s.came, s.kept, s.rejected, s.failed, _in_words(s.reasons), _in_words(s.failures)) for s in stages]


def _in_words(reasons: Mapping[str, int]) -> str:
    return "; ".join(f"{count} {reason}" for reason, count in _ordered(reasons).items())


def _ordered(reasons: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0])))


def _stage_data(stage: RecipeFunnelStep) -> dict[str, object]:
    return {
        "step": stage.step,
        "in": stage.came,
        "kept": stage.kept,
        "rejected": stage.rejected,
        "failed": stage.failed,
        "reasons": _ordered(stage.reasons),
        "failures": _ordered(stage.failures),
    }


def _steps_data(steps: Sequence[RecipeStep]) -> list[dict[str, object]]:
    return [{"step": step.name, "prompts": list(step.prompts)} for step in steps]


def _check(made: RecipeOutput) -> None:
    """Ids are told apart within an edition, and options hold their answer: a recipe that breaks this has a fault."""
    for questions in (made.questions, *(edition.questions for edition in made.editions)):
        twice = [id for id, count in Counter(question.id for question in questions).items() if count > 1]
        assert not twice, f"two questions have the id {twice[0]}"
        for question in questions:
            assert not question.options or question.answer in question.options, f"{question.id}: answer not an option"


def _write_tables(folder: Path, ran: RecipeRun, made: RecipeOutput, context: RecipeContext) -> None:
    write_jsonl(folder / "questions.jsonl", made.questions)
    for edition in made.editions:
        write_jsonl(folder / edition_file(edition.name), edition.questions)
    grades = made.qrels or {q.id: dict.fromkeys(q.documents, 1) for q in made.questions if q.documents}
    if grades:
        write_qrels(folder / "qrels.tsv", grades, "beir")
    write_jsonl(folder / "items.jsonl", ran.items)
    write_jsonl(folder / "rejected.jsonl", ran.rejected)
    write_jsonl(folder / "failed.jsonl", ran.failed)
    write_jsonl(folder / "review.jsonl", doubtful_first(made.review, ran.items))
    write_tsv(folder / "funnel.tsv", FUNNEL_HEADER, funnel_rows(ran.stages))
    for name, table in sorted(context.tables.items()):
        write_tsv(folder / f"{name}.tsv", table.header, table.rows)


def _copy_images(made: RecipeOutput, context: RecipeContext, folder: Path) -> None:
    every = [*made.questions, *(question for edition in made.editions for question in edition.questions)]
    for name in sorted({name for question in every for name in question.images}):
        if not name.startswith("images/") or not context.corpus.artefact.has(name):
            raise InputError(
                f"a question names the image {name}, which the corpus does not hold",
                where=str(context.corpus.path),
                fix="import the documents again with their images",
            )
        copy_inside(context.corpus.artefact.file(name), name, folder)


def _counts(ran: RecipeRun) -> Counts:
    reasons: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    for stage in ran.stages:
        reasons.update(stage.reasons)
        failures.update(stage.failures)
    return Counts(
        kept=len(ran.items),
        rejected=len(ran.rejected),
        failed=len(ran.failed),
        reasons=dict(sorted(reasons.items())),
        failures=dict(sorted(failures.items())),
    )


def _token_table(made: RecipeOutput, context: RecipeContext) -> dict[str, object]:
    """Lengths of questions, answers and their documents in tokens: the table that the papers print."""
    try:
        tokenizer = load_tokenizer()
    except WeightsError:  # a benchmark can be built without the encoder; its lengths are then in words alone
        tokenizer = None
    documents = dict.fromkeys(id for question in made.questions for id in question.documents)
    texts: dict[str, Iterator[str]] = {
        "question": (question.full_text for question in made.questions),
        "answer": (question.answer for question in made.questions if question.answer),
        "document": (context.document(id).text for id in documents),
    }
    table: dict[str, object] = {"tokenizer": tokenizer.name if tokenizer else NO_TOKENIZER}
    for name, listed in texts.items():
        found = quantiles(_lengths(listed, tokenizer))
        if found is not None:
            table[name] = msgspec.to_builtins(found)
    return table


def _lengths(texts: Iterator[str], tokenizer: Tokenizer | None) -> Iterator[int]:
    while batch := list(islice(texts, _BATCH)):
        yield from tokenizer.counts(batch) if tokenizer else [len(text.split()) for text in batch]


def _facet_tables(questions: Sequence[Question]) -> dict[str, dict[str, int]]:
    tables: dict[str, Counter[str]] = {}
    for question in questions:
        for facet in question.facets:
            tables.setdefault(facet, Counter()).update(facet_values(question.facets, facet))
    return {facet: _ordered(counts) for facet, counts in sorted(tables.items())}


def _review_counts(made: RecipeOutput) -> dict[str, int]:
    """How many items wait for each kind of review; one item may have several tasks of a kind."""
    return dict(sorted(Counter(kind for kind, _ in {(task.kind, task.item) for task in made.review}).items()))
