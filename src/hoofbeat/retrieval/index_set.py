"""The indexes over one set of documents: every way of cutting them that a line asks for, built once for all lines.

Indexes are kept in a folder where one is given, under a name made from the documents' content: a corpus that has
changed finds no old index, and the same corpus finds its own from anywhere. Every part (the passages of one way of
cutting, their lexical index, the vectors of one encoder, or a shard of these) is built when it is first needed.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from msgspec import json, to_builtins
from numpy.typing import NDArray

from hoofbeat.engine import current_engine
from hoofbeat.errors import InputError, UsageError
from hoofbeat.models.encoders.encoder_base import DEFAULT_ENCODER
from hoofbeat.progress import SILENT, Named, Progress
from hoofbeat.records import Document, Passage
from hoofbeat.retrieval.index.analysis import ENGLISH, Analyzer
from hoofbeat.retrieval.index.chunking import AUTO, DEFAULT_CHUNKING, Chunking, Spans, cut, indexed_text
from hoofbeat.retrieval.index.dense_search import DenseSearcher
from hoofbeat.retrieval.index.kept_parts import PartPlace, index_home, kept
from hoofbeat.retrieval.index.lexical_search import Bm25, Postings
from hoofbeat.retrieval.index.postgres_vectors import LoadedVectors, open_table
from hoofbeat.retrieval.index.query_vectors import Instructions, instructions
from hoofbeat.retrieval.index.shards import (
    CollectionTerms,
    LexicalShards,
    ShardedBm25,
    ShardedDense,
    ShardEdges,
    load_vectors,
)
from hoofbeat.retrieval.index.stored_texts import PASSAGES, StoredTexts
from hoofbeat.retrieval.index.topk import Indices
from hoofbeat.retrieval.index.window_pieces import PieceSearcher, WindowTally, texts_to_encode
from hoofbeat.retrieval.line import Node, stages
from hoofbeat.retrieval.stage_roles import Ranker
from hoofbeat.store.files import cache_folder, read_bytes, write_bytes
from hoofbeat.store.object_store import is_url
from hoofbeat.store.postgres import is_postgres
from hoofbeat.store.tables import IndexedTable, write_indexed
from hoofbeat.text import whole_number

if TYPE_CHECKING:
    from hoofbeat.models.encoder import Encoder
    from hoofbeat.models.model import Model


class PassageVectors(NamedTuple):
    """An encoder, the search over passages encoded by it, and how many of them are longer than it reads.

    There is no tally where the encoder does not say how much it reads.
    """

    encoder: Encoder
    search: DenseSearcher | PieceSearcher | ShardedDense
    tally: WindowTally | None


class PassageCollection:
    """Passages, document by document, and the indexes over them."""

    def __init__(
        self,
        passages: Sequence[Passage],
        *,
        encoder: Callable[[str], Encoder],
        analyzer: Analyzer = ENGLISH,
        progress: Progress = SILENT,
        place: PartPlace | None = None,
        shards: int = 1,
    ) -> None:
        """`place` is where the passages and the indexes over them are kept, in this number of shards."""
        self.passages = passages
        self.analyzer = analyzer
        self.progress = progress
        self.place = place
        self._load_encoder = encoder
        self.documents, self.document_of = _lay_out(passages)
        self.bounds: Indices = np.searchsorted(self.document_of, np.arange(len(self.documents) + 1)).astype(np.int64)
        self._numbers = {document: number for number, document in enumerate(self.documents)}
        self._edges = ShardEdges.cut(self.bounds, shards) if shards > 1 and place is not None else None
        self._postings: Postings | None = None
        self._terms: CollectionTerms | None = None
        self._bm25: dict[tuple[float, float, bool], Bm25 | ShardedBm25] = {}
        self._dense: dict[tuple[str, ...], PassageVectors] = {}

    def texts(self) -> Iterator[str]:
        """What retrievers read of every passage, in order."""
        return map(indexed_text, self.passages)

    def describe(self, *, lexical: bool, dense: Collection[tuple[str, ...]] = ()) -> dict[str, object]:
        """The analysis, and which vectors are searched how, as a manifest records them; `dense` names the searches."""
        used = {
            ",".join(filter(None, key)): {
                "encoder": made.encoder.identity,
                **made.search.describe(),
                **({"longer than window": to_builtins(made.tally)} if made.tally and made.tally.longer else {}),
            }
            for key, made in self._dense.items()
            if key in dense
        }
        analysis = {"analysis": self.analyzer.describe()} if lexical else {}
        return {"passages": len(self.passages), **analysis, **({"vectors": used} if used else {})}

    def bm25(self, k1: float, b: float, *, partitioned: bool = False) -> Bm25 | ShardedBm25:
        """BM25 with these parameters; `partitioned` takes its statistics from each passage's own document."""
        key = (k1, b, partitioned)
        if key not in self._bm25 and self._edges is not None:
            shards = self._lexical_shards(self._edges)
            if self._terms is None:
                self._terms = shards.statistics(self.progress)
            self._bm25[key] = ShardedBm25(shards, self._terms, k1, b, partitioned=partitioned)
        elif key not in self._bm25:
            if self._postings is None:
                self._postings = self._kept_postings()
            self._bm25[key] = Bm25(self._postings, k1, b, partition_of=self.document_of if partitioned else None)
        return self._bm25[key]

    def dense(
        self,
        spec: str,
        *,
        search: str = "exact",
        store: str = "float32",
        instruct: str = "none",
        truncate: bool = False,
    ) -> PassageVectors:
        """An encoder and the search over all passages encoded by it.

        Passages longer than it reads have a vector for each part; with `truncate` only their beginning is encoded.
        """
        key = (spec, search, store, instruct, *(("truncate",) if truncate else ()))
        if key not in self._dense:
            encoder = self._load_encoder(spec)
            words = instructions(instruct)
            if self._edges is not None and search == "exact" and not is_postgres(store):
                self._dense[key] = self._sharded_vectors(self._edges, encoder, words, store, truncate=truncate)
                return self._dense[key]
            if is_postgres(store):
                rows, owners, tally = self._vectors_on_server(encoder, words, store, search, truncate=truncate)
            else:
                vectors, owners, tally = self._kept_vectors(encoder, words, truncate=truncate)
                rows = DenseSearcher.over(vectors, store=store, search=search, progress=self.progress)
            searcher = rows if len(owners) == len(self.passages) else PieceSearcher(rows, owners)
            self._dense[key] = PassageVectors(encoder, searcher, tally)
        return self._dense[key]

    def place_of(self, passage_id: str) -> int | None:
        """The position of a passage, by its id."""
        head, _, number = passage_id.rpartition("#")
        for document in (head, head.rpartition("#")[0]):
            if document in self._numbers and (at := whole_number(number)) is not None:
                place = int(self.bounds[self._numbers[document]]) + at
                if place < len(self.passages) and self.passages[place].id == passage_id:
                    return place
        return self._places.get(passage_id)

    def places_of(self, documents: Collection[str]) -> Indices:
        """The positions of the passages of these documents, ascending; an unknown document is an error."""
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
            texts: Iterator[str] | StoredTexts = self.texts()
            if self.place is not None and current_engine().name != "local":
                texts = StoredTexts(self.place.inside(_PASSAGES_PART))
            return Postings.build(texts, self.analyzer, self.progress, count=len(self.passages))

        if self.place is None:
            return build()
        settings: dict[str, object] = {"analysis": self.analyzer.describe()}
        return kept(
            self.place.inside(self._lexical_name()),
            settings,
            lambda draft: build().save(draft),
            lambda folder: Postings.load(folder, self.analyzer),
        )

    def _lexical_name(self) -> str:
        return f"lexical-{_digest(repr(sorted(self.analyzer.describe().items())))}"

    def _lexical_shards(self, edges: ShardEdges) -> LexicalShards:
        assert self.place is not None
        return LexicalShards(self.place.inside(_PASSAGES_PART), self.place, self._lexical_name(), self.analyzer, edges)

    def _sharded_vectors(
        self, edges: ShardEdges, encoder: Encoder, words: Instructions, store: str, *, truncate: bool
    ) -> PassageVectors:
        """The search over shards of vectors, which are encoded one after the other where they are not there."""
        assert self.place is not None
        places, tallies, rows = [], list[WindowTally](), 0
        for number, (first, last) in enumerate(pairwise(edges.passages), start=1):
            name = f"{self._vectors_name(encoder, words, truncate=truncate)}-{number}-of-{edges.shards}"
            _, owners, tally = self._kept_vectors(encoder, words, truncate=truncate, part=(name, first, last))
            places.append(self.place.inside(name))
            tallies += [tally] if tally is not None else []
            rows += len(owners)
        tally = WindowTally.added(tallies) if tallies else None
        return PassageVectors(encoder, ShardedDense(places, edges, store, rows), tally)

    def _vectors_name(self, encoder: Encoder, words: Instructions, *, truncate: bool) -> str:
        before = words.document or encoder.prompts.document
        return f"vectors-{_digest(repr((_PARTS, encoder.identity, before, truncate)))}"

    def _vectors_on_server(
        self, encoder: Encoder, words: Instructions, store: str, search: str, *, truncate: bool
    ) -> tuple[DenseSearcher, Indices, WindowTally | None]:
        """The search in a database, where the collection is loaded unless somebody has done so."""

        def make() -> LoadedVectors:
            vectors, owners, tally = self._kept_vectors(encoder, words, truncate=truncate)
            return LoadedVectors(vectors, owners, json.encode(tally).decode())

        content = hashlib.sha256()
        for passage in self.passages:
            content.update(json.encode((passage.id, indexed_text(passage))))
        before = words.document or encoder.prompts.document
        key = (_PARTS, encoder.identity, before, truncate, content.hexdigest())
        rows, owners, facts = open_table(store, key, encoder.identity, make, search=search, progress=self.progress)
        return rows, owners, json.decode(facts, type=WindowTally | None)

    def _kept_vectors(
        self,
        encoder: Encoder,
        words: Instructions,
        *,
        truncate: bool,
        part: tuple[str, int, int] | None = None,
    ) -> tuple[NDArray[np.float32], Indices, WindowTally | None]:
        """The vectors, the passage that each belongs to, and how many passages are longer than the encoder reads.

        They are those of all passages, or of a `part`: its name, its first passage, and the one after its last.
        """
        before = words.document or encoder.prompts.document
        name, first, last = part or (self._vectors_name(encoder, words, truncate=truncate), 0, len(self.passages))

        def build() -> tuple[NDArray[np.float32], Indices, WindowTally | None]:
            some = self.passages if part is None else self.passages[first:last]
            made = texts_to_encode(some, encoder, before, truncate=truncate)
            if not made.texts:
                return np.empty((0, encoder.dimension), np.float32), made.owners, made.tally
            return (
                encoder.encode_documents(
                    made.texts, words, Named(self.progress, f"encoding passages ({encoder.name})")
                ),
                made.owners,
                made.tally,
            )

        def save(draft: Path) -> None:
            vectors, owners, tally = build()
            np.save(draft / "vectors.npy", vectors)
            np.save(draft / "owners.npy", owners)
            write_bytes(draft / "window.json", json.encode(tally))

        def load(folder: Path) -> tuple[NDArray[np.float32], Indices, WindowTally | None]:
            vectors, owners = load_vectors(folder)
            if len(np.unique(owners)) != last - first:
                raise ValueError("there is not a vector for each passage")
            return vectors, owners, json.decode(read_bytes(folder / "window.json"), type=WindowTally | None)

        if self.place is None:
            return build()
        settings: dict[str, object] = {"encoder": encoder.identity, "instruction": before, "truncate": truncate}
        return kept(self.place.inside(name), settings, save, load)


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
                f"the passages of {passage.document!r} are not adjacent",
                fix="list all passages of a document together; check that no document was imported twice",
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


