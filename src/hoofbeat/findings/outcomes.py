"""The outcome of each planned answer: right, wrong, or unscored with the reason; grouped by system and question.

An answer in free text is right by the judgments of one aspect. An answer that chooses an option is right if the option
it chose is the question's answer; nobody has to judge that, and an answer from which no option could be read for sure
is unscored, never wrong. Every figure over answers starts from these outcomes.

Also here: the share of each failure mode or error type among the answers that were explained.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from hoofbeat.errors import InputError
from hoofbeat.findings.intervals import Interval, cluster_of, share_interval
from hoofbeat.records import Answer, Judgment, Question

HUMAN = "human:"
"""How the name of a judge begins who is a person."""

EXAM = "exam"
"""The stage of an answer's trace that an exam leaves; the form of every exam."""

INSIDE, OUTSIDE = "inside", "outside"
"""Whether an exam's question is of the person's specialty, as its trace says."""

AnswerKey = tuple[str, str, str, int]
"""Question, model, condition and sample: what identifies an answer."""

Verdict = tuple[str, str]
"""A judgment's label, and the kind of its failure (empty: none)."""

_NONE = re.compile(r"none\b")
_AMBIGUOUS = re.compile(r"\b(ambiguous|two|several|all options|different options|more than one|equally|tied?)\b")
"""Why no option was read, in the words of `Answer.reading`: more than one is meant, rather than none."""


class Outcome(Struct, frozen=True, kw_only=True):
    """What became of one planned answer: right, wrong, or (None) unscored, and then why.

    `unscored` names the stage and the failure's kind (`answer:refusal`, `judgment:unreadable`), says why no option was
    read (`choice:ambiguous`, `choice:none`), or says `unjudged`.
    """

    question: str
    model: str
    condition: str
    sample: int
    correct: bool | None
    unscored: str = ""


def outcomes(
    answers: Iterable[Answer],
    judgments: Iterable[Judgment],
    *,
    positive: str | Collection[str] = "equivalent",
    aspect: str = "equivalence",
    judge: str | None = None,
) -> list[Outcome]:
    """What became of each planned answer, by the judgments of one aspect (and of one judge, if named).

    Labels given by people are left aside unless one of them is the judge named: they are there to check the judge.
    """
    return _scored(answers, None, _judged(judgments, aspect, judge), positive)


def choice_outcomes(questions: Iterable[Question], answers: Iterable[Answer]) -> list[Outcome]:
    """What became of each answer that chooses an option; answers in free text are passed over."""
    key_of = _keys(questions)
    found: dict[AnswerKey, Outcome] = {}
    for answer in answers:
        if answer.protocol:
            found[_once(answer, found)] = _by_choice(answer, key_of)
    return list(found.values())


def scored_outcomes(
    questions: Iterable[Question],
    answers: Iterable[Answer],
    judgments: Iterable[Judgment] = (),
    *,
    positive: str | Collection[str] = "equivalent",
    aspect: str = "equivalence",
    judge: str | None = None,
) -> list[Outcome]:
    """What became of every planned answer: those that choose an option by their choice, the others by judgments.

    A judgment of an answer that chooses an option is passed over: what was chosen decides.
    """
    return _scored(answers, _keys(questions), _judged(judgments, aspect, judge), positive)


def _scored(
    answers: Iterable[Answer],
    questions: dict[str, Question] | None,
    judged: dict[AnswerKey, Verdict],
    positive: str | Collection[str],
) -> list[Outcome]:
    """Outcomes by judgment; with `questions`, those of answers that choose an option by their choice."""
    right = {positive} if isinstance(positive, str) else set(positive)
    found: dict[AnswerKey, Outcome] = {}
    for answer in answers:
        key = _once(answer, found)
        verdict = judged.pop(key, None)
        by_choice = questions is not None and answer.protocol
        found[key] = _by_choice(answer, questions or {}) if by_choice else _by_judgment(answer, verdict, right)
    if judged:
        question, model, condition, _ = next(iter(judged))
        raise InputError(
            f"{len(judged)} judgments have no answer, the first one for {model} on {question!r} ({condition})",
            fix="give the answers that were judged",
        )
    return list(found.values())


def is_by(judgment: Judgment, judge: str | None) -> bool:
    """Whether the judge named gave this judgment; if none is named, whether it is not one of the people."""
    return judgment.judge == judge if judge is not None else not judgment.judge.startswith(HUMAN)


