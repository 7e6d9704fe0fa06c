"""What the script of the review page talks to: a person's own label of an item, saved, read and undone.

A save that comes a second time under its id changes nothing and is answered like the first. One that is out of date is
answered with 409 and the label as it stands.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from hoofbeat.review.forms import check_values, progress_of_person
from hoofbeat.review.review_records import ItemLabel, LabelState, Person, not_here
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.web.error_pages import ErrorOut
from hoofbeat.web.review.worklist import Me, WorklistItem, next_address, place_of, skip_reason
from hoofbeat.web.site import store_of

router = APIRouter(prefix="/api/review", tags=["review"])

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
    400: {"model": ErrorOut, "description": "A value that the form does not take, or something is missing."},
    401: {"model": ErrorOut, "description": "Nobody is signed in."},
    403: {"model": ErrorOut, "description": "The token against forged posts is missing, or this is not yours."},
    404: {"model": ErrorOut, "description": "There is no such item on your list."},
    422: {"model": ErrorOut, "description": "The request is not of this form."},
    429: {"model": ErrorOut, "description": "Too many requests."},
    503: {"model": ErrorOut, "description": "The database can't be used."},
}
_SAVE_ERRORS: dict[int | str, dict[str, Any]] = {
    **_ERRORS,
    409: {
        "model": LabelUpdateOut | ErrorOut,
        "description": "Out of date (the label as it stands), or the study is closed.",
    },
}


@router.get("/{study}/items/{item}", responses=_ERRORS, response_model=LabelUpdateOut)
def read(request: Request, person: Me, study: Name, item: Name) -> Response:
    """The person's own label of an item."""
    store, place = _find(request, person, study, item)
    return _answer(store, person, place, store.label(study, item, person.id))


@router.post("/{study}/items/{item}", responses=_SAVE_ERRORS, response_model=LabelUpdateOut)
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


@router.post("/{study}/items/{item}/undo", responses=_SAVE_ERRORS, response_model=LabelUpdateOut)
def undo(request: Request, person: Me, study: Name, item: Name, body: LabelUndo) -> Response:
    """Take the person's last change of an item back."""
    store, place = _find(request, person, study, item)
    undone = store.undo(study, item, person.id, request=body.request, base=body.base)
    return _answer(store, person, place, undone.label, conflict=undone.conflict)


def _find(request: Request, person: Person, study: str, item: str) -> tuple[ReviewStore, WorklistItem]:
    store = store_of(request)
    place = place_of(store, person, study, item)
    if place is None:
        raise not_here("there is no such item on your list")
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
