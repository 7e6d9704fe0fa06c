"""How text becomes index terms. Stemming and stop words move BM25 by several points, so the analysis is a record.

Text is cut at its spaces, and what stands between two spaces is split, folded and stemmed once however often it comes:
on English text that is some hundred times less work, and what is left is looking pieces up.

The default is the nearest thing to Lucene's English analysis that needs no Lucene: its 33 stop words, the possessive
dropped, Porter's stemmer. The token pattern was picked among 16 analyses (8 patterns, 2 stemmers) while looking at
SciFact's and NFCorpus's own test queries: the 16 spanned nDCG@10 0.671-0.682 and 0.324-0.328. Its agreement with
published figures there is a check of the formula, not evidence on unseen data.

Texts have a hundred times as many pieces as there are different ones, so all depends on telling quickly which piece
this is. numpy looks a whole block of text up at once, in its own hash table: a piece of up to 15 bytes is two
numbers, compared as they are, so that nothing is ever taken for something else. Longer ones are few, and a dictionary
knows them.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable
from functools import cached_property
from itertools import chain, count
from threading import Lock
from typing import NamedTuple

import msgspec
import numpy as np
import Stemmer
from numpy.typing import NDArray

from hoofbeat.errors import UsageError

Words = NDArray[np.uint64]

_SPACE = 32
_HALF = 8
_SHORT = 2 * _HALF - 1  # the last byte is for the length
_ROOM = bytes(2 * _HALF)
_FIRST_BITS = 12
_MIX = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], np.uint64)


def _masks(begin: int) -> Words:
    """By length, the bits that belong to a piece in the eight bytes from its byte `begin` on."""
    lengths = (min(max(length - begin, 0), _HALF) for length in range(_SHORT + 1))
    return np.array([(1 << 8 * length) - 1 for length in [*lengths, 0]], np.uint64)


_MASKS = _masks(0), _masks(_HALF)
_LENGTHS = np.arange(_SHORT + 2, dtype=np.uint64) << np.uint64(8 * (_HALF - 1))


class TextPieces(NamedTuple):
    """Texts cut into pieces: where each begins and ends, its two numbers if it is short, and how many a text has."""

    text: bytes
    begins: NDArray[np.intp]
    ends: NDArray[np.intp]
    first: Words
    second: Words
    sizes: NDArray[np.int64]

    def pieces(self, places: NDArray[np.intp]) -> list[bytes]:
        """The pieces at these places."""
        bounds = zip(self.begins[places].tolist(), self.ends[places].tolist(), strict=True)
        return [self.text[begin:end] for begin, end in bounds]


def cut(texts: list[str]) -> TextPieces:
    """Cut texts at their spaces, tabs and line ends (and other control characters of ASCII)."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    text = b" ".join([*encoded, _ROOM])
    data = np.frombuffer(text, np.uint8)[: -len(_ROOM)]
    ends = np.flatnonzero(data <= _SPACE)
    begins = np.zeros_like(ends)
    np.add(ends[:-1], 1, out=begins[1:])
    lengths = np.minimum(ends - begins, _SHORT + 1)
    windows = np.ndarray((len(text) - _HALF + 1,), "<u8", text, strides=(1,))
    first = windows[begins].astype(np.uint64, copy=False)
    first &= _MASKS[0].take(lengths)
    second = _LENGTHS.take(lengths)
    longer = np.flatnonzero(lengths > _HALF)
    second[longer] |= windows[begins[longer] + _HALF] & _MASKS[1].take(lengths[longer])
    text_ends = np.cumsum([len(one) + 1 for one in encoded], dtype=np.int64) - 1
    sizes = np.diff(np.searchsorted(ends, text_ends) + 1, prepend=0).astype(np.int64)
    return TextPieces(text, begins, ends, first, second, sizes)


