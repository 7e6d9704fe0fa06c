"""Links between pages: from a question or document to its folder, and from a document to what was made from it."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from hoofbeat.errors import HoofbeatError
from hoofbeat.records import Question
from hoofbeat.store.folder_library import Folder
from hoofbeat.store.tables import read_jsonl
from hoofbeat.web.browse.open_folders import FolderListing, open_table
from hoofbeat.web.site import Site

_MAX_LINKS = 40
_PATIENCE = 0.5
"""How many seconds a page waits for a folder that it only leads to."""


class Link(Struct, frozen=True):
    """A place on this site."""

    words: str
    href: str


def question_link(site: Site, question: Question) -> Link | None:
    """The question in a benchmark that is shown here; one of the same name with another text is another question."""
    for folder in site.library.folders("benchmark"):
        opened = _listed(site, folder, "questions")
        number = opened.listing.number(question.id) if opened else None
        if opened and number and opened.listing.record(number, Question).text == question.text:
            return Link(folder.slug, f"/benchmarks/{folder.slug}/questions/{number}")
    return None


def document_links(site: Site, documents: Iterable[str]) -> list[Link]:
    """The documents that are in a corpus shown here, each once."""
    wanted = list(dict.fromkeys(documents))[:_MAX_LINKS]
    found = document_places(site, wanted)
    return [Link(name, found[name].href) for name in wanted if name in found]


def document_places(site: Site, documents: Iterable[str]) -> dict[str, Link]:
    """Documents that are in a corpus shown here, by their ids: each one's title, and where it can be read."""
    wanted = list(dict.fromkeys(documents))
    found: dict[str, Link] = {}
    for folder in site.library.folders("corpus") if wanted else ():
        opened = _listed(site, folder, "documents")
        for name in wanted if opened else ():
            number = opened.listing.number(name) if opened else None
            if opened and number and name not in found:
                title = opened.listing.titles[number - 1]
                found[name] = Link(title, f"/corpora/{folder.slug}/documents/{number}")
    return found


def _listed(site: Site, folder: Folder, table: str) -> FolderListing | None:
    """A folder's table; None while it is being read, and where it can't be: that is for its own page to say."""
    try:
        return open_table(site, folder, table, patience=_PATIENCE)
    except HoofbeatError:
        return None


def linked_folders(site: Site, folder: Folder, *kinds: str) -> list[Folder]:
    """Folders of these kinds that were made from this one."""
    mine = reference_of(site, folder)
    return [each for each in site.library.folders(*kinds) if mine in inputs_of(site, each)]


def inputs_of(site: Site, folder: Folder) -> frozenset[str]:
    """What a folder was made from, by content."""
    return site.library.opened(folder, "inputs", _inputs)


def reference_of(site: Site, folder: Folder) -> str:
    """How manifests name a folder's content."""
    return site.library.opened(folder, "reference", _reference)


def _reference(folder: Folder) -> str:
    return folder.artefact().reference().sha256


def _inputs(folder: Folder) -> frozenset[str]:
    return frozenset(ref.sha256 for ref in folder.artefact().manifest.inputs)


_MAX_BACKLINKS = 20


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
            found.append(Backlink(folder, tuple(links[:_MAX_BACKLINKS]), max(0, len(links) - _MAX_BACKLINKS)))
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
