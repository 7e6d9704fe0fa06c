"""The teaching benchmark: which cases give a question, why the others do not, and that evidence points into them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hoofbeat import teaching
from hoofbeat.benchmarks import Benchmark
from hoofbeat.corpus import Corpus, import_corpus
from hoofbeat.recipes import build_teaching, teaching_patient_questions

TRAPS = {f"trap: {trap}": 1 for trap in ("near-duplicate", "promotional", "retracted", "standard-procedure")}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return Corpus(import_corpus([teaching.cases_folder()], tmp_path_factory.mktemp("teaching") / "cases"))


def test_every_case_gives_a_question_or_a_reason(corpus: Corpus, tmp_path: Path) -> None:
    artefact = build_teaching(corpus, tmp_path / "bench", command=["hoofbeat", "build"])
    assert artefact.verify() == []
    counts = artefact.manifest.counts
    assert (counts.kept, counts.rejected, counts.reasons) == (20, 4, TRAPS)
    assert counts.kept + counts.rejected == len(teaching.cases())
    assert artefact.manifest.inputs == [corpus.artefact.reference()]
    kept = {question.documents[0] for question in Benchmark(artefact).questions}
    assert kept == {case.id for case in teaching.cases() if f"trap: {case.trap}" not in TRAPS}


def test_questions_point_into_their_cases(corpus: Corpus, tmp_path: Path) -> None:
    gold = {case.id: case for case in teaching.cases()}
    bench = Benchmark(build_teaching(corpus, tmp_path / "bench"))
    for question in bench.questions:
        (name,) = question.documents
        planted = gold[name].question
        assert planted is not None
        assert (question.id, question.text, question.context) == (f"q-{name}", planted.text, planted.context)
        assert question.answer == planted.answer
        assert question.facets["specialty"] == gold[name].specialty
        assert [span.quote.split() for span in question.evidence] == [quote.split() for quote in planted.evidence]
        text = corpus.get(name).text
        assert all(text[span.start : span.end] == span.quote for span in question.evidence)
        assert all(span.document == name for span in question.evidence)
    assert bench.qrels() == {question.id: {question.documents[0]: 1} for question in bench.questions}


def test_cases_that_are_not_there_or_say_something_else_are_rejected(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name in ("hbt-case-01", "hbt-case-21"):
        shutil.copy(teaching.cases_folder() / f"{name}.xml", source)
    (source / "two.md").write_text("---\nid: hbt-case-02\n---\n# Two\n\nAnother text altogether.\n")
    corpus = Corpus(import_corpus([source], tmp_path / "cases", workers=1))
    artefact = build_teaching(corpus, tmp_path / "bench")
    assert [question.id for question in Benchmark(artefact).questions] == ["q-hbt-case-01"]
    counts = artefact.manifest.counts
    assert (counts.kept, counts.rejected) == (1, 23)
    assert counts.reasons == {
        "the corpus does not hold the case": 21,
        "the evidence is not found in the source": 1,
        "trap: retracted": 1,
    }
    assert list(counts.reasons) == sorted(counts.reasons)


def test_the_same_corpus_gives_the_same_bytes(corpus: Corpus, tmp_path: Path) -> None:
    one, two = (build_teaching(corpus, tmp_path / name).path for name in ("one", "two"))
    for name in ("questions.jsonl", "qrels.tsv", "manifest.json"):
        assert (one / name).read_bytes() == (two / name).read_bytes()


def test_patient_questions_say_whom_they_are_for() -> None:
    questions = teaching_patient_questions()
    assert len({question.id for question in questions}) == len(questions) == 24
    assert {question.facets["group"] for question in questions} == {"general", "kidney", "liver"}
    planted = {item.id: item for item in teaching.patient_questions()}
    for question in questions:
        assert question.text == planted[question.id].text
        assert question.facets == {"group": planted[question.id].group, "topics": list(planted[question.id].topics)}
