"""Coming in and leaving, and the admins' pages: who is invited, and the trail of what happened."""

from __future__ import annotations

import hmac
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from hoofbeat.errors import HoofbeatError
from hoofbeat.review.invitations import secret_hash
from hoofbeat.review.review_records import Person, PersonRole
from hoofbeat.web.error_pages import refuse
from hoofbeat.web.page_rendering import not_found, render
from hoofbeat.web.review.trail_view import TrailQuery, trail_lines
from hoofbeat.web.security import address_of, give_cookie, require_admin, take_cookie
from hoofbeat.web.site import site_of, store_of
from hoofbeat.web.throttle import Throttle

__all__ = ["router"]

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

Admin = Annotated[Person, Depends(require_admin)]
_NOT_VALID = "this link is not valid, or not any more"
_ASK = "ask whoever sent it for a new one"


def _refuse_guess(request: Request) -> Response | None:
    """The answer to an address that tried too many wrong links."""
    throttle: Throttle = request.app.state.throttle
    if wait := throttle.wait(address_of(request)):
        fix = f"wait {wait} seconds, then open your link again"
        return refuse(request, 429, "too many wrong links were tried", fix, {"Retry-After": str(wait)})
    return None


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
    return render(request, "people/join.html", title=f"Welcome, {person.name}", invited=person, token=token)


@router.post("/join/{token}")
def join(request: Request, token: str) -> Response:
    """Sign in with an invitation."""
    if (refused := _refuse_guess(request)) is not None:
        return refused
    store, settings = store_of(request), site_of(request).settings
    signed = store.sign_in(token, hours=settings.session_hours)
    if signed is None:
        return _wrong_link(request)
    person, secret = signed
    if request.state.session:
        store.sign_out(request.state.session)
    answer = RedirectResponse("/review" if person.role == "reviewer" else "/team", 303)
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
    return render(
        request,
        "people/people.html",
        title="People",
        status=200 if problem is None else 400,
        everybody=store.people(),
        studies=store.studies(),
        admin=admin,
        problem=problem,
        name=name,
    )


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
        person, token = store_of(request).invite(name, named, by=admin.id, groups=own, studies=tuple(study or ()))
    except HoofbeatError as err:
        return _people_page(request, admin, err, name)
    return _link_page(request, person, token)


def _link_page(request: Request, person: Person, token: str) -> HTMLResponse:
    link = f"{site_of(request).settings.base_url.rstrip('/')}/join/{token}"
    return render(request, "people/link.html", title=f"A link for {person.name}", invited=person, link=link)


@router.post("/team/people/{id}/renew")
def renew(request: Request, id: str, admin: Admin) -> HTMLResponse:
    """A new link for somebody; the old one ends."""
    token = store_of(request).renew(id, admin.id)
    person = store_of(request).person(id)
    return not_found(request, "There is no such person.") if person is None else _link_page(request, person, token)


@router.post("/team/people/{id}/revoke")
def revoke(request: Request, id: str, admin: Admin) -> Response:
    """Let somebody in no more."""
    if id == admin.id:
        return refuse(request, 400, "you can't shut yourself out", "let another admin do it")
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
        return not_found(request, "There is no such study.")
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
