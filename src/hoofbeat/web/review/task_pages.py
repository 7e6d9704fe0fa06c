"""The pages on which a person reviews: the list of studies, a study, and one item at a time.

Everything works by plain forms; the script of the page adds drafts that save themselves, keys and a clock. It reads,
saves and undoes a person's label of an item as JSON: a save that comes a second time under its id changes nothing and
is answered like the first, and one that is out of date is answered with 409 and the current label.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, Path, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from msgspec import Struct
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from starlette.datastructures import FormData

from hoofbeat.errors import HoofbeatError, InputError
from hoofbeat.review.exam_items import FORM as EXAM
from hoofbeat.review.forms import (
    Form,
    FormField,
    WorklistProgress,
    asked_fields,
    check_values,
    differences,
    form_for,
    next_undone,
    parts_for,
    progress_of_person,
    when_words,
)
from hoofbeat.review.review_records import Assignment, ItemLabel, LabelState, Person, ReviewItem, Study, not_here
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.text import cut, one_line
from hoofbeat.web.page_rendering import ErrorOut, artefact_of, item_image, not_found, render
from hoofbeat.web.security import require_person
from hoofbeat.web.site import store_of, whole_site

router = APIRouter()

Me = Annotated[Person, Depends(require_person)]
"""The person who asks."""

REASONS = (
    "not my field",
    "cannot be judged from this page",
    "text is damaged or unreadable",
    "I know this case or its author",
    "something else",
)
"""Why people skip; the last asks for words."""

_MAX_REASON = 500
_DESCRIBED = 200
"""So long a list still says how each item begins: each is read for it."""

_WORDS = 80


class WorklistItem(Struct, frozen=True, kw_only=True):
    """An item of a person's own list, with everything a page or the API needs of it; `number` counts from 1."""

    study: Study
    item: ReviewItem
    form: Form
    fields: tuple[FormField, ...]
    mine: tuple[Assignment, ...]
    number: int

    def neighbour(self, step: int) -> str | None:
        """The item that many places further down the list."""
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
        raise InputError("skipping an item needs a reason", fix="choose a reason, or write one")
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


# Pages
@router.get("/review", response_class=HTMLResponse, include_in_schema=False)
def studies(request: Request, person: Me) -> HTMLResponse:
    """The person's studies with what waits in each."""
    store = store_of(request)
    rows: list[tuple[Study, WorklistProgress]] = [
        (study, progress_of_person(mine, store.labels(study.id, person=person.id)))
        for study in store.studies()
        if (mine := store.assignments(study.id, person.id))
    ]
    known = {study.id for study, _ in rows}
    further = [
        study
        for study in store.studies()
        if study.form == EXAM and not study.closed and study.id not in known and person.sees(study.id)
    ]
    return render(request, "review/studies.html", title="Your reviews", rows=rows, further=further)


@router.get("/review/{study}", response_class=HTMLResponse, include_in_schema=False)
def overview(request: Request, person: Me, study: str) -> Response:
    """One study: how far it is, the person's own list, and thanks when all of it is done."""
    store = store_of(request)
    found = store.study(study)
    mine = store.assignments(study, person.id)
    if found is None or not mine:
        return not_found(request, "You do not have this study.")
    if found.form == EXAM:
        return RedirectResponse(f"/exam/{quote(study)}", status_code=303)
    labels = {label.item: label for label in store.labels(study, person=person.id)}
    return render(
        request,
        "review/overview.html",
        title=found.title,
        study=found,
        rows=[(row, labels.get(row.item), _begins(store, row) if len(mine) <= _DESCRIBED else "") for row in mine],
        progress=progress_of_person(mine, labels.values()),
    )


def _begins(store: ReviewStore, row: Assignment) -> str:
    """How the question of an item begins, or its case, so that people find the item again."""
    item = store.item(row.study, row.item)
    texts = {part.kind: part.text for part in reversed(item.shown if item else ())}
    return cut(one_line(texts.get("question") or texts.get("case", "")), _WORDS)


@router.get("/review/{study}/next", response_class=HTMLResponse, include_in_schema=False)
def go_on(request: Request, person: Me, study: str, after: str = "") -> Response:
    """The next item that waits, or the study's page where none does."""
    store = store_of(request)
    mine = store.assignments(study, person.id)
    item = next_undone(mine, store.labels(study, person=person.id), after)
    shown = item if item is not None and place_of(store, person, study, item) else None
    return RedirectResponse(address_of(study, shown), status_code=303)


