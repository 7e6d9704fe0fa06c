"""What the team's pages and scripts may ask for as JSON: progress, agreement, labels."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Depends, Path, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel

from hoofbeat.review.label_export import export_labels
from hoofbeat.review.review_records import Person, ReviewItem, Study, not_here
from hoofbeat.review.review_store import Outlines, ReviewStore
from hoofbeat.review.reviewer_agreement import Agreements, StudyAgreement, study_progress
from hoofbeat.web.error_pages import ErrorOut
from hoofbeat.web.security import require_adjudicator, require_admin
from hoofbeat.web.site import site_of, store_of

router = APIRouter(prefix="/api/team", tags=["team"], include_in_schema=True)

Adjudicator = Annotated[Person, Depends(require_adjudicator)]
"""The adjudicator or admin who asks."""
Admin = Annotated[Person, Depends(require_admin)]
"""The admin who asks."""
Name = Annotated[str, Path(min_length=1, max_length=200)]


def study_of(request: Request, person: Person, id: str) -> Study:
    """A study that this person may see."""
    study = store_of(request).study(id)
    if study is None or not person.sees(id):
        raise not_here("there is no such study")
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
    400: {"model": ErrorOut, "description": "This can't be given for such a study."},
    401: {"model": ErrorOut, "description": "Nobody is signed in."},
    403: {"model": ErrorOut, "description": "This is for adjudicators, or for admins."},
    404: {"model": ErrorOut, "description": "There is no such study."},
    503: {"model": ErrorOut, "description": "The database can't be used."},
}


def _answer(value: object) -> JSONResponse:
    return JSONResponse(msgspec.to_builtins(value))


@router.get("/{study}/progress", responses=_ERRORS, response_model=ProgressOut)
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


@router.get("/{study}/agreement", responses=_ERRORS, response_model=AgreementOut)
def agreement(request: Request, person: Adjudicator, study: Name) -> Response:
    """How far reviewers agree, by field."""
    return _answer(agreement_now(request, study_of(request, person, study)))


@router.get("/{study}/labels", responses=_ERRORS, response_model=LabelsOut)
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
