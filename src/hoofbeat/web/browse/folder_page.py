"""The page on any folder: its figures as in a report, its inputs and outputs, and how it was made; and a report's page.

A report's page is a file that somebody made. Its one style and one script run by their hashes, which its policy names.
Nothing else runs and it may load nothing. The browser gives it a separate origin, so that its content can reach neither
this site's pages nor the reader's session.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, HTMLResponse, Response
from markupsafe import Markup
from msgspec import Struct

from hoofbeat.errors import HoofbeatError
from hoofbeat.reports.model import Card
from hoofbeat.reports.page import linked_html
from hoofbeat.reports.report_build import assemble, origin_blocks
from hoofbeat.reports.section import report_kinds
from hoofbeat.reports.tables import count_of
from hoofbeat.store import Artefact, InputRef
from hoofbeat.store.folder_library import Folder
from hoofbeat.text import some_of
from hoofbeat.web.browse.links import Link, kind_words, linked_folders, page_of_folder, reference_of
from hoofbeat.web.browse.open_folders import artefact_of, prepare_in_background, preparing_page
from hoofbeat.web.page_rendering import not_found, render
from hoofbeat.web.site import Site, site_of

router = APIRouter()
_REPORT = "report.html"
_MAX_COUNT = 60
_MAX_LENGTH = 300
_FEW = 8
_UNITS = ("B", "kB", "MB", "GB", "TB")


class FolderDetails(Struct, frozen=True):
    """What is said of a folder beyond its manifest: figures, warnings, charts and tables, and how it was made."""

    cards: tuple[Card, ...]
    notes: tuple[str, ...]
    blocks: Markup
    origin: Markup


@router.get("/folders/{slug}", response_class=HTMLResponse, include_in_schema=False)
def folder_page(request: Request, slug: str) -> HTMLResponse:
    """A folder of any kind."""
    site = site_of(request)
    folder = site.library.folder(slug)
    if folder is None:
        return not_found(request, "There is no folder of this name here.")
    told = prepare_in_background(site, folder, "told", _told)
    if told is None:
        return preparing_page(request, folder)
    artefact = artefact_of(site, folder)
    manifest = artefact.manifest
    kind = kind_words(folder.kind)
    named = manifest.title if manifest.title not in ("", folder.kind) else folder.slug
    return render(
        request,
        "browse/folder.html",
        title=named,
        folder=folder,
        kind=kind,
        pages=page_of_folder(folder) if kind.pages else "",
        report=f"/reports/{slug}" if artefact.has(_REPORT) and not kind.pages else "",
        told=told,
        counts=_counts(artefact, kind.unit),
        reasons=sorted({**manifest.counts.reasons, **manifest.counts.failures}.items(), key=lambda each: -each[1]),
        figures=list(_figures(manifest.metrics)) if not told.cards else [],
        made_from=[_source(site, ref) for ref in _artefacts(manifest.inputs)],
        files_read=len(manifest.inputs) - len(_artefacts(manifest.inputs)),
        made_into=[(each, kind_words(each.kind).name, page_of_folder(each)) for each in linked_folders(site, folder)],
        files=_files(artefact),
        files_total=len(manifest.files),
    )


def _told(folder: Folder) -> FolderDetails:
    """What a report says of the folder, and how it was made; folders with pages of their own say the first there."""
    if kind_words(folder.kind).pages:
        return FolderDetails((), (), Markup(""), linked_html(origin_blocks([folder.artefact()])[4:]))
    return report_details(folder)


def report_details(folder: Folder) -> FolderDetails:
    """What a report says of the folder, where reports have a chapter on its kind, and how it was made."""
    artefact = folder.artefact()
    origin = linked_html(origin_blocks([artefact])[4:])
    if folder.kind not in report_kinds():
        return FolderDetails((), (), Markup(""), origin)
    try:
        report = assemble([artefact], title=artefact.manifest.title)
    except HoofbeatError as err:
        return FolderDetails((), (f"Its figures can't be shown: {err.what}.",), Markup(""), origin)
    last = len(report.blocks) - len(origin_blocks([artefact]))
    return FolderDetails(report.cards, report.notes, linked_html(report.blocks[:last]), origin)


def _counts(artefact: Artefact, unit: str) -> list[str]:
    counts = artefact.manifest.counts
    told = [count_of(counts.kept, unit)]
    told += [f"{counts.rejected:,} not taken"] if counts.rejected else []
    return told + ([f"{counts.failed:,} failed"] if counts.failed else [])


def _figures(metrics: Mapping[str, object], before: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    """A manifest's figures, one a line, named by the way to them."""
    for name, value in list(metrics.items())[:_MAX_COUNT]:
        way = (*before, str(name))
        if isinstance(value, Mapping):
            yield from list(_figures(value, way))[:_MAX_COUNT]
        else:
            yield " · ".join(way), _in_words(value)


def _in_words(value: object) -> str:
    match value:
        case None | bool():
            words = {None: "–", True: "yes", False: "no"}[value]
        case int():
            words = f"{value:,}"
        case float():
            words = f"{value:,.4g}"
        case Mapping():
            words = ", ".join(f"{name} {_in_words(each)}" for name, each in list(value.items())[:_MAX_COUNT])
        case list() | tuple():
            words = some_of([_in_words(each) for each in value], _FEW, "; ")
        case _:
            words = str(value)
    return words if len(words) <= _MAX_LENGTH else f"{words[:_MAX_LENGTH]}…"


def _artefacts(inputs: Sequence[InputRef]) -> list[InputRef]:
    return [ref for ref in inputs if ref.kind not in ("", "file", "list of files")]


def _source(site: Site, ref: InputRef) -> Link:
    """An input, with the way to it where it is shown here, too."""
    for folder in site.library.folders(ref.kind):
        if reference_of(site, folder) == ref.sha256:
            return Link(ref.name, page_of_folder(folder))
    return Link(ref.name, "")


def _files(artefact: Artefact) -> list[tuple[str, str]]:
    """The files of a folder with their sizes."""
    listed, here = [], artefact.path.resolve()
    inside = [name for name in sorted(artefact.manifest.files) if (artefact.path / name).resolve().is_relative_to(here)]
    for name in inside[:_MAX_COUNT]:
        try:
            listed.append((name, _size(artefact.file(name).stat().st_size)))
        except OSError:
            listed.append((name, "missing"))
    return listed


def _size(amount: float) -> str:
    unit = 0
    while amount >= 1000 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1000, unit + 1
    return f"{amount:,.0f} {_UNITS[unit]}" if unit == 0 or amount >= 100 else f"{amount:.1f} {_UNITS[unit]}"


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
