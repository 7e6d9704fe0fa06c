"""What the trials of a question found: kept with the question, shown in its review, counted in the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from hoofbeat.recipes.recipe_items import RecipeItem
from hoofbeat.recipes.review_tasks import (
    ABSURD,
    CASE_TELLS,
    DOUBTS,
    GIVEN_AWAY,
    HELD,
    NOT_ANSWERABLE,
    NOT_TRIED,
    RIVAL,
    SECOND_RIGHT,
    STYLE,
    TOLD,
    UNGRADED,
    WRONG,
)

BY_QUESTION = "question"
"""The basis of a guess from an open question without its case."""


class AnswerTrial(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a solver answered from the case. `match` is yes, partly or no; empty until it is compared.

    `rival` is another answer that the comparing call finds just as good as the right one; `others` are answers that the
    solver expects of colleagues. `told` are words of the case that leave nothing to decide, says the solver.
    """

    said: str = ""
    others: tuple[str, ...] = ()
    told: str = ""
    match: str = ""
    answerable: bool = True
    missing: str = ""
    rival: str = ""
    reason: str = ""
    failure: str = ""


class GuessTrial(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a solver guessed from the options alone, and by what: style, content, knowledge or chance.

    Of an open question it is what a solver guessed without the case (basis `question`), `by_luck` if no word of the
    question led there; the grading call says whether it is right.
    """

    said: str = ""
    right: bool = False
    by_luck: bool = False
    basis: str = ""
    reason: str = ""
    failure: str = ""


class OptionVerdict(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the comparing call says of one wrong option."""

    option: str
    relation: str = "different"
    also_right: bool = False
    absurd: bool = False
    other_style: bool = False
    reason: str = ""

    @property
    def fault(self) -> str:
        """Why the option is a second right answer; nothing when it is not."""
        what = {"same": "means the same as the answer", "broader": "includes the answer", "narrower": "is a form of it"}
        told = what.get(self.relation) or ("is also right here" if self.also_right else "")
        return f"{told}: {self.reason}" if told else ""


class GradedAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An answer that a colleague might give. `counts` is yes, no or unclear by key, accepted answers and note alone."""

    answer: str
    counts: str
    defensible: bool = False
    reason: str = ""

    @property
    def is_rival(self) -> bool:
        """Whether it does not count although an expert can defend it from case and question."""
        return self.counts == "no" and self.defensible

    @property
    def is_undecided(self) -> bool:
        """Whether graders could differ on an answer that an expert can defend: the note has to decide."""
        return self.counts == "unclear" and self.defensible


class GradingTrial(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the answers that colleagues might give are graded."""

    grades: tuple[GradedAnswer, ...] = ()
    failure: str = ""


class RefereeTrial(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a referee holds against publishing the question as it is; `second` if the referee is not the first."""

    faults: tuple[str, ...] = ()
    second: bool = False
    failure: str = ""


class QuestionTrials(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What all trials of a question found."""

    answer: AnswerTrial | None = None
    guess: GuessTrial | None = None
    grading: GradingTrial | None = None
    referee: RefereeTrial | None = None
    comparison: tuple[OptionVerdict, ...] = ()
    comparison_failure: str = ""

    @property
    def faults(self) -> dict[str, str]:
        """The wrong options that are also right, with why."""
        return {each.option: each.fault for each in self.comparison if each.fault}

    @property
    def failures(self) -> tuple[str, ...]:
        """Why trials failed that were made."""
        made = (self.answer, self.guess, self.grading, self.referee)
        return tuple(filter(None, (*(each.failure for each in made if each), self.comparison_failure)))

    @property
    def doubts(self) -> tuple[str, ...]:
        """What is doubtful about the question, the gravest first."""
        answer, guess = self.answer or AnswerTrial(), self.guess or GuessTrial()
        grading, referee = self.grading or GradingTrial(), self.referee or RefereeTrial()
        found = {
            SECOND_RIGHT: bool(self.faults),
            RIVAL: bool(answer.rival) or any(each.is_rival for each in grading.grades),
            NOT_ANSWERABLE: not answer.answerable,
            HELD: bool(referee.faults),
            WRONG: answer.match == "no",
            TOLD: guess.right and guess.basis == BY_QUESTION and not guess.by_luck,
            CASE_TELLS: bool(answer.told) and answer.match in ("yes", "partly"),
            UNGRADED: any(each.counts == "unclear" for each in grading.grades),
            GIVEN_AWAY: guess.right and guess.basis in ("style", "content"),
            ABSURD: any(each.absurd for each in self.comparison),
            STYLE: any(each.other_style for each in self.comparison),
            NOT_TRIED: any(self.failures),
        }
        return tuple(doubt for doubt in DOUBTS if found[doubt])


def trial_findings(trials: QuestionTrials) -> dict[str, str]:
    """The doubts of a question, each with what it rests on."""
    answer, guess = trials.answer or AnswerTrial(), trials.guess or GuessTrial()
    grading = trials.grading or GradingTrial()
    refused = [f"{each.answer} does not count: {each.reason}" for each in grading.grades if each.is_rival]
    left_open = [f"{each.answer}: {each.reason}" for each in grading.grades if each.counts == "unclear"]
    whys = {
        SECOND_RIGHT: "; ".join(f"{option} {why}" for option, why in trials.faults.items()),
        RIVAL: "; ".join(filter(None, (answer.rival, *refused))),
        NOT_ANSWERABLE: answer.missing,
        HELD: "; ".join((trials.referee or RefereeTrial()).faults),
        WRONG: f"{answer.said}: {answer.reason}",
        TOLD: f"from the question alone a solver guessed “{guess.said}”: {guess.reason}",
        CASE_TELLS: f"nothing is left to decide, says a solver, after “{answer.told}”",
        UNGRADED: "; ".join(left_open),
        GIVEN_AWAY: guess.reason,
        ABSURD: "; ".join(f"{each.option}: {each.reason}" for each in trials.comparison if each.absurd),
        STYLE: "; ".join(each.option for each in trials.comparison if each.other_style),
        NOT_TRIED: "; ".join(trials.failures),
    }
    return {doubt: whys[doubt] for doubt in trials.doubts}


def trial_lines(trials: QuestionTrials) -> list[str]:
    """What the trials of a question found, in words."""
    lines = []
    if trials.answer and trials.answer.said:
        verdict = {"yes": "right", "partly": "right in part", "no": "wrong"}.get(trials.answer.match, "not compared")
        lines.append(f"a solver answered “{trials.answer.said}” ({verdict}): {trials.answer.reason}")
    if trials.guess and trials.guess.said:
        verdict = "right" if trials.guess.right else "wrong"
        open_question = trials.guess.basis == BY_QUESTION
        told = verdict if open_question else f"{verdict}, by {trials.guess.basis}"
        shown = "question" if open_question else "options"
        lines.append(f"from the {shown} alone it guessed “{trials.guess.said}” ({told}): {trials.guess.reason}")
    if trials.grading and trials.grading.grades:
        lines.append(f"{len(trials.grading.grades)} answers that colleagues might give were graded by key and note")
    if trials.referee and not trials.referee.failure and not trials.referee.faults:
        lines.append("a referee who saw the report would publish it as it is")
    if trials.comparison:
        lines.append(f"{len(trials.comparison)} wrong options were compared with the answer and the case")
    return [*lines, *(f"{doubt}: {why}" for doubt, why in trial_findings(trials).items())]


def trials_of(item: RecipeItem) -> QuestionTrials:
    """What the trials of an item found so far."""
    return msgspec.convert(item.get("trials", {}), QuestionTrials)


def trial_counts(trials: Sequence[QuestionTrials], options: Sequence[int]) -> dict[str, object]:
    """How many questions were tried in which way and what was found; `options` are the options of each."""
    answered = [each.answer for each in trials if each.answer and not each.answer.failure]
    guessed = [
        (each.guess, count)
        for each, count in zip(trials, options, strict=True)
        if each.guess and not each.guess.failure and count
    ]
    blind = [each.guess for each in trials if each.guess and each.guess.basis == BY_QUESTION and each.grading]
    graded = [grade for each in trials if each.grading for grade in each.grading.grades]
    verdicts = [verdict for each in trials for verdict in each.comparison]
    doubts = Counter(doubt for each in trials for doubt in each.doubts)
    counts: dict[str, object] = {"questions": len(trials), "without doubt": sum(not each.doubts for each in trials)}
    if answered:
        right = sum(each.match == "yes" for each in answered)
        counts["answered"] = {"of": len(answered), "right": right}
    if guessed:
        counts["guessed from the options"] = {
            "of": len(guessed),
            "right": sum(each.right for each, _ in guessed),
            "expected by chance": round(sum(1 / count for _, count in guessed), 2),
        }
    if blind:
        counts["guessed from the question"] = {"of": len(blind), "right": sum(each.right for each in blind)}
    if graded:
        counts["other answers graded"] = {
            "of": len(graded),
            "left open": sum(each.counts == "unclear" for each in graded),
        }
    refereed = [each.referee for each in trials if each.referee and not each.referee.failure]
    if refereed:
        counts["refereed"] = {"of": len(refereed), "to publish as it is": sum(not each.faults for each in refereed)}
    if verdicts:
        counts["wrong options compared"] = len(verdicts)
    return {**counts, "doubts": {doubt: doubts[doubt] for doubt in DOUBTS if doubts[doubt]}}
