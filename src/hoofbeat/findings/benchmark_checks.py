"""What a check of a benchmark adds up to, and whether something gives right options away more often than chance.

Three things may: the option's place, its length, and how well it is guessed without the case.

Questions may have different numbers of options, so the tests are exact or simulated under that: every option of a
question is equally likely to be the right one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

_DRAWS = 20_000


class ChanceTest(Struct, frozen=True, kw_only=True):
    """How often something held of the right option, how often chance lets it, and the one-sided probability."""

    observed: int
    n: int
    expected: float
    p: float


class PlaceTest(Struct, frozen=True, kw_only=True):
    """How often the right option is at each place, what chance lets expect, and the probability of such a spread."""

    counts: tuple[int, ...]
    expected: tuple[float, ...]
    n: int
    p: float


class CheckSummary(Struct, frozen=True, kw_only=True):
    """What a check adds up to. `longest` and `guess` are tests against chance, `place` one against an even spread."""

    questions: int
    with_options: int
    without_answer: int
    parts: tuple[str, ...]
    without_doubt: int
    doubts: dict[str, int]
    place: PlaceTest | None = None
    longest: ChanceTest | None = None
    guess: ChanceTest | None = None
    trials: dict[str, object] = {}


def chance_test(hits: Sequence[bool], options: Sequence[int]) -> ChanceTest | None:
    """Whether there are more hits than guessing gives: exact, for questions with any number of options."""
    if not hits:
        return None
    likely = np.ones(1)
    for count in options:
        likely = np.convolve(likely, (1 - 1 / count, 1 / count))
    observed = sum(hits)
    p = min(1.0, float(likely[observed:].sum()))
    return ChanceTest(
        observed=observed, n=len(hits), expected=round(sum(1 / count for count in options), 4), p=round(p, 6)
    )


def place_test(
    places: Sequence[int], options: Sequence[int], seed: int = 0, *, not_at: Sequence[int] = ()
) -> PlaceTest | None:
    """Whether places are spread evenly over the options, by Pearson's statistic and simulated draws.

    `not_at` is, for each question, a place that could not be taken: that of the right option, where wrong ones count.
    """
    if not places:
        return None
    width = max(options)
    groups = Counter(zip(options, not_at or [-1] * len(options), strict=True))
    open_places = {
        group: np.array([float(place < group[0] and place != group[1]) for place in range(width)]) for group in groups
    }
    expected = sum((n * open_places[group] / open_places[group].sum() for group, n in groups.items()), np.zeros(width))
    counts = np.bincount(places, minlength=width)
    rng = np.random.default_rng(seed)
    drawn = np.zeros((_DRAWS, width))
    for (size, without), n in sorted(groups.items()):
        free = [place for place in range(size) if place != without]
        drawn[:, free] += rng.multinomial(n, [1 / len(free)] * len(free), size=_DRAWS)
    weights = np.where(expected > 0, expected, 1.0)
    spread = ((drawn - expected) ** 2 / weights).sum(axis=1)
    own = float(((counts - expected) ** 2 / weights).sum())
    at_least = int((spread >= own - 1e-9).sum())
    return PlaceTest(
        counts=tuple(map(int, counts)),
        expected=tuple(round(float(each), 2) for each in expected),
        n=len(places),
        p=round((at_least + 1) / (_DRAWS + 1), 5),
    )
