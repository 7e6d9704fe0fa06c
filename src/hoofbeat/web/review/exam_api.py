"""The routes of the exam's script (time left, draft of an answer), and who sits which exam, by the server's clock."""

from __future__ import annotations

import math
import time
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, ConfigDict, Field

from hoofbeat.review.exam_items import FORM, Clock
from hoofbeat.review.exam_sitting import MAX_ANSWER_CHARACTERS, ExamSitting, load_sitting, save_draft
from hoofbeat.review.review_records import Person, not_here
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.web.error_pages import ErrorOut
from hoofbeat.web.security import require_person
from hoofbeat.web.site import site_of, store_of

CLOCK = "exam-clock"
"""Under this name the site may have a clock of its own in what it shares."""


def server_time(request: Request) -> float:
    """The time by the server's clock."""
    clock: Clock = site_of(request).shared.get(CLOCK, time.time)
    return clock()


def require_sitting(request: Request, person: Person, study: str) -> tuple[ReviewStore, ExamSitting]:
    """The review store and a person's exam; an exam that is not there, or not theirs, is refused."""
    store = store_of(request)
    found = store.study(study)
    if found is None or found.form != FORM or not person.sees(study):
        raise not_here("there is no such exam on your list")
    return store, load_sitting(store, found, person, server_time(request))


def parse_seconds(text: str) -> float | None:
    """The seconds that a page says it was looked at; None where it does not say."""
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


api = APIRouter()
Me = Annotated[Person, Depends(require_person)]
_ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorOut, "description": "What was sent is no answer."},
    401: {"model": ErrorOut, "description": "Nobody is signed in."},
    403: {
        "model": ErrorOut,
        "description": "The request did not come from a page of this server, or the question is not yours.",
    },
    404: {"model": ErrorOut, "description": "There is no such exam, or no such question in yours."},
    409: {"model": ErrorOut, "description": "Too late: the time is up, or it was answered already."},
}


class ExamState(BaseModel):
    """How an exam stands: questions, answers, seconds left (null: no limit), and whether it is over."""

    questions: int
    answered: int
    remaining: float | None
    over: bool


class DraftAnswer(BaseModel):
    """What is marked and not given yet: a letter, or free text, at a stage (from 0) of the case's disclosure."""

    model_config = ConfigDict(extra="forbid")

    answer: str = Field(default="", max_length=MAX_ANSWER_CHARACTERS)
    stage: int = Field(default=0, ge=0, le=100)
    seconds: float | None = Field(default=None, ge=0, le=30 * 24 * 3600, allow_inf_nan=False)


@api.get("/api/exam/{study}", responses=_ERRORS)
def state(request: Request, person: Me, study: str) -> ExamState:
    """How the signed-in person's exam stands."""
    _, sitting = require_sitting(request, person, study)
    return _state(sitting)


@api.post("/api/exam/{study}/questions/{place}/draft", responses=_ERRORS)
def draft(request: Request, person: Me, study: str, place: int, body: DraftAnswer) -> ExamState:
    """Keep what is marked."""
    store, sitting = require_sitting(request, person, study)
    entry = sitting.entry(place)
    if entry is None:
        raise not_here("there is no such question in your exam")
    return _state(save_draft(store, sitting, entry, body.answer, body.seconds, body.stage))


def _state(sitting: ExamSitting) -> ExamState:
    return ExamState(
        questions=len(sitting.entries),
        answered=sitting.answered,
        remaining=sitting.remaining,
        over=sitting.over,
    )
