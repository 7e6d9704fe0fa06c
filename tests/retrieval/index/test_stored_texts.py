"""A process compares the passages' file with its hash once, and again when the file has changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoofbeat.errors import ArtefactError
from hoofbeat.records import Passage
from hoofbeat.retrieval.index.kept_parts import PartPlace, kept
from hoofbeat.retrieval.index.stored_texts import PASSAGES, StoredTexts, opened
from hoofbeat.store import Artefact
from hoofbeat.store.tables import write_indexed


@pytest.fixture
def place(tmp_path: Path) -> PartPlace:
    """A part with three passages."""
    passages = [Passage(id=f"p{n}", document="d", text=f"text {n}", start=0, end=6) for n in range(3)]
    found = PartPlace(tmp_path / "part")

    def build(folder: Path) -> None:
        write_indexed(folder / PASSAGES, passages)

    kept(found, {}, build, lambda _folder: None)
    return found


def test_many_stretches_are_read_after_one_comparison(place: PartPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[Path] = []
    plain = Artefact.verify

    def counted(artefact: Artefact) -> list[str]:
        compared.append(artefact.path)
        return plain(artefact)

    monkeypatch.setattr(Artefact, "verify", counted)
    for _ in range(5):
        texts = [text for stretch in StoredTexts(place).stretches() for block in stretch.blocks() for text in block]
        assert texts == ["text 0", "text 1", "text 2"]
    assert compared == [place.folder]


def test_a_file_that_was_changed_since_is_noticed(place: PartPlace) -> None:
    assert opened(place)[0].text == "text 0"
    file = place.folder / PASSAGES
    file.write_bytes(file.read_bytes().replace(b"text 1", b"TEXT 1"))
    with pytest.raises(ArtefactError, match="missing or damaged"):
        opened(place)
