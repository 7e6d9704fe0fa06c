from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from hoofbeat.errors import InputError, UsageError
from hoofbeat.findings.accuracy import accuracies, comparable_pairs, differences, leaderboard, pooled_people
from hoofbeat.findings.intervals import tango
from hoofbeat.findings.outcomes import Outcome, outcomes
from hoofbeat.records import Answer, Failure, FailureKind, Judgment
from tests.findings.support import sampled, single


def answer(
    question: str, condition: str = "closed-book", sample: int = 0, failure: FailureKind | None = None
) -> Answer:
    broken = Failure(kind=failure, message="x") if failure else None
    return Answer(question=question, model="m", condition=condition, sample=sample, text="t", failure=broken)


def judgment(
    question: str,
    label: str,
    condition: str = "closed-book",
    sample: int = 0,
    failure: FailureKind | None = None,
    judge: str = "j",
    aspect: str = "equivalence",
) -> Judgment:
    broken = Failure(kind=failure, message="x") if failure else None
    return Judgment(
        question=question,
        model="m",
        condition=condition,
        sample=sample,
        judge=judge,
        aspect=aspect,
        label=label,
        failure=broken,
    )


def results(condition: str, pattern: str) -> list[Outcome]:
    """Outcomes of questions 0, 1, ...: 1 right, 0 wrong, ? unscored."""
    meaning = {"1": True, "0": False, "?": None}
    return [
        Outcome(
            question=f"q{number}",
            model="m",
            condition=condition,
            sample=0,
            correct=meaning[mark],
            unscored="answer:timeout" if mark == "?" else "",
        )
        for number, mark in enumerate(pattern)
    ]


def test_denominator_is_the_plan() -> None:
    answers = [answer("q1"), answer("q2"), answer("q3", failure="refusal"), answer("q4"), answer("q5")]
    judgments = [
        judgment("q1", "equivalent"),
        judgment("q2", "different"),
        judgment("q3", "", failure="input"),
        judgment("q4", "", failure="unreadable"),
        judgment("q1", "other", aspect="failure-mode"),
    ]
    (row,) = accuracies(outcomes(answers, judgments))
    assert (row.planned, row.questions, row.correct) == (5, 5, 1)
    assert row.unscored == {"answer:refusal": 1, "judgment:unreadable": 1, "unjudged": 1}
    assert row.accuracy == pytest.approx(0.2)
    assert row.sensitivity == pytest.approx((0.2, 0.8))
    assert row.wilson.low < 0.2 < row.wilson.high


def test_few_unscored_need_no_range() -> None:
    (at_threshold,) = accuracies(results("c", "1" * 99 + "?"))
    assert at_threshold.sensitivity is None
    assert at_threshold.unscored == {"answer:timeout": 1}
    (above,) = accuracies(results("c", "1" * 98 + "??"))
    assert above.sensitivity == pytest.approx((0.98, 1.0))


def test_positive_label_is_a_choice() -> None:
    marked = outcomes(
        [answer("q1"), answer("q2"), answer("q3")],
        [judgment("q1", "yes"), judgment("q2", "partly"), judgment("q3", "no")],
        positive={"yes", "partly"},
    )
    assert [row.correct for row in marked] == [True, True, False]


def test_one_judge_must_be_named_among_several() -> None:
    two = [judgment("q1", "equivalent", judge="a"), judgment("q1", "different", judge="b")]
    with pytest.raises(InputError, match="two judgments"):
        outcomes([answer("q1")], two)
    assert [row.correct for row in outcomes([answer("q1")], two, judge="b")] == [False]


def test_files_that_do_not_belong_together() -> None:
    with pytest.raises(InputError, match="no answer"):
        outcomes([answer("q1")], [judgment("q2", "equivalent")])
    with pytest.raises(InputError, match="twice"):
        outcomes([answer("q1"), answer("q1")], [])


def test_clusters_and_samples_widen_the_interval() -> None:
    rows = results("c", "10" * 50)
    (plain,) = accuracies(rows)
    (clustered,) = accuracies(rows, clusters={f"q{number}": f"doc{number % 10}" for number in range(100)})
    assert (plain.clusters, clustered.clusters) == (100, 10)
    assert clustered.bootstrap.high - clustered.bootstrap.low > 2 * (plain.bootstrap.high - plain.bootstrap.low)


def test_difference_is_paired_by_question() -> None:
    (row,) = differences([*results("a", "1111110001"), *results("b", "1111000001?")])
    assert (row.paired.n, row.unpaired, row.only_a, row.only_b) == (10, 1, 2, 0)
    assert (row.accuracy_a, row.accuracy_b) == pytest.approx((0.7, 0.5))
    assert row.paired.difference == pytest.approx(0.2)
    assert row.p == pytest.approx(0.5)
    assert row.p_holm == row.p
    assert row.sensitivity is None


