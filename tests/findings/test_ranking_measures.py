from __future__ import annotations

import gzip
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import ir_measures
import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from hoofbeat.errors import InputError, UsageError
from hoofbeat.findings.ranking_measures import (
    Evaluation,
    Measure,
    evaluate,
    precision,
    read_trec_run,
    recall,
    reciprocal_rank,
    trec_run_lines,
)
from hoofbeat.records import Hit

MEASURES = [
    "nDCG@10",
    "nDCG",
    "R@100",
    "R(rel=2)@5",
    "P@10",
    "P(rel=2)@1",
    "RR",
    "RR(rel=2)",
    "AP",
    "AP@5",
    "Success@5",
]

Grades = dict[str, dict[str, int]]
Run = dict[str, dict[str, float]]


def hit(question: str, document: str, score: float, rank: int = 1) -> Hit:
    return Hit(question=question, document=document, rank=rank, score=score)


NAMES = [*(f"d{number}" for number in range(30)), "é", "Z", "a-1", "日本"]
SCORES = st.one_of(
    st.integers(-3, 3).map(float),
    st.sampled_from([1.0, 1.0 + 1e-9, 1.0 - 1e-9, 16777216.0, 16777217.0, 1e-50, 0.0, -0.0, 1e300, -1e300]),
    st.floats(-10, 10),
)
QUESTIONS = st.sampled_from([f"q{number}" for number in range(6)])
QRELS = st.dictionaries(
    QUESTIONS, st.dictionaries(st.sampled_from(NAMES), st.integers(-2, 4), min_size=1, max_size=12), max_size=6
)
RUNS = st.dictionaries(QUESTIONS, st.dictionaries(st.sampled_from(NAMES), SCORES, max_size=25), max_size=6)
PEERS = {
    "nDCG": "ndcg",
    "nDCG@10": "ndcg_cut_10",
    "nDCG@3": "ndcg_cut_3",
    "R@100": "recall_100",
    "R@5": "recall_5",
    "P@10": "P_10",
    "P@1": "P_1",
    "RR": "recip_rank",
    "AP": "map",
    "AP@5": "map_cut_5",
    "Success@1": "success_1",
    "Success@5": "success_5",
}
"""Our measures and trec_eval's names for them."""


def measured(run: Run, qrels: Grades, measures: Sequence[str]) -> Evaluation:
    return evaluate([hit(q, d, s) for q, scores in run.items() for d, s in scores.items()], qrels, measures)


def by_pytrec_eval(run: Run, qrels: Grades, names: Iterable[str], level: int = 1) -> dict[str, dict[str, float]]:
    """Its values, with grades below 0 as 0: it takes them for places in a table, and crashes."""
    plain = {q: {d: max(grade, 0) for d, grade in grades.items()} for q, grades in qrels.items()}
    evaluator = pytrec_eval.RelevanceEvaluator(plain, set(names), relevance_level=level)
    found: dict[str, dict[str, float]] = evaluator.evaluate(run)
    return found


def assert_agrees(
    ours: Evaluation, theirs: Mapping[str, Mapping[str, float]], run: Run, names: Mapping[str, str]
) -> None:
    """Question by question, and the mean by both conventions: trec_eval's over what it saw, ours over all judged."""
    assert theirs.keys() == ours.per_question.keys() & run.keys()
    for question, row in ours.per_question.items():
        peer = theirs.get(question, {})
        assert row == pytest.approx({name: peer.get(their, 0.0) for name, their in names.items()}, abs=1e-6)
    for name, their in names.items():
        total = math.fsum(row[their] for row in theirs.values())
        assert ours.means[name] == pytest.approx(total / len(ours.per_question) if ours.per_question else 0, abs=1e-6)
        seen = [row[name] for question, row in ours.per_question.items() if question in run]
        if seen:
            assert math.fsum(seen) / len(seen) == pytest.approx(total / len(theirs), abs=1e-6)


