"""The queries of a ranking and their hits as JSON."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, HTTPException, Path, Query, Request
from pydantic import BaseModel

from hoofbeat.retrieval.rankings.ranking_index import QueryFilter, QueryOutcome, RankingIndex
from hoofbeat.web.browse.address_filters import PageNumber, PageSize, Slug
from hoofbeat.web.browse.ranking_figures import KIND, open_ranking
from hoofbeat.web.error_pages import FOLDER_ERRORS, missing_folder_error, not_ready_error
from hoofbeat.web.site import site_of

router = APIRouter()

Name = Annotated[str, Query(max_length=500)]
Number = Annotated[int, Path(ge=1, le=10_000_000)]


class QueryOut(BaseModel):
    """A query and how it fared; `first` is the rank of its first relevant document, None where none was found."""

    number: int
    query: str
    text: str
    outcome: str
    hits: int
    relevant: int
    found: int
    first: int | None
    measures: dict[str, float | None]


class QueriesOut(BaseModel):
    """A page of queries, of `total` that match."""

    page: int
    pages: int
    total: int
    queries: list[QueryOut]


class StageOut(BaseModel):
    """Where a stage of the retriever put a hit."""

    stage: str
    rank: int
    score: float


class HitOut(BaseModel):
    """A hit; `grade` is None where nobody judged the document."""

    rank: int
    document: str
    score: float
    grade: int | None
    passage: str
    via: list[StageOut]


class MissedOut(BaseModel):
    """A relevant document that is not among the hits."""

    document: str
    grade: int


class HitsOut(BaseModel):
    """A query with some of its hits, in order, and all relevant documents that are not among them."""

    query: QueryOut
    page: int
    pages: int
    total: int
    hits: list[HitOut]
    missed: list[MissedOut]


@router.get("/api/rankings/{slug}/queries", responses=FOLDER_ERRORS, tags=["rankings"])
def queries(
    request: Request,
    slug: Slug,
    page: PageNumber = 1,
    size: PageSize = 50,
    outcome: Literal["", "first", "later", "deep", "missed", "unjudged", "failed"] = "",
    order: Literal["worst", "best", "asked"] = "asked",
    measure: Name = "",
) -> QueriesOut:
    """The queries of a ranking by how they fared, in the order of a measure or as they were asked."""
    index = _index(request, slug)
    numbers = index.numbers(QueryFilter(outcome=outcome, order=order, measure=measure))
    pages = max(1, -(-len(numbers) // size))
    page = min(page, pages)
    shown = [_query(index, index.fared(number)) for number in numbers[(page - 1) * size : page * size]]
    return QueriesOut(page=page, pages=pages, total=len(numbers), queries=shown)


@router.get("/api/rankings/{slug}/queries/{number}/hits", responses=FOLDER_ERRORS, tags=["rankings"])
def hits(request: Request, slug: Slug, number: Number, page: PageNumber = 1, size: PageSize = 100) -> HitsOut:
    """The hits of a query, in order, and the relevant documents that are not among them."""
    index = _index(request, slug)
    if number > len(index):
        raise HTTPException(404, "there is no query of this number in this ranking")
    found, grades = index.hits(number), index.grades(number)
    pages = max(1, -(-len(found) // size))
    page = min(page, pages)
    here = {hit.document for hit in found}
    return HitsOut(
        query=_query(index, index.fared(number)),
        page=page,
        pages=pages,
        total=len(found),
        hits=[
            HitOut(
                rank=hit.rank,
                document=hit.document,
                score=hit.score,
                grade=grades.get(hit.document),
                passage=hit.passage,
                via=[StageOut(stage=stage, rank=rank, score=score) for stage, (rank, score) in hit.via.items()],
            )
            for hit in found[(page - 1) * size : page * size]
        ],
        missed=[
            MissedOut(document=name, grade=grade) for name, grade in index.relevant(number).items() if name not in here
        ],
    )


def _index(request: Request, slug: str) -> RankingIndex:
    site = site_of(request)
    folder = site.library.folder(slug, KIND)
    if folder is None:
        raise missing_folder_error("ranking")
    index = open_ranking(site, folder)
    if index is None:
        raise not_ready_error()
    return index


def _query(index: RankingIndex, fared: QueryOutcome) -> QueryOut:
    return QueryOut(
        number=fared.number,
        query=fared.id,
        text=fared.title,
        outcome=fared.outcome,
        hits=fared.hits,
        relevant=fared.relevant,
        found=fared.found,
        first=fared.first or None,
        measures=dict(zip(index.measures, fared.values, strict=True)),
    )
