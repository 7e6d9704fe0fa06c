"""Reading harvested questions: what people asked on forums and question pages, as CSV, TSV or JSONL files.

A row has the question (`question`, `text`, `message`, ..., with a `title` or `subject` before it where there is one)
and may say where and when it was asked and about which group. Rows that can't be used are named by file and line and
go on to be counted; a file that can't be used stops the run. What is read here still tells who asked: it goes no
further than the anonymiser.

Rules decide, without a model, whether a text is a question and can be understood by itself.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from pathlib import Path

from msgspec import Struct

from hoofbeat.corpus.filters.language import count_stop_words, detect_language
from hoofbeat.corpus.parsers.rows import ROW_SUFFIXES, read_rows, table_suffix
from hoofbeat.corpus.reader import Refusal
from hoofbeat.errors import InputError
from hoofbeat.recipes.messages.anonymisation import find_identifiers
from hoofbeat.recipes.messages.identifiers import words_of
from hoofbeat.recipes.recipe_items import ItemRejection
from hoofbeat.recipes.wordlists import word_data

_SURE_WORDS = 60
_MIN_LITTLE = 2
_MARK = re.compile(r"\[\w+\]")


@cache
def _patterns(name: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(each, re.IGNORECASE | re.MULTILINE) for each in words_of("asking", name))


def asks(text: str) -> bool:
    """Whether a text asks something, with or without a question mark."""
    return any(pattern.search(text) for pattern in _patterns("asks"))


def well_formed(text: str, *, minimum: int, maximum: int, language: str) -> ItemRejection | None:
    """Why a harvested text is not a usable question, or nothing. `language` may be empty: any will do."""
    words = len(_MARK.sub("", text).split())
    if words < minimum:
        return ItemRejection(reason="too short for a question", details=f"{words} words, at least {minimum}")
    if words > maximum:
        return ItemRejection(reason="too long for a question", details=f"{words} words, at most {maximum}")
    found = _another_language(text, words, language) if language else ""
    if found:
        return ItemRejection(reason="in another language", details=f"{found} instead of {language}")
    if any(pattern.search(text) for pattern in _patterns("administrative")):
        return ItemRejection(reason="an administrative message, by its words")
    return None if asks(text) else ItemRejection(reason="it asks nothing")


def _another_language(text: str, words: int, wanted: str) -> str:
    """The language of a text that is not in the one wanted, where its little words say so; else nothing.

    Drug names, doses and half sentences have few little words: what is unknown is not in another language for that.
    """
    found = detect_language(text)
    if found == wanted:
        return ""
    table = word_data("asking")["little"]
    assert isinstance(table, dict)
    known = set(str(table.get(wanted, "")).split())
    little = len(known & set(re.findall(r"\w+", text.lower())))
    if found != "unknown":
        return "" if words < _SURE_WORDS and little > 1 else found
    counts = count_stop_words(_MARK.sub("", text))
    mine = counts.pop(wanted, 0)
    other, most = max(counts.items(), key=lambda pair: (pair[1], pair[0]), default=("", 0))
    return other if known and most >= _MIN_LITTLE and most > 2 * max(mine, little) else ""


def stands_alone(text: str, language: str = "") -> ItemRejection | None:
    """Why a rewritten question can't be understood by itself, or nothing."""
    if language and _another_language(text, len(text.split()), language):
        return ItemRejection(reason="the rewritten question is in another language")
    if text.count("?") == 0 or not text.rstrip(" \"'”’)").endswith("?"):
        return ItemRejection(reason="the rewritten question does not end as a question")
    if _MARK.search(text):
        return ItemRejection(reason="a mark of something removed is left in the rewritten question")
    if any(pattern.search(text) for pattern in (*_patterns("hanging"), *_patterns("headless"))):
        return ItemRejection(reason="the rewritten question does not stand alone")
    return None


TEXTS = ("question", "text", "message", "body", "selftext", "content", "post")
TITLES = ("title", "subject")
SOURCES = ("source", "platform", "site", "url", "link", "permalink")
DATES = ("date", "created", "posted", "created_utc", "year")
GROUPS = ("group", "organ")

_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,300}>")
_FORMULA = re.compile(r"^[\s'\"]*(?:[=\-|%]+|[+@](?=\s*[A-Za-z.]+\s*\())+\s*")
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_HOST = re.compile(r"^(https?://(?:www\.)?|www\.)?((?:[\w-]+\.)+([a-z]{2,}))(?:[/:?#]|\Z)", re.IGNORECASE)
_SECOND_LEVEL = frozenset({"co", "com", "org", "ac", "gov", "edu", "net", "nhs"})


