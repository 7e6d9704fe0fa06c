"""Whether a text that a model wrote can stand in a benchmark at all, before anyone asks whether it is good.

Rules, not opinions: it has words, in the source's language, not far too many, and does not repeat itself; nothing of a
template, of JSON or of a chat is left in it; and it does not talk to a model. The patterns are data
(`injections.toml`).
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

from msgspec import Struct

from hoofbeat.corpus.filters.language import detect_language
from hoofbeat.recipes.items import Rejection
from hoofbeat.recipes.wordlists import word_data
from hoofbeat.retrieval.chunking import sentence_spans
from hoofbeat.text import caseless

__all__ = ["sound"]

_READ = 100_000
_SHOWN = 120
_AROUND = 30
_OFTEN = 3  # times the same sentence stands in a text that repeats itself
_LEAST_REPEATED = 5  # words of a sentence that counts there


class _Patterns(Struct, frozen=True):
    instructions: tuple[re.Pattern[str], ...]
    leftovers: tuple[re.Pattern[str], ...]


@cache
def _patterns() -> _Patterns:
    data = word_data("injections")
    flags = re.IGNORECASE | re.MULTILINE
    return _Patterns(
        tuple(re.compile(each, flags) for each in data["instructions"]),
        tuple(re.compile(each, flags) for each in data["leftovers"]),
    )


def sound(text: str, *, what: str, source: str = "", most_words: int = 0) -> Rejection | None:
    """Why a text can't be used as the `what` (a stem, an answer, ...), or nothing.

    `source` is what it was made from: the text must be in its language. `most_words` is a limit, 0 is none.
    """
    if not any(map(str.isalnum, text)):
        return Rejection(reason=f"the {what} is empty")
    words = len(text.split())
    if most_words and words > most_words:
        return Rejection(reason=f"the {what} is far too long", details=f"{words} words, at most {most_words}")
    read = text[:_READ]
    for pattern in _patterns().instructions:
        if found := pattern.search(read):
            return Rejection(reason=f"the {what} holds an instruction to a model", details=_shown(read, found))
    for pattern in _patterns().leftovers:
        if found := pattern.search(read):
            return Rejection(reason=f"the {what} holds leftovers of a template or a chat", details=_shown(read, found))
    return _wrong_language(text, what, source) or _repeats(read, what)


def _repeats(text: str, what: str) -> Rejection | None:
    """Whether a text says the same sentence over and over, as a model that has lost its thread does."""
    said = Counter(caseless(text[start:end]) for start, end in sentence_spans(text))
    sentence, times = said.most_common(1)[0] if said else ("", 0)
    if times < _OFTEN or len(sentence.split()) < _LEAST_REPEATED:
        return None
    return Rejection(reason=f"the {what} repeats itself", details=f"{times} times: {sentence[:_SHOWN]}")


def _wrong_language(text: str, what: str, source: str) -> Rejection | None:
    expected = detect_language(source) if source else "unknown"
    found = detect_language(text)
    if "unknown" in (expected, found) or expected == found:
        return None
    return Rejection(
        reason=f"the {what} is in another language than its source", details=f"{found}, the source is in {expected}"
    )


def _shown(text: str, found: re.Match[str]) -> str:
    start, end = max(0, found.start() - _AROUND), min(len(text), found.end() + _AROUND)
    return " ".join(text[start:end].split())[:_SHOWN]
