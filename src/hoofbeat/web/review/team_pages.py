"""The team's pages: how far studies have come, who is to look at what, how far people agree, rounds and exports.

Adjudicators see everything under Reviewer 1, 2, …; names, assignments and labels are for admins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any
from urllib.parse import quote

import msgspec
from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from msgspec import Struct

from hoofbeat.errors import HoofbeatError
from hoofbeat.review.adjudication_queue import EXPERT, AdjudicationItem, open_queue, queue_of
from hoofbeat.review.assignments import EXAM, Groups, assign_items, coverage, first_round, plan_of
from hoofbeat.review.forms import load_form
from hoofbeat.review.label_export import as_csv, export_labels
from hoofbeat.review.review_records import Person, Study
from hoofbeat.review.review_rounds import INSPECTIONS, advance_rounds, next_items, rounds_of
from hoofbeat.review.reviewer_agreement import StudyProgress, progress_of, study_progress
from hoofbeat.web.page_rendering import render
from hoofbeat.web.review import adjudication_pages as adjudication
from hoofbeat.web.review import team_api
from hoofbeat.web.review.team_api import Adjudicator, Admin, agreement_now, outlines_of, position_of, study_of
from hoofbeat.web.site import store_of

router = APIRouter()
pages = APIRouter(include_in_schema=False)


class _Row(Struct, frozen=True, kw_only=True):
    """A study in the list of all."""

    study: Study
    progress: StudyProgress
    waiting: int


@pages.get("/team", response_class=HTMLResponse)
def studies(request: Request, person: Adjudicator) -> HTMLResponse:
    """All studies with how far they have come."""
    store = store_of(request)
    rows = []
    for study in store.studies():
        if person.sees(study.id):
            items = outlines_of(request, study.id)
            progress = study_progress(store, study, names=False, items=items)
            rows.append(_Row(study=study, progress=progress, waiting=_waiting(queue_of(store, study, items=items))))
    return render(request, "team/studies.html", title="Studies", rows=rows[::-1])


def _waiting(queue: Sequence[AdjudicationItem]) -> int:
    return sum(each.open for each in queue)


@pages.get("/team/{study}", response_class=HTMLResponse)
def overview(request: Request, person: Adjudicator, study: str, said: str = "") -> Response:
    """One study: progress, assignments, agreement, what waits, and what to do with it."""
    return _overview(request, person, study_of(request, person, study), said=said)


def _overview(
    request: Request, person: Person, study: Study, *, said: str = "", problem: HoofbeatError | None = None
) -> HTMLResponse:
    store = store_of(request)
    admin = person.role == "admin"
    items, assigned = outlines_of(request, study.id), store.assignments(study.id)
    everybody = store.people()
    people = [one for one in everybody if one.active and one.sees(study.id)]
    plan = plan_of(study)
    goes_round = study.form in INSPECTIONS or study.form in EXPERT
    labels, decisions = store.labels(study.id), store.decisions(study.id)
    return render(
        request,
        "team/study.html",
        title=study.title,
        status=200 if problem is None else 400,
        study=study,
        form=load_form(study.form, study.settings),
        progress=progress_of(study, items, everybody, assigned, labels, names=admin),
        admin=admin,
        exam=study.form == EXAM,
        people=people,
        having={row.person for row in assigned},
        plan=plan,
        covered=coverage(first_round(items), people, plan, assigned),
        groups=sorted({item.group for item in items if item.group}),
        waiting=_waiting(open_queue(study, items, labels, decisions)),
        rounds=rounds_of(study, items, labels, decisions) if study.form in INSPECTIONS else None,
        next_round=next_items(study, items, labels, decisions) if goes_round else [],
        goes_round=goes_round,
        agreement=agreement_now(request, study),
        position=position_of(store, study.id),
        said=_SAID.get(said, ""),
        problem=problem,
    )


_SAID = {
    "assigned": "The items are assigned.",
    "nothing": "Nothing was missing: every item has the reviewers that this plan asks for, as far as people allow.",
    "closed": "The study is closed. It takes no more labels.",
    "round": "The next items are made and assigned.",
    "waiting": "There is nothing to go on with yet.",
}


@pages.post("/team/{study}/assign")
def assign(
    request: Request,
    admin: Admin,
    study: str,
    person: Annotated[list[str] | None, Form()] = None,
    per_item: Annotated[int, Form(ge=0, le=1000)] = 1,
    overlap: Annotated[float, Form(ge=0, le=100)] = 0.0,
    overlap_by: Annotated[int, Form(ge=0, le=1000)] = 0,
    max_per_person: Annotated[int, Form(ge=0, le=1_000_000)] = 0,
    groups: Annotated[Groups, Form()] = "any",
) -> Response:
    """Divide the items among the people chosen; what is assigned already stays."""
    store, found = store_of(request), study_of(request, admin, study)
    try:
        plan = msgspec.structs.replace(
            plan_of(found),
            per_item=per_item,
            overlap=overlap / 100,
            overlap_by=overlap_by,
            max_per_person=max_per_person,
            groups=groups,
        )
    except HoofbeatError as err:
        return _overview(request, admin, found, problem=err)
    chosen = [one for one in store.people() if one.id in (person or ())]
    rows = assign_items(store, found, chosen, plan, by=admin.id)
    return _back(study, "assigned" if rows else "nothing")


@pages.post("/team/{study}/close")
def close(request: Request, admin: Admin, study: str, sure: Annotated[str, Form()] = "") -> Response:
    """Close a study for good."""
    found = study_of(request, admin, study)
    if sure != "yes":
        problem = HoofbeatError("a closed study can't be opened again", fix="tick the box if you are sure")
        return _overview(request, admin, found, problem=problem)
    store_of(request).close_study(study, admin.id)
    return _back(study, "closed")


@pages.post("/team/{study}/round")
def next_round(
    request: Request, admin: Admin, study: str, person: Annotated[list[str] | None, Form()] = None
) -> Response:
    """Make the items that follow from what was found, revised or flagged."""
    store, found = store_of(request), study_of(request, admin, study)
    chosen = [one for one in store.people() if one.id in (person or ())]
    try:
        added = advance_rounds(store, found, chosen, by=admin.id)
    except HoofbeatError as err:
        return _overview(request, admin, found, problem=err)
    return _back(study, "round" if added else "waiting")


def _back(study: str, said: str) -> RedirectResponse:
    return RedirectResponse(f"/team/{quote(study, safe='')}?said={said}", status_code=303)


@pages.get("/team/{study}/agreement", response_class=HTMLResponse)
def agreement(request: Request, person: Adjudicator, study: str) -> Response:
    """How far reviewers agree."""
    found = study_of(request, person, study)
    measured = agreement_now(request, found)
    forms = {each.form: load_form(each.form, found.settings).title for each in measured.fields}
    return render(
        request,
        "team/agreement.html",
        title=f"Agreement: {found.title}",
        study=found,
        agreement=measured,
        forms=forms,
        position=measured.position,
    )


@pages.get("/team/{study}/labels.csv")
def download_csv(request: Request, admin: Admin, study: str) -> Response:
    """The labels as CSV."""
    found = study_of(request, admin, study)
    return _download(study, "csv", "text/csv", as_csv(export_labels(store_of(request), found)).encode())


@pages.get("/team/{study}/labels.jsonl")
def download_jsonl(request: Request, admin: Admin, study: str) -> Response:
    """The labels as JSON lines."""
    rows: list[dict[str, Any]] = list(export_labels(store_of(request), study_of(request, admin, study)).rows)
    return _download(study, "jsonl", "application/x-ndjson", b"".join(msgspec.json.encode(row) + b"\n" for row in rows))


def _download(study: str, suffix: str, kind: str, content: bytes) -> Response:
    name = quote(study, safe="")
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{name}.{suffix}"}
    return Response(content, media_type=f"{kind}; charset=utf-8", headers=headers)


router.include_router(pages)
router.include_router(adjudication.router)
router.include_router(team_api.router)
