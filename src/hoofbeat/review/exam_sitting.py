"""One person at an exam: which questions are open, what was answered, how much time is left.

The review store keeps all of it: a question that is opened has a draft that says when, and in which order its options
are shown; the earliest of these is when the exam began. Nothing depends on the page or on this process, so a reload,
another device or a restart of the server changes nothing.

A person can begin, open a question, mark an answer, give it, and end. The server's clock decides.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Collection
from string import ascii_uppercase
from typing import Literal
from weakref import WeakKeyDictionary

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hoofbeat.answering.condition_material import shorten
from hoofbeat.answering.conditions import ordered_options
from hoofbeat.records import Question
from hoofbeat.review.exam_items import UNKNOWN, ExamRules, assign_exam, person_seed, question_of, rules_of
from hoofbeat.review.review_records import (
    ItemLabel,
    LabelState,
    Person,
    ReviewItem,
    ReviewRefusalError,
    Study,
    study_closed,
)
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.text import typed

_WHOLE = 100
_ITEMS: WeakKeyDictionary[ReviewStore, dict[str, dict[str, ReviewItem]]] = WeakKeyDictionary()


class ExamAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One answer: at which share of the case, when that was opened and answered, and the time spent on it.

    `how`: it was `given`, or `marked` and not given when the exam ended.
    """

    share: int
    answer: str
    opened: float
    at: float
    seconds: float = 0.0
    how: Literal["given", "marked"] = "given"


class ExamQuestionRecord(Struct, frozen=True, kw_only=True):
    """What the review store keeps of a question: the seed and order of its options, answers so far, and what is marked.

    `opened` is when the stage that is open now was opened; `answer` the last answer given.
    """

    seed: int = 0
    options: tuple[str, ...] = ()
    opened: float = 0.0
    given: tuple[ExamAnswer, ...] = ()
    draft: str = ""
    answer: str = ""


class ExamQuestion(Struct, frozen=True, kw_only=True):
    """One question of a person's exam, number `place` from 1."""

    place: int
    item: ReviewItem
    why: str
    question: Question
    options: tuple[str, ...]
    seed: int
    label: ItemLabel | None
    kept: ExamQuestionRecord
    shares: tuple[int, ...]

    @property
    def opened(self) -> bool:
        """Whether the person has seen it."""
        return self.label is not None and bool(self.kept.opened)

    @property
    def done(self) -> bool:
        """Whether nothing can be answered here any more."""
        return self.label is not None and self.label.state in ("done", "skipped")

    @property
    def stage(self) -> int:
        """Which of the shares is open, from 0."""
        return len(self.kept.given)

    @property
    def share(self) -> int:
        """The percent of the case that is open, or was shown last."""
        return self.shares[min(self.stage, len(self.shares) - 1)]

    def final(self, now: float, *, over: bool) -> tuple[ExamAnswer, ...]:
        """The answers that count: those given and, when the exam is over, what was marked and not given."""
        if not over or self.done or not self.kept.draft or self.stage >= len(self.shares):
            return self.kept.given
        spent = max(0.0, (self.label.seconds if self.label else 0.0) - sum(each.seconds for each in self.kept.given))
        marked = ExamAnswer(
            share=self.share,
            answer=self.kept.draft,
            opened=self.kept.opened,
            at=now,
            seconds=round(spent, 1),
            how="marked",
        )
        return (*self.kept.given, marked)


class ExamSitting(Struct, frozen=True, kw_only=True):
    """A person's exam as it stands at one moment, `now` by the server's clock."""

    study: Study
    person: Person
    rules: ExamRules
    entries: tuple[ExamQuestion, ...]
    now: float

    @property
    def began(self) -> float | None:
        """When the first question was opened."""
        times = [entry.kept.given[0].opened if entry.kept.given else entry.kept.opened for entry in self._opened]
        return min(times, default=None)

    @property
    def _opened(self) -> list[ExamQuestion]:
        return [entry for entry in self.entries if entry.opened]

    @property
    def deadline(self) -> float | None:
        """When the time is up; None without a limit, or before the beginning."""
        return self.began + 60 * self.rules.minutes if self.rules.minutes and self.began is not None else None

    @property
    def remaining(self) -> float | None:
        """The seconds left, where there is a limit."""
        return None if self.deadline is None else max(0.0, self.deadline - self.now)

    @property
    def time_up(self) -> bool:
        """Whether the time is over."""
        return self.deadline is not None and self.now >= self.deadline

    @property
    def over(self) -> bool:
        """Whether the exam is over for this person: all is answered or left, the time is up, or the study is closed."""
        if not self.entries:
            return False
        return self.time_up or all(entry.done for entry in self.entries) or (self.study.closed and bool(self.began))

    @property
    def answered(self) -> int:
        """How many questions are answered at every share."""
        return sum(entry.stage == len(entry.shares) for entry in self.entries)

    def entry(self, place: int) -> ExamQuestion | None:
        """Question number `place`, from 1."""
        return self.entries[place - 1] if 1 <= place <= len(self.entries) else None

    def next_open(self, after: int = 0) -> ExamQuestion | None:
        """The next question behind this place that is not done, from the beginning again at the end."""
        ahead = [*self.entries[after:], *self.entries[:after]]
        return next((entry for entry in ahead if not entry.done), None)

    def ends_with(self, entry: ExamQuestion) -> bool:
        """Whether an answer to what is shown of this question ends the exam: nothing else is open."""
        return entry.stage + 1 >= len(entry.shares) and all(
            each.done for each in self.entries if each.place != entry.place
        )