class PieceTable:
    """The different pieces seen so far, numbered as they came. Not to be used by two threads at once."""

    def __init__(self) -> None:
        self._count = 0
        self._long: dict[bytes, int] = {}
        self._make_table(_FIRST_BITS)

    def __len__(self) -> int:
        """How many there are."""
        return self._count

    def number(self, found: TextPieces) -> tuple[NDArray[np.int32], list[str]]:
        """The number of each piece, and those pieces that are new, in the order of their numbers."""
        numbers, _ = self._look_up(found.first, found.second)
        new = []
        long = np.flatnonzero(found.ends - found.begins > _SHORT)
        for place, piece in zip(long.tolist(), found.pieces(long), strict=True):
            number = self._long.setdefault(piece, self._count)
            if number == self._count:
                self._count += 1
                new.append(piece)
            numbers[place] = number
        unknown = np.flatnonzero(numbers < 0)
        if len(unknown):
            unknown = unknown[np.lexsort((found.second[unknown], found.first[unknown]))]
            first, second = found.first[unknown], found.second[unknown]
            distinct = np.ones(len(unknown), bool)
            distinct[1:] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
            numbers[unknown] = self._count - 1 + np.cumsum(distinct)
            self._add(first[distinct], second[distinct])
            new += found.pieces(unknown[distinct])
        return numbers, [piece.decode("utf-8", "surrogatepass") for piece in new]

    # The table: a piece stands in the first free slot from the one on that its numbers lead to.

    def _make_table(self, bits: int) -> None:
        self._bits = bits
        self._first, self._second = np.zeros(1 << bits, np.uint64), np.zeros(1 << bits, np.uint64)
        self._numbers = np.full(1 << bits, -1, np.int32)

    def _look_up(self, first: Words, second: Words) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
        """The numbers of pieces, -1 for unknown ones, and the slots where they stand or would."""
        mixed = first * _MIX[0]
        mixed ^= second * _MIX[1]
        mixed ^= mixed >> np.uint64(32)
        mixed *= _MIX[0]
        mixed >>= np.uint64(64 - self._bits)
        slots = mixed.astype(np.intp)
        numbers = self._numbers[slots]
        others = self._first[slots] != first
        others |= self._second[slots] != second
        others &= numbers >= 0
        places = np.flatnonzero(others)
        while len(places):
            here = (slots[places] + 1) & ((1 << self._bits) - 1)
            slots[places], numbers[places] = here, self._numbers[here]
            others = (self._first[here] != first[places]) | (self._second[here] != second[places])
            places = places[others & (self._numbers[here] >= 0)]
        return numbers, slots

    def _add(self, first: Words, second: Words) -> None:
        """Give the next numbers to pieces that are not there; the table stays at most half full."""
        numbers = np.arange(self._count, self._count + len(first), dtype=np.int32)
        self._count += len(first)
        if 2 * self._count > len(self._numbers):
            taken = self._numbers >= 0
            old = self._first[taken], self._second[taken], self._numbers[taken]
            self._make_table((2 * self._count).bit_length())
            self._put(*old)
        self._put(first, second, numbers)

    def _put(self, first: Words, second: Words, numbers: NDArray[np.int32]) -> None:
        while len(numbers):
            _, slots = self._look_up(first, second)
            self._numbers[slots] = numbers
            settled = self._numbers[slots] == numbers  # of several in one slot, one
            self._first[slots[settled]], self._second[slots[settled]] = first[settled], second[settled]
            first, second, numbers = first[~settled], second[~settled], numbers[~settled]


CJK = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Ranges of scripts written without spaces (kana and ideographs), for a character class: each character is a word."""

_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"  # Latin to Hebrew
    "\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed"  # Arabic
    "\u0900-\u0963\u0971-\u0dff"  # the scripts of India, whose vowels are marks (letters among them do no harm)
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u17b4-\u17d3"  # Thai to Khmer
)
"""Vowel signs and accents that stand behind a letter and belong to its word; to Python they are no letters."""

_LETTER = rf"[^\W_{CJK}]"
_LETTERS = rf"{_LETTER}+(?:[{_MARKS}]+{_LETTER}*)*"
_WORD = rf"[{CJK}]|{_LETTERS}(?:(?<=\d)[.,](?=\d){_LETTERS}|['’]{_LETTERS})*"

_LUCENE_ENGLISH = (
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this "
    "to was will with"
)
STOP_WORDS: dict[str, frozenset[str]] = {
    "none": frozenset(),
    "lucene-english": frozenset(_LUCENE_ENGLISH.split()),
}
"""Stop lists by name; `lucene-english` are the 33 words of Lucene's English analysis."""

_POSSESSIVE = ("'s", "’s")
_UNSTEMMED = 2
_NO_CACHE = 0
_BREAK = "\x00"
_REMEMBERED = 1 << 20


