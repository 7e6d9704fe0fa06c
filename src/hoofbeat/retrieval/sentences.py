"""Where sentences end, as character offsets: quick rules for English clinical prose and for ideographic full stops.

A full stop ends a sentence when white space and something that can begin one follow, unless it belongs to an
abbreviation (`Fig.`, `et al.`, `i.v.`), an initial (`J. Smith`) or a list number (`2. Findings` keeps its number).
"""

from __future__ import annotations

import re

__all__ = ["sentence_spans"]

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


def sentence_spans(text: str, start: int = 0, end: int | None = None) -> list[tuple[int, int]]:
    """Start and end of every sentence between two offsets, without the white space around it."""
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
    if bare.lower() in _ABBREVIATIONS or _INITIAL.fullmatch(bare):
        return False
    return not (_NUMBER.fullmatch(bare) and not text[begin : word.start()].strip())


def _add(spans: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        spans.append((start, end))
