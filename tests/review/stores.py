"""Review stores for tests, on both kinds of database: a fresh SQLite file, or a fresh PostgreSQL database."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hoofbeat.review.review_records import Assignment, ItemMaterial, Person, PersonRole, ReviewItem, Study
from hoofbeat.review.review_store import ReviewStore
from tests.postgres import new_postgres_url

__all__ = [
    "make_study",
    "store_urls",
]


@pytest.fixture(params=["sqlite", "postgresql"])
def store_urls(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database; a test that takes this runs once on each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "review.db")
    return new_postgres_url()


def make_study(
    store: ReviewStore,
    *,
    id: str = "study",
    items: int = 6,
    people: Sequence[PersonRole] = ("reviewer", "reviewer"),
    **settings: Any,
) -> tuple[Study, list[Person], list[str]]:
    """A small study about invented cases, with people (and their tokens) who are all to look at every item."""
    study = Study(
        id=id,
        title="Invented cases",
        form="likert",
        source="bench",
        source_sha256="0" * 64,
        settings=settings,
        created=1.0,
    )
    made = [
        ReviewItem(
            id=f"item-{n}",
            study=id,
            place=n,
            shown=(ItemMaterial(title="Case", text=f"An invented case, number {n}."),),
            stratum="even" if n % 2 == 0 else "odd",
        )
        for n in range(items)
    ]
    store.create_study(study, made, by="test")
    invited = [store.invite(f"Invented {role} {n}", role, by="test") for n, role in enumerate(people)]
    store.assign(
        id,
        [
            Assignment(study=id, item=item.id, person=person.id, place=item.place)
            for person, _ in invited
            for item in made
        ],
        by="test",
    )
    return study, [person for person, _ in invited], [token for _, token in invited]
