"""`--plugin FILE`, anywhere on the command line, and `plugins = [...]` in `hoofbeat.toml`: load extensions first.

They are loaded before the verb is looked at, because a plugin may bring a recipe, and with it options of a verb.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import click

from hoofbeat.errors import UsageError
from hoofbeat.registry import registry

_OPTION = "--plugin"
_CONFIG = "--config"


def load_plugins(words: list[str]) -> list[str]:
    """Load every plugin that is asked for, say so, and return the words without them."""
    rest, files = _taken(words, _OPTION)
    for path in [*_of_config(words), *(Path(file) for file in files)]:
        plugin = registry.load_file(path)
        click.echo(f"Plugin {plugin.name}: {', '.join(plugin.extensions)}", err=True)
    return rest


def _taken(words: list[str], option: str) -> tuple[list[str], list[str]]:
    """The words without an option and its values, and the values."""
    rest: list[str] = []
    values: list[str] = []
    following = iter(words)
    for word in following:
        if word == "--":
            return [*rest, word, *following], values
        if word == option:
            value = next(following, None)
            if value is None:
                raise UsageError(f"{option} needs a file", fix=f"write {option} my_stage.py")
            values.append(value)
        elif word.startswith(f"{option}="):
            values.append(word.removeprefix(f"{option}="))
        else:
            rest.append(word)
    return rest, values


def _of_config(words: list[str]) -> list[Path]:
    """The plugins that the configuration names; a file that can't be read is left to whoever needs it."""
    named = _taken([word for word in words if word != "--"], _CONFIG)[1] if _CONFIG in " ".join(words) else []
    file = Path(named[-1] if named else os.environ.get("HOOFBEAT_CONFIG") or "hoofbeat.toml")
    try:
        plugins = tomllib.loads(file.read_text(encoding="utf-8")).get("plugins", [])
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        return []
    if not isinstance(plugins, list) or not all(isinstance(each, str) for each in plugins):
        raise UsageError("plugins must be a list of files", where=str(file), fix='write plugins = ["my_stage.py"]')
    return [file.parent / each for each in plugins]
