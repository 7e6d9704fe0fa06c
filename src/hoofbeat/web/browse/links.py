"""Addresses and links between pages: where each kind of folder is shown, which choices an address holds, and the way
from a question or document to its folder, its sources, its answers, and what was made from it."""

from __future__ import annotations

import mmap
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated
from urllib.parse import quote, urlencode

import msgspec
from fastapi import Path, Query, Request
from msgspec import Struct

from hoofbeat.errors import HoofbeatError, UsageError
from hoofbeat.records import Document, Question, Span
from hoofbeat.reports.marked_document import DocumentView, document_view, evidence_marks
from hoofbeat.review.review_records import LabelState
from hoofbeat.store import Artefact
from hoofbeat.store.folder_library import Folder
from hoofbeat.store.tables import read_jsonl
from hoofbeat.text import cut, one_line
from hoofbeat.web.browse.open_folders import FolderListing, artefact_of, corpus_holding, open_table
from hoofbeat.web.site import Site

_MAX_LINKS = 40
_PATIENCE = 0.5
"""How many seconds a page waits for a folder that it only leads to."""


class Link(Struct, frozen=True):
    """A place on this site; `id` is the name of what it shows, where the words don't say it."""

    words: str
    href: str
    id: str = ""


def question_link(site: Site, question: Question) -> Link | None:
    """The question in a benchmark that is shown here; one of the same name with another text is another question."""
    for folder in site.library.folders("benchmark"):
        opened = _listed(site, folder, "questions")
        number = opened.listing.number(question.id) if opened else None
        if opened and number and opened.listing.record(number, Question).text == question.text:
            return Link(folder.slug, f"/benchmarks/{folder.slug}/questions/{number}")
    return None


def document_links(site: Site, documents: Iterable[str]) -> list[Link]:
    """The documents that are in a corpus shown here, each once, by their titles."""
    wanted = list(dict.fromkeys(documents))[:_MAX_LINKS]
    found = document_places(site, wanted)
    return [found[name] for name in wanted if name in found]


def document_places(site: Site, documents: Iterable[str]) -> dict[str, Link]:
    """Documents that are in a corpus shown here, by their ids: each one's title, and where it can be read."""
    wanted = list(dict.fromkeys(documents))
    found: dict[str, Link] = {}
    for folder in site.library.folders("corpus") if wanted else ():
        opened = _listed(site, folder, "documents")
        for name in wanted if opened else ():
            number = opened.listing.number(name) if opened else None
            if opened and number and name not in found:
                title = opened.listing.titles[number - 1]
                found[name] = Link(title, f"/corpora/{folder.slug}/documents/{number}", name)
    return found


def read_documents(site: Site, documents: Iterable[str]) -> dict[str, Document]:
    """Documents that are in a corpus shown here, by their ids."""
    wanted = set(documents)
    found: dict[str, Document] = {}
    for folder in site.library.folders("corpus") if wanted else ():
        opened = _listed(site, folder, "documents")
        for name in wanted - found.keys() if opened else ():
            number = opened.listing.number(name) if opened else None
            if opened and number:
                found[name] = opened.listing.record(number, Document)
    return found


def _listed(site: Site, folder: Folder, table: str) -> FolderListing | None:
    """A folder's table; None while it is being read, and where it can't be: that is for its own page to say."""
    try:
        return open_table(site, folder, table, patience=_PATIENCE)
    except HoofbeatError:
        return None


def linked_folders(site: Site, folder: Folder, *kinds: str) -> list[Folder]:
    """Folders of these kinds that were made from this one."""
    mine = reference_of(site, folder)
    return [each for each in site.library.folders(*kinds) if mine in inputs_of(site, each)]


def inputs_of(site: Site, folder: Folder) -> frozenset[str]:
    """What a folder was made from, by content."""
    return site.library.opened(folder, "inputs", _inputs)


def reference_of(site: Site, folder: Folder) -> str:
    """How manifests name a folder's content."""
    return site.library.opened(folder, "reference", _reference)


def _reference(folder: Folder) -> str:
    return folder.artefact().reference().sha256


def _inputs(folder: Folder) -> frozenset[str]:
    return frozenset(ref.sha256 for ref in folder.artefact().manifest.inputs)


_MAX_BACKLINKS = 20
_LINKED = 90


class Backlink(Struct, frozen=True):
    """A folder in which a document is met, and the places; `more` are not named."""

    folder: Folder
    links: tuple[Link, ...]
    more: int = 0


class _AskedDocuments(Struct):
    id: str
    text: str = ""
    documents: tuple[str, ...] = ()


class _Source(Struct):
    id: str
    documents: dict[str, str] = {}


