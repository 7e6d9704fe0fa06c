"""Images of a question: from the benchmark's folder only, and only what is an image."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoofbeat.answering import question_images as pictures
from hoofbeat.answering.question_images import check_images, images_of
from hoofbeat.errors import HostileInputError, InputError
from hoofbeat.models import Image
from hoofbeat.records import Question
from hoofbeat.store import Artefact, Manifest, create, open_artefact

PNG = b"\x89PNG\r\n\x1a\n" + b"invented"


@pytest.fixture
def bench(tmp_path: Path) -> Artefact:
    (tmp_path / "secret.png").write_bytes(PNG)
    with create(tmp_path / "bench") as draft:
        (draft.path / "images").mkdir()
        files = {
            "a.png": PNG,
            "b.jpg": b"\xff\xd8\xff\xe0 invented",
            "c.gif": b"GIF89a invented",
            "d.webp": b"RIFF\x00\x00\x00\x00WEBP",
            "text.png": b"<svg onload='x'/>",
        }
        for name, content in files.items():
            (draft.path / "images" / name).write_bytes(content)
        (draft.path / "images" / "link.png").symlink_to(tmp_path / "secret.png")
        draft.finish(Manifest(kind="benchmark"))
    return open_artefact(tmp_path / "bench")


def asked(*images: str) -> Question:
    return Question(id="q", text="What is seen?", images=images)


def test_the_kind_is_told_by_the_bytes(bench: Artefact) -> None:
    names = ("images/a.png", "images/b.jpg", "images/c.gif", "images/d.webp")
    check_images(bench, [asked(*names)])
    found = images_of(bench, asked(*names))
    assert not isinstance(found, str)
    assert [image.media_type for image in found] == ["image/png", "image/jpeg", "image/gif", "image/webp"]
    assert found[0] == Image.of(PNG, "image/png")


@pytest.mark.parametrize(
    "name",
    [
        *("../secret.png", "images/../../secret.png", "/etc/passwd", "\\\\host\\share.png", "images\\a.png", ""),
        *("images/a.png\x00", "images/link.png", "images/\n.png"),
    ],
)
def test_tricks_with_paths_are_refused(bench: Artefact, name: str) -> None:
    with pytest.raises(HostileInputError, match="outside its folder"):
        check_images(bench, [asked("images/a.png"), asked(name)])


@pytest.mark.parametrize("name", ["images/none.png", "manifest.json", "questions.jsonl"])
def test_what_the_manifest_does_not_list_is_not_read(bench: Artefact, name: str) -> None:
    with pytest.raises(InputError, match="does not hold the image"):
        check_images(bench, [asked(name)])


def test_what_is_no_image_is_said(bench: Artefact, monkeypatch: pytest.MonkeyPatch) -> None:
    assert images_of(bench, asked("images/text.png")) == "the image images/text.png is no PNG, JPEG, GIF or WebP file"
    assert images_of(bench, asked()) == "the question has no images"
    monkeypatch.setattr(pictures, "MAX_IMAGE", 5)
    assert "larger than" in str(images_of(bench, asked("images/a.png")))
