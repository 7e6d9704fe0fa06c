"""The pages on which a person reviews: the list of studies, a study, and one item at a time.

Everything works by plain forms; the script of the page adds drafts that save themselves, keys and a clock.
"""

from __future__ import annotations

import secrets
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from hoofbeat.errors import HoofbeatError, InputError
from hoofbeat.review.exam_items import FORM as EXAM
from hoofbeat.review.forms import (
    WorklistProgress,
    check_values,
    differences,
    next_undone,
    parts_for,
    progress_of_person,
    when_words,
)
from hoofbeat.review.review_records import ItemLabel, LabelState, Person, Study
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.web.image_files import artefact_of, picture
from hoofbeat.web.page_rendering import not_found, render
from hoofbeat.web.review import task_api as tasks_api
from hoofbeat.web.review.worklist import (
    REASONS,
    Me,
    Posted,
    WorklistItem,
    address_of,
    form_values,
    next_address,
    place_of,
    skip_reason,
    version_of,
)
from hoofbeat.web.site import site_of, store_of

router = APIRouter()
router.include_router(tasks_api.router)


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
        return not_found(request, "There is no such study on your list.")
    if found.form == EXAM:
        return RedirectResponse(f"/exam/{quote(study)}", status_code=303)
    labels = {label.item: label for label in store.labels(study, person=person.id)}
    return render(
        request,
        "review/overview.html",
        title=found.title,
        study=found,
        rows=[(row, labels.get(row.item)) for row in mine],
        progress=progress_of_person(mine, labels.values()),
    )


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
        return not_found(request, "There is no such item on your list.")
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


# The plain form: what happens without the script


@router.post("/review/{study}/items/{item}", include_in_schema=False)
def take(request: Request, person: Me, study: str, item: str, form: Posted) -> Response:
    """Save, skip, keep as a draft or undo, as the button says."""
    store = store_of(request)
    place = place_of(store, person, study, item)
    if place is None:
        return not_found(request, "There is no such item on your list.")
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
    artefact = artefact_of(site_of(request), place.study) if place else None
    files = [str(name) for name in place.item.key.get("images", [])] if place else []
    content = picture(artefact, files, number) if artefact else None
    if content is None:
        return not_found(request, "This image is not on this server.")
    return Response(content[0], media_type=content[1], headers={"Cache-Control": "private, max-age=3600"})