def _judged(judgments: Iterable[Judgment], aspect: str, judge: str | None) -> dict[AnswerKey, Verdict]:
    found: dict[AnswerKey, Verdict] = {}
    for key, judgment in _each(judgments, aspect, judge, found):
        found[key] = (judgment.label, judgment.failure.kind if judgment.failure else "")
    return found


def _each(
    judgments: Iterable[Judgment], aspect: str, judge: str | None, seen: Collection[AnswerKey]
) -> Iterator[tuple[AnswerKey, Judgment]]:
    """The judgments of one aspect by one judge; the caller puts each key into `seen`, and none may come twice."""
    for judgment in judgments:
        if judgment.aspect != aspect or not is_by(judgment, judge):
            continue
        key = (judgment.question, judgment.model, judgment.condition, judgment.sample)
        if key in seen:
            raise InputError(
                f"two judgments of {aspect} for the answer by {key[1]} to {key[0]!r} ({key[2]})",
                fix="name one judge, or remove the repeated judgment",
            )
        yield key, judgment


def _once(answer: Answer, found: Collection[AnswerKey]) -> AnswerKey:
    key = (answer.question, answer.model, answer.condition, answer.sample)
    if key in found:
        raise InputError(
            f"the answer by {key[1]} to {key[0]!r} ({key[2]}, sample {key[3]}) appears twice",
            fix="check whether two runs were joined",
        )
    return key


def _by_judgment(answer: Answer, verdict: Verdict | None, right: Collection[str]) -> Outcome:
    if answer.failure:
        return _outcome(answer, None, f"answer:{answer.failure.kind}")
    if verdict is None:
        return _outcome(answer, None, "unjudged")
    label, failure = verdict
    return _outcome(answer, None, f"judgment:{failure}") if failure else _outcome(answer, label in right)


def _keys(questions: Iterable[Question]) -> dict[str, Question]:
    return {question.id: question for question in questions}


def _by_choice(answer: Answer, questions: dict[str, Question]) -> Outcome:
    if answer.failure:
        planned_question(answer, questions)
        return _outcome(answer, None, f"answer:{answer.failure.kind}")
    question = asked_question(answer, questions)
    if answer.choice is None:
        unclear = not _NONE.match(answer.reading) and _AMBIGUOUS.search(answer.reading)
        return _outcome(answer, None, "choice:ambiguous" if unclear else "choice:none")
    return _outcome(answer, answer.choice in question.right_answers)


def planned_question(answer: Answer, questions: Mapping[str, Question]) -> Question:
    """The question that an answer was planned for, whatever became of the answer."""
    question = questions.get(answer.question)
    if question is None:
        raise InputError(f"the question {answer.question!r} is not in the benchmark", fix="give the questions asked")
    return question


def asked_question(answer: Answer, questions: Mapping[str, Question]) -> Question:
    """The question of an answer that chooses an option; its key and the choice must be among its options.

    An answer that failed chose nothing and is not to be held to that: the question may have no options at all. Where
    the options are not known (predictions by letter of other software), key and choice are compared as they are.
    """
    question = planned_question(answer, questions)
    if question.answer and not question.options:
        return question
    if question.answer not in question.options:
        raise InputError(
            f"the answer of question {question.id!r} is not one of its {len(question.options)} options, "
            "so no choice can be scored",
            fix="write the answer exactly as the option, word for word",
        )
    if answer.choice is not None and answer.choice not in question.options:
        raise InputError(
            f"{answer.model} chose {answer.choice!r} for question {question.id!r}, which is not one of its options",
            fix="give the questions as they were asked",
        )
    return question


def _outcome(answer: Answer, correct: bool | None, unscored: str = "") -> Outcome:
    return Outcome(
        question=answer.question,
        model=answer.model,
        condition=answer.condition,
        sample=answer.sample,
        correct=correct,
        unscored=unscored,
    )


SENSITIVITY_THRESHOLD = 0.01
"""The share of unscored answers above which a sensitivity range is given."""

SystemKey = tuple[str, str]
"""A model and the condition it answered under."""


class Shares(Struct, frozen=True, kw_only=True):
    """One system question by question, questions sorted: the share right with unscored as wrong (`low`) and as right.

    `answers` and `unscored` count planned answers of each question.
    """

    questions: tuple[str, ...]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    answers: NDArray[np.int64]
    unscored: NDArray[np.int64]

    def take(self, places: NDArray[np.int64]) -> Shares:
        """Only some questions."""
        return Shares(
            questions=tuple(self.questions[place] for place in places),
            low=self.low[places],
            high=self.high[places],
            answers=self.answers[places],
            unscored=self.unscored[places],
        )


