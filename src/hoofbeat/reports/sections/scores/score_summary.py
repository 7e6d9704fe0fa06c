"""Scores in sentences: for the first screen of a report, and for a page of plain words.

The page names no measure or method that its readers would have to look up.
"""

from __future__ import annotations

from collections.abc import Sequence

from hoofbeat.answering.conditions import ConditionKind, parse_condition
from hoofbeat.errors import UsageError
from hoofbeat.findings.accuracy import Accuracy, SystemDifference, differences
from hoofbeat.findings.caveats import cut_warnings, part_in_words
from hoofbeat.findings.corrected_scores import corrected_accuracies
from hoofbeat.reports.model import Lead, PlainSummary
from hoofbeat.reports.section import share_in_words
from hoofbeat.reports.sections.scores.accuracy_table import missing
from hoofbeat.reports.sections.scores.judge_agreement import people_labels
from hoofbeat.reports.sections.scores.outcome_sets import OutcomeSet
from hoofbeat.reports.tables import MIN_OBSERVATIONS, count_of, written
from hoofbeat.text import cut, some_of

_NAMED = 4
_EXAMPLES = 2
_CERTAIN = 0.05

_WAYS: dict[ConditionKind, str] = {
    "closed": "the model answered from its own knowledge",
    "images": "the model also saw the images of the question",
    "options": "the model saw only the options",
    "question": "the model saw the question without its case",
    "first": "the model saw only the first part of the case",
    "oracle": "the model saw the document that holds the answer",
    "retrieved": "the model saw passages that a search found",
    "agent": "the model searched for itself",
}

SELF_JUDGED = "The judge is the model that answered, and a model tends to agree with itself."


def ranked_systems(group: OutcomeSet, table: Sequence[Accuracy]) -> tuple[list[Accuracy], SystemDifference | None]:
    """The systems, the best first, and how the first two differ, where both were asked all questions.

    A system with less than a tenth of the answers of another is left out: three lucky answers are not the best.
    """
    most = max((row.planned for row in table), default=0)
    ranked = sorted((row for row in table if 10 * row.planned >= most), key=lambda row: -row.accuracy)
    if len(ranked) < 2 or any(
        row.questions < len(group.questions) or missing(row.unscored) == row.planned for row in ranked[:2]
    ):
        return ranked, None
    first, second = ((row.model, row.condition) for row in ranked[:2])
    found = differences(group.outcomes, [(first, second)], clusters=group.clusters)
    return ranked, found[0] if found else None


def score_leads(group: OutcomeSet, ranked: Sequence[Accuracy], first_two: SystemDifference | None) -> tuple[Lead, ...]:
    """How many answers of the best systems and of the last are right, and whether the first two differ surely."""
    if not ranked:
        return ()
    told = [f"{_name(group, row)}: {_right(row)}" for row in _shown(ranked)]
    of = f" ({len(told)} of {len(ranked)} systems)" if len(told) < len(ranked) else ""
    leads = [Lead(f"Right answers{of}. {'; '.join(told)}.", f"#{group.prefix}", "See the scores")]
    asked = count_of(len(group.questions), "question")
    if first_two is not None:
        first, second = (_name(group, row) for row in ranked[:2])
        p = written(first_two.p_holm, "p")
        leads.append(
            Lead(f"{first} is better than {second} (p {p if '<' in p else f'= {p}'}, {asked}).")
            if first_two.p_holm < _CERTAIN
            else Lead(f"{asked} are too few to tell whether {first} or {second} is better.")
        )
    leads[1:1] = _checked_by_people(group, ranked)
    unscored = sum(missing(row.unscored) for row in ranked)
    parts = {part_in_words(each.manifest) for each in group.artefacts}
    to = parts.pop() or asked if len(parts) == 1 else asked
    how = f"{count_of(sum(row.planned for row in ranked), 'answer')} to {to} were planned"
    leads.append(Lead(f"{how}; {unscored:,} could not be scored." if unscored else f"{how}, and all were scored."))
    if group.self_judged:
        leads.append(Lead(SELF_JUDGED))
    return tuple(leads)


def _checked_by_people(group: OutcomeSet, ranked: Sequence[Accuracy]) -> list[Lead]:
    """How often people agree with the judge, and the scores that their labels correct."""
    labels = [row for row in people_labels(group) if row.correct is not None]
    judged = {(row.model, row.condition, row.question, row.sample): row.correct for row in group.outcomes}
    both = [(row.correct, judged.get((row.model, row.condition, row.question, row.sample))) for row in labels]
    same = sum(person == judge for person, judge in both if judge is not None)
    compared = sum(judge is not None for _, judge in both)
    if not compared:
        return []
    found = {
        (row.model, row.condition): row.score
        for row in corrected_accuracies(group.outcomes, labels, clusters=group.clusters)
    }
    told = []
    for row in _shown(ranked):
        score = found.get((row.model, row.condition))
        if score is not None and score.estimate is not None and score.interval is not None:
            low, high = 100 * score.interval.low, 100 * score.interval.high
            told.append(f"{_name(group, row)}: {score.estimate:.1%} (95% interval {low:.1f}–{high:.1f}%)")
    words = f"People agree with the judge on {same:,} of {count_of(compared, 'label')}."
    if told:
        words += f" Corrected by people: {'; '.join(told)}."
    return [Lead(words, f"#{group.prefix}-judge", "See the judge")]


