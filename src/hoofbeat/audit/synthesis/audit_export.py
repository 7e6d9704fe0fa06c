"""An audit for others: a JSON file for each question with its matrix and records, and two tables as CSV.

One table has a row for each question and document (who says what), the other a row for each pair. Both carry question,
names, answers, quotes and links, so that a reader needs no other file; formulas are neutralised. The judge's letters
for the two sources stay in the JSON and Parquet files.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from hoofbeat.audit.audit_folder import PAIRS, Audit
from hoofbeat.audit.case_records import CaseDecision, newest
from hoofbeat.audit.disagreement_cases import decisions_json, read_cases, worklist, write_worklist
from hoofbeat.audit.findings.institution_rates import InstitutionRate, institution_rates
from hoofbeat.audit.findings.pair_arrays import pairs_of
from hoofbeat.audit.findings.relations import RelationLabels
from hoofbeat.audit.pair_table import COLUMNS, each_question
from hoofbeat.audit.synthesis.synthesis_table import (
    HEADER,
    SourceStatement,
    statements_of,
    synthesis_records,
    synthesis_tables,
)
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import Pack
from hoofbeat.records import Question
from hoofbeat.store import Artefact, Counts, InputRef, Manifest, create, open_artefact
from hoofbeat.store.files import write_bytes
from hoofbeat.store.tables import write_csv, write_parquet

if TYPE_CHECKING:
    import polars

EXPORT = "audit-export"
FORMS = ("json", "csv", "parquet")
_encode = msgspec.json.Encoder().encode


def export_audit(
    audit: Audit,
    target: Path,
    forms: Sequence[str] = FORMS,
    *,
    decisions: Sequence[CaseDecision] | None = None,
    inputs: Sequence[InputRef] = (),
    command: Sequence[str] = (),
    progress: Progress = SILENT,
) -> Artefact:
    """Write `questions/*.json`, `synthesis.json`, `synthesis.csv`, `pairs.csv` and `pairs.parquet`, or some of them.

    Where an institution has several documents, `institutions.json` and `institutions.csv` have the rates within and
    between institutions. With `decisions`, `cases.json` and `cases.csv` have every disagreement with the newest one.
    """
    asked = {question.id: question for question in audit.questions}
    pairs = audit.frame(["question"]).collect().height
    tables = synthesis_tables(audit)[0] if {"json", "csv"} & set(forms) else []
    rates = audit_institution_rates(audit)
    cases = worklist(audit, read_cases(audit), newest(decisions)) if decisions is not None else []
    with create(target, replace_kind=EXPORT) as draft, progress.task("writing matrices", len(asked)) as task:
        if "json" in forms:
            (draft.path / "questions").mkdir()
            for name, rows in each_question(audit.artefact.file(PAIRS)):
                record = question_record(asked[name], rows, audit.pack)
                path = draft.path / "questions" / f"{file_name(name)}.json"
                write_bytes(path, msgspec.json.format(_encode(record), indent=1) + b"\n")
                task.advance()
            write_bytes(draft.path / "synthesis.json", msgspec.json.format(_encode(tables), indent=1) + b"\n")
            if rates:
                write_bytes(draft.path / "institutions.json", msgspec.json.format(_encode(rates), indent=1) + b"\n")
            if decisions is not None:
                write_bytes(draft.path / "cases.json", decisions_json(decisions, cases))
        if "csv" in forms:
            lines = (list(map(cell_text, record.values())) for record in synthesis_records(tables))
            write_csv(draft.path / "synthesis.csv", HEADER, lines)
            if rates:
                known = (msgspec.structs.astuple(each) for each in rates)
                cells = ([cell_text("" if value is None else value) for value in row] for row in known)
                write_csv(draft.path / "institutions.csv", InstitutionRate.__struct_fields__, cells)
            if decisions is not None:
                write_worklist(draft.path / "cases.csv", cases, audit.names)
            write_csv(draft.path / "pairs.csv", (*COLUMNS, *PAIR_WORDS), _cells(audit))
        if "parquet" in forms:
            write_parquet(draft.path / "pairs.parquet", audit.frame().collect())
        draft.finish(
            Manifest(
                kind=EXPORT,
                title=audit.artefact.manifest.title,
                command=list(command),
                inputs=[audit.artefact.reference(), *inputs],
                settings={"forms": list(forms), "labels": [label.name for label in audit.pack.labels]},
                counts=Counts(kept=pairs),
            )
        )
    return open_artefact(target, EXPORT)


def audit_institution_rates(audit: Audit) -> list[InstitutionRate]:
    """The rates within and between institutions; none where each institution has one document."""
    return institution_rates(pairs_of(audit.frame(), RelationLabels.of(audit.pack.labels)), audit.names.institution)


def question_record(question: Question, rows: polars.DataFrame, pack: Pack) -> dict[str, object]:
    """One question's pairs: labels as numbers in an N × N matrix, the diagonal consistent, null where there is none."""
    labels = [label.name for label in pack.labels]
    sources = sorted({*rows["a"].cast(str).to_list(), *rows["b"].cast(str).to_list()})
    place = {source: number for number, source in enumerate(sources)}
    matrix: list[list[int | None]] = [[None] * len(sources) for _ in sources]
    for number in range(len(sources)):
        matrix[number][number] = labels.index(pack.consistent)
    records = []
    for row in rows.iter_rows(named=True):
        a, b = place[row["a"]], place[row["b"]]
        matrix[a][b] = matrix[b][a] = None if row["label"] is None else labels.index(row["label"])
        records.append(_record(row))
    return {
        "question": question.id,
        "text": question.full_text,
        "labels": labels,
        "sources": sources,
        "matrix": matrix,
        "comparisons": records,
    }


