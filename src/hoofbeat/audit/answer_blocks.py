"""The answers of an audit, block by block: each block is written before the next is planned, with all its evidence.

Of an answer no more is kept in memory than what is compared: who says what.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeVar

import msgspec

from hoofbeat.audit.answers.answers_by_source import answer_from_sources
from hoofbeat.audit.answers.answers_file import decide_absence
from hoofbeat.audit.answers.source_citations import count_citations
from hoofbeat.audit.audit_plan import AuditPlan
from hoofbeat.audit.pair_judgments import stop_if_pending
from hoofbeat.audit.pair_plan import Claim
from hoofbeat.errors import BatchPending
from hoofbeat.models import Model
from hoofbeat.models.batch import BatchBackend
from hoofbeat.progress import SILENT, Progress, Task, Within
from hoofbeat.records import Answer

T = TypeVar("T")

_BLOCK = 1024
_BLOCK_OF_A_BATCH = 50_000
_encode = msgspec.json.Encoder().encode


class AnswerTally:
    """What was answered: by outcome, by how evidence was found, and what is wrong with citations."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self.routes: Counter[str] = Counter()
        self.citations: Counter[str] = Counter()

    def add(self, answers: Sequence[Answer]) -> None:
        """Count a block."""
        for answer in answers:
            if answer.failure is not None:
                self.failures[answer.failure.kind] += 1
            self.outcomes["failed" if answer.failure else "silent" if answer.absent else "addressed"] += 1
            for step in answer.trace[:1]:
                if step.what.startswith("route: "):
                    self.routes[step.what.removeprefix("route: ")] += 1
        self.citations.update(count_citations(answers))

    def metrics(self) -> dict[str, object]:
        """The counts for a manifest."""
        named = {"answers": self.outcomes, "routes": self.routes, "citations": self.citations}
        found: dict[str, object] = {
            name: dict(sorted(counter.items())) for name, counter in named.items() if counter.total()
        }
        return {**found, "answer_failures": dict(sorted(self.failures.items()))} if self.failures else found


def answer_all_sources(
    plan: AuditPlan, model: Model, target: Path, *, progress: Progress = SILENT
) -> tuple[dict[str, list[Claim]], AnswerTally]:
    """Write every answer of the plan, in order; returns what is compared of them, question by question."""
    tally = AnswerTally()
    claims: dict[str, list[Claim]] = {}
    pending: list[BatchPending] = []
    with target.open("wb") as stream, progress.task("answering from each source", plan.size) as task:
        for block in _answered(plan, model, pending, task):
            for answer in block:
                stream.write(_encode(answer))
                stream.write(b"\n")
                claims.setdefault(answer.question, []).append(Claim.of(answer))
            tally.add(block)
        stream.flush()
        os.fsync(stream.fileno())
    stop_if_pending(pending)
    return claims, tally


def _answered(plan: AuditPlan, model: Model, pending: list[BatchPending], task: Task) -> Iterator[list[Answer]]:
    size = _BLOCK_OF_A_BATCH if isinstance(model.backend, BatchBackend) else _BLOCK
    if plan.given is not None:
        questions = {question.id: question for question in plan.own_questions}
        mine = (answer for answer in plan.given if answer.question in questions)
        for given in _blocks(mine, size):
            try:
                yield decide_absence(model, questions, given, plan.pack, progress=Within(task))
            except BatchPending as err:
                pending.append(err)
        return
    for planned in _blocks(plan.each_planned(model), size):
        try:
            yield answer_from_sources(model, planned, plan.pack, max_tokens=plan.max_tokens, progress=Within(task))
        except BatchPending as err:
            pending.append(err)


def _blocks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    stream = iter(items)
    while block := list(islice(stream, size)):
        yield block
