"""Runs as TREC writes them: question, Q0, document, rank, score and tag, a line a hit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path

from hoofbeat.corpus.readers.qrels import trec_name
from hoofbeat.corpus.readers.streams import lines, open_stream, text_of
from hoofbeat.errors import InputError
from hoofbeat.records import Hit

__all__ = ["read_trec_run", "trec_run_lines"]


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
