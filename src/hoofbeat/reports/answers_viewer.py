"""Questions with their answers, to be read one by one: what was asked, shown, said, chosen and judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from hoofbeat.facets import facet_names, facet_values
from hoofbeat.findings.outcomes import AnswerKey, Outcome
from hoofbeat.records import Answer, Judgment, Question
from hoofbeat.reports.item_views import VERDICTS, answer_view, question_view, system_name
from hoofbeat.reports.lookup import Lookup, System
from hoofbeat.reports.model import (
    AnswerView,
    Entry,
    Viewer,
)
from hoofbeat.reports.packed_viewers import PLAIN_CHARACTERS, PLAIN_ENTRIES, viewer_of
from hoofbeat.text import cut

STATES = ("right", "wrong", "unscored")
"""What an answer can be, as the viewer's filter names it."""

_SINGLE = 6
_UNFOLDED = 4
_FACETS = 4


def answer_key(item: Answer | Judgment | Outcome) -> AnswerKey:
    """What identifies the answer that a record belongs to."""
    return item.question, item.model, item.condition, item.sample


def answers_viewer(
    prefix: str,
    questions: Sequence[Question],
    answers: Iterable[Answer] | Lookup[Answer],
    outcomes: Mapping[AnswerKey, Outcome],
    judgments: Mapping[AnswerKey, Judgment] | Iterable[Judgment] | Lookup[Judgment],
    *,
    budget: int = PLAIN_CHARACTERS,
    most: int = PLAIN_ENTRIES,
) -> Viewer:
    """Every question with all its answers and all their judgments; many are packed, none is left out.

    Give `answers` and `judgments` as `Lookup`s where there are very many: they are then read question by question.
    """
    said = answers if isinstance(answers, Lookup) else Lookup.held(answers)
    if isinstance(judgments, Mapping):
        judgments = judgments.values()
    judged = judgments if isinstance(judgments, Lookup) else Lookup.held(judgments)
    facets = _facets(questions)
    models = len({model for model, _ in said.systems})
    systems = {system: place for place, system in enumerate(said.systems)}
    scored = {(row.model, row.condition) for row in outcomes.values()}
    states: tuple[str, ...] = STATES if scored else ("answered", "unscored")
    if scored and not scored.issuperset(systems):
        states = (*STATES, "answered")
    return viewer_of(
        _entries(prefix, questions, said, outcomes, judged, systems, [name for name, _ in facets]),
        id=f"{prefix}-viewer",
        noun="questions",
        states=states,
        systems=[system_name(*system, models) for system in systems],
        facets=facets,
        characters=budget,
        most=most,
    )


def _facets(questions: Sequence[Question]) -> list[tuple[str, tuple[str, ...]]]:
    """The facets to filter by, with their values in order."""
    names = facet_names([question.facets for question in questions])[:_FACETS]
    return [
        (name, tuple(sorted({value for question in questions for value in facet_values(question.facets, name)})))
        for name in names
    ]


def _entries(
    prefix: str,
    questions: Sequence[Question],
    answers: Lookup[Answer],
    outcomes: Mapping[AnswerKey, Outcome],
    judgments: Lookup[Judgment],
    systems: Mapping[System, int],
    facets: Sequence[str],
) -> Iterator[Entry]:
    models = len({model for model, _ in systems})
    for number, question in enumerate(questions, start=1):
        mine = answers.of(question.id)
        judged: dict[AnswerKey, list[Judgment]] = {}
        for judgment in judgments.of(question.id):
            judged.setdefault(answer_key(judgment), []).append(judgment)
        views = [
            answer_view(
                question,
                answer,
                system_name(answer.model, answer.condition, models),
                outcomes.get(answer_key(answer)),
                judged.get(answer_key(answer), ()),
                places=(systems[answer.model, answer.condition],),
                folded=len(mine) > _UNFOLDED,
            )
            for answer in mine
        ]
        states: list[list[str]] = [[] for _ in systems]
        for view in views:
            states[view.places[0]].append("answered" if view.verdict == "plain" else view.verdict)
        yield Entry(
            id=f"{prefix}-q{number}",
            name=question.id,
            title=cut(question.text, 160),
            marks=_marks(views),
            outcomes=tuple(tuple(dict.fromkeys(each)) for each in states),
            values=tuple(tuple(facet_values(question.facets, name)) for name in facets),
            blocks=(question_view(question, mine), *views),
        )


def _marks(views: Sequence[AnswerView]) -> tuple[tuple[str, str], ...]:
    """The verdict on each answer, or how many there are of each where a line could not hold them."""
    if len(views) <= _SINGLE:
        return tuple((f"{view.system}: {view.verdict_text}", view.verdict) for view in views)
    tally = Counter(view.verdict for view in views)
    return tuple((f"{VERDICTS[verdict]} {tally[verdict]:,}", verdict) for verdict in VERDICTS if tally[verdict])
