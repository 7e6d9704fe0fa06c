"""Why an audit can't tell that its sources agree, in words: for its manifest and the first lines of every page.

Few disagreements are good news only if the models could find them. A model that is too small, answers whose quotes are
not in the source, or hardly any compared pair would look the same, and a committee must not take them for agreement.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hoofbeat.audit.audit_folder import Audit
from hoofbeat.audit.source_citations import FOUND
from hoofbeat.models.embedded import DEFAULT_MODEL

WARNINGS = "warnings"
"""What the doubts are called among the metrics of a manifest; an audit without doubts has none."""

_TINY = f"embedded:{DEFAULT_MODEL}"
_COUNTS = ("answers", "citing")
_MIN_PAIRS = 3
_SHARE = 0.5
"""At least this share of answers has a quote that was found, and this many compared pairs per question are there."""


def audit_doubts(
    models: Mapping[str, str], cited: Mapping[str, int], *, judged: int, pairs: int, questions: int
) -> tuple[str, ...]:
    """The reasons for doubt, each as a part of a sentence; none where the audit can tell.

    `models` are identities by role, `cited` the counts of `count_citations`, `judged` the pairs with two answers and a
    label. Answers that were never checked against a source (those of a file) give no reason.
    """
    told = []
    if small := _small_roles(models):
        told.append(f"the model that {' and '.join(small)} has 135 million parameters, which is too small for this")
    answers = cited.get("answers", 0)
    grounded = min(sum(cited.get(name, 0) for name in FOUND), max(0, answers - cited.get("quote not found", 0)))
    checked = cited.get("citing", 0) or any(name not in _COUNTS and count for name, count in cited.items())
    if checked and grounded < _SHARE * answers:
        few = (
            f"only {grounded:,} of {answers:,} answers quote" if grounded else f"none of the {answers:,} answers quotes"
        )
        told.append(f"{few} words that were found in {'their' if grounded else 'its'} source")
    if pairs and (judged < min(pairs, _MIN_PAIRS) or judged < _SHARE * questions):
        told.append(f"only {judged:,} of {pairs:,} pairs of answers could be compared")
    return tuple(told)


def _small_roles(models: Mapping[str, str]) -> list[str]:
    """What the smallest model did in the audit, in words."""
    roles = {role.partition(":")[0] for role, name in models.items() if name.partition("@")[0] == _TINY}
    return [words for role, words in (("answer", "answered"), ("judge", "compared the answers")) if role in roles]


def doubt_words(doubts: tuple[str, ...]) -> str:
    """The doubts as a sentence; empty where there are none."""
    if not doubts:
        return ""
    return f"This audit can't say how far the sources agree, because {'; '.join(doubts)}."


def recorded_doubt(metrics: Mapping[str, object]) -> str:
    """The doubts that an audit's manifest records, as a sentence."""
    found = metrics.get(WARNINGS)
    return doubt_words(tuple(map(str, found))) if isinstance(found, list) else ""


NOTHING_COMPARED = "No two sources answer the same question, so nothing could be compared"

_UNSURE = (
    "no section named",
    "section not shown",
    "quote not found",
    "quote changed",
    "quote cut",
    "quote elsewhere",
    "quote too short",
    "statement differs",
)


def judged_pairs(audit: Audit) -> tuple[int, int]:
    """How many pairs have a label, and how many of them have a source that does not address the question."""
    labels = audit.artefact.manifest.metrics.get("labels")
    counts: dict[str, int] = labels if isinstance(labels, dict) else {}
    return sum(counts.values()), counts.get(audit.pack.labels[0].name, 0)


def doubtful_citations(metrics: Mapping[str, Any]) -> str:
    """How many answers an audit has, and what is doubtful about their citations; empty where nothing is."""
    cited = metrics.get("citations", {})
    doubts = ", ".join(f"{cited[name]:,} {name}" for name in _UNSURE if cited.get(name))
    answers = cited.get("answers", 0)
    return f"doubtful citations in {answers:,} answer{'' if answers == 1 else 's'}: {doubts}" if doubts else ""


def outcome_notes(audit: Audit) -> list[str]:
    """What the command prints as warnings about an audit; empty sentences say nothing."""
    metrics = audit.artefact.manifest.metrics
    labelled, silent = judged_pairs(audit)
    compared = labelled > silent
    return [
        doubtful_citations(metrics),
        recorded_doubt(metrics) if compared else "",
        "" if compared else f"{NOTHING_COMPARED}.",
    ]