@settings(max_examples=300, deadline=None)
@given(QRELS, RUNS)
def test_agrees_with_pytrec_eval(qrels: Grades, run: Run) -> None:
    ours = measured(run, qrels, list(PEERS))
    assert_agrees(ours, by_pytrec_eval(run, qrels, PEERS.values()), run, PEERS)
    assert ours.n == len(qrels)
    assert ours.without_hits == sum(not run.get(question) for question in qrels)
    assert ours.unjudged == sum(bool(hits) for question, hits in run.items() if question not in qrels)


@settings(max_examples=150, deadline=None)
@given(QRELS, RUNS, st.integers(1, 4))
def test_relevance_levels_agree_with_pytrec_eval(qrels: Grades, run: Run, level: int) -> None:
    names = {
        f"{name}(rel={level}){cut}": their
        for name, cut, their in (
            ("R", "@5", "recall_5"),
            ("P", "@10", "P_10"),
            ("RR", "", "recip_rank"),
            ("AP", "", "map"),
            ("AP", "@5", "map_cut_5"),
            ("Success", "@5", "success_5"),
        )
    }
    names = {str(Measure.parse(name)): their for name, their in names.items()}
    assert_agrees(measured(run, qrels, list(names)), by_pytrec_eval(run, qrels, names.values(), level), run, names)


@settings(max_examples=150, deadline=None)
@given(QRELS, RUNS)
def test_exponential_gains_are_gains_of_raised_grades(qrels: Grades, run: Run) -> None:
    raised = {q: {d: 2 ** max(grade, 0) - 1 for d, grade in grades.items()} for q, grades in qrels.items()}
    names = {"nDCG(dcg='exp-log2')@10": "ndcg_cut_10", "nDCG(dcg='exp-log2')": "ndcg"}
    assert_agrees(measured(run, qrels, list(names)), by_pytrec_eval(run, raised, names.values()), run, names)


@settings(max_examples=150, deadline=None)
@given(QRELS, RUNS, st.integers(1, 12))
def test_a_cut_reciprocal_rank_forgets_what_comes_later(qrels: Grades, run: Run, cut: int) -> None:
    theirs = by_pytrec_eval(run, qrels, ["recip_rank"])
    for question, row in measured(run, qrels, [f"RR@{cut}"]).per_question.items():
        rank = theirs.get(question, {}).get("recip_rank", 0.0)
        assert row[f"RR@{cut}"] == pytest.approx(rank if rank >= 1 / cut - 1e-9 else 0.0, abs=1e-6)


@settings(max_examples=100, deadline=None)
@given(
    QRELS, st.dictionaries(QUESTIONS, st.dictionaries(st.sampled_from(NAMES), st.integers(), min_size=1), max_size=6)
)
def test_judged_agrees_with_ir_measures(qrels: Grades, ranked: dict[str, dict[str, int]]) -> None:
    run = {q: {d: float(len(found) - place) for place, d in enumerate(found)} for q, found in ranked.items()}
    parsed = [ir_measures.parse_measure(name) for name in ("Judged@5", "Judged@10")]
    ours = measured(run, qrels, ["Judged@5", "Judged@10"])
    for metric in ir_measures.iter_calc(parsed, qrels, run):
        assert ours.per_question[metric.query_id][str(metric.measure)] == pytest.approx(metric.value)


