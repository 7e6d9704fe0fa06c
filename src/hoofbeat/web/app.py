"""The application: every part of the site is a separate router; they are put together here."""

from __future__ import annotations

from importlib import resources

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from hoofbeat.errors import HoofbeatError
from hoofbeat.reports.page import page_style
from hoofbeat.review.invitations import Throttle
from hoofbeat.version import __version__
from hoofbeat.web import ask_pages
from hoofbeat.web.browse import (
    audit_pages,
    benchmark_pages,
    corpus_pages,
    folder_pages,
    ranking_pages,
    run_comparison,
    run_pages,
)
from hoofbeat.web.browse.open_folders import PageInstead
from hoofbeat.web.page_rendering import REFUSALS, refuse, refuse_error
from hoofbeat.web.review import exam_pages, people_pages, task_pages, team_pages, worklist_pages
from hoofbeat.web.security import Guard, way_in
from hoofbeat.web.site import Site

_STATIC = resources.files("hoofbeat.web") / "static"
_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
_FIXES = {403: "ask the person who invited you"}
_WORDS = {
    "Not Found": "this page does not exist",
    "Method Not Allowed": "this action is not allowed here",
}  # the framework's own
_PARTS = (
    folder_pages,
    corpus_pages,
    benchmark_pages,
    ranking_pages,
    run_pages,
    audit_pages,
    run_comparison,
    ask_pages,
    people_pages,
    task_pages,
    team_pages,
    worklist_pages,
    exam_pages,
)


def create_app(site: Site) -> FastAPI:
    """The site as an ASGI application."""
    app = FastAPI(
        title="Hoofbeat",
        version=__version__,
        description="Research software. Not for clinical use.",
        docs_url=None,
        redoc_url=None,
    )
    app.state.site = site
    app.state.throttle = Throttle(site.settings.tries_per_minute, 10 * site.settings.tries_per_minute)
    app.add_middleware(Guard, site=site)
    _add_files(app)
    for part in _PARTS:
        app.include_router(part.router, responses=REFUSALS)
    _add_errors(app)
    return app


def _add_files(app: FastAPI) -> None:
    """Our own style sheets, scripts and icons, by name; nothing else has a name there."""
    files = {entry.name: entry.read_bytes() for entry in _STATIC.iterdir() if entry.name.endswith(tuple(_TYPES))}
    files["base.css"] = page_style().encode()

    @app.get("/static/{name}", include_in_schema=False)
    def static(name: str) -> Response:
        content = files.get(name)
        if content is None:
            return Response(status_code=404)
        kind = _TYPES[name[name.rindex(".") :]]
        return Response(content, media_type=kind, headers={"Cache-Control": "no-cache"})


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(HTTPException)
    def told(request: Request, err: HTTPException) -> Response:
        """An error with a code."""
        fix = way_in(request)[1] if err.status_code == 401 else _FIXES.get(err.status_code, "go back to your workspace")
        what = _WORDS.get(str(err.detail), str(err.detail))
        return refuse(request, err.status_code, what, fix, err.headers)

    @app.exception_handler(HoofbeatError)
    def refused(request: Request, err: HoofbeatError) -> Response:
        """An error of ours."""
        return refuse_error(request, err)

    @app.exception_handler(PageInstead)
    def instead(_: Request, err: PageInstead) -> Response:
        """Something that is not here, or being read."""
        return err.page

    @app.exception_handler(RequestValidationError)
    def misread(request: Request, err: RequestValidationError) -> Response:
        """A number that is none, a field that is missing: scripts are told which, people get a page."""
        if request.url.path.startswith("/api/"):
            detail = [{name: each[name] for name in ("loc", "msg", "type")} for each in err.errors()]
            said = {"error": "this request does not have the expected form", "fix": "see the detail"}
            return JSONResponse({**said, "detail": detail}, status_code=422)
        if any(each["loc"][0] == "path" for each in err.errors()):
            return refuse(request, 404, "this page does not exist", "go back to your workspace")
        return refuse(request, 400, "the form is not complete or not valid", "go back and check it")
