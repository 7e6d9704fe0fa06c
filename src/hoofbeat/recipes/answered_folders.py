"""Folders of answers to a benchmark's questions, read together: the answers and what became of each.

Runs count where an answer chooses an option; free text counts where it was judged. Answers to questions that the
benchmark does not hold are counted and left aside; an answer to another version of a question is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from hoofbeat.answering import AnswerArtefact, Run
from hoofbeat.errors import InputError, UsageError
from hoofbeat.findings.agreement import people_majority
from hoofbeat.findings.outcomes import HUMAN, Outcome, scored_outcomes
from hoofbeat.judging import JudgmentFolder
from hoofbeat.judging.aspects.equivalence import EQUIVALENCE
from hoofbeat.records import Answer, Judgment, Question
from hoofbeat.store import InputRef, open_artefact

KINDS = ("run", "judgments")
"""The kinds of folders that hold answers."""


class AnsweredQuestions(Struct, frozen=True, kw_only=True):
    """The scored systems' answers to a benchmark, their outcomes, and the folders they came from.

    `others` counts answers to questions outside the benchmark, `unjudged` answers in free text that nobody
    has judged.
    """

    answers: tuple[Answer, ...]
    outcomes: tuple[Outcome, ...]
    inputs: tuple[InputRef, ...]
    others: int = 0
    unjudged: int = 0


def read_answered(paths: Sequence[Path], questions: Sequence[Question]) -> AnsweredQuestions:
    """Read folders of answers to these questions."""
    asked = {question.id: question for question in questions}
    folders = [_open(path) for path in dict.fromkeys(path.resolve() for path in paths)]
    judgments = [each for folder in folders for each in _verdicts(folder) if each.question in asked]
    judged = {(each.question, each.model, each.condition) for each in judgments}
    answers: list[Answer] = []
    others = unjudged = 0
    for folder in folders:
        _check_same(folder, asked)
        for answer in folder.each_answer():
            if answer.question not in asked:
                others += 1
            elif answer.protocol or (answer.question, answer.model, answer.condition) in judged:
                answers.append(answer)
            else:
                unjudged += 1
    if not answers:
        why = "free text without judgments" if unjudged else "to questions outside the benchmark"
        raise UsageError(
            f"these folders have no answer that can be scored: {others + unjudged} are {why}",
            fix="judge them first: hoofbeat judge RUN" if unjudged else "name the benchmark that was answered",
        )
    return AnsweredQuestions(
        answers=tuple(answers),
        outcomes=tuple(scored_outcomes(questions, answers, judgments)),
        inputs=tuple(folder.artefact.reference() for folder in folders),
        others=others,
        unjudged=unjudged,
    )


def _open(path: Path) -> AnswerArtefact:
    artefact = open_artefact(path, KINDS)
    return JudgmentFolder(artefact) if artefact.manifest.kind == "judgments" else Run(artefact)


def _verdicts(folder: AnswerArtefact) -> Iterator[Judgment]:
    """What tells right from wrong: the judge's labels, or people's majority for systems that no judge has judged."""
    if not isinstance(folder, JudgmentFolder):
        return
    mine = [each for each in folder.each_judgment() if each.aspect == EQUIVALENCE.name]
    decided = {(each.model, each.condition) for each in mine if not each.judge.startswith(HUMAN)}
    yield from (each for each in mine if not each.judge.startswith(HUMAN))
    yield from people_majority(each for each in mine if (each.model, each.condition) not in decided)


def _check_same(folder: AnswerArtefact, asked: dict[str, Question]) -> None:
    for question in folder.questions:
        known = asked.get(question.id)
        if known and question.answer and (known.answer, set(known.options)) != (question.answer, set(question.options)):
            raise InputError(
                f"the question {question.id!r} has another answer or other options than in the benchmark",
                where=str(folder.path),
                fix="name the benchmark, or the --edition, that was answered",
            )
