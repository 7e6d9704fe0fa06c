"""What the pages of a benchmark ask: which questions have some words, where one was answered, and its sources."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct

from hoofbeat.errors import HoofbeatError, UsageError
from hoofbeat.records import Document, Question, Span
from hoofbeat.reports.marked_document import DocumentView, document_view, evidence_marks
from hoofbeat.review.review_records import LabelState
from hoofbeat.store import Artefact
from hoofbeat.store.folder_library import Folder
from hoofbeat.store.tables import read_jsonl
from hoofbeat.text import cut
from hoofbeat.web.browse.folder_kinds import page_of_folder
from hoofbeat.web.browse.open_folders import FolderListing, artefact_of, corpus_holding, open_table
from hoofbeat.web.site import Site

_CASE = 160
_DONE: tuple[LabelState, ...] = ("done",)
_MAX_LENGTH = 500
_MAX_WORDS = 20
_MAX_SOURCES = 30


def case_of(question: Question) -> str:
    """How the case of a question begins, to tell questions of the same words apart."""
    return cut(question.context[: 4 * _CASE], _CASE) if question.context else ""


class _Words(Struct):
    id: str
    text: str
    context: str = ""
    answer: str = ""
    options: tuple[str, ...] = ()


def questions_with(opened: FolderListing, text: str) -> tuple[int, ...]:
    """The numbers of the questions in which all these words stand, in any case, wherever in a question they are."""
    words = [word.casefold() for word in text.split()]
    if not words:
        raise UsageError("there is nothing to search for", fix="write some words")
    if len(words) > _MAX_WORDS or len(text) > _MAX_LENGTH:
        raise UsageError("this is too much to search for", fix=f"give at most {_MAX_WORDS} words")
    decode = msgspec.json.Decoder(_Words).decode
    found = []
    plain = [word.encode() for word in words if word.isascii() and word.isalnum()]
    for number, line in enumerate(_lines(opened), start=1):
        if plain and line.isascii():  # most lines, and quickly told; other letters may fold into plain ones
            lowered = line.lower()
            if not all(word in lowered for word in plain):
                continue
        row = decode(line)
        whole = "\n".join((row.id, row.text, row.context, row.answer, *row.options)).casefold()
        if all(word in whole for word in words):
            found.append(number)
    return tuple(found)


def _lines(opened: FolderListing) -> Iterator[bytes]:
    with opened.listing.path.open("rb") as stream:
        if not len(opened.listing):
            return
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as table:
            yield from (line for line in iter(table.readline, b"") if not line.isspace())


class AnswerLocation(Struct, frozen=True):
    """A run, folder of judgments or audit in which a question was answered, and its number there."""

    folder: Folder
    number: int

    @property
    def href(self) -> str:
        """Where its answers are."""
        return f"{page_of_folder(self.folder)}/questions/{self.number}"


class _Asked(Struct):
    id: str
    text: str


def answer_locations(site: Site, question: Question) -> list[AnswerLocation]:
    """Where a question was answered; one of the same name with another text is another question."""
    found = []
    for folder in site.library.folders("run", "judgments", "audit"):
        try:
            known = site.library.opened(folder, "numbers of questions", _numbers)
        except HoofbeatError:  # a folder that can't be read is told on its own page
            continue
        place = known.get(question.id)
        if place is not None and place[1] == hash(question.text):
            found.append(AnswerLocation(folder, place[0]))
    return found


def _numbers(folder: Folder) -> dict[str, tuple[int, int]]:
    lines = read_jsonl(folder.artefact().file("questions.jsonl"), _Asked)
    return {each.id: (number, hash(each.text)) for number, each in enumerate(lines, start=1)}


class QuestionSource(Struct, frozen=True, kw_only=True):
    """A document that a question comes from, or why it can't be shown."""

    id: str
    corpus: str = ""
    number: int = 0
    title: str = ""
    view: DocumentView | None = None
    why: str = ""


def sources_of(
    site: Site, artefact: Artefact, documents: Sequence[str], spans: Sequence[Span], wanted: int, part: int | None
) -> list[QuestionSource]:
    """The documents of a question in the order of their evidence; that at place `wanted` (from 0) is laid out."""
    names = list(dict.fromkeys([*(span.document for span in spans), *documents]))[:_MAX_SOURCES]
    if not names:
        return []
    folder = corpus_holding(site, artefact)
    if folder is None:
        made_from = ", ".join(ref.name for ref in artefact.manifest.inputs if ref.kind == "corpus")
        why = (
            f"its corpus ({made_from}) is not among the folders of this server"
            if made_from
            else "its corpus is not known"
        )
        return [QuestionSource(id=name, why=why) for name in names]
    opened = open_table(site, folder, "documents")
    if opened is None:
        return [QuestionSource(id=name, why="its corpus is being read; look again in a moment") for name in names]
    return [
        _source(opened, name, spans, part if place == wanted else None, shown=place == wanted)
        for place, name in enumerate(names)
    ]


def _source(
    opened: FolderListing, name: str, spans: Sequence[Span], part: int | None, *, shown: bool
) -> QuestionSource:
    number = opened.listing.number(name)
    slug = opened.folder.slug
    if number is None:
        return QuestionSource(id=name, corpus=slug, why="the corpus does not hold it")
    title = opened.listing.titles[number - 1]
    if not shown:
        return QuestionSource(id=name, corpus=slug, number=number, title=title)
    document = opened.listing.record(number, Document)
    marks, missing = evidence_marks(document, spans)
    view = document_view(document, marks, part, missing)
    return QuestionSource(id=name, corpus=slug, number=number, title=title, view=view)


class StudySummary(Struct, frozen=True):
    """A study of people's over a benchmark: its title, how many items it has, and how many labels are finished."""

    id: str
    title: str
    items: int
    done: int
    closed: bool


def studies_of(site: Site, folder: Folder) -> list[StudySummary]:
    """The studies on this server's review store that are about a folder."""
    if site.store is None:
        return []
    mine = artefact_of(site, folder).reference().sha256
    return [
        StudySummary(
            study.id,
            study.title,
            len(site.store.items(study.id)),
            len(site.store.labels(study.id, states=_DONE)),
            study.closed,
        )
        for study in site.store.studies()
        if study.source_sha256 == mine
    ]
