"""The start page with all folders by kind, each with what it was made from; and the page on any folder.

That page has a folder's figures as in a report, its inputs and outputs, and how it was made; or it is a report's page.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import pydantic
from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, HTMLResponse, Response
from markupsafe import Markup
from msgspec import Struct

from hoofbeat.audit import Audit
from hoofbeat.audit.audit_doubts import recorded_doubt
from hoofbeat.audit.findings.relations import RelationLabels
from hoofbeat.errors import HoofbeatError
from hoofbeat.findings.caveats import caveats, limited_in_words
from hoofbeat.reports.answer_index import AnswerFilter
from hoofbeat.reports.item_views import system_name
from hoofbeat.reports.model import Card
from hoofbeat.reports.page import linked_html
from hoofbeat.reports.report_build import assemble
from hoofbeat.reports.section import report_kinds
from hoofbeat.reports.tables import MIN_OBSERVATIONS, count_of, short_hash
from hoofbeat.store import Artefact, Counts, InputRef, Manifest
from hoofbeat.store.files import leads_outside
from hoofbeat.store.folder_library import Folder
from hoofbeat.text import cut, some_of
from hoofbeat.web.browse.links import (
    KINDS,
    Link,
    about_folder,
    kind_words,
    linked_folders,
    page_of_folder,
    reference_of,
)
from hoofbeat.web.browse.open_folders import artefact_of, prepare_in_background, preparing_page
from hoofbeat.web.browse.plain_values import flat_values
from hoofbeat.web.browse.run_pages import open_run
from hoofbeat.web.folder_titles import folder_title
from hoofbeat.web.page_rendering import not_found, render
from hoofbeat.web.site import Site, site_of
from hoofbeat.window import windows_of

router = APIRouter()

_REPORT = "report.html"
_MAX_COUNT = 60
_UNITS = ("B", "kB", "MB", "GB", "TB")


class FolderDetails(Struct, frozen=True):
    """What a report says of a folder: figures, warnings, charts and tables."""

    cards: tuple[Card, ...] = ()
    notes: tuple[str, ...] = ()
    blocks: Markup = Markup("")


@router.get("/folders/{slug}", response_class=HTMLResponse, include_in_schema=False)
def folder_page(request: Request, slug: str) -> HTMLResponse:
    """A folder of any kind."""
    site = site_of(request)
    folder = site.library.folder(slug)
    if folder is None:
        return not_found(request, "This server has no folder of this name.")
    told = prepare_in_background(site, folder, "told", _told)
    if told is None:
        return preparing_page(request, folder)
    artefact = artefact_of(site, folder)
    manifest = artefact.manifest
    kind = kind_words(folder.kind)
    return render(
        request,
        "browse/folder.html",
        title=folder_title(site, folder),
        folder=folder,
        kind=kind,
        pages=page_of_folder(folder) if kind.pages else "",
        report=f"/reports/{slug}" if artefact.has(_REPORT) and not kind.pages else "",
        told=told,
        origin=_origin(artefact),
        settings=_settings(artefact),
        counts=_counts(artefact, kind.unit),
        reasons=sorted({**manifest.counts.reasons, **manifest.counts.failures}.items(), key=lambda each: -each[1]),
        figures=list(flat_values(manifest.metrics)) if not told.cards else [],
        made_from=[_source(site, ref) for ref in _artefacts(manifest.inputs)],
        files_read=len(manifest.inputs) - len(_artefacts(manifest.inputs)),
        made_into=[(each, kind_words(each.kind).name, page_of_folder(each)) for each in linked_folders(site, folder)],
        files=_files(artefact),
        files_total=len(manifest.files),
    )


def _told(folder: Folder) -> FolderDetails:
    """What a report says of the folder; kinds with pages have their figures there."""
    if kind_words(folder.kind).pages:
        return FolderDetails(notes=tuple(caveats(folder.artefact().manifest)))
    return report_details(folder)


def report_details(folder: Folder) -> FolderDetails:
    """What a report says of the folder, where reports have a chapter on its kind."""
    artefact = folder.artefact()
    if folder.kind not in report_kinds():
        return FolderDetails()
    try:
        report = assemble([artefact], title=artefact.manifest.title)
    except HoofbeatError as err:
        return FolderDetails(notes=(f"The figures can't be shown: {err.what}.",))
    return FolderDetails(report.cards, (*report.warnings, *report.notes), linked_html(report.blocks))


def _origin(artefact: Artefact) -> list[tuple[str, str]]:
    """How a folder was made: what people ask first."""
    manifest = artefact.manifest
    cost = manifest.cost
    tokens = f" ({cost.tokens_in:,} tokens in, {cost.tokens_out:,} out)" if cost.tokens_in or cost.tokens_out else ""
    spent = f", ${cost.money:,.2f}" if cost.money else ""
    facts = [
        ("Command", manifest.command_text),
        *((f"Model ({role})", name) for role, name in manifest.models.items()),
        *((f"Context window ({role})", str(window)) for role, window in windows_of(manifest.settings).items()),
        ("Limited by the window", limited_in_words(manifest)),
        ("Model calls", f"{cost.calls:,}{tokens}{spent}" if cost.calls else "none"),
        ("Version", f"Hoofbeat {manifest.version}" if manifest.version else ""),
    ]
    return [(name, value) for name, value in facts if value]


def _settings(artefact: Artefact) -> list[tuple[str, str]]:
    """All the rest that the manifest records, to make the folder again or to check it."""
    manifest = artefact.manifest
    settings = {name: value for name, value in manifest.settings.items() if name != "windows"}
    return [
        ("manifest", short_hash(artefact.reference().sha256)),
        ("revision", manifest.revision or "–"),
        *((f"prompt · {role}", name) for role, name in manifest.prompts.items()),
        *((f"seed · {name}", str(seed)) for name, seed in manifest.seeds.items()),
        *flat_values(settings),
        *((f"input · {ref.name}", short_hash(ref.sha256)) for ref in manifest.inputs[:_MAX_COUNT]),
    ]


def _counts(artefact: Artefact, unit: str) -> list[str]:
    counts = artefact.manifest.counts
    told = [count_of(counts.kept, unit)]
    told += [f"{counts.rejected:,} rejected"] if counts.rejected else []
    return told + ([f"{counts.failed:,} failed"] if counts.failed else [])


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
    listed = []
    below = [name for name in sorted(artefact.manifest.files) if not leads_outside(artefact.path, name)]
    for name in below[:_MAX_COUNT]:
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
        return not_found(request, "This server has no report of this name.")
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


_SHELVES = {
    "report": "Reports",
    "corpus": "Corpora",
    "benchmark": "Benchmarks",
    "rankings": "Rankings",
    "judgments": "Judged answers",
    "run": "Answers",
    "audit": "Audits",
}
"""Reports first, because they say what was found; then the kinds in the order of the flow."""
_SHOWN_INPUTS = 4
_QUICK = 20_000
"""A run with more answers shows its score on its own page only: the start page must not wait for it."""
_PATIENCE = 0.5
_FINDING = 160


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
    score: str = ""
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
        shelves=cards(site),
        unreadable=site.library.unreadable(),
        hidden=len(request.state.hidden or ()),
        beside=len(site.library.folders("run", "judgments")) > 1,
    )


def cards(site: Site) -> list[FolderGroup]:
    """Every folder by kind, reports first; kinds without pages come last."""
    library = site.library
    folders = library.folders()
    summaries = {folder.slug: library.opened(folder, "summary", _summary) for folder in folders}
    by_content = {(folder.kind, summaries[folder.slug].sha256): folder for folder in folders}
    names = Counter(folder.path.name for folder in folders)
    made: dict[str, list[FolderCard]] = {}
    for folder in folders:
        made.setdefault(folder.kind, []).append(
            _card(site, folder, summaries[folder.slug], by_content, alike=names[folder.path.name] > 1)
        )
    known = [
        FolderGroup(kind, name, KINDS[kind].about, tuple(made[kind])) for kind, name in _SHELVES.items() if kind in made
    ]
    order = [*(kind for kind in KINDS if kind in made), *(kind for kind in made if kind not in KINDS)]
    others = tuple(card for kind in order if kind not in _SHELVES for card in made[kind])
    if others:
        known.append(FolderGroup("other", "Other results", "Checks, comparisons and exports.", others))
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
    site: Site, folder: Folder, summary: _Summary, by_content: Mapping[tuple[str, str], Folder], *, alike: bool = False
) -> FolderCard:
    """The card of a folder; where another has the same name, it says in which folder it is."""
    sources = []
    for ref in summary.inputs[:_SHOWN_INPUTS]:
        here = by_content.get((ref.kind, ref.sha256))
        sources.append((here.slug if here else ref.name, page_of_folder(here) if here else ""))
    kind = "" if folder.kind in _SHELVES else kind_words(folder.kind).name
    return FolderCard(
        slug=folder.slug,
        kind=kind,
        title=folder_title(site, folder),
        href=page_of_folder(folder),
        how=about_folder(folder),
        place=f"{folder.path.parent.name}/{folder.path.name}" if alike else "",
        facts=_facts(folder.kind, summary),
        score=_score(site, folder, summary),
        made=datetime.fromtimestamp(summary.made, UTC).strftime("%Y-%m-%d %H:%M UTC"),
        sources=tuple(sources),
        more=max(0, len(summary.inputs) - _SHOWN_INPUTS),
    )


def _facts(kind: str, summary: _Summary) -> tuple[str, ...]:
    counts = summary.counts
    lost = (f"{counts.failed:,} failed",) if counts.failed else ()
    match kind:
        case "corpus":
            left_out = (f"{counts.rejected:,} not imported",) if counts.rejected else ()
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


def _score(site: Site, folder: Folder, summary: _Summary) -> str:
    """The figure that people look for first; none where it can't be read, or not quickly."""
    try:
        match folder.kind:
            case "rankings":
                return site.library.opened(folder, "score", _ranking_score)
            case "audit":
                return site.library.opened(folder, "score", _audit_score)
            case "report":
                return site.library.opened(folder, "score", _first_finding)
            case "judgments" | "run" if summary.counts.kept + summary.counts.failed <= _QUICK:
                return _best_system(site, folder)
    except HoofbeatError:  # the folder's own page says what is wrong
        pass
    return ""


