"""What to judge in a folder: the aspects and scorers asked for, or its defaults, and the conditions of each."""

from __future__ import annotations

from collections.abc import Sequence

from hoofbeat.errors import UsageError
from hoofbeat.judging.aspect import Aspect
from hoofbeat.judging.catalogue import all_criteria, criteria_named, explains
from hoofbeat.judging.criteria import Criterion, Takes
from hoofbeat.judging.judgments_folder import AnswerFolder, Survey


def matches(condition: str, wanted: str) -> bool:
    """Whether a condition is the one named, whatever its protocol."""
    return condition == wanted or condition.startswith(f"{wanted}, ")


def _count(survey: Survey, kind: Takes) -> int:
    counts = {"any": survey.answers, "text": survey.texts, "choice": survey.choices, "passages": survey.passages}
    return counts[kind]


_MISSING = {
    "any": ("there are no answers here", "name another folder"),
    "choice": ("no answer here was a choice between options", "use --by equivalence"),
    "text": ("all answers here are choices between options", "use --by choice"),
    "passages": ("no passages were shown to the model", "judge a run with retrieval or oracle"),
}


def choose_aspects(folder: AnswerFolder, asked: Sequence[str]) -> tuple[str, ...]:
    """The aspects and scorers to judge by, in order: those asked for, else the defaults that there are answers for."""
    survey = folder.survey
    chosen = criteria_named(asked) or tuple(
        each
        for each in all_criteria()
        if each.default and _count(survey, each.takes) and each.name not in folder.aspects
    )
    where = str(folder.artefact.path)
    if not chosen:
        raise UsageError(
            "there is nothing left to judge: the answers have their verdicts, or there are none",
            where=where,
            fix="name another aspect with --by",
        )
    if again := sorted({each.name for each in chosen} & folder.aspects):
        raise UsageError(
            f"these answers have judgments of {', '.join(again)} already",
            where=where,
            fix="leave that --by out, or judge the run itself into another folder",
        )
    for each in chosen:
        if each.takes != "any" and not _count(survey, each.takes):
            what, fix = _MISSING[each.takes]
            raise UsageError(f"{what}, so there is nothing to judge by {each.name}", where=where, fix=fix)
    _check_verdicts(folder, chosen)
    return tuple(each.name for each in chosen)


def _check_verdicts(folder: AnswerFolder, chosen: Sequence[Criterion]) -> None:
    """What explains wrong answers needs to know which are wrong; a choice is scored on the way."""
    explaining = [each.name for each in chosen if explains(each)]
    judged = {each.name for each in chosen} | folder.scored
    verdicts = {each.name for each in all_criteria() if each.positive and each.takes != "choice"}
    if explaining and folder.survey.texts and not verdicts & judged:
        raise UsageError(
            f"{explaining[0]} is asked of wrong answers, and which are wrong is not known",
            where=str(folder.artefact.path),
            fix="add --by equivalence, or name a folder of judgments",
        )


def chosen_conditions(folder: AnswerFolder, each: Criterion, asked: Sequence[str]) -> set[str]:
    """The conditions whose answers are judged: those asked for, else those of the aspect, else all."""
    conditions = folder.survey.conditions
    for name in asked:
        if not any(matches(condition, name) for condition in conditions):
            raise UsageError(
                f"there are no answers under {name!r}",
                where=str(folder.artefact.path),
                fix=f"there are: {', '.join(conditions)}",
            )
    own = each.conditions if isinstance(each, Aspect) else ()
    wanted = tuple(asked) or own
    if not wanted:
        return set(conditions)
    found = {condition for condition in conditions if any(matches(condition, name) for name in wanted)}
    if not found:
        why = (isinstance(each, Aspect) and each.conditions_note) or f"{each.name} is asked of {', '.join(own)}"
        raise UsageError(
            f"{why}, and there are none",
            where=str(folder.artefact.path),
            fix=f"name other conditions with --condition: {', '.join(conditions)}",
        )
    return found
