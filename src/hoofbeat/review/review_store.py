"""The review store: all that reviewing keeps, behind one object that every page uses.

    with ReviewStore.open("review.db") as store:
        store.create_study(study, items)

Safe for many threads, and for several processes on one database. Whatever changes leaves a line in the trail, written
in the same transaction as the change.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection, Row, func, insert, select, update

from hoofbeat.errors import UsageError
from hoofbeat.review.case_store import CaseStore
from hoofbeat.review.database import Database, assignments, events, items, people, studies
from hoofbeat.review.invitations import PeopleStore
from hoofbeat.review.review_labels import LabelStore
from hoofbeat.review.review_records import Assignment, Event, ReviewItem, Study, not_here
from hoofbeat.review.store_base import event_of, from_json, to_json

_MAX_EVENTS = 10_000
_BIGGEST_ID = 2**62
_STUDY_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_ITEM_ID = re.compile(r"[^\s/\\?#%]{1,200}")
_TAKEN = ("people",)


class ReviewStore(PeopleStore, LabelStore, CaseStore):
    """An open review store. Use it as a context manager, or call `close`."""

    @classmethod
    def open(cls, url_or_path: str) -> ReviewStore:
        """Open a SQLite file or a `postgresql://` address; a new one is created, an older one brought up to date."""
        return cls(Database(url_or_path))

    def __repr__(self) -> str:
        return f"ReviewStore({self.where!r})"

    def __enter__(self) -> ReviewStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def where(self) -> str:
        """The file or the address, without a password."""
        return self._database.where

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def find_study(self, wanted: str) -> Study:
        """A study by its id, or by a part of it that only one study has."""
        known = self.studies()
        found = [study for study in known if study.id == wanted] or [study for study in known if wanted in study.id]
        if len(found) == 1:
            return found[0]
        listed = ", ".join(study.id for study in found or known)
        if found:
            raise UsageError(f"{len(found)} studies are called {wanted!r}", fix=f"name one: {listed}")
        raise UsageError(f"there is no study {wanted!r} at {self.where}", fix=f"there is: {listed or 'none yet'}")

    def create_study(self, study: Study, items: Sequence[ReviewItem], *, by: str = "") -> None:
        """A new study with its items. The same study again changes nothing; another of that id is refused."""
        if not _STUDY_ID.fullmatch(study.id) or study.id in _TAKEN:
            raise UsageError(
                f"a study can't be called {study.id!r}", fix="letters, digits and . _ - up to 100, a letter first"
            )
        with self._database.write() as connection:
            row = connection.execute(select(studies).where(studies.c.id == study.id)).one_or_none()
            if row is not None:
                self._check_same(connection, _study_of(row), study, items)
                return
            created = study.created or time.time()
            connection.execute(
                insert(studies).values(
                    id=study.id,
                    title=study.title,
                    form=study.form,
                    source=study.source,
                    source_sha256=study.source_sha256,
                    settings=to_json(study.settings),
                    created=created,
                    closed=study.closed,
                    made_from=to_json(study.made_from),
                )
            )
            after = {"title": study.title, "form": study.form, "source": study.source, "items": len(items)}
            self._note(connection, "study created", by=by, study=study.id, after=after)
            _insert_items(connection, study.id, items)

    def _check_same(self, connection: Connection, old: Study, new: Study, given: Sequence[ReviewItem]) -> None:
        settings = from_json(to_json(new.settings), dict[str, Any])
        same = (
            msgspec.structs.replace(
                new, created=old.created, closed=old.closed, settings=settings, made_from=old.made_from
            )
            == old
        )
        rows = connection.execute(select(items.c.id, items.c.body).where(items.c.study == old.id))
        known = {row.id: row.body for row in rows}
        if not same or any(known.get(item.id) != to_json(item) for item in given):
            raise UsageError(f"there is another study {old.id!r} already", fix="give this one another name")

    def add_items(self, study: str, items: Sequence[ReviewItem], *, by: str = "") -> None:
        """More items for a study (revisions, flagged ones); those that are there already stay as they are."""
        with self._database.write() as connection:
            _need_study(connection, study)
            new = _insert_items(connection, study, items)
            if new:
                self._note(connection, "items added", by=by, study=study, after={"items": new})

    def studies(self) -> list[Study]:
        """All studies, oldest first."""
        with self._database.read() as connection:
            rows = connection.execute(select(studies).order_by(studies.c.created, studies.c.id))
            return [_study_of(row) for row in rows]

    def study(self, id: str) -> Study | None:
        """One of them."""
        with self._database.read() as connection:
            row = connection.execute(select(studies).where(studies.c.id == id)).one_or_none()
            return None if row is None else _study_of(row)

    def close_study(self, id: str, by: str) -> None:
        """A study takes no more labels or decisions from now on."""
        with self._database.write() as connection:
            if _need_study(connection, id).closed:
                return
            connection.execute(update(studies).where(studies.c.id == id).values(closed=True))
            self._note(connection, "study closed", by=by, study=id)

    def items(self, study: str) -> list[ReviewItem]:
        """A study's items in their order."""
        query = select(items.c.body).where(items.c.study == study).order_by(items.c.place, items.c.id)
        with self._database.read() as connection:
            return [from_json(body, ReviewItem) for body in connection.execute(query).scalars()]

    def item(self, study: str, item: str) -> ReviewItem | None:
        """One of them."""
        query = select(items.c.body).where(items.c.study == study, items.c.id == item)
        with self._database.read() as connection:
            body = connection.execute(query).scalar_one_or_none()
            return None if body is None else from_json(body, ReviewItem)

    def assign(self, study: str, rows: Sequence[Assignment], *, by: str) -> None:
        """Give items to people; what is theirs already stays as it is."""
        with self._database.write() as connection:
            _need_study(connection, study)
            known = set(connection.execute(select(items.c.id).where(items.c.study == study)).scalars())
            everybody = set(connection.execute(select(people.c.id)).scalars())
            given = select(assignments.c.item, assignments.c.person).where(assignments.c.study == study)
            there = {(row.item, row.person) for row in connection.execute(given)}
            new: dict[tuple[str, str], Assignment] = {}
            for row in rows:
                if row.study != study or row.item not in known or row.person not in everybody:
                    raise not_here("an assignment names an item or a person that is not there")
                if (row.item, row.person) not in there:
                    new.setdefault((row.item, row.person), row)
            if not new:
                return
            connection.execute(insert(assignments), [msgspec.structs.asdict(row) for row in new.values()])
            for person in dict.fromkeys(row.person for row in new.values()):
                theirs = [row.item for row in new.values() if row.person == person]
                self._note(connection, "assigned", by=by, study=study, after={"person": person, "items": theirs})

    def assignments(self, study: str, person: str | None = None) -> list[Assignment]:
        """Who is to look at what, in the order of each one's list."""
        query = select(assignments).where(assignments.c.study == study)
        if person is not None:
            query = query.where(assignments.c.person == person)
        query = query.order_by(assignments.c.person, assignments.c.place, assignments.c.item)
        with self._database.read() as connection:
            return [Assignment(**row._mapping) for row in connection.execute(query)]

    def trail(
        self,
        *,
        study: str | None = None,
        item: str | None = None,
        person: str | None = None,
        what: str | None = None,
        after: int = 0,
        before: int | None = None,
        newest: bool = False,
        limit: int = 200,
    ) -> list[Event]:
        """Lines of the trail with numbers above `after` and below `before`, oldest (or newest) first."""
        named = {"study": study, "item": item, "person": person, "what": what}
        query = select(events).where(events.c.id > min(max(after, 0), _BIGGEST_ID))
        for name, value in named.items():
            if value is not None:
                query = query.where(events.c[name] == value)
        if before is not None:
            query = query.where(events.c.id < min(max(before, 0), _BIGGEST_ID))
        query = query.order_by(events.c.id.desc() if newest else events.c.id)
        with self._database.read() as connection:
            return [event_of(row) for row in connection.execute(query.limit(min(max(limit, 0), _MAX_EVENTS)))]

    def trail_size(self) -> int:
        """How many lines the trail has."""
        with self._database.read() as connection:
            return int(connection.execute(select(func.count()).select_from(events)).scalar_one())