def _record(row: dict[str, Any]) -> dict[str, object]:
    """A pair's record under the names of the paper; what it does not have is left out."""
    found: dict[str, object] = {
        "a": row["a"],
        "b": row["b"],
        "classification": row["label"],
        "basis": row["basis"],
        "reasoning": row["reasoning"],
        "divergence_topic": row["topic"],
        "clinical_significance": row["significance"],
    }
    if row["failure"] is not None:
        found["failure"] = {"kind": row["failure"], "message": row["failure_message"]}
    if row["judge"] is not None:
        used = {"model": row["judge"], "input_tokens": row["tokens_in"], "output_tokens": row["tokens_out"]}
        found["judge_metadata"] = {name: value for name, value in used.items() if value is not None}
    found["votes"] = row["votes"]
    return {name: value for name, value in found.items() if value is not None}


PAIR_WORDS = (
    "question_text", "name_a", "name_b", "answer_a", "answer_b", "quote_a", "quote_b", "section_a", "section_b",
    "link_a", "link_b",
)  # fmt: skip
"""What a pair's row in a CSV file has beside the columns of the table."""


class PairWords:
    """Question, names, answers, quotes and links of pairs on some questions (None: all), for CSV files."""

    def __init__(self, audit: Audit, questions: Collection[str] | None = None) -> None:
        self._audit = audit
        self._texts = {question.id: question.full_text for question in audit.questions}
        self._said = {
            (question, each.source): each
            for question, found in statements_of(audit, questions).items()
            for each in found
        }

    def cells(self, question: str, a: str, b: str) -> list[str]:
        """The cells of one pair, in the order of `PAIR_WORDS`."""
        names = self._audit.names
        sides = [self._said.get((question, side)) or _nothing(side) for side in (a, b)]
        parts = [(each.answer, "; ".join(each.quotes), "; ".join(each.cited), link_of(each)) for each in sides]
        words = [cell for both in zip(*parts, strict=True) for cell in both]
        return [self._texts.get(question, ""), names.full(a), names.full(b), *words]

    def topic(self, topic: str, reasoning: str, a: str, b: str) -> str:
        """What the sources differ in, with the order it is told in where that is not the order of the row."""
        return self._audit.names.topic_in_order(topic, reasoning, a, b)

    def reasoning(self, reasoning: str, a: str, b: str) -> str:
        """The judge's words with the names of the sources."""
        return self._audit.names.with_names(reasoning, a, b)


def _nothing(source: str) -> SourceStatement:
    return SourceStatement(source=source, name=source, state="")


def link_of(statement: SourceStatement) -> str:
    """Where the passage is: the document's address where its metadata has one, and the passages' ids."""
    return " ".join(filter(None, (statement.url, *statement.passages)))


def cell_text(value: object) -> str:
    """A value of a record as a cell: parts of a list are apart by semicolons."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "; ".join(map(str, value)) if isinstance(value, Iterable) and not isinstance(value, str) else str(value)


def _cells(audit: Audit) -> Iterator[list[str]]:
    words = PairWords(audit)
    place, topic = COLUMNS.index("reasoning"), COLUMNS.index("topic")
    for _, rows in each_question(audit.artefact.file(PAIRS)):
        for row in rows.select(COLUMNS).iter_rows():
            question, a, b, *_ = cells = [_written(cell) for cell in row]
            cells[topic] = words.topic(cells[topic], cells[place], a, b)
            cells[place] = words.reasoning(cells[place], a, b)
            yield [*cells, *words.cells(question, a, b)]


def _written(cell: object) -> str:
    return " ".join(cell) if isinstance(cell, list) else "" if cell is None else str(cell)


def file_name(name: str) -> str:
    """A question's id as a file's name: as it is where that is safe, else its safe characters and a hash."""
    safe = re.sub(r"[^\w.-]+", "-", name, flags=re.ASCII)[:80].strip(".-")
    if safe and safe == name:
        return name
    return f"{safe or 'question'}-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"