@router.get("/review/{study}/items/{item}", response_class=HTMLResponse, include_in_schema=False)
def show(request: Request, person: Me, study: str, item: str) -> Response:
    """One item, with what the person has said of it so far."""
    store = store_of(request)
    place = place_of(store, person, study, item)
    if place is None:
        return not_found(request, "You do not have this item.")
    label = store.label(study, item, person.id)
    return _item_page(request, store, person, place, label=label, values=label.values if label else {})


def _item_page(
    request: Request,
    store: ReviewStore,
    person: Person,
    place: WorklistItem,
    *,
    label: ItemLabel | None,
    values: dict[str, Any],
    problem: HoofbeatError | None = None,
    conflict: ItemLabel | None = None,
) -> HTMLResponse:
    labels = store.labels(place.study.id, person=person.id)
    version = conflict.version if conflict else label.version if label else 0
    return render(
        request,
        "review/item.html",
        title=f"Item {place.number}: {place.form.title}",
        status=409 if conflict else 400 if problem else 200,
        place=place,
        parts=parts_for(place.study, place.item, person.id),
        label=label,
        values=values,
        version=version,
        seen=bool(store.seen_labels(place.study.id, person.id, place.item.id)),
        reopened=_was_done(store, label),
        first_time=not any(each.state != "draft" for each in labels),
        progress=progress_of_person(place.mine, labels),
        problem=problem,
        conflict=conflict,
        differing=differences(place.form, place.fields, values, conflict.values) if conflict else [],
        reasons=REASONS,
        request_id=secrets.token_urlsafe(16),
        when_words=when_words,
        item_link=lambda id: address_of(place.study.id, id),
    )


def _was_done(store: ReviewStore, label: ItemLabel | None) -> bool:
    """Whether a draft takes the place of a label that was done, and that counts no more."""
    if label is None or label.state != "draft":
        return False
    events = store.trail(study=label.study, item=label.item, person=label.person, newest=True)
    return any((event.before or {}).get("state") == "done" for event in events)


# The plain form: what happens without the script
@router.post("/review/{study}/items/{item}", include_in_schema=False)
def take(request: Request, person: Me, study: str, item: str, form: Posted) -> Response:
    """Save, skip, keep as a draft or undo, as the button says."""
    store = store_of(request)
    place = place_of(store, person, study, item)
    if place is None:
        return not_found(request, "You do not have this item.")
    doing = str(form.get("do", "save"))
    name = str(form.get("request", "")) or secrets.token_urlsafe(16)
    before = store.label(study, item, person.id)
    given = form_values(place.fields, form)
    if doing == "undo":
        undone = store.undo(study, item, person.id, request=name, base=version_of(form))
        if undone.conflict:
            return _item_page(request, store, person, place, label=before, values=given, conflict=undone.label)
        return RedirectResponse(address_of(study, item), status_code=303)
    state: LabelState = "skipped" if doing == "skip" else "draft" if doing == "draft" else "done"
    try:
        reason = skip_reason(str(form.get("reason", "")), str(form.get("more", ""))) if state == "skipped" else ""
        values = check_values(place.form, place.item, given, complete=state == "done")
    except InputError as err:
        return _item_page(request, store, person, place, label=before, values=given, problem=err)
    saved = store.save(
        study,
        item,
        person.id,
        values=values,
        state=state,
        seconds=before.seconds if before else 0.0,
        base=version_of(form),
        request=name,
        reason=reason,
    )
    if saved.conflict:
        return _item_page(request, store, person, place, label=before, values=values, conflict=saved.label)
    goal = address_of(study, item) if state == "draft" else next_address(place, store.labels(study, person=person.id))
    return RedirectResponse(goal, status_code=303)


# Images of an item
@router.get("/review/{study}/items/{item}/images/{number}", include_in_schema=False)
def image(request: Request, person: Me, study: str, item: str, number: int) -> Response:
    """An image of an item on the person's list, from the artefact where this server shows it."""
    place = place_of(store_of(request), person, study, item)
    artefact = artefact_of(whole_site(request), place.study) if place else None
    files = [str(name) for name in place.item.key.get("images", [])] if place else []
    return item_image(request, artefact, files, number)


api = APIRouter(prefix="/api/review", tags=["review"])
Name = Annotated[str, Path(min_length=1, max_length=200)]
RequestId = Annotated[str, Field(pattern=r"^[A-Za-z0-9._:-]{1,100}$")]