def per_question(rows: Iterable[Outcome]) -> Shares:
    """The rows of one system, question by question."""
    counts: dict[str, list[int]] = {}
    for row in rows:
        count = counts.setdefault(row.question, [0, 0, 0])
        count[0] += row.correct is True
        count[1] += row.correct is None
        count[2] += 1
    questions = tuple(sorted(counts))
    right, unscored, answers = np.array([counts[question] for question in questions], np.int64).reshape(-1, 3).T
    return Shares(
        questions=questions,
        low=right / answers,
        high=(right + unscored) / answers,
        answers=answers,
        unscored=unscored,
    )


def by_system(results: Iterable[Outcome]) -> dict[SystemKey, list[Outcome]]:
    """The outcomes of each model under each condition, in the order they first came."""
    systems: dict[SystemKey, list[Outcome]] = {}
    for row in results:
        systems.setdefault((row.model, row.condition), []).append(row)
    return systems


def sensitivity_range(low: float, high: float, share_unscored: float) -> tuple[float, float] | None:
    """The range, where enough answers are unscored that it must be given."""
    return (low, high) if share_unscored > SENSITIVITY_THRESHOLD else None


class ModeShare(Struct, frozen=True, kw_only=True):
    """`count` of the `n` explained answers of one system have this label first; `share` with Wilson's interval.

    Answers to one question are counted as the cluster that they are.
    `secondary` counts the answers that have it as their second label; they are no part of `count`. `either` is the
    share that has it first or second, with `either_interval`. `unscored` answers
    (the explanation failed) stay in `n`; `sensitivity` is (none of them, all of them this label) where they exceed 1%.
    """

    model: str
    condition: str
    aspect: str
    label: str
    n: int
    count: int
    share: float
    interval: Interval
    secondary: int
    either: float
    either_interval: Interval
    unscored: int
    sensitivity: tuple[float, float] | None


def mode_shares(
    judgments: Iterable[Judgment],
    aspect: str,
    labels: Sequence[str] = (),
    *,
    judge: str | None = None,
    clusters: Mapping[str, str] | None = None,
) -> list[ModeShare]:
    """Shares of the labels of one aspect for each system, sorted by name; `clusters` as in `accuracies`.

    `labels` gives the order, and rows for labels nobody got; without it the labels seen are sorted. People's labels
    are left aside unless one of them is the `judge` named.
    """
    given: dict[SystemKey, list[_ModeLabels]] = {}
    seen: set[AnswerKey] = set()
    for key, judgment in _each(judgments, aspect, judge, seen):
        seen.add(key)
        system = (judgment.model, judgment.condition)
        mine, cluster = given.setdefault(system, []), cluster_of(judgment.question, clusters)
        if judgment.failure:
            mine.append((cluster, "", ""))
            continue
        for label in [judgment.label, *([judgment.secondary] if judgment.secondary else [])]:
            if not label or (labels and label not in labels):
                raise InputError(
                    f"unknown label {label!r} of {aspect} for question {judgment.question!r}",
                    fix=f"the labels are {', '.join(labels)}" if labels else "give every judgment a label",
                )
        mine.append((cluster, judgment.label, judgment.secondary))
    order = list(labels) or sorted({each for rows in given.values() for _, *two in rows for each in two if each})
    return [_share(system, aspect, label, given[system]) for system in sorted(given) for label in order]


_ModeLabels = tuple[str, str, str]
"""The cluster of an answer, its first label (empty: the explanation failed) and its second."""


def _share(system: SystemKey, aspect: str, label: str, given: Sequence[_ModeLabels]) -> ModeShare:
    clusters = [cluster for cluster, _, _ in given]
    hits = [first == label for _, first, _ in given]
    either = [label in (first, second) for _, first, second in given]
    n, count, failed = len(given), sum(hits), sum(not first for _, first, _ in given)
    return ModeShare(
        model=system[0],
        condition=system[1],
        aspect=aspect,
        label=label,
        n=n,
        count=count,
        share=count / n,
        interval=share_interval(hits, clusters),
        secondary=sum(second == label for _, _, second in given),
        either=sum(either) / n,
        either_interval=share_interval(either, clusters),
        unscored=failed,
        sensitivity=sensitivity_range(count / n, (count + failed) / n, failed / n),
    )
