"""An audit's folder, opened and exported: its answers and pairs are read when they are asked for.

The export is for others: a JSON file for each question with its matrix and records, and the table of pairs as CSV."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from hoofbeat.audit.pair_table import COLUMNS, each_question, read_comparisons, scan_table
from hoofbeat.audit.source_names import AuditSource, SourceNames
from hoofbeat.errors import UsageError
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import Pack, load_pack
from hoofbeat.prompts.packs import decode_pack
from hoofbeat.records import Answer, Comparison, Question
from hoofbeat.store import Artefact, Counts, Manifest, create, open_artefact
from hoofbeat.store.artefact import ArtefactFolder
from hoofbeat.store.files import read_bytes, write_bytes
from hoofbeat.store.tables import read_jsonl, write_csv, write_parquet

if TYPE_CHECKING:
    import polars

KIND = "audit"
PAIRS = "comparisons.parquet"
ORDER = "order.jsonl"
ECONOMY = "economy.jsonl"
PACK = "pack.json"


class OrderProbe(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One pair judged twice, the second time with its answers exchanged; a label that is missing is empty."""

    question: str
    a: str
    b: str
    label: str
    swapped: str = ""
    failure: str = ""


class EconomyProbe(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One pair whose label was spread over its group, judged for real; a label that is missing is empty."""

    question: str
    a: str
    b: str
    spread: str
    judged: str = ""
    failure: str = ""


class Audit(ArtefactFolder):
    """An opened audit. Lists are read when first asked for; iterators and the frame hold little at a time."""

    @staticmethod
    def open(path: Path) -> Audit:
        """Open an audit folder."""
        return Audit(open_artefact(path, KIND))

    @cached_property
    def questions(self) -> list[Question]:
        """The questions that were asked."""
        return list(read_jsonl(self.artefact.file("questions.jsonl"), Question))

    @cached_property
    def sources(self) -> list[AuditSource]:
        """The sources that were asked."""
        return list(read_jsonl(self.artefact.file("sources.jsonl"), AuditSource))

    @cached_property
    def answers(self) -> list[Answer]:
        """Every answer of every source, all of them in memory."""
        return list(self.each_answer())

    @cached_property
    def comparisons(self) -> list[Comparison]:
        """Every pair, all of them in memory."""
        return list(self.each_comparison())

    @cached_property
    def pack(self) -> Pack:
        """The domain pack the audit was made with: the one kept in its folder, else the one it names."""
        if self.artefact.has(PACK):
            path = self.artefact.file(PACK)
            return decode_pack(read_bytes(path), str(path))
        return load_pack(str(self.artefact.manifest.settings.get("pack", "")).partition("@")[0])

    @cached_property
    def names(self) -> SourceNames:
        """What people call the sources, by the facet that the pack names."""
        try:
            return SourceNames(self.sources, self.pack.source_facet, self.pack.group_facet)
        except UsageError:  # a pack that is not here any more
            return SourceNames(self.sources)

    @property
    def judges(self) -> list[str]:
        """The judges' identities, in the order of their votes."""
        return judge_identities(self.artefact.manifest)

    @property
    def mode(self) -> str:
        """How pairs were judged: `full`, or `economy`."""
        return str(self.artefact.manifest.settings.get("mode", "full"))

    @cached_property
    def order_probes(self) -> list[OrderProbe]:
        """Pairs that were judged again with their answers exchanged; none where no probe was asked for."""
        return list(read_jsonl(self.artefact.file(ORDER), OrderProbe)) if self.artefact.has(ORDER) else []

    @cached_property
    def economy_probes(self) -> list[EconomyProbe]:
        """Labels that economy spread and that were then judged for real."""
        return list(read_jsonl(self.artefact.file(ECONOMY), EconomyProbe)) if self.artefact.has(ECONOMY) else []

    def each_answer(self) -> Iterator[Answer]:
        """Every answer, one at a time."""
        return read_jsonl(self.artefact.file("answers.jsonl"), Answer)

    def each_comparison(self) -> Iterator[Comparison]:
        """Every pair, some at a time."""
        return read_comparisons(self.artefact.file(PAIRS))

    def frame(self, columns: Sequence[str] | None = None) -> polars.LazyFrame:
        """The table of pairs as a lazy frame, or some of its columns."""
        frame = scan_table(self.artefact.file(PAIRS))
        return frame if columns is None else frame.select(list(columns))


def judge_identities(manifest: Manifest) -> list[str]:
    """The judges that a manifest names: the role `judge`, or `judge: …` for each of several."""
    return [name for role, name in manifest.models.items() if role.partition(":")[0] == "judge"]


EXPORT = "audit-export"
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
    with create(target, replace_kind=EXPORT) as draft, progress.task("writing matrices", len(asked)) as task:
        if "json" in forms:
            (draft.path / "questions").mkdir()
            for name, rows in each_question(audit.artefact.file(PAIRS)):
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
                kind=EXPORT,
                title=audit.artefact.manifest.title,
                command=list(command),
                inputs=[audit.artefact.reference()],
                settings={"forms": list(forms), "labels": [label.name for label in audit.pack.labels]},
                counts=Counts(kept=pairs),
            )
        )
    return open_artefact(target, EXPORT)


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


def _cells(audit: Audit) -> Iterator[list[str]]:
    for _, rows in each_question(audit.artefact.file(PAIRS)):
        for row in rows.select(COLUMNS).iter_rows():
            yield [" ".join(cell) if isinstance(cell, list) else "" if cell is None else str(cell) for cell in row]


def file_name(name: str) -> str:
    """A question's id as a file's name: as it is where that is safe, else its safe characters and a hash."""
    safe = re.sub(r"[^\w.-]+", "-", name, flags=re.ASCII)[:80].strip(".-")
    if safe and safe == name:
        return name
    return f"{safe or 'question'}-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"
