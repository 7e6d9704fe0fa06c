"""An audit for others: a JSON file for each question with its matrix and records, and the table of pairs as CSV."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from hoofbeat.audit.audit_folder import OLD_PAIRS, PAIRS, Audit
from hoofbeat.audit.pair_table import COLUMNS, each_question
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import Pack
from hoofbeat.records import Question
from hoofbeat.store import Artefact, Counts, Manifest, create, open_artefact
from hoofbeat.store.atomic_files import write_bytes
from hoofbeat.store.tables import write_csv, write_parquet

if TYPE_CHECKING:
    import polars

KIND = "audit-export"
FORMS = ("json", "csv", "parquet")
_encode = msgspec.json.Encoder().encode


def export_audit(
    audit: Audit,
    target: Path,
    forms: Sequence[str] = FORMS,
    *,
    command: Sequence[str] = (),
    progress: Progress = SILENT,
) -> Artefact:
    """Write `questions/*.json`, `pairs.csv` and `pairs.parquet`, or some of them."""
    asked = {question.id: question for question in audit.questions}
    pairs = audit.frame(["question"]).collect().height
    with create(target, replace_kind=KIND) as draft, progress.task("writing matrices", len(asked)) as task:
        if "json" in forms:
            (draft.path / "questions").mkdir()
            for name, rows in _each_question(audit):
                record = question_record(asked[name], rows, audit.pack)
                path = draft.path / "questions" / f"{file_name(name)}.json"
                write_bytes(path, msgspec.json.format(_encode(record), indent=1) + b"\n")
                task.advance()
        if "csv" in forms:
            write_csv(draft.path / "pairs.csv", COLUMNS, _cells(audit))
        if "parquet" in forms:
            write_parquet(draft.path / "pairs.parquet", audit.frame().collect())
        draft.finish(
            Manifest(
                kind=KIND,
                title=audit.artefact.manifest.title,
                command=list(command),
                inputs=[audit.artefact.reference()],
                settings={"forms": list(forms), "labels": [label.name for label in audit.pack.labels]},
                counts=Counts(kept=pairs),
            )
        )
    return open_artefact(target, KIND)


def _each_question(audit: Audit) -> Iterator[tuple[str, polars.DataFrame]]:
    if audit.artefact.has(PAIRS):
        yield from each_question(audit.artefact.file(PAIRS))
        return
    assert audit.artefact.has(OLD_PAIRS)
    for rows in audit.frame().collect().partition_by("question", maintain_order=True):
        yield rows["question"][0], rows


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
    return {name: value for name, value in found.items() if value is not None}


def _cells(audit: Audit) -> Iterator[list[str]]:
    for _, rows in _each_question(audit):
        for row in rows.select(COLUMNS).iter_rows():
            yield [" ".join(cell) if isinstance(cell, list) else "" if cell is None else str(cell) for cell in row]


def file_name(name: str) -> str:
    """A question's id as a file's name: as it is where that is safe, else its safe characters and a hash."""
    safe = re.sub(r"[^\w.-]+", "-", name, flags=re.ASCII)[:80].strip(".-")
    if safe and safe == name:
        return name
    return f"{safe or 'question'}-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"