class HarvestLimits(Struct, frozen=True, kw_only=True):
    """The limits of a harvest: bytes of a file, rows in all, characters of a question."""

    bytes: int = 100_000_000
    rows: int = 200_000
    characters: int = 20_000


_LIMITS = HarvestLimits()


class HarvestedQuestion(Struct, frozen=True, kw_only=True):
    """One harvested question as it was written, with the little that is kept of where and when it was asked."""

    file: str
    line: int
    text: str
    site: str = ""
    year: str = ""
    group: str = ""


class BadRow(Struct, frozen=True, kw_only=True):
    """A row that can't be used, and why."""

    file: str
    line: int
    why: str


def read_harvest(paths: Iterable[Path], limits: HarvestLimits = _LIMITS) -> list[HarvestedQuestion | BadRow]:
    """All rows of the files, in their order."""
    rows: list[HarvestedQuestion | BadRow] = []
    for path in paths:
        _check_file(path, limits)
        found: list[HarvestedQuestion | BadRow] = []
        for line, row in read_rows(path):
            if len(rows) + len(found) >= limits.rows:
                raise InputError(
                    f"more than {limits.rows:,} rows were harvested",
                    where=str(path),
                    fix="split the files, or allow more: harvest_rows",
                )
            found.append(BadRow(file=path.name, line=line, why=row.group) if isinstance(row, Refusal)
                         else _read(row, path.name, line, limits))  # fmt: skip
        if found and all(isinstance(each, BadRow) and each.why == _NO_TEXT for each in found):
            raise InputError(
                "no row holds a question",
                where=str(path),
                fix=f"name the column of the question one of: {', '.join(TEXTS)}",
            )
        rows += found
    return rows


def plain(text: str) -> str:
    """A cell as text: no mark-up, and nothing at its beginning that a spreadsheet would run as a formula."""
    return _FORMULA.sub("", html.unescape(_TAG.sub(" ", text))).strip()


_NO_TEXT = "the row has no question"


def _check_file(path: Path, limits: HarvestLimits) -> None:
    if not path.is_file():
        raise InputError("there is no such file", where=str(path), fix="check the path")
    if table_suffix(path) not in ROW_SUFFIXES:
        raise InputError(
            "a harvest file must be a table",
            where=str(path),
            fix=f"use one of {', '.join(ROW_SUFFIXES)}, plain or gzipped",
        )
    if path.stat().st_size > limits.bytes:
        raise InputError(
            f"the file is larger than {limits.bytes:,} bytes",
            where=str(path),
            fix="split it, or allow more: harvest_bytes",
        )


def _read(row: Mapping[str, object], file: str, line: int, limits: HarvestLimits) -> HarvestedQuestion | BadRow:
    cells = {str(name).strip().lower(): str(value) for name, value in row.items() if isinstance(value, str | int)}
    body = plain(_first(cells, TEXTS))
    if not any(map(str.isalnum, body)):
        return BadRow(file=file, line=line, why=_NO_TEXT)
    title = plain(_first(cells, TITLES))
    text = f"{title}\n{body}" if title and not body.lower().startswith(title.lower().rstrip(" .?!")) else body
    if len(text) > limits.characters:
        return BadRow(file=file, line=line, why=f"the question is longer than {limits.characters:,} characters")
    year = _YEAR.search(_first(cells, DATES))
    return HarvestedQuestion(
        file=file,
        line=line,
        text=text,
        site=_site(_first(cells, SOURCES)),
        year=year.group() if year else "",
        group=plain(_first(cells, GROUPS))[:60],
    )


def _first(cells: Mapping[str, str], names: Iterable[str]) -> str:
    return next((cells[name] for name in names if cells.get(name, "").strip()), "")


def _site(text: str) -> str:
    """The domain where it was asked: nothing that leads to the post, no other words, and no name of somebody."""
    found = _HOST.match(plain(text))
    if not found or not (found[1] or found[3].lower() in words_of("identifiers", "words", "domains")):
        return ""
    parts = found[2].lower().split(".")
    kept = parts[-3:] if len(parts) > 2 and parts[-2] in _SECOND_LEVEL else parts[-2:]
    return "" if _names_somebody(tuple(parts[:-1])) or _names_somebody(tuple(kept[:-1])) else ".".join(kept)


@lru_cache(maxsize=4096)
def _names_somebody(parts: tuple[str, ...]) -> bool:
    words = re.findall(r"[^\W\d_]+", " ".join(parts))
    return bool(find_identifiers(" ".join(map(str.capitalize, words))))
