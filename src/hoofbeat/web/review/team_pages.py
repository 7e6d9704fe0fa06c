"""The team's pages: how far studies have come, who is to look at what, how far people agree, rounds and exports.

Adjudicators have the queue of what is to be settled, and one item of it at a time. They see everything under Reviewer
1, 2, …; names, assignments and labels are for admins. Progress, agreement and labels are also given as JSON.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import quote

import msgspec
from fastapi import APIRouter, Depends, Form, Path, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel

from hoofbeat.errors import HoofbeatError, InputError
from hoofbeat.review.adjudication_queue import EXPERT, AdjudicationItem, open_queue, queue_of
from hoofbeat.review.assignments import EXAM, Groups, assign_items, coverage, first_round, plan_of
from hoofbeat.review.forms import Form as ReviewForm
from hoofbeat.review.forms import FormField, asked_fields, check_values, form_for, load_form, parts_for
from hoofbeat.review.label_export import as_csv, export_labels
from hoofbeat.review.review_records import Person, ReviewItem, Study, not_here
from hoofbeat.review.review_rounds import INSPECTIONS, advance_rounds, next_items, rounds_of
from hoofbeat.review.review_store import Outlines, ReviewStore
from hoofbeat.review.reviewer_agreement import Agreements, StudyAgreement, StudyProgress, progress_of, study_progress
from hoofbeat.web.page_rendering import ErrorOut, artefact_of, item_image, not_found, page_of, render
from hoofbeat.web.review.task_pages import Posted, form_values, version_of
from hoofbeat.web.security import require_adjudicator, require_admin
from hoofbeat.web.site import site_of, store_of, whole_site

router = APIRouter()
api = APIRouter(prefix="/api/team", tags=["team"])
pages = APIRouter(include_in_schema=False)
Adjudicator = Annotated[Person, Depends(require_adjudicator)]
"""The adjudicator or admin who asks."""

Admin = Annotated[Person, Depends(require_admin)]
"""The admin who asks."""

Name = Annotated[str, Path(min_length=1, max_length=200)]


def study_of(request: Request, person: Person, id: str) -> Study:
    """A study that this person may see."""
    study = store_of(request).study(id)
    if study is None or not person.sees(id):
        raise not_here("this study does not exist")
    return study


def position_of(store: ReviewStore, study: str | None = None) -> int:
    """The number of the last line of a study's trail, or of the whole trail."""
    return next((event.id for event in store.trail(study=study, newest=True, limit=1)), 0)


def outlines_of(request: Request, study: str) -> list[ReviewItem]:
    """A study's items without what they show, kept between requests."""
    kept: Outlines = site_of(request).shared.setdefault("review outlines", Outlines())
    return kept.of(store_of(request), study)


def agreement_now(request: Request, study: Study) -> StudyAgreement:
    """The agreement in a study, kept until something happens in it."""
    kept: Agreements = site_of(request).shared.setdefault("review agreements", Agreements())
    return kept.of(store_of(request), study, outlines_of(request, study.id))


class IntervalOut(BaseModel):
    """An interval, with how it came about."""

    low: float
    high: float
    level: float
    method: str
    few: int


class PersonProgressOut(BaseModel):
    """One person's progress; adjudicators see a pseudonym and no id."""

    name: str
    person: str
    assigned: int
    done: int
    skipped: int
    draft: int
    median_seconds: float | None
    active: bool


class StratumProgressOut(BaseModel):
    """One stratum's progress."""

    stratum: str
    items: int
    assigned: int
    complete: int


class ProgressOut(BaseModel):
    """How far a study has come; `position` changes with everything that happens in it."""

    study: str
    items: int
    unassigned: int
    assigned: int
    done: int
    skipped: int
    share: float | None
    closed: bool
    position: int
    people: list[PersonProgressOut]
    strata: list[StratumProgressOut]


class KappaOut(BaseModel):
    """κ of two reviewers; the value is null where it has none."""

    weights: str
    n: int
    missing: int
    value: float | None
    interval: IntervalOut | None


class AlphaOut(BaseModel):
    """Krippendorff's α of all reviewers; the value is null where it has none."""

    scale: str
    items: int
    values: int
    left_out: int
    value: float | None
    interval: IntervalOut | None


class ReviewerPairOut(BaseModel):
    """Two reviewers, by pseudonym."""

    a: str
    b: str
    n: int
    agree: int
    share: float
    share_interval: IntervalOut
    kappa: KappaOut


