"""What a question is shown with under a condition: found for all questions first, laid out for each when it is asked.

What a retriever line finds is kept as ids, a few words a question; the texts behind them are read when a block of
questions is asked, so that whole documents for many thousand questions never stand in memory together.

The first part of a case shows how much of it a model needs. The case is the question's context; without one, its text
less the question itself, which always stays: the last sentence that asks, or else the last. Tokens are counted here,
not by a model's tokenizer: a word, a number, a mark or an ideograph is one token, so every model is shown the same
characters.

A question made from a report is not a test where the report itself is available under another name: a copy with nearly
the same title, or an article that quotes the report by its title. Both are noted beside the answer, never removed.

Images are read from the benchmark's folder, and only files that its manifest lists.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from msgspec import Struct
from rapidfuzz import fuzz

from hoofbeat.answering.conditions import Condition
from hoofbeat.corpus import Corpus
from hoofbeat.errors import HostileInputError, InputError
from hoofbeat.models import Image, Model
from hoofbeat.records import Answer, Document, Failure, Passage, Question
from hoofbeat.retrieval import IndexSet, Retriever, whole
from hoofbeat.retrieval.index.chunking import sentence_spans
from hoofbeat.store import Artefact
from hoofbeat.store.files import leads_outside, read_bytes
from hoofbeat.text import for_title_matching

TOKENS = "a word, a number, a mark, or an ideograph is a token"
"""How tokens are counted, as a manifest records it."""

_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_TOKEN = re.compile(rf"[{_IDEOGRAPHS}]|\d+(?:[.,]\d+)+|[^\W{_IDEOGRAPHS}]+|[^\w\s]")
_CLOSING = "\"'”’)]」』"
Spans = list[tuple[int, int]]


class ShortenedCase(NamedTuple):
    """What is left of a question: its text as asked, and how many units of how many of its case were kept."""

    text: str
    kept: int
    of: int


def shorten(question: Question, percent: int, *, by_sentences: bool = False) -> ShortenedCase:
    """The question with the first `percent` of its case: at least one token or sentence."""
    if question.context:
        kept, count, of = _cut(question.context, percent, (0, 0), by_sentences=by_sentences)
        return ShortenedCase(f"{kept}\n\n{question.text}", count, of)
    asking = _asking(question.text)
    kept, count, of = _cut(question.text, percent, asking, by_sentences=by_sentences)
    if len(kept) >= asking[1]:
        return ShortenedCase(kept, count, of)
    return ShortenedCase(f"{kept} {question.text[slice(*asking)]}".strip(), count, of)


def _asking(text: str) -> tuple[int, int]:
    """Where the sentence that asks stands."""
    spans = sentence_spans(text)
    asking = [span for span in spans if text[slice(*span)].rstrip(_CLOSING).endswith(("?", "？"))]
    return (asking or spans or [(0, len(text))])[-1]


def _cut(text: str, percent: int, without: tuple[int, int], *, by_sentences: bool) -> tuple[str, int, int]:
    """The beginning of a text that holds a share of its units, in percent. Units inside `without` do not count."""
    found = sentence_spans(text) if by_sentences else [match.span() for match in _TOKEN.finditer(text)]
    units: Spans = [span for span in found if not without[0] <= span[0] < without[1]]
    if not units:
        return "", 0, 0
    count = max(1, len(units) * percent // 100)
    end = len(text) if count == len(units) and units[-1][1] > without[1] else units[count - 1][1]
    return text[:end], count, len(units)


_SAME = 90.0
_MIN_WORDS = 4
_OWN = "read its own source report"
_TITLE = "its source's title"
DocumentLookup = Callable[[str], Document | None]


def source_warnings(
    question: Question, read: Iterable[Passage], lookup: DocumentLookup, *, own: bool = False
) -> tuple[str, ...]:
    """What is doubtful about the passages that were read: the source's title elsewhere; with `own`, the source, too.

    `lookup` brings a document by its id. A title of fewer than four words says too little to be looked for.
    """
    documents = dict.fromkeys(passage.document for passage in read)
    warnings = [f"{_OWN}: {name}" for name in documents if own and name in question.documents]
    sources = [found for name in question.documents if (found := lookup(name)) is not None]
    titles = [title for source in sources if len((title := for_title_matching(source.title)).split()) >= _MIN_WORDS]
    if not titles:
        return tuple(warnings)
    for name in documents:
        document = lookup(name) if name not in question.documents else None
        if document is None:
            continue
        if any(same_title(title, document.title) for title in titles):
            warnings.append(f"read {name}, which has {_TITLE}")
        elif _quotes(document, titles):
            warnings.append(f"read {name}, which quotes {_TITLE}")
    return tuple(warnings)


def read_source(answer: Answer) -> bool:
    """Whether an answer's warnings say that its own source was read."""
    return any(warning.startswith(_OWN) for warning in answer.warnings)


