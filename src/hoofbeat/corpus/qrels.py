"""Judgments of documents (qrels) in the three layouts they are kept in: TREC's, BEIR's and R2MED's.

    trec    `question 0 document grade`, separated by blanks
    beir    a table with the columns query-id, corpus-id and score
    r2med   JSON lines with q_id, p_id and score

Which one a file has is seen from its first line. A damaged line is an `InputError`: half the judgments would measure
something else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import msgspec
from msgspec import Struct

from hoofbeat.errors import InputError, UsageError
from hoofbeat.store.files import atomic_write, lines, open_stream, text_of
from hoofbeat.store.tables import UNREADABLE, bare_cell, write_jsonl, write_tsv
from hoofbeat.text import safe_id

Judgments = dict[str, dict[str, int]]
"""Question id to document id to grade."""

QrelsLayout = Literal["trec", "beir", "r2med"]

QRELS_LAYOUTS: tuple[str, ...] = get_args(QrelsLayout)
"""The layouts by name."""

_BEIR = ("query-id", "corpus-id", "score")
_MAX_GRADE = 1_000_000
_FIX = "a line holds question, 0, document and grade; or query-id, corpus-id and score below such a header; or JSON"


class _Row(NamedTuple):
    """One judgment as it stands in the file."""

    question: str
    document: str
    grade: str


class _R2medRow(Struct, frozen=True):
    q_id: str | int
    p_id: str | int
    score: int | float | str


def read_qrels(path: Path, *, corpus_ids: bool = False) -> Judgments:
    """The judgments of a file in any of the layouts, plain or gzipped.

    A document that was graded several times for one question keeps its highest grade. With `corpus_ids` documents are
    named as an imported corpus names them.
    """
    if not path.is_file():
        raise InputError("there is no such file", where=str(path), fix="name a file of judgments")
    judgments: Judgments = {}
    with open_stream(path) as stream:
        try:
            for number, row in _rows((number, text_of(line, number)) for number, line in lines(stream)):
                grade = _grade(row.grade, number)
                if not (row.question and row.document):
                    raise InputError(f"line {number} names no question or no document", fix=_FIX)
                grades = judgments.setdefault(row.question, {})
                document = safe_id(row.document) if corpus_ids else row.document
                grades[document] = max(grade, grades.get(document, grade))
        except InputError as err:
            raise type(err)(err.what, where=str(path), fix=err.fix) from err
    return judgments


def _rows(numbered: Iterator[tuple[int, str]]) -> Iterator[tuple[int, _Row]]:
    filled = ((number, line) for number, line in numbered if line.strip())
    first = next(filled, None)
    if first is None:
        return
    header = [cell.strip() for cell in first[1].split("\t")]
    of_line: Callable[[str], _Row]
    if first[1].lstrip().startswith("{"):
        of_line = _r2med_row
    elif set(_BEIR) <= set(header):
        of_line = _beir_row(header)
        first = None
    else:
        of_line = _trec_row
    for number, line in chain([first] if first else [], filled):
        try:
            yield number, of_line(line)
        except (ValueError, RecursionError) as err:
            raise InputError(f"line {number} is not a judgment: {err}", fix=_FIX) from err


def _trec_row(line: str) -> _Row:
    cells = line.split()
    if len(cells) != 4:
        raise ValueError(f"{len(cells)} columns instead of 4")
    return _Row(cells[0], cells[2], cells[3])


def _beir_row(header: list[str]) -> Callable[[str], _Row]:
    places = [header.index(name) for name in _BEIR]

    def of_line(line: str) -> _Row:
        cells = [bare_cell(cell) for cell in line.rstrip("\r\n").split("\t")]
        if len(cells) != len(header):
            raise ValueError(f"{len(cells)} cells, but the header has {len(header)}")
        return _Row(*(cells[place].strip() for place in places))

    return of_line


def _r2med_row(line: str) -> _Row:
    try:
        row = msgspec.json.decode(line, type=_R2medRow)
    except UNREADABLE as err:
        raise ValueError(str(err)) from err
    return _Row(str(row.q_id).strip(), str(row.p_id).strip(), str(row.score))


def _grade(text: str, number: int) -> int:
    try:
        grade = float(text)
    except ValueError:
        grade = 0.5
    if not grade.is_integer() or abs(grade) > _MAX_GRADE:
        raise InputError(f"line {number}: the grade {text[:40]!r} is not a whole number in the usual range", fix=_FIX)
    return int(grade)


def write_qrels(path: Path, judgments: Mapping[str, Mapping[str, int]], layout: QrelsLayout) -> int:
    """Write judgments in one of the layouts; returns how many there are."""
    rows = ((query, document, grade) for query, found in judgments.items() for document, grade in found.items())
    if layout == "beir":
        return write_tsv(path, _BEIR, rows)
    if layout == "r2med":
        return write_jsonl(path, ({"q_id": query, "p_id": document, "score": grade} for query, document, grade in rows))
    if layout == "trec":
        return _write_trec(path, rows)
    raise UsageError(f"there is no layout {layout!r} of judgments", fix=f"use one of: {', '.join(QRELS_LAYOUTS)}")


def _write_trec(path: Path, rows: Iterable[tuple[str, str, int]]) -> int:
    count = 0
    with atomic_write(path) as stream:
        for query, document, grade in rows:
            stream.write(f"{trec_name(query)} 0 {trec_name(document)} {grade}\n".encode())
            count += 1
    return count


def trec_name(name: str) -> str:
    """The name, if a TREC file can hold it: its columns are separated by blanks."""
    if not name or len(name.split()) != 1 or name != name.strip():
        raise InputError(f"a TREC file can't hold the name {name!r}", fix="use ids without spaces, or another layout")
    return name
