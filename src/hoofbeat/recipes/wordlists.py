"""The word lists and patterns of recipes: TOML files beside the code, each read once."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Any


@cache
def word_data(name: str) -> dict[str, Any]:
    """The content of one data file, by its name without the ending."""
    text = (resources.files("hoofbeat.recipes") / "data" / f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
