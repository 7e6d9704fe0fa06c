"""The start page: what there is to look at, by kind, each with what it was made from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime

import pydantic
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from msgspec import Struct

from hoofbeat.reports.tables import count_of
from hoofbeat.store import Counts, InputRef, Manifest
from hoofbeat.store.folder_library import Folder, FolderLibrary
from hoofbeat.web.browse import folder_page
from hoofbeat.web.browse.links import KINDS, about_folder, kind_words, page_of_folder
from hoofbeat.web.page_rendering import render
from hoofbeat.web.site import site_of

__all__ = ["ApiFolder", "ApiInput", "ApiLibrary", "FolderCard", "FolderGroup", "cards", "page_of_folder", "router"]

router = APIRouter()
router.include_router(folder_page.router)

_SHELVES = {
    "corpus": "Corpora",
    "benchmark": "Benchmarks",
    "rankings": "Rankings",
    "judgments": "Judged answers",
    "run": "Answers",
    "audit": "Audits",
    "report": "Reports",
}
_SHOWN_INPUTS = 4


class _Summary(Struct, frozen=True):
    """What the start page needs of a folder."""

    title: str
    counts: Counts
    made: float
    inputs: tuple[InputRef, ...]
    files: int
    sha256: str
    rows: int


class FolderCard(Struct, frozen=True, kw_only=True):
    """One folder on the start page. `kind` is told where its shelf does not tell it, `how` leads to how it was made."""

    slug: str
    kind: str
    title: str
    href: str
    how: str
    place: str
    facts: tuple[str, ...]
    made: str
    sources: tuple[tuple[str, str], ...]
    more: int = 0


class FolderGroup(Struct, frozen=True):
    """The folders of one kind."""

    kind: str
    title: str
    about: str
    cards: tuple[FolderCard, ...]


@router.get("/", response_class=HTMLResponse, include_in_schema=False)
def start(request: Request) -> HTMLResponse:
    """The start page."""
    site = site_of(request)
    site.library.look_again()
    return render(
        request,
        "home.html",
        title="Hoofbeat",
        shelves=cards(site.library),
        unreadable=site.library.unreadable(),
        beside=len(site.library.folders("run", "judgments")) > 1,
    )


def cards(library: FolderLibrary) -> list[FolderGroup]:
    """Every folder, by kind in the order of the flow; kinds without pages of their own come last."""
    folders = library.folders()
    summaries = {folder.slug: library.opened(folder, "summary", _summary) for folder in folders}
    by_content = {(folder.kind, summaries[folder.slug].sha256): folder for folder in folders}
    names = Counter(folder.path.name for folder in folders)
    made: dict[str, list[FolderCard]] = {}
    for folder in folders:
        made.setdefault(folder.kind, []).append(
            _card(folder, summaries[folder.slug], by_content, alike=names[folder.path.name] > 1)
        )
    known = [
        FolderGroup(kind, name, KINDS[kind].about, tuple(made[kind])) for kind, name in _SHELVES.items() if kind in made
    ]
    order = [*(kind for kind in KINDS if kind in made), *(kind for kind in made if kind not in KINDS)]
    others = tuple(card for kind in order if kind not in _SHELVES for card in made[kind])
    if others:
        known.append(FolderGroup("other", "Further results", "Checks, comparisons and exports.", others))
    return known


def _summary(folder: Folder) -> _Summary:
    artefact = folder.artefact()
    manifest = artefact.manifest
    rows = 0
    if folder.kind == "benchmark" and artefact.has("questions.jsonl"):
        with artefact.file("questions.jsonl").open("rb") as stream:
            rows = sum(block.count(b"\n") for block in iter(lambda: stream.read(1 << 20), b""))
    return _Summary(
        title=manifest.title,
        counts=manifest.counts,
        made=(folder.path / "manifest.json").stat().st_mtime,
        inputs=_artefacts_among(manifest),
        files=len(manifest.inputs),
        sha256=artefact.reference().sha256,
        rows=rows,
    )


def _artefacts_among(manifest: Manifest) -> tuple[InputRef, ...]:
    """The inputs that are artefacts; of files that were read, only how many there were is told."""
    return tuple(ref for ref in manifest.inputs if ref.kind not in ("", "file", "list of files"))


def _card(
    folder: Folder, summary: _Summary, by_content: Mapping[tuple[str, str], Folder], *, alike: bool = False
) -> FolderCard:
    """The card of a folder; where another is called the same, it tells what folder it is in."""
    sources = []
    for ref in summary.inputs[:_SHOWN_INPUTS]:
        here = by_content.get((ref.kind, ref.sha256))
        sources.append((ref.name, page_of_folder(here) if here else ""))
    kind = "" if folder.kind in _SHELVES else kind_words(folder.kind).name
    title = summary.title if summary.title not in ("", folder.kind) else folder.slug
    return FolderCard(
        slug=folder.slug,
        kind=kind,
        title=title,
        href=page_of_folder(folder),
        how=about_folder(folder),
        place=f"{folder.path.parent.name}/{folder.path.name}" if alike else "",
        facts=_facts(folder.kind, summary),
        made=datetime.fromtimestamp(summary.made, UTC).strftime("%Y-%m-%d %H:%M UTC"),
        sources=tuple(sources),
        more=max(0, len(summary.inputs) - _SHOWN_INPUTS),
    )


def _facts(kind: str, summary: _Summary) -> tuple[str, ...]:
    counts = summary.counts
    lost = (f"{counts.failed:,} failed",) if counts.failed else ()
    match kind:
        case "corpus":
            left_out = (f"{counts.rejected:,} not taken",) if counts.rejected else ()
            return (count_of(counts.kept, "document"), *left_out)
        case "benchmark":
            rejected = (f"{counts.rejected:,} candidates rejected",) if counts.rejected else ()
            return (count_of(summary.rows, "question"), *rejected, *lost)
        case "rankings":
            return (count_of(counts.kept + counts.failed, "query", "queries"), *lost)
        case "run":
            return (count_of(counts.kept + counts.failed, "answer"), *lost)
        case "judgments":
            return (count_of(counts.kept + counts.failed, "judgment"), *lost)
        case "audit":
            return (count_of(counts.kept + counts.failed, "pair"), *lost)
        case "report":
            return (f"on {count_of(summary.files, 'folder')}",)
    return (count_of(counts.kept, kind_words(kind).unit), *lost)


class ApiInput(pydantic.BaseModel):
    """An artefact that a folder was made from; `slug` where it is shown here, too."""

    name: str
    kind: str
    sha256: str
    slug: str | None


class ApiFolder(pydantic.BaseModel):
    """A folder that is shown. `made` is when its manifest was written, `page` where people look at it."""

    slug: str
    kind: str
    title: str
    page: str
    made: datetime
    kept: int
    rejected: int
    failed: int
    inputs: list[ApiInput]


class ApiLibrary(pydantic.BaseModel):
    """All folders of the server."""

    folders: list[ApiFolder]


@router.get("/api/library", tags=["browse"])
def library(request: Request) -> ApiLibrary:
    """Every folder that this server shows."""
    shown = site_of(request).library
    shown.look_again()
    folders = shown.folders()
    summaries = {folder.slug: shown.opened(folder, "summary", _summary) for folder in folders}
    slugs = {(folder.kind, summaries[folder.slug].sha256): folder.slug for folder in folders}
    listed = []
    for folder in folders:
        summary = summaries[folder.slug]
        inputs = [
            ApiInput(name=ref.name, kind=ref.kind, sha256=ref.sha256, slug=slugs.get((ref.kind, ref.sha256)))
            for ref in summary.inputs
        ]
        listed.append(
            ApiFolder(
                slug=folder.slug,
                kind=folder.kind,
                title=summary.title,
                page=page_of_folder(folder),
                made=datetime.fromtimestamp(summary.made, UTC),
                kept=summary.counts.kept,
                rejected=summary.counts.rejected,
                failed=summary.counts.failed,
                inputs=inputs,
            )
        )
    return ApiLibrary(folders=listed)
