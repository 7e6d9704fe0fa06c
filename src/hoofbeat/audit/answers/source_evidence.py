"""What each source is shown by: HERO's evidence with its trace, a line's best passages, or all of a short source.

Evidence comes question by question, so that a plan of any size is asked and written piece by piece.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import msgspec
from msgspec import Struct

from hoofbeat.records import Document, Failure, Passage, Question, TraceStep
from hoofbeat.retrieval import Retriever, parse, sections
from hoofbeat.retrieval.hero.hero_evidence import ChildRank, HeroTrace
from hoofbeat.retrieval.line import Node, Pipeline
from hoofbeat.retrieval.stage_roles import EvidenceRanker

PassageSearch = Callable[[Sequence[Question], str], Sequence[Sequence[Passage]]]
"""The best passages of one source for each question."""

_BLOCK = 64
_MAX_GROUPS = 12


class SourcePassages(Struct, frozen=True, kw_only=True):
    """What is shown of one source for one question: how that was decided, the passages, and what led to them."""

    question: Question
    source: str
    route: str
    passages: tuple[Passage, ...]
    trace: tuple[TraceStep, ...] = ()
    failure: Failure | None = None


class CharacterBudget(Struct, frozen=True, kw_only=True):
    """How many characters of a source can be shown, and the sources that are short enough but not with their fences."""

    characters: int
    tight: frozenset[str] = frozenset()


QuestionsWithSources = Sequence[tuple[Question, Sequence[str]]]
"""Questions, each with the sources it is put to."""

FindEvidence = Callable[[QuestionsWithSources, CharacterBudget], Iterator[SourcePassages]]
"""The evidence for questions, each from its sources, in their order."""


def is_hero(node: Node) -> bool:
    """Whether a retriever line ends in HERO, or in another ranker with its own method for single sources."""
    last = node.steps[-1] if isinstance(node, Pipeline) else node
    return isinstance(last, EvidenceRanker)


def hero_line(line: str, *, whole_up_to: int | None, passages: int | None) -> str:
    """A line that ends in HERO with these settings in the place of its own, where they are given."""
    tree = parse(line)
    *before, last = tree.steps if isinstance(tree, Pipeline) else (tree,)
    assert isinstance(last, EvidenceRanker)
    changed = last.limited(whole_up_to=whole_up_to, passages=passages)
    return str(Pipeline((*before, changed)) if before else changed)


def evidence_by_search(search: PassageSearch, documents: Sequence[Document], whole_up_to: int) -> FindEvidence:
    """Short sources whole, long ones by a search; one that does not fit as a whole is a long one, too."""
    known = {document.id: document for document in documents}

    def find(asked: QuestionsWithSources, room: CharacterBudget) -> Iterator[SourcePassages]:
        limit = min(whole_up_to, room.characters)
        for first in range(0, len(asked), _BLOCK):
            block = asked[first : first + _BLOCK]
            wanted: dict[str, list[Question]] = {}
            for question, sources in block:
                for source in sources:
                    wanted.setdefault(source, []).append(question)
            found: dict[tuple[str, str], SourcePassages] = {}
            for source, questions in wanted.items():
                document = known[source]
                whole = len(document.text) <= limit and source not in room.tight
                for shown in _shown(questions, document, search, whole=whole):
                    found[shown.question.id, source] = shown
            for question, sources in block:
                yield from (found.pop((question.id, source)) for source in sources)

    return find


def _shown(
    questions: Sequence[Question], document: Document, search: PassageSearch, *, whole: bool
) -> Iterator[SourcePassages]:
    if whole:
        passages = tuple(sections(document))
        for question in questions:
            yield SourcePassages(question=question, source=document.id, route="whole", passages=passages)
        return
    for question, found in zip(questions, search(questions, document.id), strict=True):
        yield SourcePassages(question=question, source=document.id, route="retrieved", passages=tuple(found))


def through_line(retriever: Retriever, documents: Sequence[Document], passages: int, whole_up_to: int) -> FindEvidence:
    """Evidence by a line without HERO's layers; a question that the line failed on has its failure."""
    failures: dict[tuple[str, str], Failure] = {}

    def search(asked: Sequence[Question], source: str) -> list[tuple[Passage, ...]]:
        found = list(retriever.evidence([(q.id, q.full_text) for q in asked], [source], passages))
        failures.update({(each.question, source): each.failure for each in found if each.failure is not None})
        return [each.parts for each in found]

    find = evidence_by_search(search, documents, whole_up_to)

    def with_failures(asked: QuestionsWithSources, room: CharacterBudget) -> Iterator[SourcePassages]:
        for shown in find(asked, room):
            failure = failures.pop((shown.question.id, shown.source), None)
            yield msgspec.structs.replace(shown, failure=failure) if failure is not None else shown

    return with_failures


