"""What `hoofbeat audit` and `audit merge` say of an audit when it is done."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, cast

from hoofbeat.audit import Audit, AuditPlan
from hoofbeat.audit.economy.economy_check import calls_saved
from hoofbeat.audit.findings import flip_rates
from hoofbeat.audit.findings.relations import RelationLabels
from hoofbeat.cli.console import Screen
from hoofbeat.errors import UsageError
from hoofbeat.facets import facet_values
from hoofbeat.findings.intervals import wilson
from hoofbeat.reports.words import count_of
from hoofbeat.text import some_of

__all__ = ["economy_words", "say_outcome", "say_uncompared"]

_SOME = 8
_DOUBTS = ("no section named", "section not shown", "quote not found", "quote elsewhere", "quote too short")


def say_uncompared(screen: Screen, plan: AuditPlan) -> None:
    """Say which questions nothing can be compared on, and why; refuse a plan that has no others."""
    alone = plan.uncompared
    if not alone:
        return
    groups = _named({name for question in alone for name in facet_values(question.facets, "group") or ["general"]})
    facet = plan.pack.group_facet
    there = _named({name for source in plan.sources for name in facet_values(source.facets, facet) if name})
    why = f"their facet group is {groups}, the facet {facet} of the sources is {there or 'not given'}"
    if len(alone) == len(plan.questions):
        raise UsageError(
            f"no question is put to two sources, so there is nothing to compare ({why})",
            fix="name more sources, or correct the facets",
        )
    screen.say(
        f"note: {len(alone):,} of {len(plan.questions):,} questions can't be compared, because fewer than two sources "
        f"are asked: {_named([question.id for question in alone])} ({why})"
    )


def _named(names: Collection[str]) -> str:
    """Some of the names, and how many more there are; those that come in no order are sorted."""
    return some_of(sorted(names) if isinstance(names, set) else list(names), _SOME)


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
        screen.say(f"citations of {count_of(cited.get('answers', 0), 'answer')} that are doubtful: {doubts}")
    if metrics.get("label_only"):
        screen.say(f"{count_of(metrics['label_only'], 'judgment')} could be read for the label only")
    if probes := audit.order_probes:
        found = flip_rates(((each.label, each.swapped) for each in probes), RelationLabels.of(audit.pack.labels))
        screen.say(
            f"with the answers exchanged, {found.flips} of {found.n} labels changed "
            f"(95% interval {found.interval.low:.1%} to {found.interval.high:.1%})"
        )
    if check := metrics.get("economy"):
        screen.say(economy_words(check, bases.get("judged", 0)))
    for reason, count in audit.artefact.manifest.counts.reasons.items():
        screen.say(f"left out: {count_of(count, 'row')} ({reason})")


def economy_words(check: Mapping[str, int], judged: int) -> str:
    """How many labels economy spread beside so many judged ones, what that saves, and how many of a sample agree."""
    if not check["spread"]:
        return "economy: no label was spread over a group, so nothing was saved and there was nothing to check"
    told = (
        f"economy: {check['spread']:,} labels were spread over groups, {judged:,} pairs had a call of their own "
        f"({calls_saved(check['spread'], judged, check['checked'] + check.get('unscored', 0))})"
    )
    if not check["checked"]:
        return f"{told}; none was judged for real"
    span = wilson(check["agree"], check["checked"])
    return (
        f"{told}; of {check['checked']} judged for real, "
        f"{check['agree']} agree (95% interval {span.low:.1%} to {span.high:.1%})"
    )
