"""The adjudicator's pages: the queue of what is to be settled, and one item of it at a time."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from msgspec.structs import replace

from hoofbeat.errors import HoofbeatError, InputError
from hoofbeat.review.adjudication_queue import AdjudicationItem, queue_of
from hoofbeat.review.forms import Form, FormField, asked_fields, check_values, form_for, parts_for
from hoofbeat.review.review_records import Person, ReviewItem, Study
from hoofbeat.web.image_files import artefact_of, item_image
from hoofbeat.web.page_rendering import not_found, page_of, render
from hoofbeat.web.review.task_pages import Posted, form_values, version_of
from hoofbeat.web.review.team_pages import Adjudicator, outlines_of, position_of, study_of
from hoofbeat.web.site import site_of, store_of

router = APIRouter(include_in_schema=False)

_NOTE = "note"
_MAX_NOTE = 4000


@router.get("/team/{study}/queue", response_class=HTMLResponse)
def queue(request: Request, person: Adjudicator, study: str, page: int = 1) -> Response:
    """What waits for an adjudicator, and what was settled."""
    store, found = store_of(request), study_of(request, person, study)
    rows = queue_of(store, found, person=person.id, items=outlines_of(request, study))
    return render(
        request,
        "team/queue.html",
        title=f"To be settled: {found.title}",
        study=found,
        rows=page_of(rows, page),
        open=sum(each.open and not each.hidden for each in rows),
        hidden=sum(each.hidden for each in rows),
        settled=sum(not each.open for each in rows),
        position=position_of(store, study),
    )


@router.get("/team/{study}/queue/{item}", response_class=HTMLResponse)
def show(request: Request, person: Adjudicator, study: str, item: str) -> Response:
    """One item with what reviewers said of it, and the form that settles it."""
    found = study_of(request, person, study)
    waiting = _find(request, person, found, item)
    if waiting is None:
        return not_found(request, "There is no such item in the queue.")
    return _page(request, person, found, waiting)


def _find(request: Request, person: Person, study: Study, item: str) -> AdjudicationItem | None:
    """An item of the queue as this person may see it, with everything it shows."""
    rows = queue_of(store_of(request), study, person=person.id, items=outlines_of(request, study.id))
    found = next((each for each in rows if each.item.id == item), None)
    whole = store_of(request).item(study.id, item) if found else None
    return replace(found, item=whole) if found and whole else None


def _page(
    request: Request,
    person: Person,
    study: Study,
    waiting: AdjudicationItem,
    *,
    values: Mapping[str, Any] | None = None,
    note: str | None = None,
    problem: HoofbeatError | None = None,
) -> HTMLResponse:
    decision = waiting.decision
    if values is None:
        values = decision.values if decision else _agreed(waiting)
    fields = () if waiting.hidden else decided_fields(waiting)
    images = artefact_of(site_of(request), study) is not None
    return render(
        request,
        "team/queue_item.html",
        title=f"Settle an item: {study.title}",
        status=200 if problem is None else getattr(problem, "status", 400),
        study=study,
        waiting=waiting,
        parts=[part for part in parts_for(study, waiting.item, "") if part.kind != "image" or images],
        fields=fields,
        labels={
            field.name: field.label for form in (waiting.form, form_for(study, waiting.item)) for field in form.fields
        },
        asked=_said_fields(waiting, form_for(study, waiting.item)),
        values=values,
        note=note if note is not None else decision.note if decision else "",
        version=decision.version if decision else 0,
        mine=any(label.state == "done" for label in _own(request, person, study, waiting.item)),
        problem=problem,
        request_id=secrets.token_urlsafe(16),
    )


@router.get("/team/{study}/queue/{item}/images/{number}")
def image(request: Request, person: Adjudicator, study: str, item: str, number: int) -> Response:
    """An image of an item, where this server shows the benchmark it is of."""
    found = study_of(request, person, study)
    shown = store_of(request).item(study, item)
    files = [str(name) for name in shown.key.get("images", ())] if shown else []
    return item_image(request, artefact_of(site_of(request), found), files, number)


def _own(request: Request, person: Person, study: Study, item: ReviewItem) -> list[Any]:
    label = store_of(request).label(study.id, item.id, person.id)
    return [label] if label else []


def _said_fields(waiting: AdjudicationItem, form: Form) -> list[str]:
    """The fields that somebody answered, in the form's order; a note stands beside what it is the note of."""
    said = {name for each in waiting.said for name in each.values}
    return [field.name for field in form.fields if field.name in said and not field.note_of]


def decided_fields(waiting: AdjudicationItem) -> tuple[FormField, ...]:
    """What the adjudicator is asked: what reviewers differ on, what that depends on, and what depends on it."""
    return tuple(field for field in asked_fields(waiting.form, _narrowed(waiting)) if field.name != _NOTE)


def _narrowed(waiting: AdjudicationItem) -> ReviewItem:
    """The item with only those criteria asked that are to be settled."""
    return replace(waiting.item, criteria=_criteria(waiting.form, waiting.fields))


def _criteria(form: Form, fields: Sequence[str]) -> tuple[str, ...]:
    chosen = set(fields)
    for field in form.fields:
        if field.name in fields:
            chosen |= field.when.keys()
    for field in form.fields:
        if field.criterion and field.when.keys() & chosen:
            chosen.add(field.name)
    return tuple(field.name for field in form.fields if field.name in chosen)


def _agreed(waiting: AdjudicationItem) -> dict[str, str]:
    """What all reviewers said alike: there is no need to say it again."""
    words = {
        field.name: {choice.label: choice.value for choice in field.choices}
        for field in waiting.form.fields
        if field.criterion
    }
    alike = {}
    for name, values in words.items():
        said = {each.values.get(name, "") for each in waiting.said}
        if len(said) == 1 and (text := said.pop()) in values:
            alike[name] = values[text]
    return alike


@router.post("/team/{study}/queue/{item}")
def decide(request: Request, person: Adjudicator, study: str, item: str, form: Posted) -> Response:
    """Settle an item."""
    found = study_of(request, person, study)
    waiting = _find(request, person, found, item)
    if waiting is None:
        return not_found(request, "There is no such item in the queue.")
    if waiting.hidden:
        problem = InputError("you are still to label this item yourself", fix="do that first, from your own list")
        return _page(request, person, found, waiting, problem=problem)
    given = form_values(decided_fields(waiting), form)
    note = str(form.get(_NOTE, "")).strip()[:_MAX_NOTE]
    try:
        values = check_values(waiting.form, _narrowed(waiting), given)
        store_of(request).decide(
            study,
            item,
            person.id,
            values=values,
            note=note,
            base=version_of(form),
            request=str(form.get("request", "")) or secrets.token_urlsafe(16),
        )
    except InputError as err:
        return _page(request, person, found, waiting, values=given, note=note, problem=err)
    rows = queue_of(store_of(request), found, person=person.id, items=outlines_of(request, study))
    left = [each for each in rows if each.open and not each.hidden]
    goal = f"/team/{quote(study, safe='')}/queue"
    return RedirectResponse(f"{goal}/{quote(left[0].item.id, safe='')}" if left else goal, status_code=303)
