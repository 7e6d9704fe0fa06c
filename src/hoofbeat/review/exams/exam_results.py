"""What came of an exam: people's answers as a run, so that they stand in the same tables as models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from time import time

from msgspec import Struct

from hoofbeat.answering.run_folder import KIND
from hoofbeat.errors import InputError
from hoofbeat.findings.outcomes import HUMAN
from hoofbeat.records import Answer, Failure, Question, TraceStep
from hoofbeat.review.exams.exam_assignment import FORM, rules_of
from hoofbeat.review.exams.exam_items import protocol_of, question_of
from hoofbeat.review.exams.exam_sitting import ExamAnswer, ExamQuestion, ExamSitting, load_sitting
from hoofbeat.review.review_records import Study
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.review.reviewer_agreement import names_of
from hoofbeat.store import Artefact, InputRef, Manifest, create, open_artefact
from hoofbeat.store.manifest import count_outcomes
from hoofbeat.store.tables import write_jsonl

UNANSWERED = "not answered before the exam ended"
MARKED = "marked and not given when the exam ended"


class ExamRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One answer of the exam with what a run has no place for: the time it took, and whether it was inside.

    `order` is the seed that the options' order was drawn by.
    """

    person: str
    question: str
    condition: str
    place: int
    why: str
    share: int
    seconds: float = 0.0
    answered: bool = True
    marked: bool = False
    order: int = 0


def exam_people(store: ReviewStore, study: Study, *, blind: bool = False) -> dict[str, str]:
    """What everybody with questions is called in tables: `human:NAME`, or `human:Reviewer 1` where `blind`."""
    names = names_of(study, store, blind=blind)
    return {
        person: f"{HUMAN}{names[person]}" for person in dict.fromkeys(r.person for r in store.assignments(study.id))
    }


def exam_questions(store: ReviewStore, study: Study) -> list[Question]:
    """The questions of the exam, in the benchmark's order."""
    return [question_of(item) for item in store.items(study.id)]


def finished_sittings(store: ReviewStore, study: Study, *, now: float | None = None) -> list[ExamSitting]:
    """The exams that are over, by person in the order of invitations; who is still at it does not count yet."""
    moment = time() if now is None else now
    seated = {row.person for row in store.assignments(study.id)}
    people = sorted((p for p in store.people() if p.id in seated), key=lambda person: (person.invited, person.id))
    sittings = [load_sitting(store, study, person, moment) for person in people]
    return [sitting for sitting in sittings if sitting.over]


def exam_answers(store: ReviewStore, study: Study, *, blind: bool = False, now: float | None = None) -> list[Answer]:
    """Every answer of everybody whose exam is over; staged ones under a condition a share.

    A question that was not answered stays in the table as a failure, so that everybody's denominator is what they were
    asked.
    """
    names = exam_people(store, study, blind=blind)
    return [
        answer
        for sitting in finished_sittings(store, study, now=now)
        for answer in answers_of(sitting, names[sitting.person.id])
    ]


def answers_of(sitting: ExamSitting, name: str) -> list[Answer]:
    """The answers of one person, question by question and share by share."""
    return [_answer(sitting, entry, share, given, name) for entry, share, given in _each(sitting)]


def _each(sitting: ExamSitting) -> Iterable[tuple[ExamQuestion, int, ExamAnswer | None]]:
    ended = min(sitting.now, sitting.deadline or sitting.now)
    for entry in sitting.entries:
        given = {each.share: each for each in entry.final(ended, over=True)}
        for share in entry.shares:
            yield entry, share, given.get(share)


