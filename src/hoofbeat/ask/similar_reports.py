"""Similar reports: what a retriever line finds for a case, with the passages that matched and the words they share.

Each corpus has its indexes, made once and used by one search at a time. Several corpora are searched as one collection:
scores from two indexes can't be compared, because each weighs words by its own documents.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby

from msgspec.structs import replace

from hoofbeat.ask.ask_records import AskRequest, MatchedPassage, SimilarReport
from hoofbeat.corpus import Corpus
from hoofbeat.corpus.corpus import DOCUMENTS
from hoofbeat.corpus.reader import is_passage
from hoofbeat.facets import facet_values
from hoofbeat.models import Encoder, Model
from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import Document, Failure, Hit, Passage
from hoofbeat.retrieval import ENGLISH, Analyzer, IndexSet, Retriever, parse
from hoofbeat.retrieval.index_set import index_documents
from hoofbeat.retrieval.line import cost_bound
from hoofbeat.store.files import file_sha256

_LOOKED_AT = 2000
_FEWEST, _MOST = 2, 60


class _Searchable:
    """Something with indexes, which are made when they are first used; one search at a time."""

    def __init__(self) -> None:
        self._indexes: IndexSet | None = None
        self._lock = threading.Lock()

    @contextmanager
    def searching(
        self, line: str, *, model: Callable[[str], Model] | None = None, progress: Progress = SILENT
    ) -> Iterator[Retriever]:
        """A retriever; whoever else wants one waits."""
        with self._lock:
            if self._indexes is None:
                self._indexes = self._made()
            self._indexes.progress = progress
            try:
                yield Retriever(self._indexes, line, model=model)
            finally:
                self._indexes.progress = SILENT

    def _made(self) -> IndexSet:
        raise NotImplementedError


class SearchableCorpus(_Searchable):
    """One corpus and the indexes over it, kept in the user's cache."""

    def __init__(
        self, name: str, corpus: Corpus, *, encoder: Callable[[str], Encoder] | None = None, keep: bool = True
    ) -> None:
        super().__init__()
        self.name = name
        self.corpus = corpus
        self.encoder = encoder
        self.keep = keep
        self.joined: dict[tuple[int, ...], JoinedCorpora] = {}
        self._places: dict[str, int] = {}

    def place(self, document: str) -> int:
        """The number of a document in its corpus, counted from 1."""
        if not self._places:
            self._places = {name: number for number, name in enumerate(self.corpus.ids(), 1)}
        return self._places[document]

    def facets(self) -> list[str]:
        """The facets by which its documents could be told apart as sources."""
        return source_facets(self.corpus)

    def content(self) -> str:
        """The hash of its documents."""
        return file_sha256(self.corpus.artefact.file(DOCUMENTS))

    def of_passages(self) -> bool:
        """Whether its documents were published as passages."""
        first = next(iter(self.corpus.documents()), None)
        return first is not None and is_passage(first)

    def origin(self, document: str) -> tuple[SearchableCorpus, str]:
        """The corpus of a document that was found, and the document's id in it."""
        return self, document

    def own(self, passage: Passage) -> Passage:
        """A passage that was found, as its corpus has it."""
        return passage

    def _made(self) -> IndexSet:
        return index_documents(
            self.corpus, self.content(), passages=self.of_passages(), encoder=self.encoder, keep=self.keep
        )


class JoinedCorpora(_Searchable):
    """Several corpora searched as one collection, so that their documents are ranked together."""

    def __init__(self, shelves: Sequence[SearchableCorpus]) -> None:
        super().__init__()
        self.shelves = tuple(shelves)

    def __iter__(self) -> Iterator[Document]:
        for number, shelf in enumerate(self.shelves):
            for document in shelf.corpus.documents():
                yield replace(document, id=f"{number}:{document.id}")

    def get(self, name: str) -> Document:
        """A document by its id in this collection."""
        shelf, id = self.origin(name)
        return replace(shelf.corpus.get(id), id=name)

    def origin(self, document: str) -> tuple[SearchableCorpus, str]:
        """The corpus of a document that was found, and the document's id in it."""
        number, _, id = document.partition(":")
        return self.shelves[int(number)], id

    def own(self, passage: Passage) -> Passage:
        """A passage that was found, as its corpus has it."""
        id = self.origin(passage.document)[1]
        return replace(passage, id=passage.id.replace(passage.document, id, 1), document=id)

    def _made(self) -> IndexSet:
        content = hashlib.sha256("\n".join(shelf.content() for shelf in self.shelves).encode()).hexdigest()
        return index_documents(
            self,
            content,
            passages=all(shelf.of_passages() for shelf in self.shelves),
            encoder=self.shelves[0].encoder,
            keep=all(shelf.keep for shelf in self.shelves),
        )


def searched_together(shelves: Sequence[SearchableCorpus]) -> SearchableCorpus | JoinedCorpora:
    """One corpus as it is, several as one collection, which the first of them keeps for the next search."""
    first = shelves[0]
    if len(shelves) == 1:
        return first
    return first.joined.setdefault(tuple(map(id, shelves)), JoinedCorpora(shelves))


