"""Invented runs of multiple choice, and judged free text, for tests of comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from hoofbeat.records import Answer, Failure, Judgment, Question, Vote
from hoofbeat.store import Artefact, InputRef, Manifest
from tests.reports.examples import finish

__all__ = ["chosen", "judged_run", "questions", "run_of"]


def questions(count: int = 40) -> list[Question]:
    return [
        Question(
            id=f"q{number:03}",
            text=f"Invented question {number}: which?",
            context="An invented case.",
            answer="Beta",
            options=("Alpha", "Beta", "Gamma"),
            documents=(f"d{number // 2}",),
        )
        for number in range(count)
    ]


def chosen(
    pattern: str, model: str = "m", condition: str = "closed", protocol: str = "letter", sample: int = 0
) -> list[Answer]:
    """An answer for each letter: `r` right, `w` wrong, `u` no option read, `f` failed."""
    made = []
    for number, letter in enumerate(pattern):
        base = Answer(
            question=f"q{number:03}",
            model=model,
            condition=f"{condition}, {protocol}" if protocol else condition,
            protocol=protocol,
            sample=sample,
        )
        if letter == "f":
            made.append(replace(base, failure=Failure(kind="refusal", message="it would not say")))
        elif letter == "u":
            made.append(replace(base, text="Alpha or Beta.", reading="two options are named"))
        else:
            choice = "Beta" if letter == "r" else "Alpha"
            made.append(replace(base, text=f"The answer is {choice}.", choice=choice))
    return made


def run_of(
    target: Path, answers: Sequence[Answer], asked: Sequence[Question] | None = None, **manifest: object
) -> Artefact:
    tables: dict[str, Sequence[object]] = {
        "questions.jsonl": questions() if asked is None else asked,
        "answers.jsonl": answers,
    }
    return finish(target, Manifest(kind="run", title="invented", **manifest), tables)  # type: ignore[arg-type]


def judged_run(
    target: Path,
    pattern: str,
    *,
    judge: str = "judge-1",
    condition: str = "closed",
    votes: Sequence[str] = (),
    **manifest: object,
) -> Artefact:
    """Free text judged by a model: letters as in `chosen`; `u` is a judgment that failed. `votes` names a panel."""
    answers = [
        replace(answer, protocol="", choice=None, text="Some advice.")
        for answer in chosen(pattern, condition=condition, protocol="")
    ]
    judgments = [
        Judgment(
            question=answer.question,
            model=answer.model,
            condition=answer.condition,
            judge=f"majority of {len(votes)}" if votes else judge,
            votes=tuple(Vote(judge=name, label="equivalent") for name in votes),
            label="" if letter in "uf" else "equivalent" if letter == "r" else "mismatch",
            reasoning="invented",
            failure=Failure(kind="unreadable", message="no label") if letter in "uf" else None,
        )
        for answer, letter in zip(answers, pattern, strict=True)
    ]
    told = {"inputs": [InputRef(name="run", sha256="a" * 64, kind="run")], "prompts": {"judge": "equivalence@1"}}
    made = Manifest(kind="judgments", title="invented", **{**told, **manifest})  # type: ignore[arg-type]
    asked = [replace(question, options=()) for question in questions()]
    return finish(target, made, {"questions.jsonl": asked, "answers.jsonl": answers, "judgments.jsonl": judgments})
