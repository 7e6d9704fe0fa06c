"""What a folder is called on pages: by what is in it (a model, a retriever, a handbook), not by its folder's name."""

from __future__ import annotations

from hoofbeat.errors import HoofbeatError
from hoofbeat.store import Manifest
from hoofbeat.store.folder_library import Folder
from hoofbeat.web.site import Site

_FROM = {"run": "benchmark", "judgments": "run", "audit": "corpus"}
"""The kind of the folder whose title completes that of a folder of the first kind."""


def folder_title(site: Site, folder: Folder) -> str:
    """The title of a folder; its name where the manifest has none."""
    manifest = site.library.opened(folder, "manifest", _manifest)
    own = manifest.title if manifest.title not in ("", folder.kind) else ""
    source = _source(site, manifest, _FROM.get(folder.kind, ""))
    about = folder_title(site, source) if source else ""
    match folder.kind:
        case "rankings":
            return f"Ranking by {own}" if own else folder.slug
        case "run":
            return _sentence(f"{own}: {about}" if about and own else own, folder)
        case "judgments":
            return _sentence(f"{about}, {own}" if about and own else own, folder)
        case "audit":
            return _sentence(f"audit of {about}: {own}" if about and own else own, folder)
    return _sentence(own, folder)


def _manifest(folder: Folder) -> Manifest:
    return folder.artefact().manifest


def _source(site: Site, manifest: Manifest, kind: str) -> Folder | None:
    """The folder of that kind that this one was made from, where this server shows it."""
    wanted = {ref.sha256 for ref in manifest.inputs if ref.kind == kind} if kind else set()
    for folder in site.library.folders(kind) if wanted else ():
        try:
            if site.library.opened(folder, "reference", _reference) in wanted:
                return folder
        except HoofbeatError:  # gone or damaged meanwhile: its own page says so
            continue
    return None


def _reference(folder: Folder) -> str:
    return folder.artefact().reference().sha256


def _sentence(title: str, folder: Folder) -> str:
    return title[:1].upper() + title[1:] if title else folder.slug