def source_facets(corpus: Corpus) -> list[str]:
    """Facets with a few values that several documents may share; Hoofbeat reads the first documents of a large corpus.

    A facet that most documents lack, or that has another value in each of many documents, does not tell sources apart.
    """
    values: dict[str, set[str]] = {}
    having: dict[str, int] = {}
    count = 0
    for document in corpus.documents():
        if count == _LOOKED_AT:
            break
        count += 1
        for name in document.facets:
            values.setdefault(name, set()).update(facet_values(document.facets, name))
            having[name] = having.get(name, 0) + 1
    return sorted(
        name
        for name, found in values.items()
        if _FEWEST <= len(found) <= _MOST and 2 * having[name] > count and (len(found) < count or count <= _MOST // 2)
    )


ASKED = "ask"
"""The id of the one question."""

_PASSAGES = 3
_MANY_TERMS = 40
_SHORT = 3
_COMMON = frozenset(
    ENGLISH.terms(
        "about after all also any been before call called can could did do does done during each ever for from get "
        "give given had has have he her him his how i man may me more most my new next now old only or other our out "
        "over patient patients she should since so some than them then they us very we were what when where which "
        "while who whom why woman would year years you your"
    )
)
_ABOUT = ("journal", "institution", "organ", "year")


def find_reports(
    ask: AskRequest,
    shelves: Sequence[SearchableCorpus],
    *,
    model: Callable[[str], Model] | None = None,
    progress: Progress = SILENT,
) -> tuple[tuple[SimilarReport, ...], Failure | None]:
    """The `k` best reports of all corpora together, and why the search failed.

    Where the line asks no model, a report has the passages that match best; else the one that the line chose.
    """
    together = searched_together(shelves)
    with together.searching(ask.line, model=model, progress=progress) as retriever:
        searched = retriever.run([(ASKED, ask.text)], ask.k)
        hits = searched.hits[0]
        passages = _passages(retriever, ask, hits)
    found = []
    for hit in hits:
        shelf, id = together.origin(hit.document)
        own = [(together.own(passage), score) for passage, score in passages[hit.document]]
        found.append(_report(shelf, shelf.corpus.get(id), hit, own))
    return _numbered(found, ask.text), searched.failures.get(ASKED)


def _passages(retriever: Retriever, ask: AskRequest, hits: Sequence[Hit]) -> dict[str, list[tuple[Passage, float]]]:
    """The matching passages of each report, best first."""
    indexes = retriever.indexes
    best = {hit.document: [(indexes.passage(hit.passage), hit.score)] for hit in hits if hit.passage}
    if not hits or cost_bound(parse(ask.line)).calls:
        return best
    names = [hit.document for hit in hits]
    more = retriever.search_passages([(ASKED, ask.text)], _PASSAGES * len(names), names)[0]
    for hit in more:
        here = best.setdefault(hit.document, [])
        passage = indexes.passage(hit.passage)
        if len(here) < _PASSAGES and not any(_overlap(passage, known) for known, _ in here):
            here.append((passage, hit.score))
    return best


def _overlap(one: Passage, other: Passage) -> bool:
    return one.start < other.end and other.start < one.end


def _report(
    shelf: SearchableCorpus, document: Document, hit: Hit, passages: Sequence[tuple[Passage, float]]
) -> SimilarReport:
    facts = [document.facets[name] for name in _ABOUT if isinstance(document.facets.get(name), str)]
    return SimilarReport(
        corpus=shelf.name,
        document=document.id,
        place=shelf.place(document.id),
        title=document.title or document.id,
        rank=hit.rank,
        score=hit.score,
        via=hit.via,
        kind=document.kind,
        about=" · ".join(map(str, facts)),
        passages=tuple(MatchedPassage(number=0, passage=passage, score=score) for passage, score in passages),
    )


def _numbered(reports: Sequence[SimilarReport], text: str) -> tuple[SimilarReport, ...]:
    """Reports and their passages with the numbers by which they are cited, and the words they share with the case."""
    every = [each.passage.text for report in reports for each in report.passages]
    wanted = telling_terms(text, every)
    number, numbered = 0, []
    for rank, report in enumerate(reports, 1):
        passages = []
        for each in report.passages:
            number += 1
            found = term_marks(each.passage.text, wanted)
            passages.append(MatchedPassage(number=number, passage=each.passage, score=each.score, marks=found))
        numbered.append(replace(report, rank=rank, passages=tuple(passages)))
    return tuple(numbered)


def telling_terms(text: str, passages: Sequence[str], analyzer: Analyzer = ENGLISH) -> frozenset[str]:
    """The terms of a case that are worth marking: no common words, and of a long one none that most passages have."""
    terms = set(analyzer.terms(text)) - _COMMON
    if len(terms) <= _MANY_TERMS:
        return frozenset(terms)
    having = Counter(term for passage in passages for term in set(analyzer.terms(passage)))
    return frozenset(term for term in terms if len(term) > _SHORT and 2 * having[term] <= max(2, len(passages)))


def term_marks(text: str, terms: frozenset[str], analyzer: Analyzer = ENGLISH) -> tuple[tuple[int, int], ...]:
    """Where words of a text stand whose index terms are among these; words side by side are one mark."""
    spans = [match.span() for match in re.finditer(analyzer.pattern, text)]
    known: dict[str, bool] = {}
    shared = []
    for start, end in spans:
        word = text[start:end]
        if word not in known:
            known[word] = not terms.isdisjoint(analyzer.terms(word))
        shared.append(known[word])
    found = []
    for hit, group in groupby(zip(spans, shared, strict=True), key=lambda each: each[1]):
        if hit:
            found += _joined([span for span, _ in group], text)
    return tuple(found)


def _joined(spans: Sequence[tuple[int, int]], text: str) -> list[tuple[int, int]]:
    """Neighbours with nothing but a space or a hyphen between them as one."""
    joined = [spans[0]]
    for start, end in spans[1:]:
        if text[joined[-1][1] : start] in {" ", "-", ""}:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined
