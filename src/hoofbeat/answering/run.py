"""A run folder: the questions asked, every planned answer, and in the manifest how they came about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from hoofbeat.models import Model
from hoofbeat.records import Answer, Question
from hoofbeat.store import Artefact, Counts, InputRef, Manifest, create, open_artefact
from hoofbeat.store.tables import read_jsonl, write_jsonl

__all__ = ["Run", "count_outcomes", "write_run"]

KIND = "run"


class Run:
    """An opened run."""

    def __init__(self, artefact: Artefact) -> None:
        self.artefact = artefact
        self.questions: list[Question] = list(read_jsonl(artefact.file("questions.jsonl"), Question))
        self.answers: list[Answer] = list(read_jsonl(artefact.file("answers.jsonl"), Answer))

    @staticmethod
    def open(path: Path) -> Run:
        """Open a run folder."""
        return Run(open_artefact(path, KIND))


def count_outcomes(failures: Iterable[str | None]) -> Counts:
    """Counts of a stage from each item's failure kind (None: it came through)."""
    tally = Counter(failures)
    kept = tally.pop(None, 0)
    kinds = {str(kind): count for kind, count in sorted(tally.items(), key=lambda pair: str(pair[0]))}
    return Counts(kept=kept, failed=sum(kinds.values()), failures=kinds)


def write_run(
    target: Path,
    *,
    questions: Sequence[Question],
    answers: Sequence[Answer],
    model: Model,
    inputs: Iterable[InputRef],
    prompts: dict[str, str],
    settings: dict[str, object],
    seeds: dict[str, int] | None = None,
    command: Sequence[str] = (),
) -> Artefact:
    """Write a run folder."""
    with create(target, replace_kind=KIND) as draft:
        write_jsonl(draft.path / "questions.jsonl", questions)
        write_jsonl(draft.path / "answers.jsonl", answers)
        draft.finish(
            Manifest(
                kind=KIND,
                title=f"answers of {model.spec}",
                command=list(command),
                inputs=list(inputs),
                settings=settings,
                seeds=seeds or {},
                models={"answer": model.identity},
                prompts=prompts,
                counts=count_outcomes(answer.failure.kind if answer.failure else None for answer in answers),
                cost=model.cost,
            )
        )
    return open_artefact(target, KIND)
