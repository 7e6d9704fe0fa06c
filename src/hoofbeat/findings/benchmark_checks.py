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
    """Whether there are more hits than one in so many options gives: exact, for questions of any number of options."""
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


def place_test(places: Sequence[int], options: Sequence[int], seed: int = 0) -> PlaceTest | None:
    """Whether the right options are spread evenly over the places, by Pearson's statistic and simulated draws."""
    if not places:
        return None
    width = max(options)
    sizes = Counter(options)
    expected = np.array([sum(n / size for size, n in sizes.items() if size > place) for place in range(width)])
    counts = np.bincount(places, minlength=width)
    rng = np.random.default_rng(seed)
    drawn = np.zeros((_DRAWS, width))
    for size, n in sorted(sizes.items()):
        drawn[:, :size] += rng.multinomial(n, [1 / size] * size, size=_DRAWS)
    spread = ((drawn - expected) ** 2 / expected).sum(axis=1)
    own = float(((counts - expected) ** 2 / expected).sum())
    at_least = int((spread >= own - 1e-9).sum())
    return PlaceTest(
        counts=tuple(map(int, counts)),
        expected=tuple(round(float(each), 2) for each in expected),
        n=len(places),
        p=round((at_least + 1) / (_DRAWS + 1), 5),
    )
