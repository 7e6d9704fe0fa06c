"""The images of a question, read from its benchmark's folder: only files that the benchmark's manifest lists."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from hoofbeat.errors import HostileInputError, InputError
from hoofbeat.models import Image
from hoofbeat.records import Question
from hoofbeat.store import Artefact
from hoofbeat.store.atomic_files import read_bytes

MAX_IMAGE = 20_000_000
"""In bytes; what is larger no endpoint takes."""


def check_images(artefact: Artefact, questions: Sequence[Question]) -> None:
    """Refuse a benchmark that names images outside its folder, or images it does not hold."""
    root = artefact.path.resolve()
    for name in dict.fromkeys(name for question in questions for name in question.images):
        parts = PurePosixPath(name).parts
        odd = not parts or name.startswith("/") or ".." in parts or "\\" in name or not name.isprintable()
        if odd or (artefact.has(name) and not (root / name).resolve().is_relative_to(root)):
            raise HostileInputError(
                f"the benchmark names an image outside its folder: {name[:200]!r}",
                where=str(artefact.path),
                fix="don't use this folder, or correct its questions",
            )
        if not artefact.has(name):
            raise InputError(
                f"the benchmark does not hold the image {name[:200]!r} that a question names",
                where=str(artefact.path),
                fix="make the benchmark again from a corpus with images",
            )


def images_of(artefact: Artefact, question: Question) -> tuple[Image, ...] | str:
    """A question's images, or why they can't be shown; `check_images` comes first."""
    found = []
    for name in question.images:
        path = artefact.file(name)
        if path.stat().st_size > MAX_IMAGE:
            return f"the image {name} is larger than {MAX_IMAGE // 1_000_000} MB"
        content = read_bytes(path)
        kind = _media_type(content)
        if not kind:
            return f"the image {name} is no PNG, JPEG, GIF or WebP file"
        found.append(Image.of(content, kind))
    return tuple(found) or "the question has no images"


def _media_type(content: bytes) -> str:
    """The media type by a file's first bytes: its name is a stranger's word."""
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if content.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if content[:6] in (b"GIF87a", b"GIF89a"):
        return "image/gif"
    return "image/webp" if content[:4] == b"RIFF" and content[8:12] == b"WEBP" else ""
