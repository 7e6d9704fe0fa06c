"""The answers of a run as JSON, some at a time."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel

from hoofbeat.records import Answer
from hoofbeat.reports.indexes.answer_index import AnswerFilter, AnswerRow
from hoofbeat.web.browse.address_filters import PageNumber, PageSize, Slug
from hoofbeat.web.browse.run_figures import KINDS, open_run
from hoofbeat.web.error_pages import FOLDER_ERRORS, missing_folder_error, not_ready_error
from hoofbeat.web.site import site_of

router = APIRouter()

Name = Annotated[str, Query(max_length=500)]


class AnswerOut(BaseModel):
    """An answer and what became of it; `number` is its question's, `why` says why it has no score."""

    number: int
    question: str
    model: str
    condition: str
    sample: int
    label: str
    why: str
    text: str
    choice: str | None
    citations: list[str]
    warnings: list[str]
    failure: str | None


class AnswersOut(BaseModel):
    """A page of answers, of `total` that match."""

    page: int
    pages: int
    total: int
    answers: list[AnswerOut]


@router.get("/api/runs/{slug}/answers", responses=FOLDER_ERRORS, tags=["runs"])
def answers(
    request: Request,
    slug: Slug,
    page: PageNumber = 1,
    size: PageSize = 50,
    question: Name = "",
    model: Name = "",
    condition: Name = "",
    label: Literal["", "right", "wrong", "unscored", "answered"] = "",
    doubt: Literal["", "warnings", "failures"] = "",
) -> AnswersOut:
    """The answers of a run or folder of judgments, by question, system and what became of them."""
    site = site_of(request)
    folder = site.library.folder(slug, *KINDS)
    if folder is None:
        raise missing_folder_error("run")
    opened = open_run(site, folder)
    if opened is None:
        raise not_ready_error()
    index = opened.index
    wanted = AnswerFilter(question=question, model=model, condition=condition, state=label, doubt=doubt)
    total = index.matching(wanted)
    pages = max(1, -(-total // size))
    page = min(page, pages)
    rows = index.found(wanted, (page - 1) * size, size)
    made = [_out(row, answer) for row, answer in zip(rows, index.answers(rows), strict=True)]
    return AnswersOut(page=page, pages=pages, total=total, answers=made)


def _out(row: AnswerRow, answer: Answer) -> AnswerOut:
    return AnswerOut(
        number=row.question + 1,
        question=answer.question,
        model=answer.model,
        condition=answer.condition,
        sample=answer.sample,
        label=row.state,
        why=row.why,
        text=answer.text,
        choice=answer.choice,
        citations=list(answer.citations),
        warnings=list(answer.warnings),
        failure=answer.failure.kind if answer.failure else None,
    )
