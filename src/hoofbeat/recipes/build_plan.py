"""What `hoofbeat build RECIPE` does: a recipe with its parameters, models and files, checked, then estimated or run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from hoofbeat.corpus import Corpus
from hoofbeat.corpus.vocabulary import SOURCES, find_source
from hoofbeat.errors import InputError, UsageError
from hoofbeat.models import Estimate, Model, load_encoder
from hoofbeat.models.batch import BatchBackend
from hoofbeat.models.encoder import DEFAULT_ENCODER
from hoofbeat.models.model_loading import Session
from hoofbeat.progress import SILENT, Progress
from hoofbeat.recipes.benchmark_output import build_benchmark, estimate_calls
from hoofbeat.recipes.context import RecipeContext, RecipeSettings
from hoofbeat.recipes.recipe import Recipe, read_settings
from hoofbeat.recipes.steps import UNLIMITED
from hoofbeat.store import Artefact
from hoofbeat.text import dollars


class BuildEstimate(NamedTuple):
    """What the first step with calls to make would spend; `note` says which that is and what the steps after it do.

    `headline` is for all steps together. The prompts of later steps need answers that nobody has yet, so their price is
    that of as many calls of the first step's mean size, by the dearest of the models.
    """

    estimate: Estimate
    note: str
    headline: str = ""


class BuildPlan(Struct, frozen=True, kw_only=True):
    """A recipe with all it needs, checked."""

    recipe: Recipe
    context: RecipeContext
    models: tuple[Model, ...]
    files: tuple[Path, ...] = ()

    def estimate(self) -> BuildEstimate:
        """What it would spend, as far as it can be known before a model has answered."""
        found = estimate_calls(self.recipe, self.context)
        if found is None:
            return BuildEstimate(Estimate(max_money=None), "the ledger already has every call that this recipe needs")
        steps = list(self.recipe.steps(self.context.settings))
        place = next(number for number, step in enumerate(steps) if step.name == found.step)
        later = {step.name: step.calls * found.items for step in steps[place + 1 :] if step.calls}
        ahead = sum(step.ahead for step in steps[place:]) * found.items
        if any(isinstance(model.backend, BatchBackend) for model in self.models) and ahead:
            later["calls sent ahead in batches"] = ahead
        known = all(step.calls < UNLIMITED for step in steps[place + 1 :])
        parts = [f"{found.step}: at most {found.estimate.calls:,}{self._price(found.estimate)}"]
        parts += [
            f"{name}: at most {calls:,}{self._price(found.estimate, calls)}"
            if calls < UNLIMITED
            else f"{name}: an unknown number"
            for name, calls in later.items()
        ]
        total = found.estimate.calls + sum(later.values())
        headline = "All steps together: an unknown number of calls."
        if known:
            headline = (
                f"All steps together: at most {total:,} calls{self._price(found.estimate, total)}; with repairs at "
                f"most {2 * total:,}{self._price(found.estimate, 2 * total)}."
            )
        note = (
            f"The tokens are those of the step “{found.step}” ({found.items} items). Calls by step: {'; '.join(parts)}."
        )
        priced = ""
        if later and self._price(found.estimate, total):
            priced = " Prices marked “about” assume that later calls are as long as those of this step."
        return BuildEstimate(found.estimate, note + priced, f"{headline} The first step alone, “{found.step}”:")

    def _price(self, first: Estimate, calls: int = 0) -> str:
        """The maximum cost of the first step, or about that of a number of such calls; nothing without prices."""
        if not calls:
            return "" if first.max_money is None else f" ({dollars(first.max_money, at_most=True)})"
        prices = [model.price for model in self.models]
        if not first.calls or not prices or None in prices:
            return ""
        size = first.tokens_in / first.calls, first.max_tokens_out / first.calls
        dearest = max(price.of(round(calls * size[0]), round(calls * size[1])) for price in prices if price)
        return f", about {dollars(dearest, at_most=True)}"

    def write(self, output: Path, *, command: Sequence[str] = ()) -> Artefact:
        """Run the recipe and write the benchmark."""
        return build_benchmark(self.recipe, self.context, output, command=command, files=self.files)


def plan_build(
    recipe: Recipe,
    corpus: Corpus,
    session: Session,
    *,
    model: str = "embedded",
    second: str | None = None,
    committee: Sequence[str] = (),
    encoder: str = "minilm",
    seed: int = 0,
    limit: int | None = None,
    parameters: Mapping[str, object] | None = None,
    estimating: bool = False,
    progress: Progress = SILENT,
) -> BuildPlan:
    """Check parameters, files and what must be installed, and load the models.

    `estimating` prepares for an estimate, which writes nothing. `limit` takes only the first candidates of the corpus.
    """
    settings = read_settings(recipe, parameters or {})
    if len(set(committee)) < len(committee):
        raise UsageError("the committee has a model twice", fix="name each --committee model once")
    specs = {"model": model, **({"second": second} if second else {})}
    specs |= {f"committee-{number}": spec for number, spec in enumerate(committee, start=1)}
    for name in getattr(settings, "vocabularies", recipe.vocabularies):
        if name in SOURCES:
            find_source(name)
    ready = load_encoder(encoder) if recipe.encodes or encoder != DEFAULT_ENCODER else None
    loaded = {spec: session.model(spec) for spec in dict.fromkeys(specs.values())}
    context = RecipeContext(
        corpus,
        settings,
        models={role: loaded[spec] for role, spec in specs.items()},
        encoder=lambda: ready or load_encoder(encoder),
        seed=seed,
        progress=progress,
        estimating=estimating,
        limit=limit,
    )
    files = () if estimating else _files(settings)
    return BuildPlan(recipe=recipe, context=context, models=tuple(loaded.values()), files=files)


def _files(settings: RecipeSettings) -> tuple[Path, ...]:
    """The files that parameters name; one that is missing is said before anything is done."""
    names: tuple[str, ...] = getattr(settings, "FILES", ())
    given = [getattr(settings, name) for name in names]
    listed = [value for each in given for value in ([each] if isinstance(each, str) else each)]
    paths = [Path(value) for value in listed if value]
    for path in paths:
        if not path.is_file():
            raise InputError("there is no such file", where=str(path), fix="check the path")
    return tuple(paths)
