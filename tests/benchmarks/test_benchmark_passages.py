"""A benchmark's own collection: rows that point into the corpus, read back as documents to search."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoofbeat.benchmarks.benchmark import (
    COLLECTION_HEADER,
    CollectionPassage,
    collection_documents,
    read_passages,
)
from hoofbeat.errors import ArtefactError
from hoofbeat.records import Document
from hoofbeat.store import Artefact, Counts, Manifest, create, open_artefact
from hoofbeat.store.tables import write_tsv
from tests.recipes.support import a_corpus

_DOCUMENTS = [
    Document(id="a", title="A", text="First passage. Second passage.", licence="CC BY 4.0"),
    Document(id="b", title="B", text="Another document."),
]


def _bench(tmp_path: Path, rows: list[tuple[object, ...]] | None) -> Artefact:
    with create(tmp_path / "bench", replace_kind="benchmark") as draft:
        (draft.path / "questions.jsonl").write_text("")
        if rows is not None:
            write_tsv(draft.path / "collection.tsv", COLLECTION_HEADER, rows)
        draft.finish(Manifest(kind="benchmark", title="t", counts=Counts()))
    return open_artefact(tmp_path / "bench", "benchmark")


def test_pieces_come_back_as_documents(tmp_path: Path) -> None:
    pieces = [
        CollectionPassage(id="a.p1", document="a", start=0, end=14, heading="-Head\tline"),
        CollectionPassage(id="a.p2", document="a", start=15, end=30),
        CollectionPassage(id="b", document="b", start=0, end=17, heading="B"),
    ]
    artefact = _bench(tmp_path, [piece.row for piece in pieces])
    found = list(collection_documents(artefact, a_corpus(tmp_path, _DOCUMENTS)))
    assert [(each.id, each.title, each.text) for each in found] == [
        ("a.p1", "-Head line", "First passage."),
        ("a.p2", "", "Second passage."),
        ("b", "B", "Another document."),
    ]
    assert found[0].licence == "CC BY 4.0"
    assert found[0].facets == {"document": "a"}


def test_without_one_the_corpus_is_searched(tmp_path: Path) -> None:
    artefact = _bench(tmp_path, None)
    assert read_passages(artefact) == []
    assert [each.id for each in collection_documents(artefact, a_corpus(tmp_path, _DOCUMENTS))] == ["a", "b"]


@pytest.mark.parametrize("row", [("x", "a", "no number", 3, ""), ("x", "a", 5, 900, ""), ("x", "a", 5, 2, "")])
def test_what_does_not_fit_the_corpus_is_refused(tmp_path: Path, row: tuple[object, ...]) -> None:
    artefact = _bench(tmp_path, [row])
    with pytest.raises(ArtefactError):
        list(collection_documents(artefact, a_corpus(tmp_path, _DOCUMENTS)))
