"""Which recipes there are: every module of `recipes.papers`, and any file of your own that defines `RECIPE`."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
from functools import cache
from pathlib import Path

from hoofbeat.errors import HoofbeatError, UsageError
from hoofbeat.recipes import papers
from hoofbeat.recipes.recipe import Recipe, parameters

__all__ = ["RESERVED", "find_recipe", "recipe_names"]

RESERVED = frozenset(
    {
        *("corpus", "second", "second_model", "committee", "encoder", "seed", "output", "help"),
        *("model", "model_spec", "ledger", "ledger_path", "config", "config_path", "budget"),
        *("estimate", "only_estimate", "json", "as_json"),
    }
)
"""Names that options of every recipe's command have already."""


@cache
def recipe_names() -> tuple[str, ...]:
    """The recipes that ship with the package."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(papers.__path__)))


def find_recipe(name: str) -> Recipe:
    """A recipe by its name, or by the path of a Python file (which is run)."""
    if name in recipe_names():
        recipe = importlib.import_module(f"{papers.__name__}.{name}").RECIPE
        assert isinstance(recipe, Recipe)
        return recipe
    path = Path(name)
    if path.suffix != ".py":
        raise UsageError(
            f"there is no recipe {name!r}",
            fix=f"use one of {', '.join(recipe_names())}, or the path of a Python file that defines RECIPE",
        )
    return _from_file(path)


def _from_file(path: Path) -> Recipe:
    if not path.is_file():
        raise UsageError("there is no such recipe file", where=str(path), fix="check the path")
    spec = importlib.util.spec_from_file_location(f"hoofbeat_recipe_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # annotations that are written as text are looked up there
    try:
        spec.loader.exec_module(module)
    except HoofbeatError:
        raise
    except Exception as err:
        raise UsageError(
            f"the recipe file can't be run: {type(err).__name__}: {err}",
            where=str(path),
            fix="mend the file; it is ordinary Python",
        ) from err
    recipe = getattr(module, "RECIPE", None)
    if not isinstance(recipe, Recipe):
        raise UsageError(
            "the file defines no RECIPE", where=str(path), fix="define RECIPE = Recipe(name=..., steps=..., ...)"
        )
    taken = sorted({each.name for each in parameters(recipe)} & RESERVED)
    if taken:
        raise UsageError(
            f"a parameter of the recipe is called {taken[0]}, which every recipe's command has already",
            where=str(path),
            fix="give it another name",
        )
    return recipe