class Analyzer(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The analysis of one index and its queries.

    `pattern` finds the words (numbers keep their decimal point: `0.5`), after compatibility forms are unified (the
    ligatures of PDF files). A possessive `'s` is dropped with stemming. `stemmer` is a Snowball algorithm's name or
    `none`; words of one or two characters are never stemmed, as in Lucene and in Porter's own program (Snowball's makes
    nothing of `s`). `fields` says what of a passage is indexed, as one text.
    """

    pattern: str = _WORD
    lower_case: bool = True
    stop_words: str = "lucene-english"
    stemmer: str = "porter"
    fields: str = "heading, text"

    def __post_init__(self) -> None:
        if self.stop_words not in STOP_WORDS:
            raise UsageError(f"unknown stop list {self.stop_words!r}", fix=f"use one of {', '.join(STOP_WORDS)}")
        if self.stemmer != "none" and self.stemmer not in Stemmer.algorithms(aliases=True):
            known = ", ".join(["none", *Stemmer.algorithms()])
            raise UsageError(f"unknown stemmer {self.stemmer!r}", fix=f"use one of {known}")
        try:
            re.compile(self.pattern)
        except re.error as error:
            raise UsageError(
                f"the word pattern {self.pattern!r} is not a regular expression: {error}",
                fix="correct it or leave it out",
            ) from error

    def describe(self) -> dict[str, str | bool]:
        """The settings as a manifest records them."""
        return {
            "pattern": self.pattern,
            "unicode": "NFKC",
            "lower_case": self.lower_case,
            "stop_words": self.stop_words,
            "stemmer": self.stemmer,
            "fields": self.fields,
        }

    def words(self, text: str) -> list[str]:
        """The words of a text as they stand, lower-cased, before stop words and stemming."""
        return self._find(self._folded(text))

    def terms_of(self, words: list[str]) -> list[str | None]:
        """The index term of each word, None for a stop word."""
        stop = STOP_WORDS[self.stop_words]
        if self.stemmer == "none":
            return [None if word in stop else word for word in words]
        bases = [word[:-2] if word.endswith(_POSSESSIVE) else word for word in words]
        stems: list[str] = Stemmer.Stemmer(self.stemmer, _NO_CACHE).stemWords(bases)
        return [
            None if base in stop else stem if len(base) > _UNSTEMMED else base
            for base, stem in zip(bases, stems, strict=True)
        ]

    def terms(self, text: str) -> list[str]:
        """The index terms of one text in order, repeats included."""
        return [term for term in self.terms_of(self.words(text)) if term is not None]

    @property
    def cuts_at_spaces(self) -> bool:
        """Whether no word reaches beyond a space: so it is with the default pattern; another's words may."""
        return self.pattern == _WORD

    def pieces(self, text: str) -> list[str]:
        """A text cut into pieces whose `terms`, one piece after the other, are the text's.

        A piece is what stands between spaces, with its punctuation: mostly one word, sometimes none or several. Pieces
        recur, so it pays to remember them. With a pattern of one's own there is one piece, the text.
        """
        return text.split() if self.cuts_at_spaces else [text]

    def words_of(self, pieces: list[str]) -> tuple[list[str], list[int]]:
        """The `words` of pieces, one piece after the other, and how many belong to each."""
        joined = _BREAK.join([*pieces, ""])
        if self.cuts_at_spaces and joined.count(_BREAK) == len(pieces):
            # all at once: between two pieces comes a character that ends every word and counts as one itself
            found = self._find_with_breaks(self._folded(joined))
            ends = [place for place, word in enumerate(found) if word == _BREAK]
            sizes = [end - begin - 1 for begin, end in zip([-1, *ends], ends, strict=False)]
            return [word for word in found if word != _BREAK], sizes
        groups = list(map(self.words, pieces))
        return list(chain.from_iterable(groups)), list(map(len, groups))

    def _folded(self, text: str) -> str:
        if not text.isascii():
            text = unicodedata.normalize("NFKC", text)
        return text.lower() if self.lower_case else text

    @cached_property
    def _find(self) -> Callable[[str], list[str]]:
        return re.compile(self.pattern).findall

    @cached_property
    def _find_with_breaks(self) -> Callable[[str], list[str]]:
        return re.compile(f"{self.pattern}|{_BREAK}").findall


ENGLISH = Analyzer()
"""The default: Lucene's English analysis as nearly as it can be had without Lucene."""


class TermVocabulary(NamedTuple):
    """The terms of an index by number, in the order of their characters, and the analysis they came from."""

    analyzer: Analyzer
    terms: dict[str, int]


class TermBlock(NamedTuple):
    """Analysed texts laid end to end: all term numbers, and how many belong to each text."""

    terms: NDArray[np.int32]
    lengths: NDArray[np.int64]


