"""What people say of items, and what adjudicators settle.

A save brings the version its page showed. If the label has moved on since (another tab, another device), nothing is
written and the page gets the present label: no save ever overwrites one it has not seen. A save also brings its own
id: the same id again is the same save, so a page that lost the connection may just send it again.

Whoever has seen what others said of an item, as adjudicators do, can't say anything new of it: their label stays as it
is, and what they have not labelled yet they can only skip.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Collection, Mapping
from typing import Any, get_args

from sqlalchemy import BindParameter, Connection, Row, Select, and_, bindparam, exists, insert, literal, select, update

from hoofbeat.review.database import assignments, decisions, events, items, labels, people, studies
from hoofbeat.review.review_records import (
    Decision,
    ItemLabel,
    LabelState,
    ReviewRefusalError,
    SaveResult,
    not_here,
    not_yours,
    study_closed,
)
from hoofbeat.review.store_base import StoreBase, from_json, storable_text, to_json

REQUEST = re.compile(r"[A-Za-z0-9._:-]{1,100}")
"""What the id of a save looks like."""

_MAX_SECONDS = 30 * 24 * 3600.0
_REASON_LENGTH = 4000
_CONTENT = ("values", "state", "version", "origin", "seconds", "reason", "changed")
_STUDY: BindParameter[str] = bindparam("of_study")
_ITEM: BindParameter[str] = bindparam("of_item")
_PERSON: BindParameter[str] = bindparam("of_person")
SEEN = "labels seen"
"""What the trail says of somebody who has seen what others said of an item."""

_seen = events.alias()
_THIS_LABEL = and_(labels.c.study == _STUDY, labels.c.item == _ITEM, labels.c.person == _PERSON)
_LABEL = select(labels).where(_THIS_LABEL)
_NEW_LABEL = insert(labels)
_CHANGED_LABEL = update(labels).where(_THIS_LABEL)
_STANDING = select(
    studies.c.closed,
    items.c.id.label("known"),
    people.c.role,
    assignments.c.place.label("assigned"),
    events.c.what.label("did"),
    events.c.study.label("did_study"),
    events.c.item.label("did_item"),
    events.c.after.label("did_after"),
    exists(_seen.c.id)
    .where(_seen.c.study == _STUDY, _seen.c.item == _ITEM, _seen.c.person == _PERSON, _seen.c.what == SEEN)
    .label("seen"),
    *(labels.c[name] for name in _CONTENT),
).select_from(
    select(literal(1).label("one"))
    .subquery("one")
    .outerjoin(studies, studies.c.id == _STUDY)
    .outerjoin(items, and_(items.c.study == _STUDY, items.c.id == _ITEM))
    .outerjoin(people, and_(people.c.id == _PERSON, people.c.active))
    .outerjoin(
        assignments,
        and_(assignments.c.study == _STUDY, assignments.c.item == _ITEM, assignments.c.person == _PERSON),
    )
    .outerjoin(events, and_(events.c.person == _PERSON, events.c.request == bindparam("of_request")))
    .outerjoin(labels, _THIS_LABEL)
)


class LabelStore(StoreBase):
    """The labels and decisions of the review store."""

    def label(self, study: str, item: str, person: str) -> ItemLabel | None:
        """What a person says of an item now."""
        with self._database.read() as connection:
            row = connection.execute(_LABEL, {"of_study": study, "of_item": item, "of_person": person}).one_or_none()
            return None if row is None else _label_of(row)

    def labels(
        self, study: str, *, person: str | None = None, states: Collection[LabelState] | None = None
    ) -> list[ItemLabel]:
        """What is said of a study's items, by item and person; of one person, or in some states only."""
        query = select(labels).where(labels.c.study == study).order_by(labels.c.item, labels.c.person)
        if person is not None:
            query = query.where(labels.c.person == person)
        if states is not None:
            query = query.where(labels.c.state.in_(list(states)))
        with self._database.read() as connection:
            return [_label_of(row) for row in connection.execute(query)]

    def save(
        self,
        study: str,
        item: str,
        person: str,
        *,
        values: Mapping[str, Any],
        state: LabelState,
        seconds: float,
        base: int,
        request: str,
        reason: str = "",
    ) -> SaveResult:
        """Keep what a person says, if `base` is the version that stands (0: none yet); else nothing, and `conflict`.

        `seconds` is the time spent on the item in all, as the page counts it. `request` names this save: sent
        twice, it is one save, and sent again with other words (the browser's Back), it is out of date.
        """
        if state not in get_args(LabelState):
            raise ReviewRefusalError("there is no such state", fix=f"one of {', '.join(get_args(LabelState))}")
        if not (math.isfinite(seconds) and 0 <= seconds <= _MAX_SECONDS):
            raise ReviewRefusalError("the time spent is not a number of seconds")
        if len(reason) > _REASON_LENGTH:
            raise ReviewRefusalError("the reason is too long", fix=f"at most {_REASON_LENGTH} characters")
        kept = from_json(to_json(values), dict[str, Any])

        def job(connection: Connection) -> SaveResult:
            stands = _standing(connection, study, item, person, request)
            earlier = _earlier(stands, "saved", study, item)
            if earlier is not None and (earlier["values"], earlier["state"]) == (kept, state):
                return SaveResult(label=_label_within(earlier, study, item, person))
            _check_may_label(stands, state)
            before = _content_in(stands)
            if earlier is not None or base != (stands.version or 0):  # the same form sent again says something else
                return _out_of_date(before, study, item, person)
            after = {
                "values": kept,
                "state": state,
                "version": base + 1,
                "origin": base + 1,
                "seconds": max(float(seconds), stands.seconds or 0.0),
                "reason": storable_text(reason),
                "changed": time.time(),
            }
            self._put(connection, "saved", study, item, person, before, after, request)
            return SaveResult(label=_label_within(after, study, item, person))

        return self._database.together(job)

    def see_labels(self, study: str, item: str, person: str) -> None:
        """Note that a person is shown what others said of an item: what they say of it themselves is final now."""

        def job(connection: Connection) -> None:
            seen = _seen_by(study, person).where(events.c.item == item)
            if connection.execute(seen.limit(1)).one_or_none() is None:
                self._note(connection, SEEN, by=person, study=study, item=item)

        self._database.together(job)

    def seen_labels(self, study: str, person: str, item: str | None = None) -> frozenset[str]:
        """The items of which a person has seen what others said; with `item`, whether that one is among them."""
        query = _seen_by(study, person)
        if item is not None:
            query = query.where(events.c.item == item)
        with self._database.read() as connection:
            return frozenset(connection.execute(query).scalars())

    def undo(self, study: str, item: str, person: str, *, request: str, base: int | None = None) -> SaveResult:
        """Back to what stood before the last change that is not undone yet; this is a new version.

        With `base`, only if that version stands; else nothing is undone, and `conflict`.
        """

        def job(connection: Connection) -> SaveResult:
            stands = _standing(connection, study, item, person, request)
            if (earlier := _earlier(stands, "undone", study, item)) is not None:
                return SaveResult(label=_label_within(earlier, study, item, person))
            _check_may_label(stands)
            before = _content_in(stands)
            if base is not None and base != (stands.version or 0):
                return _out_of_date(before, study, item, person)
            if before is None or before["origin"] == 0:
                raise ReviewRefusalError("there is nothing to undo", fix="continue with the item as it is", status=409)
            target = _before_version(connection, study, item, person, before["origin"])
            after = {
                **before,
                "values": target.get("values", {}),
                "state": target.get("state", "draft"),
                "version": before["version"] + 1,
                "origin": target.get("origin", 0),
                "reason": target.get("reason", ""),
                "changed": time.time(),
            }
            self._put(connection, "undone", study, item, person, before, after, request)
            return SaveResult(label=_label_within(after, study, item, person))

        return self._database.together(job)

    def _put(
        self,
        connection: Connection,
        what: str,
        study: str,
        item: str,
        person: str,
        before: dict[str, Any] | None,
        after: dict[str, Any],
        request: str,
    ) -> None:
        """The label and its line of the trail, in one transaction."""
        columns = {**after, "values": to_json(after["values"])}
        if before is None:
            connection.execute(_NEW_LABEL, {"study": study, "item": item, "person": person, **columns})
        else:
            connection.execute(_CHANGED_LABEL, {"of_study": study, "of_item": item, "of_person": person, **columns})
        self._note(
            connection,
            what,
            by=person,
            study=study,
            item=item,
            before=before,
            after=after,
            request=request,
            at=after["changed"],
        )

    def decide(
        self,
        study: str,
        item: str,
        person: str,
        *,
        values: Mapping[str, Any],
        note: str = "",
        base: int = 0,
        request: str,
    ) -> Decision:
        """Settle an item. `base` is the version of the decision that the page showed; a stale one is refused."""
        kept = to_json(values)
        if len(note) > _REASON_LENGTH:
            raise ReviewRefusalError("the note is too long", fix=f"at most {_REASON_LENGTH} characters")

        def job(connection: Connection) -> Decision:
            stands = _standing(connection, study, item, person, request)
            earlier = _earlier(stands, "decided", study, item)
            if earlier is not None and to_json(earlier["values"]) == kept:
                return Decision(study=study, item=item, person=person, **earlier)
            _check_may_decide(stands)
            ours = (decisions.c.study == study) & (decisions.c.item == item)
            row = connection.execute(select(decisions).where(ours)).one_or_none()
            if earlier is not None or base != (0 if row is None else row.version):
                raise ReviewRefusalError(
                    "someone has settled this item meanwhile", fix="reload the page to see the decision", status=409
                )
            columns = {"note": storable_text(note), "changed": time.time(), "version": base + 1}
            if row is None:
                connection.execute(
                    insert(decisions).values(study=study, item=item, person=person, values=kept, **columns)
                )
            else:
                connection.execute(update(decisions).where(ours).values(person=person, values=kept, **columns))
            after: dict[str, Any] = {**columns, "values": from_json(kept, dict[str, Any])}
            before = None if row is None else _told_of(row)
            self._note(
                connection, "decided", by=person, study=study, item=item, before=before, after=after, request=request
            )
            return Decision(study=study, item=item, person=person, **after)

        return self._database.together(job)

    def decisions(self, study: str) -> list[Decision]:
        """What is settled of a study's items."""
        query = select(decisions).where(decisions.c.study == study).order_by(decisions.c.item)
        with self._database.read() as connection:
            return [Decision(study=row.study, item=row.item, **_told_of(row)) for row in connection.execute(query)]


