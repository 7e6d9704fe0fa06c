"""What takes a while to make of a large folder: made once, on a thread of its own, while a page says so.

A small folder is ready before anybody notices. One of millions of pairs is read while its visitor sees how long that
has taken; the page asks again by itself.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any, Generic, TypeVar

from fastapi import HTTPException, Request
from fastapi.responses import HTMLResponse

from hoofbeat.web.library import Folder
from hoofbeat.web.page_rendering import render
from hoofbeat.web.site import Site, site_of

__all__ = [
    "PATIENCE",
    "BackgroundResult",
    "NotReady",
    "figures_page",
    "opened_folder",
    "prepare_in_background",
    "preparing_page",
]

T = TypeVar("T")

PATIENCE = 2.0
"""How many seconds a page waits for something that is not ready before it says so."""

_AGAIN = "2"
_FIGURES_AGAIN = "3"


class NotReady(Exception):
    """A folder is still being read: the page for that stands in for what was asked."""

    def __init__(self, folder: Folder) -> None:
        super().__init__(folder.slug)
        self.folder = folder


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
        raise HTTPException(404, f"there is no {what} of this name here")
    opened = open(site, folder)
    if opened is None:
        raise NotReady(folder)
    return folder, opened


def preparing_page(request: Request, folder: Folder) -> HTMLResponse:
    """The page for a folder that is being read; it asks again by itself."""
    page = render(request, "browse/run_waiting.html", title="Being prepared", status=202, folder=folder)
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
