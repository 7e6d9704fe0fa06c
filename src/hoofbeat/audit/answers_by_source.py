"""Answers from one source at a time: only that source's passages, its headings cited, or the sentence of absence.

A source is shown by HERO's evidence with its trace, by a line's best passages, or whole where it is short. Evidence is
found question by question, so that a plan of any size is asked and written piece by piece.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import msgspec
from msgspec import Struct

from hoofbeat.answering.answer_calls import PROMPT_TOKENS, PlannedAnswer, fit
from hoofbeat.audit.answer_lines import MAX_LINE, MAX_STRENGTH, given_strength, line_doubts
from hoofbeat.audit.silence import silence_steps
from hoofbeat.audit.source_citations import (
    NO_SECTION,
    STAGE,
    CitationCheck,
    check_citations,
    section_names,
)
from hoofbeat.facets import source_is_asked
from hoofbeat.models import ChatRequest, Message, Model, StructuredReply
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import Pack, load_prompt
from hoofbeat.records import Answer, Document, Failure, Passage, Question, TraceStep, Usage
from hoofbeat.retrieval import Retriever, parse, sections
from hoofbeat.retrieval.hero.hero_evidence import ChildRank, EvidencePassage, HeroTrace
from hoofbeat.retrieval.line import Node, Pipeline
from hoofbeat.retrieval.stage_roles import EvidenceRanker
from hoofbeat.text import for_word_matching
from hoofbeat.window import ASSUMED_WINDOW, BYTES_PER_TOKEN, room_for, shown_size, size

__all__ = [
    "PassageSearch",
    "PlannedSourceAnswer",
    "absence_request",
    "again_request",
    "answer_from_sources",
    "is_empty_answer",
    "is_empty_field",
    "is_silent",
    "iter_source_plans",
    "plan_sources",
    "source_request",
    "source_room",
]

PassageSearch = Callable[[Sequence[Question], str], Sequence[Sequence[Passage]]]
"""The best passages of one source for each question."""

_BLOCK = 64
_MAX_GROUPS = 12


WINDOW = "window"
"""The stage of those steps of a trace that say what a model's window kept from being shown."""


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


def hero_line(line: str, *, whole_up_to: int | None, passages: int | None, words: str = "") -> str:
    """The line with the HERO settings that are given; the others stay as the line has them."""
    tree = parse(line)
    *before, last = tree.steps if isinstance(tree, Pipeline) else (tree,)
    assert isinstance(last, EvidenceRanker)
    changed = last.limited(whole_up_to=whole_up_to, passages=passages, words=words)
    return str(Pipeline((*before, changed)) if before else changed)


def evidence_by_search(
    search: PassageSearch, documents: Sequence[Document], whole_up_to: int, line: str = ""
) -> FindEvidence:
    """Short sources are read whole, long ones are searched. A source that does not fit the window counts as long.

    `line` names the search in the trace.
    """
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
                for shown in _shown(questions, document, search, line, whole=whole):
                    found[shown.question.id, source] = shown
            for question, sources in block:
                yield from (found.pop((question.id, source)) for source in sources)

    return find


def _shown(
    questions: Sequence[Question], document: Document, search: PassageSearch, line: str, *, whole: bool
) -> Iterator[SourcePassages]:
    if whole:
        passages = tuple(sections(document))
        for question in questions:
            yield SourcePassages(
                question=question, source=document.id, route="whole", passages=passages, trace=_route("whole")
            )
        return
    for question, found in zip(questions, search(questions, document.id), strict=True):
        yield SourcePassages(
            question=question,
            source=document.id,
            route="retrieved",
            passages=tuple(found),
            trace=_route("retrieved", line),
        )


def _route(route: str, line: str = "") -> tuple[TraceStep, ...]:
    return (TraceStep(stage="line", what=f"route: {route}", text=line),)


