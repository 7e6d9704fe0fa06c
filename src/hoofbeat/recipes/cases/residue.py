"""What a printed report has and an exam question should not: call-outs, rights, companies, tables beyond the diagnosis.

A call-out such as "(Fig. 1)", "(see Table 2)" or "[3, 4]" says nothing of the patient, so a rule may take it out; what
it takes out is listed like any other cut. All other residue is only noticed here: the model that picks the sentences is
told of it, rewords the sentence or leaves it out. The words are data (`residue.toml`).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache

from msgspec import Struct

from hoofbeat.recipes.wordlists import word_data

CALL_OUT = "points to a figure, table or reference (rule)"
"""Why a mark in brackets is cut."""

TABLE = "table"
"""Among what an examinee sees: a table, whichever its number."""

_BRACKETS = re.compile(r"[(\[]([^()\[\]]*)[)\]]")
_WORD = re.compile(r"[^\W\d_]{2,}")
_NUMBER = re.compile(r"\d+")
_BLANKS = re.compile(r"[^\S\n]*")
_NO_BLANK = frozenset(("", "\n", *".,;:)]"))
_POINTS = "points to something that is not shown"
_TIMES = 2  # of a table that runs on: admission and a later day


class _Rules(Struct, frozen=True):
    pointing: re.Pattern[str]
    around: frozenset[str]
    citation: re.Pattern[str]
    noticed: dict[str, re.Pattern[str]]
    cell: re.Pattern[str]
    time: re.Pattern[str]


@cache
def _rules() -> _Rules:
    data = word_data("residue")
    return _Rules(
        pointing=re.compile(data["pointing"], re.IGNORECASE),
        around=frozenset(data["around"].split()),
        citation=re.compile(data["citation"]),
        noticed={what: re.compile(pattern) for what, pattern in data["noticed"].items()},
        cell=re.compile(data["table"]["cell"]),
        time=re.compile(data["table"]["time"]),
    )


def call_outs(text: str, seen: Collection[str] = ()) -> list[tuple[int, int]]:
    """Where marks in brackets point to a figure, table or reference, with the blanks around them.

    What points to one of the figures that are `seen`, by their numbers, stays.
    """
    rules = _rules()
    found = [match.span() for match in rules.citation.finditer(text)]
    for match in _BRACKETS.finditer(text):
        words = {word.lower() for word in _WORD.findall(match[1])}
        if rules.pointing.search(match[1]) and words <= rules.around and not _sees(match[1], seen):
            found.append(match.span())
    places: list[tuple[int, int]] = []
    for start, end in (_with_blanks(text, *place) for place in sorted(found)):
        if places and start <= places[-1][1]:  # "[3, 4] (see Table 2)"
            places[-1] = places[-1][0], max(end, places[-1][1])
        else:
            places.append((start, end))
    return places


def _sees(words: str, seen: Collection[str]) -> bool:
    """Whether words point to something that the examinee sees."""
    if words.lower().lstrip().startswith(TABLE):
        return TABLE in seen
    return any(number in seen for number in _NUMBER.findall(words))


def _with_blanks(text: str, start: int, end: int) -> tuple[int, int]:
    """A mark with the blanks around it, and with a full stop after it where one is before it."""
    start = len(text[:start].rstrip(" \t\xa0"))
    if text[start - 1 : start] == "." and text[end : end + 1] == ".":
        end += 1
    blanks = _BLANKS.match(text, end)
    return start, blanks.end() if blanks else end


def without_call_outs(text: str, seen: Collection[str] = ()) -> str:
    """A text without its marks for figures, tables and references."""
    kept, at = "", 0
    for start, end in call_outs(text, seen):
        kept, at = kept + text[at:start] + ("" if text[end : end + 1] in _NO_BLANK else " "), end
    return (kept + text[at:]).strip()


def without_pointers(text: str) -> str:
    """A text without marks for figures, tables and references, and without their names ("Figure 2") elsewhere."""
    return _rules().noticed[_POINTS].sub("", without_call_outs(text))


def is_table(sentence: str) -> bool:
    """Whether a sentence is a table or a row of one."""
    return _rules().cell.search(sentence) is not None


def residue(sentence: str, seen: Collection[str] = ()) -> list[str]:
    """What of a sentence is residue that a model has to decide about, in words that tell it why."""
    rules, told, table = _rules(), without_call_outs(sentence, seen), is_table(sentence)
    found = [
        f"{match[0]!r} {what}"
        for what, pattern in rules.noticed.items()
        for match in pattern.finditer(told)
        if not _sees(match[0], (*seen, TABLE) if table else seen)
    ]
    times = dict.fromkeys(match[0].lower() for match in rules.time.finditer(sentence)) if table else {}
    if len(times) >= _TIMES:
        found.append(f"it is a table with several times ({', '.join(times)}) and may run beyond the diagnosis")
    return list(dict.fromkeys(found))
