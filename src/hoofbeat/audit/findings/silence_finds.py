"""What reviewers' finds say of silences: how many are misses, the rate of absence without them, and the recall.

A reviewer sees a silence with its proof and may say "it does say so". The pairs that people look at are drawn by label,
so silences of absent pairs are a sample of all silences. Sides of one pair hang together a little; the interval is
Wilson's and does not know that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from hoofbeat.findings.intervals import Interval, wilson

SAYS_SO = ("yes", "one", "no")
"""What a reviewer may say of the silent sides of a pair: every one says so, one of two does, none does."""


class SilenceFinds(Struct, frozen=True, kw_only=True):
    """Silences that reviewers looked at, and what they make of the audit's figures.

    `share` are silences that do say so, `absence` the share of silent answers without them, `recall` the share of what
    sources say that search and model found: answers that say something, of those and the silences that do say so.
    """

    silences: int
    found: int
    answered: int
    silent: int
    share: Interval
    absence: float
    corrected: tuple[float, float, float]
    recall: tuple[float, float, float]


def silence_finds(
    said: Mapping[tuple[str, str, str], Sequence[str]],
    silent_sides: Mapping[tuple[str, str, str], int],
    *,
    answered: int,
    silent: int,
) -> SilenceFinds | None:
    """The figures; None where nobody looked at a silence. Of several reviewers the most common view counts."""
    looked = found = 0
    for pair, views in said.items():
        sides = silent_sides.get(pair, 0)
        if not sides or not views:
            continue
        view = max(SAYS_SO, key=lambda each: (Counter(views)[each], -SAYS_SO.index(each)))
        looked += sides
        found += {"yes": sides, "one": 1, "no": 0}[view]
    if not looked:
        return None
    share = wilson(found, looked)
    asked = answered + silent
    point = found / looked
    kept = [1 - each for each in (point, share.high, share.low)]
    recall = [answered / (answered + each * silent) if answered else 0.0 for each in (point, share.high, share.low)]
    return SilenceFinds(
        silences=looked,
        found=found,
        answered=answered,
        silent=silent,
        share=share,
        absence=silent / asked,
        corrected=(kept[0] * silent / asked, kept[1] * silent / asked, kept[2] * silent / asked),
        recall=(recall[0], recall[1], recall[2]),
    )
