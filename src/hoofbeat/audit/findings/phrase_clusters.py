"""Phrases to groups by their vectors: average linkage over cosines, the same groups for the same phrases every time.

Vectors of unit length make average linkage cheap: the mean cosine between two groups is the dot product of their mean
vectors. The whole tree is built by following nearest neighbours (each chain ends in two that are each other's nearest)
and cut where the mean cosine falls below a threshold, or where so many groups are left. Many thousands of phrases are
first put together with the ones they almost repeat. Nothing is random.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hoofbeat.errors import UsageError

Vectors = NDArray[np.float32]

_FREE, _MAX_GROUPS = 4000, 8000
"""Up to so many phrases go into the tree as they are; so many groups at most, as its table of cosines is square."""

_LOOSER = (0.8, 0.6, 0.4, 0.2, 0.0)
_BLOCK = 512
_DIGITS = 4
"""Cosines are rounded: what single precision adds behind must not decide between two machines."""


def cluster(
    vectors: Vectors,
    *,
    threshold: float | None = None,
    k: int | None = None,
    free: int = _FREE,
    max_groups: int = _MAX_GROUPS,
) -> NDArray[np.int64]:
    """A group for each vector, numbered in the order they first appear.

    Give either the `threshold` that the mean cosine of two groups must reach for them to be one, or the number `k` of
    groups. More than `free` vectors are first joined with what they almost repeat (a cosine of 0.8, or the threshold
    where that is higher), and more loosely only as long as more than `max_groups` groups would be left.
    """
    if (threshold is None) == (k is None):
        raise UsageError("give either a threshold or a number of groups", fix="not both, not neither")
    if k is not None and k < 1:
        raise UsageError(f"{k} groups can't be made", fix="give 1 or more")
    if not len(vectors):
        return np.empty(0, np.int64)
    first = np.arange(len(vectors))
    if len(vectors) > free:
        first = leaders(vectors, max(_LOOSER[0], threshold or 0.0))
        for looser in _LOOSER[1:]:
            if first.max() < max_groups:
                break
            first = leaders(vectors, looser)
    size = int(first.max()) + 1
    sums = np.zeros((size, vectors.shape[1]), np.float64)
    np.add.at(sums, first, vectors.astype(np.float64))
    weights = np.bincount(first, minlength=size).astype(np.float64)
    return _numbered(_cut(_tree(sums, weights), size, threshold, k)[first])


def leaders(vectors: Vectors, threshold: float) -> NDArray[np.int64]:
    """Each vector with the nearest earlier one that leads a group, where their cosine reaches the threshold.

    One that is near to no leader leads a group of its own. Groups are numbered in the order of their leaders.
    """
    leading = np.empty_like(vectors)
    group = np.empty(len(vectors), np.int64)
    count = 0
    for start in range(0, len(vectors), _BLOCK):
        block = vectors[start : start + _BLOCK]
        before = count
        best, cosine = np.full(len(block), -1), np.full(len(block), -2.0)
        if before:
            cosines = np.round(block @ leading[:before].T, _DIGITS)
            best = cosines.argmax(axis=1)
            cosine = cosines[np.arange(len(block)), best]
        among = np.round(block @ block.T, _DIGITS)
        mine: list[int] = []
        for row in range(len(block)):
            if mine:
                near = int(among[row, mine].argmax())
                if among[row, mine[near]] > cosine[row]:
                    best[row], cosine[row] = before + near, among[row, mine[near]]
            if cosine[row] >= threshold:
                group[start + row] = best[row]
            else:
                group[start + row] = before + len(mine)
                mine.append(row)
        leading[before : before + len(mine)] = block[mine]
        count = before + len(mine)
    return group


def _tree(sums: NDArray[np.float64], weights: NDArray[np.float64]) -> list[tuple[float, int, int]]:
    """Every merge (mean cosine, one group, the other, which is no more), by the chain of nearest neighbours."""
    means = (sums / weights[:, None]).astype(np.float32)
    near = means @ means.T
    np.round(near, _DIGITS, out=near)
    np.fill_diagonal(near, -np.inf)
    sizes = weights.astype(np.float32)
    gone_by = np.zeros(len(sizes), np.float32)  # minus infinity for groups that are no more
    merges: list[tuple[float, int, int]] = []
    chain: list[int] = []
    while len(merges) < len(sizes) - 1:
        if not chain:
            chain.append(int(gone_by.argmax()))
        while True:
            tip = chain[-1]
            other = int((near[tip] + gone_by).argmax())
            if len(chain) > 1 and near[tip, chain[-2]] >= near[tip, other]:
                other = chain[-2]
                break
            chain.append(other)
        del chain[-2:]
        kept, gone = min(tip, other), max(tip, other)
        merges.append((float(near[kept, gone]), kept, gone))
        near[kept] = (sizes[kept] * near[kept] + sizes[gone] * near[gone]) / (sizes[kept] + sizes[gone])
        near[kept, kept] = -np.inf
        near[:, kept] = near[kept]
        sizes[kept] += sizes[gone]
        gone_by[gone] = -np.inf
    return merges


def _cut(merges: list[tuple[float, int, int]], size: int, threshold: float | None, k: int | None) -> NDArray[np.int64]:
    """The groups that are left when only the nearest merges are made."""
    ordered = sorted(merges, key=lambda merge: -merge[0])
    if threshold is not None:
        ordered = [merge for merge in ordered if merge[0] >= threshold]
    else:
        ordered = ordered[: max(0, size - (k or 1))]
    parent = list(range(size))

    def root(place: int) -> int:
        while parent[place] != place:
            parent[place] = parent[parent[place]]
            place = parent[place]
        return place

    for _, kept, gone in ordered:
        one, two = sorted((root(kept), root(gone)))
        parent[two] = one
    return np.array([root(place) for place in range(size)], np.int64)


def _numbered(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Groups numbered in the order they first appear."""
    _, first, places = np.unique(groups, return_index=True, return_inverse=True)
    order = np.empty(len(first), np.int64)
    order[np.argsort(first)] = np.arange(len(first))
    numbered: NDArray[np.int64] = order[places]
    return numbered
