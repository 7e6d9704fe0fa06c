"""Which questions a person gets: so many, a share of them inside the person's specialty; drawn by the exam's seed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from hoofbeat.web.exam.rules import Rules, person_seed, rules_of
from hoofbeat.web.review.desk import Desk
from hoofbeat.web.review.records import Assignment, Item, Person, Study

__all__ = ["INSIDE", "OUTSIDE", "UNKNOWN", "assign_exam", "exam_assignments"]

INSIDE, OUTSIDE, UNKNOWN = "inside", "outside", "plan"
"""Why a question is assigned: it is of the person's specialty, it is not, or the person has named none."""


def exam_assignments(study: Study, items: Sequence[Item], person: Person) -> list[Assignment]:
    """A person's questions in their order; the same study and person give the same.

    Where the specialty has too few questions, others fill the list, and the other way round.
    """
    rules = rules_of(study)
    seed = person_seed(rules, study.id, person.id)
    drawn = sorted(items, key=lambda item: _number(seed, "draw", item.id))
    wanted = rules.per_person or len(items)
    chosen = _chosen(drawn, person, rules, wanted)
    mixed = sorted(chosen, key=lambda item: _number(seed, "order", item.id))
    return [
        Assignment(study=study.id, item=item.id, person=person.id, place=place, why=_why(item, person))
        for place, item in enumerate(mixed)
    ]


def _chosen(drawn: Sequence[Item], person: Person, rules: Rules, wanted: int) -> list[Item]:
    if not person.groups:
        return list(drawn[:wanted])
    inside = [item for item in drawn if _why(item, person) == INSIDE]
    outside = [item for item in drawn if _why(item, person) == OUTSIDE]
    share = round(wanted * rules.inside)
    first = max(min(share, len(inside)), min(wanted - len(outside), len(inside)))
    return inside[:first] + outside[: wanted - first]


def _why(item: Item, person: Person) -> str:
    mine = {group.casefold() for group in person.groups}
    of = {str(group).casefold() for group in item.key.get("groups", [item.group])}
    return UNKNOWN if not mine else OUTSIDE if mine.isdisjoint(of) else INSIDE


def _number(seed: int, what: str, item: str) -> bytes:
    return hashlib.blake2b(f"{seed}\0{what}\0{item}".encode(), digest_size=8).digest()


def assign_exam(desk: Desk, study: Study, person: Person, *, by: str) -> list[Assignment]:
    """The questions of a person, given to them now where they have none yet; the trail says which."""
    mine = desk.assignments(study.id, person.id)
    if mine:
        return mine
    desk.assign(study.id, exam_assignments(study, desk.items(study.id), person), by=by)
    return desk.assignments(study.id, person.id)
