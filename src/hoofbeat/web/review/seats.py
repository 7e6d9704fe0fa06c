"""Who sits at which exam: found for every request from the review store, with the server's clock."""

from __future__ import annotations

import math
import time

from fastapi import Request

from hoofbeat.review.exams.exam_assignment import FORM, Clock
from hoofbeat.review.exams.exam_sitting import ExamSitting, load_sitting
from hoofbeat.review.review_errors import not_here
from hoofbeat.review.review_records import Person
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.web.site import site_of, store_of

__all__ = ["CLOCK", "parse_seconds", "require_sitting", "server_time"]

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