def through_line(retriever: Retriever, documents: Sequence[Document], passages: int, whole_up_to: int) -> FindEvidence:
    """Evidence by a line without HERO's layers; a question that the line failed on has its failure."""
    failures: dict[tuple[str, str], Failure] = {}

    def search(asked: Sequence[Question], source: str) -> list[tuple[Passage, ...]]:
        found = list(retriever.evidence([(q.id, q.full_text) for q in asked], [source], passages))
        failures.update({(each.question, source): each.failure for each in found if each.failure is not None})
        return [each.parts for each in found]

    find = evidence_by_search(search, documents, whole_up_to, str(retriever.tree))

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
    if trace.children:
        text = f"{trace.sections:,} sections, {trace.children:,} children"
        steps.append(TraceStep(stage="hero", what="document model", text=text))
    for signal in trace.signals:
        head = f"weight {signal.weight:g}, {signal.reached} children reached"
        steps.append(_ranking(signal.name, signal.best, head))
    if trace.fused:
        steps.append(_ranking("fused", trace.fused))
    if trace.reranking:
        steps.append(_ranking("reranked" if trace.reranked else "reranking", trace.reranked, trace.reranking))
    if trace.shown:
        lines = [_evidence_line(each) for each in trace.shown]
        found = tuple(each.passage for each in trace.shown)
        steps.append(TraceStep(stage="hero", what="evidence", text="\n".join(lines), found=found))
    if (strength := trace.sufficiency) is not None:
        near = "" if strength.similarity is None else f", best similarity {strength.similarity:.3f}"
        missing = f"; not covered: {', '.join(strength.missing)}" if strength.missing else ""
        text = f"{strength.score:.3f} of {strength.threshold:g}: coverage {strength.coverage:.3f}{near}{missing}"
        steps.append(TraceStep(stage="hero", what="enough" if trace.sufficient else "weak", text=text))
    return tuple(steps)


def _evidence_line(passage: EvidencePassage) -> str:
    beside = f", with its neighbours {', '.join(passage.neighbours)}" if passage.neighbours else ""
    return f"{passage.heading}: {passage.characters} characters{beside}, found through {passage.child}"


def _ranking(name: str, places: Sequence[ChildRank], head: str = "") -> TraceStep:
    lines = [head] if head else []
    lines += [f"{place.rank}. {place.score:.4f} {place.opening}" for place in places]
    return TraceStep(stage="hero", what=name, text="\n".join(lines), found=tuple(place.passage for place in places))


_QUESTION = 1000  # bytes; room for questions is left in steps of it
_NOTHING = frozenset(
    ("", "none", "nothing", "n a", "na", "null", "not applicable", "not addressed", "not mentioned", "not stated",
     "unknown", "no answer", "no information")
)  # fmt: skip


class PlannedSourceAnswer(PlannedAnswer, frozen=True, kw_only=True):
    """One question to one source (`condition`): what will be shown of it, and what led there."""

    trace: tuple[TraceStep, ...] = ()


def iter_source_plans(
    questions: Sequence[Question],
    documents: Sequence[Document],
    pack: Pack,
    find: FindEvidence,
    *,
    window: int | None,
    max_tokens: int | None = None,
    max_question: int | None = None,
) -> Iterator[PlannedSourceAnswer]:
    """Plan every (question, source), one at a time, in the order of their ids; evidence is looked for on the way.

    `max_question` is the length of the longest question where these are only some of them: all parts of a plan must
    leave the same room for sources.
    """
    output = max_tokens or load_prompt("answer-source").max_tokens
    if max_question is None:
        max_question = max((size(question.full_text) for question in questions), default=0)
    ordered = sorted(documents, key=lambda document: document.id)
    asked = [
        (question, [document.id for document in ordered if source_is_asked(question, document, pack.group_facet)])
        for question in sorted(questions, key=lambda question: question.id)
    ]
    sizes = {document.id: len(document.text) for document in documents}
    room = source_room(documents, max_question, window, output)
    for shown in find(asked, room):
        kept, dropped = fit(shown.passages, shown.question.full_text, window, output)
        yield PlannedSourceAnswer(
            question=shown.question,
            condition=shown.source,
            passages=kept,
            dropped=dropped,
            failure=shown.failure,
            trace=(*shown.trace, *limited_by_window(shown, sizes[shown.source], room, dropped, window)),
        )


def limited_by_window(
    shown: SourcePassages, size: int, room: CharacterBudget, dropped: Sequence[str], window: int | None
) -> Iterator[TraceStep]:
    """What the model's window kept from being shown, as steps of the answer's trace."""
    told = f"{window:,} tokens" if window else f"{ASSUMED_WINDOW}"
    if shown.route == "retrieved" and (size > room.characters or shown.source in room.tight):
        what = f"the source has {size:,} characters" + (
            "" if size > room.characters else ", more with passage headings"
        )
        text = f"{what}, but the model's window ({told}) fits only {room.characters:,}"
        yield TraceStep(stage=WINDOW, what="searched", text=text)
    if dropped:
        text = f"the model's window ({told}) is too small for all passages found; left out or cut: {', '.join(dropped)}"
        yield TraceStep(stage=WINDOW, what="cut", text=text)


