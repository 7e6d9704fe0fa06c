"""Who reviews what: a number of reviewers per item, some items seen by more so that their agreement can be measured.

A plan and a seed say everything: the same items and people get the same assignments. What is assigned already stays,
so that a reviewer who joins later, items that are added and a plan that asks for more only ever add to it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from hoofbeat.errors import UsageError
from hoofbeat.judging.stratified_sample import allot
from hoofbeat.review.exam_items import FORM as EXAM
from hoofbeat.review.exam_items import assign_exam
from hoofbeat.review.review_records import Assignment, Person, ReviewItem, Study
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.store.tables import seeded_number

__all__ = [
    "EXAM",
    "AssignmentCoverage",
    "AssignmentPlan",
    "Groups",
    "assign_items",
    "assignments_for",
    "coverage",
    "first_round",
    "plan_of",
    "stratified_sample",
]

Groups = Literal["any", "inside", "outside"]
"""Whether people see any item, only those of their own groups (specialties), or only those of others."""


class AssignmentPlan(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How items are divided among people.

    `per_item` people look at each item (0: everybody), `overlap` is the share of items that `overlap_by` people look at
    (0: everybody). `sample` takes that many items, each stratum by its share (0: all); `max_per_person` is the
    maximum for one person (0: no limit). `groups` says whose items a person may get.
    """

    per_item: int = 1
    overlap: float = 0.0
    overlap_by: int = 0
    sample: int = 0
    max_per_person: int = 0
    groups: Groups = "any"
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what can't be a plan."""
        if min(self.per_item, self.overlap_by, self.sample, self.max_per_person) < 0:
            raise UsageError("the numbers of a plan can't be negative", fix="give whole numbers that are not negative")
        if not 0 <= self.overlap <= 1:
            raise UsageError(f"the overlap {self.overlap:g} is not a share", fix="give a number from 0 to 1")
        if self.overlap and 0 < self.overlap_by <= self.per_item:
            raise UsageError(
                f"overlap items have {self.overlap_by} reviewers, as many as the others",
                fix=f"give more than {self.per_item}, or 0 for everybody",
            )

    def recorded(self) -> dict[str, Any]:
        """The plan as a study's settings keep it, defaults written out."""
        return {name: getattr(self, name) for name in self.__struct_fields__}


class AssignmentCoverage(Struct, frozen=True, kw_only=True):
    """How far items are covered: how many items have which number of reviewers, and how many have too few."""

    reviewers: dict[int, int]
    short: int


def plan_of(study: Study) -> AssignmentPlan:
    """The plan that a study was made with; the plain one where it has none."""
    given = study.settings.get("plan")
    return msgspec.convert(given, AssignmentPlan) if isinstance(given, dict) else AssignmentPlan()


def stratified_sample(items: Sequence[ReviewItem], count: int, seed: int, purpose: str = "sample") -> list[ReviewItem]:
    """`count` of the items, each stratum by its share, in the items' order; the draw depends on ids and seed alone."""
    if count >= len(items):
        return list(items)
    strata: defaultdict[tuple[str, ...], list[ReviewItem]] = defaultdict(list)
    for item in items:
        strata[item.stratum,].append(item)
    given = allot({name: len(rows) for name, rows in strata.items()}, count, seed, (purpose,))
    drawn = {
        item.id
        for name, rows in strata.items()
        for item in sorted(rows, key=lambda item: seeded_number(seed, purpose, item.id))[: given[name]]
    }
    return [item for item in items if item.id in drawn]


def assignments_for(
    study: str,
    items: Sequence[ReviewItem],
    people: Sequence[Person],
    plan: AssignmentPlan,
    existing: Iterable[Assignment] = (),
) -> list[Assignment]:
    """The assignments that are missing for the plan, in the order of people and of their places.

    Those that exist count, whoever they are of; leave out the ones that nobody will work on any more. Of the people who
    may see an item, those get it who have least to do, then least of its stratum.
    """
    board = _Board(items, people, plan, existing)
    chosen = stratified_sample(items, plan.sample, plan.seed) if plan.sample else list(items)
    shared = {item.id for item in _overlap(chosen, plan)}
    # What few people may see is given out first, what many see last; so that loads can be evened out to the end.
    for item in sorted(chosen, key=lambda item: (len(board.able[item.id]), seeded_number(plan.seed, "turn", item.id))):
        wanted = _wanted(plan, item.id in shared, len(people))
        board.give(item, wanted)
    rows = []
    for person in people:
        mine = sorted(board.new[person.id], key=lambda item: seeded_number(plan.seed, "order", person.id, item))
        first = board.next_place[person.id]
        rows += [
            Assignment(
                study=study,
                item=item,
                person=person.id,
                place=first + place,
                why="overlap" if item in shared else "plan",
            )
            for place, item in enumerate(mine)
        ]
    return rows


