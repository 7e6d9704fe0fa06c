"""Whether a text is a question, and whether it can be understood without what stood around it: rules, no model.

The patterns are data (`asking.toml`).
"""

from __future__ import annotations

import re
from functools import cache

from hoofbeat.corpus.filters.language import detect_language
from hoofbeat.recipes.items import Rejection
from hoofbeat.recipes.messages.identifiers import words_of
from hoofbeat.recipes.wordlists import word_data

__all__ = ["asks", "stands_alone", "well_formed"]

_SURE_WORDS = 60
_TELLING_WORDS = 12
_MARK = re.compile(r"\[\w+\]")


@cache
def _patterns(name: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(each, re.IGNORECASE | re.MULTILINE) for each in words_of("asking", name))


def asks(text: str) -> bool:
    """Whether a text asks something, with or without a question mark."""
    return any(pattern.search(text) for pattern in _patterns("asks"))


def well_formed(text: str, *, least: int, most: int, language: str) -> Rejection | None:
    """Why a harvested text is no usable question, or nothing. `language` may be empty: any will do."""
    words = len(_MARK.sub("", text).split())
    if words < least:
        return Rejection(reason="too short for a question", details=f"{words} words, at least {least}")
    if words > most:
        return Rejection(reason="too long for a question", details=f"{words} words, at most {most}")
    found = _another_language(text, words, language) if language else ""
    if found:
        return Rejection(reason="in another language", details=f"{found}, wanted is {language}")
    if any(pattern.search(text) for pattern in _patterns("administrative")):
        return Rejection(reason="administrative by its words")
    return None if asks(text) else Rejection(reason="nothing is asked")


def _another_language(text: str, words: int, wanted: str) -> str:
    """The language of a text that is not in the one wanted; in short texts little words outweigh the detector."""
    found = detect_language(text)
    if found == wanted:
        return ""
    table = word_data("asking")["little"]
    assert isinstance(table, dict)
    known = set(str(table.get(wanted, "")).split())
    little = len(known & set(re.findall(r"\w+", text.lower())))
    if found == "unknown":
        return found if known and words >= _TELLING_WORDS and not little else ""
    return "" if words < _SURE_WORDS and little > 1 else found


def stands_alone(text: str, language: str = "") -> Rejection | None:
    """Why a rewritten question can't be understood by itself, or nothing."""
    if language and _another_language(text, len(text.split()), language):
        return Rejection(reason="the rewritten question is in another language")
    if text.count("?") == 0 or not text.rstrip(" \"'”’)").endswith("?"):
        return Rejection(reason="the rewritten question does not end as a question")
    if _MARK.search(text):
        return Rejection(reason="a mark of something removed is left in the rewritten question")
    if any(pattern.search(text) for pattern in (*_patterns("hanging"), *_patterns("headless"))):
        return Rejection(reason="the rewritten question does not stand alone")
    return None
