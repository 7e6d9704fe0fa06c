"""The indexes over one set of documents: every way of cutting them that a line asks for, built once for all lines.

Indexes are kept in a folder where one is given, under a name made from the documents' content: a corpus that has
changed finds no old index, and the same corpus finds its own from anywhere.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hoofbeat.errors import InputError, UsageError
from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import Document, Passage
from hoofbeat.retrieval.analysis import ENGLISH, Analyzer
from hoofbeat.retrieval.chunking import AUTO, DEFAULT_CHUNKING, Chunking, Spans, cut
from hoofbeat.retrieval.collection import PassageCollection, kept
from hoofbeat.retrieval.line import Node, stages
from hoofbeat.retrieval.stage_roles import Ranker
from hoofbeat.retrieval.topk import Indices
from hoofbeat.store.offsets import IndexedTable, write_indexed

if TYPE_CHECKING:
    from hoofbeat.models.encoder import Encoder

__all__ = ["FORMAT", "IndexSet", "index_folder"]

FORMAT = 2
"""Raised when kept indexes of an older form must not be read."""

_TOKENIZER = "minilm"
_SHIFT = 40
_PASSAGES = "passages.jsonl"


def index_folder() -> Path:
    """Where indexes are kept: `indexes` in `HOOFBEAT_CACHE`, else in the user's cache folder."""
    if chosen := os.environ.get("HOOFBEAT_CACHE"):
        return Path(chosen).expanduser() / "indexes"
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "hoofbeat" / "indexes"


class IndexSet:
    """Documents, and the indexes over their passages."""

    def __init__(
        self,
        documents: Iterable[Document],
        *,
        encoder: Callable[[str], Encoder],
        analyzer: Analyzer = ENGLISH,
        progress: Progress = SILENT,
        folder: Path | None = None,
        content: str = "",
        auto: Chunking = DEFAULT_CHUNKING,
    ) -> None:
        """`documents` is read as often as needed; `content` names what they hold: with it, `folder` keeps indexes.

        `auto` is how they are cut where a line does not say.
        """
        self.auto = auto
        self.source = documents
        self.analyzer = analyzer
        self.progress = progress
        self.trouble = ""
        self._root = self._place(folder, content)
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

    def _place(self, folder: Path | None, content: str) -> Path | None:
        """Where indexes are kept; nowhere where that can't be written, and `trouble` says so."""
        if folder is None or not content:
            return None
        root = folder / f"v{FORMAT}-{content[:24]}"
        try:
            root.mkdir(parents=True, exist_ok=True)
            (root / f".{os.getpid()}.probe").touch()
            (root / f".{os.getpid()}.probe").unlink()
        except OSError as err:
            self.trouble = (
                f"indexes can't be kept in {folder} ({err.strerror}); set HOOFBEAT_CACHE to a folder of yours"
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
        return self.encoder(spec or _TOKENIZER).token_spans

    def collection(self, chunking: Chunking = AUTO, encoder: str = "") -> PassageCollection:
        """The passages of one way of cutting; `encoder` is whose tokens are counted, where tokens are."""
        chunking = self.auto if chunking.unit == "auto" else chunking
        key = _key(chunking, encoder)
        if key not in self._collections:
            if self._ordered and self.source == ():
                raise UsageError(
                    f"these passages are cut already and can't be cut as {chunking}", fix="leave chunk= out of the line"
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
        for stage in stages(line):
            for use in stage.index_uses() if isinstance(stage, Ranker) else ():
                key = _key(self.auto if use.chunking.unit == "auto" else use.chunking, use.encoder)
                lexical, vectors = wanted.get(key, (False, set()))
                wanted[key] = (lexical or use.lexical, vectors | ({use.vectors} if use.vectors else set()))
        return {
            "collections": {
                " by ".join(filter(None, key)): self._collections[key].describe(lexical=lexical, dense=vectors)
                for key, (lexical, vectors) in wanted.items()
                if key in self._collections
            }
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
            raise InputError("the documents changed while they were read", fix="run the command again")

    def _cut(self, chunking: Chunking, key: tuple[str, str]) -> PassageCollection:
        spans = self.tokens(key[1]) if chunking.needs_tokens else None
        tokenizer = self.encoder(key[1]).identity if chunking.needs_tokens else ""
        mark = "" if key[1] in {"", _TOKENIZER} else "@" + hashlib.sha256(tokenizer.encode()).hexdigest()[:6]

        def passages() -> Iterator[Passage]:
            seen: set[str] = set()
            for document in self.source:
                if document.id in seen:
                    raise InputError(
                        f"two documents have the id {document.id!r}", fix="every document needs its own id"
                    )
                seen.add(document.id)
                yield from cut(document, chunking, spans, mark)

        if self._root is None:
            return self._over(list(passages()), None)
        settings: dict[str, object] = {"chunking": str(chunking), "tokens": tokenizer}
        digest = hashlib.sha256(repr((str(chunking), tokenizer)).encode()).hexdigest()[:12]
        folder = self._root / f"{re.sub(r'[^a-z0-9]+', '-', str(chunking))}-{digest}"
        return kept(
            folder / "passages",
            settings,
            lambda draft: write_indexed(draft / _PASSAGES, passages()),
            lambda found: self._over(IndexedTable(found / _PASSAGES, Passage), folder),
        )

    def _over(self, passages: Sequence[Passage], folder: Path | None) -> PassageCollection:
        return PassageCollection(
            passages, encoder=self.encoder, analyzer=self.analyzer, progress=self.progress, folder=folder
        )


def _key(chunking: Chunking, encoder: str) -> tuple[str, str]:
    """A way of cutting, and whose tokens are counted where tokens are."""
    return (str(chunking), (encoder or _TOKENIZER) if chunking.needs_tokens else "")