def read_title(answer: Answer) -> bool:
    """Whether an answer's warnings say that another document with its source's title was read."""
    return any(warning.endswith(_TITLE) for warning in answer.warnings)


def same_title(one: str, other: str) -> bool:
    """Whether two titles are the same but for case, punctuation and a letter here and there."""
    a, b = for_title_matching(one), for_title_matching(other)
    return bool(a and b) and fuzz.ratio(a, b) >= _SAME


def _quotes(document: Document, titles: Sequence[str]) -> bool:
    text = f" {for_title_matching(document.title)} {for_title_matching(document.text)} "
    return any(f" {title} " in text for title in titles)


MAX_IMAGE = 20_000_000
"""In bytes; what is larger no endpoint takes."""


def check_images(artefact: Artefact, questions: Sequence[Question]) -> None:
    """Refuse a benchmark that names images outside its folder, or images it does not hold."""
    for name in dict.fromkeys(name for question in questions for name in question.images):
        if not name.isprintable() or leads_outside(artefact.path, name):
            raise HostileInputError(
                f"the benchmark names an image outside its folder: {name[:200]!r}",
                where=str(artefact.path),
                fix="don't use this folder, or correct its questions",
            )
        if not artefact.has(name):
            raise InputError(
                f"a question names the image {name[:200]!r}, which is not in the benchmark",
                where=str(artefact.path),
                fix="make the benchmark again from a corpus with images",
            )


def images_of(artefact: Artefact, question: Question) -> tuple[Image, ...] | str:
    """A question's images, or why they can't be shown; `check_images` comes first."""
    found = []
    for name in question.images:
        path = artefact.file(name)
        if path.stat().st_size > MAX_IMAGE:
            return f"the image {name} is larger than {MAX_IMAGE // 1_000_000} MB"
        content = read_bytes(path)
        kind = _media_type(content)
        if not kind:
            return f"the image {name} is not a PNG, JPEG, GIF or WebP file"
        found.append(Image.of(content, kind))
    return tuple(found) or "the question has no images"


def _media_type(content: bytes) -> str:
    """The media type by a file's first bytes: its name is a stranger's word."""
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if content.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if content[:6] in (b"GIF87a", b"GIF89a"):
        return "image/gif"
    return "image/webp" if content[:4] == b"RIFF" and content[8:12] == b"WEBP" else ""


_KEPT_DOCUMENTS = 256
_NOT_SHOWN = "(The case and the question are not shown.)"
_NO_CASE = "the question has no separate case"


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
        assert self._indexes is not None, "this condition needs an index to search"
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
            case "options":
                return PromptContext(text=_NOT_SHOWN)
            case "question":
                return PromptContext(text=question.text, warnings=() if question.context else (_NO_CASE,))
            case "oracle":
                return self._source(question)
            case "retrieved":
                return self._retrieved(question)
            case _:
                return PromptContext()

    def _beginning(self, question: Question) -> PromptContext:
        part = shorten(question, self.condition.percent, by_sentences=self.condition.sentences)
        warnings = () if part.of else ("the question has no case to shorten",)
        return PromptContext(text=part.text, warnings=warnings)

    def _pictures(self, question: Question) -> PromptContext:
        assert self.library.images is not None, "this condition shows images and needs the benchmark's folder"
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
            assert library.images is not None, "this condition shows images and needs the benchmark's folder"
            check_images(library.images, questions)
            if not any(question.images for question in questions):
                raise InputError(
                    "no question of this benchmark has images",
                    where=str(library.images.path),
                    fix="choose an edition with images (--edition image), or another condition",
                )
        case "question":
            if not any(question.context for question in questions):
                raise InputError(
                    "no question of this benchmark has a separate case that could be left out",
                    fix="choose another condition: closed, options",
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
    assert library.corpus is not None, "this condition shows the source and needs a corpus"
    named = [name for question in questions for name in question.documents]
    if not named:
        raise InputError("no question of this benchmark names its source", fix="choose another condition")
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