def exam_items(store: ReviewStore, study: str, wanted: Collection[str] = ()) -> dict[str, ReviewItem]:
    """The items of an exam by id. They never change, so they are read once, and again where one of these is new."""
    known = _ITEMS.setdefault(store, {})
    if study not in known or any(name not in known[study] for name in wanted):
        known[study] = {item.id: item for item in store.items(study)}
    return known[study]


def load_sitting(store: ReviewStore, study: Study, person: Person, now: float) -> ExamSitting:
    """A person's exam as the review store has it; without questions where none were assigned yet."""
    rules = rules_of(study)
    mine = store.assignments(study.id, person.id)
    items = exam_items(store, study.id, [row.item for row in mine])
    labels = {label.item: label for label in store.labels(study.id, person=person.id)}
    seed = person_seed(rules, study.id, person.id)
    entries = []
    for place, row in enumerate(mine, 1):
        question = question_of(items[row.item])
        label = labels.get(row.item)
        kept = (
            msgspec.convert(label.values, ExamQuestionRecord)
            if label is not None and label.values
            else ExamQuestionRecord()
        )
        entries.append(
            ExamQuestion(
                place=place,
                item=items[row.item],
                why=row.why or UNKNOWN,
                question=question,
                options=kept.options or ordered_options(question, seed),
                seed=kept.seed or seed,
                label=label,
                kept=kept,
                shares=rules.shares,
            )
        )
    return ExamSitting(study=study, person=person, rules=rules, entries=tuple(entries), now=now)


def visible_case(entry: ExamQuestion) -> tuple[str, str]:
    """The case as far as it is shown, and the question: what a model is shown of it under the same condition."""
    question = entry.question
    if entry.share == _WHOLE:
        return question.context, question.text
    text = shorten(question, entry.share, by_sentences=True).text
    if question.context:
        return text.removesuffix(f"\n\n{question.text}"), question.text
    return "", text


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
        raise ReviewRefusalError("this is not one of the options", fix="choose one of them")
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
    if _is_given(entry, said, stage):
        return sitting
    _check_time(sitting)
    answer = answer_of(entry, said)
    if not answer:
        raise ReviewRefusalError("there is no answer yet", fix="choose or write one, or answer later")

    def change(entry: ExamQuestion) -> tuple[ExamQuestionRecord, LabelState]:
        _check_stage(entry, stage)
        before = sum(each.seconds for each in entry.kept.given)
        spent = max(0.0, _spent(sitting, entry, seconds) - before)
        given = ExamAnswer(
            share=entry.share, answer=answer, opened=entry.kept.opened, at=sitting.now, seconds=round(spent, 1)
        )
        kept = replace(entry.kept, given=(*entry.kept.given, given), draft="", answer=answer, opened=sitting.now)
        return kept, "done" if len(kept.given) == len(entry.shares) else "draft"

    try:
        return _changed(store, sitting, entry, change, _name(f"give-{stage}", entry), seconds)
    except ReviewRefusalError:  # another tab was quicker: with the same answer, or with another
        now = load_sitting(store, sitting.study, sitting.person, sitting.now)
        if _is_given(now.entries[entry.place - 1], said, stage):
            return now
        raise


def _is_given(entry: ExamQuestion, said: str, stage: int) -> bool:
    """Whether this is the answer that was given at that stage."""
    return 0 <= stage < entry.stage and entry.kept.given[stage].answer == answer_of(entry, said)


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
        raise ReviewRefusalError("the time is up", fix="your drafts count as answers; see your result", status=409)


def _check_stage(entry: ExamQuestion, stage: int) -> None:
    if entry.done or stage != entry.stage:
        raise ReviewRefusalError(
            "this question is already answered and can't be changed", fix="continue with the next", status=409
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
    raise ReviewRefusalError("this question is open in another tab or device", fix="reload the page", status=409)


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
