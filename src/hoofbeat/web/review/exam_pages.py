"""The exam's pages: the list, the way in, a question at a time, and the result at the end.

Its script asks for the time left and keeps drafts as JSON; time is the server's.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from string import ascii_uppercase
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field

from hoofbeat.errors import HoofbeatError
from hoofbeat.review.exam_items import FORM, Clock, ExamRules
from hoofbeat.review.exam_results import model_lines, model_outcomes, result_of
from hoofbeat.review.exam_sitting import (
    MAX_ANSWER_CHARACTERS,
    ExamQuestion,
    ExamSitting,
    begin_exam,
    end_exam,
    exam_items,
    load_sitting,
    open_question,
    save_draft,
    submit_answer,
    visible_case,
)
from hoofbeat.review.hidden_folders import hidden_by_another
from hoofbeat.review.review_records import Person, ReviewItem, ReviewRefusalError, not_here
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.web.browse.open_folders import prepare_in_background
from hoofbeat.web.page_rendering import ErrorOut, artefact_of, item_image, not_found, render
from hoofbeat.web.security import may_browse, require_person
from hoofbeat.web.site import site_of, store_of, whole_site

router = APIRouter()

CLOCK = "exam-clock"
"""Under this name the site may have its own clock in what it shares."""


def server_time(request: Request) -> float:
    """The time by the server's clock."""
    clock: Clock = site_of(request).shared.get(CLOCK, time.time)
    return clock()


def require_sitting(request: Request, person: Person, study: str) -> tuple[ReviewStore, ExamSitting]:
    """The review store and a person's exam; an exam that is not there, or not theirs, is refused."""
    store = store_of(request)
    found = store.study(study)
    if found is None or found.form != FORM or not person.sees(study):
        raise not_here("you have no such exam")
    return store, load_sitting(store, found, person, server_time(request))


def parse_seconds(text: str) -> float | None:
    """The seconds that a page says it was looked at; None where it does not say."""
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


_ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorOut, "description": "The request is not an answer."},
    401: {"model": ErrorOut, "description": "Nobody is signed in."},
    403: {
        "model": ErrorOut,
        "description": "The request did not come from a page of this server, or the question is not yours.",
    },
    404: {"model": ErrorOut, "description": "This exam or question does not exist."},
    409: {"model": ErrorOut, "description": "Too late: the time is up, or the question is already answered."},
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


@router.get("/api/exam/{study}", responses=_ERRORS)
def state(request: Request, person: Me, study: str) -> ExamState:
    """How the signed-in person's exam stands."""
    _, sitting = require_sitting(request, person, study)
    return _state(sitting)


@router.post("/api/exam/{study}/questions/{place}/draft", responses=_ERRORS)
def draft(request: Request, person: Me, study: str, place: int, body: DraftAnswer) -> ExamState:
    """Keep what is marked."""
    store, sitting = require_sitting(request, person, study)
    entry = sitting.entry(place)
    if entry is None:
        raise not_here("your exam does not have this question")
    return _state(save_draft(store, sitting, entry, body.answer, body.seconds, body.stage))


def _state(sitting: ExamSitting) -> ExamState:
    return ExamState(
        questions=len(sitting.entries),
        answered=sitting.answered,
        remaining=sitting.remaining,
        over=sitting.over,
    )


Me = Annotated[Person, Depends(require_person)]
_OPTIONS = "Choose one option for each question."
_OWN_WORDS = (
    "Answer in your own words, in one or two sentences. Someone compares your answers with the reference answers "
    "after the exam; until then they have no score."
)
_BOTH = f"Choose an option where there are options. Elsewhere: {_OWN_WORDS[0].lower()}{_OWN_WORDS[1:]}"
_NO_QUESTION = "Your exam does not have this question."


@router.get("/exam", response_class=HTMLResponse, include_in_schema=False)
def exams(request: Request, person: Me) -> HTMLResponse:
    """The exams that are open to the person."""
    store = store_of(request)
    now = server_time(request)
    mine = [study for study in store.studies() if study.form == FORM and person.sees(study.id)]
    sittings = [load_sitting(store, study, person, now) for study in mine]
    return render(request, "exam/list.html", title="Exams", sittings=sittings)


