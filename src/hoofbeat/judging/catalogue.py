"""All aspects by name, which of them a folder calls for, and whether those asked for can be judged there."""

from __future__ import annotations

from collections.abc import Sequence

from hoofbeat.errors import UsageError
from hoofbeat.judging.aspects import Aspect
from hoofbeat.judging.equivalence import EQUIVALENCE
from hoofbeat.judging.explaining import ERROR_TYPE, FAILURE_MODE
from hoofbeat.judging.folder import AnswerFolder
from hoofbeat.judging.relevance import RELEVANCE
from hoofbeat.judging.scoring import CHOICE_LABELS, SCORERS
from hoofbeat.records import Answer

__all__ = ["ASPECTS", "MODEL_ASPECTS", "choose_aspects", "chosen_conditions", "labels_of", "matches", "takes"]

MODEL_ASPECTS: dict[str, Aspect] = {each.name: each for each in (EQUIVALENCE, RELEVANCE, FAILURE_MODE, ERROR_TYPE)}
"""The aspects that a model judges."""

ASPECTS = ("choice", *SCORERS, "bertscore", *MODEL_ASPECTS)
"""All aspects, in the order in which an answer is judged: verdicts stand before what explains them."""

_ORACLE = "oracle"


def labels_of(aspect: str) -> tuple[str, ...]:
    """The labels an aspect may have; none where it is a score."""
    if aspect in MODEL_ASPECTS:
        return MODEL_ASPECTS[aspect].labels
    return CHOICE_LABELS if aspect == "choice" else ()


def takes(aspect: str, answer: Answer) -> bool:
    """Whether an aspect is about this kind of answer: choices are scored by their option, the rest by a judge."""
    if aspect == "choice":
        return bool(answer.protocol)
    if aspect == "equivalence":
        return not answer.protocol
    return True


def matches(condition: str, wanted: str) -> bool:
    """Whether a condition is the one named, whatever its protocol."""
    return condition == wanted or condition.startswith(f"{wanted}, ")


def choose_aspects(folder: AnswerFolder, asked: Sequence[str]) -> tuple[str, ...]:
    """The aspects to judge, in order: those asked for, else choice and equivalence where there are answers for them."""
    for name in asked:
        if name not in ASPECTS:
            raise UsageError(f"there is no aspect {name!r}", fix=f"use one of: {', '.join(ASPECTS)}")
    survey = folder.survey
    wanted = set(asked) or {
        name
        for name, answers in (("choice", survey.choices), ("equivalence", survey.texts))
        if answers and name not in folder.aspects
    }
    where = str(folder.artefact.path)
    if not wanted:
        raise UsageError(
            "there is nothing left to judge: the answers have their verdicts, or there are none",
            where=where,
            fix="name another aspect with --by",
        )
    if again := sorted(wanted & folder.aspects):
        raise UsageError(
            f"these answers have judgments of {', '.join(again)} already",
            where=where,
            fix="leave that --by out, or judge the run itself into another folder",
        )
    none = {
        "choice": (survey.choices, "no answer here was a choice between options", "use --by equivalence"),
        "equivalence": (survey.texts, "all answers here are choices between options", "use --by choice"),
        "relevance": (survey.passages, "no passages were shown to the model", "judge a run with retrieval or oracle"),
    }
    for name in wanted & none.keys():
        count, what, fix = none[name]
        if not count:
            raise UsageError(f"{what}, so there is nothing to judge by {name}", where=where, fix=fix)
    explaining = [name for name in wanted if name in MODEL_ASPECTS and MODEL_ASPECTS[name].explains]
    known = {"equivalence"} & (wanted | folder.scored)
    if explaining and survey.texts and not known:
        raise UsageError(
            f"{explaining[0]} is asked of wrong answers, and which are wrong is not known",
            where=where,
            fix="add --by equivalence, or name a folder of judgments",
        )
    return tuple(name for name in ASPECTS if name in wanted)


def chosen_conditions(folder: AnswerFolder, aspect: str, asked: Sequence[str]) -> set[str]:
    """The conditions whose answers an aspect judges: those asked for, else all; for failure modes, else the oracle."""
    conditions = folder.survey.conditions
    for name in asked:
        if not any(matches(condition, name) for condition in conditions):
            raise UsageError(
                f"there are no answers under {name!r}",
                where=str(folder.artefact.path),
                fix=f"there are: {', '.join(conditions)}",
            )
    if not asked and aspect != FAILURE_MODE.name:
        return set(conditions)
    wanted = tuple(asked) or (_ORACLE,)
    found = {condition for condition in conditions if any(matches(condition, name) for name in wanted)}
    if not found:
        raise UsageError(
            "failure modes are asked of answers that had the source (condition oracle), and there are none",
            where=str(folder.artefact.path),
            fix=f"name other conditions with --condition: {', '.join(conditions)}",
        )
    return found
