"""What all pages of one server share: its folders, its review store, its models, and how it was started."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fastapi import HTTPException, Request
from msgspec import Struct, field, structs

from hoofbeat.models import Model
from hoofbeat.review.hidden_folders import VisibleLibrary
from hoofbeat.review.invitations import LINK_DAYS
from hoofbeat.store.folder_library import FolderLibrary

if TYPE_CHECKING:
    from hoofbeat.review.review_store import ReviewStore


class SiteSettings(Struct, frozen=True, kw_only=True):
    """How a server was started.

    `base_url` is where people reach it, for invitation links. `access` is the hash of the secret that opens the browse
    and ask pages, empty where the server listens on loopback only and whoever is on this machine may look. `secure`
    says that the server stands behind HTTPS, so that cookies are sent over nothing else. `any_address` says that it
    listens on every address of the machine, so that people may name it by any of them. `models` are the models that the
    ask page offers, `line` the retriever it searches with. `proxies` are addresses or networks of proxies whose
    `X-Forwarded-For` is believed. `tries_per_minute` is how many wrong invitations one address may try, ten times that
    is what all may. `link_days` is for how long an invitation made here can be used. A session ends `session_hours`
    after its person was last here. `reviewers_browse` opens the browse pages to reviewers, who else see their own lists
    only. What an open study hides is hidden all the same.
    """

    base_url: str = "http://127.0.0.1:8350"
    access: str = ""
    secure: bool = False
    any_address: bool = False
    proxies: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    line: str = "bm25 + dense"
    session_hours: int = 24 * 14
    link_days: int = LINK_DAYS
    tries_per_minute: int = 20
    reviewers_browse: bool = False


class Site(Struct, kw_only=True):
    """One server. `store` is None where it only shows folders; `load_model` opens a model of `settings.models`."""

    library: FolderLibrary
    settings: SiteSettings = SiteSettings()
    store: ReviewStore | None = None
    load_model: Callable[[str], Model] | None = None
    shared: dict[str, Any] = field(default_factory=dict)
    """What pages keep between requests, by a name of their own: indexes, tables, caches."""


def site_of(request: Request) -> Site:
    """The server a request came to, with the folders that whoever asks may see: those that no open study hides."""
    site = whole_site(request)
    hidden: frozenset[str] | None = getattr(request.state, "hidden", None)
    return structs.replace(site, library=VisibleLibrary(site.library, hidden))


def whole_site(request: Request) -> Site:
    """The server with all its folders: only for what a study itself shows of them to those who take part in it."""
    site: Site = request.app.state.site
    return site


def store_of(request: Request) -> ReviewStore:
    """The review store of a server that has one."""
    store = site_of(request).store
    if store is None:
        raise HTTPException(404, "this server has no reviews")
    return store