def _ranking_score(folder: Folder) -> str:
    for name, found in folder.artefact().manifest.metrics.items():
        if isinstance(found, Mapping) and isinstance(value := found.get("value"), float):
            return f"{name} {value:.3f}"
    return ""


def _audit_score(folder: Folder) -> str:
    """How many pairs disagree, of those in which both sources answer."""
    audit = Audit(folder.artefact())
    counts = audit.artefact.manifest.metrics.get("labels")
    labels = RelationLabels.of(audit.pack.labels)
    if not isinstance(counts, Mapping):
        return ""
    judged = sum(count for name, count in counts.items() if name in labels.order and name != labels.absent)
    apart = sum(counts.get(name, 0) for name in labels.diverging)
    if not judged:
        return ""
    share = f" ({apart / judged:.0%})" if judged >= MIN_OBSERVATIONS else ""
    doubt = ". Not certain: see the audit" if recorded_doubt(audit.artefact.manifest.metrics) else ""
    return f"{apart:,} of {count_of(judged, 'pair')} disagree{share}{doubt}"


def _first_finding(folder: Folder) -> str:
    found = folder.artefact().manifest.metrics.get("found")
    return cut(str(found[0]), _FINDING) if isinstance(found, list) and found else ""


def _best_system(site: Site, folder: Folder) -> str:
    """The best accuracy, of all planned answers, and whose it is."""
    opened = open_run(site, folder, patience=_PATIENCE)
    if opened is None:
        return ""
    index = opened.index
    scores: dict[tuple[float, str], list[str]] = {}
    for model, condition in index.systems:
        counts = index.tally(AnswerFilter(model=model, condition=condition))
        planned, right = sum(counts.values()), counts.get("right", 0)
        if right + counts.get("wrong", 0):
            words = f"{right / planned:.1%} right ({right:,} of {planned:,})"
            scores.setdefault((right / planned, words), []).append(system_name(model, condition, len(index.models)))
    if not scores:
        return ""
    best = max(scores)
    names = some_of(scores[best], 2)
    return f"Best: {best[1]}, {names}" if len(index.systems) > 1 else f"{best[1]}, {names}"


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
