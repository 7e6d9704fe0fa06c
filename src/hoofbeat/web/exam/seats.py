"""Who sits at which exam: found for every request from the desk, with the server's clock."""

from __future__ import annotations

import math
import time

from fastapi import Request

from hoofbeat.web.exam.rules import FORM, Clock
from hoofbeat.web.exam.sitting import Sitting, load_sitting
from hoofbeat.web.review.desk import Desk
from hoofbeat.web.review.records import Person
from hoofbeat.web.review.refusals import not_here
from hoofbeat.web.site import desk_of, site_of

__all__ = ["CLOCK", "now_of", "seat", "spent"]

CLOCK = "exam-clock"
"""Under this name the site may have a clock of its own in what it shares."""


def now_of(request: Request) -> float:
    """The time by the server's clock."""
    clock: Clock = site_of(request).shared.get(CLOCK, time.time)
    return clock()


def seat(request: Request, person: Person, study: str) -> tuple[Desk, Sitting]:
    """The desk and a person's exam; an exam that is not there, or not theirs, is refused."""
    desk = desk_of(request)
    found = desk.study(study)
    if found is None or found.form != FORM or not person.sees(study):
        raise not_here("there is no such exam on your list")
    return desk, load_sitting(desk, found, person, now_of(request))


def spent(text: str) -> float | None:
    """The seconds that a page says it was looked at; None where it does not say."""
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None