def _seen_by(study: str, person: str) -> Select[str]:
    return select(events.c.item).where(events.c.study == study, events.c.person == person, events.c.what == SEEN)


def _told_of(row: Row[Any]) -> dict[str, Any]:
    return {
        "person": row.person,
        "values": from_json(row._mapping["values"], dict[str, Any]),
        "note": row.note,
        "changed": row.changed,
        "version": row.version,
    }


def _standing(connection: Connection, study: str, item: str, person: str, request: str) -> Row[Any]:
    """How a person stands to an item, their label of it, and what this very request did before: one question."""
    if not REQUEST.fullmatch(request):
        raise ReviewRefusalError("each save needs its own id", fix="letters, digits and . _ : - up to 100 of them")
    asked = {"of_study": study, "of_item": item, "of_person": person, "of_request": request}
    return connection.execute(_STANDING, asked).one()


def _earlier(stands: Row[Any], what: str, study: str, item: str) -> dict[str, Any] | None:
    """What this very request did before, if it came before."""
    if stands.did is None:
        return None
    if (stands.did, stands.did_study, stands.did_item) != (what, study, item):
        raise ReviewRefusalError("this id was used for another save", fix="reload the page", status=409)
    return from_json(stands.did_after, dict[str, Any])


def _before_version(connection: Connection, study: str, item: str, person: str, version: int) -> dict[str, Any]:
    """What stood before a version that was saved; nothing where it was the first."""
    query = (
        select(events.c.before, events.c.after)
        .where(events.c.study == study, events.c.item == item, events.c.person == person, events.c.what == "saved")
        .order_by(events.c.id.desc())
    )
    for before, after in connection.execute(query):
        if from_json(after, dict[str, Any])["version"] == version:
            return {} if before is None else from_json(before, dict[str, Any])
    raise AssertionError("a version without its line in the trail")


