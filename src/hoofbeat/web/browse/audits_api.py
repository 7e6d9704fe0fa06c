"""The pairs of an audit as JSON, some at a time or one in full."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, HTTPException, Path, Query, Request
from pydantic import BaseModel

from hoofbeat.reports.indexes.pair_index import AuditIndex, AuditPairRow, PairFilter
from hoofbeat.web.browse.address_filters import PageNumber, PageSize, Slug
from hoofbeat.web.browse.audit_figures import KIND, open_audit
from hoofbeat.web.error_pages import FOLDER_ERRORS, missing_folder_error, not_ready_error
from hoofbeat.web.site import site_of

router = APIRouter()

Name = Annotated[str, Query(max_length=500)]
Number = Annotated[int, Path(ge=1, le=10_000_000)]
_NOWHERE = 10_000_000


class PairOut(BaseModel):
    """A pair: its question and sources by name and by number (from 1), the label, and what the judge says of it."""

    question: str
    number: int
    a: str
    b: str
    numbers: tuple[int, int]
    label: str
    significance: str
    topic: str


class PairsOut(BaseModel):
    """A page of pairs, the most serious first, of `total` that match."""

    page: int
    pages: int
    total: int
    pairs: list[PairOut]


class PairDetailOut(PairOut):
    """A pair in full."""

    reasoning: str
    judge: str
    basis: str
    failure: str | None


@router.get("/api/audits/{slug}/pairs", responses=FOLDER_ERRORS, tags=["audits"])
def pairs(
    request: Request,
    slug: Slug,
    page: PageNumber = 1,
    size: PageSize = 50,
    question: Name = "",
    a: Name = "",
    b: Name = "",
    label: Name = "",
    significance: Name = "",
) -> PairsOut:
    """The pairs of an audit by question, sources (`a`, `b`: in any order), label and significance."""
    index = _index(request, slug)
    names = {each.id: number for number, each in enumerate(index.sources, start=1)}
    asked = {each.id: number for number, each in enumerate(index.questions, start=1)}
    wanted = PairFilter(
        question=asked.get(question, _NOWHERE) if question else 0,
        a=names.get(a, _NOWHERE) if a else 0,
        b=names.get(b, _NOWHERE) if b else 0,
        label=label,
        level=significance,
    )
    rows, total = index.serious(wanted, (page - 1) * size, size)
    pages = max(1, -(-total // size))
    if page > pages:
        page = pages
        rows, total = index.serious(wanted, (page - 1) * size, size)
    return PairsOut(page=page, pages=pages, total=total, pairs=[_out(index, row) for row in rows])


@router.get(
    "/api/audits/{slug}/questions/{number}/pairs/{a}/{b}",
    responses=FOLDER_ERRORS,
    response_model=PairDetailOut,
    tags=["audits"],
)
def pair(request: Request, slug: Slug, number: Number, a: Number, b: Number) -> PairDetailOut:
    """One pair in full: two sources by their numbers on a question by its number."""
    index = _index(request, slug)
    most = len(index.sources)
    inside = number <= len(index.questions) and a <= most and b <= most
    row = index.row_of(number - 1, a - 1, b - 1) if inside else None
    if row is None:
        raise HTTPException(404, "these two sources were not compared on a question of this number")
    whole = index.comparison(row)
    return PairDetailOut(
        **_out(index, index.pair_row(row)).model_dump(),
        reasoning=whole.reasoning,
        judge=whole.judge,
        basis=whole.basis,
        failure=whole.failure.kind if whole.failure else None,
    )


def _index(request: Request, slug: str) -> AuditIndex:
    site = site_of(request)
    folder = site.library.folder(slug, KIND)
    if folder is None:
        raise missing_folder_error("audit")
    opened = open_audit(site, folder)
    if opened is None:
        raise not_ready_error()
    return opened.index


def _out(index: AuditIndex, row: AuditPairRow) -> PairOut:
    return PairOut(
        question=index.questions[row.question - 1].id,
        number=row.question,
        a=index.sources[row.a - 1].id,
        b=index.sources[row.b - 1].id,
        numbers=(row.a, row.b),
        label=row.label,
        significance=row.level,
        topic=row.topic,
    )
