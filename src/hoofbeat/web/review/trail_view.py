"""The trail as people read it: who did what when, and what it changed, value by value."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Query
from msgspec import Struct

from hoofbeat.review.review_records import Event
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.text import cut

__all__ = ["TrailChange", "TrailLine", "TrailPage", "TrailQuery", "changes_of", "trail_lines"]

KINDS = (
    "study created",
    "items added",
    "study closed",
    "assigned",
    "saved",
    "undone",
    "decided",
    "invited",
    "renewed",
    "revoked",
    "signed in",
    "signed out",
)
_PAGE = 50
_SHOWN = 200
_BOOKKEEPING = ("version", "origin", "changed")


class TrailQuery:
    """What part of the trail is asked for; a dependency that reads it from the address."""

    def __init__(
        self,
        person: Annotated[str, Query(max_length=100)] = "",
        item: Annotated[str, Query(max_length=300)] = "",
        what: Annotated[str, Query(max_length=100)] = "",
        before: Annotated[int, Query(ge=0, le=2**60)] = 0,
    ) -> None:
        self.person, self.item, self.what, self.before = person, item.strip(), what, before

    def older(self, than: int) -> str:
        """The query of the page after this one."""
        named = {"person": self.person, "item": self.item, "what": self.what}
        return urlencode({**{name: value for name, value in named.items() if value}, "before": than})


class TrailChange(Struct, frozen=True):
    """One value that changed, shortened for a table."""

    name: str
    before: str
    after: str


class TrailLine(Struct, frozen=True):
    """One line of the trail with names for ids."""

    event: Event
    when: str
    who: str
    changes: list[TrailChange]


class TrailPage(Struct, frozen=True):
    """A page of the trail; `older` is the query of the next one, empty on the last."""

    lines: list[TrailLine]
    older: str
    kinds: tuple[str, ...]


def trail_lines(store: ReviewStore, asked: TrailQuery, study: str = "") -> TrailPage:
    """A page of the trail, newest first."""
    names = {person.id: person.name for person in store.people()}
    events = store.trail(
        study=study or None,
        person=asked.person or None,
        item=asked.item or None,
        what=asked.what or None,
        before=asked.before or None,
        newest=True,
        limit=_PAGE + 1,
    )
    lines = [
        TrailLine(
            event,
            datetime.fromtimestamp(event.at, UTC).strftime("%Y-%m-%d %H:%M:%S"),
            names.get(event.person, event.person or "command line"),
            changes_of(event, names),
        )
        for event in events[:_PAGE]
    ]
    older = asked.older(events[_PAGE - 1].id) if len(events) > _PAGE else ""
    return TrailPage(lines, older, KINDS)


def changes_of(event: Event, names: dict[str, str]) -> list[TrailChange]:
    """What an event changed, value by value."""
    before, after = dict(_flat(event.before or {})), dict(_flat(event.after or {}))
    told = (
        TrailChange(name, _said(before.get(name), names), _said(after.get(name), names))
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name)
    )
    return [change for change in told if change.before or change.after]


def _flat(told: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in told.items():
        if name in _BOOKKEEPING:
            continue
        if name == "values" and isinstance(value, dict):
            yield from value.items()
        else:
            yield name, value


def _said(value: object, names: dict[str, str]) -> str:
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.1f}"
    if isinstance(value, list):
        return cut(f"{len(value)}: " + ", ".join(str(each) for each in value), _SHOWN) if value else ""
    return cut(names.get(str(value), str(value)), _SHOWN)
