"""The result of one person's exam: scores with intervals, inside and outside, and models on the same questions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from hoofbeat.answering.run_folder import Run
from hoofbeat.findings.accuracy import Accuracy, accuracies
from hoofbeat.findings.outcomes import Outcome, choice_outcomes, scored_outcomes
from hoofbeat.judging.judgments_folder import JudgmentFolder
from hoofbeat.records import Answer, Question
from hoofbeat.review.exams.exam_assignment import INSIDE, OUTSIDE
from hoofbeat.review.exams.exam_results import answers_of
from hoofbeat.review.exams.exam_sitting import ExamSitting
from hoofbeat.store.folder_library import Folder

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
    digits = "".join(sign for sign in row.condition.partition("%")[0] if sign.isdigit())
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
