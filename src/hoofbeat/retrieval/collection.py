"""One way of cutting the documents, with the indexes over its passages, each built when it is first needed.

With a folder, what is built is kept there and memory-mapped. Every part (the passages, the lexical index, the vectors
of one encoder) is an artefact folder of its own, written beside and renamed when it is whole: a part that is there is
complete, and one whose making was broken off is made again.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from msgspec import MsgspecError
from numpy.typing import NDArray

from hoofbeat.errors import ArtefactError, InputError, OutputError, UsageError
from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import Passage
from hoofbeat.retrieval.analysis import ENGLISH, Analyzer
from hoofbeat.retrieval.bm25 import Bm25, Postings
from hoofbeat.retrieval.chunking import indexed_text
from hoofbeat.retrieval.dense import DenseSearcher
from hoofbeat.retrieval.instructions import Instructions, instructions
from hoofbeat.retrieval.topk import Indices
from hoofbeat.store import Manifest, create, open_artefact
from hoofbeat.store.files import output_errors

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from hoofbeat.models.encoder import Encoder

__all__ = ["INDEX_KIND", "PassageCollection", "kept"]

INDEX_KIND = "index"
Part = TypeVar("Part")


def kept(
    target: Path, settings: dict[str, object], build: Callable[[Path], None], load: Callable[[Path], Part]
) -> Part:
    """A part of an index: as it lies there, or, where it is not there or can't be read, built now.

    It is written beside and renamed, by one process at a time: another that wants the same part waits and finds it.
    What was damaged after it was written (a file cut short by a full disk, say) does not load, is removed and built
    again.
    """
    with _alone(target):
        try:
            open_artefact(target, INDEX_KIND)
            return load(target)
        except (ArtefactError, MsgspecError, ValueError, OSError, EOFError):
            shutil.rmtree(target, ignore_errors=True)
        try:
            with create(target, replace_kind=INDEX_KIND) as draft:
                build(draft.path)
                draft.finish(Manifest(kind=INDEX_KIND, title=target.name, settings=settings))
        except OutputError as err:
            fix = "make room, or keep indexes elsewhere: set HOOFBEAT_CACHE to another folder"
            raise OutputError(f"an index can't be kept: {err.what}", where=err.where, fix=fix) from err
        return load(target)


@contextmanager
def _alone(target: Path) -> Iterator[None]:
    """Hold the lock of a part; systems without file locks go without."""
    with output_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        lock = (target.parent / f".{target.name}.lock").open("a")
    with lock:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class PassageCollection:
    """Passages, document by document, and the indexes over them."""

    def __init__(
        self,
        passages: Sequence[Passage],
        *,
        encoder: Callable[[str], Encoder],
        analyzer: Analyzer = ENGLISH,
        progress: Progress = SILENT,
        folder: Path | None = None,
    ) -> None:
        self.passages = passages
        self.analyzer = analyzer
        self.progress = progress
        self.folder = folder
        self._load_encoder = encoder
        self.documents, self.document_of = _lay_out(passages)
        self.bounds: Indices = np.searchsorted(self.document_of, np.arange(len(self.documents) + 1)).astype(np.int64)
        self._numbers = {document: number for number, document in enumerate(self.documents)}
        self._postings: Postings | None = None
        self._bm25: dict[tuple[float, float, bool], Bm25] = {}
        self._dense: dict[tuple[str, ...], tuple[Encoder, DenseSearcher]] = {}

    def texts(self) -> Iterator[str]:
        """What retrievers read of every passage, in order."""
        return map(indexed_text, self.passages)

    def describe(self, *, lexical: bool, dense: Collection[tuple[str, ...]] = ()) -> dict[str, object]:
        """The analysis, and which vectors are searched how, as a manifest records them; `dense` names the searches."""
        used = {
            ",".join(filter(None, key)): {"encoder": encoder.identity, **index.describe()}
            for key, (encoder, index) in self._dense.items()
            if key in dense
        }
        analysis = {"analysis": self.analyzer.describe()} if lexical else {}
        return {"passages": len(self.passages), **analysis, **({"vectors": used} if used else {})}

    def bm25(self, k1: float, b: float, *, partitioned: bool = False) -> Bm25:
        """BM25 with these parameters; `partitioned` takes its statistics from each passage's own document."""
        if self._postings is None:
            self._postings = self._kept_postings()
        if (k1, b, partitioned) not in self._bm25:
            self._bm25[k1, b, partitioned] = Bm25(
                self._postings, k1, b, partition_of=self.document_of if partitioned else None
            )
        return self._bm25[k1, b, partitioned]

    def dense(
        self, spec: str, *, search: str = "exact", store: str = "float32", instruct: str = "none"
    ) -> tuple[Encoder, DenseSearcher]:
        """An encoder and the search over all passages encoded by it."""
        key = (spec, search, store, instruct)
        if key not in self._dense:
            encoder = self._load_encoder(spec)
            vectors = self._kept_vectors(encoder, instructions(instruct))
            self._dense[key] = encoder, DenseSearcher.over(vectors, store=store, search=search, progress=self.progress)
        return self._dense[key]

    def place_of(self, passage_id: str) -> int | None:
        """Where a passage stands, by its id."""
        head, _, number = passage_id.rpartition("#")
        for document in (head, head.rpartition("#")[0]):
            if document in self._numbers and number.isdecimal():
                place = int(self.bounds[self._numbers[document]]) + int(number)
                if place < len(self.passages) and self.passages[place].id == passage_id:
                    return place
        return self._places.get(passage_id)

    def places_of(self, documents: Collection[str]) -> Indices:
        """Where the passages of these documents stand, ascending; an unknown document is an error."""
        unknown = [document for document in documents if document not in self._numbers]
        if unknown:
            raise UsageError(
                f"no passage belongs to {', '.join(map(repr, unknown[:3]))}",
                fix="check the document ids against the corpus",
            )
        numbers = np.unique(np.array([self._numbers[document] for document in documents], np.int64))
        parts = [np.arange(self.bounds[number], self.bounds[number + 1]) for number in numbers]
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    @property
    def _places(self) -> dict[str, int]:
        """Places by id; needed only for passages whose ids were not made by cutting documents."""
        if not hasattr(self, "_place"):
            self._place = {passage.id: place for place, passage in enumerate(self.passages)}
        return self._place

    def _kept_postings(self) -> Postings:
        def build() -> Postings:
            return Postings.build(self.texts(), self.analyzer, self.progress, count=len(self.passages))

        if self.folder is None:
            return build()
        settings: dict[str, object] = {"analysis": self.analyzer.describe()}
        name = f"lexical-{_digest(repr(sorted(self.analyzer.describe().items())))}"
        return kept(
            self.folder / name,
            settings,
            lambda draft: build().save(draft),
            lambda folder: Postings.load(folder, self.analyzer),
        )

    def _kept_vectors(self, encoder: Encoder, words: Instructions) -> NDArray[np.float32]:
        def build() -> NDArray[np.float32]:
            if not len(self.passages):
                return np.empty((0, encoder.dimension), np.float32)
            return encoder.encode_documents(list(self.texts()), words, self.progress)

        def load(folder: Path) -> NDArray[np.float32]:
            loaded: NDArray[np.float32] = np.load(folder / "vectors.npy", mmap_mode="r")
            if len(loaded) != len(self.passages):
                raise ValueError("there is not one vector for each passage")
            return loaded

        if self.folder is None:
            return build()
        before = words.document or encoder.prompts.document
        settings: dict[str, object] = {"encoder": encoder.identity, "instruction": before}
        name = f"vectors-{_digest(repr((encoder.identity, before)))}"
        return kept(self.folder / name, settings, lambda draft: np.save(draft / "vectors.npy", build()), load)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _lay_out(passages: Sequence[Passage]) -> tuple[list[str], Indices]:
    """The documents in order, and the number of each passage's; ids must differ and documents hang together."""
    numbers: dict[str, int] = {}
    document_of = np.empty(len(passages), np.int64)
    here: set[str] = set()
    last = ""
    for place, passage in enumerate(passages):
        number = numbers.setdefault(passage.document, len(numbers))
        document_of[place] = number
        if number != len(numbers) - 1:
            raise InputError(
                f"the passages of {passage.document!r} do not follow each other",
                fix="give all passages of a document one after the other; check that none was imported twice",
            )
        if passage.document != last:
            here.clear()
            last = passage.document
        if passage.id in here:
            raise InputError(
                f"two passages have the id {passage.id!r}",
                fix="every passage needs its own id; check that no document was imported twice",
            )
        here.add(passage.id)
    return list(numbers), document_of
