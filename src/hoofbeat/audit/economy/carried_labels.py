"""Which pairs of a question are judged where its answers are sorted into positions, and which label the others carry.

One pair speaks for every two positions, and one for a position of three answers or more; the two answers of a position
of two agree, as they were sorted. The pair is that of the plainest answers. All other pairs carry its label. Pairs in
`own` are judged for themselves, whatever the positions say: those that a check drew, for example. Where positions are
`confirmed`, three pairs are judged for every two positions (as far as there are three), and the label that most of
them have is carried: one wrong judgment does not decide for many pairs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
from msgspec import Struct, field

from hoofbeat.audit.economy.positions import Position
from hoofbeat.audit.pair_plan import GROUP, Numbers, PairPlan, PairVerdict, text_classes

_VOTERS = 3

AskedPair = tuple[int, int]
"""A pair that a plan asks: the places of two claims in the order the judge is shown them."""


class QuestionPositions(Struct):
    """The positions of one question's answers, by places of claims, and the pairs that are judged for themselves.

    Of claims with the same text one is named, and speaks for all.
    """

    positions: list[Position]
    own: set[AskedPair] = field(default_factory=set)
    confirmed: bool = False

    def split(self, number: int, leaving: Sequence[int]) -> int:
        """Let some answers leave a position for a new one of theirs; its number."""
        old = self.positions[number]
        self.positions[number] = Position(tuple(place for place in old.members if place not in leaving), old.line)
        self.positions.append(Position(tuple(leaving)))
        return len(self.positions) - 1


class CarriedPlan(Struct, frozen=True):
    """A plan in which fewer pairs are asked, and for each pair of the whole plan's `asked` the position of both sides.

    `asked_by` says for each pair that the whole plan asks which pair speaks for it: itself, another one, or none (-1).
    """

    plan: PairPlan
    homes: list[tuple[int, int]]
    asked_by: Numbers

    def inside(self, number: int) -> bool:
        """Whether both sides of this pair of the whole plan hold one position."""
        one, two = self.homes[number]
        return one == two


def carry(
    whole: PairPlan, held: QuestionPositions, known: Mapping[AskedPair, PairVerdict] = MappingProxyType({})
) -> CarriedPlan:
    """The plan in which one pair speaks for every two positions; `known` are the judgments made so far."""
    if not whole.asked:
        return CarriedPlan(whole, [], np.empty(0, np.int64))
    home, rank = _homes(whole, held.positions)
    sides = np.array(whole.asked, np.int64)
    homes, ranks = home[sides], rank[sides]
    key = homes.min(axis=1) * len(held.positions) + homes.max(axis=1)
    order = np.lexsort((ranks.sum(axis=1), ranks.max(axis=1), key))  # stable: among equals the first asked
    _, start, kind, count = np.unique(key[order], return_index=True, return_inverse=True, return_counts=True)
    asked_by = np.empty(len(key), np.int64)
    asked_by[order] = order[start][kind]
    sizes = np.empty(len(key), np.int64)
    sizes[order] = count[kind]
    asked_by[(homes[:, 0] == homes[:, 1]) & (sizes == 1)] = -1
    own = np.array([pair in held.own for pair in whole.asked], bool)
    if held.confirmed:
        for first, size in zip(start.tolist(), count.tolist(), strict=True):
            if size >= _VOTERS:
                voters = order[first : first + _VOTERS].tolist()
                own[voters] = True
                asked_by[order[first : first + size]] = _speaker(voters, whole, known)
    asked_by[own] = np.flatnonzero(own)
    return CarriedPlan(_narrowed(whole, asked_by, homes, held.positions), [(g, h) for g, h in homes.tolist()], asked_by)


def _speaker(voters: Sequence[int], whole: PairPlan, known: Mapping[AskedPair, PairVerdict]) -> int:
    """The first of the pairs that has the label which most of them have; the first one while none is judged."""
    judged = {number: known[whole.asked[number]] for number in voters if whole.asked[number] in known}
    labels = Counter(verdict.label for verdict in judged.values() if verdict.failure is None)
    if not labels:
        return voters[0]
    most = labels.most_common(1)[0][0]  # among equals that of the plainest pair
    return next(number for number, verdict in judged.items() if verdict.label == most)


def _homes(whole: PairPlan, positions: Sequence[Position]) -> tuple[Numbers, Numbers]:
    """For each claim the number of its position, and its place there; -1 for a claim that holds none."""
    classes = text_classes(whole.claims)
    by_class = {
        int(classes[place]): (number, rank)
        for number, position in enumerate(positions)
        for rank, place in enumerate(position.members)
    }
    found = np.array([by_class.get(int(each), (-1, -1)) for each in classes], np.int64)
    return found[:, 0], found[:, 1]


def _narrowed(whole: PairPlan, asked_by: Numbers, homes: Numbers, positions: Sequence[Position]) -> PairPlan:
    chosen = np.flatnonzero(asked_by == np.arange(len(asked_by)))
    place = np.full(len(asked_by) + 1, -1, np.int64)  # the last is that of none
    place[chosen] = np.arange(len(chosen))
    rows = np.flatnonzero(whole.by >= 0)
    of_row = whole.by[rows]
    by, basis = whole.by.copy(), whole.basis.copy()
    by[rows] = place[asked_by[of_row]]
    carried = asked_by[of_row] != of_row
    basis[rows[carried]] = GROUP
    unasked = asked_by[of_row] < 0
    lines = {
        row: positions[homes[number, 0]].line
        for row, number in zip(rows[unasked].tolist(), of_row[unasked].tolist(), strict=True)
    }
    return whole._replace(asked=[whole.asked[number] for number in chosen.tolist()], by=by, basis=basis, lines=lines)