def backlinks_to(site: Site, corpus: Folder, document: str) -> list[Backlink]:
    """The questions and audits made from a corpus in which a document plays a part."""
    found = []
    for folder in linked_folders(site, corpus, "benchmark", "audit"):
        load = _questions if folder.kind == "benchmark" else _sources
        try:
            known = site.library.opened(folder, "places of documents", load)
        except HoofbeatError:  # a folder that can't be read is told on its own page
            continue
        links = known.get(document, ())
        if links:
            found.append(Backlink(folder, tuple(links[:_MAX_BACKLINKS]), max(0, len(links) - _MAX_BACKLINKS)))
    return found


def _questions(folder: Folder) -> dict[str, list[Link]]:
    found: dict[str, list[Link]] = {}
    for number, each in enumerate(read_jsonl(folder.artefact().file("questions.jsonl"), _AskedDocuments), start=1):
        for name in dict.fromkeys(each.documents):
            found.setdefault(name, []).append(
                Link(
                    cut(one_line(each.text), _LINKED) or each.id,
                    f"/benchmarks/{folder.slug}/questions/{number}",
                    each.id,
                )
            )
    return found


def _sources(folder: Folder) -> dict[str, list[Link]]:
    """The sources of an audit, by their documents."""
    rows = read_jsonl(folder.artefact().file("sources.jsonl"), _Source)
    return {
        document: [Link("Its pairs with other sources", f"/audits/{folder.slug}/pairs?a={number}")]
        for number, each in enumerate(rows, start=1)
        for document in each.documents or [each.id]
    }


class FolderKind(Struct, frozen=True):
    """A kind of folder: what one is called, what is in it, what its items are, and where its own pages are."""

    name: str
    about: str
    unit: str = "item"
    pages: str = ""


KINDS: dict[str, FolderKind] = {
    "corpus": FolderKind("Corpus", "Documents to search and read.", "document", "/corpora/"),
    "benchmark": FolderKind("Benchmark", "Questions with their sources.", "question", "/benchmarks/"),
    "judgments": FolderKind("Judged answers", "Leaderboards, and each answer with its judgment.", "judgment", "/runs/"),
    "run": FolderKind("Answers", "Answers of models.", "answer", "/runs/"),
    "audit": FolderKind("Audit", "Where sources agree, disagree or are silent.", "pair", "/audits/"),
    "report": FolderKind("Report", "Reports to share.", "folder", "/reports/"),
    "rankings": FolderKind(
        "Ranking", "What a retriever found for each question, with scores.", "question", "/rankings/"
    ),
    "comparison": FolderKind("Comparison", "Rankings or answers to the same questions, compared."),
    "check": FolderKind("Check of a benchmark", "Doubtful questions, and why.", "question"),
    "leakage": FolderKind("Leakage check", "Signs that a model has seen the benchmark.", "question"),
    "stats": FolderKind("Figures of a corpus", "Documents by specialty, year, venue and length.", "document"),
    "set-stats": FolderKind(
        "Figures of test collections", "Questions, documents, positives and lengths of sets, and their overlap.", "set"
    ),
    "protocol": FolderKind("A paper's protocol", "The method of a paper, and where this run differs.", "difference"),
    "labels": FolderKind("Specialties of documents", "A specialty for each document of a corpus.", "document"),
    "evidence": FolderKind("Evidence by source", "Passages of each source for each question.", "search"),
    "themes": FolderKind("Themes of an audit", "What sources disagree about, grouped."),
    "trial": FolderKind("Trial of a judge", "Pairs with a known label, to test the judge before an audit.", "pair"),
    "validation": FolderKind("Check of an audit's judge", "How well the judge agrees with people.", "pair"),
    "ablation": FolderKind(
        "Two ways of judging compared", "Pairs judged in one structured call, and with the label only.", "pair"
    ),
    "packets": FolderKind(
        "Packets for annotators",
        "Pairs of an audit for people to label, with known names replaced.",
        "pair",
    ),
    "audit-comparison": FolderKind("Two audits compared", "The same questions before and after a change.", "pair"),
    "gate": FolderKind("Audit gate", "Whether the changes between two audits are acceptable.", "condition"),
    "audit-export": FolderKind("Audit export", "Matrices and records of an audit, as files.", "pair"),
    "export": FolderKind("Export", "Files in formats of other tools."),
    "index": FolderKind("Search index", "Search indexes of a corpus."),
}
"""Every kind of folder that Hoofbeat makes."""

MAIN = tuple(name for name, kind in KINDS.items() if kind.pages)
"""The kinds with pages of their own, in the order of the flow."""


def kind_words(kind: str) -> FolderKind:
    """A kind in words; one that is not known goes by its name."""
    return KINDS.get(kind, FolderKind(kind.capitalize() or "Folder", "A folder of an unknown kind."))


def page_of_folder(folder: Folder) -> str:
    """Where a folder is shown."""
    return f"{kind_words(folder.kind).pages or '/folders/'}{folder.slug}"


def about_folder(folder: Folder) -> str:
    """Where it is told how a folder was made."""
    return f"/folders/{folder.slug}"


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


class _AnswerWords(Struct):
    question: str
    text: str = ""