def coverage(
    items: Sequence[ReviewItem], people: Sequence[Person], plan: AssignmentPlan, assignments: Iterable[Assignment]
) -> AssignmentCoverage:
    """How far a plan is fulfilled by assignments."""
    chosen = stratified_sample(items, plan.sample, plan.seed) if plan.sample else list(items)
    shared = {item.id for item in _overlap(chosen, plan)}
    seen = Counter(row.item for row in assignments)
    short = sum(seen[item.id] < _wanted(plan, item.id in shared, len(people)) for item in chosen)
    return AssignmentCoverage(reviewers=dict(sorted(Counter(seen[item.id] for item in items).items())), short=short)


def _overlap(chosen: Sequence[ReviewItem], plan: AssignmentPlan) -> list[ReviewItem]:
    return (
        stratified_sample(chosen, math.ceil(len(chosen) * plan.overlap), plan.seed, "overlap") if plan.overlap else []
    )


def _wanted(plan: AssignmentPlan, shared: bool, people: int) -> int:
    count = plan.overlap_by if shared else plan.per_item
    return count or people


class _Board:
    """Who has what so far, and who may get what."""

    def __init__(
        self,
        items: Sequence[ReviewItem],
        people: Sequence[Person],
        plan: AssignmentPlan,
        existing: Iterable[Assignment],
    ) -> None:
        self.plan = plan
        self.able: Mapping[str, list[str]] = {
            item.id: [person.id for person in people if _may(person, item, plan.groups)] for item in items
        }
        self.having: defaultdict[str, set[str]] = defaultdict(set)
        self.load: Counter[str] = Counter()
        self.of_stratum: Counter[tuple[str, str]] = Counter()
        self.next_place: Counter[str] = Counter()
        self.new: defaultdict[str, list[str]] = defaultdict(list)
        strata = {item.id: item.stratum for item in items}
        for row in existing:
            self.having[row.item].add(row.person)
            self.load[row.person] += 1
            self.of_stratum[row.person, strata.get(row.item, "")] += 1
            self.next_place[row.person] = max(self.next_place[row.person], row.place + 1)

    def give(self, item: ReviewItem, wanted: int) -> None:
        """Give the item to as many people as are missing, where there are that many."""
        free = [
            person
            for person in self.able[item.id]
            if person not in self.having[item.id]
            and not (self.plan.max_per_person and self.load[person] >= self.plan.max_per_person)
        ]
        free.sort(
            key=lambda person: (
                self.load[person],
                self.of_stratum[person, item.stratum],
                seeded_number(self.plan.seed, "pick", item.id, person),
            )
        )
        for person in free[: max(0, wanted - len(self.having[item.id]))]:
            self.having[item.id].add(person)
            self.load[person] += 1
            self.of_stratum[person, item.stratum] += 1
            self.new[person].append(item.id)


def _may(person: Person, item: ReviewItem, groups: Groups) -> bool:
    if not person.active or not person.sees(item.study):
        return False
    mine = {group.casefold() for group in person.groups}
    return groups == "any" or (item.group.casefold() in mine) == (groups == "inside")


def first_round(items: Sequence[ReviewItem]) -> list[ReviewItem]:
    """The items that a plan divides: those of later rounds are for certain people."""
    return [item for item in items if "of" not in item.key]


def assign_items(
    store: ReviewStore, study: Study, people: Sequence[Person], plan: AssignmentPlan, *, by: str
) -> list[Assignment]:
    """Assign what a plan still asks for; of an exam, to everybody named who has no questions yet.

    What somebody who left has not looked at is given to others.
    """
    if study.form == EXAM:
        new = [
            person
            for person in people
            if person.active and person.sees(study.id) and not store.assignments(study.id, person.id)
        ]
        return [row for person in new for row in assign_exam(store, study, person, by=by)]
    active = {person.id for person in store.people() if person.active}
    through = {(label.item, label.person) for label in store.labels(study.id, states=["done", "skipped"])}
    existing = [row for row in store.assignments(study.id) if row.person in active or (row.item, row.person) in through]
    rows = assignments_for(study.id, first_round(store.items(study.id)), people, plan, existing)
    if rows:
        store.assign(study.id, rows, by=by)
    return rows
