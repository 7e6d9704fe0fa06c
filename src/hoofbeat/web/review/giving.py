"""Giving items out on a desk: what a plan still asks for, and nothing that is there already."""

from __future__ import annotations

from collections.abc import Sequence

from hoofbeat.web.exam.assigning import assign_exam
from hoofbeat.web.exam.rules import FORM as EXAM
from hoofbeat.web.review.desk import Desk
from hoofbeat.web.review.plans import Plan, assignments_for
from hoofbeat.web.review.records import Assignment, Item, Person, Study

__all__ = ["EXAM", "first_round", "give_out"]


def first_round(items: Sequence[Item]) -> list[Item]:
    """The items that a plan divides: those of later rounds are for certain people."""
    return [item for item in items if "of" not in item.key]


def give_out(desk: Desk, study: Study, people: Sequence[Person], plan: Plan, *, by: str) -> list[Assignment]:
    """Assign what a plan still asks for; of an exam, to everybody named who has no questions yet.

    What somebody who left has not looked at is given to others.
    """
    if study.form == EXAM:
        new = [
            person
            for person in people
            if person.active and person.sees(study.id) and not desk.assignments(study.id, person.id)
        ]
        return [row for person in new for row in assign_exam(desk, study, person, by=by)]
    active = {person.id for person in desk.people() if person.active}
    through = {(label.item, label.person) for label in desk.labels(study.id, states=["done", "skipped"])}
    existing = [row for row in desk.assignments(study.id) if row.person in active or (row.item, row.person) in through]
    rows = assignments_for(study.id, first_round(desk.items(study.id)), people, plan, existing)
    if rows:
        desk.assign(study.id, rows, by=by)
    return rows