def through_hero(retriever: Retriever) -> FindEvidence:
    """Evidence by HERO: all sources of a question in one pass, each with its trace.

    Questions that are put to the same sources go through HERO together; where there are many such groups, every
    question is searched in all sources, which changes no source's evidence.
    """

    def find(asked: QuestionsWithSources, room: CharacterBudget) -> Iterator[SourcePassages]:
        parted = [
            (question, tight, tuple(name for name in sources if (name in room.tight) is tight))
            for question, sources in asked
            for tight in (False, True)
        ]
        if len({(tight, names) for _, tight, names in parted}) > _MAX_GROUPS:
            together: dict[bool, set[str]] = {False: set(), True: set()}
            for _, tight, names in parted:
                together[tight].update(names)
            parted = [(question, tight, tuple(sorted(together[tight]))) for question, tight, _ in parted]
        groups: dict[tuple[bool, tuple[str, ...]], list[Question]] = {}
        for question, tight, names in parted:
            groups.setdefault((tight, names), []).append(question)
        streams = {
            (tight, names): _hero(retriever, questions, names, 0 if tight else room.characters)
            for (tight, names), questions in groups.items()
        }
        for place, (_, sources) in enumerate(asked):
            found: dict[str, SourcePassages] = {}
            for _, tight, names in parted[2 * place : 2 * place + 2]:
                found |= islice(streams[tight, names], len(names))
            yield from (found[source] for source in sources)

    return find


def _hero(
    retriever: Retriever, questions: Sequence[Question], sources: Sequence[str], room: int
) -> Iterator[tuple[str, SourcePassages]]:
    """HERO's evidence, question after question."""
    if not sources:
        return
    by_id = {question.id: question for question in questions}
    queries = [(question.id, question.full_text) for question in questions]
    for each in retriever.evidence(queries, sources, room=room):
        yield (
            each.document,
            SourcePassages(
                question=by_id[each.question],
                source=each.document,
                route=each.route,
                passages=each.parts,
                trace=trace_steps(each.trace) if each.trace is not None else (),
                failure=each.failure,
            ),
        )


def trace_steps(trace: HeroTrace) -> tuple[TraceStep, ...]:
    """HERO's trace as the steps of an answer: the route, what was searched, each ranking, and the strength."""
    steps = [TraceStep(stage="hero", what=f"route: {trace.route}", text=trace.reason)]
    if trace.searched:
        added = "; ".join(f"{each.matched} → {', '.join(each.terms)}" for each in trace.added)
        steps.append(TraceStep(stage="hero", what="searched", text=f"{trace.searched}\nadded: {added or 'nothing'}"))
    for signal in trace.signals:
        head = f"weight {signal.weight:g}, {signal.reached} children reached"
        steps.append(_ranking(signal.name, signal.best, head))
    for name, places in (("fused", trace.fused), ("reranked", trace.reranked)):
        if places:
            steps.append(_ranking(name, places))
    if trace.shown:
        lines = [f"{each.heading}: {each.characters} characters, led to by {each.child}" for each in trace.shown]
        found = tuple(each.passage for each in trace.shown)
        steps.append(TraceStep(stage="hero", what="evidence", text="\n".join(lines), found=found))
    if (strength := trace.sufficiency) is not None:
        near = "" if strength.similarity is None else f", best similarity {strength.similarity:.3f}"
        missing = f"; not covered: {', '.join(strength.missing)}" if strength.missing else ""
        text = f"{strength.score:.3f} of {strength.threshold:g}: coverage {strength.coverage:.3f}{near}{missing}"
        steps.append(TraceStep(stage="hero", what="enough" if trace.sufficient else "weak", text=text))
    return tuple(steps)


def _ranking(name: str, places: Sequence[ChildRank], head: str = "") -> TraceStep:
    scores = ", ".join(f"{place.rank}: {place.score:.4f}" for place in places)
    text = f"{head}; {scores}" if head and scores else head or scores
    return TraceStep(stage="hero", what=name, text=text, found=tuple(place.passage for place in places))
