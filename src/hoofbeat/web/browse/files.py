"""Image files of corpora and benchmarks: only what a manifest lists, only inside the folder, only as what it is."""

from __future__ import annotations

from fastapi import Request, Response
from fastapi.responses import FileResponse

from hoofbeat.corpus.images import IMAGE_SUFFIXES
from hoofbeat.store import Artefact
from hoofbeat.web.page_rendering import not_found

__all__ = ["image_file"]

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
