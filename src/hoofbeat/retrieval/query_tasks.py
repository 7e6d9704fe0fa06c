"""What query writers write, by task: a textbook passage, or for case retrieval another patient's case.

A passage that "answers the question" is the wrong thing to search for where cases of other patients are to be found.
Tasks and their examples are data (`query_tasks.toml`); a file of the user's has the same form.
"""

from __future__ import annotations

import functools
import hashlib
import tomllib
from importlib import resources
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from hoofbeat.errors import InputError, UsageError, did_you_mean
from hoofbeat.store.files import read_bytes
from hoofbeat.trust import parse_toml

_File = TypeVar("_File", bound=Struct)

DEFAULT_TASK = "answer"
"""The passage that answers the question: each method's own prompt, unchanged."""


class TaskExample(Struct, frozen=True, forbid_unknown_fields=True):
    """A question, and the text that was written for it."""

    question: str
    passage: str


class QueryTask(Struct, frozen=True, forbid_unknown_fields=True):
    """What is written for a question, and examples of it."""

    write: str
    examples: tuple[TaskExample, ...] = ()

    @property
    def fingerprint(self) -> str:
        """What a manifest records: another wording or example is another task."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()[:12]


class _Tasks(Struct, forbid_unknown_fields=True):
    tasks: dict[str, QueryTask]


def query_task(spec: str) -> QueryTask | None:
    """The task of that name, or `FILE.toml#NAME`; None for the default."""
    if spec == DEFAULT_TASK:
        return None
    path, name = split_table(spec)
    known = read_table(path, _Tasks).tasks if path else _shipped().tasks
    if name not in known:
        names = [*known] if path else [DEFAULT_TASK, *known]
        fix = f"{did_you_mean(name, names)}choose one of: {', '.join(names)}; or your own file: FILE.toml#NAME"
        raise UsageError(f"there is no task {spec!r}", fix=fix)
    return known[name]


def split_table(spec: str) -> tuple[Path | None, str]:
    """The file and the name in `FILE.toml#NAME`; no file in a name alone."""
    file, _, name = spec.rpartition("#")
    return (Path(file).expanduser() if file else None), name


def read_table(path: Path, kind: type[_File]) -> _File:
    """A TOML file of the user's, in the form of the shipped one."""
    try:
        return msgspec.convert(parse_toml(read_bytes(path).decode()), kind)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, UnicodeDecodeError) as err:
        raise InputError(f"the file can't be read: {err}", where=str(path), fix="see docs/retrieval.md") from err


@functools.cache
def _shipped() -> _Tasks:
    text = resources.files("hoofbeat.retrieval").joinpath("query_tasks.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), _Tasks)
