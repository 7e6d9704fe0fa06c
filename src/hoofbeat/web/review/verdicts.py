"""What reviewers' labels make of a question: it stays, it is changed, or it goes, and why.

The rules are those by which the recipes apply the same labels: ratings by their mean, one `no` on a leak, most of the
reviewers on a harvested question, what an expert excludes, a finding that no revision settles.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from hoofbeat.errors import InputError
from hoofbeat.recipes.cases.revising import ADD, DROP, LEVEL_1, LEVEL_2, PASSES
from hoofbeat.recipes.messages.duplicates import CRITERION as SAME
from hoofbeat.recipes.papers.cupcase import CRITERIA as LEAKS
from hoofbeat.recipes.papers.ogcare import CRITERIA as RATINGS
from hoofbeat.recipes.papers.r2med import CRITERIA as FLAGS
from hoofbeat.recipes.papers.sourceqa import CRITERIA as QUESTIONS
from hoofbeat.recipes.reviewing import ReviewLabel, read_rating, says_yes

__all__ = ["Rules", "Verdict", "by_item", "rules_of", "verdict"]

Labels = Mapping[str, Sequence[ReviewLabel]]

_SETTLES = {"options overlap": DROP, "options appropriate": DROP, "missing information": ADD}
_ANNOTATOR, _EXPERT = frozenset({"ok", "flag"}), frozenset({"keep", "exclude"})
_FORGIVEN = ("reasoning",)
_KNOWN = frozenset({*RATINGS, *LEAKS, *QUESTIONS, *FLAGS, *LEVEL_1, *LEVEL_2, DROP, ADD, SAME})


class Rules(Struct, frozen=True, kw_only=True):
    """The bounds that labels are held against; those of the recipe that made the benchmark, where it has them."""

    least_rating: float = 4.0
    review_rule: Literal["mean", "each"] = "mean"
    least_options: int = 2
    quote_match: float = 0.9


class Verdict(Struct, frozen=True, kw_only=True):
    """What becomes of a question: `reason` says why it goes; `drop` and `add` are what is changed where it stays.

    `waits` are criteria on which a word is still missing: an expert's on what was flagged.
    """

    reason: str = ""
    details: str = ""
    drop: tuple[str, ...] = ()
    add: tuple[str, ...] = ()
    waits: tuple[str, ...] = ()


def rules_of(settings: Mapping[str, Any]) -> Rules:
    """The rules for a benchmark by the settings it was made with."""
    known = {name: settings[name] for name in Rules.__struct_fields__ if name in settings}
    if settings.get("recipe") not in ("clinbench",):
        known.pop("least_options", None)
    return Rules(**known)


def by_item(labels: Iterable[ReviewLabel], where: str = "") -> dict[str, dict[str, list[ReviewLabel]]]:
    """The labels of each item by criterion. One whose criterion means nothing for a benchmark is refused."""
    found: dict[str, dict[str, list[ReviewLabel]]] = {}
    for label in labels:
        if label.criterion not in _KNOWN:
            raise InputError(
                f"the criterion {label.criterion!r} of a label for {label.item} says nothing about a benchmark",
                where=where or None,
                fix="apply labels of a review of a benchmark",
            )
        found.setdefault(label.item, defaultdict(list))[label.criterion].append(label)
    return found


def verdict(labels: Labels, rules: Rules, where: str = "") -> Verdict:
    """What the labels of one question come to; the first reason that is found is told."""
    for judge in (_rated, _leaking, _refused, _excluded, _found):
        reason, details = judge(labels, rules, where)
        if reason:
            return Verdict(reason=reason, details=details)
    flagged = [each for each in FLAGS if _values(labels, each) >= {"flag"} and not _values(labels, each) & _EXPERT]
    return Verdict(
        drop=tuple(dict.fromkeys(label.value for label in labels.get(DROP, ()))),
        add=tuple(dict.fromkeys(label.value for label in labels.get(ADD, ()))),
        waits=tuple(flagged),
    )


Judge = Callable[[Labels, Rules, str], tuple[str, str]]
_NOTHING = ("", "")


def _rated(labels: Labels, rules: Rules, where: str) -> tuple[str, str]:
    for criterion in RATINGS:
        ratings = [read_rating(label, where) for label in labels.get(criterion, ())]
        if not ratings:
            continue
        low = min(ratings) if rules.review_rule == "each" else sum(ratings) / len(ratings)
        if low < rules.least_rating:
            given = ", ".join(f"{rating:g}" for rating in ratings)
            return f"rated below {rules.least_rating:g} on {criterion}", f"ratings {given}"
    return _NOTHING


def _leaking(labels: Labels, _rules: Rules, where: str) -> tuple[str, str]:
    for criterion in LEAKS:
        against = [label for label in labels.get(criterion, ()) if not says_yes(label, where)]
        if against:
            return f"a reviewer says no: {criterion}", _notes(against)
    return _NOTHING


def _refused(labels: Labels, _rules: Rules, where: str) -> tuple[str, str]:
    for criterion in QUESTIONS:
        against = [not says_yes(label, where) for label in labels.get(criterion, ())]
        if sum(against) * 2 > len(against):
            return f"reviewers: not {criterion}", f"{sum(against)} of {len(against)}"
    return _NOTHING


def _excluded(labels: Labels, _rules: Rules, where: str) -> tuple[str, str]:
    for criterion in FLAGS:
        strange = sorted(_values(labels, criterion) - _ANNOTATOR - _EXPERT)
        if strange:
            raise InputError(
                f"the label {strange[0]!r} by {criterion!r} means nothing here",
                where=where or None,
                fix="an annotator says ok or flag, an expert keep or exclude",
            )
    out = [each for each in FLAGS if "exclude" in _values(labels, each)]
    if any(each not in _FORGIVEN for each in out):
        said = [label for each in out for label in labels[each] if label.value.strip().lower() == "exclude"]
        return "an expert excluded it in review", "; ".join(filter(None, (", ".join(out), _notes(said))))
    return _NOTHING


def _found(labels: Labels, _rules: Rules, _where: str) -> tuple[str, str]:
    for criterion in (*LEVEL_1, *LEVEL_2):
        last = {label.reviewer: label for label in labels.get(criterion, ())}
        findings = [label for label in last.values() if label.value.strip().casefold() not in PASSES]
        if findings and not labels.get(_SETTLES.get(criterion, "")):
            return f"a reviewer's finding: {criterion}", _notes(findings)
    return _NOTHING


def _values(labels: Labels, criterion: str) -> set[str]:
    return {label.value.strip().lower() for label in labels.get(criterion, ())}


def _notes(labels: Iterable[ReviewLabel]) -> str:
    return "; ".join(dict.fromkeys(label.note or label.value for label in labels))
