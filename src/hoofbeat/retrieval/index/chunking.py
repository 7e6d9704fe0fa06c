"""Documents and queries as pieces: what is indexed, retrieved, and shown to a model.

A passage is an exact slice of its document's text, so a claim about it can be checked; the heading it stands under is
kept beside the text, not in it. How a text is cut is written as one word, the same in a retriever line and a manifest:

    words:160/32       windows of 160 words, 32 of them shared with the window before, never across sections
    tokens:512/128     windows of 512 tokens of the encoder, 128 shared (tokenizers call it stride), over the whole text
    sentences:128      whole sentences together, up to about 128 tokens, never across sections
    sections           every section by itself
    headings           every section by its heading alone
    children:160/32    whole sentences and table rows together, up to 160 words, the last ones up to 32 words shared
    subsections        every section by itself, a long one by its sub-headings; children never cross them
    subheadings        every such section by its heading alone, sub-headings that were found left out
    truncate:512       the first 512 tokens
    whole              all of it
    auto               whole where documents are passages already (BEIR, R2MED), else words:160/32
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple, get_args

from msgspec import Struct
from msgspec.structs import replace

from hoofbeat.errors import UsageError
from hoofbeat.records import Document, DocumentTable, Passage
from hoofbeat.retrieval.index.analysis import CJK

_END = re.compile(r"(?:[.!?]+[\"'”’)\]]*(?=\s)|[。！？]+[」』”’]*|\n[ \t]*\n)")
_BEGINS = re.compile(r"\s*[\"'“‘(\[]*[^\Wa-z_]")
_WORD_BEFORE = re.compile(r"(\S+)$")
_SHORT = """
al approx ca cf dr e.g eq etc fig figs i.e i.m i.v incl jr m.d max min mr mrs ms p.o pp prof ref refs resp s.c
sect sp spp sr st tab vol vs
"""
_ABBREVIATIONS = frozenset(_SHORT.split())
_INITIAL = re.compile(r"(?:[A-Z]\.)*[A-Z]")
_NUMBER = re.compile(r"\d{1,2}")
_GLUED = re.compile(r"[(\[]([^\W\d_]+)$")


def sentence_spans(text: str, start: int = 0, end: int | None = None) -> list[tuple[int, int]]:
    """Start and end of every sentence between two offsets, without the white space around it.

    Quick rules for English clinical prose and for ideographic full stops. A full stop ends a sentence when white space
    and something that can begin one follow, unless it belongs to an abbreviation (`Fig.`, `et al.`, `i.v.`), an
    initial (`J. Smith`) or a list number (`2. Findings` keeps its number).
    """
    stop = len(text) if end is None else end
    spans: list[tuple[int, int]] = []
    begin = start
    for match in _END.finditer(text, start, stop):
        if match[0].startswith(".") and not _ends(text, begin, match):
            continue
        _add(spans, text, begin, match.end())
        begin = match.end()
    _add(spans, text, begin, stop)
    return spans


def _ends(text: str, begin: int, match: re.Match[str]) -> bool:
    """Whether this full stop ends the sentence that began at `begin`."""
    if not _BEGINS.match(text, match.end()):
        return False
    word = _WORD_BEFORE.search(text, max(begin, match.start() - 40), match.start())
    if word is None:
        return False
    bare = word[1].lstrip("\"'“‘([")
    if bare.lower() in {"no", "nos"}:
        return not text[match.end() : match.end() + 20].lstrip()[:1].isdigit()
    glued = _GLUED.search(bare)  # "the axilla.(Fig. 2)"
    if bare.lower() in _ABBREVIATIONS or (glued and glued[1].lower() in _ABBREVIATIONS) or _INITIAL.fullmatch(bare):
        return False
    return not (_NUMBER.fullmatch(bare) and not text[begin : word.start()].strip())


def _add(spans: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        spans.append((start, end))


Spans = Callable[[str], Sequence[tuple[int, int]]]
"""Start and end of every token of a text."""

Unit = Literal[
    "words", "tokens", "sentences", "sections", "headings", "children", "subsections", "subheadings", "truncate",
    "whole", "auto",
]  # fmt: skip

_Stretch = tuple[str, int | None, int, int]
"""Heading, page, start and end of some text."""

_WORD = re.compile(rf"[{CJK}]|[^\s{CJK}]+")
_WRITTEN = re.compile(r"([a-z]+)(?::(\d{1,6})(?:/(\d{1,6}))?)?")
_SIZED: dict[str, tuple[int, int]] = {
    "words": (160, 32),
    "tokens": (512, 128),
    "sentences": (128, 0),
    "truncate": (512, 0),
    "children": (160, 32),
}
_LINE = re.compile(r"[ \t]*(\S[^\n]*)")
_FINISHED = re.compile(r"[.!?:;。！？…][\"'”’)\]]*$")
_OVERLAPPING = ("words", "tokens", "children")
_HERO = ("children", "subsections", "subheadings")
_UNCUT = ("whole", "auto", "sections", "headings", "subsections", "subheadings")


class Chunking(Struct, frozen=True):
    """How texts are cut: the unit, the size of a piece in it, and how much neighbours share."""

    unit: Unit
    size: int = 0
    overlap: int = 0

    @classmethod
    def parse(cls, text: str) -> Chunking:
        """Read `words:160/32`, `tokens:512/128`, `sentences:128`, `sections`, and what else the module names."""
        match = _WRITTEN.fullmatch(text.strip().lower())
        unit = match[1] if match else ""
        if match is None or unit not in get_args(Unit) or (match[2] and unit not in _SIZED):
            raise UsageError(
                f"{text!r} is not a way to cut texts",
                fix="write words:160/32, tokens:512/128, sentences:128, truncate:512, sections, headings, "
                "children:160/32, subsections, subheadings, whole or auto",
            )
        default_size, default_overlap = _SIZED.get(unit, (0, 0))
        size = int(match[2]) if match[2] else default_size
        overlap = int(match[3]) if match[3] else (0 if match[2] else default_overlap)
        if (unit in _SIZED and size < 1) or (overlap and (unit not in _OVERLAPPING or overlap >= size)):
            raise UsageError(
                f"can't cut into pieces of {size} {unit} that overlap by {overlap}",
                fix="use a size of at least 1 and a smaller overlap; only words, tokens and children can overlap",
            )
        return cls(unit, size, overlap)  # type: ignore[arg-type]

    @property
    def needs_tokens(self) -> bool:
        """Whether an encoder's tokenizer is needed."""
        return self.unit in {"tokens", "sentences", "truncate"}

    def __str__(self) -> str:
        return self.unit + (f":{self.size}" if self.size else "") + (f"/{self.overlap}" if self.overlap else "")


