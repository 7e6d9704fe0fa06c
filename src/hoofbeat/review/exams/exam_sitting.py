"""One person at an exam: which questions are open, what was answered, how much time is left.

The review store keeps all of it: a question that is opened has a draft that says when, and in which order its options
are shown; the earliest of these is when the exam began. Nothing depends on the page or on this process, so a reload,
another device or a restart of the server changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal
from weakref import WeakKeyDictionary

import msgspec
from msgspec import Struct

from hoofbeat.answering.case_parts import shorten
from hoofbeat.answering.protocols import ordered_options
from hoofbeat.records import Question
from hoofbeat.review.exams.exam_assignment import UNKNOWN, ExamRules, person_seed, rules_of
from hoofbeat.review.exams.exam_items import question_of
from hoofbeat.review.review_records import ItemLabel, Person, ReviewItem, Study
from hoofbeat.review.review_store import ReviewStore

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