FORMAT = 2
"""Raised when kept indexes of an older form must not be read."""

_PARTS = 1  # raised when passages longer than a window are cut into other parts
_SHIFT = 40
_PASSAGES_PART = "passages"
_AT_ONCE = 64


def index_documents(
    documents: Iterable[Document],
    content: str,
    *,
    passages: bool = False,
    encoder: Callable[[str], Encoder] | None = None,
    models: Callable[[str], Model] | None = None,
    progress: Progress = SILENT,
    keep: bool = True,
) -> IndexSet:
    """The indexes over documents; kept in the user's cache, under the name of their `content`.

    `passages` says that the documents were published as passages, which are not cut unless a line asks for it;
    `models` gives the endpoints that encoders name, where `encoder` does not load them.
    """

    def load(spec: str) -> Encoder:
        from hoofbeat.models.encoder import load_encoder  # noqa: PLC0415 (loaded only where a line has an encoder)
        from hoofbeat.models.encoders.vector_cache import cached_encoder, vectors_folder  # noqa: PLC0415

        return cached_encoder(load_encoder(spec, model=models), vectors_folder())

    return IndexSet(
        documents,
        encoder=encoder or load,
        progress=progress,
        place=index_place() if keep else None,
        shards=index_home().shards,
        content=content,
        auto=Chunking("whole") if passages else DEFAULT_CHUNKING,
    )


