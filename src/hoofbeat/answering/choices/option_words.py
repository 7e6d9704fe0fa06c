"""Words as they are compared when an option is looked for in an output, and which slips still count as the same word.

Case, accents, British and American spellings, articles and Greek letters written out make no difference. A slip of the
pen may; a slip that turns one medical word into another never does.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib.resources import files

from msgspec import Struct, convert
from rapidfuzz.distance import OSA

from hoofbeat.text import without_accents


class NameLists(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The lists of the file; what each is for stands there."""

    species: tuple[str, ...]
    names_after: tuple[str, ...]
    names_before: tuple[str, ...]
    after_letter_a: tuple[str, ...]
    none_of: tuple[str, ...]
    all_of: tuple[str, ...]
    swaps: tuple[tuple[str, str], ...]


@cache
def load_names() -> NameLists:
    """The names, read once."""
    raw = (files("hoofbeat.answering.choices") / "data" / "names.toml").read_text(encoding="utf-8")
    return convert(tomllib.loads(raw), NameLists)


def one_of(words: Iterable[str]) -> str:
    """A pattern for any of the words."""
    return "|".join(re.escape(word) for word in words)


class FoldedWord(Struct, frozen=True):
    """A word of a text: how it is compared, and where it stands."""

    folded: str
    start: int
    end: int


_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"  # scripts without spaces: one sign, one word
    r"|(?<![\w.)])[-−]?\d+(?:[.,]\d+)*|\d+(?:[.,]\d+)*|(?:(?![\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])[^\W\d_])+"
    r"|[<>≤≥±+%↑↓=&]"
)
_WRITTEN = {
    "&": "and", "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "κ": "kappa", "λ": "lambda",
    "μ": "mu", "ω": "omega", "Δ": "delta",
}  # fmt: skip
_LONG = 7  # letters; in a shorter word one letter makes another word
_ARTICLES = {"the", "The", "an", "An", "a"}


def option_words(text: str, *, keep_articles: bool = False) -> list[FoldedWord]:
    """The words in which an option is looked for: folded, with signed numbers; no articles, no possessive s."""
    words = []
    for match in _WORD.finditer(text):
        raw = match.group()
        if raw == "s" and match.start() and text[match.start() - 1] in "'’":
            continue
        article = raw in _ARTICLES or (raw == "A" and _opens_sentence(text, match.start()))
        if keep_articles or not article:
            words.append(FoldedWord(_fold(raw), match.start(), match.end()))
    return words


def _opens_sentence(text: str, position: int) -> bool:
    """Whether the letter A here can be an article: at a sentence's beginning, and more follows. Vitamin A is none."""
    before = text[max(0, position - 40) : position].rstrip(" ")
    return (not before or before[-1] in ".!?:\n") and bool(re.match(r"A \w", text[position : position + 3]))


@lru_cache(maxsize=50_000)
def _fold(raw: str) -> str:
    if raw in _WRITTEN:
        return _WRITTEN[raw]
    if raw.isascii():
        return raw.lower().replace("ae", "e").replace("oe", "e")
    bare = without_accents(raw)
    return bare.casefold().replace("ae", "e").replace("oe", "e").replace("−", "-")


def near(said: str, meant: str) -> bool:
    """Whether a word is another with a slip of the pen in it: a longer word, the same beginning, no other word."""
    if said == meant:
        return True
    if not (said.isalpha() and meant.isalpha()):
        return False
    if said in (meant + "s", meant + "es") or meant in (said + "s", said + "es"):
        return True
    if min(len(said), len(meant)) < _LONG or said[:2] != meant[:2] or OSA.distance(said, meant, score_cutoff=1) > 1:
        return False
    return not any(_swapped(said, meant, one, other) for one, other in load_names().swaps)


def _swapped(said: str, meant: str, one: str, other: str) -> bool:
    """Whether the words differ in nothing but one of the pairs, either way round."""
    for first, second in ((one, other), (other, one)):
        if first and first in said and said.replace(first, second, 1) == meant:
            return True
    return False