def test_unscored_answers_spread_the_difference() -> None:
    (row,) = differences([*results("a", "11?0"), *results("b", "1?00")])
    assert row.unscored == 2
    assert row.paired.difference == pytest.approx(0.25)
    assert row.sensitivity == pytest.approx((0.0, 0.5))


def test_holm_counts_the_whole_table() -> None:
    table = differences([*results("a", "1" * 12), *results("b", "0" * 12), *results("c", "1" * 6 + "0" * 6)])
    assert [(row.a[1], row.b[1]) for row in table] == [("a", "b"), ("a", "c"), ("b", "c")]
    smallest, *rest = sorted(row.p or 0.0 for row in table)
    assert min(row.p_holm or 0.0 for row in table) == pytest.approx(3 * smallest)
    assert max(row.p_holm or 0.0 for row in table) == pytest.approx(2 * rest[0])


def test_several_samples_have_a_randomisation_test() -> None:
    rng = np.random.default_rng(5)
    shares = {condition: rng.integers(0, 4, size=40) for condition in ("a", "b")}
    rows = [
        row
        for condition, rights in shares.items()
        for number, right in enumerate(rights)
        for row in sampled({f"q{number:02}": "1" * right + "0" * (3 - right)}, condition=condition)
    ]
    (found,) = differences(rows)
    assert (found.only_a, found.only_b) == (None, None)
    assert found.test == "paired randomisation, 10,000 sign patterns"
    theirs = stats.permutation_test(
        (shares["a"] / 3, shares["b"] / 3),
        lambda a, b: np.mean(a - b),
        permutation_type="samples",
        n_resamples=10_000,
        rng=np.random.default_rng(1),
    )
    assert found.p == pytest.approx(theirs.pvalue, abs=0.02)
    few = differences([row for row in rows if row.question < "q08"])[0]
    assert few.test.endswith("(all)")
    exact = stats.permutation_test(
        (shares["a"][:8] / 3, shares["b"][:8] / 3), lambda a, b: np.mean(a - b), permutation_type="samples"
    )
    assert few.p == pytest.approx(exact.pvalue)
    assert few.p_holm == few.p


def test_one_sample_is_named_mcnemar() -> None:
    (found,) = differences([*results("a", "1101"), *results("b", "1001")])
    assert found.test == "McNemar, exact"


def test_pairs_worth_comparing() -> None:
    rows = [
        *single("11", "m", "closed"),
        *single("11", "m", "oracle"),
        *single("11", "n", "closed"),
        *sampled({"elsewhere": "1"}, "n", "oracle"),
    ]
    across = (("m", "closed"), ("n", "closed"))
    within = (("m", "closed"), ("m", "oracle"))
    assert comparable_pairs(rows) == [within, across]
    assert comparable_pairs(rows, "model") == [within]
    assert comparable_pairs(rows, "condition") == [across]
    found = differences(rows, comparable_pairs(rows))
    assert [(row.a, row.b) for row in found] == [within, across]


def test_what_nobody_scored_is_worth_no_comparison() -> None:
    rows = [*single("1101", "m", "closed"), *single("????", "m", "oracle"), *single("????", "n", "closed")]
    assert comparable_pairs(rows) == []
    assert comparable_pairs([*rows, *single("0?1?", "n", "oracle")]) == []
    assert comparable_pairs([*rows, *single("0?1?", "m", "options")]) == [(("m", "closed"), ("m", "options"))]


marks = st.text("10?", min_size=1, max_size=12)


@settings(deadline=None)
@given(st.lists(marks, min_size=2, max_size=4), st.randoms(use_true_random=False))
def test_differences_know_no_order_and_turn_round(patterns: list[str], random: object) -> None:
    rows = [row for number, pattern in enumerate(patterns) for row in single(pattern, condition=f"c{number}")]
    mixed = list(rows)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    table = differences(rows, samples=40, seed=3)
    assert table == differences(mixed, samples=40, seed=3)
    assert accuracies(rows, samples=40) == accuracies(mixed, samples=40)
    turned = differences(rows, [(row.b, row.a) for row in table], samples=40, seed=3)
    for row, back in zip(table, turned, strict=True):
        assert row.paired.difference == pytest.approx(-back.paired.difference)
        assert row.paired.interval.low == pytest.approx(-back.paired.interval.high)
        assert (row.p, row.p_holm) == (back.p, back.p_holm)
        assert 0 < row.p <= row.p_holm <= 1
        assert -1 <= row.paired.interval.low <= row.paired.interval.high <= 1
        if row.sensitivity is not None:
            assert row.sensitivity[0] - 1e-12 <= row.paired.difference <= row.sensitivity[1] + 1e-12