def _answer(sitting: ExamSitting, entry: ExamQuestion, share: int, given: ExamAnswer | None, name: str) -> Answer:
    question = entry.question
    protocol = protocol_of(question)
    base = Answer(
        question=question.id,
        model=name,
        condition=sitting.rules.condition(share, protocol),
        protocol=protocol,
        options=entry.options,
        failure=Failure(kind="input", message=UNANSWERED, attempts=0) if given is None else None,
    )
    if given is None:
        return base
    spent = TraceStep(stage=FORM, what="answered", text=f"{given.seconds:.1f} s, {entry.why}")
    return Answer(
        question=base.question,
        model=base.model,
        condition=base.condition,
        protocol=protocol,
        options=entry.options,
        text=given.answer,
        choice=given.answer if protocol else None,
        reading="chosen by a person" if protocol else "",
        trace=(spent,),
        warnings=(MARKED,) if given.how == "marked" else (),
    )


def exam_rows(store: ReviewStore, study: Study, *, blind: bool = False, now: float | None = None) -> list[ExamRow]:
    """Beside the answers: how long each took, and whether it was of the person's specialty."""
    names = exam_people(store, study, blind=blind)
    rules = rules_of(study)
    return [
        ExamRow(
            person=names[sitting.person.id],
            question=entry.question.id,
            condition=rules.condition(share, protocol_of(entry.question)),
            place=entry.place,
            why=entry.why,
            share=share,
            seconds=given.seconds if given else 0.0,
            answered=given is not None,
            marked=given is not None and given.how == "marked",
            order=entry.seed,
        )
        for sitting in finished_sittings(store, study, now=now)
        for entry, share, given in _each(sitting)
    ]


def write_exam_run(
    store: ReviewStore,
    study: Study,
    target: Path,
    *,
    blind: bool = False,
    command: Sequence[str] = (),
    now: float | None = None,
) -> Artefact:
    """Write the exam as a run folder that `judge`, `report`, `compare` and the pages take like a model's.

    `exam.jsonl` beside the answers says what each took and whether it was inside the specialty.
    """
    answers = exam_answers(store, study, blind=blind, now=now)
    if not answers:
        raise InputError(
            "nobody has finished this exam yet", where=study.id, fix="wait until somebody has, or close the study"
        )
    rows = exam_rows(store, study, blind=blind, now=now)
    asked = {answer.question for answer in answers}
    names = list(dict.fromkeys(answer.model for answer in answers))
    waiting = len({row.person for row in store.assignments(study.id)}) - len(names)
    with create(target, replace_kind=KIND) as draft:
        write_jsonl(draft.path / "questions.jsonl", [q for q in exam_questions(store, study) if q.id in asked])
        write_jsonl(draft.path / "answers.jsonl", answers)
        write_jsonl(draft.path / "exam.jsonl", rows)
        draft.finish(
            Manifest(
                kind=KIND,
                title=f"answers of {len(names)} {'person' if len(names) == 1 else 'people'} in {study.title}",
                command=list(command),
                inputs=[
                    InputRef(name=study.source, sha256=study.source_sha256, kind=str(study.settings.get("of", "")))
                ],
                settings={
                    "models": names,
                    "conditions": list(dict.fromkeys(answer.condition for answer in answers)),
                    "protocols": sorted({answer.protocol or "free" for answer in answers}),
                    "samples": 1,
                    "study": study.id,
                    **study.settings,
                    "unfinished": waiting,
                },
                seeds={"exam": rules_of(study).seed},
                models={f"answer: {name}" if len(names) > 1 else "answer": name for name in names},
                counts=count_outcomes(answer.failure.kind if answer.failure else None for answer in answers),
                metrics={"seconds": _seconds(rows)},
            )
        )
    return open_artefact(target, KIND)


def _seconds(rows: Sequence[ExamRow]) -> dict[str, object]:
    """The time of each person: all of it, and of the middle answer."""
    found: dict[str, object] = {}
    for person in dict.fromkeys(row.person for row in rows):
        times = sorted(row.seconds for row in rows if row.person == person and row.answered)
        if times:
            found[person] = {"all": round(sum(times), 1), "median": times[len(times) // 2], "answers": len(times)}
    return found
