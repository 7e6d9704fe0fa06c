"""What the server answers with: pages, refusals and images.

Pages come from one environment of templates; everything foreign is escaped and cleaned of hidden characters. A refusal
is a page for people and JSON for scripts, in the same words. Images are only files that a manifest lists, of kinds that
carry no script.
"""

from __future__ import annotations

import base64
import logging
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from fastapi import Request, Response
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from msgspec import Struct
from pydantic import BaseModel

from hoofbeat.answering.condition_material import images_of
from hoofbeat.corpus.figures import IMAGE_SUFFIXES
from hoofbeat.errors import HoofbeatError
from hoofbeat.findings.caveats import caveats
from hoofbeat.models import Image
from hoofbeat.models.replay import recorded_in_words
from hoofbeat.records import Question
from hoofbeat.reports.page import blocks_html
from hoofbeat.review.review_records import Study
from hoofbeat.store import Artefact
from hoofbeat.store.files import leads_outside
from hoofbeat.store.folder_library import Folder
from hoofbeat.text import clean, cut, one_line
from hoofbeat.web.folder_titles import folder_title
from hoofbeat.web.site import Site, site_of

T = TypeVar("T")

_HEADING = 200
"""The maximum number of characters of a heading."""


class ListPage(Struct, Generic[T], frozen=True):
    """Some of a long list: `rows` of page `number` (from 1) of `pages`, of `total` in all."""

    rows: list[T]
    number: int
    pages: int
    total: int


def page_of(rows: Sequence[T], number: int, size: int = 50) -> ListPage[T]:
    """Page `number` of a sequence; one that is out of range is the nearest there is."""
    pages = max(1, -(-len(rows) // size))
    number = min(max(1, number), pages)
    return ListPage(list(rows[(number - 1) * size : number * size]), number, pages, len(rows))


def render(request: Request, template: str, *, title: str, status: int = 200, **context: Any) -> HTMLResponse:
    """A page from a template that extends `base.html`."""
    site = site_of(request)
    text = (
        environment()
        .get_template(template)
        .render(
            request=request,
            site=site,
            title=title,
            person=getattr(request.state, "person", None),
            csrf=getattr(request.state, "csrf", ""),
            browses=getattr(request.state, "browses", False),
            path=request.url.path,
            title_of=lambda folder: folder_title(site, folder),
            **context,
        )
    )
    return HTMLResponse(text, status_code=status)


def not_found(request: Request, what: str) -> HTMLResponse:
    """The page for something that is not here."""
    return render(request, "error.html", title="Page not found", status=404, what=what, fix="go back to your workspace")


@cache
def environment() -> Environment:
    """The templates of all pages."""
    made = Environment(
        loader=PackageLoader("hoofbeat.web", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    made.filters["blocks"] = blocks_html
    made.filters["notes"] = _notes
    made.filters["short"] = _short
    return made


def _short(text: str) -> str:
    """A question as a heading."""
    return cut(one_line(text), _HEADING)


def _finalize(value: object) -> object:
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


_LOG = logging.getLogger("hoofbeat.web")
_TITLES = {
    401: "Please sign in",
    403: "No access",
    404: "Page not found",
    410: "This link no longer works",
    429: "Too many tries",
}


class ErrorOut(BaseModel):
    """Why a request was not served, and what to do."""

    error: str
    fix: str = ""


REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorOut, "description": words}
    for status, words in {
        400: "The request is not valid.",
        401: "Nobody is signed in, or the site link was not opened.",
        403: "The token against forged requests is missing or old, or this person has no access.",
        404: "Not found.",
        405: "Only GET and POST are allowed.",
        413: "The request is longer than 1 MiB.",
        415: "The request must be JSON or a form.",
        421: "The server does not answer to that host name.",
        503: "The database can't be used.",
    }.items()
}
"""What every request may be answered with, for the description of the JSON routes."""

FOLDER_ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorOut, "description": "The folder can't be read."},
    404: {"model": ErrorOut, "description": "This server has no such folder."},
    503: {"model": ErrorOut, "description": "The folder is not ready yet; try again in a few seconds."},
}
"""What a request for a folder may be answered with, for the description of the JSON routes."""