AUTO = Chunking("auto")
"""As the documents ask for: passages that were published as such stay whole."""

DEFAULT_CHUNKING = Chunking("words", 160, 32)
"""Windows of 160 words that share 32, each under its section's heading."""

CHILDREN = Chunking("children", 160, 32)
"""HERO's children: sentences and rows, up to 160 words together, under the heading or sub-heading they follow."""


def indexed_text(passage: Passage) -> str:
    """What a retriever reads of a passage: its heading, then its text."""
    return f"{passage.heading}\n{passage.text}" if passage.heading else passage.text


def cut(document: Document, chunking: Chunking, tokens: Spans | None = None, mark: str = "") -> list[Passage]:
    """The passages of a document: at least one, so that a document without text can be found by its title.

    `mark` goes into their ids, where the same way of cutting is used with the tokens of more than one encoder.
    """
    if chunking.unit == "auto":
        chunking = DEFAULT_CHUNKING
    if chunking.unit == "whole":
        return _numbered(document, f"{chunking}{mark}", [(document.title, None, 0, len(document.text))])
    marked = {section.body for section in document.sections}
    if chunking.unit in _HERO:
        document = as_hero_reads(document)
    if chunking.unit in {"headings", "subheadings"}:
        # title navigation over lines that only look like headings lost 14 of 165 facts in 19 guidelines
        unmarked = {section.body for section in document.sections} - marked
        found = [
            ("" if start in unmarked else heading, page, start, start) for heading, page, start, _ in _regions(document)
        ]
    elif chunking.unit in {"tokens", "truncate"}:
        windows = _token_windows(document.text, chunking, tokens)
        found = [(document.title, _page(document, start), start, end) for start, end in windows]
    elif chunking.unit == "children":
        found = [
            (heading_with_columns(document, heading, first), page, first, last)
            for heading, page, start, end in _regions(document)
            for first, last in _children(_statements(document, start, end, chunking.size), chunking, document.text)
        ]
    else:
        found = [
            (heading, page, *window)
            for heading, page, start, end in _regions(document)
            for window in _pieces(document.text, start, end, chunking, tokens)
        ]
    return _numbered(document, f"{chunking}{mark}", found or [(document.title, None, 0, len(document.text))])


