"""What every part of the review store shares: the database, the trail and JSON that can be kept."""

from __future__ import annotations

import time
from typing import Any, TypeVar

import msgspec
from sqlalchemy import Connection, Row, insert

from hoofbeat.review.database import Database, events
from hoofbeat.review.review_records import Event, ReviewRefusalError
from hoofbeat.text import encodable

T = TypeVar("T")
_MAX_LENGTH = 500_000
_MAX_LINE = 10_000_000
_NEW_EVENT = insert(events)


class StoreBase:
    """An open database with the trail."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def _note(
        self,
        connection: Connection,
        what: str,
        *,
        by: str,
        study: str = "",
        item: str = "",
        before: object = None,
        after: object = None,
        request: str | None = None,
        at: float | None = None,
    ) -> None:
        """Add a line to the trail, in the transaction of what it tells."""
        connection.execute(
            _NEW_EVENT,
            {
                "at": time.time() if at is None else at,
                "person": by,
                "what": what,
                "study": study,
                "item": item,
                "before": None if before is None else to_json(before, _MAX_LINE),
                "after": None if after is None else to_json(after, _MAX_LINE),
                "request": request,
            },
        )


def event_of(row: Row[Any]) -> Event:
    """A line of the trail from its row."""
    before, after = row.before, row.after
    return Event(
        id=row.id,
        at=row.at,
        person=row.person,
        what=row.what,
        study=row.study,
        item=row.item,
        before=None if before is None else from_json(before, dict[str, Any]),
        after=None if after is None else from_json(after, dict[str, Any]),
    )


def to_json(value: object, max_characters: int = _MAX_LENGTH) -> str:
    """A value as JSON text; what has no place in JSON or is absurdly long is refused."""
    try:
        text = msgspec.json.encode(_plain_within(value)).decode()
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        raise ReviewRefusalError(
            "this can't be kept as it is", fix="send text, numbers, lists and names with values"
        ) from None
    if len(text) > max_characters:
        raise ReviewRefusalError("this is too long to be kept", fix="write less", status=413)
    return text


def from_json(text: str, kind: type[T]) -> T:
    """A value from its JSON text."""
    return msgspec.json.decode(text, type=kind)


def storable_text(text: str) -> str:
    """Text that every database can hold: without zero characters and halves of characters."""
    return encodable(text.replace("\x00", ""))


def _plain_within(value: object) -> object:
    """The value with all its text made plain; records become what JSON has."""
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, msgspec.Struct):
        return _plain_within(msgspec.to_builtins(value))
    if isinstance(value, dict):
        return {storable_text(str(name)): _plain_within(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain_within(each) for each in value]
    return value
