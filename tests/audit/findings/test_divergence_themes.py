from __future__ import annotations

import numpy as np
import polars
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.cluster.hierarchy import linkage
from sklearn.cluster import AgglomerativeClustering
from sklearn.metrics import adjusted_rand_score

from hoofbeat.audit.findings.divergence_themes import (
    TopicPhrases,
    cluster,
    divergence_topics,
    leaders,
    plain_topic,
    themes,
)
from hoofbeat.errors import UsageError
from hoofbeat.records import Comparison, Failure
from tests.audit.findings.support import table

Vectors = NDArray[np.float32]


def unit(vectors: NDArray[np.float64]) -> Vectors:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


def planted(groups: int, each: int, spread: float, seed: int = 0) -> tuple[Vectors, NDArray[np.int64]]:
    """Vectors around so many directions, in mixed order, and the direction of each."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.repeat(np.arange(groups), each))
    return unit(rng.normal(size=(groups, 32))[truth] + spread * rng.normal(size=(groups * each, 32))), truth


@settings(deadline=None, max_examples=25)
@given(st.integers(2, 60), st.integers(0, 10_000), st.floats(0.05, 0.9))
def test_groups_are_those_of_average_linkage(n: int, seed: int, threshold: float) -> None:
    vectors, _ = planted(6, 10, 0.8, seed)
    vectors = vectors[:n]
    distances = 1 - np.round(vectors @ vectors.T, 4).astype(np.float64)
    heights = np.sort(linkage(distances[np.triu_indices(n, 1)], "average")[:, 2])
    assume(np.diff(heights).min(initial=1.0) > 1e-7)  # of equal distances, either pair may be joined first
    assume(np.abs(heights - (1 - threshold)).min() > 1e-5)
    for more in ({"distance_threshold": 1 - threshold + 1e-6, "n_clusters": None}, {"n_clusters": min(n, 4)}):
        known = AgglomerativeClustering(metric="precomputed", linkage="average", **more).fit_predict(distances)
        ours = cluster(vectors, threshold=threshold) if "distance_threshold" in more else cluster(vectors, k=min(n, 4))
        assert adjusted_rand_score(known, ours) == 1.0


def test_planted_groups_are_found_however_many_vectors_there_are() -> None:
    vectors, truth = planted(40, 15, 0.3)
    assert adjusted_rand_score(truth, cluster(vectors, threshold=0.7)) == 1.0
    assert adjusted_rand_score(truth, cluster(vectors, k=40)) == 1.0
    loosely = cluster(vectors, threshold=0.7, free=100, max_groups=150)  # near-repetitions are put together first
    assert adjusted_rand_score(truth, loosely) == 1.0
    fewer = cluster(vectors, threshold=0.7, free=100, max_groups=39)  # too few are allowed
    assert adjusted_rand_score(truth, fewer) < 1.0


def test_groups_are_numbered_as_they_appear() -> None:
    first, second = unit(np.eye(8)[[3, 5]])
    assert cluster(np.array([first, second, second, first]), threshold=0.9).tolist() == [0, 1, 1, 0]
    assert cluster(np.empty((0, 8), np.float32), threshold=0.9).tolist() == []
    assert cluster(np.array([first]), k=3).tolist() == [0]
    nothing = np.zeros((2, 8), np.float32)
    assert cluster(nothing, threshold=0.5).tolist() == [0, 1]
    for wrong in ({}, {"threshold": 0.5, "k": 2}, {"k": 0}):
        with pytest.raises(UsageError):
            cluster(vectors=nothing, **wrong)


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 1300), st.integers(0, 1000))
def test_leaders_lead_what_is_near_them(n: int, seed: int) -> None:
    vectors = planted(30, 45, 0.5, seed)[0][:n]
    groups = leaders(vectors, 0.6)
    first = {int(group): place for place, group in reversed(list(enumerate(groups)))}
    assert sorted(first) == list(range(len(first)))
    for place, group in enumerate(groups.tolist()):
        cosines = {g: round(float(vectors[place] @ vectors[lead]), 4) for g, lead in first.items() if lead < place}
        if first[group] == place:
            assert all(cosine < 0.6 + 1e-4 for cosine in cosines.values())
        else:
            assert cosines[group] >= 0.6 - 1e-4
            assert cosines[group] >= max(cosines.values()) - 1e-4


def row(
    question: str, a: str, b: str, topic: str | None, label: str = "Divergent", level: str | None = None
) -> Comparison:
    return Comparison(question=question, a=a, b=b, label=label, topic=topic, significance=level)


ROWS = [
    row("q1", "s1", "s2", "Bathing time", level="low"),
    row("q1", "s1", "s3", " bathing  time.", level="high"),
    row("q2", "s1", "s2", "When to bathe", "Contradictory", "medium"),
    row("q3", "s2", "s3", "Raw fish"),
    row("q3", "s1", "s3", "raw fish", level="low"),
    row("q3", "s1", "s2", None),
    row("q4", "s1", "s2", "...", level="low"),
    row("q4", "s1", "s3", "Detail", "Complementary"),
    Comparison(question="q4", a="s2", b="s3", topic="Failed", failure=Failure(kind="timeout", message="x")),
]


def test_phrases_are_counted_whatever_their_spelling() -> None:
    topics = divergence_topics(table(ROWS).lazy())
    assert topics.phrases == ("bathing time", "raw fish", "when to bathe")
    assert topics.counts == (2, 2, 1)
    assert topics.without == 2
    assert divergence_topics(table(ROWS), labels=["Complementary"]).phrases == ("detail",)
    with pytest.raises(UsageError, match="'Odd'"):
        divergence_topics(table(ROWS), labels=["Odd"])
    assert plain_topic(" “Timing of  BATHS” (after surgery) ") == "timing of baths” (after surgery"


def test_themes_are_counted_by_pairs_questions_and_sources() -> None:
    topics = divergence_topics(table(ROWS))
    vectors = unit(np.array([[1.0, 0.0], [0.0, 1.0], [0.9, 0.3]]))
    bath, fish = themes(topics, vectors, threshold=0.7)
    assert (bath.name, bath.count, bath.questions, bath.sources, bath.different) == ("bathing time", 3, 2, 3, 2)
    assert bath.phrases == (("bathing time", 2), ("when to bathe", 1))
    assert bath.labels == {"Divergent": 2, "Contradictory": 1}
    assert bath.levels == {"low": 1, "medium": 1, "high": 1}
    assert [(e.question, e.a, e.b, e.significance, e.topic) for e in bath.examples] == [
        ("q1", "s1", "s3", "high", " bathing  time."),
        ("q2", "s1", "s2", "medium", "When to bathe"),
    ]
    assert (fish.name, fish.count, fish.questions, fish.sources, fish.cohesion) == ("raw fish", 2, 1, 3, 1.0)
    assert fish.levels == {"low": 1, "medium": 0, "high": 0}
    (everything,) = themes(topics, vectors, k=1, examples=1)
    assert (everything.count, everything.questions, len(everything.examples)) == (5, 3, 1)


def test_a_theme_is_named_by_its_most_central_phrase() -> None:
    rows = [row(f"q{n}", "s1", "s2", phrase) for n, phrase in enumerate(["left", "middle", "right", "right", "left"])]
    topics = divergence_topics(table(rows))
    assert topics.phrases == ("left", "right", "middle")
    angles = {"left": 0.5, "middle": 0.0, "right": -0.5}
    vectors = unit(np.array([[np.cos(angles[name]), np.sin(angles[name])] for name in topics.phrases]))
    (theme,) = themes(topics, vectors, threshold=0.5)
    assert (theme.name, theme.rule_name) == ("middle", "middle")


def test_no_topics_no_themes() -> None:
    topics = divergence_topics(table([row("q", "a", "b", None)]))
    assert (topics.phrases, topics.without) == ((), 1)
    assert themes(topics, np.empty((0, 4), np.float32), threshold=0.5) == []
    with pytest.raises(UsageError, match="0 phrases and 1 vectors"):
        themes(TopicPhrases((), (), polars.DataFrame(), 0), np.zeros((1, 4), np.float32), threshold=0.5)