def questions_with(path: pathlib.Path, text: str) -> tuple[int, ...]:
    """The numbers of the questions of a table that have all these words, in any case, anywhere in the question."""
    words = _searched(text)
    decode = msgspec.json.Decoder(_Words).decode
    found = []
    for number, line in _lines_with(path, words):
        row = decode(line)
        if _all_in(words, row.id, row.text, row.context, row.answer, *row.options):
            found.append(number)
    return tuple(found)


def answered_with(path: pathlib.Path, text: str) -> set[str]:
    """The questions that have an answer with all these words."""
    words = _searched(text)
    decode = msgspec.json.Decoder(_AnswerWords).decode
    rows = (decode(line) for _, line in _lines_with(path, words))
    return {row.question for row in rows if _all_in(words, row.text)}


def _searched(text: str) -> list[str]:
    words = [word.casefold() for word in text.split()]
    if not words:
        raise UsageError("there is nothing to search for", fix="enter some words")
    if len(words) > _MAX_WORDS or len(text) > _MAX_LENGTH:
        raise UsageError("the search text is too long", fix=f"the maximum is {_MAX_WORDS} words")
    return words


def _all_in(words: Sequence[str], *texts: str) -> bool:
    whole = "\n".join(texts).casefold()
    return all(word in whole for word in words)


def _lines_with(path: pathlib.Path, words: Sequence[str]) -> Iterator[tuple[int, bytes]]:
    """The lines of a table that may have these words, with their numbers: those with letters beyond ASCII all may."""
    plain = [word.encode() for word in words if word.isascii() and word.isalnum()]
    for number, line in enumerate(_lines(path), start=1):
        lowered = line.lower() if plain and line.isascii() else None
        if lowered is None or all(word in lowered for word in plain):
            yield number, line


def _lines(path: pathlib.Path) -> Iterator[bytes]:
    if not path.stat().st_size:
        return
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as table:
        yield from (line for line in iter(table.readline, b"") if not line.isspace())


class AnswerLocation(Struct, frozen=True):
    """A run, folder of judgments or audit in which a question was answered, and its number there."""

    folder: Folder
    number: int

    @property
    def href(self) -> str:
        """Where its answers are."""
        return f"{page_of_folder(self.folder)}/questions/{self.number}"


class _AskedText(Struct):
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
    lines = read_jsonl(folder.artefact().file("questions.jsonl"), _AskedText)
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
        why = f"its corpus ({made_from}) is not on this server" if made_from else "its corpus is not known"
        return [QuestionSource(id=name, why=why) for name in names]
    opened = open_table(site, folder, "documents")
    if opened is None:
        return [QuestionSource(id=name, why="its corpus is not ready yet; reload the page soon") for name in names]
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
        return QuestionSource(id=name, corpus=slug, why="it is not in the corpus")
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


FACET = "facet."
"""How the name of a facet begins in an address."""

PAGE = "page"
_LAST = 1_000_000
Choices = dict[str, str]
"""What was chosen, by its name in the address; nothing is chosen that is not there."""

Picker = tuple[str, str, tuple[tuple[str, str], ...], str]
"""A choice to offer: its name in the address, its label, its values (value, words), and the value chosen."""

Slug = Annotated[str, Path(description="The name of the folder in its address.", max_length=80)]
PageNumber = Annotated[int, Query(ge=1, le=1_000_000, description="Page number, from 1; past the end: the last page.")]
PageSize = Annotated[int, Query(ge=1, le=200, description="Rows per page.")]


def choices_of(request: Request, names: Iterable[str]) -> Choices:
    """The choices in a request's address, of those that the page knows."""
    return {name: value for name in names if (value := request.query_params.get(name, "").strip())}


def facets_chosen(choices: Choices) -> tuple[tuple[str, str], ...]:
    """The facets among the choices, by their own names, with their values."""
    return tuple((name.removeprefix(FACET), value) for name, value in choices.items() if name.startswith(FACET))


def pickers_of(choices: Choices, offered: Iterable[tuple[str, str, Sequence[tuple[str, str]]]]) -> list[Picker]:
    """Choices (name, label, values) to offer: those with more than one value, and those that are made."""
    return [
        (name, words, tuple(values), choices.get(name, ""))
        for name, words, values in offered
        if len(values) > 1 or choices.get(name)
    ]


def facet_key(name: str) -> str:
    """The name of a facet in an address."""
    return f"{FACET}{one_line(name)}"


def page_number(request: Request) -> int:
    """The page that is asked for; the first where that is no number."""
    words = request.query_params.get(PAGE, "1")
    return min(_LAST, int(words)) if words.isascii() and words.isdigit() and len(words) < 10 else 1


def address(path: str, choices: Mapping[str, str] | None = None, **more: object) -> str:
    """A path of this site with choices behind it; what is empty is left out."""
    wanted = {**(choices or {}), **{name: str(value) for name, value in more.items()}}
    query = urlencode({name: value for name, value in wanted.items() if value}, quote_via=quote)
    return f"{path}?{query}" if query else path