def as_hero_reads(document: Document) -> Document:
    """The document with the sections that HERO's children and parents are of (`subsections.py`)."""
    from hoofbeat.retrieval.index.subsections import with_subsections  # noqa: PLC0415 (few lines need the rules)

    return with_subsections(document)


def pieces(text: str, chunking: Chunking, tokens: Spans | None = None) -> list[str]:
    """A query cut like documents are; always at least one piece."""
    if chunking.unit in _UNCUT:
        return [text]
    if chunking.unit in {"tokens", "truncate"}:
        windows = _token_windows(text, chunking, tokens)
    elif chunking.unit == "children":
        plain = Document(id="", title="", text=text)
        windows = list(_children(_statements(plain, 0, len(text), chunking.size), chunking, text))
    else:
        windows = list(_pieces(text, 0, len(text), chunking, tokens))
    return [text[start:end] for start, end in windows] or [text]


def whole(document: Document) -> list[Passage]:
    """The document as one passage under its title."""
    return [_passage(f"{document.id}#0", document, (document.title, None, 0, len(document.text)))]


def sections(document: Document) -> list[Passage]:
    """The document as a passage for every section, so that a model that is shown all of it can still name its place."""
    return chunk(document, size_words=max(1, len(document.text)), overlap_words=0)


def chunk(document: Document, size_words: int = 160, overlap_words: int = 32) -> list[Passage]:
    """Windows of words that overlap inside a section and never cross one.

    Text outside any section stands under the document's title. A document without words gives one passage, so that
    it can still be found by its title.
    """
    if size_words < 1 or not 0 <= overlap_words < size_words:
        raise UsageError(
            f"can't cut into {size_words} words that overlap by {overlap_words}",
            fix="use a size of at least 1 word and a smaller overlap",
        )
    found = cut(document, Chunking("words", size_words, overlap_words))
    return [replace(passage, id=f"{document.id}#{number}") for number, passage in enumerate(found)]


def _regions(document: Document) -> Iterator[_Stretch]:
    """Heading, page and bounds of every stretch of text in order: sections, and what lies between them."""
    cursor = 0
    for section in sorted(document.sections, key=lambda section: (section.start, section.end)):
        if cursor < section.start and document.text[cursor : section.start].strip():
            yield document.title, None, cursor, section.start
        yield section.heading or document.title, section.page, max(section.body, cursor), section.end
        cursor = max(cursor, section.end)
    if document.text[cursor:].strip():
        yield document.title, None, cursor, len(document.text)


def _pieces(text: str, start: int, end: int, chunking: Chunking, tokens: Spans | None) -> Iterator[tuple[int, int]]:
    """Windows of words, groups of sentences, or all of a stretch of text."""
    if chunking.unit == "words":
        words = [match.span() for match in _WORD.finditer(text, start, end)]
        yield from _windows(words, chunking.size, chunking.overlap)
    elif chunking.unit == "sentences":
        yield from _grouped(text, sentence_spans(text, start, end), chunking.size, _need(tokens))
    else:
        stretch = text[start:end]
        begin = start + len(stretch) - len(stretch.lstrip())
        yield begin, begin + len(stretch.strip())


