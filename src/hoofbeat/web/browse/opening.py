"""Corpora and benchmarks opened for their pages: read once in the background, with a page that says how far that is."""

from __future__ import annotations

from pathlib import Path

from fastapi import Request
from fastapi.responses import HTMLResponse
from msgspec import Struct

from hoofbeat.benchmarks.benchmark import edition_file
from hoofbeat.corpus.importing import DOCUMENTS
from hoofbeat.store import Artefact
from hoofbeat.web.browse import listing
from hoofbeat.web.browse.listing import (
    DocumentLine,
    FailedLine,
    Listing,
    ListingLine,
    QuestionLine,
    RejectedLine,
)
from hoofbeat.web.browse.preparing import PATIENCE, BackgroundResult
from hoofbeat.web.library import Folder
from hoofbeat.web.page_rendering import render
from hoofbeat.web.site import Site

__all__ = ["LONG", "TABLES", "FolderListing", "artefact_of", "corpus_holding", "open_table", "reading_page"]

LONG = 600.0
"""For how many seconds a script or an image waits for a table that is being read."""

_AGAIN = "1"
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
        return FolderListing(folder, artefact, listing.read_listing(artefact.file(name), kind, told=self._told))

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


def reading_page(request: Request, site: Site, folder: Folder, table: str, edition: str = "") -> HTMLResponse:
    """The page for a table that is being read; it asks again by itself."""
    name, kind = (edition_file(edition), QuestionLine) if table == "questions" else TABLES[table]
    reading = _reading(site, folder, name, kind)
    page = render(
        request, "browse/waiting.html", title="Being read", status=202, folder=folder, done=reading.done,
        total=reading.total, seconds=round(reading.preparing.seconds),
    )  # fmt: skip
    page.headers["Refresh"] = _AGAIN
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
