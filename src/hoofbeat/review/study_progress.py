"""How far a study has come: by person, by stratum, and in all."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from hoofbeat.review.forms import load_form
from hoofbeat.review.review_records import Assignment, ItemLabel, Person, ReviewItem, Study
from hoofbeat.review.reviewer_agreement import pseudonyms

if TYPE_CHECKING:
    from hoofbeat.review.review_store import ReviewStore


class PersonProgress(Struct, frozen=True, kw_only=True):
    """One person: how many items are theirs, what became of them, and the median of seconds spent on a done one."""

    person: str
    name: str
    assigned: int
    done: int
    skipped: int
    draft: int
    median_seconds: float | None
    active: bool = True


class StratumProgress(Struct, frozen=True, kw_only=True):
    """One stratum: its items, how many are assigned, and how many everybody is through with who has them."""

    stratum: str
    items: int
    assigned: int
    complete: int


class StudyProgress(Struct, frozen=True, kw_only=True):
    """A study: labels that are done or skipped of all that are assigned, and the rows behind it."""

    study: str
    items: int
    unassigned: int
    assigned: int
    done: int
    skipped: int
    people: tuple[PersonProgress, ...]
    strata: tuple[StratumProgress, ...]
    closed: bool

    @property
    def share(self) -> float | None:
        """The share of assignments that somebody is through with."""
        return (self.done + self.skipped) / self.assigned if self.assigned else None


def study_progress(
    store: ReviewStore, study: Study, *, names: bool, items: Sequence[ReviewItem] | None = None
) -> StudyProgress:
    """How far a study has come. `items` are the study's, if at hand.

    Without `names` people are Reviewer 1, 2, …, and a blinded study has no strata: they say what the judge said.
    """
    return progress_of(
        study,
        items or store.items(study.id),
        store.people(),
        store.assignments(study.id),
        store.labels(study.id),
        names=names,
    )


def progress_of(
    study: Study,
    items: Sequence[ReviewItem],
    people: Sequence[Person],
    assignments: Sequence[Assignment],
    labels: Sequence[ItemLabel],
    *,
    names: bool,
) -> StudyProgress:
    """The same from what the review store keeps."""
    of_person: Counter[str] = Counter(row.person for row in assignments)
    states: dict[tuple[str, str], ItemLabel] = {(label.item, label.person): label for label in labels}
    by_person: defaultdict[str, list[ItemLabel]] = defaultdict(list)
    for label in labels:
        by_person[label.person].append(label)
    shown = {person.id: person.name for person in people} if names else pseudonyms(study.id, of_person)
    rows = [
        _person(person, shown[person.id], of_person[person.id], by_person[person.id])
        for person in people
        if of_person[person.id]
    ]
    takers: defaultdict[str, list[str]] = defaultdict(list)
    for row in assignments:
        takers[row.item].append(row.person)

    def through(item: str, person: str) -> bool:
        label = states.get((item, person))
        return label is not None and label.state != "draft"

    strata: dict[str, list[ReviewItem]] = {}
    for item in () if _hides_strata(study, names) else items:
        strata.setdefault(item.stratum, []).append(item)
    return StudyProgress(
        study=study.id,
        items=len(items),
        unassigned=sum(not takers[item.id] for item in items),
        assigned=len(assignments),
        done=sum(row.done for row in rows),
        skipped=sum(row.skipped for row in rows),
        people=tuple(rows if names else sorted(rows, key=lambda row: int(row.name.rpartition(" ")[2]))),
        strata=tuple(
            StratumProgress(
                stratum=name,
                items=len(members),
                assigned=sum(bool(takers[item.id]) for item in members),
                complete=sum(
                    bool(takers[item.id]) and all(through(item.id, person) for person in takers[item.id])
                    for item in members
                ),
            )
            for name, members in sorted(strata.items())
        ),
        closed=study.closed,
    )


def _hides_strata(study: Study, names: bool) -> bool:
    return not names and load_form(study.form, study.settings).blinded


def _person(person: Person, name: str, assigned: int, labels: Sequence[ItemLabel]) -> PersonProgress:
    states = Counter(label.state for label in labels)
    times = [label.seconds for label in labels if label.state == "done" and label.seconds > 0]
    return PersonProgress(
        person=person.id,
        name=name,
        assigned=assigned,
        done=states["done"],
        skipped=states["skipped"],
        draft=states["draft"],
        median_seconds=statistics.median(times) if times else None,
        active=person.active,
    )
