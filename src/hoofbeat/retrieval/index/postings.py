"""Postings: which term stands how often in which text; built once, kept in a folder, memory-mapped from there.

The folder holds plain little-endian arrays (`.npy`), the terms in order (`terms.json`) and `postings.json`, which is
written last and says what the others are: format, analysis, counts, sizes. A folder without it is not an index.

Texts are turned into postings block by block, on as many threads as there are cores, or by workers of a cluster, which
read their blocks by themselves. Terms are numbered as they come, which depends on what ran when, and again at the end
in the order of their characters: the same texts give the same index however the work was shared out. Blocks wait on
disk, three or four bytes per posting, until all are there; then the index is laid out term by term.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sized
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from hoofbeat.engine import available_cores, current_engine
from hoofbeat.errors import ArtefactError, OutputError
from hoofbeat.progress import SILENT, Progress, Task
from hoofbeat.retrieval.index.analysis import ENGLISH, Analyzer, Numberer, TermVocabulary
from hoofbeat.retrieval.index.stored_texts import StoredTexts, TextStretch
from hoofbeat.retrieval.index.topk import Indices

Counts = NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32]

_BLOCK = 4096
_BLOCK_CHARACTERS = 1 << 20
_IN_MEMORY = 1 << 20
_MOST_THREADS = 4


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


class _InvertedPart(NamedTuple):
    """The blocks of a part. From elsewhere their terms are numbered by their places in `names`."""

    blocks: list[InvertedBlock]
    names: list[str]


class _Inverter:
    """The work of a worker that inverts blocks of texts. Threads share its numbers.

    A process elsewhere has its own numbers, so what it gives comes with the names of the terms.
    """

    def __init__(self, numberer: Numberer, *, elsewhere: bool = False) -> None:
        self.numberer = numberer
        self._elsewhere = elsewhere

    def __reduce__(self) -> tuple[Callable[..., _Inverter], tuple[Analyzer]]:
        return _inverter_elsewhere, (self.numberer.analyzer,)

    def __call__(self, texts: list[str] | TextStretch) -> _InvertedPart:
        listed = texts.blocks() if isinstance(texts, TextStretch) else [texts]
        blocks = [invert(self.numberer, block) for block in listed]
        if not self._elsewhere:
            return _InvertedPart(blocks, [])
        places = np.zeros(len(self.numberer), np.int32)
        for block in blocks:
            places[block.terms] = 1
        present = np.flatnonzero(places)
        places[present] = np.arange(len(present))
        named = [block._replace(terms=places[block.terms]) for block in blocks]
        return _InvertedPart(named, self.numberer.names_of(present))

    def numbered(self, found: _InvertedPart) -> Iterator[InvertedBlock]:
        """The blocks with this command's numbers of their terms."""
        if not found.names:
            yield from found.blocks
            return
        numbers = self.numberer.numbers_of(found.names)
        for block in found.blocks:
            # lengths are kept: as a view they would hold the whole part in the cluster's memory
            yield block._replace(terms=numbers[block.terms], lengths=block.lengths.copy())


def _inverter_elsewhere(analyzer: Analyzer) -> _Inverter:
    return _Inverter(Numberer(analyzer), elsewhere=True)


class PostingsLayout(NamedTuple):
    """The whole index: names in order, where each term's row begins, the rows' texts and counts, the texts' lengths."""

    terms: list[str]
    starts: NDArray[np.int64]
    texts: NDArray[np.int32]
    counts: Counts
    lengths: NDArray[np.int32]


def invert_all(
    texts: Iterable[str] | StoredTexts, analyzer: Analyzer, task: Task, threads: int | None = None
) -> PostingsLayout:
    """Analyse and invert all texts on `threads` threads; None means as many as there are cores, up to four."""
    inverter = _Inverter(Numberer(analyzer))
    totals = np.zeros(0, np.int64)
    lengths: list[NDArray[np.int64]] = []
    widest: np.dtype[np.unsignedinteger] = np.dtype(np.uint8)
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as spool:
        threads = min(available_cores(), _MOST_THREADS) if threads is None else max(1, threads)
        sees = texts.place.sees() if isinstance(texts, StoredTexts) else []
        parts = current_engine().map(inverter, _blocks(texts), threads=True, workers=threads, sees=sees)
        for block in chain.from_iterable(map(inverter.numbered, parts)):
            if len(block.terms) and block.terms.max() >= len(totals):
                totals = np.concatenate([totals, np.zeros(block.terms.max() + 1, np.int64)])
            totals[block.terms] += block.frequencies
            for part in (block.terms, block.frequencies, block.texts, block.counts):
                np.save(spool, part)
            widest = max(widest, block.counts.dtype)
            lengths.append(block.lengths)
            task.advance(len(block.lengths))
        spool.seek(0)
        names, arrival = inverter.numberer.in_order()
        starts = np.concatenate([[0], np.cumsum(totals[arrival])])
        cursor = np.zeros(len(names) + 1, np.int64)
        cursor[arrival] = starts[:-1]
        return PostingsLayout(names, starts, *_lay_out(spool, cursor, lengths, np.empty(starts[-1], widest)))


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


def _blocks(texts: Iterable[str] | StoredTexts) -> Iterator[list[str] | TextStretch]:
    """The texts in blocks of limited number and length."""
    if isinstance(texts, StoredTexts):
        yield from texts.stretches()
        return
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


_FORMAT = 1
_META = "postings.json"
_TERMS = "terms.json"
_BUILD_AGAIN = "delete the folder and build the index again"


