"""Postings: which term stands how often in which text; built once, kept in a folder, memory-mapped from there.

The folder holds plain little-endian arrays (`.npy`), the terms in order (`terms.json`) and `postings.json`, which is
written last and says what the others are: format, analysis, counts, sizes. A folder without it is not an index.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sized
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from hoofbeat.errors import ArtefactError, OutputError
from hoofbeat.progress import SILENT, Progress
from hoofbeat.retrieval.analysis import ENGLISH, Analyzer, TermVocabulary
from hoofbeat.retrieval.inverting import Counts, invert_all
from hoofbeat.retrieval.topk import Indices

__all__ = ["Postings"]

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
    """Which term stands how often in which text: what every BM25 over the same texts shares.

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
        texts: Iterable[str],
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
                    raise ValueError(f"{name} has another size than when it was written")
            names = json.loads((folder / _TERMS).read_text("ascii"))
            starts, texts, counts, lengths = (_mapped(folder / f"{name}.npy") for name in _NAMES)
            found = (len(lengths), len(names), len(starts) - 1, len(texts), len(counts), int(starts[-1]))
            if found != (meta.texts, meta.terms, meta.terms, meta.postings, meta.postings, meta.postings):
                raise ValueError("its files do not belong together")
            if starts[0] != 0 or (np.diff(starts) <= 0).any():
                raise ValueError("starts.npy does not ascend")
        except (OSError, ValueError, KeyError, TypeError, IndexError, EOFError) as error:
            raise ArtefactError(
                f"the lexical index is damaged: {error}", where=str(folder), fix=_BUILD_AGAIN
            ) from error
        return cls(TermVocabulary(analyzer, _numbered(names)), starts, texts, counts, lengths)

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
        raise ValueError(f"{path.name} holds no list of whole numbers")
    return np.asarray(array)


def _read_meta(folder: Path, analyzer: Analyzer) -> _Meta:
    where = str(folder)
    try:
        meta = msgspec.json.decode((folder / _META).read_bytes(), type=_Meta, strict=True)
    except FileNotFoundError as error:
        raise ArtefactError(
            "there is no lexical index, or only part of one", where=where, fix="build the index"
        ) from error
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ArtefactError(f"{_META} can't be read: {error}", where=where, fix=_BUILD_AGAIN) from error
    if meta.format != _FORMAT:
        raise ArtefactError(
            f"the lexical index has format {meta.format}, this program reads {_FORMAT}", where=where, fix=_BUILD_AGAIN
        )
    if meta.analysis != (wanted := analyzer.describe()):
        differing = [name for name in wanted if meta.analysis.get(name) != wanted[name]]
        raise ArtefactError(
            f"the lexical index was made by another analysis ({', '.join(differing) or 'more settings'})",
            where=where,
            fix="build the index again, or search with the analysis it was made by",
        )
    return meta
