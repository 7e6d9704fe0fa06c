"""Similar reports: what a retriever line finds for a case, with the passages that matched and the words they share.

Each corpus has its indexes, made once and used by one search at a time.
"""

from __future__ import annotations

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


class SearchableCorpus:
    """One corpus and the indexes over it, kept in the user's cache."""

    def __init__(
        self, name: str, corpus: Corpus, *, encoder: Callable[[str], Encoder] | None = None, keep: bool = True
    ) -> None:
        self.name = name
        self.corpus = corpus
        self._encoder = encoder
        self._keep = keep
        self._indexes: IndexSet | None = None
        self._lock = threading.Lock()
        self._places: dict[str, int] = {}

    @contextmanager
    def searching(
        self, line: str, *, model: Callable[[str], Model] | None = None, progress: Progress = SILENT
    ) -> Iterator[Retriever]:
        """A retriever over the corpus; whoever else wants one waits, as indexes are made when they are first used."""
        with self._lock:
            if self._indexes is None:
                self._indexes = self._made()
            self._indexes.progress = progress
            try:
                yield Retriever(self._indexes, line, model=model)
            finally:
                self._indexes.progress = SILENT

    def place(self, document: str) -> int:
        """Where a document stands in its corpus, counted from 1."""
        if not self._places:
            self._places = {name: number for number, name in enumerate(self.corpus.ids(), 1)}
        return self._places[document]

    def facets(self) -> list[str]:
        """The facets by which its documents could be told apart as sources."""
        return source_facets(self.corpus)

    def _made(self) -> IndexSet:
        first = next(iter(self.corpus.documents()), None)
        published = first is not None and is_passage(first)
        content = file_sha256(self.corpus.artefact.file(DOCUMENTS))
        return index_documents(self.corpus, content, passages=published, encoder=self._encoder, keep=self._keep)


def source_facets(corpus: Corpus) -> list[str]:
    """Facets with a few values that several documents may share; of a large corpus the first documents are looked at.

    A facet that most documents lack, or whose value is another for every one of many documents, tells no sources apart.
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
    """The `k` best reports, and why some could not be looked for.

    Every corpus is searched by itself and they take turns: scores over two corpora can't be compared. Where the line
    asks no model, a report brings the passages of it that match best; else the one that the line chose.
    """
    found: list[tuple[int, int, SimilarReport]] = []
    failure: Failure | None = None
    for number, shelf in enumerate(shelves):
        with shelf.searching(ask.line, model=model, progress=progress) as retriever:
            searched = retriever.run([(ASKED, ask.text)], ask.k)
            failure = failure or searched.failures.get(ASKED)
            hits = searched.hits[0]
            passages = _passages(retriever, ask, hits)
        for hit in hits:
            document = shelf.corpus.get(hit.document)
            found.append((hit.rank, number, _report(shelf, document, hit, passages[hit.document])))
    found.sort(key=lambda each: each[:2])
    return _numbered([report for _, _, report in found[: ask.k]], ask.text), failure


def _passages(retriever: Retriever, ask: AskRequest, hits: Sequence[Hit]) -> dict[str, list[tuple[Passage, float]]]:
    """The passages of each report that match, best first; they stand in the order of the text afterwards."""
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
    wanted = _telling(ENGLISH, text, every)
    number, numbered = 0, []
    for rank, report in enumerate(reports, 1):
        passages = []
        for each in report.passages:
            number += 1
            found = term_marks(each.passage.text, wanted)
            passages.append(MatchedPassage(number=number, passage=each.passage, score=each.score, marks=found))
        numbered.append(replace(report, rank=rank, passages=tuple(passages)))
    return tuple(numbered)


def _telling(analyzer: Analyzer, text: str, passages: Sequence[str]) -> frozenset[str]:
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
