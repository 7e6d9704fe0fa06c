"""A recipe: where candidates come from, the row of steps they go through, and the questions made of what is left.

A recipe is one file: it names its parameters as `RecipeSettings`, lists its steps, and says how an item becomes
questions. `hoofbeat build my_recipe.py CORPUS` runs a file of your own that defines one; with `--plugin my_recipe.py`
it is one more name for `hoofbeat build`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import msgspec
from msgspec import Struct, field

from hoofbeat.errors import UsageError
from hoofbeat.recipes.context import RecipeContext, RecipeSettings
from hoofbeat.recipes.recipe_items import FailedItem, ItemRejection, RecipeFunnelStep, RecipeItem, RejectedItem
from hoofbeat.recipes.review_tasks import ReviewTask
from hoofbeat.recipes.steps import RecipeStep
from hoofbeat.records import Document, Failure, Question
from hoofbeat.registry import registry


class Edition(Struct, frozen=True, kw_only=True):
    """Another edition of the questions, such as the undistracted or the image one: its name and what it is."""

    name: str
    about: str
    questions: tuple[Question, ...]


class RecipeOutput(Struct, frozen=True, kw_only=True):
    """What a recipe ends with: questions, their other editions, grades of documents, what waits for a reviewer."""

    questions: tuple[Question, ...]
    editions: tuple[Edition, ...] = ()
    qrels: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    review: tuple[ReviewTask, ...] = ()


class Recipe(Struct, frozen=True, kw_only=True):
    """One way to make a benchmark.

    `begin` gives the candidates, `steps` the row of steps for the settings given, `finish` makes the questions.
    `vocabularies` names those that its steps look terms up in, `encodes` says whether steps use the sentence encoder:
    both are checked before the first model call.
    """

    extension_kind: ClassVar[str] = "recipe"
    extension_package: ClassVar[str] = "hoofbeat.recipes.papers"

    name: str
    title: str
    about: str
    settings: type[RecipeSettings]
    steps: Callable[[Any], Sequence[RecipeStep]]
    finish: Callable[[Sequence[RecipeItem], RecipeContext], RecipeOutput]
    begin: Callable[[RecipeContext], Iterable[RecipeItem]]
    vocabularies: tuple[str, ...] = ()
    encodes: bool = False

    @property
    def summary(self) -> str:
        """Its title, for listings."""
        return self.title


class Parameter(Struct, frozen=True, kw_only=True):
    """One parameter of a recipe, for help and documentation."""

    name: str
    default: object
    about: str
    choices: tuple[str, ...] = ()


class RecipeAccount(Struct, kw_only=True):
    """What was rejected so far, and the funnel; it is filled while the steps run, and is there if one stops."""

    rejected: list[RejectedItem] = field(default_factory=list)
    failed: list[FailedItem] = field(default_factory=list)
    stages: list[RecipeFunnelStep] = field(default_factory=list)


class RecipeRun(Struct, frozen=True, kw_only=True):
    """What became of every candidate."""

    items: tuple[RecipeItem, ...]
    rejected: tuple[RejectedItem, ...]
    failed: tuple[FailedItem, ...]
    stages: tuple[RecipeFunnelStep, ...]


_RESERVED = frozenset(
    {
        *("corpus", "second", "second_model", "committee", "encoder", "seed", "limit", "output", "help"),
        *("model", "model_spec", "ledger", "ledger_path", "config", "config_path", "budget", "reasoning"),
        *("estimate", "only_estimate", "json", "as_json"),
    }
)


def find_recipe(name: str) -> Recipe:
    """A recipe by its name, or by the path of a Python file, which is loaded as a plugin."""
    recipe = _recipe_of_file(Path(name)) if name.endswith(".py") else registry.get(Recipe, name)
    taken = sorted({each.name for each in parameters(recipe)} & _RESERVED)
    if taken:
        raise UsageError(
            f"a parameter of the recipe {recipe.name} is called {taken[0]}, like an option of every recipe",
            fix="give it another name",
        )
    return recipe


def _recipe_of_file(path: Path) -> Recipe:
    if not path.is_file():
        raise UsageError("there is no such recipe file", where=str(path), fix="check the path")
    brought = [each.partition(" ") for each in registry.load_file(path).extensions]
    names = [name for kind, _, name in brought if kind == Recipe.extension_kind]
    if len(names) != 1:
        raise UsageError(
            f"the file defines {len(names) or 'no'} recipe{'s' if names else ''}",
            where=str(path),
            fix="define one RECIPE = Recipe(name=..., steps=..., ...), or load the file with --plugin and give a name",
        )
    return registry.get(Recipe, names[0])


def from_documents(context: RecipeContext) -> Iterable[RecipeItem]:
    """Every document of the corpus as a candidate of the same id."""
    for document in context.corpus.documents():
        yield document_item(document)


def document_item(document: Document) -> RecipeItem:
    """A candidate made of one document."""
    return RecipeItem(id=document.id, documents=(document.id,), values={"title": document.title})


def run_steps(
    recipe: Recipe, steps: Sequence[RecipeStep], context: RecipeContext, account: RecipeAccount | None = None
) -> RecipeRun:
    """Put all candidates through the steps. What a step turns away goes no further and is kept with its reason."""
    account = account or RecipeAccount()
    items = list(islice(recipe.begin(context), context.limit))
    doubled = [id for id, count in Counter(item.id for item in items).items() if count > 1]
    if doubled:
        raise UsageError(
            f"two candidates of {recipe.name} have the id {doubled[0]}",
            where=str(context.corpus.path),
            fix="give every document, and every row of a file the recipe reads, a different id",
        )
    for step in steps:
        stage = RecipeFunnelStep(step=step.name, came=len(items))
        account.stages.append(stage)
        outcomes = step.run(items, context) if items else ()
        staying: list[RecipeItem] = []
        for item, outcome in zip(items, outcomes, strict=True):
            if isinstance(outcome, ItemRejection):
                stage.reasons[outcome.reason] = stage.reasons.get(outcome.reason, 0) + 1
                account.rejected.append(_rejected(item, step.name, outcome))
            elif isinstance(outcome, Failure):
                stage.failures[outcome.kind] = stage.failures.get(outcome.kind, 0) + 1
                account.failed.append(
                    FailedItem(
                        id=item.id, step=step.name, failure=outcome, documents=item.documents, values=item.values
                    )
                )
            else:
                staying.append(outcome)
        stage.kept = len(staying)
        assert stage.came == stage.kept + stage.rejected + stage.failed, "every candidate is accounted for"
        items = staying
    return RecipeRun(
        items=tuple(items),
        rejected=tuple(account.rejected),
        failed=tuple(account.failed),
        stages=tuple(account.stages),
    )


def _rejected(item: RecipeItem, step: str, why: ItemRejection) -> RejectedItem:
    return RejectedItem(
        id=item.id,
        step=step,
        reason=why.reason,
        details=why.details,
        span=why.span,
        documents=item.documents,
        values=item.values,
    )


def parameters(recipe: Recipe) -> list[Parameter]:
    """The parameters of a recipe with their defaults and meaning."""
    info = msgspec.inspect.type_info(recipe.settings)
    assert isinstance(info, msgspec.inspect.StructType)
    listed = []
    for each in info.fields:
        plain, about = each.type, ""
        if isinstance(each.type, msgspec.inspect.Metadata):
            plain, about = each.type.type, str((each.type.extra_json_schema or {}).get("description", ""))
        default = each.default if each.default is not msgspec.NODEFAULT else None
        if default is None and each.default_factory is not msgspec.NODEFAULT:
            default = each.default_factory()
        choices: tuple[str, ...] = ()
        if isinstance(plain, msgspec.inspect.LiteralType):
            choices = tuple(map(str, plain.values))
        elif isinstance(plain, msgspec.inspect.BoolType):
            choices = tuple(_BOOLEANS)
        listed.append(Parameter(name=each.name, default=default, about=about, choices=choices))
    return listed


def read_settings(recipe: Recipe, given: Mapping[str, object]) -> RecipeSettings:
    """The recipe's parameters from words as typed, or from values; a wrong name or value is a `UsageError`."""
    known = {each.name: each for each in parameters(recipe)}
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise UsageError(
            f"the recipe {recipe.name} has no parameter {unknown[0]!r}",
            fix=f"it has {', '.join(sorted(known))}" if known else "it has none",
        )
    values: dict[str, object] = {
        name: _value(value, known[name]) if isinstance(value, str) else value for name, value in given.items()
    }
    try:
        return msgspec.convert(values, recipe.settings, strict=False)
    except msgspec.ValidationError as err:
        raise UsageError(
            f"a parameter of the recipe {recipe.name} can't be used: {err}",
            fix="see --help",
        ) from err


_BOOLEANS = {"true": True, "false": False}
_BOOLEAN_WORDS = {**_BOOLEANS, "yes": True, "no": False, "on": True, "off": False, "1": True, "0": False}


def _value(text: str, parameter: Parameter) -> object:
    """A parameter as typed: lists are separated by commas in brackets, everything else is converted by its type."""
    stripped = text.strip()
    if parameter.choices:
        words: Mapping[str, object] = _BOOLEAN_WORDS if parameter.choices == tuple(_BOOLEANS) else {}
        value = words.get(stripped.lower(), stripped)
        if value == stripped and stripped not in parameter.choices:
            raise UsageError(
                f"{parameter.name} can't be {stripped!r}", fix=f"give one of: {', '.join(parameter.choices)}"
            )
        return value
    if stripped.startswith("[") and stripped.endswith("]"):
        return [part.strip() for part in stripped[1:-1].split(",") if part.strip()]
    return stripped
