"""Where else on the site a document is met: in questions that were made from it, and in audits that asked it."""

from __future__ import annotations

from msgspec import Struct

from hoofbeat.errors import HoofbeatError
from hoofbeat.store.tables import read_jsonl
from hoofbeat.web.browse.links import Link, linked_folders
from hoofbeat.web.library import Folder
from hoofbeat.web.site import Site

__all__ = ["Backlink", "backlinks_to"]

_MAX_COUNT = 20


class Backlink(Struct, frozen=True):
    """A folder in which a document is met, and the places; `more` are not named."""

    folder: Folder
    links: tuple[Link, ...]
    more: int = 0


class _Asked(Struct):
    id: str
    documents: tuple[str, ...] = ()


class _Source(Struct):
    id: str


def backlinks_to(site: Site, corpus: Folder, document: str) -> list[Backlink]:
    """The questions and audits made from a corpus in which a document plays a part."""
    found = []
    for folder in linked_folders(site, corpus, "benchmark", "audit"):
        load = _questions if folder.kind == "benchmark" else _sources
        try:
            known = site.library.opened(folder, "places of documents", load)
        except HoofbeatError:  # a folder that can't be read is told on its own page
            continue
        links = known.get(document, ())
        if links:
            found.append(Backlink(folder, tuple(links[:_MAX_COUNT]), max(0, len(links) - _MAX_COUNT)))
    return found


def _questions(folder: Folder) -> dict[str, list[Link]]:
    found: dict[str, list[Link]] = {}
    for number, each in enumerate(read_jsonl(folder.artefact().file("questions.jsonl"), _Asked), start=1):
        for name in dict.fromkeys(each.documents):
            found.setdefault(name, []).append(Link(each.id, f"/benchmarks/{folder.slug}/questions/{number}"))
    return found


def _sources(folder: Folder) -> dict[str, list[Link]]:
    """The sources of an audit; one that was put together from several documents goes by none of their names."""
    rows = read_jsonl(folder.artefact().file("sources.jsonl"), _Source)
    return {
        each.id: [Link("Its pairs with other sources", f"/audits/{folder.slug}/pairs?a={number}")]
        for number, each in enumerate(rows, start=1)
    }
