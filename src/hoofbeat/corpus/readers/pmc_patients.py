"""PMC-Patients: 167,000 (V2: 250,000) patient summaries taken from case reports, with graded relations between them.

Published as one CSV or one JSON array with the same fields: `patient_uid`, `PMID`, `title`, `patient` (the summary),
`age` (pairs of number and unit), `gender`, `relevant_articles` (PMID to grade) and `similar_patients` (uid to grade);
in the CSV the last ones are written as Python literals. Files are read row by row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from hoofbeat.corpus.parsers.prose import TextBuilder, lay_out_prose
from hoofbeat.corpus.parsers.rows import ROW_SUFFIXES, Row, first_row, row_documents, table_suffix
from hoofbeat.corpus.reader import DocumentEntry, Reader, Refusal, SourceFile
from hoofbeat.errors import InputError
from hoofbeat.records import Document, Facets
from hoofbeat.text import safe_id, squeeze

_NAME = "pmc-patients"
FIELDS = frozenset({"patient_uid", "patient", "PMID"})

_YEARS = {"year": 1.0, "month": 1 / 12, "week": 7 / 365.25, "day": 1 / 365.25, "hour": 1 / 8766}
_AGE = re.compile(r"[\[(]\s*(\d+(?:\.\d+)?)\s*,\s*['\"](year|month|week|day|hour)s?['\"]\s*[\])]")
_GRADE = re.compile(r"['\"]([\w-]{1,40})['\"]\s*:\s*(\d)")


class _PmcPatients(Reader):
    name = _NAME
    summary = "PMC-Patients: patient summaries as one CSV or JSON file"
    suffixes = ROW_SUFFIXES
    takes_any = False
    max_bytes = None

    def recognises(self, path: Path) -> bool:
        """Told by the fields of the first row; a file that can't be read by its name."""
        try:
            row = first_row(path) if path.is_file() else None
        except InputError:
            return _is_named_so(path)
        return isinstance(row, dict) and row.keys() >= FIELDS

    def holds_documents(self, path: Path, mapping: str) -> bool:  # noqa: ARG002 - its fields are known
        return table_suffix(path) != ".json" or _is_named_so(path)

    def read(self, source: SourceFile) -> Iterator[DocumentEntry | Refusal]:
        return row_documents(source.path, _document)


READER = _PmcPatients()


def _is_named_so(path: Path) -> bool:
    return path.name.lower().startswith(_NAME)


def _document(row: Row) -> Document:
    id, text = str(row.get("patient_uid") or "").strip(), row.get("patient")
    if not id or not isinstance(text, str):
        raise InputError("a field is missing: patient_uid or patient", fix="correct the row")
    builder = TextBuilder()
    lay_out_prose(text, builder)
    facets: Facets = {"pmid": str(row.get("PMID") or "").strip(), "gender": str(row.get("gender") or "").strip()}
    age = _age(row.get("age"))
    facets["age"] = "" if age is None else f"{age:.4g}"
    facets["similar_patients"] = [safe_id(other) for other in _grades(row.get("similar_patients"))]
    return Document(
        id=safe_id(id),
        title=squeeze(str(row.get("title") or "")) or id,
        text=builder.text,
        kind="patient-summary",
        sections=builder.sections(),
        facets={name: value for name, value in facets.items() if value},
    )


def _age(value: object) -> float | None:
    """The age in years, from pairs of number and unit."""
    pairs: list[tuple[str, str]] = []
    if isinstance(value, str):
        pairs = _AGE.findall(value)
    elif isinstance(value, list):
        pairs = [(str(pair[0]), str(pair[1])) for pair in value if isinstance(pair, list) and len(pair) == 2]
    try:
        years = [float(number) * _YEARS[unit] for number, unit in pairs]
    except (KeyError, ValueError):
        return None
    return sum(years) if years else None


def _grades(value: object) -> dict[str, int]:
    """Ids with grades: an object, a list (all grade 1), or either written as a literal in a cell."""
    if isinstance(value, dict):
        return {str(id): grade for id, grade in value.items() if isinstance(grade, int)}
    if isinstance(value, list):
        return {str(id): 1 for id in value if isinstance(id, str | int)}
    return {id: int(grade) for id, grade in _GRADE.findall(value)} if isinstance(value, str) else {}