def index_place() -> PartPlace:
    """Where indexes are kept: where the command says, else in `indexes` in `HOOFBEAT_CACHE` or the user's cache.

    What is kept in an object store is also in the cache.
    """
    place = index_home().place
    if is_url(place):
        return PartPlace(cache_folder("indexes"), place)
    return PartPlace(Path(place).expanduser() if place else cache_folder("indexes"))


class IndexSet:
    """Documents, and the indexes over their passages."""

    def __init__(
        self,
        documents: Iterable[Document],
        *,
        encoder: Callable[[str], Encoder],
        analyzer: Analyzer = ENGLISH,
        progress: Progress = SILENT,
        place: PartPlace | None = None,
        shards: int = 1,
        content: str = "",
        auto: Chunking = DEFAULT_CHUNKING,
    ) -> None:
        """`documents` is read as often as needed; `content` names what they hold: with it, indexes are kept in `place`.

        They are kept in `shards` parts. `auto` is how documents are cut where a line does not say.
        """
        self.auto = auto
        self._shards = shards
        self.source = documents
        self.analyzer = analyzer
        self.progress = progress
        self.trouble = ""
        self._root = self._rooted(place, content)
        self._load = encoder
        self._encoders: dict[str, Encoder] = {}
        self._collections: dict[tuple[str, str], PassageCollection] = {}
        self._ordered: list[PassageCollection] = []
        self._by_name: dict[str, Document] | None = None
        self.memory: dict[tuple[str, str], object] = {}

    @classmethod
    def of_passages(
        cls,
        passages: Sequence[Passage],
        *,
        encoder: Callable[[str], Encoder],
        analyzer: Analyzer = ENGLISH,
        progress: Progress = SILENT,
    ) -> IndexSet:
        """Indexes over passages that are cut already: no line can have them cut in another way."""
        made = cls((), encoder=encoder, analyzer=analyzer, progress=progress)
        made._add(
            (str(DEFAULT_CHUNKING), ""),
            PassageCollection(passages, encoder=made.encoder, analyzer=analyzer, progress=progress),
        )
        made.source = ()
        return made

    def _rooted(self, place: PartPlace | None, content: str) -> PartPlace | None:
        """Where indexes are kept; nowhere where that can't be written, and `trouble` says so."""
        if place is None or not content:
            return None
        root = place.inside(f"v{FORMAT}-{content[:24]}")
        try:
            root.folder.mkdir(parents=True, exist_ok=True)
            (root.folder / f".{os.getpid()}.probe").touch()
            (root.folder / f".{os.getpid()}.probe").unlink()
        except OSError as err:
            self.trouble = (
                f"indexes can't be kept in {place.folder} ({err.strerror}); set HOOFBEAT_CACHE to a folder that you own"
            )
            return None
        return root

    def encoder(self, spec: str) -> Encoder:
        """The encoder of that name, loaded once."""
        if spec not in self._encoders:
            self._encoders[spec] = self._load(spec)
        return self._encoders[spec]

    def tokens(self, spec: str = "") -> Spans:
        """Where an encoder's tokens begin and end in a text; for lexical search those of the embedded encoder."""
        return self.encoder(spec or DEFAULT_ENCODER).token_spans

    def collection(self, chunking: Chunking = AUTO, encoder: str = "") -> PassageCollection:
        """The passages of one way of cutting; `encoder` is whose tokens are counted, where tokens are."""
        chunking = self.auto if chunking.unit == "auto" else chunking
        key = _key(chunking, encoder)
        if key not in self._collections:
            if self._ordered and self.source == ():
                raise UsageError(
                    f"these passages are already cut and can't be cut again as {chunking}",
                    fix="remove chunk= from the line",
                )
            self._add(key, self._cut(chunking, key))
        return self._collections[key]

    def code(self, collection: PassageCollection, places: Indices) -> Indices:
        """Numbers for passages that tell also which collection they belong to."""
        return places + (self._ordered.index(collection) << _SHIFT)

    def decode(self, code: int) -> Passage:
        """The passage of such a number."""
        return self._ordered[code >> _SHIFT].passages[code & ((1 << _SHIFT) - 1)]

    def passage(self, passage_id: str) -> Passage:
        """The passage with this id, as `Hit.passage` names it."""
        for collection in self._ordered:
            place = collection.place_of(passage_id)
            if place is not None:
                return collection.passages[place]
        raise InputError(f"no passage {passage_id!r} is indexed", fix="check that the rankings are of these documents")

    @property
    def empty(self) -> bool:
        """Whether there are no documents; nothing is cut to know it."""
        return not (self._ordered[0].documents if self._ordered else any(True for _ in self.source))

    @property
    def documents(self) -> list[str]:
        """The ids of the documents, in order."""
        return (self._ordered[0] if self._ordered else self.collection()).documents

    def document(self, name: str) -> Document:
        """One document; the source is read until it is found, unless it can be asked for one."""
        get = getattr(self.source, "get", None)
        if get is None:
            if self._by_name is None:
                self._by_name = {document.id: document for document in self.source}
            get = self._by_name.get
        found = get(name)
        if not isinstance(found, Document):
            raise InputError(f"no document {name!r} is indexed", fix="check the document ids against the corpus")
        return found

    def describe(self, line: Node) -> dict[str, object]:
        """What a line searches, cut and indexed how, as a manifest records it."""
        wanted: dict[tuple[str, str], tuple[bool, set[tuple[str, ...]]]] = {}
        asking: dict[str, str] = {}
        for stage in stages(line):
            for use in stage.index_uses() if isinstance(stage, Ranker) else ():
                key = _key(self.auto if use.chunking.unit == "auto" else use.chunking, use.encoder)
                lexical, vectors = wanted.get(key, (False, set()))
                wanted[key] = (lexical or use.lexical, vectors | ({use.vectors} if use.vectors else set()))
                asking |= {use.queries: self.encoder(use.queries).identity} if use.queries in self._encoders else {}
        return {
            "collections": {
                " by ".join(filter(None, key)): self._collections[key].describe(lexical=lexical, dense=vectors)
                for key, (lexical, vectors) in wanted.items()
                if key in self._collections
            },
            **({"query encoders": asking} if asking else {}),
        }

    @staticmethod
    def recalls(settings: Mapping[str, object]) -> dict[str, float]:
        """From what `describe` recorded: the measured recall of every approximate search."""
        found: dict[str, float] = {}
        collections = settings.get("collections")
        for described in collections.values() if isinstance(collections, dict) else ():
            for name, vectors in described.get("vectors", {}).items():
                if "recall@10" in vectors:
                    found[f"{name} ({vectors['recall measured on']})"] = float(vectors["recall@10"])
        return found

    def _add(self, key: tuple[str, str], collection: PassageCollection) -> None:
        self._collections[key] = collection
        self._ordered.append(collection)
        if collection.documents != self._ordered[0].documents:
            raise InputError("the documents changed while Hoofbeat read them", fix="run the command again")

    def _cut(self, chunking: Chunking, key: tuple[str, str]) -> PassageCollection:
        spans = self.tokens(key[1]) if chunking.needs_tokens else None
        tokenizer = self.encoder(key[1]).identity if chunking.needs_tokens else ""
        mark = "" if key[1] in {"", DEFAULT_ENCODER} else "@" + hashlib.sha256(tokenizer.encode()).hexdigest()[:6]

        def passages() -> Iterator[Passage]:
            blocks = _different(self.source)
            for found in current_engine().map(partial(_cut_documents, chunking, spans, mark), blocks):
                yield from found

        if self._root is None:
            return self._over(list(passages()), None)
        settings: dict[str, object] = {"chunking": str(chunking), "tokens": tokenizer}
        digest = hashlib.sha256(repr((str(chunking), tokenizer)).encode()).hexdigest()[:12]
        place = self._root.inside(f"{re.sub(r'[^a-z0-9]+', '-', str(chunking))}-{digest}")
        return kept(
            place.inside(_PASSAGES_PART),
            settings,
            lambda draft: write_indexed(draft / PASSAGES, passages()),
            lambda found: self._over(IndexedTable(found / PASSAGES, Passage), place),
        )

    def _over(self, passages: Sequence[Passage], place: PartPlace | None) -> PassageCollection:
        return PassageCollection(
            passages,
            encoder=self.encoder,
            analyzer=self.analyzer,
            progress=self.progress,
            place=place,
            shards=self._shards,
        )


def _different(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Documents in blocks; two with the same id are an error."""
    seen: set[str] = set()
    stream = iter(documents)
    while block := list(islice(stream, _AT_ONCE)):
        for document in block:
            if document.id in seen:
                raise InputError(f"two documents have the id {document.id!r}", fix="every document needs its own id")
            seen.add(document.id)
        yield block


def _cut_documents(chunking: Chunking, spans: Spans | None, mark: str, documents: Sequence[Document]) -> list[Passage]:
    return [passage for document in documents for passage in cut(document, chunking, spans, mark)]


def _key(chunking: Chunking, encoder: str) -> tuple[str, str]:
    """A way of cutting, and whose tokens are counted where tokens are."""
    return (str(chunking), (encoder or DEFAULT_ENCODER) if chunking.needs_tokens else "")
