"""Studies on which invented people have worked: labels through the review store as the pages save them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hoofbeat.review.assignments import AssignmentPlan, assign_items
from hoofbeat.review.forms import check_values, form_for
from hoofbeat.review.review_records import ItemLabel, Person, PersonRole, ReviewItem, Study
from hoofbeat.review.review_store import ReviewStore
from tests.review.review_studies import study_of

__all__ = ["Team", "label", "rated", "team_of"]

_REQUESTS = itertools.count()


class Team:
    """A study on a review store with the people who were invited to it, and their tokens."""

    def __init__(
        self, store: ReviewStore, study: Study, items: Sequence[ReviewItem], invited: Sequence[tuple[Person, str]]
    ) -> None:
        self.store, self.study, self.items = store, study, list(items)
        self.people = [person for person, _ in invited]
        self.tokens = [token for _, token in invited]

    def reviewers(self) -> list[Person]:
        """Those who only review."""
        return [person for person in self.people if person.role == "reviewer"]

    def token(self, role: PersonRole) -> str:
        """The token of the first with this role."""
        return next(token for person, token in zip(self.people, self.tokens, strict=True) if person.role == role)

    def say(self, person: Person, item: ReviewItem, values: dict[str, Any], **more: Any) -> ItemLabel:
        """A label that is done."""
        return label(self.store, self.study, item, person, values, **more)


def team_of(
    store: ReviewStore,
    folders: Path,
    form: str,
    *,
    roles: Sequence[PersonRole] = ("reviewer", "reviewer", "adjudicator", "admin"),
    plan: AssignmentPlan | None = None,
    **how: Any,
) -> Team:
    """A study of a form, its items given to the reviewers by a plan (without one: all to everybody)."""
    study, items = study_of(folders, form, **how)
    store.create_study(study, items, by="test")
    invited = [store.invite(f"Invented {role} {number}", role, by="test") for number, role in enumerate(roles, start=1)]
    team = Team(store, study, items, invited)
    assign_items(store, study, team.reviewers(), plan or AssignmentPlan(per_item=0), by="test")
    return team


def label(
    store: ReviewStore,
    study: Study,
    item: ReviewItem,
    person: Person,
    values: dict[str, Any],
    *,
    seconds: float = 30.0,
    base: int = 0,
) -> ItemLabel:
    """A label that is done, checked against its form as the pages do."""
    checked = check_values(form_for(study, item), item, values)
    saved = store.save(
        study.id,
        item.id,
        person.id,
        values=checked,
        state="done",
        seconds=seconds,
        base=base,
        request=f"test-{next(_REQUESTS)}",
    )
    assert not saved.conflict
    return saved.label


def rated(team: Team, answer: Callable[[Person, ReviewItem, random.Random], dict[str, Any]], *, seed: int = 0) -> None:
    """Let every reviewer label all that is assigned to them."""
    rng = random.Random(seed)
    known = {item.id: item for item in team.items}
    for person in team.reviewers():
        for row in team.store.assignments(team.study.id, person.id):
            values = answer(person, known[row.item], rng)
            team.say(person, known[row.item], values, seconds=rng.randint(20, 200))
