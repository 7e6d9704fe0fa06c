"""Tables of documents: one row, one document, fields given their meaning by a mapping.

A mapping is one line of text: `id=pmcid,text=text,title=title,facets.institution=developer,sections=sections`. On the
left stands what the document gets (`id`, `title`, `text`, `sections`, `kind`, `licence`, `notice`, `facets.NAME`), on
the right the row's field (`a.b` reaches into an object, `a+b` joins two). Without a mapping the well-known field names
are looked for, and every other short field becomes a facet under its own name.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct, field

from hoofbeat.corpus.parsers.prose import TextBuilder, lay_out, lay_out_prose
from hoofbeat.corpus.parsers.rows import ROW_SUFFIXES, Row, first_row, read_rows, table_suffix
from hoofbeat.corpus.reader import DocumentEntry, Reader, Refusal, SourceFile, member_of, refusal
from hoofbeat.corpus.roles import assign_roles, role_of
from hoofbeat.errors import InputError, UsageError
from hoofbeat.records import Document, Facets
from hoofbeat.text import safe_id, squeeze

MAX_FACET = 5_000
MAX_GUESS = 300
MIN_REPORT = 2_000

_PARTS = ("id", "title", "text", "sections", "kind", "licence", "notice")
_KNOWN: dict[str, tuple[str, ...]] = {
    "id": ("id", "_id", "pmcid", "doc_id", "docid", "document_id", "uid", "pmid", "doi", "article_id", "passage_id"),
    "title": ("title", "name", "headline", "question"),
    "text": (
        "text", "full_text", "fulltext", "body", "content", "contents", "answer", "passage", "document", "abstract",
    ),
    "sections": ("sections",),
    "kind": ("kind",),
    "licence": ("licence", "license"),
    "notice": ("notice", "notices"),
    "facets.institution": ("institution", "developer", "organization", "organisation", "publisher"),
    "facets.date": ("date", "released", "published", "publication_date", "pub_date"),
    "facets.year": ("year", "publication_year", "pub_year"),
    "facets.journal": ("journal", "venue"),
}  # fmt: skip
_NO_TEXT = "no field to take the text from"
_YEAR = re.compile(r"\b(1[89]\d\d|20\d\d)\b")
# How the National Guideline Clearinghouse writes developers: name, dash, kind of organisation, one after the other.
_ORGANISATION = re.compile(
    r"\s+-\s+(?:Academic Institution|Clinical Specialty Collaboration|Disease Specific Society"
    r"|Federal Government Agency|For Profit Organization|Government Affiliated Research Institute"
    r"|Hospital/Medical Center|Independent Expert Panel|International Agency"
    r"|Managed Care Organization|Medical Specialty Society|National Government Agency"
    r"|Nonprofit (?:Research )?Organization|Private (?:For Profit|Nonprofit)(?: Research)? Organization"
    r"|Professional Association|Public For Profit Organization|State/Local Government Agency)"
    r"(?:\s+\[[^\]]{1,20}\])?\s*(?=$|\S)"
)


class _Mapped(Reader):
    name = "mapped"
    summary = "tables with one document per row: JSON lines, CSV, TSV, JSON arrays (--mapping names the fields)"
    suffixes = ROW_SUFFIXES
    takes_mapping = True
    max_bytes = None

    def holds_documents(self, path: Path, mapping: str) -> bool:
        return table_suffix(path) != ".json" and has_text(path, mapping)

    def read(self, source: SourceFile) -> Iterator[DocumentEntry | Refusal]:
        return read_mapped(source.path, source.mapping)


READER = _Mapped()


class FieldMapping(Struct, frozen=True, kw_only=True):
    """Which field of a row is what: parts of the document and facets by name, each from one field.

    `rest` are fields that become facets when they are short.
    """

    parts: dict[str, str]
    facets: dict[str, str] = field(default_factory=dict)
    rest: tuple[str, ...] = ()


def parse_mapping(text: str) -> FieldMapping:
    """A mapping from its one line; a `UsageError` says what is wrong with it."""
    parts: dict[str, str] = {}
    facets: dict[str, str] = {}
    for piece in filter(None, (piece.strip() for piece in text.split(","))):
        target, separator, source = (part.strip() for part in piece.partition("="))
        name = target.removeprefix("facets.").removeprefix("facet.")
        if not separator or not source or not name:
            raise UsageError(
                f"a mapping is TARGET=FIELD,...: {piece!r} is not of this form", fix="write e.g. id=pmcid,text=text"
            )
        if name != target:
            facets[name] = source
        elif target in _PARTS:
            parts[target] = source
        else:
            raise UsageError(
                f"a mapping can't set {target!r}", fix=f"use {', '.join(_PARTS)}, or facets.NAME for anything else"
            )
    if not parts.keys() & {"text", "sections"}:
        raise UsageError("the mapping does not say where the text is", fix="add text=FIELD or sections=FIELD")
    return FieldMapping(parts=parts, facets=facets)


def guess_mapping(row: Row) -> FieldMapping:
    """A mapping by the well-known names among a row's fields; an `InputError` where none holds a text."""
    by_name = {name.lower(): name for name in reversed(row)}
    parts: dict[str, str] = {}
    facets: dict[str, str] = {}
    for target, names in _KNOWN.items():
        source = next((by_name[name] for name in names if name in by_name), None)
        if source is None:
            continue
        if target.startswith("facets."):
            facets[target.removeprefix("facets.")] = source
        else:
            parts[target] = source
    if not parts.keys() & {"text", "sections"}:
        raise InputError(
            f"{_NO_TEXT}: none of the field names is known",
            fix="name the fields with a mapping, for example id=key,text=words",
        )
    taken = {*parts.values(), *facets.values()}
    rest = tuple(name for name in row if name not in taken and name.strip())
    return FieldMapping(parts=parts, facets=facets, rest=rest)


