"""The draw for people: every answer is equally likely, every system gives its share, and corrections come right."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoofbeat.findings.corrected_scores import corrected_accuracies
from hoofbeat.findings.outcomes import Outcome
from hoofbeat.judging.stratified_sample import ReservoirSample, allot, allot_within

SYSTEMS = [f"model {number:02}" for number in range(20)]
DRAWS = 400


@given(
    st.dictionaries(st.tuples(st.text(max_size=3)), st.integers(0, 50), max_size=12),
    st.integers(0, 200),
    st.integers(0, 1000),
)
def test_shares_are_rounded_to_either_side_and_add_up(sizes: dict[tuple[str], int], count: int, seed: int) -> None:
    given_ = allot(sizes, count, seed)  # type: ignore[arg-type]
    total = sum(sizes.values())
    assert sum(given_.values()) == min(count, total)
    for name, size in sizes.items():
        due = min(count, total) * size / total if total else 0
        assert due - 1 < given_[name] < due + 1
        assert 0 <= given_[name] <= size


def test_small_strata_give_their_share_on_average() -> None:
    """Twenty systems of ninety right and ten wrong answers, sixty labels: 0.3 of a wrong one is due to each system."""
    sizes: dict[tuple[str, ...], int] = {
        (model, "closed", label): size for model in SYSTEMS for label, size in (("right", 90), ("wrong", 10))
    }
    found: Counter[tuple[str, ...]] = Counter()
    for seed in range(DRAWS):
        given_ = allot_within(sizes, 60, seed)
        found.update(given_)
        for model in SYSTEMS:
            assert sum(number for name, number in given_.items() if name[0] == model) == 3
    for model in SYSTEMS:
        assert found[model, "closed", "wrong"] / DRAWS == pytest.approx(0.3, abs=0.1)
    assert sum(found[model, "closed", "wrong"] for model in SYSTEMS) / DRAWS == pytest.approx(6, abs=0.4)


def test_every_item_is_equally_likely() -> None:
    """Strata of 1, 2, 4 and 9 in two systems; each of the 32 items is in a quarter of all draws."""
    items = [
        (model, "closed", label, number)
        for model, (label, size) in product(("a", "b"), (("w", 1), ("x", 2), ("y", 4), ("z", 9)))
        for number in range(size)
    ]
    sizes: Counter[tuple[str, ...]] = Counter(item[:3] for item in items)
    found: Counter[object] = Counter()
    draws = 3000
    for seed in range(draws):
        given_ = allot_within(sizes, 8, seed)
        for stratum, count in given_.items():
            draw: ReservoirSample[object] = ReservoirSample(count, seed)
            for item in items:
                if item[:3] == stratum:
                    draw.offer((item[0], item[1], item[2], item[3]), item)
            found.update(draw.drawn())
    assert {name: found[name] / draws for name in items} == pytest.approx(dict.fromkeys(items, 0.25), abs=0.04)


def sheets(judge_right: float, judge_wrong: float, labels: int) -> dict[str, list[float]]:
    """Corrected and plain scores over many sheets, of systems of which people find 90 of 100 answers right.

    The judge calls the right ones right with one chance and the wrong ones with another. Over all draws and systems,
    the mean error of: the judge alone, people alone, and the plain and the tuned correction.
    """
    errors: dict[str, list[float]] = {name: [] for name in ("judge", "people", "plain", "tuned")}
    luck = random.Random(5)
    truth = {(model, n): n >= 10 for model in SYSTEMS for n in range(100)}
    judge = {key: luck.random() < (judge_right if right else judge_wrong) for key, right in truth.items()}
    sizes: Counter[tuple[str, ...]] = Counter((key[0], "closed", str(judge[key])) for key in truth)

    def outcome(key: tuple[str, int], right: bool) -> Outcome:
        return Outcome(question=f"q{key[1]}", model=key[0], condition="closed", sample=0, correct=right)

    by_judge = [outcome(key, right) for key, right in judge.items()]
    for seed in range(40):
        draws = {
            stratum: ReservoirSample[tuple[str, int]](count, seed)
            for stratum, count in allot_within(sizes, labels, seed).items()
        }
        for key in truth:
            draws[key[0], "closed", str(judge[key])].offer((f"q{key[1]}", key[0], "closed", 0), key)
        people = [outcome(key, truth[key]) for draw in draws.values() for key in draw.drawn()]
        for tuned in (True, False):
            for row in corrected_accuracies(by_judge, people, tuned=tuned):
                score = row.score
                assert score.estimate is not None
                assert score.judge is not None
                assert score.classical is not None
                errors["tuned" if tuned else "plain"].append(score.estimate - 0.9)
                errors["judge"].append(score.judge - 0.9)
                errors["people"].append(score.classical - 0.9)
    return errors


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def test_a_perfect_judge_is_corrected_to_what_is_right() -> None:
    """Sixty labels for twenty systems: three each. People alone are right on average, and the correction is exact."""
    errors = sheets(1.0, 0.0, 60)
    assert mean(errors["people"]) == pytest.approx(0, abs=0.01)
    assert max(map(abs, errors["plain"])) < 0.01


@pytest.mark.parametrize("judge", [(0.8, 0.0), (1.0, 0.6), (0.7, 0.5)])
def test_a_biased_judge_is_corrected_without_bias(judge: tuple[float, float]) -> None:
    """Twenty labels a system. Choosing the judge's weight by so few of them leaves a little bias of its own."""
    errors = sheets(*judge, labels=400)
    assert abs(mean(errors["judge"])) > 0.04
    assert mean(errors["people"]) == pytest.approx(0, abs=0.008)
    assert mean(errors["plain"]) == pytest.approx(0, abs=0.008)
    assert mean(errors["tuned"]) == pytest.approx(0, abs=0.012)