class FieldAgreementOut(BaseModel):
    """Agreement on one field of a form, with a sentence on what it means."""

    form: str
    field: str
    title: str
    labels: list[str]
    ordered: bool
    items: int
    people: int
    compared: int
    agree: int
    share: float | None
    alpha: AlphaOut
    pairs: list[ReviewerPairOut]
    words: str


class AgreementOut(BaseModel):
    """Agreement in a study as of a place in its trail."""

    study: str
    position: int
    seed: int
    samples: int
    fields: list[FieldAgreementOut]


class LabelsOut(BaseModel):
    """The labels of a study in the format that their reader takes, and what was settled apart from them."""

    study: str
    form: str
    format: str
    source: str
    source_sha256: str
    rows: list[dict[str, str]]
    adjudicated: list[dict[str, str]]


_ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorOut, "description": "This is not available for this kind of study."},
    401: {"model": ErrorOut, "description": "Nobody is signed in."},
    403: {"model": ErrorOut, "description": "Only adjudicators or admins can use this."},
    404: {"model": ErrorOut, "description": "This study does not exist."},
    503: {"model": ErrorOut, "description": "The database can't be used."},
}


def _answer(value: object) -> JSONResponse:
    return JSONResponse(msgspec.to_builtins(value))


@api.get("/{study}/progress", responses=_ERRORS, response_model=ProgressOut)
def progress(request: Request, person: Adjudicator, study: Name) -> Response:
    """How far a study has come."""
    store, found = store_of(request), study_of(request, person, study)
    admin = person.role == "admin"
    now = position_of(store)
    kept: dict[tuple[str, bool], tuple[int, dict[str, Any]]] = site_of(request).shared.setdefault("review progress", {})
    stamp, told = kept.get((study, admin), (-1, {}))
    if stamp != now:  # pages ask again and again, and mostly nothing has happened
        made = study_progress(store, found, names=admin, items=outlines_of(request, study))
        told = msgspec.to_builtins(made)
        if not admin:
            told["people"] = [{**row, "person": row["name"]} for row in told["people"]]
        told |= {"share": made.share, "position": position_of(store, study)}
        kept[study, admin] = (now, told)
    return _answer(told)


@api.get("/{study}/agreement", responses=_ERRORS, response_model=AgreementOut)
def agreement(request: Request, person: Adjudicator, study: Name) -> Response:
    """How far reviewers agree, by field."""
    return _answer(agreement_now(request, study_of(request, person, study)))


@api.get("/{study}/labels", responses=_ERRORS, response_model=LabelsOut)
def labels(request: Request, person: Admin, study: Name) -> Response:
    """What reviewers said, and what was settled."""
    export = export_labels(store_of(request), study_of(request, person, study))
    origin = export.origin
    return _answer(
        {
            "study": origin.study,
            "form": origin.form,
            "format": origin.format,
            "source": origin.source,
            "source_sha256": origin.source_sha256,
            "rows": export.rows,
            "adjudicated": export.adjudicated,
        }
    )


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
    "nothing": "Nothing to assign: every item already has enough reviewers, or no more people can take it.",
    "closed": "The study is closed. It accepts no more labels.",
    "round": "The next items are created and assigned.",
    "waiting": "There is no next round yet.",
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
        problem = HoofbeatError("a closed study can't be opened again", fix="tick “I am sure”")
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
def agreement_page(request: Request, person: Adjudicator, study: str) -> Response:
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


_NOTE = "note"
_MAX_NOTE = 4000
_NOT_QUEUED = "This item is not in the queue."


@pages.get("/team/{study}/queue", response_class=HTMLResponse)
def queue(request: Request, person: Adjudicator, study: str, page: int = 1) -> Response:
    """What waits for an adjudicator, and what was settled."""
    store, found = store_of(request), study_of(request, person, study)
    rows = queue_of(store, found, person=person.id, items=outlines_of(request, study))
    return render(
        request,
        "team/queue.html",
        title=f"To resolve: {found.title}",
        study=found,
        rows=page_of(rows, page),
        open=sum(each.open and not each.to_label for each in rows),
        hidden=sum(each.to_label for each in rows),
        settled=sum(not each.open for each in rows),
        position=position_of(store, study),
    )


