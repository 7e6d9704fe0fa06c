"""Runs as TREC writes them, and the order they are read in. A line a hit: question, Q0, document, rank, score, tag."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from msgspec.structs import replace
from numpy.typing import ArrayLike

from hoofbeat.corpus.qrels import trec_name
from hoofbeat.errors import InputError
from hoofbeat.records import Hit
from hoofbeat.store.streams import lines, open_stream, text_of

__all__ = ["TREC_RUN", "in_trec_order", "read_trec_run", "trec_order", "trec_run_lines"]

TREC_RUN = "trec run"
"""The kind of input that is a run file of other software."""


def trec_run_lines(hits: Iterable[Hit], tag: str) -> Iterator[str]:
    """The run as TREC lines: question, Q0, document, rank, score, tag. Scores are written so that they read back."""
    for hit in hits:
        question, document = trec_name(hit.question), trec_name(hit.document)
        yield f"{question} Q0 {document} {hit.rank} {hit.score!r} {trec_name(tag)}"


def read_trec_run(path: Path) -> list[Hit]:
    """Read a TREC run, plain or gzipped; columns may be separated by any blanks, and blank lines are passed over."""
    hits = []
    with open_stream(path) as stream:
        for number, line in lines(stream):
            cells = text_of(line, number).split()
            if cells:
                hits.append(_hit(cells, number, path))
    return hits


def in_trec_order(hits: Sequence[Hit]) -> list[Hit]:
    """One question's hits with the ranks at which they are measured: ties may stand otherwise in a search's results."""
    order = trec_order([hit.document for hit in hits], [hit.score for hit in hits])
    return [
        hits[place] if hits[place].rank == rank else replace(hits[place], rank=rank)
        for rank, place in enumerate(order, start=1)
    ]


def trec_order(documents: Sequence[str], scores: ArrayLike) -> list[int]:
    """Places by score as trec_eval orders them: equal scores, in single precision, by document id, descending."""
    with np.errstate(over="ignore"):
        single = np.asarray(scores, np.float64).astype(np.float32)
    if np.all(single[1:] < single[:-1]):
        return list(range(len(documents)))
    by_id = sorted(
        range(len(documents)), key=lambda place: documents[place].encode("utf-8", "surrogatepass"), reverse=True
    )
    return [by_id[place] for place in np.argsort(-single[by_id], kind="stable")]


def _hit(cells: list[str], number: int, path: Path) -> Hit:
    try:
        question, _, document, rank, score, _ = cells
        hit = Hit(question=question, document=document, rank=int(rank), score=float(score))
        if math.isnan(hit.score):
            raise ValueError("the score is not a number")
    except ValueError as err:
        raise InputError(
            f"line {number} is not a line of a TREC run",
            where=str(path),
            fix="a line holds question, Q0, document, rank, score and tag",
        ) from err
    return hit
