"""R2MED's statistics of sets, built, imported or as published; weighted Jaccard overlap by hand and on real data."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import pytest

from hoofbeat.benchmarks.benchmark_import import import_benchmark
from hoofbeat.records import Document
from hoofbeat.reports.report_build import build_report
from hoofbeat.reports.sections.set_statistics_section import read_set_statistics
from hoofbeat.retrieval.rankings.set_statistics import (
    SetRow,
    overlap_rows,
    set_statistics,
    weighted_jaccard,
    word_shares,
    write_set_statistics,
)
from hoofbeat.retrieval.rankings.test_collection import open_collection
from tests.cli.support import hoofbeat
from tests.helpers import needs_weights, shared_data


def _r2med(folder: Path, words: str = "liver") -> Path:
    """Two questions with three and one positives, and five documents."""
    folder.mkdir()
    queries = [
        {
            "id": "q1",
            "text": "Why is the skin yellow?",
            "answer": "bile",
            "doc_id": ["d1", "d2", "d3"],
            "body_system": "x",
        },
        {"id": "q2", "text": "What hurts here now", "answer": "stone", "doc_id": ["d4"], "body_system": "x"},
    ]
    documents = [{"id": f"d{n}", "text": f"{words} number {n} of five"} for n in range(1, 6)]
    judged = [{"q_id": each["id"], "p_id": name, "score": 1} for each in queries for name in each["doc_id"]]
    for name, rows in (("query", queries), ("corpus", documents), ("qrels", judged)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_published_and_imported_sets_have_the_same_statistics(tmp_path: Path) -> None:
    folder = _r2med(tmp_path / "Biology")
    import_benchmark(folder, tmp_path / "bench")
    sets = [open_collection(folder), open_collection(tmp_path / "bench")]
    found = set_statistics(sets)
    row = SetRow(
        name="Biology",
        questions=2,
        documents=5,
        positives=2.0,
        question_length=4.5,
        document_length=5.0,
        options=0,
        images=0,
    )
    assert found.rows[0] == row
    assert found.rows[1] == SetRow(**{**{name: getattr(row, name) for name in row.__struct_fields__}, "name": "bench"})
    assert found.overlaps[0][2] == pytest.approx(1.0)
    artefact = write_set_statistics(tmp_path / "stats", found, sets)
    assert read_set_statistics(artefact) == found
    report = build_report([artefact.path], tmp_path / "report", title="t")
    text = report.file("report.md").read_text("utf-8")
    assert "Statistics of the sets" in text
    assert "Overlap between sets" in text


def test_the_command_prints_the_table(tmp_path: Path) -> None:
    _r2med(tmp_path / "one")
    _r2med(tmp_path / "two", "heart")
    done = hoofbeat("benchmark", "stats", "one", "two", "-o", "stats", folder=tmp_path)
    assert "positives per question" in done.stderr.replace("\n", " ")
    assert (tmp_path / "stats" / "sets.tsv").is_file()


def _documents(*texts: str) -> list[Document]:
    return [Document(id=str(number), title="", text=text) for number, text in enumerate(texts)]


def test_shares_add_up_to_one() -> None:
    shares = word_shares(_documents("The liver, the LIVER.", "the heart"))
    assert shares == {"heart": pytest.approx(1 / 6), "liver": pytest.approx(2 / 6), "the": pytest.approx(3 / 6)}
    assert word_shares(_documents("", "...")) == {}


def test_worked_out_by_hand() -> None:
    a, b = {"x": 0.5, "y": 0.5}, {"y": 0.25, "z": 0.75}
    assert weighted_jaccard(a, b) == pytest.approx(0.25 / (0.5 + 0.5 + 0.75))
    assert weighted_jaccard(a, b) == weighted_jaccard(b, a)


def test_bounds() -> None:
    a = word_shares(_documents("a b c"))
    assert weighted_jaccard(a, a) == 1.0
    assert weighted_jaccard(a, word_shares(_documents("a b c", "c b a"))) == pytest.approx(1.0)  # size does not matter
    assert weighted_jaccard(a, word_shares(_documents("d e"))) == 0.0
    assert weighted_jaccard(a, {}) == 0.0


def test_a_tokenizers_pieces_can_be_counted() -> None:
    pairs = word_shares(_documents("abcd"), lambda text: [(n, n + 2) for n in range(1, len(text), 2)])
    assert set(pairs) == {"ab", "cd"}


def test_every_pair_stands_once() -> None:
    shares = {name: word_shares(_documents(text)) for name, text in (("p", "a b"), ("q", "a c"), ("r", "d"))}
    assert overlap_rows(shares) == [("p", "q", 0.3333, 1, 3), ("p", "r", 0.0, 0, 3), ("q", "r", 0.0, 0, 3)]


def test_halves_of_one_corpus_are_more_alike_than_two_corpora() -> None:
    reports, guidelines = [], []
    with gzip.open(shared_data("case_reports.jsonl.gz")) as stream:
        for _, line in zip(range(80), stream, strict=False):
            reports.append(Document(id="r", title="", text=json.loads(line)["text"]))
    with gzip.open(shared_data("guidelines.jsonl.gz")) as stream:
        for _, line in zip(range(40), stream, strict=False):
            row = json.loads(line)
            guidelines.append(Document(id="g", title="", text=" ".join(each["text"] for each in row["sections"])))
    one, two, other = word_shares(reports[:40]), word_shares(reports[40:]), word_shares(guidelines)
    within, across = weighted_jaccard(one, two), weighted_jaccard(one, other)
    assert 0.1 < across < within < 0.9


def test_distractors_by_bertscore_of_a_benchmark_without_documents(tmp_path: Path) -> None:
    needs_weights("minilm")
    row = {
        "clean_case_presentation": "A man with a swollen toe.",
        "correct_diagnosis": "Gout",
        "distractor1": "Gouty arthritis",
        "distractor2": "Lung cancer",
        "distractor3": "Migraine",
    }
    with (tmp_path / "cases.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(row))
        writer.writeheader()
        writer.writerows([row] * 2)
    import_benchmark(tmp_path / "cases.csv", tmp_path / "bench")
    done = hoofbeat("benchmark", "stats", "bench", "--distractors", "-o", "stats", folder=tmp_path)
    assert "options per question" in done.stderr.replace("\n", " ")
    rows = (tmp_path / "stats" / "distractors.tsv").read_text().splitlines()[1:]
    f1 = {line.split("\t")[2]: float(line.split("\t")[-1]) for line in rows}
    assert set(f1) == {"Gouty arthritis", "Lung cancer", "Migraine"}
    assert f1["Gouty arthritis"] > max(f1["Lung cancer"], f1["Migraine"])
    report = build_report([tmp_path / "stats"], tmp_path / "report", title="t")
    assert "BERTScore F1 of a distractor with the right option" in report.file("report.md").read_text("utf-8")
