"""A person's worklist in a study: finding an item on it, the addresses around it, and what a posted form brings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Depends, Request
from msgspec import Struct
from starlette.datastructures import FormData

from hoofbeat.errors import InputError
from hoofbeat.review.exam_items import FORM as EXAM
from hoofbeat.review.forms import Form, FormField, asked_fields, form_for, next_undone
from hoofbeat.review.review_records import Assignment, ItemLabel, Person, ReviewItem, Study
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.web.security import require_person

Me = Annotated[Person, Depends(require_person)]
"""The person who asks."""

REASONS = (
    "not my field",
    "cannot be judged from what is shown",
    "text is damaged or unreadable",
    "I know this case or its author",
    "something else",
)
"""Why people skip; the last asks for words."""

_MAX_REASON = 500


class WorklistItem(Struct, frozen=True, kw_only=True):
    """An item of a person's own list, with everything a page or the API needs of it; `number` counts from 1."""

    study: Study
    item: ReviewItem
    form: Form
    fields: tuple[FormField, ...]
    mine: tuple[Assignment, ...]
    number: int

    def neighbour(self, step: int) -> str | None:
        """The item so many places further on the list."""
        place = self.number - 1 + step
        return self.mine[place].item if 0 <= place < len(self.mine) else None


def place_of(store: ReviewStore, person: Person, study: str, item: str) -> WorklistItem | None:
    """An item on a person's own list; nothing where it is not on it, whatever else it may be.

    Questions of an exam are never found here: they have pages of their own, with a clock and stages.
    """
    mine = tuple(store.assignments(study, person.id))
    number = next((place for place, row in enumerate(mine, start=1) if row.item == item), 0)
    found = store.study(study) if number else None
    shown = store.item(study, item) if number else None
    if found is None or shown is None or found.form == EXAM:
        return None
    form = form_for(found, shown)
    return WorklistItem(study=found, item=shown, form=form, fields=asked_fields(form, shown), mine=mine, number=number)


def skip_reason(reason: str, more: str = "") -> str:
    """Why an item was skipped, in one line; a skip without a reason is refused."""
    chosen, words = " ".join(reason.split()), " ".join(more.split())
    told = words if chosen in ("", REASONS[-1]) else f"{chosen}: {words}" if words else chosen
    if not told:
        raise InputError("an item is skipped with a reason only", fix="choose one, or write it in a few words")
    return told[:_MAX_REASON]


def address_of(study: str, item: str | None = None) -> str:
    """The page of an item, or of the study where none is named."""
    base = f"/review/{quote(study, safe='')}"
    return base if item is None else f"{base}/items/{quote(item, safe='')}"


def next_address(place: WorklistItem, labels: Iterable[ItemLabel]) -> str:
    """Where to go after an item: to the next that waits, or to the study's page."""
    return address_of(place.study.id, next_undone(place.mine, labels, place.item.id))


_PREFIX = "v:"


async def _posted(request: Request) -> FormData:
    return await request.form()


Posted = Annotated[FormData, Depends(_posted)]
"""The fields of a plain form."""


def form_values(fields: Iterable[FormField], form: FormData) -> dict[str, Any]:
    """The values of a plain form by field; ticked boxes come as several of one name."""
    return {
        field.name: [str(each) for each in form.getlist(_PREFIX + field.name)]
        if field.kind == "options"
        else str(form.get(_PREFIX + field.name, ""))
        for field in fields
    }


def version_of(form: FormData) -> int:
    """The version that the form's page showed; 0 where it says none."""
    text = str(form.get("base") or "0")
    return int(text) if text.isdecimal() and len(text) < 10 else 0