def _whole(value: object) -> object:
    """A whole number also where it is written with a point, as JSON allows."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Version = Annotated[int, BeforeValidator(_whole), Field(ge=0, lt=2**31)]


class LabelSave(BaseModel):
    """A label to be kept. `base` is the version the page showed (0: none), `request` an id of this very save."""

    model_config = ConfigDict(extra="forbid", strict=True)

    values: dict[str, str | list[str]] = Field(max_length=50)
    state: LabelState
    base: Version
    request: RequestId
    seconds: float = Field(default=0.0, ge=0, le=30 * 24 * 3600, allow_inf_nan=False)
    reason: str = Field(default="", max_length=500)


class LabelUndo(BaseModel):
    """An undo. `base` is the version the page showed (null: whatever stands), `request` an id of this very undo."""

    model_config = ConfigDict(extra="forbid", strict=True)

    request: RequestId
    base: Version | None = None


class LabelOut(BaseModel):
    """The label as it stands; version 0 says that there is none yet."""

    values: dict[str, Any]
    state: LabelState
    version: int
    seconds: float
    reason: str
    changed: float


class ProgressCounts(BaseModel):
    """How far the person has come with the study."""

    done: int
    skipped: int
    left: int
    total: int
    words: str


class LabelUpdateOut(BaseModel):
    """The label, whether a save was refused for being out of date, the counts, and where to go next."""

    label: LabelOut
    conflict: bool
    progress: ProgressCounts
    next: str


_ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorOut, "description": "A value is not valid, or a field is missing."},
    401: {"model": ErrorOut, "description": "Nobody is signed in."},
    403: {"model": ErrorOut, "description": "The token against forged requests is missing, or this item is not yours."},
    404: {"model": ErrorOut, "description": "You do not have this item."},
    422: {"model": ErrorOut, "description": "The request does not have the expected form."},
    429: {"model": ErrorOut, "description": "Too many requests."},
    503: {"model": ErrorOut, "description": "The database can't be used."},
}
_SAVE_ERRORS: dict[int | str, dict[str, Any]] = {
    **_ERRORS,
    409: {
        "model": LabelUpdateOut | ErrorOut,
        "description": "Out of date (with the current label), or the study is closed.",
    },
}


@api.get("/{study}/items/{item}", responses=_ERRORS, response_model=LabelUpdateOut)
def read(request: Request, person: Me, study: Name, item: Name) -> Response:
    """The person's own label of an item."""
    store, place = _find(request, person, study, item)
    return _answer(store, person, place, store.label(study, item, person.id))


@api.post("/{study}/items/{item}", responses=_SAVE_ERRORS, response_model=LabelUpdateOut)
def save(request: Request, person: Me, study: Name, item: Name, body: LabelSave) -> Response:
    """Keep the person's label of an item."""
    store, place = _find(request, person, study, item)
    values = check_values(place.form, place.item, body.values, complete=body.state == "done")
    saved = store.save(
        study,
        item,
        person.id,
        values=values,
        state=body.state,
        seconds=body.seconds,
        base=body.base,
        request=body.request,
        reason=skip_reason(body.reason) if body.state == "skipped" else "",
    )
    return _answer(store, person, place, saved.label, conflict=saved.conflict)


@api.post("/{study}/items/{item}/undo", responses=_SAVE_ERRORS, response_model=LabelUpdateOut)
def undo(request: Request, person: Me, study: Name, item: Name, body: LabelUndo) -> Response:
    """Take the person's last change of an item back."""
    store, place = _find(request, person, study, item)
    undone = store.undo(study, item, person.id, request=body.request, base=body.base)
    return _answer(store, person, place, undone.label, conflict=undone.conflict)


def _find(request: Request, person: Person, study: str, item: str) -> tuple[ReviewStore, WorklistItem]:
    store = store_of(request)
    place = place_of(store, person, study, item)
    if place is None:
        raise not_here("you do not have this item")
    return store, place


def _answer(
    store: ReviewStore, person: Person, place: WorklistItem, label: ItemLabel | None, *, conflict: bool = False
) -> JSONResponse:
    labels = store.labels(place.study.id, person=person.id)
    progress = progress_of_person(place.mine, labels)
    said = LabelOut(
        values=label.values if label else {},
        state=label.state if label else "draft",
        version=label.version if label else 0,
        seconds=label.seconds if label else 0.0,
        reason=label.reason if label else "",
        changed=label.changed if label else 0.0,
    )
    answer = LabelUpdateOut(
        label=said,
        conflict=conflict,
        progress=ProgressCounts(
            done=progress.done, skipped=progress.skipped, left=progress.left, total=progress.total, words=progress.words
        ),
        next=next_address(place, labels),
    )
    return JSONResponse(answer.model_dump(), status_code=409 if conflict else 200)


router.include_router(api)