def has_text(path: Path, mapping: str = "") -> bool:
    """Whether a table's first row has a text, by the mapping or by well-known names (then an id as well).

    A table that can't be read counts as one that does, so that an import lists it with the reason.
    """
    try:
        row = first_row(path)
        if row is None:
            return False
        if isinstance(row, Refusal):
            return True
        parts = (parse_mapping(mapping) if mapping else guess_mapping(row)).parts
    except InputError as err:
        return not err.what.startswith(_NO_TEXT)
    texts = [_value(row, parts[part]) for part in ("text", "sections") if part in parts]
    return any(texts) and (bool(mapping) or "id" in parts)


def read_mapped(path: Path, mapping: str = "") -> Iterator[DocumentEntry | Refusal]:
    """The documents of a table, row by row. One whose first row has no text that is known is refused as a whole."""
    given = parse_mapping(mapping) if mapping else None
    stem = path.name.partition(".")[0]
    known: FieldMapping | None = None
    ids = _Ids()
    empty = True
    for number, row in read_rows(path):
        empty = False
        if isinstance(row, Refusal):
            yield row
            continue
        known = known or given or guess_mapping(row)
        try:
            document = document_of(row, given or guess_mapping(row), f"{stem}-{number}")
        except InputError as err:
            yield refusal(member_of(number), err)
            continue
        yield DocumentEntry(document=document if given else ids.apart(document), member=member_of(number))
    if empty:
        raise InputError("no rows in this table", where=str(path), fix="leave it out")


class _Ids:
    """Ids that mean different documents in one table (each source counts its own): later ones get their own."""

    def __init__(self) -> None:
        self._seen: dict[str, bytes] = {}

    def apart(self, document: Document) -> Document:
        """The document under an id that no other text of the table has; the same text keeps its id."""
        digest = hashlib.blake2b(document.text.encode(), digest_size=16).digest()
        source = document.facets.get("source")
        words = f"-{source}" if isinstance(source, str) else ""
        id, number = document.id, 1
        while self._seen.get(id, digest) != digest:
            number += 1
            id = safe_id(f"{document.id}{words}" if words and number == 2 else f"{document.id}{words}-{number}")
        self._seen[id] = digest
        if id == document.id:
            return document
        return msgspec.structs.replace(document, id=id, facets={"source_id": document.id, **document.facets})


