"""A run folder: the questions asked, every planned answer, and in the manifest how they came about."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO

import msgspec

from hoofbeat.findings.caveats import cut_off_metrics
from hoofbeat.models import Model
from hoofbeat.models.model import model_facts
from hoofbeat.records import Answer, Question
from hoofbeat.store import ArtefactDraft, Cost, InputRef, Manifest, create, open_artefact
from hoofbeat.store.artefact import ArtefactFolder, count_outcomes
from hoofbeat.store.tables import read_jsonl, write_jsonl
from hoofbeat.window import CUT, OUTPUT_CUT

KIND = "run"
_encode = msgspec.json.Encoder().encode


System = tuple[str, str]
"""A model and the condition under which it answered."""


class AnswerArtefact(ArtefactFolder):
    """A folder of questions and answers; its tables are read when they are first asked for."""

    @cached_property
    def questions(self) -> list[Question]:
        """The questions that were asked."""
        return list(read_jsonl(self.artefact.file("questions.jsonl"), Question))

    @cached_property
    def answers(self) -> list[Answer]:
        """Every planned answer, all of them in memory."""
        return list(self.each_answer())

    def each_answer(self) -> Iterator[Answer]:
        """Every planned answer, one at a time."""
        return read_jsonl(self.artefact.file("answers.jsonl"), Answer)


class Run(AnswerArtefact):
    """An opened run."""

    @staticmethod
    def open(path: str | Path) -> Run:
        """Open a run folder."""
        return Run(open_artefact(path, KIND))


class RunDraft:
    """A run being written: answers are added block by block, in the order of the plan, and not held in memory."""

    def __init__(self, draft: ArtefactDraft, stream: IO[bytes], questions: Sequence[Question]) -> None:
        self._draft = draft
        self._questions = questions
        self._stream = stream
        self._tally: Counter[str | None] = Counter()
        self._shown: Counter[str] = Counter()
        self._cut_off: Counter[tuple[str, str]] = Counter()

    def add(self, answers: Iterable[Answer]) -> None:
        """Append answers."""
        for answer in answers:
            self._stream.write(_encode(answer) + b"\n")
            self._tally[answer.failure.kind if answer.failure else None] += 1
            self._cut_off[answer.model, answer.condition] += OUTPUT_CUT in answer.warnings
            cut = sum(name.endswith(CUT) for name in answer.dropped)
            self._shown["passages"] += len(answer.evidence)
            self._shown["cut"] += cut
            self._shown["left_out"] += len(answer.dropped) - cut

    def finish(
        self,
        *,
        models: Mapping[str, Model],
        inputs: Iterable[InputRef],
        prompts: dict[str, str],
        settings: dict[str, object],
        seeds: dict[str, int] | None = None,
        command: Sequence[str] = (),
        beside: Mapping[str, Model] | None = None,
        output_limits: Mapping[tuple[str, str], int] | None = None,
    ) -> None:
        """Write the manifest. `models` are those that answered, by their written names, `beside` others by their roles.

        One model's role is `answer`; of several, each has its own. `output_limits` are the tokens that answers may
        have, by model and condition.
        """
        self._stream.flush()
        os.fsync(self._stream.fileno())
        write_jsonl(self._draft.path / "questions.jsonl", self._questions)
        roles = {"answer" if len(models) == 1 else f"answer: {name}": model for name, model in models.items()}
        roles.update(beside or {})
        cut_off = +self._cut_off
        limits = [tokens for system in cut_off if (tokens := (output_limits or {}).get(system, 0))]
        costs = {name: model.cost for name, model in {**models, **(beside or {})}.items()}
        self._draft.finish(
            Manifest(
                kind=KIND,
                title=f"answers of {', '.join(models)}",
                command=list(command),
                inputs=list(inputs),
                settings={**settings, **model_facts(roles)},
                seeds=seeds or {},
                models={role: model.identity for role, model in roles.items()},
                prompts=prompts,
                counts=count_outcomes(self._tally.elements()),
                cost=sum(costs.values(), Cost()),
                costs=costs,
                metrics={
                    **({"shown": dict(self._shown)} if self._shown.total() else {}),
                    **cut_off_metrics(cut_off.total(), limits),
                },
            )
        )


@contextmanager
def draft_run(target: Path, questions: Sequence[Question]) -> Iterator[RunDraft]:
    """Begin a run folder; it stands in its place when the block ends, and not at all where that fails."""
    with create(target, replace_kind=KIND) as draft, (draft.path / "answers.jsonl").open("wb") as stream:
        yield RunDraft(draft, stream, questions)
