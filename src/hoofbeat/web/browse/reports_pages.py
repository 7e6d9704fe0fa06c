"""A report's own page, served as it is, in a box of its own.

The page is a file somebody made. Its one style and one script run by their hashes, which its own policy names; nothing
else does, it may load nothing, and the browser gives it an origin of its own, so that whatever stands in it can reach
neither this site's pages nor the reader's session.
"""

from __future__ import annotations

import re

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, Response

from hoofbeat.web.library import Folder
from hoofbeat.web.page_rendering import not_found
from hoofbeat.web.site import site_of

__all__ = ["report_policy", "router"]

router = APIRouter()

_PAGE = "report.html"
_META = re.compile(rb'<meta http-equiv="Content-Security-Policy" content="([^"]{1,4000})"', re.IGNORECASE)
_HEAD = 64 * 1024
_HASH = re.compile(r"'sha(?:256|384|512)-[A-Za-z0-9+/=_-]{20,100}'")


@router.get("/reports/{slug}", include_in_schema=False)
def report_page(request: Request, slug: str) -> Response:
    """A report, or any other folder that has a report's page."""
    site = site_of(request)
    folder = site.library.folder(slug)
    if folder is None or not folder.artefact().has(_PAGE):
        return not_found(request, "There is no report of this name here.")
    policy = site.library.opened(folder, "report-policy", report_policy)
    headers = {"Content-Security-Policy": policy}
    return FileResponse(folder.artefact().file(_PAGE), media_type="text/html; charset=utf-8", headers=headers)


def report_policy(folder: Folder) -> str:
    """The policy a report's page is served with: only the hashes of the one that the page brings count."""
    with folder.artefact().file(_PAGE).open("rb") as stream:
        found = _META.search(stream.read(_HEAD))
    own = found[1].decode("ascii", "replace").replace("&#39;", "'") if found else ""
    allowed = {name: " ".join(_HASH.findall(_directive(own, name))) or "'none'" for name in ("style-src", "script-src")}
    return (
        f"default-src 'none'; style-src {allowed['style-src']}; script-src {allowed['script-src']}; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'; sandbox allow-scripts"
    )


def _directive(policy: str, name: str) -> str:
    return next((part for part in policy.split(";") if part.split()[:1] == [name]), "")
