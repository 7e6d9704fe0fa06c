"""BEIR and R2MED folders: corpora, questions and judgments, read and written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hoofbeat.corpus import Corpus, import_corpus
from hoofbeat.corpus.readers.beir import read_beir, write_beir
from hoofbeat.corpus.readers.r2med import read_r2med, write_r2med
from hoofbeat.errors import InputError
from hoofbeat.records import Document, Question
from tests.helpers import shared_data

DOCUMENTS = [
    Document(id="d1", title="One", text="First text.\n\nSecond.", facets={"year": "2020"}),
    Document(id="d2", title="", text="=SUM(A1)"),
]
QUESTIONS = [
    Question(
        id="-q1", text="Which?", context="A case.", answer="This", documents=("d1",), facets={"body_system": "Eye"}
    ),
    Question(id="q2", text="Who?", documents=("d1", "d2")),
]
GRADES = {"q2": {"d1": 2, "d2": 0}}


@pytest.mark.parametrize(("name", "documents", "questions"), [("scifact", 5183, 300), ("liveqa-med", 1935, 103)])
def test_real_collections(tmp_path: Path, name: str, documents: int, questions: int) -> None:
    folder = shared_data(f"retrieval/{name}")
    artefact = import_corpus([folder], tmp_path / "c")
    assert (artefact.manifest.counts.kept, artefact.manifest.counts.rejected) == (documents, 0)
    assert [ref.name for ref in artefact.manifest.inputs] == ["corpus.jsonl"]
    corpus = Corpus(artefact)
    collection = read_beir(folder)
    assert len(collection.questions) == len(collection.judgments) == questions
    ids = set(corpus.ids())
    assert all(document in ids for grades in collection.judgments.values() for document in grades)
    assert all(set(question.documents) <= collection.judgments[question.id].keys() for question in collection.questions)
    first = next(corpus.documents())
    row = json.loads((folder / "corpus.jsonl").open().readline())
    assert first.text.split() == row["text"].split()
    assert first.title.split() == row.get("title", "").split()


def test_beir_round_trip(tmp_path: Path) -> None:
    assert write_beir(tmp_path / "b", DOCUMENTS, QUESTIONS, GRADES) == 2
    collection = read_beir(tmp_path / "b")
    assert collection.judgments == {"-q1": {"d1": 1}, **GRADES}
    assert [question.id for question in collection.questions] == ["-q1", "q2"]
    assert collection.questions[0].text == "A case.\n\nWhich?"
    assert (collection.questions[0].answer, collection.questions[0].documents) == ("This", ("d1",))
    assert collection.questions[1].documents == ("d1",)
    corpus = Corpus(import_corpus([tmp_path / "b"], tmp_path / "c"))
    assert [document.text for document in corpus] == [document.text for document in DOCUMENTS]
    assert corpus.get("d1").facets == {"year": "2020"}
    first = {path.name: path.read_bytes() for path in (tmp_path / "b").rglob("*") if path.is_file()}
    write_beir(tmp_path / "b", DOCUMENTS, QUESTIONS, GRADES)
    assert first == {path.name: path.read_bytes() for path in (tmp_path / "b").rglob("*") if path.is_file()}


def test_ids_in_tsv_are_no_formulas(tmp_path: Path) -> None:
    write_beir(tmp_path / "b", DOCUMENTS, [Question(id="=1+1", text="x", documents=("d1",))])
    assert "\n'=1+1\t" in (tmp_path / "b" / "qrels" / "test.tsv").read_text()
    assert read_beir(tmp_path / "b").judgments == {"=1+1": {"d1": 1}}


def test_r2med_round_trip(tmp_path: Path) -> None:
    assert write_r2med(tmp_path / "r", DOCUMENTS, QUESTIONS, GRADES) == 2
    collection = read_r2med(tmp_path / "r")
    assert collection.judgments == {"-q1": {"d1": 1}, **GRADES}
    assert collection.questions[0].facets == {"body_system": "Eye"}
    assert (collection.questions[0].answer, collection.questions[1].documents) == ("This", ("d1",))
    row = json.loads((tmp_path / "r" / "query.jsonl").read_text().splitlines()[0])
    assert row.keys() == {"id", "text", "answer", "doc_id", "body_system"}
    artefact = import_corpus([tmp_path / "r"], tmp_path / "c")
    assert [document.text for document in Corpus(artefact)] == ["One\n\nFirst text.\n\nSecond.", "=SUM(A1)"]
    assert artefact.manifest.counts.rejected == 0


def test_ids_of_judgments_are_those_of_the_corpus(tmp_path: Path) -> None:
    (tmp_path / "query.jsonl").write_text('{"id": "q", "text": "Why?", "answer": "So", "doc_id": ["a/b c.txt"]}\n')
    (tmp_path / "corpus.jsonl").write_text('{"id": "a/b c.txt", "text": "Because."}\n{"text": "no id"}\n')
    (tmp_path / "qrels.jsonl").write_text('{"q_id": "q", "p_id": "a/b c.txt", "score": 1}\n')
    artefact = import_corpus([tmp_path], tmp_path / "c")
    corpus = Corpus(artefact)
    assert read_r2med(tmp_path).questions[0].documents == corpus.ids()
    assert corpus.get("a_b_c.txt").facets == {"source_id": "a/b c.txt"}
    assert artefact.manifest.counts.reasons == {"a field is missing": 1}


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq\td1\tmany\n", "line 2.*not a whole number"),
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq\td1\n", "line 2"),
        ("queries.jsonl", '{"_id": "-q1"}\n', "line 1.*no text"),
        ("queries.jsonl", "{\n", "line 1"),
    ],
)
def test_half_a_collection_is_refused(tmp_path: Path, file: str, content: str, message: str) -> None:
    write_beir(tmp_path, DOCUMENTS, QUESTIONS)
    (tmp_path / file).write_text(content)
    with pytest.raises(InputError, match=message):
        read_beir(tmp_path)


def test_missing_parts_of_a_collection(tmp_path: Path) -> None:
    write_beir(tmp_path, DOCUMENTS, QUESTIONS)
    with pytest.raises(InputError, match="split dev") as caught:
        read_beir(tmp_path, split="dev")
    assert "test" in str(caught.value.fix)
    with pytest.raises(InputError, match="no such file"):
        read_r2med(tmp_path)
