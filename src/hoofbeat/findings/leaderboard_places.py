"""Who is first, and how sure that is: systems by accuracy with intervals of their places."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from msgspec import Struct

from hoofbeat.errors import UsageError
from hoofbeat.findings.accuracy import Accuracy, accuracies
from hoofbeat.findings.clusters import cluster_of
from hoofbeat.findings.intervals import SAMPLES
from hoofbeat.findings.outcomes import Outcome, SystemKey, by_system, per_question
from hoofbeat.findings.systems import rank_intervals

_SAME = 1e-12


class LeaderboardRow(Struct, frozen=True, kw_only=True):
    """One system's place (1 is best; equals share a place, and `tied` counts the others there) and its interval.

    Places are by `share`, the mean over the `n` questions put to every system; `accuracy` is over everything that was
    planned for this one, `left_out` of whose questions some other system was not asked.
    """

    system: SystemKey
    accuracy: Accuracy
    rank: int
    rank_interval: tuple[int, int]
    share: float
    n: int
    left_out: int
    tied: int = 0


def leaderboard(
    results: Iterable[Outcome],
    *,
    clusters: Mapping[str, str] | None = None,
    samples: int = SAMPLES,
    level: float = 0.95,
    seed: int = 0,
) -> list[LeaderboardRow]:
    """Systems, best first, equals by name. Only questions put to every system decide the places.

    The place's interval: the same questions (clusters) are drawn again for all systems, and ranked anew each time;
    systems that come out equal share all the places that they take up together.
    """
    systems = by_system(results)
    if not systems:
        return []
    shares = {system: per_question(rows) for system, rows in sorted(systems.items())}
    common = sorted(set.intersection(*(set(share.questions) for share in shares.values())))
    if not common:
        raise UsageError("no question was put to every system", fix="rank the systems of one benchmark")
    matrix = np.stack([share.low[np.searchsorted(np.array(share.questions), common)] for share in shares.values()])
    labels = [cluster_of(question, clusters) for question in common]
    places = rank_intervals(matrix, labels, samples, level, seed)
    means = matrix.mean(axis=1)
    scores = accuracies(
        (row for rows in systems.values() for row in rows), clusters=clusters, samples=samples, level=level, seed=seed
    )
    table = [
        LeaderboardRow(
            system=system,
            accuracy=score,
            rank=1 + int((means > mean + _SAME).sum()),
            rank_interval=place,
            share=float(mean),
            n=len(common),
            left_out=len(shares[system].questions) - len(common),
            tied=int((np.abs(means - mean) <= _SAME).sum()) - 1,
        )
        for system, score, mean, place in zip(shares, scores, means, places, strict=True)
    ]
    return sorted(table, key=lambda row: (row.rank, row.system))