def source_room(documents: Sequence[Document], max_question: int, window: int | None, output: int) -> CharacterBudget:
    """What fits the window beside a question of this length, reckoned as `fit` does.

    It does not hang on which other sources there are, nor on small changes of the questions, so that a source that is
    added changes nothing for the others.
    """
    question = _QUESTION * max(1, -(-max_question // _QUESTION))
    budget = max(0, room_for(window, prompt=PROMPT_TOKENS, output=output) - question)
    tight = [
        document.id for document in documents if len(document.text) <= budget < sum(map(shown_size, sections(document)))
    ]
    return CharacterBudget(characters=budget, tight=frozenset(tight))


def plan_sources(
    questions: Sequence[Question],
    documents: Sequence[Document],
    pack: Pack,
    search: PassageSearch,
    *,
    window: int | None,
    whole_up_to: int,
    max_tokens: int | None = None,
) -> list[PlannedSourceAnswer]:
    """Plan every (question, source): a short source is shown whole, a long one by its best passages.

    A source that does not fit the window counts as long: otherwise its end would be left out.
    """
    find = evidence_by_search(search, documents, whole_up_to)
    return list(iter_source_plans(questions, documents, pack, find, window=window, max_tokens=max_tokens))


def source_request(planned: PlannedAnswer, pack: Pack, max_tokens: int | None = None) -> ChatRequest:
    """The call for one question and one source; its output contract names the sections that are shown."""
    prompt = pack.prompt("answer-source")
    limit = max_tokens or prompt.max_tokens
    names = {heading: name for name, heading in section_names(planned.passages).items()}
    values = {
        "question": planned.question.full_text,
        "passages": [msgspec.structs.replace(item, heading=names[item.heading]) for item in planned.passages],
        "source_word": pack.source_word,
        "reader": pack.reader,
        "several": len({passage.document for passage in planned.passages}) > 1,
    }
    schema = msgspec.json.decode(msgspec.json.encode(prompt.schema))
    schema["properties"]["passage"]["enum"] = [*names.values(), NO_SECTION]
    room = max(60, BYTES_PER_TOKEN * limit - 140)  # characters of the texts; the object's names and marks need the rest
    sizes = {
        "quote": min(300, room // 4),
        "statement": min(MAX_LINE, room // 6),
        "strength": min(MAX_STRENGTH, room // 8),
    }
    for name, most in (*sizes.items(), ("answer", room - sum(sizes.values()))):
        schema["properties"][name]["maxLength"] = most
    return prompt.request(values, schema=schema, max_tokens=limit)


def again_request(request: ChatRequest, written: str, objections: Sequence[str], pack: Pack) -> ChatRequest:
    """The same call once more, with what was answered and what the checks object to behind it."""
    prompt = pack.prompt("answer-source-again")
    _, user = prompt.fill({"objections": "\n".join(objections)})
    answered = Message(role="assistant", content=written), Message(role="user", content=user)
    return msgspec.structs.replace(request, messages=(*request.messages, *answered), prompt=prompt.label)


def absence_request(question: Question, answer: str, pack: Pack) -> ChatRequest:
    """The yes/no call on whether an answer addresses its question; asked once for a source and a question."""
    return pack.prompt("absence").request({"question": question.full_text, "answer": answer})


def is_silent(text: str, pack: Pack) -> bool:
    """Whether a text is empty or begins as the pack's sentence of absence does: no call is needed to see it."""
    return not text.strip() or _opening(text) == _opening(pack.not_addressed)


def is_empty_answer(section: str, quote: str, text: str) -> bool:
    """Whether an answer is only a word like "none", without words of the source that could give it a meaning.

    "No" alone may be an answer; it is none where no section was chosen either.
    """
    words = for_word_matching(text)
    return is_empty_field(quote) and (words in _NOTHING or (words == "no" and section == NO_SECTION))


def is_empty_field(field: str) -> bool:
    """Whether a field holds nothing, or a word that small models write for it."""
    return for_word_matching(field) in _NOTHING


def answer_from_sources(
    model: Model,
    planned: Sequence[PlannedAnswer],
    pack: Pack,
    *,
    max_tokens: int | None = None,
    progress: Progress = SILENT,
) -> list[Answer]:
    """Answer every planned (question, source) and decide whether the source is silent on it.

    An empty answer or the sentence of absence decides it at once, and so does a word like "none" without a quote;
    any other answer is put to a yes/no call and kept, even where the model chose no section. Citations and quotes
    are checked against the passages shown, and so are the comparators, denials, directions and numbers of the
    answer; where these checks object, the model is asked once more and told why. A source of which nothing fits the
    model's window is not silent: that is a failure, without a call.
    """

    async def work(item: PlannedAnswer) -> Answer:
        base = _base(item, model.spec)
        if base.failure is not None:
            return base
        request = source_request(item, pack, max_tokens)
        outcome = await model.chat_json(request)
        if isinstance(outcome, Failure):
            return msgspec.structs.replace(base, failure=outcome)
        reply = _read(outcome, item)
        if is_silent(reply.text, pack) or is_empty_answer(reply.section, reply.quote, reply.text):
            return msgspec.structs.replace(
                base,
                text=pack.not_addressed,
                absent=True,
                trace=base.trace + silence_steps(item.question.full_text, item.passages, base.trace),
                calls=outcome.calls,
                usage=outcome.reply.usage,
            )
        if reply.objections:
            second = await model.chat_json(again_request(request, reply.written, reply.objections, pack))
            reply = _better(reply, second, item)
        check = await model.chat_json(absence_request(item.question, reply.text, pack))
        if isinstance(check, Failure):
            return msgspec.structs.replace(base, calls=reply.calls, failure=check)
        absent = check.value["addressed"] == "no"
        proof = silence_steps(item.question.full_text, item.passages, base.trace, reply.text) if absent else ()
        asked = item.question.full_text
        doubts = line_doubts(reply.line, reply.strength, reply.text, reply.quote, item.passages, asked)
        return msgspec.structs.replace(
            base,
            text=reply.text,
            statement=reply.line,
            strength=reply.strength,
            reasoning=reply.reasoning,
            absent=absent,
            citations=reply.checked.citations,
            trace=(*base.trace, *reply.checked.steps, *reply.asked, *proof),
            warnings=(*reply.checked.warnings, *doubts),
            calls=reply.calls + check.calls,
            usage=_sum(reply.usage, check.reply.usage),
        )

    return model.run(planned, work, title="answering from each source", progress=progress)


class _Reply(Struct, frozen=True, kw_only=True):
    """What a model answered from a source, checked; `asked` says what came of asking it once more."""

    section: str
    quote: str
    text: str
    line: str
    strength: str
    reasoning: str
    written: str
    checked: CitationCheck
    calls: tuple[str, ...]
    usage: Usage
    asked: tuple[TraceStep, ...] = ()

    @property
    def objections(self) -> list[str]:
        """What the checks of words object to."""
        return self.checked.objections


def _read(outcome: StructuredReply, item: PlannedAnswer) -> _Reply:
    fields = {
        name: str(outcome.value[name]).strip() for name in ("passage", "quote", "answer", "statement", "strength")
    }
    quote = "" if is_empty_field(fields["quote"]) else fields["quote"]
    return _Reply(
        section=fields["passage"],
        quote=quote,
        text=fields["answer"],
        line="" if is_empty_field(fields["statement"]) else fields["statement"],
        strength=given_strength(fields["strength"]),
        reasoning=outcome.reply.reasoning,
        written=msgspec.json.encode(outcome.value).decode(),
        checked=check_citations(fields["passage"], quote, fields["answer"], item.passages, item.question.full_text),
        calls=outcome.calls,
        usage=outcome.reply.usage,
    )


def _better(first: _Reply, outcome: StructuredReply | Failure, item: PlannedAnswer) -> _Reply:
    """The second reply where the checks object to less in it; else the first. The trace keeps what the other said."""
    objected = "; ".join(first.objections)
    if isinstance(outcome, Failure):
        step = TraceStep(stage=STAGE, what="asked again", text=f"{outcome.kind}: {outcome.message}", reasoning=objected)
        return msgspec.structs.replace(first, asked=(step,))
    second = _read(outcome, item)
    kept, other = (second, first) if len(second.objections) < len(first.objections) and second.text else (first, second)
    what = "asked again: changed" if kept is second else "asked again: kept"
    step = TraceStep(stage=STAGE, what=what, text=other.text, reasoning=objected, calls=second.calls)
    return msgspec.structs.replace(
        kept, asked=(step,), calls=first.calls + second.calls, usage=_sum(first.usage, second.usage)
    )


def _sum(one: Usage, two: Usage) -> Usage:
    return Usage(tokens_in=one.tokens_in + two.tokens_in, tokens_out=one.tokens_out + two.tokens_out)


def _base(item: PlannedAnswer, model: str) -> Answer:
    """What is known of an answer before it is asked for; with a failure where it can't be."""
    failure = item.failure
    if failure is not None:
        why = f"nothing was retrieved: {failure.kind}: {failure.message}"
        failure = Failure(kind="input", message=why, attempts=0)
    elif item.dropped and not item.passages:
        failure = Failure(kind="context-overflow", message="no passage fits the model's window", attempts=0)
    return Answer(
        question=item.question.id,
        model=model,
        condition="source",
        source=item.condition,
        evidence=item.passages,
        dropped=item.dropped,
        trace=item.trace if isinstance(item, PlannedSourceAnswer) else (),
        failure=failure,
    )


def _opening(text: str) -> str:
    """The words before the first colon or full stop: what tells the sentence of absence from an answer."""
    return for_word_matching(re.split(r"[:.]", text, maxsplit=1)[0])
