"""What HERO found in one source for one question, and how: as a record to keep, and as text to read.

Passages and trace are laid out when they are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from hoofbeat.records import Failure, Passage
from hoofbeat.retrieval.hero.hero_signals import NAVIGATION, Concept, ExpansionMatch, HeroQuery, HeroSettings, Signals
from hoofbeat.retrieval.hero.parent_sections import EvidenceUnit, EvidenceUnits, ParentSections
from hoofbeat.retrieval.index.topk import Floats, Ranking, Rankings
from hoofbeat.text import cut

Route = Literal["whole", "retrieved", "fallback"]
"""All of a source because it is short; its best passages; or all of it because those are weak."""

TRACE_DEPTH = 5
"""How many places of each ranking a trace keeps."""

RERANKING_OFF = "off: hero[rerank=…] names no cross-encoder or model; the fused order stays"
"""What a trace says of reranking where the line names no reranker."""

_QUOTE = 88
_OPENING = 60


class ChildRank(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A child chunk's place in a ranking. Children that share a section share its rank in the navigation signals.

    `opening` is the child's heading and its first words.
    """

    passage: str
    rank: int
    score: float
    opening: str = ""


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
    """Everything that led to the evidence for one question from one source.

    `sections` and `children` count what the source is divided into; `reranking` names the reranker, or says that there
    is none. They are empty where nothing was searched.
    """

    question: str
    document: str
    characters: int
    route: Route
    reason: str
    sufficient: bool
    query: str
    searched: str = ""
    added: tuple[ExpansionMatch, ...] = ()
    sections: int = 0
    children: int = 0
    signals: tuple[SignalTrace, ...] = ()
    fused: tuple[ChildRank, ...] = ()
    reranking: str = ""
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
    if trace.children:
        lines.append(f"model    {trace.sections:,} sections, {trace.children:,} children")
    if trace.searched:
        added = "; ".join(f"{each.matched} → {', '.join(each.terms)}" for each in trace.added)
        lines.append(f"expanded {added or 'nothing was added'}")
    for signal in trace.signals:
        head = f"{signal.name}, weight {signal.weight:g}, {signal.reached:,} children reached"
        lines += _ranking(head, signal.best, len(signal.best) < signal.reached)
    if trace.fused:
        lines += _ranking("fused by reciprocal rank", trace.fused, more=False)
    if trace.reranking:
        lines += _ranking(f"reranking {trace.reranking}", trace.reranked, more=False)
    lines += _evidence(trace)
    return "\n".join(lines)


def _ranking(head: str, places: tuple[ChildRank, ...], more: bool) -> list[str]:
    lines = [head]
    for place in places:
        lines.append(f"  {place.rank:>3}  {place.score:>9.4f}  {place.passage}")
        lines += [f"                  {_short(place.opening)}"] if place.opening else []
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


class HeroSearch:
    """What the search for one query left behind, filled in as the layers are passed.

    `signals`, `fused` and `units` hold what was found in all sources of the query, one after the other; `weights` and
    `covered` say for the terms of the query (`concepts`) how much they count in each source, and whether its evidence
    speaks of them; `coverages`, `similarities` (None without the dense signal) and `scores` how strong that is.
    """

    __slots__ = (
        "concepts",
        "coverages",
        "covered",
        "fused",
        "scores",
        "signals",
        "similarities",
        "units",
        "weights",
    )

    def __init__(self, signals: Mapping[str, Rankings], fused: Rankings) -> None:
        self.signals = signals
        self.fused = fused
        self.units: EvidenceUnits | None = None
        self.concepts: Sequence[Concept] = ()
        self.weights: Floats | None = None
        self.covered: NDArray[np.bool_] | None = None
        self.coverages: list[float] = []
        self.similarities: list[float] | None = None
        self.scores: list[float] = []


