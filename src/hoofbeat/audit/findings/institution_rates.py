"""How often documents disagree within an institution and between two: does a difference lie between people or papers?

Documents of one institution that contradict each other are its own to mend; the rate between institutions says how far
care depends on where a patient goes. Intervals are from resampling questions, for pairs of one question hang together.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from hoofbeat.audit.findings.pair_arrays import AuditPairs
from hoofbeat.findings.intervals import CLUSTERED, mean_interval, resampled_sums

WITHIN, BETWEEN = "within", "between"


class InstitutionRate(Struct, frozen=True, kw_only=True):
    """The pairs of documents of one institution (`a`), or of two; of all institutions where neither is named.

    `rate` is the share of judged pairs that diverge, None where none was judged; `low` and `high` are its 95% interval.
    """

    kind: str
    a: str = ""
    b: str = ""
    pairs: int
    absent: int
    judged: int
    diverging: int
    rate: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def words(self) -> str:
        """Whose documents they are."""
        if not self.a:
            return "one institution" if self.kind == WITHIN else "two institutions"
        return f"{self.a} and {self.b}" if self.b else self.a


def institution_rates(pairs: AuditPairs, institution: Callable[[str], str]) -> list[InstitutionRate]:
    """Within and between over all, then for each institution and each two; none where each has one document."""
    owners = [institution(source) for source in pairs.sources]
    names = sorted(set(owners))
    codes = np.array([names.index(owner) for owner in owners], np.int64)
    first, second = (np.sort(np.stack([codes[pairs.a], codes[pairs.b]]), axis=0)) if len(codes) else (codes, codes)
    same = first == second
    if not same.any():
        return []
    found = [_rate(pairs, same, WITHIN), _rate(pairs, ~same, BETWEEN)]
    cells = first * len(names) + second
    there = [divmod(int(cell), len(names)) for cell in np.unique(cells)]
    for a, b in sorted(there, key=lambda each: (each[0] != each[1], each)):
        kind, other = (WITHIN, "") if a == b else (BETWEEN, names[b])
        found.append(_rate(pairs, cells == a * len(names) + b, kind, names[a], other))
    return found


def _rate(pairs: AuditPairs, chosen: NDArray[np.bool_], kind: str, a: str = "", b: str = "") -> InstitutionRate:
    masks = chosen & pairs.diverging, chosen & pairs.judged
    columns = np.stack([pairs.by_question(mask) for mask in masks], axis=1).astype(np.float64)
    diverging, judged = (int(mask.sum()) for mask in masks)
    span = rate_span(columns, resampled_sums(columns, seed=0)) or (None, None)
    return InstitutionRate(
        kind=kind,
        a=a,
        b=b,
        pairs=int(chosen.sum()),
        absent=int((chosen & pairs.has([pairs.domain.absent])).sum()),
        judged=judged,
        diverging=diverging,
        rate=diverging / judged if judged else None,
        low=span[0],
        high=span[1],
    )


def rate_span(columns: NDArray[np.float64], drawn: NDArray[np.float64]) -> tuple[float, float] | None:
    """The interval of a rate from the counts (and what they are of) by question, and their sums in each resample."""
    there = drawn[drawn[:, 1] > 0]
    if not columns[:, 1].any():
        return None
    found = mean_interval(columns[:, 0], columns[:, 1], there[:, 0] / there[:, 1], CLUSTERED)
    return found.low, found.high
