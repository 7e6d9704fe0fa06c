"""Folders of answers and judgments, opened without holding them in memory: lists are read when first asked for."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hoofbeat.answering import AnswerArtefact
from hoofbeat.errors import UsageError
from hoofbeat.judging.catalogue import verdict_labels
from hoofbeat.judging.criteria import Key, answer_key
from hoofbeat.records import Answer, Judgment, Question
from hoofbeat.store import Artefact, open_artefact
from hoofbeat.store.tables import read_jsonl

KIND = "judgments"
HUMAN = "human:"
"""How the judge of a human label begins; the annotator's name follows."""


class Probe(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One answer judged twice: as it was, and with something changed that should not matter.

    `words` is how long the answer is. Where either verdict is missing, `failure` says why, and the pair does not count.
    In a probe of instructions, `injection` of this `kind` asks for the label `target`; `flagged` says whether the rules
    find it, and `check_before` and `check_after` what became of the check codes.
    """

    probe: str
    judge: str
    question: str
    model: str
    condition: str
    sample: int = 0
    before: str = ""
    after: str = ""
    words: int = 0
    failure: str = ""
    injection: str = ""
    kind: str = ""
    target: str = ""
    flagged: bool = False
    check_before: str = ""
    check_after: str = ""

    @property
    def flipped(self) -> bool:
        """Whether the verdict changed."""
        return not self.failure and self.before != self.after


class JudgmentFolder(AnswerArtefact):
    """An opened folder of judgments, with the questions and answers that were judged."""

    @staticmethod
    def open(path: str | Path) -> JudgmentFolder:
        """Open a folder of judgments."""
        return JudgmentFolder(open_artefact(path, KIND))

    @cached_property
    def judgments(self) -> list[Judgment]:
        """All judgments of all aspects, held in memory."""
        return list(self.each_judgment())

    def each_judgment(self) -> Iterator[Judgment]:
        """The judgments one after the other."""
        return read_jsonl(self.artefact.file("judgments.jsonl"), Judgment)

    def each_probe(self) -> Iterator[Probe]:
        """The probes one after the other; none where the judge was not probed."""
        return read_jsonl(self.artefact.file("probes.jsonl"), Probe) if self.artefact.has("probes.jsonl") else iter(())


class Survey(Struct, frozen=True, kw_only=True):
    """What kinds of answers a folder holds, without the answers."""

    answers: int
    conditions: tuple[str, ...]
    models: tuple[str, ...]
    choices: int
    passages: int

    @property
    def texts(self) -> int:
        """How many answers are free text."""
        return self.answers - self.choices


class _Line(Struct):
    condition: str
    model: str
    protocol: str = ""
    evidence: tuple[msgspec.Raw, ...] = ()


class AnswerFolder:
    """A run, or a folder of judgments of one: what `hoofbeat judge` reads."""

    def __init__(self, artefact: Artefact) -> None:
        self.artefact = artefact
        self.questions = {each.id: each for each in read_jsonl(artefact.file("questions.jsonl"), Question)}
        self.renewed = 0

    @staticmethod
    def open(path: Path) -> AnswerFolder:
        """Open a run or a folder of judgments; `open_answers` opens rankings as well."""
        return AnswerFolder(open_artefact(path, ("run", KIND)))

    def take_answers(self, questions: Iterable[Question]) -> None:
        """Judge by the right answers of these questions, a later version; `renewed` counts those that differ."""
        if self.judged:
            raise UsageError(
                "this folder was judged with the earlier right answers",
                where=str(self.artefact.path),
                fix="name the run, not its judgments",
            )
        for each in questions:
            asked = self.questions.get(each.id)
            if asked is not None and asked.right_answers != each.right_answers:
                self.questions[each.id] = replace(asked, answer=each.answer, accepted=each.accepted)
                self.renewed += 1

    @property
    def judged(self) -> bool:
        """Whether there are judgments already."""
        return self.artefact.manifest.kind == KIND

    def each_answer(self) -> Iterator[Answer]:
        """The answers one after the other."""
        return read_jsonl(self.artefact.file("answers.jsonl"), Answer)

    @property
    def answers_sha256(self) -> str:
        """The hash of the answers: the same for a run and for judgments of it."""
        return self.artefact.manifest.files["answers.jsonl"]

    def write_answers(self, path: Path) -> None:
        """Write the answers to a file."""
        shutil.copyfile(self.artefact.file("answers.jsonl"), path)

    def each_judgment(self) -> Iterator[Judgment]:
        """The judgments that are there already, one after the other."""
        return read_jsonl(self.artefact.file("judgments.jsonl"), Judgment) if self.judged else iter(())

    @cached_property
    def survey(self) -> Survey:
        """What kinds of answers there are."""
        conditions: dict[str, None] = {}
        models: dict[str, None] = {}
        answers = choices = passages = 0
        for line in read_jsonl(self.artefact.file("answers.jsonl"), _Line):
            conditions[line.condition] = models[line.model] = None
            answers += 1
            choices += bool(line.protocol)
            passages += len(line.evidence)
        return Survey(
            answers=answers, conditions=tuple(conditions), models=tuple(models), choices=choices, passages=passages
        )

    @cached_property
    def aspects(self) -> set[str]:
        """The aspects that judges other than people have judged already."""
        return {each.aspect for each in self.each_judgment() if not each.judge.startswith(HUMAN)}

    @cached_property
    def scored(self) -> set[str]:
        """The aspects that anybody has judged already, people included."""
        return {each.aspect for each in self.each_judgment()}

    def verdicts(self) -> dict[Key, bool | None]:
        """Whether each answer that was judged is right, by what tells right from wrong (None: unscored).

        A model's verdict counts before people's; of people's, one that they agree on.
        """
        positive = verdict_labels()
        found: dict[Key, bool | None] = {}
        by_people: dict[Key, bool | None] = {}
        for each in self.each_judgment():
            if each.aspect not in positive:
                continue
            key = answer_key(each)
            right = None if each.failure else each.label == positive[each.aspect]
            if not each.judge.startswith(HUMAN):
                found[key] = right
            elif by_people.setdefault(key, right) != right:
                by_people[key] = None
        return {**by_people, **found}