def test_drawing_all_systems_together_is_drawing_each_pair() -> None:
    rng = np.random.default_rng(4)
    rows = [row for c in "abc" for row in single("".join(rng.choice(["0", "1"], 60)), condition=c)]
    clusters = {f"q{number:04}": f"d{number % 13:02}" for number in range(60)}
    table = differences(rows, clusters=clusters, seed=2)
    for row in table:
        (alone,) = differences(rows, [(row.a, row.b)], clusters=clusters, seed=2)
        assert alone.paired.interval.low == pytest.approx(row.paired.interval.low)
        assert alone.paired.interval.high == pytest.approx(row.paired.interval.high)


def test_systems_that_cannot_be_compared() -> None:
    rows = results("a", "11")
    with pytest.raises(UsageError, match="'b'"):
        differences(rows, [(("m", "a"), ("m", "b"))])
    other = [Outcome(question="elsewhere", model="m", condition="b", sample=0, correct=True)]
    with pytest.raises(UsageError, match="no question"):
        differences([*rows, *other])


def test_no_spread_is_not_certainty() -> None:
    """Two systems that never differ, or differ one way only, have an interval with a width, named by its method."""
    (same,) = differences([*single("1" * 30, condition="a"), *single("1" * 30, condition="b")])
    assert same.paired.difference == 0.0
    assert same.paired.interval == tango(0, 0, 30)
    (one_way,) = differences([*single("1" * 30, condition="a"), *single("1" * 18 + "0" * 12, condition="b")])
    assert one_way.paired.interval == tango(12, 0, 30)
    both_ways = [*single("1" * 20 + "0" * 10, condition="a"), *single("0" * 10 + "1" * 20, condition="b")]
    assert differences(both_ways)[0].paired.interval.method == "cluster bootstrap"
    (few,) = differences([*single("1110" * 5, condition="a"), *single("1110" * 4 + "1001", condition="b")])
    assert few.paired.interval == tango(2, 1, 20)


def test_samples_that_never_differ_have_a_width_too() -> None:
    rows = [*sampled({"q1": "11", "q2": "10"}, condition="a"), *sampled({"q1": "11", "q2": "01"}, condition="b")]
    assert differences(rows)[0].paired.interval == tango(0, 0, 2)


def test_a_score_interval_counts_clusters() -> None:
    rows = [*single("1" * 30, condition="a"), *single("1" * 30, condition="b")]
    clusters = {f"q{number:04}": f"d{number // 3}" for number in range(30)}
    (found,) = differences(rows, clusters=clusters)
    assert found.paired.interval == tango(0, 0, 10)


def test_clusters_have_a_test_of_their_own() -> None:
    a, b = "1" * 24 + "0" * 16, "0" * 16 + "1" * 4 + "0" * 20
    rows = [*single(a, condition="a"), *single(b, condition="b")]
    (plain,) = differences(rows)
    assert (plain.clusters, plain.p_cluster, plain.p_cluster_holm) == (40, None, None)
    clusters = {f"q{number:04}": f"d{number // 4}" for number in range(40)}
    (found,) = differences(rows, clusters=clusters)
    assert (found.test, found.p, found.clusters) == ("McNemar, exact", plain.p, 10)
    assert found.p_cluster == pytest.approx(2 / 2**5)  # five clusters differ, all of them the same way
    assert found.p_cluster_holm == found.p_cluster
    assert found.p < 0.001


boards = st.lists(st.text("01?", min_size=5, max_size=5), min_size=1, max_size=5)


def test_places_by_hand() -> None:
    rows = [*single("1110", "a"), *single("1100", "b"), *single("0110", "c"), *single("0000", "d")]
    board = leaderboard(rows)
    assert [(place.system[0], place.rank) for place in board] == [("a", 1), ("b", 2), ("c", 2), ("d", 4)]
    assert [place.accuracy for place in board] == accuracies(rows)
    assert all(place.rank_interval[0] <= place.rank <= place.rank_interval[1] for place in board)
    assert board[0].rank_interval[0] == 1
    assert board[-1].rank_interval[1] == 4


def test_far_apart_is_sure_and_close_together_is_not() -> None:
    rng = np.random.default_rng(2)
    marks = {
        name: "".join(rng.choice(["0", "1"], 400, p=[1 - p, p]))
        for name, p in zip("abc", (0.9, 0.5, 0.49), strict=True)
    }
    board = {place.system[0]: place for place in leaderboard(row for n, m in marks.items() for row in single(m, n))}
    assert board["a"].rank_interval == (1, 1)
    assert board["b"].rank_interval == board["c"].rank_interval == (2, 3)


