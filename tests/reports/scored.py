"""Invented runs and judgments with known numbers, for the tests of the chapters on scores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hoofbeat.judging.judgments_folder import Probe
from hoofbeat.records import Answer, Failure, Judgment, Question, Usage
from hoofbeat.store import Artefact, Cost, Counts, InputRef, Manifest
from tests.reports.examples import finish

OPTIONS = ("Alder disease", "Birch disease", "Cedar disease", "Dogwood disease")


def questions(count: int, **changes: object) -> list[Question]:
    made = []
    for number in range(count):
        facets = {"specialty": ("cardiology", "neurology")[number % 3 == 0], "rare": "yes" if number % 4 == 0 else "no"}
        named = {"id": f"q{number:03}", "text": f"Invented case {number}: which disease?", "facets": facets}
        made.append(Question(answer=OPTIONS[number % 4], options=OPTIONS, **{**named, **changes}))  # type: ignore[arg-type]
    return made


def choices(
    asked: Sequence[Question], model: str, condition: str, right: Sequence[bool | None], *, sample: int = 0
) -> list[Answer]:
    """A letter answer to each question: right, wrong, or (None) one from which no option could be read."""
    made = []
    for question, correct in zip(asked, right, strict=True):
        wrong = next(option for option in OPTIONS if option != question.answer)
        choice = None if correct is None else question.answer if correct else wrong
        made.append(
            Answer(
                question=question.id,
                model=model,
                condition=f"{condition}, letter",
                sample=sample,
                protocol="letter",
                text=choice or "A or B",
                options=question.options,
                choice=choice,
                reading="only-letter" if choice else "two options are named",
                usage=Usage(tokens_in=100, tokens_out=10),
            )
        )
    return made


def free(
    asked: Sequence[Question], model: str, condition: str, right: Sequence[bool | None]
) -> tuple[list[Answer], list[Judgment]]:
    """A free answer to each question with its judgment; None is a refusal."""
    answers, judgments = [], []
    for question, correct in zip(asked, right, strict=True):
        key = {"question": question.id, "model": model, "condition": condition}
        failure = Failure(kind="refusal", message="declined") if correct is None else None
        answers.append(Answer(**key, text="" if failure else "An answer.", failure=failure))  # type: ignore[arg-type]
        label = "" if failure else "equivalent" if correct else "mismatch"
        judgments.append(Judgment(**key, judge="openai:judge", label=label, failure=failure))  # type: ignore[arg-type]
    return answers, judgments


def run(target: Path, asked: Sequence[Question], answers: Sequence[Answer], **changes: object) -> Artefact:
    models = list(dict.fromkeys(answer.model for answer in answers))
    settings: dict[str, object] = {"models": models}
    manifest = Manifest(
        kind="run",
        title="an invented run",
        settings=settings,
        models={f"answer: {model}": model for model in models},
        counts=Counts(kept=len(answers)),
        costs={
            model: Cost(calls=10 * place, tokens_in=1000 * place, tokens_out=100 * place, money=0.5 * place)
            for place, model in enumerate(models, start=1)
        },
        **changes,  # type: ignore[arg-type]
    )
    return finish(target, manifest, {"questions.jsonl": asked, "answers.jsonl": answers})


def judged(
    target: Path,
    asked: Sequence[Question],
    answers: Sequence[Answer],
    judgments: Sequence[Judgment],
    *,
    probes: Sequence[Probe] = (),
    inputs: Sequence[InputRef] = (),
    judge: str = "openai:judge",
    **settings: object,
) -> Artefact:
    models = list(dict.fromkeys(answer.model for answer in answers))
    manifest = Manifest(
        kind="judgments",
        title="invented judgments",
        inputs=list(inputs),
        settings={"aspect": "equivalence", "positive": "equivalent", **settings},
        models={**{f"answer: {model}": model for model in models}, "judge": judge},
        counts=Counts(kept=len(judgments)),
    )
    tables: dict[str, Sequence[object]] = {
        "questions.jsonl": asked,
        "answers.jsonl": answers,
        "judgments.jsonl": judgments,
    }
    return finish(target, manifest, {**tables, "probes.jsonl": probes} if probes else tables)
