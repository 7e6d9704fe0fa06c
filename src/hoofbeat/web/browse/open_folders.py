"""Folders opened for their pages: read once in the background, while a page says how far that is.

A small folder is ready before anybody notices. For one of millions of pairs, the visitor sees how long reading has
taken, and the page reloads by itself.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any, Generic, TypeVar

from fastapi import HTTPException, Request
from fastapi.responses import HTMLResponse
from msgspec import Struct

from hoofbeat.benchmarks.benchmark import edition_file
from hoofbeat.corpus.corpus import DOCUMENTS
from hoofbeat.store import Artefact
from hoofbeat.store.folder_library import Folder
from hoofbeat.store.table_listing import (
    DocumentLine,
    FailedLine,
    Listing,
    ListingLine,
    QuestionLine,
    RejectedLine,
    read_listing,
)
from hoofbeat.web.page_rendering import not_found, render
from hoofbeat.web.site import Site, site_of

T = TypeVar("T")
PATIENCE = 2.0
"""How many seconds a page waits for something that is not ready before it says so."""

_AGAIN = "2"
_FIGURES_AGAIN = "3"


class PageInstead(Exception):
    """Another page is shown than the one asked for: something is not here, or still being read."""

    def __init__(self, page: HTMLResponse) -> None:
        super().__init__(page.status_code)
        self.page = page


class BackgroundResult(Generic[T]):
    """Something being made. Whoever asks gets it, its error, or None where it is not ready in time."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._future: Future[T] = Future()
        self.began = time.monotonic()
        threading.Thread(target=self._make, args=(work,), daemon=True).start()

    def _make(self, work: Callable[[], T]) -> None:
        try:
            self._future.set_result(work())
        except BaseException as err:  # whatever it is, whoever waits must learn of it
            self._future.set_exception(err)

    def within(self, seconds: float | None = None) -> T | None:
        """The thing, or None where that takes longer (than `PATIENCE`, unless told)."""
        done, _ = wait([self._future], PATIENCE if seconds is None else seconds)
        return self._future.result() if done else None

    @property
    def seconds(self) -> float:
        """How long ago this began."""
        return time.monotonic() - self.began


def prepare_in_background(
    site: Site, folder: Folder, purpose: str, make: Callable[[Folder], T], *, patience: float | None = None
) -> T | None:
    """What `make` makes of a folder, once for as long as the folder stays the same; None while it is being made."""
    kept: BackgroundResult[T] = site.library.opened(folder, purpose, lambda each: BackgroundResult(lambda: make(each)))
    return kept.within(patience)


def opened_folder(
    request: Request, slug: str, kinds: tuple[str, ...], what: str, open: Callable[[Site, Folder], T | None]
) -> tuple[Folder, T]:
    """The folder of a page, opened; where there is none of these kinds, or it is being read, another page is shown."""
    site = site_of(request)
    folder = site.library.folder(slug, *kinds)
    if folder is None:
        raise HTTPException(404, f"this server has no {what} of this name")
    opened = open(site, folder)
    if opened is None:
        raise PageInstead(preparing_page(request, folder))
    return folder, opened


def opened_for_script(
    request: Request, slug: str, kinds: tuple[str, ...], what: str, open: Callable[[Site, Folder], T | None]
) -> T:
    """The same for a script that asks for JSON: it is told that the folder is not here, or not ready yet."""
    site = site_of(request)
    folder = site.library.folder(slug, *kinds)
    if folder is None:
        raise HTTPException(404, f"this server has no {what} of this name")
    opened = open(site, folder)
    if opened is None:
        raise HTTPException(503, "the folder is not ready yet", headers={"Retry-After": "3"})
    return opened


def preparing_page(request: Request, folder: Folder) -> HTMLResponse:
    """The page for a folder that is being read; it asks again by itself."""
    page = render(request, "browse/run_waiting.html", title="Please wait", status=202, folder=folder)
    page.headers["Refresh"] = _AGAIN
    return page


