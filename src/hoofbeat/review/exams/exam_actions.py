"""What a person does at an exam: begin, open a question, mark an answer, give it, end. The server's clock decides."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from string import ascii_uppercase

import msgspec
from msgspec.structs import replace

from hoofbeat.review.exams.exam_assignment import assign_exam
from hoofbeat.review.exams.exam_sitting import ExamAnswer, ExamQuestion, ExamQuestionRecord, ExamSitting, load_sitting
from hoofbeat.review.review_errors import ReviewRefusalError, study_closed
from hoofbeat.review.review_records import LabelState, Person, Study
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.text import typed

MAX_ANSWER_CHARACTERS = 20_000
"""Characters of a free-text answer."""

ENDED = "the exam ended without an answer"
_TRIES = 4
_MAX_LOOK_SECONDS = 24 * 3600.0


def begin_exam(store: ReviewStore, study: Study, person: Person, now: float) -> ExamSitting:
    """Start the exam: questions are assigned where none are, and the first is opened; the clock runs from then on."""
    if study.closed:
        raise study_closed()
    assign_exam(store, study, person, by=person.id)
    sitting = load_sitting(store, study, person, now)
    if sitting.began is None and sitting.entries:
        sitting = open_question(store, sitting, sitting.entries[0])
    return sitting


def open_question(store: ReviewStore, sitting: ExamSitting, entry: ExamQuestion) -> ExamSitting:
    """Show a question for the first time: when, and in which order its options stand, is kept."""
    _check_time(sitting)
    if not entry.opened:
        kept = ExamQuestionRecord(seed=entry.seed, options=entry.options, opened=sitting.now)
        _save(store, sitting, entry, kept, "draft", _name("open", entry))
    return load_sitting(store, sitting.study, sitting.person, sitting.now)


def answer_of(entry: ExamQuestion, said: str) -> str:
    """What a page sent as an answer: the option of a letter, or free text; nothing where it is empty."""
    if not entry.options:
        text = typed(said)
        if len(text) > MAX_ANSWER_CHARACTERS:
            raise ReviewRefusalError("the answer is too long", fix=f"use at most {MAX_ANSWER_CHARACTERS:,} characters")
        return text
    if not said:
        return ""
    place = ascii_uppercase.find(said) if len(said) == 1 else -1
    if not 0 <= place < len(entry.options):
        raise ReviewRefusalError("this is none of the options", fix="choose one of them")
    return entry.options[place]


def save_draft(
    store: ReviewStore, sitting: ExamSitting, entry: ExamQuestion, said: str, seconds: float | None, stage: int
) -> ExamSitting:
    """Keep what is marked and not given yet; it counts if the exam ends before it is given."""
    _check_time(sitting)
    answer = answer_of(entry, said)

    def change(entry: ExamQuestion) -> tuple[ExamQuestionRecord, LabelState]:
        _check_stage(entry, stage)
        return replace(entry.kept, draft=answer), "draft"

    return _changed(store, sitting, entry, change, secrets.token_urlsafe(12), seconds)


def submit_answer(
    store: ReviewStore, sitting: ExamSitting, entry: ExamQuestion, said: str, seconds: float | None, stage: int
) -> ExamSitting:
    """Give the answer at the share of the case that is open. It can't be changed afterwards.

    The same answer at the same stage again is the same act: a page that lost the connection may send it twice.
    """
    if 0 <= stage < entry.stage and entry.kept.given[stage].answer == answer_of(entry, said):
        return sitting
    _check_time(sitting)
    answer = answer_of(entry, said)
    if not answer:
        raise ReviewRefusalError("there is no answer yet", fix="choose or write one, or leave the question open")

    def change(entry: ExamQuestion) -> tuple[ExamQuestionRecord, LabelState]:
        _check_stage(entry, stage)
        before = sum(each.seconds for each in entry.kept.given)
        spent = max(0.0, _spent(sitting, entry, seconds) - before)
        given = ExamAnswer(
            share=entry.share, answer=answer, opened=entry.kept.opened, at=sitting.now, seconds=round(spent, 1)
        )
        kept = replace(entry.kept, given=(*entry.kept.given, given), draft="", answer=answer, opened=sitting.now)
        return kept, "done" if len(kept.given) == len(entry.shares) else "draft"

    return _changed(store, sitting, entry, change, _name(f"give-{stage}", entry), seconds)


def end_exam(store: ReviewStore, sitting: ExamSitting) -> ExamSitting:
    """End the exam: what is marked counts, what is not is left; nothing can be answered from now on."""
    if sitting.study.closed or sitting.began is None:
        return sitting
    for _ in range(_TRIES):  # what another tab marks or gives in between counts, too
        late = [_ended(store, sitting, entry) for entry in sitting.entries if not entry.done]
        sitting = load_sitting(store, sitting.study, sitting.person, sitting.now)
        if not any(late):
            break
    return sitting


def _ended(store: ReviewStore, sitting: ExamSitting, entry: ExamQuestion) -> bool:
    """End one question, and say whether that was out of date."""
    final = entry.final(min(sitting.now, sitting.deadline or sitting.now), over=True)
    answer = final[-1].answer if final else ""
    kept = replace(entry.kept, seed=entry.seed, options=entry.options, given=final, draft="", answer=answer)
    state: LabelState = "done" if len(final) == len(entry.shares) else "skipped"
    seen = entry.label.seconds if entry.label else 0.0  # nobody looks at it any more
    reason = "" if state == "done" else ENDED
    return _save(store, sitting, entry, kept, state, _name("end", entry), seconds=seen, reason=reason)


def _check_time(sitting: ExamSitting) -> None:
    if sitting.study.closed:
        raise study_closed()
    if sitting.time_up:
        raise ReviewRefusalError(
            "the time is up, and this came too late", fix="what was marked before counts; see your result", status=409
        )


def _check_stage(entry: ExamQuestion, stage: int) -> None:
    if entry.done or stage != entry.stage:
        raise ReviewRefusalError(
            "this was answered already and can't be changed", fix="go on with the next", status=409
        )


def _changed(
    store: ReviewStore,
    sitting: ExamSitting,
    entry: ExamQuestion,
    change: Callable[[ExamQuestion], tuple[ExamQuestionRecord, LabelState]],
    request: str,
    seconds: float | None,
) -> ExamSitting:
    """Save a change over what stands; where another tab was quicker, over that."""
    if not entry.opened:
        raise ReviewRefusalError("this question is not open", fix="open it first", status=409)
    for _ in range(_TRIES):
        kept, state = change(entry)
        if not _save(store, sitting, entry, kept, state, request, seconds=seconds):
            return load_sitting(store, sitting.study, sitting.person, sitting.now)
        sitting = load_sitting(store, sitting.study, sitting.person, sitting.now)
        entry = sitting.entries[entry.place - 1]
    raise ReviewRefusalError("this question is being answered somewhere else", fix="load the page again", status=409)


def _save(
    store: ReviewStore,
    sitting: ExamSitting,
    entry: ExamQuestion,
    kept: ExamQuestionRecord,
    state: LabelState,
    request: str,
    *,
    seconds: float | None = None,
    reason: str = "",
) -> bool:
    """Save, and say whether it was out of date."""
    label = entry.label
    spent = _spent(sitting, entry, seconds) if entry.opened else 0.0
    saved = store.save(
        sitting.study.id,
        entry.item.id,
        sitting.person.id,
        values=msgspec.to_builtins(kept),
        state=state,
        seconds=spent,
        base=label.version if label else 0,
        request=request,
        reason=reason,
    )
    return saved.conflict


def _spent(sitting: ExamSitting, entry: ExamQuestion, seconds: float | None) -> float:
    """The time spent on a question: as its page counted it, but never more than has passed since it was opened.

    A page that does not count is taken to have been looked at all the while, for a day at the most.
    """
    first = entry.kept.given[0].opened if entry.kept.given else entry.kept.opened
    passed = min(max(0.0, sitting.now - first), _MAX_LOOK_SECONDS)
    known = entry.label.seconds if entry.label else 0.0
    return passed if seconds is None else min(passed, max(known, seconds))


def _name(what: str, entry: ExamQuestion) -> str:
    digest = hashlib.blake2b(f"{entry.item.study}\0{entry.item.id}".encode(), digest_size=12).hexdigest()
    return f"exam-{what}-{digest}"
