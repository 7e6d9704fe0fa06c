"""Does economy say what full judging would? A sample of the spread labels is judged for real and compared.

The sample is drawn by a hash of each pair and the seed, so it is the same in whatever order and in however many shards
the pairs come, and needs no more memory than its size.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter
from collections.abc import Iterable
from typing import Protocol, TypeVar

from msgspec import Struct

from hoofbeat.errors import UsageError
from hoofbeat.records import Comparison

SPREAD = "group"
"""The basis of a label that was spread over its group and not judged."""


class _OfPair(Protocol):
    @property
    def question(self) -> str: ...
    @property
    def a(self) -> str: ...
    @property
    def b(self) -> str: ...


Row = TypeVar("Row", bound=_OfPair)


class EconomyCheck(Struct, frozen=True, kw_only=True):
    """How spread labels compare with the judge's own on a sample of them.

    `spread` pairs have a label that was spread, `exact` one of their own. `n` of the spread ones were judged for real,
    `agree` of them with the same label; `unscored` more could not be judged. `table` counts (spread, judged) labels.
    """

    spread: int
    exact: int
    n: int
    agree: int
    unscored: int
    table: tuple[tuple[str, str, int], ...]

    @property
    def agreement(self) -> float | None:
        """The share of the sample that agrees; None where there is no sample."""
        return self.agree / self.n if self.n else None

    def overall(self, share: float) -> float:
        """The agreement over all judged pairs where that of the spread ones is this; the bounds of an interval, too.

        Pairs with a call of their own agree with full judging, since it would make the same call.
        """
        pairs = self.spread + self.exact
        return (self.exact + share * self.spread) / pairs if pairs else 1.0


def calls_saved(spread: int, judged: int, checked: int) -> str:
    """What economy saves where labels were spread, other pairs judged, and some of the spread ones judged to check."""
    pairs = spread + judged
    return f"× {pairs / max(judged, 1):.1f} fewer calls, × {pairs / max(judged + checked, 1):.1f} with the check's"


def check_sample(comparisons: Iterable[Comparison], n: int, seed: int) -> list[Comparison]:
    """At most `n` of the comparisons with a spread label, drawn evenly by the seed; sorted by question and sources."""
    if n < 0:
        raise UsageError(f"a sample of {n} pairs", fix="give 0 or more")
    spread = (each for each in comparisons if each.basis == SPREAD and each.failure is None)
    return draw_pairs(spread, n, seed)


def draw_pairs(rows: Iterable[Row], n: int, seed: int) -> list[Row]:
    """At most `n` of the rows, a pair each: a draw from the draws of all parts is the draw from the whole."""
    chosen = heapq.nsmallest(n, rows, key=lambda each: _draw(each, seed))
    return sorted(chosen, key=lambda each: (each.question, each.a, each.b))


def _draw(pair: _OfPair, seed: int) -> bytes:
    text = "\x1f".join((str(seed), pair.question, pair.a, pair.b))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def check_agreement(comparisons: Iterable[Comparison], real: Iterable[Comparison], absent: str) -> EconomyCheck:
    """Compare spread labels with real judgments of the same pairs; `absent` is the label that needs no judge."""
    known = {(each.question, each.a, each.b): each for each in real}
    table: Counter[tuple[str, str]] = Counter()
    spread = exact = unscored = 0
    for each in comparisons:
        if each.failure is not None or each.label == absent:
            continue
        if each.basis != SPREAD:
            exact += 1
            continue
        spread += 1
        judged = known.get((each.question, each.a, each.b))
        if judged is None:
            continue
        if judged.failure is not None:
            unscored += 1
        else:
            table[each.label, judged.label] += 1
    return EconomyCheck(
        spread=spread,
        exact=exact,
        n=table.total(),
        agree=sum(count for (one, two), count in table.items() if one == two),
        unscored=unscored,
        table=tuple((one, two, count) for (one, two), count in sorted(table.items())),
    )
