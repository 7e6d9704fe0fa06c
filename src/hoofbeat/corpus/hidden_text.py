"""Text that a reader of a document can't see, and that a model would read.

White words on a white page, text outside the page, letters of the Unicode tag block: nobody who opens the document
sees them, so nobody checks them, and they are the usual place for instructions to models. An import leaves such text
out and lists it in `hidden.jsonl`; `--hidden keep` keeps it, and still lists it.

A reader asks one question for each piece that it finds hidden, and acts on the answer:

    if source.hidden.leaves_out("page 3", "white on white", text):
        continue

Characters that can't be seen are the same in all formats: `without_hidden_characters` takes them out of any document.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from hoofbeat.records import Document

HIDDEN = "hidden.jsonl"
"""The table of a corpus that lists hidden text; only corpora with some have it."""

_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_NO_WIDTH = "\u00ad\u180e\u200b-\u200d\u2060-\u2064\ufeff"
_UNSEEN = re.compile(
    "(?P<flag>\U0001f3f4[\U000e0020-\U000e007e]{1,8}\U000e007f)"  # flags of regions, which people see
    "|(?P<tags>[\U000e0000-\U000e007f]+)"
    f"|(?P<selectors>[{_SELECTORS}]{{2,}})"  # one belongs to the character before it
    f"|(?P<width>[{_NO_WIDTH}]{{4,}})"  # fewer part syllables and join letters
    "|(?P<direction>[\u202a-\u202e\u2066-\u2069])"
)
_FIRST = re.compile(f"[\U0001f3f4\U000e0000-\U000e007f{_SELECTORS}{_NO_WIDTH}\u202a-\u202e\u2066-\u2069]")
"""What the choices above begin with: searching for them took half the time of reading an article, this takes little."""
_ASCII = bytes(range(128))
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_WHYS = {
    "tags": "invisible tag characters",
    "selectors": "text in variation selectors",
    "width": "a run of zero-width characters",
    "direction": "characters that change the direction of text",
}


class HiddenText(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A piece of hidden text: in which document, where, why a person can't see it, and whether it was kept."""

    document: str = ""
    place: str = ""
    why: str
    text: str
    kept: bool = False


class HiddenTexts:
    """The hidden text of a file while it is read; `keep` means that it stays in the documents."""

    def __init__(self, *, keep: bool = False) -> None:
        self.keep = keep
        self._found: list[HiddenText] = []

    def leaves_out(self, place: str, why: str, text: str) -> bool:
        """List a piece of hidden text; whether the reader leaves it out. A piece without words is not listed."""
        if words := " ".join(text.split()):
            self._found.append(HiddenText(place=place, why=why, text=words, kept=self.keep))
        return not self.keep

    def take(self, document: str) -> tuple[HiddenText, ...]:
        """What was found since the last call, as text of this document."""
        found, self._found = self._found, []
        return tuple(replace(each, document=document) for each in found)


def without_hidden_characters(document: Document, hidden: HiddenTexts) -> Document:
    """The document without characters that hide text; places in the text stay right."""
    text, cuts = _cleaned(document.text, "", hidden)
    title, _ = _cleaned(document.title, "title", hidden)
    if hidden.keep or (not cuts and title == document.title):
        return document
    moved = _Places(cuts)
    silent = HiddenTexts()  # captions, headings and cells repeat what is in the text

    def plain(words: str) -> str:
        return _cleaned(words, "", silent)[0]

    return replace(
        document,
        title=title,
        text=text,
        sections=tuple(
            replace(
                each, heading=plain(each.heading), start=moved(each.start), body=moved(each.body), end=moved(each.end)
            )
            for each in document.sections
        ),
        figures=tuple(
            replace(each, caption=plain(each.caption), start=moved(each.start), end=moved(each.end))
            for each in document.figures
        ),
        tables=tuple(
            replace(
                each,
                caption=plain(each.caption),
                rows=tuple(tuple(map(plain, row)) for row in each.rows),
                start=moved(each.start),
                end=moved(each.end),
            )
            for each in document.tables
        ),
    )


class _Places:
    """Where a place of a text is after stretches of it were cut out."""

    def __init__(self, cuts: list[tuple[int, int]]) -> None:
        self._ends = [end for _, end in cuts]
        self._cuts = cuts
        self._removed = [0]
        for start, end in cuts:
            self._removed.append(self._removed[-1] + end - start)

    def __call__(self, place: int) -> int:
        count = bisect_left(self._ends, place)
        inside = max(0, place - self._cuts[count][0]) if count < len(self._cuts) else 0
        return place - self._removed[count] - inside


def _cleaned(text: str, place: str, hidden: HiddenTexts) -> tuple[str, list[tuple[int, int]]]:
    """The text without hidden characters, and what was cut out of it."""
    if text.isascii() or not _may_hide(text):
        return text, []
    cuts: list[tuple[int, int]] = []
    directions: list[str] = []
    for match, kind in _unseen(text):
        if kind == "direction":
            directions.append(match[0])
        else:
            hidden.leaves_out(place, _WHYS[kind], _meaning(match[0], kind))
        cuts.append(match.span())
    if directions:
        codes = ", ".join(sorted({f"U+{ord(each):04X}" for each in directions}))
        hidden.leaves_out(place, _WHYS["direction"], f"{len(directions)} ({codes})")
    pieces, last = [], 0
    for start, end in cuts:
        pieces.append(text[last:start])
        last = end
    return "".join((*pieces, text[last:])), cuts


def _may_hide(text: str) -> bool:
    """Whether a text has a character that hidden text begins with; most have few that are not ASCII to look at."""
    others = text.encode("utf-8", "surrogatepass").translate(None, _ASCII)
    return bool(_FIRST.search(others.decode("utf-8", "surrogatepass")))


def _unseen(text: str) -> Iterator[tuple[re.Match[str], str]]:
    """Hidden characters. Text that runs from right to left needs the characters that change direction."""
    both_ways: bool | None = None
    end = 0
    for first in _FIRST.finditer(text):
        match = _UNSEEN.match(text, first.start()) if first.start() >= end else None
        if match is None:
            continue
        end = match.end()
        kind = str(match.lastgroup)
        if kind == "flag":
            continue
        if kind == "direction":
            if both_ways is None:
                both_ways = bool(_RIGHT_TO_LEFT.search(text))
            if both_ways:
                continue
        yield match, kind


def _meaning(characters: str, kind: str) -> str:
    """What hidden characters say, where they encode letters; else how many they are."""
    if kind == "tags":
        letters = "".join(chr(ord(each) - 0xE0000) for each in characters)
        words = "".join(each for each in letters if each.isprintable()).strip()
    elif kind == "selectors":
        codes = (ord(each) for each in characters)
        data = bytes(code - 0xFE00 if code < 0xFE10 else code - 0xE0100 + 16 for code in codes)
        words = "".join(each for each in data.decode("utf-8", "ignore") if each.isprintable()).strip()
    else:
        words = ""
    return words or f"{len(characters)} characters"