def _need_study(connection: Connection, study: str) -> Study:
    row = connection.execute(select(studies).where(studies.c.id == study)).one_or_none()
    if row is None:
        raise not_here("this study does not exist")
    return _study_of(row)


def _insert_items(connection: Connection, study: str, given: Sequence[ReviewItem]) -> list[str]:
    there = set(connection.execute(select(items.c.id).where(items.c.study == study)).scalars())
    new: dict[str, ReviewItem] = {}
    for item in given:
        if item.study != study:
            raise UsageError("an item belongs to another study", fix="give every item the study's id")
        if not _ITEM_ID.fullmatch(item.id) or item.id in (".", ".."):
            raise UsageError("an item's id can't be part of an address", fix="letters, digits and . _ - up to 200")
        if item.id not in there:
            if item.id in new:
                raise UsageError(f"two items have the same id {item.id!r}", fix="give every item a different id")
            new[item.id] = item
    if new:
        rows = [{"study": study, "id": item.id, "place": item.place, "body": to_json(item)} for item in new.values()]
        connection.execute(insert(items), rows)
    return list(new)


def _study_of(row: Row[Any]) -> Study:
    return Study(
        id=row.id,
        title=row.title,
        form=row.form,
        source=row.source,
        source_sha256=row.source_sha256,
        settings=from_json(row.settings, dict[str, Any]),
        created=row.created,
        closed=row.closed,
        made_from=from_json(row.made_from, tuple[str, ...]),
    )


class Outlines:
    """The outlines of studies' items, read again only when items were added: those that are there never change."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[int, list[ReviewItem]]] = {}

    def of(self, store: ReviewStore, study: str) -> list[ReviewItem]:
        """The items in their order, each without what it shows."""
        last = store.trail(study=study, what="items added", newest=True, limit=1)
        stamp = last[0].id if last else 0
        with self._lock:
            kept = self._kept.get(study)
            if kept is None or kept[0] != stamp or not kept[1]:
                kept = (stamp, [replace(item, shown=()) for item in store.items(study)])
                self._kept[study] = kept
            return kept[1]
