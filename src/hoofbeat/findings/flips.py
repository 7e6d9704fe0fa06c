"""Questions that flip between two systems: right by one, wrong by the other, or without a score from one of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from hoofbeat.findings.outcomes import Outcome

CHANGES = (
    "right → wrong",
    "wrong → right",
    "right → unscored",
    "wrong → unscored",
    "unscored → right",
    "unscored → wrong",
    "fewer samples right",
    "more samples right",
    "samples → unscored",
    "unscored → samples",
)
"""How a question can flip from the first system to the second; the last four where there are several samples."""


def change(before: Sequence[Outcome], after: Sequence[Outcome]) -> str:
    """How a question flipped, as one of `CHANGES`; empty where it did not."""
    if len(before) == len(after) == 1:
        states = _state(before[0]), _state(after[0])
        return "" if states[0] == states[1] else f"{states[0]} → {states[1]}"
    lost = [all(row.correct is None for row in rows) for rows in (before, after)]
    if lost[0] != lost[1]:
        return "samples → unscored" if lost[1] else "unscored → samples"
    shares = [sum(row.correct is True for row in rows) / len(rows) for rows in (before, after)]
    if shares[0] == shares[1]:
        return ""
    return "more samples right" if shares[1] > shares[0] else "fewer samples right"


def flips(first: Mapping[str, Sequence[Outcome]], second: Mapping[str, Sequence[Outcome]]) -> Counter[str]:
    """How often each change happened between two systems, over the questions planned for both."""
    found = Counter(change(rows, second[question]) for question, rows in first.items() if question in second)
    return Counter({name: found[name] for name in CHANGES if found[name]})


def standing(rows: Sequence[Outcome]) -> str:
    """How one system fared on a question, in words."""
    if len(rows) == 1:
        return _state(rows[0]) + (f" ({rows[0].unscored})" if rows[0].unscored else "")
    right, lost = sum(row.correct is True for row in rows), sum(row.correct is None for row in rows)
    return f"{right} of {len(rows)} right" + (f", {lost} unscored" if lost else "")


def _state(row: Outcome) -> str:
    return "unscored" if row.correct is None else "right" if row.correct else "wrong"


def tone_of_change(how: str) -> str:
    """Whether a change is for the better (`right`), for the worse (`wrong`), or can't be told (`unscored`)."""
    if how.endswith("→ right") or how.startswith("more"):
        return "right"
    return "wrong" if how.endswith("→ wrong") or how.startswith("fewer") else "unscored"
