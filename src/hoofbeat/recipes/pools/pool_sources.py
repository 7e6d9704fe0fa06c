"""Collecting: what a retrieval benchmark starts from. Questions of a file, the documents they cite, what is searched.

A file of posts or exam questions (JSON lines, CSV, TSV) has a row an item: `id`; `text` (or `question`, or `title` and
`body`); `answer`; and where there are some `options`, `documents` (ids or addresses of the corpus's documents), `votes`
and `accepted`. A row that can't be used becomes a candidate too, and is turned away with its reason, file and line.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase

from hoofbeat.benchmarks.benchmark import CollectionPassage, passage_as_document
from hoofbeat.corpus import Corpus
from hoofbeat.corpus.parsers.rows import Row, read_rows
from hoofbeat.corpus.reader import Refusal
from hoofbeat.corpus.roles import assign_roles, find_case
from hoofbeat.errors import InputError, UsageError
from hoofbeat.facets import facet_values
from hoofbeat.recipes.context import RecipeContext
from hoofbeat.recipes.guards.diagnosis_names import begins_with_genus
from hoofbeat.recipes.recipe_items import ItemRejection, Outcome, RecipeItem
from hoofbeat.recipes.steps import RecipeStep, check
from hoofbeat.records import Document
from hoofbeat.retrieval.index.chunking import Chunking, Spans, cut

"""The letters that options go by."""
_LABELLED = re.compile(r"^\(?([A-Za-z])[).:][\s\u200b]*(?=\S)")
_SEPARATED = re.compile(r"\s*[|;\n]\s*")
_ADDRESS = re.compile(r"^(?:[a-z][a-z0-9+.-]*:)?//(?:www\.)?", re.IGNORECASE)
_CITED_BY = ("url", "source_url", "link", "doi", "pmid", "pmcid", "source_id")
_DOI = re.compile(r"^(?:(?:dx\.)?doi\.org/|doi:\s*)(10\.\S+)$")
_ESCAPED = re.compile(r"%([2-7][0-9a-f])")
_PMC = re.compile(
    r"^(?:(?:ncbi\.nlm\.nih\.gov/pmc|pmc\.ncbi\.nlm\.nih\.gov|europepmc\.org)/(?:articles?/)?(?:pmc/)?|pmcid:?\s*)"
    r"(pmc\d+)\b"
)
_PUBMED = re.compile(
    r"^(?:(?:pubmed\.ncbi\.nlm\.nih\.gov|ncbi\.nlm\.nih\.gov/pubmed|europepmc\.org/(?:article|abstract)/med)/"
    r"|(?:pmid|pubmed)[:\s]*)(\d+)\b"
)
_PUBMED_NUMBER = re.compile(r"\d{7,8}")
_NO = frozenset({"no", "false", "0"})


# Rows


def asked_items(path: str, what: str) -> Iterator[RecipeItem]:
    """The rows of a file as candidates, in its order; a row without an id is named by its number."""
    if not path:
        raise UsageError(f"this task needs a file of {what}", fix=f"name one: --{what} FILE")
    first: dict[str, int] = {}
    for number, row in read_rows(Path(path)):
        item = _candidate(row, number, f"{Path(path).name}, line {number}")
        if item.id in first:
            why = f"{Path(path).name}, line {number}: the id {item.id} is that of line {first[item.id]}"
            item = _unusable(_free_id(f"{item.id} (row {number})", first), why)
        first[item.id] = number
        yield item


def _candidate(row: Row | Refusal, number: int, where: str) -> RecipeItem:
    if isinstance(row, Refusal):
        return _unusable(f"row-{number}", f"{where}: {row.reason}")
    try:
        return _asked(row, number)
    except InputError as err:
        return _unusable(_text(row.get("id")) or f"row-{number}", f"{where}: {err}")


def _unusable(id: str, why: str) -> RecipeItem:
    return RecipeItem(id=id, values={"problem": why})


def _free_id(id: str, taken: Collection[str]) -> str:
    while id in taken:
        id += "'"
    return id


def _asked(row: Row, number: int) -> RecipeItem:
    text = _text(row.get("text") or row.get("question"))
    if not text:
        text = "\n\n".join(part for part in (_text(row.get("title")), _text(row.get("body"))) if part)
    options = _options(row.get("options"))
    values: dict[str, object] = {"query": text, "answer": _answer(_text(row.get("answer")), options)}
    if options:
        values["options"] = list(options.values())
    for name in ("documents", "votes", "accepted"):
        if row.get(name) not in (None, ""):
            values[name] = _listed(row[name]) if name == "documents" else _text(row[name])
    return RecipeItem(id=_text(row.get("id")) or f"row-{number}", values=values)


def _text(value: object) -> str:
    return str(value).replace("\r\n", "\n").strip() if isinstance(value, str | int | float | bool) else ""


def _options(value: object) -> dict[str, str]:
    """Options by letter: from an object, a list, or one text parted by `|`; a letter before an option is removed."""
    if isinstance(value, Mapping):
        found = [(str(letter).strip().upper(), _text(text)) for letter, text in value.items()]
    else:
        listed = value if isinstance(value, Sequence) and not isinstance(value, str) else _text(value).split("|")
        if len(listed) > len(ascii_uppercase):
            raise InputError(f"{len(listed)} options are more than there are letters", fix="leave some out")
        found = list(zip(ascii_uppercase, map(_text, listed), strict=False))
    options = {letter: _unlabelled(text, letter) for letter, text in found if text}
    if len(options) > len(ascii_uppercase):
        raise InputError(f"{len(options)} options are more than there are letters", fix="leave some out")
    return options


def _unlabelled(text: str, letter: str = "") -> str:
    """An option without the letter it goes by, where it has that before it: `D. Aspirin`, but not `C. difficile`."""
    label = None if begins_with_genus(text) else _LABELLED.match(text)
    return text[label.end() :] if label and label[1].upper() == letter else text


def _answer(given: str, options: Mapping[str, str]) -> str:
    """The answer in words: a letter means its option, and a text the option it is."""
    if not options:
        return given
    wordings = {given.casefold(), *(_unlabelled(given, letter).casefold() for letter in options)}
    same = next((text for text in options.values() if text.casefold() in wordings), "")
    chosen = same or options.get(given.rstrip(").:").upper(), "")
    if not chosen:
        raise InputError("no option is the right one", fix="let the answer be an option or its letter")
    return chosen


def _listed(value: object) -> list[str]:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [text for each in value if (text := _text(each))]
    return [part for part in _SEPARATED.split(_text(value)) if part]


def readable(name: str, *, min_votes: int = 0) -> RecipeStep:
    """Rows that hold a question and its answer, accepted and voted for where the file says so."""

    def judge(item: RecipeItem, _context: RecipeContext) -> Outcome:
        if "problem" in item.values:
            return ItemRejection(reason="the row can't be used", details=str(item["problem"]))
        for part, what in (("query", "question"), ("answer", "answer")):
            if not any(map(str.isalnum, str(item[part]))):
                return ItemRejection(reason=f"there is no {what}")
        if str(item.get("accepted", "")).lower() in _NO:
            return ItemRejection(reason="the answer is not the accepted one")
        return _voted(item, min_votes)

    return check(name, judge)


def _voted(item: RecipeItem, minimum: int) -> Outcome:
    votes = str(item.get("votes", ""))
    try:
        few = bool(votes) and float(votes) < minimum
    except ValueError:
        return ItemRejection(reason="the row can't be used", details=f"votes are not a number: {votes[:40]}")
    return ItemRejection(reason="the answer has too few votes", details=votes) if few else item


# Citations


def address_key(text: str) -> str:
    """An address or a name as it is compared: without scheme, `www.`, fragment and final slash, in lower case.

    The addresses under which a DOI, a PubMed or a PMC number is found are that number: `10.1/x`, `pmid:1`, `pmc1`.
    """
    plain = _ADDRESS.sub("", text.strip()).partition("#")[0].rstrip("/").lower()
    if found := _DOI.match(plain):
        return _ESCAPED.sub(lambda code: chr(int(code[1], 16)), found[1].partition("?")[0]).rstrip(".")
    if found := _PMC.match(plain):
        return found[1]
    return f"pmid:{found[1]}" if (found := _PUBMED.match(plain)) else plain


def _keys(document: Document) -> Iterator[str]:
    """Everything a document may be cited by. An id of seven or eight digits is taken for a PubMed number too."""
    for name in _CITED_BY:
        for value in facet_values(document.facets, name):
            yield address_key(value)
            bare = value.strip().lower()
            if name == "pmid" and bare.isdecimal():
                yield f"pmid:{bare}"
            elif name == "pmcid" and bare.isdecimal():
                yield f"pmc{bare}"
    yield address_key(document.id)
    if _PUBMED_NUMBER.fullmatch(document.id):
        yield f"pmid:{document.id}"


def cited(name: str, shelf: PieceCollection, *, maximum: int = 0, required: bool = True) -> RecipeStep:
    """What rows cite, as documents of the corpus: the first `maximum` pages (0: all), their pieces as `known`."""

    def judge(item: RecipeItem, context: RecipeContext) -> Outcome:
        named = [str(each) for each in item.get("documents", [])]
        pages = [found for each in dict.fromkeys(map(address_key, named)) if (found := shelf.resolve(each, context))]
        if required and not pages:
            why = "the corpus holds none of the pages it cites" if named else "it cites no page"
            return ItemRejection(reason=why, details="; ".join(named)[:200])
        taken = list(dict.fromkeys(id for page in (pages[:maximum] if maximum else pages) for id in page))
        known = [piece.id for id in taken for piece in shelf.pieces_of(id, context)]
        return item.put(known=known, cited=taken)

    return check(name, judge)


# What is searched


class PieceCollection:
    """The pieces of a corpus that are searched: passages cut from its documents, or the cases its reports tell.

    Made once for a run. `cases` puts every report there as one piece, the case presentation without the discussion.
    """

    def __init__(self, *, chunking: str = "sentences:128", cases: bool = False) -> None:
        self.cases = cases
        self._chunking = Chunking.parse(chunking)
        self._context: RecipeContext | None = None
        self._pieces: dict[str, CollectionPassage] = {}
        self._by_document: dict[str, list[CollectionPassage]] = {}
        self._names: dict[str, list[str]] = {}
        self._withdrawn: set[str] = set()
        self._diagnoses: dict[str, str] = {}

    def pieces(self, context: RecipeContext) -> Sequence[CollectionPassage]:
        """Every piece that is searched, in the corpus's order."""
        self._filled(context)
        return [piece for piece in self._pieces.values() if piece.document not in self._withdrawn]

    def withdraw(self, documents: Collection[str], context: RecipeContext) -> None:
        """Take documents off the shelf: they are searched by nobody from now on."""
        self._filled(context)
        self._withdrawn |= set(documents)

    def note_diagnoses(self, diagnoses: Mapping[str, str], context: RecipeContext) -> None:
        """Say which diagnosis a reader took from each of these documents."""
        self._filled(context)
        self._diagnoses |= diagnoses

    def pieces_of(self, document: str, context: RecipeContext) -> Sequence[CollectionPassage]:
        """The pieces of one document."""
        self._filled(context)
        return self._by_document.get(document, [])

    def piece(self, id: str, context: RecipeContext) -> CollectionPassage:
        """The piece of this id."""
        self._filled(context)
        return self._pieces[id]

    def text(self, id: str, context: RecipeContext) -> str:
        """A piece as a model reads it: its heading, then its text."""
        piece = self.piece(id, context)
        text = context.document(piece.document).text[piece.start : piece.end]
        return f"{piece.heading}\n{text}" if piece.heading else text

    def case_text(self, id: str, context: RecipeContext) -> str:
        """A piece with the diagnosis that a reader took from its report: the case itself may never name it."""
        diagnosis = self._diagnoses.get(self.piece(id, context).document, "")
        told = f"Diagnosis that its report comes to: {diagnosis}\n" if diagnosis else ""
        return told + self.text(id, context)

    def documents(self, context: RecipeContext) -> list[Document]:
        """Every piece as a separate document, for an index."""
        return [passage_as_document(piece, context.document(piece.document)) for piece in self.pieces(context)]

    def resolve(self, name: str, context: RecipeContext) -> list[str]:
        """The documents that an id or an address names (a page may be several); none where the corpus has none."""
        self._filled(context)
        return self._names.get(address_key(name), [])

    def _filled(self, context: RecipeContext) -> None:
        if self._context is context:
            return
        self._context = context
        self._pieces, self._by_document, self._names, self._withdrawn = {}, {}, {}, set()
        self._diagnoses = {}
        spans = context.encoder().token_spans if self._chunking.needs_tokens and not self.cases else None
        corpus: Corpus = context.corpus
        for document in corpus.documents():
            made = [_case_piece(document)] if self.cases else _passages(document, self._chunking, spans)
            self._by_document[document.id] = made
            self._pieces |= {piece.id: piece for piece in made}
            for key in dict.fromkeys(_keys(document)):
                self._names.setdefault(key, []).append(document.id)


def _passages(document: Document, chunking: Chunking, spans: Spans | None) -> list[CollectionPassage]:
    passages = cut(document, chunking, spans)
    return [
        CollectionPassage(
            id=f"{document.id}.p{number}", document=document.id, start=each.start, end=each.end, heading=each.heading
        )
        for number, each in enumerate(passages, start=1)
        if any(map(str.isalnum, each.text))
    ]


def _case_piece(document: Document) -> CollectionPassage:
    start, end = _case(document) or (0, len(document.text))
    return CollectionPassage(id=document.id, document=document.id, start=start, end=end, heading=document.title)


def _case(document: Document) -> tuple[int, int] | None:
    known = document if any(section.role for section in document.sections) else assign_roles(document)
    return find_case(known)