def _check_open(stands: Row[Any]) -> None:
    if stands.closed is None:
        raise not_here("this study does not exist")
    if stands.closed:
        raise study_closed()
    if stands.known is None:
        raise not_here("there is no such item")
    if stands.role is None:
        raise not_yours("your invitation is no longer valid")


def _check_may_label(stands: Row[Any], state: LabelState | None = None) -> None:
    _check_open(stands)
    if stands.assigned is None:
        raise not_yours("this item is not assigned to you", "continue with your own list")
    if stands.seen and (state != "skipped" or stands.state == "done"):
        raise ReviewRefusalError(
            "you have seen the labels of others for this item, so you can't label it any more",
            fix="continue with the next item; if this one has no label of yours, skip it",
            status=409,
        )


def _check_may_decide(stands: Row[Any]) -> None:
    _check_open(stands)
    if stands.role not in ("adjudicator", "admin"):
        raise not_yours("only adjudicators can resolve items")


def _out_of_date(stands: dict[str, Any] | None, study: str, item: str, person: str) -> SaveResult:
    """Nothing was done: the label as it stands."""
    now = stands or {"values": {}, "state": "draft", "version": 0}
    return SaveResult(label=_label_within(now, study, item, person), conflict=True)


def _content_in(row: Row[Any]) -> dict[str, Any] | None:
    """A label's content as the trail keeps it, from a row with its columns; None where there is no label."""
    columns = row._mapping
    if columns["version"] is None:
        return None
    return {"values": from_json(columns["values"], dict[str, Any]), **{name: columns[name] for name in _CONTENT[1:]}}


def _label_within(content: dict[str, Any], study: str, item: str, person: str) -> ItemLabel:
    told = {name: value for name, value in content.items() if name != "origin"}
    return ItemLabel(study=study, item=item, person=person, **told)


def _label_of(row: Row[Any]) -> ItemLabel:
    return _label_within(_content_in(row) or {}, row.study, row.item, row.person)