def document_of(row: Row, mapping: FieldMapping, fallback: str) -> Document:
    """The document of one row; `fallback` names it where the row has no id."""
    found = {part: _value(row, source) for part, source in mapping.parts.items()}
    missing = [source for part, source in mapping.parts.items() if part != "notice" and found[part] is None]
    if missing and not any(found.get(part) for part in ("text", "sections")):
        raise InputError(f"a field is missing: {', '.join(missing)}", fix="correct the mapping, or the row")
    builder = TextBuilder()
    if text := found.get("text"):
        lay_out(_text(text), builder)
    for heading, body in _sections(found.get("sections")):
        builder.heading(heading, 1, role=role_of(heading))
        lay_out_prose(body, builder)
    identifier = squeeze(_text(found.get("id")))
    facets = _facets(row, mapping)
    plain_id = safe_id(identifier or fallback)
    if identifier and plain_id != identifier:
        facets.setdefault("source_id", identifier)
    notice = found.get("notice")
    document = Document(
        id=plain_id,
        title=squeeze(_text(found.get("title"))) or plain_id,
        text=builder.text,
        kind=squeeze(_text(found.get("kind"))),
        sections=builder.sections(),
        figures=tuple(builder.figures),
        tables=tuple(builder.tables),
        facets=facets,
        licence=squeeze(_text(found.get("licence"))),
        notices=tuple(filter(None, _strings(notice))) if notice else (),
    )
    may_be_report = not found.get("sections") and len(document.text) >= MIN_REPORT
    return assign_roles(document) if may_be_report else document


def _value(row: Mapping[str, object], source: str) -> object:
    if source not in row and "+" in source:
        return "-".join(filter(None, (squeeze(_text(_value(row, part.strip()))) for part in source.split("+"))))
    if source in row or "." not in source:
        return row.get(source)
    head, _, rest = source.partition(".")
    inner = row.get(head)
    return _value(inner, rest) if isinstance(inner, dict) else None


def _text(value: object) -> str:
    if isinstance(value, str):
        return value.replace("\r\n", "\n").replace("\r", "\n")
    if isinstance(value, list):
        return "\n\n".join(map(_text, value))
    if value is None or isinstance(value, dict):
        return ""
    return str(value)


def _strings(value: object) -> list[str]:
    return [squeeze(_text(each)) for each in (value if isinstance(value, list) else [value])]


def _sections(value: object) -> Iterator[tuple[str, str]]:
    """Heading and text of each section, from a list of objects (or the JSON of one, as a table's cell holds it)."""
    if isinstance(value, str) and value.strip().startswith("["):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError) as err:
            raise InputError(f"its sections can't be read: {err}", fix="write a list of {heading, text}") from err
    if value is None or value == "":
        return
    if not isinstance(value, list):
        raise InputError("its sections are not a list of {heading, text}", fix="correct the row")
    for section in value:
        if not isinstance(section, dict) or not isinstance(section.get("text"), str):
            raise InputError("a section has no text: write a list of {heading, text}", fix="correct the row")
        yield squeeze(_text(section.get("heading") or section.get("title"))), _text(section["text"])


def _facets(row: Row, mapping: FieldMapping) -> Facets:
    facets: Facets = {}
    for name, source in (*mapping.facets.items(), *((name.strip(), name) for name in mapping.rest)):
        longest = MAX_GUESS if source in mapping.rest else MAX_FACET
        value = _value(row, source)
        if isinstance(value, list) and all(isinstance(each, str | int | float) for each in value):
            words = list(filter(None, _strings(value)))
            if words and max(map(len, words)) <= longest:
                facets[name] = words
        elif isinstance(value, str | int | float) and 0 < len(text := squeeze(str(value))) <= longest:
            facets[name] = text
    if isinstance(institution := facets.get("institution"), str):
        names = list(dict.fromkeys(filter(None, map(str.strip, _ORGANISATION.split(institution)))))
        facets["institution"] = names if len(names) > 1 else "".join(names)
    if isinstance(date := facets.get("date"), str) and "year" not in facets and (year := _YEAR.search(date)):
        facets["year"] = year.group(1)
    return facets