def _right(row: Accuracy) -> str:
    """The share of right answers, and what it would be if all that have no score were right, where they are many."""
    if missing(row.unscored) == row.planned:
        return f"no answer could be scored ({row.planned:,} planned)"
    told = share_in_words(row.correct, row.planned, (row.bootstrap.low, row.bootstrap.high))
    if row.sensitivity is None:
        return told
    return f"{told}; {row.sensitivity[1]:.1%} if the {missing(row.unscored):,} without a score were right"


def _name(group: OutcomeSet, row: Accuracy) -> str:
    return group.name((row.model, row.condition))


def _shown(ranked: Sequence[Accuracy]) -> list[Accuracy]:
    """The best systems and the last."""
    return list(ranked) if len(ranked) <= _NAMED else [*ranked[: _NAMED - 1], ranked[-1]]


def score_summary(
    group: OutcomeSet, ranked: Sequence[Accuracy], first_two: SystemDifference | None, subject: str
) -> PlainSummary | None:
    """The page; `ranked` are the systems, the best first, `first_two` how the first two differ. None without scores."""
    if not ranked:
        return None
    names = [each.path.name for each in group.artefacts]
    return PlainSummary(
        title=subject,
        subtitle=f"{'Folders' if len(names) > 1 else 'Folder'}: {some_of(names, _NAMED)}.",
        warning=" ".join(cut_warnings(group.artefacts)),
        asked=_asked(group, len(ranked)),
        found=_found(group, ranked),
        sure=_sure(group, ranked, first_two),
        todo=_todo(group, ranked, first_two),
        limits=(
            "It does not show that any of these systems is safe or useful for patients.",
            "It says nothing about other questions, other models or later versions of the same models.",
            "A right answer is one that says the same as the reference answer. The reference itself may be wrong.",
        ),
    )


def _asked(group: OutcomeSet, systems: int) -> tuple[str, ...]:
    questions = list(group.questions.values())
    names = [group.name(system) for system in group.order]
    told = [f"{count_of(len(questions), 'question')} went to {count_of(systems, 'system')}: {some_of(names, _NAMED)}."]
    ways = list(dict.fromkeys(condition for _, condition in group.order))
    told += [f"{name}: {words}." for name in ways[:_NAMED] if (words := _way(name))]
    told += [f"For example: “{cut(each.text, 150)}”" for each in questions[:_EXAMPLES]]
    people = f"by people ({', '.join(group.people)})" if group.by_people else ""
    judge = f"by a model ({group.judge})" if group.judge else ""
    who = " and ".join(filter(None, (judge, people)))
    told.append(f"Each answer was compared with the reference answer {who}." if who else "Answers chose among options.")
    return tuple(told)


def _way(condition: str) -> str:
    """What a model was shown under a condition; nothing where others named it."""
    try:
        return _WAYS[parse_condition(condition).kind]
    except UsageError:
        return ""


def _found(group: OutcomeSet, ranked: Sequence[Accuracy]) -> tuple[str, ...]:
    told = [f"{_name(group, row)} answered {row.correct:,} of {row.planned:,} right." for row in _shown(ranked)]
    lost = sum(missing(row.unscored) for row in ranked)
    if lost:
        told.append(f"{count_of(lost, 'answer')} could not be scored and count as not right.")
    return tuple(told)


def _sure(group: OutcomeSet, ranked: Sequence[Accuracy], first_two: SystemDifference | None) -> tuple[str, ...]:
    best = ranked[0]
    name = _name(group, best)
    told = []
    if best.questions < MIN_OBSERVATIONS:
        told.append(f"{count_of(best.questions, 'question')} are too few to say how often {name} is right.")
    else:
        low, high = round(100 * best.bootstrap.low), round(100 * best.bootstrap.high)
        told.append(
            f"On questions like these {name} is probably right in {low}% to {high}% (95% interval from "
            f"{count_of(best.questions, 'question')})."
        )
    if first_two is not None:
        told.append(_apart(group, ranked, first_two))
    if group.self_judged:
        told.append(SELF_JUDGED)
    if not group.people and group.judge:
        told.append("No person has checked the judge on these answers.")
    return tuple(told)


def _apart(group: OutcomeSet, ranked: Sequence[Accuracy], found: SystemDifference) -> str:
    first, second = (_name(group, row) for row in ranked[:2])
    if found.p_holm < _CERTAIN:
        return f"Chance alone would rarely put {first} so far ahead of {second}."
    return f"The difference between {first} and {second} may be chance."


def _todo(group: OutcomeSet, ranked: Sequence[Accuracy], first_two: SystemDifference | None) -> tuple[str, ...]:
    best = ranked[0]
    name = _name(group, best)
    wrong = best.planned - best.correct
    told = [f"Read the {count_of(wrong, 'answer')} of {name} that did not count as right."] if wrong else []
    if first_two is not None and first_two.p_holm >= _CERTAIN:
        first, second = (_name(group, row) for row in ranked[:2])
        told.append(f"Do not choose between {first} and {second} by this result. Ask more questions first.")
    if group.self_judged:
        told.append("Judge the answers again with another model.")
    if not group.people and group.judge:
        told.append("Let people label a sample of the answers (hoofbeat judge --sample-for-humans).")
    return tuple(told) or ("Repeat it with questions from your own setting.",)
