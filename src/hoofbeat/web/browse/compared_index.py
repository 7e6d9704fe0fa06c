"""Two folders of answers set against each other: the comparison's figures, and how every question changed."""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from hoofbeat.findings import Accuracy, SystemDifference
from hoofbeat.findings.flips import CHANGES, change
from hoofbeat.reports.comparison.answers import AnswersComparison, Pair, Place, compare_answers
from hoofbeat.reports.comparison.answers_page import warnings_of
from hoofbeat.web.browse.links import reference_of
from hoofbeat.web.browse.preparing import prepare_in_background
from hoofbeat.web.library import Folder
from hoofbeat.web.site import Site

__all__ = ["FolderComparison", "SystemPairSummary", "open_beside"]

SAME = -1
"""The code of a question that did not change, or was not put to both systems."""


class SystemPairSummary(Struct, frozen=True, kw_only=True):
    """Two systems: in words, how they differ, how often each was right, and how many questions changed in which way."""

    number: int
    title: str
    pair: Pair
    difference: SystemDifference
    accuracies: tuple[Accuracy, Accuracy]
    flips: dict[str, int]


class FolderComparison(Struct, frozen=True, kw_only=True):
    """The comparison of two folders; `changes` has a row a pair and a column a question, codes of `CHANGES`."""

    pairs: tuple[SystemPairSummary, ...]
    warnings: tuple[str, ...]
    questions: tuple[str, ...]
    changes: NDArray[np.int8]

    def changed(self, pair: int, how: str = "") -> list[tuple[str, str]]:
        """The questions that changed between two systems, with how they did; in one way only if that is named."""
        row = self.changes[pair]
        places = np.flatnonzero(row == CHANGES.index(how) if how in CHANGES else row != SAME)
        return [(self.questions[place], CHANGES[row[place]]) for place in places.tolist()]


def open_beside(site: Site, first: Folder, second: Folder, *, patience: float | None = None) -> FolderComparison | None:
    """The comparison, kept until one of the folders changes; None while it is being made."""
    stamp = reference_of(site, second)
    return prepare_in_background(
        site, first, f"beside {second.slug} {stamp}", lambda each: _beside(each, second), patience=patience
    )


def _beside(first: Folder, second: Folder) -> FolderComparison:
    compared = compare_answers([first.path, second.path])
    names = tuple(compared.questions)
    changes = np.full((len(compared.pairs), len(names)), SAME, np.int8)
    codes = {name: code for code, name in enumerate(CHANGES)}
    for row, pair in enumerate(compared.pairs):
        before, after = compared.results[pair.first], compared.results[pair.second]
        for column, name in enumerate(names):
            if name in before and name in after and (how := change(before[name], after[name])):
                changes[row, column] = codes[how]
    return FolderComparison(
        pairs=tuple(_pair(compared, number, changes[number]) for number in range(len(compared.pairs))),
        warnings=tuple(warnings_of(compared)),
        questions=names,
        changes=changes,
    )


def _pair(compared: AnswersComparison, number: int, changes: NDArray[np.int8]) -> SystemPairSummary:
    pair = compared.pairs[number]
    counts = np.bincount(changes[changes != SAME], minlength=len(CHANGES)).tolist()
    scores: dict[Place, Accuracy] = compared.accuracies
    return SystemPairSummary(
        number=number,
        title=compared.title(pair),
        pair=pair,
        difference=compared.differences[number],
        accuracies=(scores[pair.first], scores[pair.second]),
        flips={name: count for name, count in zip(CHANGES, counts, strict=True) if count},
    )
