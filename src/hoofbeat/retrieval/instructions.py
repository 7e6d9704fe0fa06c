"""Instructions by dataset: what is put in front of queries, for encoders that were trained to follow one.

The wordings are data (`instructions.toml`). An encoder that was not trained with instructions reads them as text like
any other, so they are never used unasked.
"""

from __future__ import annotations

import functools
import tomllib
from importlib import resources

import msgspec
from msgspec import Struct

from hoofbeat.errors import UsageError
from hoofbeat.models.encoders.base import NO_INSTRUCTIONS, Instructions

__all__ = ["NO_INSTRUCTIONS", "Instructions", "instruction_names", "instructions"]

_NONE = "none"


class _File(Struct, forbid_unknown_fields=True):
    """`task` goes into `frame`; `document`, where a set has one, stands in front of documents as it is."""

    frame: str
    tasks: dict[str, str]
    documents: dict[str, str] = {}


def instructions(name: str) -> Instructions:
    """The instructions of that name; `none` puts nothing in front but an encoder's own prompts."""
    known = _known()
    if name not in known:
        raise UsageError(f"there are no instructions {name!r}", fix=f"choose one of: {', '.join(known)}")
    return known[name]


def instruction_names() -> tuple[str, ...]:
    """Every name that `instructions` knows."""
    return tuple(_known())


@functools.cache
def _known() -> dict[str, Instructions]:
    text = resources.files("hoofbeat.retrieval").joinpath("instructions.toml").read_text(encoding="utf-8")
    file = msgspec.convert(tomllib.loads(text), _File)
    written = {
        name: Instructions(query=file.frame.format(task=task), document=file.documents.get(name, ""))
        for name, task in file.tasks.items()
    }
    return {_NONE: NO_INSTRUCTIONS, **written}
