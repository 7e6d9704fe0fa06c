"""A benchmark folder: questions, and the documents they name in BEIR's layout."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoofbeat.benchmarks import Benchmark, write_benchmark
from hoofbeat.errors import ArtefactError, InputError
from hoofbeat.records import Question, Span
from hoofbeat.store import Artefact, Counts, InputRef
from hoofbeat.store.tables import read_tsv

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
    with pytest.raises(InputError, match=f"^{count} questions can't be asked") as caught:
        bench.first(count)
    assert caught.value.fix == "give --limit 1 or more"


def test_another_folder_is_no_benchmark(tmp_path: Path) -> None:
    with pytest.raises(ArtefactError):
        Benchmark.open(tmp_path)


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    path = a_benchmark(tmp_path / "bench", QUESTIONS).file("questions.jsonl")
    path.write_bytes(path.read_bytes().replace(b'"id":"q2"', b'"id":2'))
    with pytest.raises(InputError, match="line 2"):
        Benchmark.open(tmp_path / "bench")
