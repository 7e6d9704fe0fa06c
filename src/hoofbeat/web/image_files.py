"""Images of corpora, benchmarks and review items: only files that a manifest lists, of kinds that carry no script."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from fastapi import Request, Response
from fastapi.responses import FileResponse

from hoofbeat.answering.condition_material import images_of
from hoofbeat.corpus.figures import IMAGE_SUFFIXES
from hoofbeat.models import Image
from hoofbeat.records import Question
from hoofbeat.review.review_records import Study
from hoofbeat.store import Artefact
from hoofbeat.store.folder_library import Folder
from hoofbeat.web.page_rendering import not_found
from hoofbeat.web.site import Site

_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".bmp": "image/bmp",
}
_POLICY = "default-src 'none'; sandbox; frame-ancestors 'none'"


def image_file(request: Request, artefact: Artefact, name: str) -> Response:
    """The image of this name; one that a browser can't show is given to be saved, never to be opened."""
    if not artefact.has(name) or not name.lower().endswith(IMAGE_SUFFIXES):
        return not_found(request, "the folder does not list this image")
    root = artefact.path.resolve()
    path = (root / name).resolve()
    if not path.is_relative_to(root) or not path.is_file():
        return not_found(request, "this image does not lie in its folder")
    kind = _TYPES.get(path.suffix.lower())
    headers = {"Content-Security-Policy": _POLICY, "X-Content-Type-Options": "nosniff"}
    if kind is None:
        return FileResponse(path, media_type="application/octet-stream", filename="image", headers=headers)
    return FileResponse(path, media_type=kind, headers=headers)


def artefact_of(site: Site, study: Study) -> Artefact | None:
    """What a study is about, where this server has it with the same content."""
    for folder in site.library.folders():
        artefact = site.library.opened(folder, "artefact", Folder.artefact)
        if artefact.reference().sha256 == study.source_sha256:
            return artefact
    return None


def item_image(request: Request, artefact: Artefact | None, files: Sequence[str], number: int) -> Response:
    """Image `number` (from 1) of a review item, from the artefact where this server has it."""
    found = picture(artefact, files, number) if artefact is not None else None
    if found is None:
        return not_found(request, "This image is not on this server.")
    return Response(found[0], media_type=found[1], headers={"Cache-Control": "private, max-age=3600"})


def picture(artefact: Artefact, files: Sequence[str], number: int) -> tuple[bytes, str] | None:
    """Image `number` (from 1) of these files, and its media type by its first bytes."""
    if not 1 <= number <= len(files) or not artefact.has(files[number - 1]):
        return None
    name = files[number - 1]
    if not artefact.file(name).resolve().is_relative_to(artefact.path.resolve()):
        return None
    found = images_of(artefact, Question(id="", text="", images=(name,)))
    if isinstance(found, str):
        return None
    image: Image = found[0]
    return base64.b64decode(image.data), image.media_type
