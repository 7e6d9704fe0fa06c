"""What `hoofbeat audit` and `audit merge` say of an audit when it is done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from hoofbeat.cli.console import Screen
from hoofbeat.findings.audits import flip_rates
from hoofbeat.findings.intervals import wilson
from hoofbeat.findings.relations import RelationLabels
from hoofbeat.judging import Audit

__all__ = ["economy_words", "say_outcome"]

_DOUBTS = ("no section named", "section not shown", "quote not found", "quote elsewhere", "quote too short")


def say_outcome(screen: Screen, audit: Audit) -> None:
    """Say how pairs came to their labels, what is doubtful in citations, and what the probes found."""
    metrics = cast("dict[str, Any]", audit.artefact.manifest.metrics)
    bases = metrics.get("basis", {})
    if bases:
        told = ", ".join(f"{count:,} {name}" for name, count in bases.items())
        screen.say(f"pairs by how they got their label ({audit.mode} judging): {told}")
    cited = metrics.get("citations", {})
    doubts = ", ".join(f"{cited[name]:,} {name}" for name in _DOUBTS if cited.get(name))
    if doubts:
        screen.say(f"citations of {cited.get('answers', 0):,} answers that are doubtful: {doubts}")
    if metrics.get("label_only"):
        screen.say(f"{metrics['label_only']:,} judgments could be read for their label only")
    if probes := audit.order_probes:
        found = flip_rates(((each.label, each.swapped) for each in probes), RelationLabels.of(audit.pack.labels))
        screen.say(
            f"with the answers exchanged, {found.flips} of {found.n} labels changed "
            f"(95% interval {found.interval.low:.1%} to {found.interval.high:.1%})"
        )
    if check := metrics.get("economy"):
        screen.say(economy_words(check))
    for reason, count in audit.artefact.manifest.counts.reasons.items():
        screen.say(f"left out: {count:,} rows ({reason})")


def economy_words(check: Mapping[str, int]) -> str:
    """How many labels economy spread, and how many of those that were judged for real agree."""
    if not check["spread"]:
        return "economy: no label was spread over a group, so there was nothing to check"
    told = f"economy: {check['spread']:,} labels were spread over groups"
    if not check["checked"]:
        return f"{told}; none was judged for real"
    span = wilson(check["agree"], check["checked"])
    return (
        f"{told}; of {check['checked']} judged for real, "
        f"{check['agree']} agree (95% interval {span.low:.1%} to {span.high:.1%})"
    )
