"""A benchmark folder: `questions.jsonl`, and `qrels.tsv` in BEIR's layout where questions name their documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from hoofbeat.corpus.readers.qrels import read_qrels, write_qrels
from hoofbeat.errors import InputError
from hoofbeat.records import Question
from hoofbeat.store import Artefact, Counts, InputRef, Manifest, create, open_artefact
from hoofbeat.store.tables import read_jsonl, write_jsonl

__all__ = ["Benchmark", "write_benchmark"]

KIND = "benchmark"


class Benchmark:
    """An opened benchmark."""

    def __init__(self, artefact: Artefact) -> None:
        self.artefact = artefact
        self.questions: list[Question] = list(read_jsonl(artefact.file("questions.jsonl"), Question))

    @staticmethod
    def open(path: Path) -> Benchmark:
        """Open a benchmark folder."""
        return Benchmark(open_artefact(path, KIND))

    def qrels(self) -> dict[str, dict[str, int]]:
        """The judged documents of each question that names some, with their grades."""
        if self.artefact.has("qrels.tsv"):
            return read_qrels(self.artefact.file("qrels.tsv"))
        return {q.id: dict.fromkeys(q.documents, 1) for q in self.questions if q.documents}

    def first(self, count: int | None) -> list[Question]:
        """The first questions, or all of them; a number below 1 is refused."""
        if count is not None and count < 1:
            raise InputError(f"{count} questions can't be asked", fix="give --limit 1 or more")
        return self.questions[:count]


def write_benchmark(
    target: Path,
    questions: Sequence[Question],
    *,
    title: str,
    inputs: Iterable[InputRef],
    counts: Counts,
    command: Sequence[str] = (),
    settings: dict[str, object] | None = None,
    qrels: Mapping[str, Mapping[str, int]] | None = None,
) -> Artefact:
    """Write a benchmark folder; `qrels` are grades, where documents answer more or less well or are judged not to."""
    with create(target, replace_kind=KIND) as draft:
        write_jsonl(draft.path / "questions.jsonl", questions)
        grades = qrels or {q.id: dict.fromkeys(q.documents, 1) for q in questions if q.documents}
        if grades:
            write_qrels(draft.path / "qrels.tsv", grades, "beir")
        draft.finish(
            Manifest(
                kind=KIND,
                title=title,
                command=list(command),
                inputs=list(inputs),
                counts=counts,
                settings=settings or {},
            )
        )
    return open_artefact(target, KIND)