class _Meta(msgspec.Struct, frozen=True, kw_only=True):
    """What `postings.json` says."""

    format: int
    analysis: dict[str, str | bool]
    texts: int
    terms: int
    postings: int
    sizes: dict[str, int]


class Postings:
    """How often each term occurs in each text: what every BM25 over the same texts shares.

    Rows are terms: `texts[starts[t]:starts[t + 1]]` are the texts with term `t` in ascending order, `counts` beside;
    `lengths` are the texts' numbers of terms.
    """

    def __init__(
        self,
        vocabulary: TermVocabulary,
        starts: Indices,
        texts: NDArray[np.int32],
        counts: Counts,
        lengths: NDArray[np.int32],
    ) -> None:
        self.vocabulary = vocabulary
        self.starts = starts
        self.texts = texts
        self.counts = counts
        self.lengths = lengths

    @classmethod
    def build(
        cls,
        texts: Iterable[str] | StoredTexts,
        analyzer: Analyzer = ENGLISH,
        progress: Progress = SILENT,
        *,
        count: int | None = None,
        threads: int | None = None,
    ) -> Self:
        """Analyse and invert the texts; `count` is their number where that can't be asked of them.

        Texts are analysed on `threads` threads, by default one a core, up to four; that does not change the result.
        """
        if count is None and isinstance(texts, Sized):
            count = len(texts)
        with progress.task("lexical index", count) as task:
            names, starts, rows, counts, lengths = invert_all(texts, analyzer, task, threads)
        return cls(TermVocabulary(analyzer, _numbered(names)), starts, rows, counts, lengths)

    def save(self, folder: Path) -> None:
        """Write the index into a folder, which may hold other things; the file that makes it valid comes last."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / _META).unlink(missing_ok=True)
            for name, array in self._arrays().items():
                np.save(folder / name, array.astype(array.dtype.newbyteorder("<"), copy=False))
            (folder / _TERMS).write_text(json.dumps(list(self.vocabulary.terms)), "ascii")
            meta = _Meta(
                format=_FORMAT,
                analysis=self.vocabulary.analyzer.describe(),
                texts=len(self.lengths),
                terms=len(self.vocabulary.terms),
                postings=len(self.texts),
                sizes={name: (folder / name).stat().st_size for name in [*self._arrays(), _TERMS]},
            )
            (folder / _META).write_bytes(msgspec.json.format(msgspec.json.encode(meta), indent=2))
        except OSError as error:
            raise OutputError(
                f"the lexical index can't be written: {error.strerror or error}",
                where=str(folder),
                fix="check that the disk has room and the folder can be written",
            ) from error

    @classmethod
    def load(cls, folder: Path, analyzer: Analyzer = ENGLISH) -> Self:
        """Open an index that was saved; what is not one, or one of another analysis, is an `ArtefactError`."""
        meta = _read_meta(folder, analyzer)
        try:
            for name, size in meta.sizes.items():
                if (folder / name).stat().st_size != size:
                    raise ValueError(f"the size of {name} has changed since it was written")
            names = json.loads((folder / _TERMS).read_text("ascii"))
            starts, texts, counts, lengths = (_mapped(folder / f"{name}.npy") for name in _NAMES)
            found = (len(lengths), len(names), len(starts) - 1, len(texts), len(counts), int(starts[-1]))
            if found != (meta.texts, meta.terms, meta.terms, meta.postings, meta.postings, meta.postings):
                raise ValueError("its files do not match")
            if starts[0] != 0 or (np.diff(starts) <= 0).any():
                raise ValueError("starts.npy does not ascend")
        except (OSError, ValueError, KeyError, TypeError, IndexError, EOFError) as error:
            raise ArtefactError(
                f"the lexical index is damaged: {error}", where=str(folder), fix=_BUILD_AGAIN
            ) from error
        return cls(TermVocabulary(analyzer, _numbered(names)), starts, texts, counts, lengths)

    def row(self, term: str) -> NDArray[np.int32]:
        """The texts with a term, ascending."""
        number = self.vocabulary.terms.get(term)
        if number is None:
            return np.empty(0, np.int32)
        return self.texts[self.starts[number] : self.starts[number + 1]]

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {f"{name}.npy": getattr(self, name) for name in _NAMES}


_NAMES = ("starts", "texts", "counts", "lengths")


def _numbered(names: list[str]) -> dict[str, int]:
    return dict(zip(names, range(len(names)), strict=True))


def _mapped(path: Path) -> NDArray[Any]:
    """An array memory-mapped for reading, as a plain array: slices of it cost less. An empty one can't be mapped."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError:
        array = np.load(path, allow_pickle=False)
        if array.size:
            raise
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(f"{path.name} does not hold a list of whole numbers")
    return np.asarray(array)


def _read_meta(folder: Path, analyzer: Analyzer) -> _Meta:
    where = str(folder)
    try:
        meta = msgspec.json.decode((folder / _META).read_bytes(), type=_Meta, strict=True)
    except FileNotFoundError as error:
        raise ArtefactError("the lexical index is missing or incomplete", where=where, fix="build the index") from error
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ArtefactError(f"{_META} can't be read: {error}", where=where, fix=_BUILD_AGAIN) from error
    if meta.format != _FORMAT:
        raise ArtefactError(
            f"the lexical index has format {meta.format}, this program reads {_FORMAT}", where=where, fix=_BUILD_AGAIN
        )
    if meta.analysis != (wanted := analyzer.describe()):
        differing = [name for name in wanted if meta.analysis.get(name) != wanted[name]]
        raise ArtefactError(
            f"the lexical index was made with another analysis ({', '.join(differing) or 'more settings'})",
            where=where,
            fix="build the index again, or search with its analysis",
        )
    return meta
