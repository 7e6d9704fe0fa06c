"""What people said of wrong answers: the file that `review export` writes of an analysis of errors, read and checked.

A line is one person's word on one answer, which is named by its code: the kind of error, whether a trained physician
would have erred too, and why the diagnosis was missed. What an adjudicator settled stands in lines of `adjudicated`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from hoofbeat.errors import InputError
from hoofbeat.judging.aspects.error_type import ERROR_TYPE
from hoofbeat.judging.blinded_sheet import refuse_lines
from hoofbeat.judging.criteria import Key, answer_key
from hoofbeat.judging.stratified_sample import blind_code
from hoofbeat.records import Answer
from hoofbeat.store import Artefact
from hoofbeat.store.atomic_files import read_bytes
from hoofbeat.store.tables import bare_cell, read_jsonl

__all__ = ["ASPECT", "ERROR", "KINDS", "PHYSICIAN", "SETTLED", "ErrorLabel", "known_answers", "read_error_labels"]

ASPECT = "error-analysis"
"""The study's form, of which the codes are made."""

ERROR = "error"
PHYSICIAN = "physician would err too"
SETTLED = "adjudicated"
"""Who speaks in what was settled."""

KINDS: dict[str, tuple[str, ...]] = {ERROR: (*ERROR_TYPE.labels, "other"), PHYSICIAN: ("yes", "no")}
"""The answers to each of the two questions that are counted."""


class ErrorLabel(Struct, frozen=True, kw_only=True):
    """One person's word on one answer. `said` has the two questions that are counted, as far as they were answered."""

    answer: Key
    annotator: str
    said: dict[str, str]
    why: str = ""
    note: str = ""


def known_answers(artefacts: Iterable[Artefact]) -> dict[str, Key]:
    """The answers of runs and judgments by their codes."""
    found: dict[str, Key] = {}
    for artefact in artefacts:
        for answer in read_jsonl(artefact.file("answers.jsonl"), Answer):
            key = answer_key(answer)
            found.setdefault(blind_code(key, ASPECT), key)
    return found


def read_error_labels(paths: Sequence[Path], answers: Mapping[str, Key]) -> list[ErrorLabel]:
    """The labels of CSV or JSONL files; every one must be of an answer that is known, and nobody labels one twice."""
    found: list[ErrorLabel] = []
    seen: dict[tuple[str, str], str] = {}
    for path in paths:
        problems = []
        for line, cells in _rows(path):
            item, who = cells.get("item", ""), cells.get("annotator", "")
            said = {name: cells[name].lower() for name in KINDS if cells.get(name)}
            wrong = [name for name, value in said.items() if value not in KINDS[name]]
            if not item or not who:
                problems.append(f"line {line}: item or annotator is missing")
            elif item not in answers:
                problems.append(f"line {line}: there is no answer with the code {item} in the folders of this report")
            elif wrong:
                name = wrong[0]
                problems.append(f"line {line}: {said[name]!r} is no answer to {name!r} ({', '.join(KINDS[name])})")
            elif (item, who) in seen:
                problems.append(f"line {line}: {who} has labelled this answer already ({seen[item, who]})")
            else:
                seen[item, who] = f"line {line} of {path.name}"
                why, note = cells.get("why", ""), cells.get("note", "")
                found.append(ErrorLabel(answer=answers[item], annotator=who, said=said, why=why, note=note))
        fix = "report the folder that the study was made of, with the file that review export wrote"
        refuse_lines(problems, path, fix)
    if not found:
        raise InputError(
            "there is no label in these files", where=str(paths[0]), fix="export the study: hoofbeat review export"
        )
    return found


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """The lines with their numbers, cells by column."""
    try:
        text = read_bytes(path).decode("utf-8-sig")
        if path.suffix == ".jsonl":
            for number, line in enumerate(text.splitlines(), start=1):
                if line.strip():
                    cells = msgspec.json.decode(line, type=dict[str, str])
                    yield number, {name: cell.strip() for name, cell in cells.items()}
            return
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        header = [name.strip().lower() for name in next(reader, [])]
        if not {"item", "annotator", PHYSICIAN} <= set(header):
            raise InputError(
                "this is no file of an analysis of errors: its columns are item, error, physician would err too, why, "
                "annotator, note",
                where=str(path),
                fix="export the study again: hoofbeat review export STUDY -o FILE.csv",
            )
        begins = reader.line_num + 1
        for row in reader:
            if any(cell.strip() for cell in row):
                yield begins, {name: bare_cell(cell).strip() for name, cell in zip(header, row, strict=False)}
            begins = reader.line_num + 1
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError, csv.Error) as err:
        raise InputError(f"the labels can't be read: {err}", where=str(path), fix="export the study again") from err
