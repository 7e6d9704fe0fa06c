"""A benchmark folder: questions, and the documents they name in BEIR's layout."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoofbeat.benchmarks import Benchmark, write_benchmark
from hoofbeat.benchmarks.benchmark import (
    COLLECTION_HEADER,
    CollectionPassage,
    collection_documents,
    read_passages,
)
from hoofbeat.errors import ArtefactError, InputError
from hoofbeat.records import Document, Question, Span
from hoofbeat.store import Artefact, Counts, InputRef, Manifest, create, open_artefact
from hoofbeat.store.artefact import TRUST_CHANGED
from hoofbeat.store.tables import read_tsv, write_tsv
from tests.recipes.support import a_corpus

QUESTIONS = [
    Question(
        id="q1", text="What now?", context="A man of 40.", answer="Aspirate.", documents=("d2", "d1"),
        evidence=(Span(document="d2", start=3, end=8, quote="words"),), facets={"specialty": "joints"},
    ),
    Question(id="q2", text="What then?"),
    Question(id="q3", text="And then?", documents=("=d3",)),
]  # fmt: skip


def a_benchmark(target: Path, questions: list[Question]) -> Artefact:
    counts = Counts(kept=len(questions), rejected=2, reasons={"too short": 2})
    inputs = [InputRef(name="cases", sha256="0" * 64, kind="corpus")]
    return write_benchmark(
        target, questions, title="Mine", inputs=inputs, counts=counts, command=["x"], settings={"recipe": "mine"}
    )


def test_a_benchmark_opens_as_it_was_written(tmp_path: Path) -> None:
    assert a_benchmark(tmp_path / "bench", QUESTIONS).verify() == []
    bench = Benchmark.open(tmp_path / "bench")
    assert bench.questions == QUESTIONS
    manifest = bench.artefact.manifest
    assert (manifest.title, manifest.settings, manifest.command) == ("Mine", {"recipe": "mine"}, ["x"])
    assert (manifest.counts.kept, manifest.counts.reasons) == (3, {"too short": 2})
    assert [ref.name for ref in manifest.inputs] == ["cases"]


def test_documents_named_are_in_qrels(tmp_path: Path) -> None:
    artefact = a_benchmark(tmp_path / "bench", QUESTIONS)
    lines = artefact.file("qrels.tsv").read_text().splitlines()
    assert lines[:3] == ["query-id\tcorpus-id\tscore", "q1\td2\t1", "q1\td1\t1"]
    rows = [(row["query-id"], row["corpus-id"], row["score"]) for row in read_tsv(artefact.file("qrels.tsv"))]
    assert rows == [("q1", "d2", "1"), ("q1", "d1", "1"), ("q3", "=d3", "1")]
    assert Benchmark(artefact).qrels() == {"q1": {"d2": 1, "d1": 1}, "q3": {"=d3": 1}}


def test_without_documents_there_are_no_qrels(tmp_path: Path) -> None:
    artefact = a_benchmark(tmp_path / "bench", QUESTIONS[1:2])
    assert not artefact.has("qrels.tsv")
    assert Benchmark(artefact).qrels() == {}


def test_the_first_questions(tmp_path: Path) -> None:
    bench = Benchmark(a_benchmark(tmp_path / "bench", QUESTIONS))
    assert [question.id for question in bench.first(2)] == ["q1", "q2"]
    assert bench.first(None) == bench.first(3) == bench.first(99) == QUESTIONS


@pytest.mark.parametrize("count", [0, -1])
def test_fewer_than_one_question_is_refused(tmp_path: Path, count: int) -> None:
    bench = Benchmark(a_benchmark(tmp_path / "bench", QUESTIONS))
    with pytest.raises(InputError, match=f"the limit can't be {count} questions") as caught:
        bench.first(count)
    assert caught.value.fix == "give --limit 1 or more"


def test_another_folder_is_no_benchmark(tmp_path: Path) -> None:
    with pytest.raises(ArtefactError):
        Benchmark.open(tmp_path)


def test_a_damaged_line_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TRUST_CHANGED, "1")
    path = a_benchmark(tmp_path / "bench", QUESTIONS).file("questions.jsonl")
    path.write_bytes(path.read_bytes().replace(b'"id":"q2"', b'"id":2'))
    with pytest.raises(InputError, match="line 2"):
        Benchmark.open(tmp_path / "bench")


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
