"""A site with a review store, and people who sign in to it in a browser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page

from hoofbeat.review.review_store import ReviewStore
from hoofbeat.store.folder_library import FolderLibrary
from hoofbeat.web.site import Site, SiteSettings
from tests.web.support import DESKTOP, tab

__all__ = ["join", "signed_in_tab", "store_site"]


def store_site(store: ReviewStore, folders: Sequence[Path] = (), **settings: Any) -> Site:
    """A site with this review store."""
    return Site(library=FolderLibrary(folders), store=store, settings=SiteSettings(**settings))


_CAME_IN: dict[tuple[str, str], Any] = {}
"""The cookies of those who came in, by address and token: a link works once, and several tabs are one browser."""


def join(page: Page, address: str, token: str) -> None:
    """Come in through the invitation link, as a person does; the second time, with the session that it opened."""
    if (address, token) in _CAME_IN:
        page.context.add_cookies(_CAME_IN[address, token])
        page.goto(f"{address}/join/{token}")  # leads a person who is signed in to the lists
        return
    page.goto(f"{address}/join/{token}")
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(lambda url: "/join/" not in url)
    _CAME_IN[address, token] = page.context.cookies()


@contextmanager
def signed_in_tab(
    browser: Browser, address: str, token: str, size: tuple[int, int] = DESKTOP, *, dark: bool = False
) -> Iterator[Page]:
    """A tab of its own in which the person of this token has come in."""
    with tab(browser, size, dark=dark) as page:
        join(page, address, token)
        yield page
