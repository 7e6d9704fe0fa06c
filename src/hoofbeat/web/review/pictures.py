"""The images of items: only files that the artefact lists, of kinds that can't carry a script."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from hoofbeat.answering.question_images import images_of
from hoofbeat.models import Image
from hoofbeat.records import Question
from hoofbeat.review.review_records import Study
from hoofbeat.store import Artefact
from hoofbeat.web.library import Folder
from hoofbeat.web.site import Site

__all__ = ["artefact_of", "picture"]


def artefact_of(site: Site, study: Study) -> Artefact | None:
    """What a study is about, where this server has it with the same content."""
    for folder in site.library.folders():
        artefact = site.library.opened(folder, "artefact", Folder.artefact)
        if artefact.reference().sha256 == study.source_sha256:
            return artefact
    return None


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
