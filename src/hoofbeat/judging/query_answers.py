"""Answers that were queries: what models wrote and searched for, as answers that can be judged.

R2MED sets how often these answers are right against how well they retrieve (its section 5.2). A rankings folder keeps
what was written in its traces; here they are read as the answers of a run.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from hoofbeat.errors import InputError
from hoofbeat.judging.judgments_folder import KIND, AnswerFolder, Survey
from hoofbeat.records import Answer, TraceStep
from hoofbeat.retrieval.line import every_stage, parse
from hoofbeat.retrieval.stage_roles import SearchQuery
from hoofbeat.store import Artefact, open_artefact
from hoofbeat.store.tables import jsonl_lines, read_jsonl, write_jsonl

_RANKINGS = "rankings"
_WRITTEN = ("generated", "answered")


class QueryAnswers(AnswerFolder):
    """The answers in the traces of a ranking; their condition is the stage that had them written.

    A stage that writes several documents gives several samples. A query that failed is an answer that failed.
    """

    def __init__(self, artefact: Artefact) -> None:
        super().__init__(artefact)
        line = str(artefact.manifest.settings["line"])
        asked = artefact.manifest.models
        writers = [stage for stage in every_stage(parse(line)) if stage.role == "query writer" and stage.models()]
        # A stage that names no model used the command's model; the manifest has its identity.
        self._models = {
            str(stage): ", ".join(name or asked.get("line", "") for name in stage.models()) for stage in writers
        }
        if not self._models or not artefact.has("traces.jsonl"):
            raise InputError(
                "no model wrote the queries of this ranking, so there are no answers to judge",
                where=str(artefact.path),
                fix="rank with a query writer: hyde, query2doc, lamer, reason, search-o1 or search-r1",
            )

    def each_answer(self) -> Iterator[Answer]:
        """The answers one after the other."""
        for query in read_jsonl(self.artefact.file("traces.jsonl"), SearchQuery):
            for stage, model in self._models.items():
                steps = [step for step in query.steps if step.stage == stage and step.what in _WRITTEN]
                if query.failure is not None:
                    yield Answer(question=query.id, model=model, condition=stage, failure=query.failure)
                    continue
                for sample, step in enumerate(steps):
                    yield _answer(query.id, model, sample, step)

    @cached_property
    def survey(self) -> Survey:
        """What kinds of answers there are: free text, by each stage."""
        counts = Counter(answer.condition for answer in self.each_answer())
        models = tuple(dict.fromkeys(self._models.values()))
        return Survey(answers=counts.total(), conditions=tuple(counts), models=models, choices=0, passages=0)

    @cached_property
    def answers_sha256(self) -> str:
        """The hash of the answers as judgments keep them."""
        digest = hashlib.sha256()
        for line in jsonl_lines(self.each_answer()):
            digest.update(line)
        return digest.hexdigest()

    def write_answers(self, path: Path) -> None:
        """Write the answers as a run's."""
        write_jsonl(path, self.each_answer())


def open_answers(path: Path) -> AnswerFolder:
    """Open a run, a folder of judgments, or a ranking whose queries a model wrote."""
    artefact = open_artefact(path, ("run", KIND, _RANKINGS))
    return QueryAnswers(artefact) if artefact.manifest.kind == _RANKINGS else AnswerFolder(artefact)


def _answer(question: str, model: str, sample: int, step: TraceStep) -> Answer:
    return Answer(
        question=question,
        model=model,
        condition=step.stage,
        sample=sample,
        text=step.text,
        reasoning=step.reasoning,
        calls=step.calls,
    )
