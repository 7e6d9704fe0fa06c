"""Signing in and out, and the admins' pages: who is invited, and the trail: who did what when and what it changed."""

from __future__ import annotations

import hmac
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Form, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from msgspec import Struct

from hoofbeat.errors import HoofbeatError, UsageError
from hoofbeat.review.invitations import Throttle, secret_hash
from hoofbeat.review.review_records import Event, Person, PersonRole, in_utc
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.text import cut
from hoofbeat.web.page_rendering import not_found, refuse, render
from hoofbeat.web.security import address_of, give_cookie, require_admin, take_cookie
from hoofbeat.web.site import site_of, store_of

KINDS = (
    "study created",
    "items added",
    "study closed",
    "assigned",
    "saved",
    "undone",
    "labels seen",
    "decided",
    "invited",
    "renewed",
    "revoked",
    "signed in",
    "signed out",
)
_KNOWN = "make a new link for them in the table, or add something to the name, such as the department"
_PAGE = 50
_SHOWN = 200
_BOOKKEEPING = ("version", "origin", "changed", "link_until", "link_used")


class TrailQuery:
    """What part of the trail is asked for; a dependency that reads it from the address."""

    def __init__(
        self,
        person: Annotated[str, Query(max_length=100)] = "",
        item: Annotated[str, Query(max_length=300)] = "",
        what: Annotated[str, Query(max_length=100)] = "",
        before: Annotated[int, Query(ge=0, le=2**60)] = 0,
    ) -> None:
        self.person, self.item, self.what, self.before = person, item.strip(), what, before

    def older(self, than: int) -> str:
        """The query of the page after this one."""
        named = {"person": self.person, "item": self.item, "what": self.what}
        return urlencode({**{name: value for name, value in named.items() if value}, "before": than})


class TrailChange(Struct, frozen=True):
    """One value that changed, shortened for a table."""

    name: str
    before: str
    after: str


class TrailLine(Struct, frozen=True):
    """One line of the trail with names for ids."""

    event: Event
    when: str
    who: str
    changes: list[TrailChange]


class TrailPage(Struct, frozen=True):
    """A page of the trail; `older` is the query of the next one, empty on the last."""

    lines: list[TrailLine]
    older: str
    kinds: tuple[str, ...]


def trail_lines(store: ReviewStore, asked: TrailQuery, study: str = "") -> TrailPage:
    """A page of the trail, newest first."""
    names = {person.id: person.name for person in store.people()}
    events = store.trail(
        study=study or None,
        person=asked.person or None,
        item=asked.item or None,
        what=asked.what or None,
        before=asked.before or None,
        newest=True,
        limit=_PAGE + 1,
    )
    lines = [
        TrailLine(
            event,
            datetime.fromtimestamp(event.at, UTC).strftime("%Y-%m-%d %H:%M:%S"),
            names.get(event.person, event.person or "command line"),
            changes_of(event, names),
        )
        for event in events[:_PAGE]
    ]
    older = asked.older(events[_PAGE - 1].id) if len(events) > _PAGE else ""
    return TrailPage(lines, older, KINDS)


def changes_of(event: Event, names: dict[str, str]) -> list[TrailChange]:
    """What an event changed, value by value."""
    before, after = dict(_flat(event.before or {})), dict(_flat(event.after or {}))
    told = (
        TrailChange(name, _said(before.get(name), names), _said(after.get(name), names))
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name)
    )
    return [change for change in told if change.before or change.after]


def _flat(told: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in told.items():
        if name in _BOOKKEEPING:
            continue
        if name == "values" and isinstance(value, dict):
            yield from value.items()
        else:
            yield name, value


def _said(value: object, names: dict[str, str]) -> str:
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.1f}"
    if isinstance(value, list):
        return cut(f"{len(value)}: " + ", ".join(str(each) for each in value), _SHOWN) if value else ""
    return cut(names.get(str(value), str(value)), _SHOWN)


router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
Admin = Annotated[Person, Depends(require_admin)]
_NOT_VALID = "this link is not valid"
_ASK = "ask the person who sent it for a new one"
_NEW = (
    "ask the person who sent it for a new link: they make it on the page People, or with: hoofbeat review invite NAME "
    "--again"
)


def _refuse_guess(request: Request) -> Response | None:
    """The answer to an address that tried too many wrong links."""
    throttle: Throttle = request.app.state.throttle
    if wait := throttle.wait(address_of(request)):
        fix = f"wait {wait} seconds, then open your link again"
        return refuse(request, 429, "too many wrong links", fix, {"Retry-After": str(wait)})
    return None


def _ended_link(request: Request, person: Person) -> Response | None:
    """The answer to a right link that signs nobody in any more; its person, signed in, goes on to the lists."""
    trouble = person.link_trouble(time.time())
    if not trouble:
        return None
    if request.state.person is not None and request.state.person.id == person.id:
        return _first_page(person)
    return refuse(request, 410, trouble, _NEW)


def _first_page(person: Person) -> RedirectResponse:
    return RedirectResponse("/review" if person.role == "reviewer" else "/team", 303)


def _wrong_link(request: Request) -> Response:
    request.app.state.throttle.failed(address_of(request))
    return refuse(request, 404, _NOT_VALID, _ASK)


@router.get("/join/{token}")
def invitation(request: Request, token: str) -> Response:
    """What an invitation link opens: who it is for, and a button. A preview of the link in a mail signs nobody in."""
    if (refused := _refuse_guess(request)) is not None:
        return refused
    person = store_of(request).invited(token)
    if person is None:
        return _wrong_link(request)
    if (ended := _ended_link(request, person)) is not None:
        return ended
    return render(request, "people/join.html", title=f"Welcome, {person.name}", invited=person, token=token)


