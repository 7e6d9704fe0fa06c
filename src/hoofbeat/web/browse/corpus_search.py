"""Searching a corpus with any retriever line: in a separate thread, found again under an id nobody can guess.

What is searched for may be a patient's story: it comes by post, is kept in memory for an hour, and is in no address.
A visitor's line is a stranger's word: it may name no folder of this machine, no endpoint, and no model but those that
the server offers.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Generic, Literal, TypeVar

from msgspec import Struct

from hoofbeat.ask.similar_reports import SearchableCorpus, term_marks
from hoofbeat.corpus import Corpus
from hoofbeat.errors import HoofbeatError, UsageError
from hoofbeat.models import Model
from hoofbeat.progress import Task
from hoofbeat.records import Hit, Passage
from hoofbeat.registry import registry
from hoofbeat.reports.marked_document import Mark
from hoofbeat.retrieval import ENGLISH
from hoofbeat.retrieval.line import Node, Stage, cost_bound, every_stage, parse
from hoofbeat.store.folder_library import Folder
from hoofbeat.web.site import Site

T = TypeVar("T")

ENCODERS = ("minilm", "potion")
"""The encoders a visitor's line may name."""

_QUERY = "search"
_MAX_LINE = 2_000
_MAX_TEXT = 50_000
_MAX_HITS = 100
_AT_WORK = 4
_PATIENCE = 1.5


class SearchHit(Struct, frozen=True, kw_only=True):
    """One hit: the document, its best passage with the words it shares with the query, and how each stage placed it."""

    document: str
    rank: int
    score: float
    passage: Passage | None
    shared: tuple[Mark, ...]
    via: tuple[tuple[str, int, float], ...]


class RecentCache(Generic[T]):
    """The latest `max_kept` things, for `seconds` at most, each under an id that can't be guessed."""

    def __init__(self, *, max_kept: int = 200, seconds: float = 3600.0) -> None:
        self._max_kept, self._seconds = max_kept, seconds
        self._things: OrderedDict[str, tuple[float, T]] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, thing: T) -> str:
        """Keep something; its id."""
        name = secrets.token_urlsafe(16)
        with self._lock:
            self._things[name] = (time.monotonic(), thing)
            while len(self._things) > self._max_kept:
                self._things.popitem(last=False)
        return name

    def get(self, name: str) -> T | None:
        """What is kept under this id, unless that was too long ago."""
        with self._lock:
            now = time.monotonic()
            while self._things and now - next(iter(self._things.values()))[0] > self._seconds:
                self._things.popitem(last=False)
            found = self._things.get(name)
        return found[1] if found else None

    def all(self) -> list[T]:
        """Everything that is kept."""
        with self._lock:
            return [thing for _, thing in self._things.values()]


class QuestionSearch(Struct, frozen=True, kw_only=True):
    """A search over the questions of a benchmark: what was looked for, and the numbers of those that have it."""

    folder: str
    edition: str
    text: str
    numbers: tuple[int, ...]


class CorpusSearch:
    """One search of a corpus on its way. It is a `Progress`, too: a task of the work is what the page says is done."""

    def __init__(self, folder: str, line: str, text: str, count: int, chosen: Mapping[str, str]) -> None:
        self.folder, self.line, self.text, self.count = folder, line, text, count
        self.chosen = dict(chosen)
        self.state: Literal["working", "done", "failed"] = "working"
        self.step, self.done, self.total = "waiting for other searches", 0, None
        self.found: tuple[SearchHit, ...] = ()
        self.written: tuple[tuple[str, str], ...] = ()
        self.notes: tuple[str, ...] = ()
        self.what = self.fix = ""
        self.seconds = 0.0
        self.over = threading.Event()

    total: int | None

    @contextmanager
    def task(self, title: str, total: int | None) -> Iterator[Task]:
        """A step of the work."""
        self.step, self.done, self.total = title, 0, total
        yield self

    def advance(self, steps: int = 1) -> None:
        """So many more are done."""
        self.done += steps

    def note(self, text: str) -> None:
        """Remarks are not shown."""


Searches = RecentCache["CorpusSearch | QuestionSearch"]


def kept_searches(site: Site) -> Searches:
    """The searches that a server keeps."""
    made: Searches = site.shared.setdefault("browse.searches", RecentCache())
    return made


def offered_stages(site: Site) -> list[Stage]:
    """The stages that visitors can use.

    Without a language model, those that ask one are left out, unless the server's own line uses them without: `rerank`
    with a cross-encoder's folder.
    """
    offered = _models_of(site)
    own = {stage.name for stage in every_stage(parse(site.settings.line)) if not stage.models()}
    return [stage for stage in registry.all(Stage) if offered or not stage.models() or stage.name in own]


def _models_of(site: Site) -> tuple[str, ...]:
    return site.settings.models if site.load_model else ()


