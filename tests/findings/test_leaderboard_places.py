from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoofbeat.errors import UsageError
from hoofbeat.findings.accuracy import accuracies, leaderboard
from tests.findings.support import sampled, single

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


def test_only_shared_questions_decide() -> None:
    rows = [*single("11", "a"), *single("1000", "b"), *sampled({"q0000": "11", "q0001": "10"}, "c")]
    board = {place.system[0]: place for place in leaderboard(rows)}
    assert (board["a"].n, board["b"].left_out, board["a"].left_out) == (2, 2, 0)
    assert (board["b"].share, board["b"].accuracy.accuracy) == (0.5, 0.25)
    assert [board[name].rank for name in "acb"] == [1, 2, 3]
    with pytest.raises(UsageError, match="every system"):
        leaderboard([*single("1", "a"), *sampled({"elsewhere": "1"}, "b")])
    assert leaderboard([]) == []


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
