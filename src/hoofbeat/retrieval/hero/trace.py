"""What HERO did for one question and one source, layer by layer: as a record to keep, and as text to read."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from hoofbeat.records import Failure
from hoofbeat.retrieval.hero.expansion import ExpansionMatch

__all__ = [
    "TRACE_DEPTH",
    "ChildRank",
    "EvidencePassage",
    "HeroTrace",
    "Route",
    "SignalTrace",
    "Sufficiency",
    "explain_trace",
]

Route = Literal["whole", "retrieved", "fallback"]
"""All of a source because it is short; its best passages; or all of it because those are weak."""

TRACE_DEPTH = 5
"""How many places of each ranking a trace keeps."""

_QUOTE = 88


class ChildRank(Struct, frozen=True, kw_only=True):
    """A child chunk's place in a ranking. Children that share a section share its rank in the navigation signals."""

    passage: str
    rank: int
    score: float


class SignalTrace(Struct, frozen=True, kw_only=True):
    """One first-stage ranking: its weight in the fusion, how many children it reached, and the best of them."""

    name: str
    weight: float
    reached: int
    best: tuple[ChildRank, ...]


class EvidencePassage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A passage of evidence: the child that led to it, its parent's heading, and the neighbours it took in."""

    passage: str
    child: str
    heading: str
    neighbours: tuple[str, ...] = ()
    characters: int = 0


class Sufficiency(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How strong the evidence is: the mean of best similarity and coverage, against the threshold.

    `similarity` is None without the dense signal; the score is then the coverage alone. `missing` are the question's
    terms (as indexed) that the evidence does not speak of, the weightiest first.
    """

    score: float
    threshold: float
    coverage: float
    similarity: float | None = None
    missing: tuple[str, ...] = ()


class HeroTrace(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that led to the evidence for one question from one source."""

    question: str
    document: str
    characters: int
    route: Route
    reason: str
    sufficient: bool
    query: str
    searched: str = ""
    added: tuple[ExpansionMatch, ...] = ()
    signals: tuple[SignalTrace, ...] = ()
    fused: tuple[ChildRank, ...] = ()
    reranked: tuple[ChildRank, ...] = ()
    shown: tuple[EvidencePassage, ...] = ()
    sufficiency: Sufficiency | None = None
    failure: Failure | None = None


def explain_trace(trace: HeroTrace) -> str:
    """The trace as text for a person."""
    lines = [
        f"question {trace.question}: {_short(trace.query)}",
        f"source   {trace.document} ({trace.characters:,} characters)",
        f"route    {trace.route}: {trace.reason}",
    ]
    if trace.failure is not None:
        lines.append(f"failed   {trace.failure.kind}: {_short(trace.failure.message)}")
    if trace.searched:
        added = "; ".join(f"{each.matched} → {', '.join(each.terms)}" for each in trace.added)
        lines.append(f"expanded {added or 'nothing was added'}")
    for signal in trace.signals:
        head = f"{signal.name}, weight {signal.weight:g}, {signal.reached:,} children reached"
        lines += _ranking(head, signal.best, len(signal.best) < signal.reached)
    if trace.fused:
        lines += _ranking("fused by reciprocal rank", trace.fused, more=False)
    if trace.reranked:
        lines += _ranking("reranked", trace.reranked, more=False)
    lines += _evidence(trace)
    return "\n".join(lines)


def _ranking(head: str, places: tuple[ChildRank, ...], more: bool) -> list[str]:
    lines = [head] + [f"  {place.rank:>3}  {place.score:>9.4f}  {place.passage}" for place in places]
    return [*lines, "  …"] if more and places else lines


def _evidence(trace: HeroTrace) -> list[str]:
    lines = []
    if trace.shown:
        lines.append("evidence found" if trace.route == "fallback" else "evidence")
    for number, shown in enumerate(trace.shown, 1):
        beside = f", with {' | '.join(map(_short, shown.neighbours))}" if shown.neighbours else ""
        lines.append(f"  {number}. {_short(shown.heading) or 'untitled'} ({shown.characters:,} characters){beside}")
        lines.append(f"     from {shown.child}")
    if trace.sufficiency is not None:
        found = trace.sufficiency
        sign = "≥" if trace.sufficient else "<"
        near = "" if found.similarity is None else f", best similarity {found.similarity:.3f}"
        lines.append(
            f"strength {found.score:.3f} {sign} {found.threshold:g} "
            f"({'enough' if trace.sufficient else 'weak'}): coverage {found.coverage:.3f}{near}"
        )
        if found.missing:
            lines.append(f"  not covered: {', '.join(found.missing)}")
    return lines


def _short(text: str) -> str:
    """One line of it, without what could move a terminal's cursor."""
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return line if len(line) <= _QUOTE else f"{line[: _QUOTE - 1]}…"
