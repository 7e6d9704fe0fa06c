"""Documents and queries as pieces: what is indexed, retrieved, and shown to a model.

A passage is an exact slice of its document's text, so a claim about it can be checked; the heading it stands under is
kept beside the text, not in it. How a text is cut is written as one word, the same in a retriever line and a manifest:

    words:160/32       windows of 160 words, 32 of them shared with the window before, never across sections
    tokens:512/128     windows of 512 tokens of the encoder, 128 shared (tokenizers call it stride), over the whole text
    sentences:128      whole sentences together, up to about 128 tokens, never across sections
    sections           every section by itself
    headings           every section by its heading alone
    truncate:512       the first 512 tokens
    whole              all of it
    auto               whole where documents are passages already (BEIR, R2MED), else words:160/32
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from hoofbeat.errors import UsageError
from hoofbeat.records import Document, Passage
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

Unit = Literal["words", "tokens", "sentences", "sections", "headings", "truncate", "whole", "auto"]

_Stretch = tuple[str, int | None, int, int]
"""Heading, page, start and end of some text."""

_WORD = re.compile(rf"[{CJK}]|[^\s{CJK}]+")
_WRITTEN = re.compile(r"([a-z]+)(?::(\d{1,6})(?:/(\d{1,6}))?)?")
_SIZED: dict[str, tuple[int, int]] = {
    "words": (160, 32),
    "tokens": (512, 128),
    "sentences": (128, 0),
    "truncate": (512, 0),
}
_OVERLAPPING = ("words", "tokens")


class Chunking(Struct, frozen=True):
    """How texts are cut: the unit, the size of a piece in it, and how much neighbours share."""

    unit: Unit
    size: int = 0
    overlap: int = 0

    @classmethod
    def parse(cls, text: str) -> Chunking:
        """Read `words:160/32`, `tokens:512/128`, `sentences:128`, `sections`, `headings`, `truncate:512` or `whole`."""
        match = _WRITTEN.fullmatch(text.strip().lower())
        unit = match[1] if match else ""
        if match is None or unit not in get_args(Unit) or (match[2] and unit not in _SIZED):
            raise UsageError(
                f"{text!r} is no way to cut texts",
                fix="write words:160/32, tokens:512/128, sentences:128, truncate:512, sections, headings, whole, auto",
            )
        default_size, default_overlap = _SIZED.get(unit, (0, 0))
        size = int(match[2]) if match[2] else default_size
        overlap = int(match[3]) if match[3] else (0 if match[2] else default_overlap)
        if (unit in _SIZED and size < 1) or (overlap and (unit not in _OVERLAPPING or overlap >= size)):
            raise UsageError(
                f"can't cut into pieces of {size} {unit} with {overlap} shared",
                fix="a piece has at least one, and shares less than its size; only words and tokens are shared",
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
    if chunking.unit == "headings":
        found = [(heading, page, start, start) for heading, page, start, _ in _regions(document)]
    elif chunking.unit in {"tokens", "truncate"}:
        windows = _token_windows(document.text, chunking, tokens)
        found = [(document.title, _page(document, start), start, end) for start, end in windows]
    else:
        found = [
            (heading, page, *window)
            for heading, page, start, end in _regions(document)
            for window in _pieces(document.text, start, end, chunking, tokens)
        ]
    return _numbered(document, f"{chunking}{mark}", found or [(document.title, None, 0, len(document.text))])


def pieces(text: str, chunking: Chunking, tokens: Spans | None = None) -> list[str]:
    """A query cut like documents are; always at least one piece."""
    if chunking.unit in {"whole", "auto", "sections", "headings"}:
        return [text]
    if chunking.unit in {"tokens", "truncate"}:
        windows = _token_windows(text, chunking, tokens)
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
            f"can't chunk into {size_words} words with {overlap_words} overlapping",
            fix="the size is at least 1 word and the overlap is smaller than the size",
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
