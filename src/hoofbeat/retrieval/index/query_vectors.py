"""What dense rankers search by: one vector for each query, whoever wrote its texts, and instructions by dataset.

Instructions are put in front of queries for encoders that were trained to follow one. The wordings are data
(`instructions.toml`); a file of the user's has the same form. An encoder that was not trained with instructions reads
them as text like any other, so they are never used unasked.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Callable, Sequence
from importlib import resources

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from hoofbeat.errors import UsageError
from hoofbeat.models.encoders.encoder_base import NO_INSTRUCTIONS, Instructions
from hoofbeat.retrieval.query_tasks import read_table, split_table

__all__ = ["NO_INSTRUCTIONS", "Encode", "Instructions", "Vectors", "instructions", "mean_vectors"]


Vectors = NDArray[np.float32]
Encode = Callable[[list[str]], Vectors]
"""From texts to their vectors, one row per text."""


def mean_vectors(
    groups: Sequence[tuple[str, tuple[str, ...]]], encode_queries: Encode, encode_documents: Encode
) -> Vectors:
    """The mean vector, of unit length, of each group: a question and the texts that are searched for.

    A text that was written beside the question represents a document and is encoded as one; texts that are searched for
    in place of the question, or have it in them, are queries, whoever wrote them and however many there are.
    """
    asked = [(text, text == question or question not in texts) for question, texts in groups for text in texts]
    if all(as_query for _, as_query in asked):
        rows = encode_queries([text for text, _ in asked])
    else:
        rows = _by_kind(asked, encode_queries, encode_documents)
    if all(len(texts) == 1 for _, texts in groups):
        return rows
    ends = np.cumsum([len(texts) for _, texts in groups])
    means = np.array([part.mean(axis=0, dtype=np.float64) for part in np.split(rows, ends[:-1])])
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    unit: Vectors = (means / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
    return unit


def _by_kind(asked: Sequence[tuple[str, bool]], encode_queries: Encode, encode_documents: Encode) -> Vectors:
    """Queries in one go and documents in another; the rows stand in the order of the texts."""
    kinds = np.array([as_query for _, as_query in asked])
    documents = encode_documents([text for text, as_query in asked if not as_query])
    rows = np.empty((len(asked), documents.shape[1]), np.float32)
    rows[~kinds] = documents
    if kinds.any():
        rows[kinds] = encode_queries([text for text, as_query in asked if as_query])
    return rows


_NONE = "none"


class _File(Struct, forbid_unknown_fields=True):
    """A set's task goes into `frame`; `queries` and `documents` are prefixes as they are."""

    frame: str = "{task}"
    tasks: dict[str, str] = {}
    queries: dict[str, str] = {}
    documents: dict[str, str] = {}

    def instructions(self) -> dict[str, Instructions]:
        """The instructions of every set."""
        queries = {name: self.frame.replace("{task}", task) for name, task in self.tasks.items()} | self.queries
        names = dict.fromkeys((*queries, *self.documents))
        return {name: Instructions(queries.get(name, ""), self.documents.get(name, "")) for name in names}


def instructions(name: str) -> Instructions:
    """The instructions of that name, or `FILE.toml#NAME`; `none` puts nothing in front but an encoder's own prompts."""
    path, entry = split_table(name)
    known = read_table(path, _File).instructions() if path else _known()
    if entry not in known:
        fix = f"choose one of: {', '.join(known)}; or your own file: FILE.toml#NAME"
        raise UsageError(f"there are no instructions {name!r}", fix=fix)
    return known[entry]


@functools.cache
def _known() -> dict[str, Instructions]:
    text = resources.files("hoofbeat.retrieval.index").joinpath("instructions.toml").read_text(encoding="utf-8")
    return {_NONE: NO_INSTRUCTIONS, **msgspec.convert(tomllib.loads(text), _File).instructions()}
