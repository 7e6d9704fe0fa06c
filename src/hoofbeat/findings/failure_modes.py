"""What kind of mistake: the share of each failure mode or error type among the answers that were explained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from hoofbeat.errors import InputError
from hoofbeat.findings.intervals import Interval, wilson
from hoofbeat.findings.outcomes import SystemKey, is_by, sensitivity_range
from hoofbeat.records import Judgment


class ModeShare(Struct, frozen=True, kw_only=True):
    """`count` of the `n` explained answers of one system have this label first; `share` with Wilson's interval.

    `secondary` counts the answers that have it as their second label; they are no part of `count`. `unscored` answers
    (the explanation failed) stay in `n`; `sensitivity` is (none of them, all of them this label) where they exceed 1%.
    """

    model: str
    condition: str
    aspect: str
    label: str
    n: int
    count: int
    share: float
    interval: Interval
    secondary: int
    unscored: int
    sensitivity: tuple[float, float] | None


def mode_shares(
    judgments: Iterable[Judgment],
    aspect: str,
    labels: Sequence[str] = (),
    *,
    judge: str | None = None,
    level: float = 0.95,
) -> list[ModeShare]:
    """Shares of the labels of one aspect for each system, sorted by name.

    `labels` gives the order, and rows for labels nobody got; without it the labels seen are sorted. People's labels
    are left aside unless one of them is the `judge` named.
    """
    first: dict[SystemKey, Counter[str]] = {}
    second: dict[SystemKey, Counter[str]] = {}
    failed: Counter[SystemKey] = Counter()
    seen: set[tuple[str, str, str, int]] = set()
    for judgment in judgments:
        if judgment.aspect != aspect or not is_by(judgment, judge):
            continue
        system = (judgment.model, judgment.condition)
        key = (judgment.question, *system, judgment.sample)
        if key in seen:
            raise InputError(
                f"two judgments of {aspect} for the answer of {key[1]} to {key[0]!r} ({key[2]})",
                fix="name one judge, or remove the repeated judgment",
            )
        seen.add(key)
        mine = first.setdefault(system, Counter())
        other = second.setdefault(system, Counter())
        if judgment.failure:
            failed[system] += 1
            continue
        for label in [judgment.label, *([judgment.secondary] if judgment.secondary else [])]:
            if not label or (labels and label not in labels):
                raise InputError(
                    f"unknown label {label!r} of {aspect} for question {judgment.question!r}",
                    fix=f"the labels are {', '.join(labels)}" if labels else "give every judgment a label",
                )
        mine[judgment.label] += 1
        if judgment.secondary:
            other[judgment.secondary] += 1
    order = list(labels) or sorted({label for counts in (*first.values(), *second.values()) for label in counts})
    return [
        _share(system, aspect, label, (first[system], second[system], failed[system]), level)
        for system in sorted(first)
        for label in order
    ]


def _share(
    system: SystemKey, aspect: str, label: str, counts: tuple[Counter[str], Counter[str], int], level: float
) -> ModeShare:
    first, second, failed = counts
    n, count = first.total() + failed, first[label]
    return ModeShare(
        model=system[0],
        condition=system[1],
        aspect=aspect,
        label=label,
        n=n,
        count=count,
        share=count / n,
        interval=wilson(count, n, level),
        secondary=second[label],
        unscored=failed,
        sensitivity=sensitivity_range(count / n, (count + failed) / n, failed / n),
    )