def checked_line(site: Site, line: str) -> Node:
    """A visitor's line, parsed; one that is wrong, or asks for what this server does not offer, is a `UsageError`.

    Folders and encoders are offered where the line that the server was started with names them.
    """
    if len(line) > _MAX_LINE:
        raise UsageError("the retriever line is too long", fix=f"the maximum is {_MAX_LINE:,} characters")
    tree = parse(line)
    offered, own = _models_of(site), list(every_stage(parse(site.settings.line)))
    encoders = {*ENCODERS, *(encoder for stage in own for encoder in stage.encoders())}
    folders = {folder for stage in own for folder in stage.folders()}
    for stage in every_stage(tree):
        for encoder in stage.encoders():
            if encoder not in encoders:
                raise UsageError(
                    f"the encoder {encoder} is not available here", fix=f"choose one of: {', '.join(ENCODERS)}"
                )
        for model in stage.models():
            if model and model not in offered:
                raise UsageError(f"the model {model} is not available here", fix=_models_in_words(offered))
        for folder in stage.folders():
            if folder not in folders:
                raise UsageError(
                    f"{folder}, which {stage.name} names, is not available here",
                    fix="remove the folder or file from the line",
                )
    if cost_bound(tree).calls and not offered:
        raise UsageError(
            f"the line {tree} needs a language model, and this server has none",
            fix="remove that stage, or start the server with a model: hoofbeat serve --model",
        )
    return tree


def _models_in_words(offered: Sequence[str]) -> str:
    return f"choose one of: {', '.join(offered)}" if offered else "there is no model here: remove model= from the line"


def begin_search(
    site: Site, shelf: SearchableCorpus, search: CorpusSearch, documents: Callable[[], Sequence[str]] | None = None
) -> str:
    """Begin a search and wait a moment for it; its id. `documents` gives those among which is searched.

    The first search of a corpus makes its index, which takes a while where it is large; later ones find it.
    """
    tree = checked_line(site, search.line)
    if not search.text.strip():
        raise UsageError("there is nothing to search for", fix="enter some text")
    if len(search.text) > _MAX_TEXT:
        raise UsageError("the text is too long to search for", fix=f"shorten it to {_MAX_TEXT:,} characters")
    if not 1 <= search.count <= _MAX_HITS:
        raise UsageError(f"{search.count} results can't be shown", fix=f"the minimum is 1 and the maximum {_MAX_HITS}")
    known = kept_searches(site)
    busy = sum(isinstance(each, CorpusSearch) and each.state == "working" for each in known.all())
    if busy >= _AT_WORK:
        raise UsageError(f"{busy} searches are already running on this server", fix="wait a moment and search again")
    search.line = str(tree)
    name = known.put(search)
    work = threading.Thread(target=_run, args=(site, shelf, search, documents), daemon=True, name="search")
    work.start()
    search.over.wait(_PATIENCE)
    return name


def _run(
    site: Site, shelf: SearchableCorpus, search: CorpusSearch, documents: Callable[[], Sequence[str]] | None
) -> None:
    began = time.monotonic()
    models = _Models(site)
    try:
        _search(shelf, search, models, documents)
        search.state = "done"
    except HoofbeatError as err:
        search.state, search.what, search.fix = "failed", err.what, err.fix or ""
    except Exception as err:  # whatever it is, the page must not wait for ever
        search.state, search.what, search.fix = "failed", f"the search failed ({type(err).__name__})", "try again"
    finally:
        models.close()
        search.seconds = time.monotonic() - began
        search.over.set()


class _Models:
    """The site's models by name, each opened once by the thread that searches, with its own ledger."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._opened: dict[str, Model] = {}

    def __call__(self, spec: str) -> Model:
        offered, load = self._site.settings.models, self._site.load_model
        name = spec or (offered[0] if offered else "")
        if load is None or name not in offered:
            raise UsageError(f"the model {name} is not available here", fix=_models_in_words(offered))
        if name not in self._opened:
            self._opened[name] = load(name)
        return self._opened[name]

    def close(self) -> None:
        for model in self._opened.values():
            model.ledger.close()


def _search(
    shelf: SearchableCorpus, search: CorpusSearch, models: _Models, documents: Callable[[], Sequence[str]] | None
) -> None:
    among = None if documents is None else documents()
    with shelf.searching(search.line, model=models, progress=search) as retriever:
        search.step = "splitting the documents into passages"
        searched = retriever.run([(_QUERY, search.text)], search.count, among)
        query = searched.queries[0]
        found = [(hit, retriever.indexes.passage(hit.passage) if hit.passage else None) for hit in searched.hits[0]]
        search.notes = tuple(dict.fromkeys(retriever.notes))
    search.written = tuple((f"{step.stage}: {step.what}", step.text) for step in query.steps if step.text)
    if query.failure is not None:
        raise UsageError(f"the model call failed: {query.failure.message} ({query.failure.kind})", fix="search again")
    wanted = frozenset(ENGLISH.terms(search.text))
    search.found = tuple(_found(hit, passage, wanted) for hit, passage in found)


def _found(hit: Hit, passage: Passage | None, wanted: frozenset[str]) -> SearchHit:
    return SearchHit(
        document=hit.document,
        rank=hit.rank,
        score=hit.score,
        passage=passage,
        shared=term_marks(passage.text, wanted) if passage else (),
        via=tuple((stage, rank, score) for stage, (rank, score) in hit.via.items()),
    )


def searchable_corpora(site: Site, folders: Sequence[Folder]) -> list[SearchableCorpus]:
    """Some of a site's corpora with their indexes, opened once for all requests."""

    def opened(folder: Folder) -> SearchableCorpus:
        return SearchableCorpus(folder.slug, Corpus(folder.artefact()))

    return [site.library.opened(folder, "ask", opened) for folder in folders]