class Numberer:
    """Numbers terms as texts come by; remembers pieces of text, so that each is analysed once.

    Threads may share one: what takes most time is done by numpy, which lets others run.
    """

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self._terms: defaultdict[str | None, int] = defaultdict(count().__next__)
        assert self._terms[None] == 0  # the stop words
        self._memory = _Memory()
        self._lock = Lock()

    def __len__(self) -> int:
        """How many numbers are given, that of the stop words included."""
        return len(self._terms)

    @property
    def names(self) -> list[str | None]:
        """The terms by number; number 0 are the stop words, which no block holds."""
        with self._lock:
            return list(self._terms)

    def names_of(self, numbers: NDArray[np.integer]) -> list[str]:
        """The terms that have these numbers."""
        names = self.names
        return [str(names[number]) for number in numbers.tolist()]

    def numbers_of(self, names: list[str]) -> NDArray[np.int32]:
        """The numbers of terms; those that are new get one."""
        with self._lock:
            return np.fromiter(map(self._terms.__getitem__, names), np.int32, len(names))

    def in_order(self) -> tuple[list[str], NDArray[np.int64]]:
        """The terms in the order of their characters, and their numbers. All is forgotten then."""
        self._memory = _Memory()
        names = sorted(name for name in self._terms if name is not None)
        numbers = np.fromiter(map(self._terms.__getitem__, names), np.int64, len(names))
        self._terms.clear()
        return names, numbers

    def analyse(self, texts: list[str]) -> TermBlock:
        """Analyse a block of texts, adding terms that are new."""
        if not self.analyzer.cuts_at_spaces:
            with self._lock:
                terms, lengths = self._learn(texts)
            return TermBlock(terms, lengths.astype(np.int64))
        found = cut(texts)
        with self._lock:
            if self._memory.size > _REMEMBERED:
                self._memory = _Memory()
            memory = self._memory
            numbers, new = memory.pieces.number(found)
            if new:
                memory.add(*self._learn(new))
            flat, begins, widths = memory.flat, memory.begins, memory.widths
        places = numbers.astype(np.intp)
        many = widths[places]
        so_far = np.zeros(len(places) + 1, np.int32)
        np.cumsum(many, out=so_far[1:])
        terms = np.repeat(begins[places] - so_far[:-1], many)
        terms += np.arange(len(terms), dtype=np.int32)
        return TermBlock(flat[terms], np.diff(so_far[np.cumsum(found.sizes)], prepend=0).astype(np.int64))

    def _learn(self, pieces: list[str]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The numbers of the pieces' terms, one piece after the other, and how many belong to each."""
        words, sizes = self.analyzer.words_of(pieces)
        terms = self.analyzer.terms_of(words)
        numbers = np.fromiter(map(self._terms.__getitem__, terms), np.int32, len(terms))
        kept = numbers > 0
        so_far = np.concatenate([[0], np.cumsum(kept)])
        return numbers[kept], np.diff(so_far[np.cumsum(sizes, dtype=np.int64)], prepend=0).astype(np.int32)


class _Memory:
    """Pieces of text and their terms: piece `p` has `widths[p]` of them, in `flat` from `begins[p]` on.

    What is there never changes, so arrays once handed out stay right for the pieces known then.
    """

    def __init__(self) -> None:
        self.pieces = PieceTable()
        self.flat = np.empty(0, np.int32)
        self.begins = np.empty(0, np.int32)
        self.widths = np.empty(0, np.int32)
        self._known = self._filled = 0

    @property
    def size(self) -> int:
        """How much is remembered, in pieces and their terms."""
        return self._known + self._filled

    def add(self, terms: NDArray[np.int32], widths: NDArray[np.int32]) -> None:
        """Remember the terms of the next pieces."""
        known, filled = self._known + len(widths), self._filled + len(terms)
        self.flat, self.begins, self.widths = (
            _with_room(self.flat, filled),
            _with_room(self.begins, known),
            _with_room(self.widths, known),
        )
        self.flat[self._filled : filled] = terms
        self.begins[self._known : known] = self._filled + np.cumsum(widths) - widths
        self.widths[self._known : known] = widths
        self._known, self._filled = known, filled


def _with_room(array: NDArray[np.int32], size: int) -> NDArray[np.int32]:
    """The array, or a copy with room for that many and half as many again."""
    if size <= len(array):
        return array
    return np.concatenate([array, np.empty(size + size // 2 - len(array), np.int32)])