class _Statement(NamedTuple):
    """What a child does not divide: a sentence, an item of a list, rows of a table; and how many words it has."""

    start: int
    end: int
    words: int


def _statements(document: Document, start: int, end: int, size: int) -> Iterator[_Statement]:
    """The statements of a stretch of text in order; only one of more than `size` words is divided."""
    text, at = document.text, start
    for table in sorted(document.tables, key=lambda table: table.start):
        if at <= table.start < table.end <= end:
            for unit in _sentences(text, at, table.start):
                yield from _fitted(text, unit, size)
            for unit in _rows(text, table, size):
                yield from _fitted(text, unit, size)
            at = table.end
    for unit in _sentences(text, at, end):
        yield from _fitted(text, unit, size)


def _sentences(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Sentences and items of lists; a sentence that goes on behind a blank line is one."""
    from hoofbeat.corpus.parsers.prose import is_item  # noqa: PLC0415 (as above)
    from hoofbeat.retrieval.index.subsections import continues  # noqa: PLC0415

    found: list[tuple[int, int]] = []
    for first, last in sentence_spans(text, start, end):
        before = text[found[-1][0] : found[-1][1]] if found else ""
        broken = before and "\n" in text[found[-1][1] : first] and not _FINISHED.search(before)
        if broken and continues(before, text[first:last]):
            found[-1] = (found[-1][0], last)
            continue
        begins = [first, *(each.start(1) for each in _LINE.finditer(text, first, last) if is_item(each[1]))]
        for begin, follow in pairwise([*begins, last]):
            _add(found, text, begin, follow)
    return found


def _rows(text: str, table: DocumentTable, size: int) -> list[tuple[int, int]]:
    """A short table whole, a longer one row by row; caption and header stay with the first row."""
    if _count(text, table.start, table.end) <= size:
        return [(table.start, table.end)]
    first = _after_columns(text, table)
    rows = [match.span(1) for match in _LINE.finditer(text, first, table.end)]
    return [(table.start, rows[0][1]), *rows[1:]] if rows else [(table.start, table.end)]


def _columns(table: DocumentTable) -> str:
    """The row that names the columns: the first with more than one cell filled; as it is in the text."""
    return next((" | ".join(row).strip() for row in table.rows if sum(map(bool, row)) > 1), "")


def _after_columns(text: str, table: DocumentTable) -> int:
    """Where the row that names the columns ends in the text; the table's start where it has none."""
    columns = _columns(table)
    at = text.find(columns, table.start, table.end) if columns else -1
    return table.start if at < 0 else at + len(columns)


def heading_with_columns(document: Document, heading: str, start: int) -> str:
    """The heading of a piece that begins at `start`: in the middle of a table it names table and columns as well.

    A row says little without its header, and a passage is an exact slice of the text, so the header goes beside it.
    """
    for table in document.tables:
        if table.start < _after_columns(document.text, table) <= start < table.end:
            return f"{heading} › {table.label or 'Table'}: {_columns(table)}"
    return heading


def _fitted(text: str, span: tuple[int, int], size: int) -> Iterator[_Statement]:
    """A statement, or its parts where it has more than `size` words: its blocks and lines, else windows of words."""
    words = _count(text, *span)
    if words <= size:
        yield _Statement(*span, words)
        return
    lines = [match.span(1) for match in _LINE.finditer(text, *span)]
    if len(lines) > 1:
        for line in lines:
            yield from _fitted(text, line, size)
        return
    for start, end in _windows([match.span() for match in _WORD.finditer(text, *span)], size, 0):
        yield _Statement(start, end, _count(text, start, end))


def _count(text: str, start: int, end: int) -> int:
    return sum(1 for _ in _WORD.finditer(text, start, end))


def _children(found: Iterable[_Statement], chunking: Chunking, text: str) -> Iterator[tuple[int, int]]:
    """Statements together while they fit, the last ones shared with the next child.

    A line that leads to what follows ("Exceptions:", a heading) does not end a child. What is left at the end for
    less than the overlap is shown with more of what is before it.
    """
    units = list(found)
    first = 0  # of the statements that no child has yet
    begin = 0
    while first < len(units):
        last, words = first, sum(unit.words for unit in units[begin:first])
        while last < len(units) and (last == first or words + units[last].words <= chunking.size):
            words += units[last].words
            last += 1
        if last < len(units):
            while last - 1 > first and _leads_on(text, units[last - 1]):
                last -= 1
        elif words < chunking.overlap:
            begin = _back(units, begin, chunking.size - words, chunking.overlap - words)
        yield units[begin].start, units[last - 1].end
        room = chunking.size - units[last].words if last < len(units) else 0
        begin = _back(units, last, min(room, chunking.overlap), chunking.overlap)
        first = last


def _back(units: Sequence[_Statement], place: int, room: int, wanted: int) -> int:
    """The earliest statement from which on those before `place` fit into `room`, until `wanted` words are there."""
    taken = 0
    while place and taken < wanted and taken + units[place - 1].words <= room:
        place -= 1
        taken += units[place].words
    return place


def _leads_on(text: str, unit: _Statement) -> bool:
    from hoofbeat.corpus.parsers.prose import may_be_heading  # noqa: PLC0415 (as above)

    words = text[unit.start : unit.end]
    return words.endswith(":") or may_be_heading(words)


def _token_windows(text: str, chunking: Chunking, tokens: Spans | None) -> list[tuple[int, int]]:
    """Windows of tokens, of which `truncate` takes the first."""
    found = token_windows(text, chunking.size, chunking.overlap, _need(tokens))
    return found[: 1 if chunking.unit == "truncate" else None]


def token_windows(text: str, size: int, overlap: int, tokens: Spans) -> list[tuple[int, int]]:
    """Start and end of windows of `size` tokens of a text, `overlap` of them shared with the window before.

    Encoders pass over accents that stand by themselves and the like; what they pass over stays with the token before
    it, so that no window ends within a letter and nothing but white space is left out.
    """
    spans = tokens(text)
    if not spans:
        return []
    nexts = [*(start for start, _ in spans[1:]), len(text)]
    filled = [
        (start, max(end, start + len(text[start:following].rstrip())))
        for (start, end), following in zip(spans, nexts, strict=True)
    ]
    filled[0] = (len(text) - len(text.lstrip()), filled[0][1])
    return list(_windows(filled, size, overlap))


def _windows(units: Sequence[tuple[int, int]], size: int, overlap: int) -> Iterator[tuple[int, int]]:
    for first in range(0, len(units), size - overlap):
        last = min(first + size, len(units)) - 1
        yield units[first][0], units[last][1]
        if last == len(units) - 1:
            return


def _grouped(text: str, spans: Iterable[tuple[int, int]], size: int, tokens: Spans) -> Iterator[tuple[int, int]]:
    """Sentences laid together while they fit; one longer than a piece stands by itself."""
    group: tuple[int, int] | None = None
    filled = 0
    for start, end in spans:
        length = len(tokens(text[start:end]))
        if group is not None and filled + length > size:
            yield group
            group, filled = None, 0
        group = (group[0] if group else start, end)
        filled += length
    if group is not None:
        yield group


def _page(document: Document, start: int) -> int | None:
    """The page of the section that an offset lies in."""
    inside = [section for section in document.sections if section.start <= start < max(section.end, section.start + 1)]
    return inside[-1].page if inside else None


def _need(tokens: Spans | None) -> Spans:
    if tokens is None:
        raise UsageError("cutting by tokens needs an encoder's tokenizer", fix="cut by words instead: words:160/32")
    return tokens


def _numbered(document: Document, way: str, windows: Sequence[_Stretch]) -> list[Passage]:
    between = "" if way == str(DEFAULT_CHUNKING) else f"{way}#"
    return [_passage(f"{document.id}#{between}{number}", document, window) for number, window in enumerate(windows)]


def _passage(name: str, document: Document, window: _Stretch) -> Passage:
    heading, page, start, end = window
    return Passage(
        id=name,
        document=document.id,
        text=document.text[start:end],
        start=start,
        end=end,
        heading=heading,
        page=page,
    )
