"""How tables and captions name intervals: by the method that each interval records, never by what is usual.

Resampling gives way to a score interval where it sees too little, so one table can hold intervals by several methods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from hoofbeat.findings.intervals import SAMPLES, Interval, cluster_of
from hoofbeat.reports.tables import count_of
from hoofbeat.text import some_of

BY = "interval by"
"""The column that names the method."""

UNKNOWN = "not recorded"
_NAMED = 6
_WHY = "Where few questions differ or nearly all go the same way, a score interval replaces the bootstrap's."


def method_words(named: Iterable[tuple[str, Interval | str | None]]) -> str:
    """The method of most intervals, then the others with the figures they belong to; a method may come by its name.

    `cluster bootstrap; Wilson's score for R@1, R@10`.
    """
    found: dict[str, list[str]] = {}
    for what, interval in named:
        if interval is not None:
            method = interval.by if isinstance(interval, Interval) else interval or UNKNOWN
            found.setdefault(method, []).append(what)
    first, *others = sorted(found, key=lambda method: (-len(found[method]), "bootstrap" not in method)) or [""]
    rest = [f"{method} for {some_of(list(dict.fromkeys(found[method])), _NAMED)}" for method in others]
    return "; ".join([first, *rest])


def interval_method(interval: Interval | None) -> str | None:
    """The method as a cell of a table; None where there is no interval."""
    return interval.by if interval else None


def interval_note(intervals: Iterable[Interval | None], *, seed: int = 0, column: str = BY) -> str:
    """Which methods the intervals of a table are by; `column` names the one that tells them apart."""
    counts = Counter(each.by for each in intervals if each is not None)
    if not counts:
        return ""
    drawn = f" ({SAMPLES:,} samples, seed {seed})"
    methods = [name + (drawn if "bootstrap" in name else "") for name, _ in counts.most_common()]
    if len(methods) == 1:
        return f"95% intervals: {methods[0]}."
    mixed = f" {_WHY}" if any("bootstrap" in name for name in counts) else ""
    return f"95% intervals: {', '.join(methods[:-1])} or {methods[-1]}; see “{column}”.{mixed}"


def questions_in(questions: Collection[str], clusters: Mapping[str, str] | None) -> str:
    """The unit of a table of questions: `questions in 250 clusters` where some have the same documents."""
    return clustered_unit(len(questions), len({cluster_of(each, clusters) for each in questions}))


def clustered_unit(questions: int, clusters: int) -> str:
    """The same from the numbers of questions and of clusters."""
    return f"questions in {count_of(clusters, 'cluster')}" if 0 < clusters < questions else "questions"