@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_ir_measures_as_a_whole(seed: int) -> None:
    rng = np.random.default_rng(seed)
    qrels = {
        f"q{question}": {str(name): int(rng.integers(0, 4)) for name in rng.choice(NAMES, rng.integers(1, 20), False)}
        for question in range(25)
    }
    run = {
        f"q{question}": {
            str(name): float(rng.integers(0, 6)) + float(rng.integers(0, 2)) * 1e-9
            for name in rng.choice(NAMES, rng.integers(1, 30), False)
        }
        for question in range(5, 30)
    }
    ours = measured(run, qrels, MEASURES)
    parsed = [ir_measures.parse_measure(name) for name in MEASURES]
    theirs = ir_measures.calc_aggregate(parsed, qrels, run)
    assert ours.means == pytest.approx({str(measure): value for measure, value in theirs.items()}, abs=1e-6)
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
        ("nDCG@10", Measure("nDCG", 10)),
        (" ndcg@10 ", Measure("nDCG", 10)),
        ("Recall@5", recall(5)),
        ("P@10", precision(10)),
        ("MRR", reciprocal_rank),
        ("map@100", Measure("AP", 100)),
        ("P( rel = 2 )@10", Measure("P", 10, rel=2)),
        ('nDCG(dcg="exp-log2")@10', Measure("nDCG", 10, dcg="exp-log2")),
        ("judged", Measure("Judged")),
    ],
)
def test_measures_are_read_from_text(text: str, measure: Measure) -> None:
    assert Measure.parse(text) == measure
    assert Measure.parse(str(measure)) == measure


@pytest.mark.parametrize(
    "text",
    [
        *MEASURES,
        "AP(rel=3)@7",
        "RR(rel=2)@10",
        "Success(rel=2)@5",
        "Judged@10",
        "P(rel=1)@5",
        "nDCG(dcg='exp-log2')@10",
        "nDCG(dcg='log2')@10",
        "nDCG()@3",
        "MAP",
        "NDCG@5",
        "Precision@3",
    ],
)
def test_names_are_those_of_ir_measures(text: str) -> None:
    assert str(Measure.parse(text)) == str(ir_measures.parse_measure(text))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nDCG@",
        "nDCG@0",
        "nDCG@-1",
        "R",
        "P",
        "Success(rel=2)",
        "BLEU@3",
        "nDCG@10 extra",
        "P(rel=0)@3",
        "P(rel='2')@3",
        "P(rel=-1)@3",
        "nDCG(rel=2)@10",
        "nDCG(dcg=2)@10",
        "nDCG(dcg='e')@10",
        "Judged(rel=2)@10",
        "P(judged_only=True)@3",
        "P(rel=2@3",
    ],
)
def test_unreadable_measures(text: str) -> None:
    with pytest.raises(UsageError, match="measure"):
        Measure.parse(text)


def test_huge_grades_have_gains() -> None:
    qrels = {"q": {"a": 1_000_000, "b": 999_999}, "r": {"a": -1_000_000}}
    run = {"q": {"b": 2.0, "a": 1.0}, "r": {"a": 1.0}}
    per_question = measured(run, qrels, ["nDCG(dcg='exp-log2')@10"]).per_question
    half = 1 / np.log2(3)
    assert per_question["q"]["nDCG(dcg='exp-log2')@10"] == pytest.approx((0.5 + half) / (1 + 0.5 * half))
    assert per_question["r"]["nDCG(dcg='exp-log2')@10"] == 0


def test_a_score_must_be_a_number() -> None:
    with pytest.raises(InputError, match="'d' for question 'q' is not a number"):
        evaluate([hit("q", "d", float("nan"))], {"q": {"d": 1}}, ["RR"])


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


def test_runs_of_others_are_read(tmp_path: Path) -> None:
    path = tmp_path / "run.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbfq\tQ0\td1  1 2.5 tag\r\n\r\n  q Q0 d2 2 -1e3 tag\r\n"))
    assert read_trec_run(path) == [hit("q", "d1", 2.5, 1), hit("q", "d2", -1000, 2)]


@pytest.mark.parametrize("line", ["q Q0 d 1 nan tag", "q Q0 d 1 0.5", "q Q0 d 1 0.5 two words"])
def test_lines_that_are_no_hits(tmp_path: Path, line: str) -> None:
    path = tmp_path / "run.trec"
    path.write_text(f"{line}\n")
    with pytest.raises(InputError, match="line 1"):
        read_trec_run(path)
