from __future__ import annotations

from pathlib import Path

import ir_measures
import numpy as np
import pytest

from hoofbeat.errors import InputError, UsageError
from hoofbeat.findings.ranking import (
    Measure,
    evaluate,
    ndcg,
    precision,
    read_qrels,
    read_trec_run,
    recall,
    reciprocal_rank,
    trec_run_lines,
)
from hoofbeat.records import Hit

MEASURES = ["nDCG@10", "nDCG@3", "nDCG", "R@100", "R@5", "P@10", "P@1", "RR"]


def hit(question: str, document: str, score: float, rank: int = 1) -> Hit:
    return Hit(question=question, document=document, rank=rank, score=score)


@pytest.mark.parametrize("seed", range(8))
def test_agrees_with_ir_measures_on_ties_and_missing_questions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = [f"d{number}" for number in range(40)] + ["é", "Z", "a-1"]
    qrels = {
        f"q{question}": {str(name): int(rng.integers(-1, 4)) for name in rng.choice(names, rng.integers(1, 20), False)}
        for question in range(25)
    }
    run = {
        f"q{question}": {
            str(name): float(rng.integers(0, 6)) + float(rng.integers(0, 2)) * 1e-9
            for name in rng.choice(names, rng.integers(1, 40), False)
        }
        for question in range(5, 30)
    }
    ours = evaluate([hit(q, d, s) for q, scores in run.items() for d, s in scores.items()], qrels, MEASURES)
    parsed = [ir_measures.parse_measure(name) for name in MEASURES]
    theirs = ir_measures.calc_aggregate(parsed, qrels, run)
    assert ours.means == pytest.approx({str(measure): value for measure, value in theirs.items()}, abs=1e-6)
    for metric in ir_measures.iter_calc(parsed, qrels, run):
        assert ours.per_question[metric.query_id][str(metric.measure)] == pytest.approx(metric.value, abs=1e-6)
    assert (ours.n, ours.without_hits, ours.unjudged) == (25, 5, 5)


def test_values_by_hand() -> None:
    qrels = {"q": {"a": 2, "b": 1, "c": 0}}
    means = evaluate(
        [hit("q", "c", 3), hit("q", "b", 2), hit("q", "x", 1)], qrels, ["nDCG@2", "R@2", "P@4", "RR"]
    ).means
    log2_3 = np.log2(3)
    assert means == pytest.approx({"nDCG@2": (1 / log2_3) / (2 + 1 / log2_3), "R@2": 0.5, "P@4": 0.25, "RR": 0.5})


def test_nothing_to_measure() -> None:
    assert evaluate([], {}, ["RR"]).means == {"RR": 0.0}
    assert evaluate([], {"q": {"d": 0}}, MEASURES).means == dict.fromkeys(MEASURES, 0.0)


def test_documents_must_stand_once() -> None:
    with pytest.raises(InputError, match="'d' is ranked twice"):
        evaluate([hit("q", "d", 1), hit("q", "d", 2)], {"q": {"d": 1}}, ["RR"])


@pytest.mark.parametrize(
    ("text", "measure"),
    [
        ("nDCG@10", ndcg(10)),
        (" ndcg@10 ", ndcg(10)),
        ("Recall@5", recall(5)),
        ("P@10", precision(10)),
        ("MRR", reciprocal_rank),
    ],
)
def test_measures_are_read_from_text(text: str, measure: Measure) -> None:
    assert Measure.parse(text) == measure
    assert Measure.parse(str(measure)) == measure


@pytest.mark.parametrize("text", ["", "nDCG@", "nDCG@0", "nDCG@-1", "R", "P", "BLEU@3", "nDCG@10 extra"])
def test_unreadable_measures(text: str) -> None:
    with pytest.raises(UsageError, match="measure"):
        Measure.parse(text)


def test_runs_read_back(tmp_path: Path) -> None:
    hits = [hit("q1", "d1", 0.1 + 0.2), hit("q1", "d2", 1 / 3, 2), hit("q2", "d1", -1e-300)]
    path = tmp_path / "run.trec"
    path.write_text("\n".join(trec_run_lines(hits, "bm25")) + "\n")
    assert path.read_text().splitlines()[0] == "q1 Q0 d1 1 0.30000000000000004 bm25"
    assert read_trec_run(path) == hits


@pytest.mark.parametrize("name", ["two words", "", "tab\tbed", " lead"])
def test_names_a_run_cannot_hold(name: str) -> None:
    with pytest.raises(InputError, match="can't hold"):
        list(trec_run_lines([hit("q", name, 1)], "tag"))


def test_broken_run_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    path.write_text("q Q0 d 1 0.5 tag\n\nq Q0 d one 0.5 tag\n")
    with pytest.raises(InputError, match="line 3"):
        read_trec_run(path)


def test_qrels(tmp_path: Path) -> None:
    path = tmp_path / "test.tsv"
    path.write_text("query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\nq2\td1\t3\nq2\td1\t1\n")
    assert read_qrels(path) == {"q1": {"d1": 2, "d2": 0}, "q2": {"d1": 3}}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("query-id\tcorpus-id\tscore\nq\td\thigh\n", "line 2"),
        ("query\tdoc\tscore\nq\td\t1\n", "line 2"),
        ("query-id\tcorpus-id\tscore\nq\td\t1\nq\td\n", "line 3"),
    ],
)
def test_broken_qrels_name_the_line(tmp_path: Path, text: str, line: str) -> None:
    path = tmp_path / "test.tsv"
    path.write_text(text)
    with pytest.raises(InputError, match=line):
        read_qrels(path)
