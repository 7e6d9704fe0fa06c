"""The sections of a document as HERO reads them: long ones by the sub-headings inside them, tiny ones with others.

Web pages and databases give a guideline's recommendations as one section of many thousand characters. Its sub-headings
are there, but only as short lines among the paragraphs. Such a section is no parent: a question about one of its
recommendations would bring all of them. And what such sources call a section may be one word ("Treatment", under
"Guideline Category"), which proves nothing.

The text stays as it is: only the sections laid over it change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from msgspec.structs import replace

from hoofbeat.corpus.parsers.prose import MAX_HEADING, MAX_HEADING_RUN, MIN_BODY, may_be_heading
from hoofbeat.records import Document, Section

LONG_SECTION = 2_000
"""Characters. A section up to this length is about two children long: sub-headings in it are not looked for."""

TINY_SECTION = 4
"""Words. A section of no more is read together with the section before it, where both are on the same level."""

_BETWEEN = " › "
_BLOCK = re.compile(r"[^\n].*?(?=\n[ \t]*\n|\Z)", re.DOTALL)
_GOES_ON = re.compile(r"[a-z](?![.)])|[-–—]\s*[a-zA-Z]|[,.;:(\])}%=+<>≥≤]|\d{1,2}(?:\Z|[,;])")
_CUT_OFF = re.compile(
    r"(?:,|\b(?:after|an?|and|are|as|at|before|between|by|during|for|from|if|in|into|is|of|on|or|over|per|see|than|that"
    r"|the|to|under|until|using|was|were|when|which|with|within|without|word))$"
)
# cells of a table of grades, which web pages give line by line: "B", "Level II", "R15", "Very low"
_GRADE = re.compile(
    r"(?:(?:level|class|grade|category)\s+)?(?:[a-z]?\d{0,3}[a-d]?|[ivx]{1,4}[a-d]?)|(?:very )?(?:high|low)|moderate"
    r"|intermediate",
    re.IGNORECASE,
)


def continues(before: str, after: str) -> bool:
    """Whether a block goes on with the sentence of the block before it.

    Texts taken from web pages put words in italics and other inline elements on lines of their own.
    """
    return bool(_GOES_ON.match(after) or _CUT_OFF.search(before))


def with_subsections(document: Document) -> Document:
    """The document with sub-headings as sections, and without tiny sections."""
    kept: list[Section] = []
    for section in sorted(document.sections, key=lambda section: (section.start, section.end)):
        if kept and _is_tiny(document, section) and _alike(kept[-1], section):
            kept[-1] = replace(kept[-1], end=section.end)
        elif section.end - section.body > LONG_SECTION:
            kept += _divided(document, section)
        else:
            kept.append(section)
    return replace(document, sections=tuple(kept))


def _is_tiny(document: Document, section: Section) -> bool:
    words = document.section_text(section).split(maxsplit=TINY_SECTION)
    return 0 < len(words) <= TINY_SECTION


def _alike(before: Section, section: Section) -> bool:
    """Whether a section may be read with the one before it: both are written, and of the same kind."""
    written = before.body < before.end <= section.start
    return written and (before.level, before.role) == (section.level, section.role)


class _Block(NamedTuple):
    """A paragraph, with the blocks that go on with its sentence; `fixed` ones are tables and figures."""

    start: int
    end: int
    text: str
    fixed: bool = False


def _divided(document: Document, section: Section) -> Iterator[Section]:
    """A section as what stands before its first sub-heading, and a section for each sub-heading."""
    blocks = _blocks(document, section)
    runs = [run for run in _runs(blocks) if len(run) <= MAX_HEADING_RUN and _is_body(blocks, run[-1] + 1)]
    begins = [blocks[run[0]].start for run in runs]
    opening = begins[0] if begins else section.end
    if document.text[section.body : opening].strip() or section.heading:
        yield replace(section, end=_trimmed(document.text, section.body, opening))
    for run, (start, end) in zip(runs, pairwise([*begins, section.end]), strict=True):
        heading = _BETWEEN.join(blocks[place].text for place in run)
        body = blocks[run[-1] + 1].start
        yield replace(
            section,
            heading=heading,
            level=section.level + 1,
            start=start,
            body=body,
            end=_trimmed(document.text, body, end),
        )


def _blocks(document: Document, section: Section) -> list[_Block]:
    tables = [(each.start, each.end) for each in document.tables]
    fixed = [*tables, *((each.start, each.end) for each in document.figures)]
    found: list[_Block] = []
    for match in _BLOCK.finditer(document.text, section.body, section.end):
        text = match[0].strip()
        if not text:
            continue
        is_fixed = any(start < match.end() and match.start() < end for start, end in fixed)
        last = found[-1] if found else None
        if last is not None and not (last.fixed or is_fixed) and continues(last.text, text):
            found[-1] = _Block(last.start, match.end(), document.text[last.start : match.end()])
        else:
            found.append(_Block(match.start(), match.end(), text, is_fixed))
    return found


def _runs(blocks: Sequence[_Block]) -> Iterator[list[int]]:
    """Blocks one after the other that may be headings."""
    run: list[int] = []
    for place in range(len(blocks)):
        if _may_be_heading(blocks, place):
            run.append(place)
        elif run:
            yield run
            run = []


def _may_be_heading(blocks: Sequence[_Block], place: int) -> bool:
    block = blocks[place]
    if block.fixed or block.text.endswith(":") or _GRADE.fullmatch(block.text) or not may_be_heading(block.text):
        return False
    before = blocks[place - 1].text if place else ""
    # the value of a label ("Policy level:"), or a name in the middle of a sentence
    return not before.endswith(":") and (len(before) <= MAX_HEADING or before[-1] in ".!?)]}\"'”’…;" or "\n" in before)


def _is_body(blocks: Sequence[_Block], place: int) -> bool:
    """Whether what follows a heading is prose, a list or a table: more than a label or a list of names."""
    if place >= len(blocks):
        return False
    block = blocks[place]
    return block.fixed or len(block.text) >= MIN_BODY


def _trimmed(text: str, start: int, end: int) -> int:
    """The end without the white space before it."""
    return start + len(text[start:end].rstrip())