def test_rank_intervals_agree_with_a_plain_bootstrap() -> None:
    rng = np.random.default_rng(3)
    table = (rng.random((4, 60)) < np.array([[0.7], [0.6], [0.55], [0.4]])).astype(int)
    rows = [row for name, marks in zip("abcd", table, strict=True) for row in single("".join(map(str, marks)), name)]
    board = {place.system[0]: place.rank_interval for place in leaderboard(rows, samples=4000)}
    best, worst = [], []
    for _ in range(4000):
        means = table[:, rng.integers(60, size=60)].mean(axis=1)
        best.append([1 + int((means > mean + 1e-12).sum()) for mean in means])
        worst.append([int((means > mean - 1e-12).sum()) for mean in means])
    for name, first, last in zip("abcd", np.array(best).T, np.array(worst).T, strict=True):
        assert board[name] == (np.quantile(first, 0.025), np.quantile(last, 0.975))


def test_systems_that_never_differ_share_all_places() -> None:
    board = leaderboard([row for name in "abcd" for row in single("1" * 20, name)])
    assert [(place.rank, place.rank_interval, place.tied) for place in board] == [(1, (1, 4), 3)] * 4
    nearly = leaderboard([*single("1" * 20, "a"), *single("1" * 19 + "0", "b")])
    assert [(place.rank, place.rank_interval, place.tied) for place in nearly] == [(1, (1, 2), 0), (2, (1, 2), 0)]


def test_each_two_are_compared_by_the_questions_they_share() -> None:
    rows = [*single("11", "a"), *single("1000", "b"), *sampled({"q0000": "11", "q0001": "10"}, "c")]
    board = {place.system[0]: place for place in leaderboard(rows)}
    assert {name: (place.rank, place.among, place.n) for name, place in board.items()} == {
        "a": (1, 3, 2),
        "c": (2, 3, 2),
        "b": (1, 1, 4),  # nobody else was asked at least nine tenths of its questions
    }
    apart = leaderboard([*single("1", "a"), *sampled({"elsewhere": "1"}, "b")])
    assert [(place.rank, place.among) for place in apart] == [(1, 1), (1, 1)]
    assert leaderboard([]) == []


def test_a_physician_changes_no_models_place() -> None:
    """A model of 65% and one of 35% that happens to be right on the ten questions that a physician was asked."""
    models = [*single("0" * 10 + "1" * 65 + "0" * 25, "good"), *single("1" * 10 + "1" * 25 + "0" * 65, "weak")]
    alone = leaderboard(models)
    together = leaderboard([*models, *single("1111111110", "human:A"), *single("0000000000", "human:B")])
    mine = {place.system[0]: place for place in together}
    assert [(place.system[0], place.rank) for place in alone] == [("good", 1), ("weak", 2)]
    for place in alone:
        found = mine[place.system[0]]
        assert (found.rank, found.rank_interval, found.among) == (place.rank, place.rank_interval, 2)
    assert (mine["human:A"].rank, mine["human:A"].n, mine["human:A"].among) == (2, 10, 4)
    assert mine["human:A"].rank_interval[0] == 1  # one question of ten does not tell it from the weak model
    assert mine["human:A"].rank_interval[1] == 2
    assert [place.system[0] for place in together if not place.system[0].startswith("human")] == ["good", "weak"]


def test_people_are_pooled_question_by_question() -> None:
    rows = [*single("1100", "human:A"), *single("10", "human:B"), *single("1111", "m")]
    (found,) = accuracies(pooled_people(rows))
    assert (found.model, found.planned, found.questions, found.correct) == ("human experts", 6, 4, 3)
    (part,) = accuracies(pooled_people(rows, name="inside", only={("human:A", "q0000"), ("human:B", "q0001")}))
    assert (part.model, part.planned, part.correct) == ("inside", 2, 1)


@settings(deadline=None)
@given(boards, st.randoms(use_true_random=False))
def test_bounds_order_and_seed(patterns: list[str], random: object) -> None:
    rows = [row for number, marks in enumerate(patterns) for row in single(marks, f"m{number}")]
    mixed = list(rows)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    board = leaderboard(rows, samples=30, seed=9)
    assert board == leaderboard(mixed, samples=30, seed=9)
    for place in board:
        assert 1 <= place.rank_interval[0] <= place.rank_interval[1] <= len(patterns)
        assert 1 <= place.rank <= len(patterns)
    assert [place.rank for place in board] == sorted(place.rank for place in board)
