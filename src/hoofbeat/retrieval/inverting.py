"""Texts turned into postings, block by block, on as many threads as there are cores.

Terms are numbered as they come, which depends on what ran when, and again at the end in the order of their characters:
the same texts give the same index however the work was shared out. Blocks wait on disk, three or four bytes a posting,
until all are there; then the index is laid out term by term.
"""

from __future__ import annotations

import os
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hoofbeat.progress import Task
from hoofbeat.retrieval.analysis import Analyzer, Numberer

__all__ = ["InvertedBlock", "Layout", "available_cores", "invert", "invert_all"]

Counts = NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32]

_BLOCK = 4096
_BLOCK_CHARACTERS = 1 << 20
_IN_MEMORY = 1 << 20
_MOST_THREADS = 4


def available_cores() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


class InvertedBlock(NamedTuple):
    """A block of texts term by term: each term's number and how many texts have it, then their places and counts."""

    terms: NDArray[np.int32]
    frequencies: NDArray[np.int32]
    texts: NDArray[np.uint16]
    counts: Counts
    lengths: NDArray[np.int64]


def invert(numberer: Numberer, texts: list[str]) -> InvertedBlock:
    """Analyse a block of texts and sort what is in it by term, then text."""
    all_terms, lengths = numberer.analyse(texts)
    present = np.zeros(len(numberer), bool)
    present[all_terms] = True
    terms = np.flatnonzero(present).astype(np.int32)
    # few enough to be numbered by 16 bits, which numpy sorts by counting, many times as fast as by comparing
    ranks = np.empty(len(present), np.min_scalar_type(len(terms)))
    ranks[terms] = np.arange(len(terms))
    ranked = ranks[all_terms]
    order = np.argsort(ranked, kind="stable")
    ranked = ranked[order]
    places = np.repeat(np.arange(len(texts), dtype=np.uint16), lengths)[order]
    first = np.ones(len(order), bool)
    np.not_equal(places[1:], places[:-1], out=first[1:])
    first[1:] |= ranked[1:] != ranked[:-1]
    begins = np.flatnonzero(first)
    counts = np.diff(begins, append=len(order))
    return InvertedBlock(
        terms,
        np.bincount(ranked[begins], minlength=len(terms)).astype(np.int32),
        places[begins],
        counts.astype(np.min_scalar_type(int(counts.max(initial=0)))),
        lengths,
    )


class Layout(NamedTuple):
    """The whole index: names in order, where each term's row begins, the rows' texts and counts, the texts' lengths."""

    terms: list[str]
    starts: NDArray[np.int64]
    texts: NDArray[np.int32]
    counts: Counts
    lengths: NDArray[np.int32]


def invert_all(texts: Iterable[str], analyzer: Analyzer, task: Task, threads: int | None = None) -> Layout:
    """Analyse and invert all texts on so many threads; None means as many as there are cores, up to four."""
    numberer = Numberer(analyzer)
    totals = np.zeros(0, np.int64)
    lengths: list[NDArray[np.int64]] = []
    widest: np.dtype[np.unsignedinteger] = np.dtype(np.uint8)
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as spool:
        for block in _inverted(texts, numberer, threads):
            if len(block.terms) and block.terms[-1] >= len(totals):
                totals = np.concatenate([totals, np.zeros(block.terms[-1] + 1, np.int64)])
            totals[block.terms] += block.frequencies
            for part in (block.terms, block.frequencies, block.texts, block.counts):
                np.save(spool, part)
            widest = max(widest, block.counts.dtype)
            lengths.append(block.lengths)
            task.advance(len(block.lengths))
        spool.seek(0)
        names, arrival = numberer.in_order()
        starts = np.concatenate([[0], np.cumsum(totals[arrival])])
        cursor = np.zeros(len(names) + 1, np.int64)
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


def _inverted(texts: Iterable[str], numberer: Numberer, threads: int | None) -> Iterator[InvertedBlock]:
    """The inverted blocks in order; only a few wait at a time."""
    threads = min(available_cores(), _MOST_THREADS) if threads is None else threads
    waiting: deque[Future[InvertedBlock]] = deque()
    with ThreadPoolExecutor(max(1, threads)) as pool:
        try:
            for block in _blocks(texts):
                waiting.append(pool.submit(invert, numberer, block))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)