@router.get("/exam/{study}", response_class=HTMLResponse, include_in_schema=False)
def entrance(request: Request, person: Me, study: str) -> HTMLResponse:
    """The way in: what to expect, a button to begin; afterwards the list of questions, and the way out."""
    store, sitting = require_sitting(request, person, study)
    if sitting.over:
        sitting = end_exam(store, sitting)
    return render(
        request,
        "exam/entrance.html",
        title=sitting.study.title,
        sitting=sitting,
        rules=sitting.rules,
        count=len(sitting.entries) or _count(sitting.rules, len(exam_items(store, study))),
        said=_told(sitting.rules, _ways(exam_items(store, study).values())),
    )


@router.post("/exam/{study}/begin", include_in_schema=False)
def start(request: Request, person: Me, study: str) -> Response:
    """Begin, or go on where the person was."""
    store, sitting = require_sitting(request, person, study)
    if not sitting.over:
        sitting = begin_exam(store, sitting.study, person, sitting.now)
    entry = None if sitting.over else sitting.next_open()
    return _to(study) if entry is None else _opened(request, person, study, entry.place)


@router.post("/exam/{study}/questions/{place}/open", include_in_schema=False)
def opened(request: Request, person: Me, study: str, place: int) -> Response:
    """Open a question, which starts its time."""
    return _opened(request, person, study, place)


@router.get("/exam/{study}/questions/{place}", response_class=HTMLResponse, include_in_schema=False)
def question(request: Request, person: Me, study: str, place: int) -> Response:
    """A question that was opened: with a form, or as it was answered. Looking at another one is opening it."""
    store, sitting = require_sitting(request, person, study)
    entry = sitting.entry(place)
    if entry is None or sitting.began is None:
        return not_found(request, _NO_QUESTION)
    if sitting.over:
        end_exam(store, sitting)
        return _to(study)
    return _question(request, sitting, entry) if entry.opened else _to(study)


@router.post("/exam/{study}/questions/{place}", include_in_schema=False)
def answer(
    request: Request,
    person: Me,
    study: str,
    place: int,
    choice: Annotated[str, Form()] = "",
    text: Annotated[str, Form()] = "",
    seconds: Annotated[str, Form()] = "",
    stage: Annotated[str, Form()] = "0",
) -> Response:
    """Give an answer and go on. What comes too late, or a second time, is refused, and the page says so."""
    store, sitting = require_sitting(request, person, study)
    entry = sitting.entry(place)
    if entry is None:
        return not_found(request, _NO_QUESTION)
    number = int(stage) if stage.isdecimal() and len(stage) < 4 else -1
    try:
        sitting = submit_answer(
            store, sitting, entry, choice if entry.options else text, parse_seconds(seconds), number
        )
    except ReviewRefusalError as err:
        if sitting.over:
            end_exam(store, sitting)
            return _to(study)
        return _question(request, sitting, entry, problem=err, said=text if not entry.options else "")
    after = sitting.entry(place)
    following = after if after is not None and not after.done else sitting.next_open(place)
    return _to(study) if following is None else _opened(request, person, study, following.place)


@router.post("/exam/{study}/end", include_in_schema=False)
def ended(request: Request, person: Me, study: str) -> Response:
    """End the exam before everything is answered."""
    store, sitting = require_sitting(request, person, study)
    end_exam(store, sitting)
    return RedirectResponse(f"/exam/{study}/result", status_code=303)


@router.get("/exam/{study}/result", response_class=HTMLResponse, include_in_schema=False)
def result(request: Request, person: Me, study: str) -> Response:
    """The result, once the exam is over: nobody is told anything before, nor what another open study still hides."""
    store, sitting = require_sitting(request, person, study)
    if not sitting.over:
        return _to(study)
    sitting = end_exam(store, sitting)
    site = whole_site(request)  # how models did as a whole tells nobody an answer
    held = hidden_by_another(site.library, sitting.study, store.studies(), person)
    scored = result_of(sitting)
    if held:  # the score of a single answer says whether it was right
        scored = replace(scored, overall=(), parts=())
    known = [
        (folder.slug, prepare_in_background(site, folder, "exam-outcomes", model_outcomes))
        for folder in ([] if held else site.library.folders("run", "judgments"))
    ]
    return render(
        request,
        "exam/result.html",
        title=f"Your result: {sitting.study.title}",
        sitting=sitting,
        result=scored,
        held=held,
        models=model_lines(sitting, [(slug, found) for slug, found in known if found is not None]),
        waiting=any(found is None for _, found in known),
        linked=may_browse(request),
    )


