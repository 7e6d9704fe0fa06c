"""The images of an exam's questions: only files that the benchmark lists, of kinds that can't carry a script."""

from __future__ import annotations

import base64

from hoofbeat.answering.pictures import images_of
from hoofbeat.models import Image
from hoofbeat.records import Question
from hoofbeat.store import Artefact
from hoofbeat.web.library import Folder
from hoofbeat.web.review.records import Study
from hoofbeat.web.site import Site

__all__ = ["benchmark_of", "picture"]


def benchmark_of(site: Site, study: Study) -> Artefact | None:
    """The benchmark an exam is about, where this server has it with the same content."""
    for folder in site.library.folders("benchmark"):
        artefact = site.library.opened(folder, "artefact", Folder.artefact)
        if artefact.reference().sha256 == study.source_sha256:
            return artefact
    return None


def picture(artefact: Artefact, question: Question, number: int) -> tuple[bytes, str] | None:
    """Image `number` (from 1) of a question, and its media type by its first bytes."""
    if not 1 <= number <= len(question.images) or not artefact.has(question.images[number - 1]):
        return None
    one = Question(id=question.id, text="", images=(question.images[number - 1],))
    path = artefact.file(one.images[0]).resolve()
    if not path.is_relative_to(artefact.path.resolve()):
        return None
    found = images_of(artefact, one)
    if isinstance(found, str):
        return None
    image: Image = found[0]
    return base64.b64decode(image.data), image.media_type
