"""Answers from one source at a time: only that source's passages, its headings cited, or the sentence of absence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from hoofbeat.answering.answer_calls import PROMPT_TOKENS, PlannedAnswer, fit
from hoofbeat.audit.answers.source_citations import NO_SECTION, check_citations, section_names
from hoofbeat.audit.answers.source_evidence import (
    CharacterBudget,
    FindEvidence,
    PassageSearch,
    SourcePassages,
    evidence_by_search,
)
from hoofbeat.facets import source_is_asked
from hoofbeat.models import ChatRequest, Model
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import Pack, load_prompt
from hoofbeat.records import Answer, Document, Failure, Question, TraceStep, Usage
from hoofbeat.retrieval import sections
from hoofbeat.text import for_word_matching
from hoofbeat.window import BYTES_PER_TOKEN, room_for, shown_size, size

__all__ = [
    "PassageSearch",
    "PlannedSourceAnswer",
    "absence_request",
    "answer_from_sources",
    "is_empty_answer",
    "is_empty_field",
    "is_silent",
    "iter_source_plans",
    "plan_sources",
    "source_request",
    "source_room",
]

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
    for shown in find(asked, source_room(documents, max_question, window, output)):
        yield _planned(shown, window, output)


def _planned(shown: SourcePassages, window: int | None, output: int) -> PlannedSourceAnswer:
    kept, dropped = fit(shown.passages, shown.question.full_text, window, output)
    return PlannedSourceAnswer(
        question=shown.question,
        condition=shown.source,
        passages=kept,
        dropped=dropped,
        failure=shown.failure,
        trace=shown.trace,
    )


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

    A source that does not fit the window as a whole is a long one, too: its end would be left out otherwise.
    """
    find = evidence_by_search(search, documents, whole_up_to)
    return list(iter_source_plans(questions, documents, pack, find, window=window, max_tokens=max_tokens))


def source_request(planned: PlannedAnswer, pack: Pack, max_tokens: int | None = None) -> ChatRequest:
    """The call for one question and one source; its output contract names the sections that are shown."""
    prompt = load_prompt("answer-source")
    limit = max_tokens or prompt.max_tokens
    names = {heading: name for name, heading in section_names(planned.passages).items()}
    values = {
        "question": planned.question.full_text,
        "passages": [msgspec.structs.replace(item, heading=names[item.heading]) for item in planned.passages],
        "source_word": pack.source_word,
        "reader": pack.reader,
    }
    schema = msgspec.json.decode(msgspec.json.encode(prompt.schema))
    schema["properties"]["passage"]["enum"] = [*names.values(), NO_SECTION]
    room = max(
        60, BYTES_PER_TOKEN * limit - 100
    )  # characters of quote and answer; the rest of the object needs some, too
    schema["properties"]["quote"]["maxLength"] = min(300, room // 3)
    schema["properties"]["answer"]["maxLength"] = room - min(300, room // 3)
    return prompt.request(values, schema=schema, max_tokens=limit)


def absence_request(question: Question, answer: str) -> ChatRequest:
    """The yes/no call on whether an answer addresses its question; asked once for a source and a question."""
    return load_prompt("absence").request({"question": question.full_text, "answer": answer})


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

    An empty answer or the sentence of absence decides it at once, and so does a word like "none" without a quote; any
    other answer is put to a yes/no call and kept, even where the model chose no section. Citations and quotes are
    checked against the passages shown. A source of which nothing fits the model's window is not silent: that is a
    failure, without a call.
    """

    async def work(item: PlannedAnswer) -> Answer:
        base = _base(item, model.spec)
        if base.failure is not None:
            return base
        outcome = await model.chat_json(source_request(item, pack, max_tokens))
        if isinstance(outcome, Failure):
            return msgspec.structs.replace(base, failure=outcome)
        section, quote, text = (str(outcome.value[name]).strip() for name in ("passage", "quote", "answer"))
        usage = outcome.reply.usage
        quote = "" if is_empty_field(quote) else quote
        if is_silent(text, pack) or is_empty_answer(section, quote, text):
            return msgspec.structs.replace(base, text=pack.not_addressed, absent=True, calls=outcome.calls, usage=usage)
        check = await model.chat_json(absence_request(item.question, text))
        if isinstance(check, Failure):
            return msgspec.structs.replace(base, calls=outcome.calls, failure=check)
        checked = check_citations(section, quote, text, item.passages)
        return msgspec.structs.replace(
            base,
            text=text,
            reasoning=outcome.reply.reasoning,
            absent=check.value["addressed"] == "no",
            citations=checked.citations,
            trace=base.trace + checked.steps,
            warnings=checked.warnings,
            calls=outcome.calls + check.calls,
            usage=Usage(
                tokens_in=usage.tokens_in + check.reply.usage.tokens_in,
                tokens_out=usage.tokens_out + check.reply.usage.tokens_out,
            ),
        )

    return model.run(planned, work, title="answering from each source", progress=progress)


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