@pages.get("/team/{study}/queue/{item}", response_class=HTMLResponse)
def show(request: Request, person: Adjudicator, study: str, item: str) -> Response:
    """One item with what reviewers said of it, and the form that settles it."""
    found = study_of(request, person, study)
    waiting = _queued(request, person, found, item)
    if waiting is None:
        return not_found(request, _NOT_QUEUED)
    if not (waiting.hidden or found.closed):
        store_of(request).see_labels(study, item, person.id)
    return _queue_item_page(request, person, found, waiting)


@pages.post("/team/{study}/queue/{item}/open")
def open_labels(request: Request, person: Adjudicator, study: str, item: str) -> Response:
    """Show what others said of an item that the person has labelled or skipped: that is final from now on."""
    found = study_of(request, person, study)
    waiting = _queued(request, person, found, item)
    if waiting is None:
        return not_found(request, _NOT_QUEUED)
    if waiting.may_open:
        store_of(request).see_labels(study, item, person.id)
    return RedirectResponse(f"/team/{quote(study, safe='')}/queue/{quote(item, safe='')}", status_code=303)


def _queued(request: Request, person: Person, study: Study, item: str) -> AdjudicationItem | None:
    """An item of the queue as this person may see it, with everything it shows."""
    rows = queue_of(store_of(request), study, person=person.id, items=outlines_of(request, study.id))
    found = next((each for each in rows if each.item.id == item), None)
    whole = store_of(request).item(study.id, item) if found else None
    return replace(found, item=whole) if found and whole else None


def _queue_item_page(
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
    images = artefact_of(whole_site(request), study) is not None
    return render(
        request,
        "team/queue_item.html",
        title=f"Resolve an item: {study.title}",
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
        mine=own.state if (own := store_of(request).label(study.id, waiting.item.id, person.id)) else "",
        problem=problem,
        request_id=secrets.token_urlsafe(16),
    )


@pages.get("/team/{study}/queue/{item}/images/{number}")
def image(request: Request, person: Adjudicator, study: str, item: str, number: int) -> Response:
    """An image of an item, where this server shows the benchmark it is of."""
    found = study_of(request, person, study)
    shown = store_of(request).item(study, item)
    files = [str(name) for name in shown.key.get("images", ())] if shown else []
    return item_image(request, artefact_of(whole_site(request), found), files, number)


def _said_fields(waiting: AdjudicationItem, form: ReviewForm) -> list[str]:
    """The fields that somebody answered, in the form's order; a note stands beside what it is the note of."""
    said = {name for each in waiting.said for name in each.values}
    return [field.name for field in form.fields if field.name in said and not field.note_of]


def decided_fields(waiting: AdjudicationItem) -> tuple[FormField, ...]:
    """What the adjudicator is asked: what reviewers differ on, what that depends on, and what depends on it."""
    return tuple(field for field in asked_fields(waiting.form, _narrowed(waiting)) if field.name != _NOTE)


def _narrowed(waiting: AdjudicationItem) -> ReviewItem:
    """The item with only those criteria asked that are to be settled."""
    return replace(waiting.item, criteria=_criteria(waiting.form, waiting.fields))


def _criteria(form: ReviewForm, fields: Sequence[str]) -> tuple[str, ...]:
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


@pages.post("/team/{study}/queue/{item}")
def decide(request: Request, person: Adjudicator, study: str, item: str, form: Posted) -> Response:
    """Settle an item."""
    found = study_of(request, person, study)
    waiting = _queued(request, person, found, item)
    if waiting is None:
        return not_found(request, _NOT_QUEUED)
    if waiting.may_open:
        problem = InputError("you have not seen the labels of the others", fix="show them first")
        return _queue_item_page(request, person, found, waiting, problem=problem)
    if waiting.hidden:
        problem = InputError("label this item yourself first", fix="it is on your own list")
        return _queue_item_page(request, person, found, waiting, problem=problem)
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
        return _queue_item_page(request, person, found, waiting, values=given, note=note, problem=err)
    rows = queue_of(store_of(request), found, person=person.id, items=outlines_of(request, study))
    left = [each for each in rows if each.open and not each.to_label]
    goal = f"/team/{quote(study, safe='')}/queue"
    return RedirectResponse(f"{goal}/{quote(left[0].item.id, safe='')}" if left else goal, status_code=303)


router.include_router(pages)
router.include_router(api)
