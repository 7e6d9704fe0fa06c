"""What came of an exam: people's answers as a run, so that they stand in the same tables as models.

One person's result has scores with intervals, inside and outside the specialty, and models on the same questions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from time import time

from msgspec import Struct
from msgspec.structs import replace

from hoofbeat.answering.run_folder import KIND, Run
from hoofbeat.errors import InputError
from hoofbeat.findings.accuracy import Accuracy, accuracies
from hoofbeat.findings.outcomes import HUMAN, INSIDE, OUTSIDE, Outcome, choice_outcomes, scored_outcomes
from hoofbeat.judging.judgments_folder import JudgmentFolder
from hoofbeat.records import Answer, Failure, Question, TraceStep
from hoofbeat.review.exam_items import FORM, protocol_of, question_of, rules_of
from hoofbeat.review.exam_sitting import ExamAnswer, ExamQuestion, ExamSitting, load_sitting
from hoofbeat.review.review_records import Study
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.review.reviewer_agreement import names_of
from hoofbeat.store import Artefact, InputRef, Manifest, create, open_artefact
from hoofbeat.store.artefact import count_outcomes
from hoofbeat.store.folder_library import Folder
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
    return replace(
        base,
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
            "nobody has finished this exam yet",
            where=study.id,
            fix="wait until someone has finished, or close the study",
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


YOU = "you"


class ScoreRow(Struct, frozen=True, kw_only=True):
    """A row of a table of scores: who, how asked, how many of how many, with the 95% interval."""

    name: str
    how: str
    right: int
    of: int
    unscored: int
    low: float
    high: float
    folder: str = ""

    @property
    def share(self) -> float:
        """The share of right answers."""
        return self.right / self.of if self.of else 0.0


class ExamResult(Struct, frozen=True, kw_only=True):
    """What a person is told at the end. `free` counts answers in free text, which wait for a judge."""

    overall: tuple[ScoreRow, ...]
    parts: tuple[ScoreRow, ...]
    free: int
    unanswered: int
    seconds: float


def result_of(sitting: ExamSitting) -> ExamResult:
    """The scores of a person: a line a share of the case, and the last share by inside and outside."""
    answers = answers_of(sitting, YOU)
    questions = [entry.question for entry in sitting.entries]
    chosen = [answer for answer in answers if answer.protocol]
    outcomes = choice_outcomes(questions, chosen)
    last = {answer.condition for answer in chosen if answer.condition == _condition(sitting, answer)}
    why = {entry.question.id: entry.why for entry in sitting.entries}
    parts = []
    for name in (INSIDE, OUTSIDE):
        own = [each for each in outcomes if each.condition in last and why[each.question] == name]
        parts += [_line(row, f"{name} your specialty") for row in accuracies(own)] if own else []
    overall = [_line(row, YOU) for row in sorted(accuracies(outcomes), key=_share)] if outcomes else []
    given = [each for entry in sitting.entries for each in entry.final(sitting.now, over=True)]
    return ExamResult(
        overall=tuple(overall),
        parts=tuple(parts),
        free=sum(not answer.protocol and answer.failure is None for answer in answers),
        unanswered=sum(answer.failure is not None for answer in answers),
        seconds=sum(each.seconds for each in given),
    )


def _condition(sitting: ExamSitting, answer: Answer) -> str:
    return sitting.rules.condition(sitting.rules.shares[-1], answer.protocol)


def _share(row: Accuracy) -> tuple[int, str]:
    digits = "".join(sign for sign in row.condition.partition("%")[0] if sign.isdecimal())
    return int(digits or 0), row.condition


def _line(row: Accuracy, name: str, folder: str = "") -> ScoreRow:
    return ScoreRow(
        name=name,
        how=row.condition,
        right=row.correct,
        of=row.planned,
        unscored=sum(row.unscored.values()),
        low=row.wilson.low,
        high=row.wilson.high,
        folder=folder,
    )


class ModelOutcomes(Struct, frozen=True):
    """The outcomes of a folder's answers that choose an option, and the texts of their questions."""

    outcomes: list[Outcome]
    texts: dict[str, str]


def model_outcomes(folder: Folder) -> ModelOutcomes:
    """What models of a run, or of a folder of judgments, answered to questions with options."""
    artefact = folder.artefact()
    opened = Run(artefact) if folder.kind == "run" else JudgmentFolder(artefact)
    questions: Sequence[Question] = [each for each in opened.questions if each.options and each.answer in each.options]
    names = {question.id for question in questions}
    answers = [each for each in opened.each_answer() if each.question in names and (each.protocol or each.failure)]
    choosing = {(each.model, each.condition) for each in answers if each.protocol}
    found = scored_outcomes(questions, (each for each in answers if (each.model, each.condition) in choosing))
    return ModelOutcomes(found, {question.id: question.full_text for question in questions})


def model_lines(sitting: ExamSitting, known: Iterable[tuple[str, ModelOutcomes]]) -> list[ScoreRow]:
    """Models on the very questions this person was asked, from folders by their slugs; best first."""
    asked = {entry.question.id: entry.question for entry in sitting.entries if entry.question.options}
    best: dict[tuple[str, str], ScoreRow] = {}
    for slug, found in known:
        shared = {name for name, text in found.texts.items() if name in asked and asked[name].full_text == text}
        own = [each for each in found.outcomes if each.question in shared]
        for line in [_line(row, row.model, slug) for row in accuracies(own)] if own else []:
            best.setdefault((line.name, line.how), line)  # a run and its judgments say the same
    return sorted(best.values(), key=lambda line: (-line.share, line.name, line.how))
