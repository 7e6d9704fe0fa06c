"""Texts turned into postings, block by block, on as many threads as there are cores.

A block carries its terms by name, so it does not matter when and beside which others it was made. Terms are numbered in
the order of their characters at the end: the same texts give the same index however the work was shared out. Blocks
wait on disk, three or four bytes a posting, until all are there; then the index is laid out term by term.
"""

from __future__ import annotations

import os
import tempfile
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hoofbeat.progress import Task
from hoofbeat.retrieval.analysis import Analyzer, Numberer

__all__ = ["Inverted", "Layout", "available_cores", "invert", "invert_all"]

Counts = NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32]

_SHIFT = 12
_BLOCK = 1 << _SHIFT
_NARROW = 1 << (32 - _SHIFT)
_BLOCK_CHARACTERS = 3 << 19
_REMEMBERED = 1 << 20
_IN_MEMORY = 1 << 20
_MOST_THREADS = 4


def available_cores() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


class Inverted(NamedTuple):
    """A block of texts term by term: each term's name and number of texts, then those texts' places and counts."""

    terms: list[str]
    frequencies: NDArray[np.int32]
    texts: NDArray[np.uint16]
    counts: Counts
    lengths: NDArray[np.int64]


def invert(numberer: Numberer, texts: list[str]) -> Inverted:
    """Analyse a block of texts and sort what is in it by term, then text."""
    block = numberer.analyse(texts)
    names = numberer.names
    wide = len(names) >= _NARROW
    pairs: NDArray[Any] = block.terms.astype(np.uint64 if wide else np.uint32)
    pairs <<= _SHIFT
    pairs |= np.repeat(np.arange(len(texts), dtype=pairs.dtype), block.lengths)
    pairs.sort()
    begins = _run_starts(pairs)
    counts = np.diff(begins, append=len(pairs))
    pairs = pairs[begins]
    terms = pairs >> _SHIFT
    rows = _run_starts(terms)
    return Inverted(
        [names[term] for term in terms[rows].tolist()],
        np.diff(rows, append=len(terms)).astype(np.int32),
        (pairs & (_BLOCK - 1)).astype(np.uint16),
        counts.astype(np.min_scalar_type(int(counts.max(initial=0)))),
        block.lengths,
    )


def _run_starts(values: NDArray[Any]) -> NDArray[np.intp]:
    """Where runs of equal values begin."""
    changes = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1], out=changes[1:])
    return np.flatnonzero(changes)


class Layout(NamedTuple):
    """The whole index: names in order, where each term's row begins, the rows' texts and counts, the texts' lengths."""

    terms: list[str]
    starts: NDArray[np.int64]
    texts: NDArray[np.int32]
    counts: Counts
    lengths: NDArray[np.int32]


def invert_all(texts: Iterable[str], analyzer: Analyzer, task: Task, threads: int | None = None) -> Layout:
    """Analyse and invert all texts on so many threads; None means as many as there are cores, up to four."""
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    totals = np.zeros(0, np.int64)
    lengths: list[NDArray[np.int64]] = []
    widest: np.dtype[np.unsignedinteger] = np.dtype(np.uint8)
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as spool:
        for block in _inverted(texts, analyzer, threads):
            terms = np.fromiter(map(numbers.__getitem__, block.terms), np.int32, len(block.terms))
            totals = np.concatenate([totals, np.zeros(len(numbers) - len(totals), np.int64)])
            totals[terms] += block.frequencies
            for part in (terms, block.frequencies, block.texts, block.counts):
                np.save(spool, part)
            widest = max(widest, block.counts.dtype)
            lengths.append(block.lengths)
            task.advance(len(block.lengths))
        spool.seek(0)
        names = sorted(numbers)
        arrival = np.fromiter(map(numbers.__getitem__, names), np.int64, len(names))
        numbers.clear()
        starts = np.concatenate([[0], np.cumsum(totals[arrival])])
        cursor = np.empty(len(names), np.int64)
        cursor[arrival] = starts[:-1]
        return Layout(names, starts, *_lay_out(spool, cursor, lengths, np.empty(starts[-1], widest)))


def _lay_out(
    spool: IO[bytes], cursor: NDArray[np.int64], lengths: list[NDArray[np.int64]], counts: Counts
) -> tuple[NDArray[np.int32], Counts, NDArray[np.int32]]:
    """Lay the waiting blocks out term by term, each where its `cursor` stands; they come in text order."""
    texts = np.empty(len(counts), np.int32)
    first = 0
    for block_lengths in lengths:
        terms, frequencies, block_texts, block_counts = (np.load(spool) for _ in range(4))
        places = np.repeat(cursor[terms] - (np.cumsum(frequencies) - frequencies), frequencies)
        places += np.arange(len(places))
        texts[places] = block_texts.astype(np.int32) + first
        counts[places] = block_counts
        cursor[terms] += frequencies
        first += len(block_lengths)
    return texts, counts, np.concatenate([np.empty(0, np.int32), *lengths]).astype(np.int32)


def _blocks(texts: Iterable[str]) -> Iterator[list[str]]:
    """The texts in blocks of limited number and length."""
    block: list[str] = []
    characters = 0
    for text in texts:
        block.append(text)
        characters += len(text)
        if len(block) == _BLOCK or characters >= _BLOCK_CHARACTERS:
            yield block
            block, characters = [], 0
    if block:
        yield block


def _inverted(texts: Iterable[str], analyzer: Analyzer, threads: int | None) -> Iterator[Inverted]:
    """The inverted blocks in order; only a few wait at a time."""
    threads = min(available_cores(), _MOST_THREADS) if threads is None else threads
    numberer = Numberer(analyzer)
    waiting: deque[Future[Inverted]] = deque()
    with ThreadPoolExecutor(max(1, threads)) as pool:
        try:
            for block in _blocks(texts):
                if numberer.size > _REMEMBERED:
                    numberer = Numberer(analyzer)
                waiting.append(pool.submit(invert, numberer, block))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)