def refuse(
    request: Request, status: int, what: str, fix: str = "", headers: Mapping[str, str] | None = None
) -> Response:
    """The answer to a request that is not served."""
    if request.url.path.startswith("/api/"):
        return JSONResponse({"error": what, "fix": fix}, status_code=status, headers=dict(headers or {}))
    title = _TITLES.get(status, "This did not work")
    lapsed = getattr(request.state, "lapsed", False)
    page = render(
        request, "people/refused.html", title=title, status=status, what=what, fix=fix, code=status, lapsed=lapsed
    )
    page.headers.update(headers or {})
    return page


def refuse_error(request: Request, err: HoofbeatError) -> Response:
    """The answer to an error of ours: what was wrong and what to do, without the machine's paths."""
    status = getattr(err, "status", 400)
    if status >= 500:
        _LOG.error("%s: %s", type(err).__name__, err.what)
    return refuse(request, status, err.what, err.fix or "")


def log_bug(err: BaseException) -> None:
    """Say where a bug is, without its message: that may quote what somebody sent or what a document says."""
    frames = traceback.extract_tb(err.__traceback__)[-3:]
    places = " < ".join(f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in reversed(frames))
    _LOG.error("this should not happen: %s at %s", type(err).__name__, places)


_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".bmp": "image/bmp",
}
_POLICY = "default-src 'none'; sandbox; frame-ancestors 'none'"


def image_file(request: Request, artefact: Artefact, name: str) -> Response:
    """The image of this name; one that a browser can't show is given to be saved, never to be opened."""
    if not artefact.has(name) or not name.lower().endswith(IMAGE_SUFFIXES):
        return not_found(request, "the folder's manifest does not list this image")
    if leads_outside(artefact.path, name) or not (artefact.path / name).is_file():
        return not_found(request, "this image is not in its folder")
    path = artefact.file(name)
    kind = _TYPES.get(path.suffix.lower())
    headers = {"Content-Security-Policy": _POLICY, "X-Content-Type-Options": "nosniff"}
    if kind is None:
        return FileResponse(path, media_type="application/octet-stream", filename="image", headers=headers)
    return FileResponse(path, media_type=kind, headers=headers)


def artefact_of(site: Site, study: Study) -> Artefact | None:
    """What a study is about, where this server has it with the same content."""
    for folder in site.library.folders():
        artefact = site.library.opened(folder, "artefact", Folder.artefact)
        if artefact.reference().sha256 == study.source_sha256:
            return artefact
    return None


def item_image(request: Request, artefact: Artefact | None, files: Sequence[str], number: int) -> Response:
    """Image `number` (from 1) of a review item, from the artefact where this server has it."""
    found = picture(artefact, files, number) if artefact is not None else None
    if found is None:
        return not_found(request, "This image is not on this server.")
    return Response(found[0], media_type=found[1], headers={"Cache-Control": "private, max-age=3600"})


def picture(artefact: Artefact, files: Sequence[str], number: int) -> tuple[bytes, str] | None:
    """Image `number` (from 1) of these files, and its media type by its first bytes."""
    if not 1 <= number <= len(files) or not artefact.has(files[number - 1]):
        return None
    name = files[number - 1]
    if leads_outside(artefact.path, name):
        return None
    found = images_of(artefact, Question(id="", text="", images=(name,)))
    if isinstance(found, str):
        return None
    image: Image = found[0]
    return base64.b64decode(image.data), image.media_type


def _notes(folder: Folder) -> list[str]:
    """What to know before the figures of a folder: replies that were only replayed, a part of the questions."""
    manifest = folder.artefact().manifest
    recorded = recorded_in_words(manifest.models.values())
    return [recorded, *caveats(manifest)] if recorded else caveats(manifest)
