"""Packages that offer names of their modules, and load a module when one of its names is first used.

A verb should load what it needs. A package that imports all its modules for the names it offers makes every verb load
them all; `hoofbeat ask` once loaded 489 of 626 modules before it looked at its words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package (PEP 562); `modules` gives for each module of it the names that it offers."""
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(import_module(package), name, value)
        return value

    return load