def figures_page(
    request: Request, template: str, folder: Folder, figures: object | None, *, title: str, **context: Any
) -> HTMLResponse:
    """A page on a folder; while its figures are being worked out (None), it asks again by itself."""
    manifest = folder.artefact().manifest
    page = render(request, template, title=title, folder=folder, manifest=manifest, figures=figures, **context)
    if figures is None:
        page.headers["Refresh"] = _FIGURES_AGAIN
    return page


LONG = 600.0
"""For how many seconds a script or an image waits for a table that is being read."""

_TABLE_AGAIN = "1"
TABLES: dict[str, tuple[str, type[ListingLine]]] = {
    "documents": (DOCUMENTS, DocumentLine),
    "rejected": ("rejected.jsonl", RejectedLine),
    "failed": ("failed.jsonl", FailedLine),
}
"""The tables that are listed, by the word that names them."""


class FolderListing(Struct, frozen=True):
    """A folder with one of its tables."""

    folder: Folder
    artefact: Artefact
    listing: Listing


class _Reading:
    """A table being read: how many bytes of how many."""

    def __init__(self, folder: Folder, name: str, kind: type[ListingLine]) -> None:
        self.done = 0
        self.total = max(1, _size(folder.path / name))
        self.preparing = BackgroundResult(lambda: self._read(folder, name, kind))

    def _read(self, folder: Folder, name: str, kind: type[ListingLine]) -> FolderListing:
        artefact = folder.artefact()
        return FolderListing(folder, artefact, read_listing(artefact.file(name), kind, told=self._told))

    def _told(self, done: int) -> None:
        self.done = done


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def open_table(
    site: Site, folder: Folder, table: str, *, edition: str = "", patience: float = PATIENCE
) -> FolderListing | None:
    """A folder with its table; None while that is being read for longer than `patience`.

    Tables are those of `TABLES`, or `questions` in an edition.
    """
    name, kind = (edition_file(edition), QuestionLine) if table == "questions" else TABLES[table]
    return _reading(site, folder, name, kind).preparing.within(patience)


def _reading(site: Site, folder: Folder, name: str, kind: type[ListingLine]) -> _Reading:
    return site.library.opened(folder, f"table {name}", lambda each: _Reading(each, name, kind))


def table_for_page(
    request: Request, folder: Folder | None, table: str, missing: str, edition: str = ""
) -> FolderListing:
    """A folder with its table; where it is not here (`missing` says so), or is being read, another page is shown."""
    if folder is None:
        raise PageInstead(not_found(request, missing))
    site = site_of(request)
    opened = open_table(site, folder, table, edition=edition)
    if opened is None:
        raise PageInstead(_reading_page(request, site, folder, table, edition))
    return opened


def _reading_page(request: Request, site: Site, folder: Folder, table: str, edition: str) -> HTMLResponse:
    """The page for a table that is being read; it asks again by itself."""
    name, kind = (edition_file(edition), QuestionLine) if table == "questions" else TABLES[table]
    reading = _reading(site, folder, name, kind)
    page = render(
        request, "browse/waiting.html", title="Please wait", status=202, folder=folder, done=reading.done,
        total=reading.total, seconds=round(reading.preparing.seconds),
    )  # fmt: skip
    page.headers["Refresh"] = _TABLE_AGAIN
    return page


def artefact_of(site: Site, folder: Folder) -> Artefact:
    """A folder's artefact, opened once."""
    return site.library.opened(folder, "artefact", Folder.artefact)


def corpus_holding(site: Site, artefact: Artefact) -> Folder | None:
    """The corpus that an artefact was made from, where it is among the folders of this server."""
    wanted = [ref.sha256 for ref in artefact.manifest.inputs if ref.kind == "corpus"]
    for folder in site.library.folders("corpus") if wanted else ():
        if site.library.opened(folder, "reference", lambda each: each.artefact().reference().sha256) in wanted:
            return folder
    return None
