"""Clusters of questions: the same documents are resampled together, documents shared in part are not."""

from __future__ import annotations

import numpy as np

from hoofbeat.findings.accuracy import accuracies
from hoofbeat.findings.intervals import bootstrap_mean, cluster_labels, clusters_of
from hoofbeat.findings.outcomes import Outcome
from hoofbeat.findings.systems import compare_systems
from hoofbeat.records import Question


def asked(name: str, *documents: str) -> Question:
    return Question(id=name, text="?", documents=documents)


def test_the_same_documents_make_a_cluster() -> None:
    found = clusters_of([asked("q1", "d2", "d1"), asked("q2", "d1", "d2"), asked("q3", "d1"), asked("q4")])
    assert found["q1"] == found["q2"] != found["q3"] == "d1"
    assert "q4" not in found


def test_questions_that_share_nothing_are_resampled_one_by_one() -> None:
    clusters = clusters_of([asked("q1", "d1"), asked("q2", "d2"), asked("q3", "d1")])
    assert cluster_labels(["q1", "q2"], clusters) is None
    assert cluster_labels(["q1", "q2", "q3", "q4"], clusters) == ["d1", "d2", "d1", "q4"]
    assert cluster_labels(["q1", "q1"], None) == ["q1", "q1"]


def test_questions_of_one_source_cover_the_truth_only_as_clusters() -> None:
    """Four questions from each of 60 documents, right or wrong with their document: 95% must mean 95%."""
    questions = [asked(f"q{number}", f"d{number // 4}") for number in range(240)]
    labels = cluster_labels([each.id for each in questions], clusters_of(questions))
    rng = np.random.default_rng(1)
    held = {"clusters": 0, "questions": 0}
    for seed in range(200):
        ease = rng.beta(0.8, 0.8, size=60).repeat(4)
        values = (rng.random(240) < ease).astype(float)
        for name, how in (("clusters", labels), ("questions", None)):
            span = bootstrap_mean(values, clusters=how, samples=300, seed=seed)
            held[name] += span.low <= 0.5 <= span.high
    assert held["clusters"] >= 180
    assert held["questions"] <= 170


def pooled(rng: np.random.Generator) -> list[Question]:
    """Topics like NFCorpus's: each has forty relevant documents of two thousand, so that chains link all of them."""
    return [asked(f"q{n}", *(f"d{d}" for d in rng.choice(2000, size=40, replace=False))) for n in range(300)]


def test_graded_topics_stay_apart_though_a_chain_of_documents_links_them() -> None:
    rng = np.random.default_rng(0)
    questions = pooled(rng)
    clusters = clusters_of(questions)
    values = {each.id: rng.random() for each in questions}
    systems = {"a": {q: {"nDCG@10": v} for q, v in values.items()}, "b": {q: {"nDCG@10": 0.5} for q in values}}
    table = compare_systems(systems, "nDCG@10", clusters=clusters)
    assert table.clusters == table.n == 300
    assert table == compare_systems(systems, "nDCG@10")
    assert 0.05 < table.means[0].interval.high - table.means[0].interval.low < 0.08


def test_rankings_and_answers_are_clustered_alike() -> None:
    questions = [asked("q1", "d1"), asked("q2", "d1"), asked("q3", "d2", "d3"), asked("q4", "d3", "d2"), asked("q5")]
    clusters = clusters_of(questions)
    rows = [Outcome(question=each.id, model="m", condition="c", sample=0, correct=True) for each in questions]
    values = {"a": {each.id: {"RR": 1.0} for each in questions}}
    assert accuracies(rows, clusters=clusters)[0].clusters == 3
    assert compare_systems(values, "RR", clusters=clusters).clusters == 3