@router.post("/join/{token}")
def join(request: Request, token: str) -> Response:
    """Sign in with an invitation."""
    if (refused := _refuse_guess(request)) is not None:
        return refused
    store, settings = store_of(request), site_of(request).settings
    signed = store.sign_in(token, hours=settings.session_hours)
    if signed is None:
        known = store.invited(token)
        return (known and _ended_link(request, known)) or _wrong_link(request)
    person, secret = signed
    if request.state.session:
        store.sign_out(request.state.session)
    answer = _first_page(person)
    give_cookie(answer, settings, "session", secret)
    return answer


@router.post("/leave")
def leave(request: Request) -> Response:
    """Sign out."""
    if request.state.session:
        store_of(request).sign_out(request.state.session)
    request.state.person, request.state.csrf = None, ""
    page = render(request, "people/left.html", title="You are signed out")
    take_cookie(page, site_of(request).settings, "session")
    return page


@router.get("/enter/{secret}")
def enter(request: Request, secret: str) -> Response:
    """The link of a server that does not stand on loopback: it opens the browse pages for this browser."""
    if (refused := _refuse_guess(request)) is not None:
        return refused
    settings = site_of(request).settings
    if not settings.access or not hmac.compare_digest(secret_hash(secret), settings.access):
        return _wrong_link(request)
    answer = RedirectResponse("/", 303)
    give_cookie(answer, settings, "look", secret)
    return answer


@router.get("/team/people")
def people(request: Request, admin: Admin) -> HTMLResponse:
    """Everybody who was invited."""
    return _people_page(request, admin)


def _people_page(request: Request, admin: Person, problem: HoofbeatError | None = None, name: str = "") -> HTMLResponse:
    store = store_of(request)
    everybody = store.people()
    return render(
        request,
        "people/people.html",
        title="People",
        status=200 if problem is None else 400,
        everybody=everybody,
        studies=store.studies(),
        admin=admin,
        links={one.id: link_words(one) for one in everybody},
        link_days=site_of(request).settings.link_days,
        problem=problem,
        name=name,
    )


def link_words(person: Person) -> str:
    """What became of somebody's link, for an admin."""
    if not person.active:
        return "revoked"
    if person.link_used:
        return f"signed in with the link on {in_utc(person.link_used)}"
    ended = person.link_until <= time.time()
    return f"link {'ended unused' if ended else 'not used yet, ends'} on {in_utc(person.link_until)}"


@router.post("/team/people")
def invite(
    request: Request,
    admin: Admin,
    name: Annotated[str, Form()] = "",
    role: Annotated[str, Form()] = "reviewer",
    groups: Annotated[str, Form()] = "",
    study: Annotated[list[str] | None, Form()] = None,
) -> HTMLResponse:
    """Invite somebody; their link is on this one page and nowhere else."""
    named: PersonRole = role  # type: ignore[assignment]  # the review store refuses what is no role
    own = tuple(each.strip() for each in groups.split(",") if each.strip())
    try:
        if known := store_of(request).person_called(name):
            raise UsageError(f"{known.name!r} was invited before ({link_words(known)})", fix=_KNOWN)
        person, token = store_of(request).invite(
            name, named, by=admin.id, groups=own, studies=tuple(study or ()), days=site_of(request).settings.link_days
        )
    except HoofbeatError as err:
        return _people_page(request, admin, err, name)
    return _link_page(request, person, token)


def _link_page(request: Request, person: Person, token: str) -> HTMLResponse:
    link = f"{site_of(request).settings.base_url.rstrip('/')}/join/{token}"
    until = in_utc(person.link_until)
    return render(
        request, "people/link.html", title=f"A link for {person.name}", invited=person, link=link, until=until
    )


@router.post("/team/people/{id}/renew")
def renew(request: Request, id: str, admin: Admin) -> HTMLResponse:
    """A new link for somebody; the old one ends."""
    token = store_of(request).renew(id, admin.id, days=site_of(request).settings.link_days)
    person = store_of(request).person(id)
    return not_found(request, "This person does not exist.") if person is None else _link_page(request, person, token)


@router.post("/team/people/{id}/revoke")
def revoke(request: Request, id: str, admin: Admin) -> Response:
    """Let somebody in no more."""
    if id == admin.id:
        return refuse(request, 400, "you can't revoke yourself", "ask another admin")
    store_of(request).revoke(id, admin.id)
    return RedirectResponse("/team/people", 303)


@router.get("/team/people/trail", dependencies=[Depends(require_admin)])
def whole_trail(request: Request, asked: Annotated[TrailQuery, Depends()]) -> HTMLResponse:
    """The trail of everything."""
    return _trail_page(request, asked, "", "")


@router.get("/team/{study}/trail", dependencies=[Depends(require_admin)])
def study_trail(request: Request, study: str, asked: Annotated[TrailQuery, Depends()]) -> HTMLResponse:
    """The trail of one study."""
    found = store_of(request).study(study)
    if found is None:
        return not_found(request, "This study does not exist.")
    return _trail_page(request, asked, study, found.title)


def _trail_page(request: Request, asked: TrailQuery, study: str, study_title: str) -> HTMLResponse:
    store = store_of(request)
    lines = trail_lines(store, asked, study)
    return render(
        request,
        "people/trail.html",
        title=f"Trail of {study_title}" if study else "Trail",
        study=study,
        study_title=study_title,
        lines=lines.lines,
        older=lines.older,
        kinds=lines.kinds,
        everybody=store.people(),
        asked=asked,
    )
