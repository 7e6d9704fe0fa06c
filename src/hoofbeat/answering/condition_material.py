"""What a question is shown with under a condition: found for all questions first, laid out for each when it is asked.

What a retriever line finds is kept as ids, a few words a question; the texts behind them are read when a block of
questions is asked, so that whole documents for many thousand questions never stand in memory together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

from hoofbeat.answering.case_parts import shorten
from hoofbeat.answering.conditions import Condition
from hoofbeat.answering.contamination import source_warnings
from hoofbeat.answering.question_images import check_images, images_of
from hoofbeat.corpus import Corpus
from hoofbeat.errors import InputError
from hoofbeat.models import Image, Model
from hoofbeat.records import Document, Failure, Passage, Question
from hoofbeat.retrieval import IndexSet, Retriever, whole
from hoofbeat.store import Artefact

_KEPT_DOCUMENTS = 256


class DocumentStore:
    """The documents at hand: a corpus, its indexes where something is searched, and where images lie."""

    def __init__(self, corpus: Corpus | None, indexes: IndexSet | None = None, images: Artefact | None = None) -> None:
        self.corpus = corpus
        self._indexes = indexes
        self.images = images
        self._get = lru_cache(maxsize=_KEPT_DOCUMENTS)(self._read)

    @property
    def indexes(self) -> IndexSet:
        """The indexes over the corpus."""
        assert self._indexes is not None, "this condition searches, and nothing is indexed"
        return self._indexes

    @property
    def searches(self) -> bool:
        """Whether there are indexes."""
        return self._indexes is not None

    def document(self, name: str) -> Document | None:
        """A document by its id; None where the corpus has none of that name, or there is no corpus."""
        return self._get(name)

    def _read(self, name: str) -> Document | None:
        return self.corpus.get(name) if self.corpus is not None and name in self.corpus else None


class PromptContext(Struct, frozen=True, kw_only=True):
    """What one question is shown with: its text as asked, passages before they are fitted, images, or why nothing.

    What is doubtful about passages is said of those that are kept (`Showing.doubts`).
    """

    text: str | None = None
    passages: tuple[Passage, ...] = ()
    images: tuple[Image, ...] = ()
    warnings: tuple[str, ...] = ()
    failure: Failure | None = None


class PreparedCondition:
    """One condition made ready for its questions."""

    def __init__(
        self,
        condition: Condition,
        library: DocumentStore,
        *,
        found: Mapping[str, tuple[str, ...]] | None = None,
        failures: Mapping[str, Failure] | None = None,
        retriever: Retriever | None = None,
    ) -> None:
        self.condition = condition
        self.library = library
        self.retriever = retriever
        self._found = found or {}
        self._failures = failures or {}

    def show(self, question: Question) -> PromptContext:
        """What this question is shown with."""
        match self.condition.kind:
            case "first":
                return self._beginning(question)
            case "images":
                return self._pictures(question)
            case "oracle":
                return self._source(question)
            case "retrieved":
                return self._retrieved(question)
            case _:
                return PromptContext()

    def _beginning(self, question: Question) -> PromptContext:
        part = shorten(question, self.condition.percent, by_sentences=self.condition.sentences)
        warnings = () if part.of else ("there is no case beside the question to be shortened",)
        return PromptContext(text=part.text, warnings=warnings)

    def _pictures(self, question: Question) -> PromptContext:
        assert self.library.images is not None, "images are shown, and no benchmark is given"
        images = images_of(self.library.images, question)
        return PromptContext(failure=_no_input(images)) if isinstance(images, str) else PromptContext(images=images)

    def _source(self, question: Question) -> PromptContext:
        missing = [name for name in question.documents if self.library.document(name) is None]
        if missing or not question.documents:
            why = f"the corpus has no document {missing[0]}" if missing else "the question names no source document"
            return PromptContext(failure=_no_input(why))
        return PromptContext(passages=self._whole(question.documents))

    def _retrieved(self, question: Question) -> PromptContext:
        if question.id in self._failures:
            return PromptContext(failure=self._failures[question.id])
        names = self._found.get(question.id, ())
        if self.condition.whole:
            passages = self._whole(names)
        else:
            passages = tuple(self.library.indexes.passage(name) for name in names)
        return PromptContext(passages=passages)

    def doubts(self, question: Question, kept: Sequence[Passage]) -> tuple[str, ...]:
        """What is doubtful about the passages that a question is really shown with, once they are fitted."""
        retrieved = self.condition.kind == "retrieved"
        return source_warnings(question, kept, self.library.document) if retrieved else ()

    def _whole(self, names: Sequence[str]) -> tuple[Passage, ...]:
        documents = [self.library.document(name) for name in names]
        return tuple(passage for document in documents if document is not None for passage in whole(document))


def _no_input(why: str) -> Failure:
    return Failure(kind="input", message=why, attempts=0)


def prepare(
    condition: Condition,
    questions: Sequence[Question],
    library: DocumentStore,
    models: Callable[[str], Model] | None = None,
) -> PreparedCondition:
    """Make a condition ready: search for all questions, or check that what they name is there.

    Where not one question can be shown what the condition asks for, that is an `InputError`.
    """
    match condition.kind:
        case "images":
            assert library.images is not None, "images are shown, and no benchmark is given"
            check_images(library.images, questions)
            if not any(question.images for question in questions):
                raise InputError(
                    "no question of this benchmark has images",
                    where=str(library.images.path),
                    fix="name an edition that has some (--edition image), or ask under another condition",
                )
        case "oracle":
            _check_sources(questions, library)
        case "retrieved":
            return _searched(condition, questions, library, models)
        case "agent":
            retriever = Retriever(library.indexes, condition.line, model=models)
            retriever.search([("", "case report")], 1)  # the indexes are made now, where it can be shown
            return PreparedCondition(condition, library, retriever=retriever)
        case _:
            pass
    return PreparedCondition(condition, library)


def _check_sources(questions: Sequence[Question], library: DocumentStore) -> None:
    assert library.corpus is not None, "sources are shown, and no corpus is given"
    named = [name for question in questions for name in question.documents]
    if not named:
        raise InputError("no question of this benchmark names its source", fix="ask under another condition")
    if not any(name in library.corpus for name in named):
        library.corpus.get(named[0])  # says which documents are like it


def _searched(
    condition: Condition, questions: Sequence[Question], library: DocumentStore, models: Callable[[str], Model] | None
) -> PreparedCondition:
    retriever = Retriever(library.indexes, condition.line, model=models)
    asked = [(question.id, question.full_text) for question in questions]
    searched = retriever.run(asked, condition.top, by_document=condition.whole)
    found = {
        question.id: tuple(hit.document if condition.whole else hit.passage for hit in hits)
        for question, hits in zip(questions, searched.hits, strict=True)
    }
    return PreparedCondition(condition, library, found=found, failures=searched.failures, retriever=retriever)