@router.get("/exam/{study}/questions/{place}/images/{number}", include_in_schema=False)
def image(request: Request, person: Me, study: str, place: int, number: int) -> Response:
    """An image of a question that the person has opened, at the stage that shows it."""
    _, sitting = require_sitting(request, person, study)
    entry = sitting.entry(place)
    shown = entry is not None and (sitting.over or (entry.opened and _with_images(sitting, entry)))
    files = entry.question.images if entry is not None and shown else ()
    return item_image(request, artefact_of(whole_site(request), sitting.study), files, number)


def _opened(request: Request, person: Person, study: str, place: int) -> Response:
    store, sitting = require_sitting(request, person, study)
    entry = sitting.entry(place)
    if entry is None or sitting.began is None:
        return not_found(request, _NO_QUESTION)
    if sitting.over:
        end_exam(store, sitting)
        return _to(study)
    open_question(store, sitting, entry)
    return RedirectResponse(f"/exam/{study}/questions/{place}", status_code=303)


def _question(
    request: Request, sitting: ExamSitting, entry: ExamQuestion, *, problem: HoofbeatError | None = None, said: str = ""
) -> HTMLResponse:
    case, asked = visible_case(entry)
    there = artefact_of(whole_site(request), sitting.study) is not None
    return render(
        request,
        "exam/question.html",
        title=f"Question {entry.place} of {len(sitting.entries)}",
        status=getattr(problem, "status", 400) if problem else 200,
        sitting=sitting,
        entry=entry,
        case=case,
        asked=asked,
        images=range(1, len(entry.question.images) + 1) if _with_images(sitting, entry) else range(0),
        there=there,
        letters=ascii_uppercase,
        problem=problem,
        said=said or entry.kept.draft,
        max_characters=MAX_ANSWER_CHARACTERS,
    )


def _with_images(sitting: ExamSitting, entry: ExamQuestion) -> bool:
    """Whether images are shown: with a part of the case they could give away the rest."""
    return bool(entry.question.images) and (not sitting.rules.stages or entry.share == sitting.rules.shares[-1])


def _count(rules: ExamRules, items: int) -> int:
    return rules.per_person or items


def _to(study: str) -> RedirectResponse:
    return RedirectResponse(f"/exam/{study}", status_code=303)


def _ways(items: Iterable[ReviewItem]) -> set[bool]:
    """Whether there are questions with options (True), without (False), or both."""
    return {any(part.kind == "options" for part in item.shown) for item in items}


def _told(rules: ExamRules, ways: set[bool]) -> list[str]:
    """What a person should know before the first question."""
    told = [
        _OPTIONS if ways == {True} else _OWN_WORDS if ways == {False} else _BOTH,
        "You can't change an answer after you save it.",
        "You can answer a question later: continue, and come back to it.",
        "The time you spend on each question is recorded.",
        "You see your result after the exam." if True in ways else "You see the reference answers after the exam.",
    ]
    if rules.stages:
        shares = ", ".join(f"{share}%" for share in rules.stages)
        told.insert(2, f"Each case is shown in parts: {shares} of its sentences. You answer after each part.")
    if rules.minutes:
        told.insert(
            3,
            f"You have {rules.minutes:g} minutes for all questions together, from when you start. The clock keeps "
            "running if you leave the page. When the time is up, drafts count: what you chose or wrote and did not "
            "save.",
        )
    told.append(
        "You may use the literature. Please do not ask a language model or a colleague."
        if rules.literature
        else "Please do not use the literature, a search engine or a language model."
    )
    return told