class HeroSourceResult:
    """The part of one source, the one at `place`, in what was found; and what a reranker made of it."""

    __slots__ = ("failure", "found", "place", "reranked")

    def __init__(self, found: HeroSearch, place: int) -> None:
        self.found = found
        self.place = place
        self.reranked: Ranking | None = None
        self.failure: Failure | None = None

    @property
    def units(self) -> list[EvidenceUnit]:
        """The passages of evidence."""
        return [] if self.found.units is None else self.found.units.units(self.place)

    def best(self) -> list[int]:
        """The children, best first."""
        found: list[int] = self.found.fused.ranking(self.place).indices.tolist()
        if self.reranked is not None:
            found[: len(self.reranked.indices)] = self.reranked.indices.tolist()
        return found


class EvidenceTools(NamedTuple):
    """What evidence is laid out with; shared by all evidence of one HERO."""

    signals: Signals
    parents: ParentSections
    sizes: list[int]
    fits: int


class SourceEvidence(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one source has to say to one question, and how it was found (`trace`, for HERO)."""

    question: str
    document: str
    route: str = "retrieved"
    sufficient: bool = True
    passages: tuple[Passage, ...] = ()
    trace: HeroTrace | None = None
    failure: Failure | None = None

    @property
    def parts(self) -> tuple[Passage, ...]:
        """The passages: none that a line finds crosses the border of a section."""
        return self.passages


class HeroEvidence:
    """The evidence of one source for one question.

    `route` says whether it is the whole source, what was retrieved, or the whole source as a fallback; `sufficient`
    whether what was retrieved is strong enough (a short source always is). Where reranking failed, or the query had
    failed before, there is a `failure` and no passage.
    """

    def __init__(
        self,
        tools: EvidenceTools,
        asked: HeroQuery,
        source: int,
        route: Route,
        sufficient: bool,
        trail: HeroSourceResult | None = None,
    ) -> None:
        self._tools = tools
        self._asked = asked
        self._source = source
        self._trail = trail
        self.route: Route = route
        self.sufficient = sufficient
        self.failure = trail.failure if trail else None if route == "whole" else asked.query.failure

    @property
    def question(self) -> str:
        """The query's id."""
        return self._asked.query.id

    @property
    def document(self) -> str:
        """The source's id."""
        return self._tools.signals.layout.names[self._source]

    @property
    def reason(self) -> str:
        """Why the route was taken."""
        size, trail, settings = self._tools.sizes[self._source], self._trail, self._settings
        if self.route == "whole":
            return f"{size:,} characters: sources up to {settings.route:,} are shown whole"
        if trail is None:
            return "the query failed before the search" if self.failure else "the query has no words"
        long = f"{size:,} characters are too many to show whole"
        if trail.failure is not None:
            return f"{long}; reranking failed"
        if self.sufficient:
            return f"{long}, and the evidence found is strong enough"
        weak = f"the evidence found is weak ({trail.found.scores[trail.place]:.3f} < {settings.enough:g})"
        if self.route == "fallback":
            return f"{weak}, and all {size:,} characters fit"
        if not settings.fallback:
            return f"{weak}, and the fallback is off"
        return f"{weak}, but of {size:,} characters only {self._tools.fits:,} fit"

    @property
    def _settings(self) -> HeroSettings:
        return self._tools.signals.settings

    @cached_property
    def passages(self) -> tuple[Passage, ...]:
        """What a model is shown: at most `top` passages, best first; or the whole source, section by section."""
        if self.failure is not None:
            return ()
        if self.route != "retrieved":
            return self._tools.parents.whole(self._source)
        return tuple(map(self._tools.parents.passage, self._units))

    @cached_property
    def parts(self) -> tuple[Passage, ...]:
        """The same text cut at the sections' borders, each part under its own heading, for models that cite them."""
        if self.failure is not None or self.route != "retrieved":
            return self.passages
        if not self._settings.parents:
            return self.passages
        return tuple(part for unit in self._units for part in self._tools.parents.parts(unit))

    @property
    def _units(self) -> Sequence[EvidenceUnit]:
        return () if self._trail is None else self._trail.units

    @cached_property
    def trace(self) -> HeroTrace:
        """What was done, layer by layer, as a record to keep."""
        query = self._asked.query
        characters = self._tools.sizes[self._source]
        trail = self._trail
        return HeroTrace(
            question=query.id,
            document=self.document,
            characters=characters,
            route=self.route,
            reason=self.reason,
            sufficient=self.sufficient,
            query=query.text,
            searched=self._asked.lexical if trail else "",
            added=self._asked.added if trail else (),
            sections=self._tools.parents.count(self._source) if trail else 0,
            children=int(np.diff(self._tools.signals.layout.children.bounds)[self._source]) if trail else 0,
            signals=self._signal_traces(),
            fused=self._places(trail.found.fused.ranking(trail.place)) if trail else (),
            reranking=self._reranking() if trail else "",
            reranked=self._places(trail.reranked) if trail and trail.reranked else (),
            shown=tuple(map(self._shown, self._units)),
            sufficiency=self._sufficiency(),
            failure=self.failure,
        )

    def record(self) -> SourceEvidence:
        """All of it as a record to keep."""
        return SourceEvidence(
            question=self.question,
            document=self.document,
            route=self.route,
            sufficient=self.sufficient,
            passages=self.passages,
            trace=self.trace,
            failure=self.failure,
        )

    def _reranking(self) -> str:
        settings = self._settings
        return (
            RERANKING_OFF
            if settings.rerank == "none"
            else f"by {settings.rerank}, the best {settings.depth:,} children"
        )

    def _opening(self, number: int) -> str:
        passage = self._tools.signals.layout.children.passages[number]
        words = cut(" ".join(passage.text[: 4 * _OPENING].split()), _OPENING)
        return f"{passage.heading}: {words}" if passage.heading else words

    def _child(self, number: int) -> str:
        return self._tools.signals.layout.children.passages[number].id

    def _places(self, ranking: Ranking, ranks: Sequence[int] = ()) -> tuple[ChildRank, ...]:
        best = zip(ranking.indices[:TRACE_DEPTH].tolist(), ranking.scores[:TRACE_DEPTH].tolist(), strict=True)
        return tuple(
            ChildRank(
                passage=self._child(child),
                rank=ranks[place] if ranks else place + 1,
                score=score,
                opening=self._opening(child),
            )
            for place, (child, score) in enumerate(best)
        )

    def _signal_traces(self) -> tuple[SignalTrace, ...]:
        if self._trail is None:
            return ()
        traces = []
        for name, rankings in self._trail.found.signals.items():
            ranking, ranks = rankings.ranking(self._trail.place), list[int]()
            if name in NAVIGATION:
                ranking, mapped = self._tools.parents.navigation.ranking(ranking)
                ranks = mapped.tolist()
            weight = self._tools.signals.weights[name]
            reached = len(ranking.indices)
            traces.append(SignalTrace(name=name, weight=weight, reached=reached, best=self._places(ranking, ranks)))
        return tuple(traces)

    def _shown(self, unit: EvidenceUnit) -> EvidencePassage:
        passage = self._tools.parents.passage(unit)
        return EvidencePassage(
            passage=passage.id,
            child=self._child(unit.child),
            heading=passage.heading,
            neighbours=tuple(self._tools.parents.neighbours(unit)),
            characters=len(passage.text),
        )

    def _sufficiency(self) -> Sufficiency | None:
        trail = self._trail
        found, place = (trail.found, trail.place) if trail else (None, 0)
        if found is None or found.weights is None or found.covered is None or self.failure is not None:
            return None
        covered, weights = found.covered[:, place].tolist(), found.weights[:, place].tolist()
        each_term = zip(found.concepts, weights, covered, strict=True)
        missing = sorted(
            ((concept.stem, weight) for concept, weight, spoken_of in each_term if not spoken_of),
            key=lambda each: -each[1],
        )
        return Sufficiency(
            score=found.scores[place],
            threshold=self._settings.enough,
            coverage=found.coverages[place],
            similarity=None if found.similarities is None else found.similarities[place],
            missing=tuple(stem for stem, _ in missing),
        )


def explain(evidence: HeroEvidence) -> str:
    """What led to the evidence, as text for a person."""
    return explain_trace(evidence.trace)
