"""Answers from one source at a time: only that source's passages, its headings cited, or the sentence of absence."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from hoofbeat.answering.answer import Planned, fit
from hoofbeat.models import ChatRequest, Model
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import Pack, label, load_prompt
from hoofbeat.records import Answer, Document, Failure, Passage, Question
from hoofbeat.retrieval import sections

__all__ = ["answer_from_sources", "asked_of", "plan_sources", "source_request"]

NO_SECTION = "none"
_CITATION = re.compile(r"\[([^\[\]]{2,120})\]")

Search = Callable[[Sequence[Question], str], Sequence[Sequence[Passage]]]


def asked_of(question: Question, document: Document, pack: Pack) -> bool:
    """Whether a source is asked a question: general questions go to all, others to the sources of their group."""
    groups = _values(question.facets.get("group", "general"))
    return groups <= {""} or "general" in groups or bool(groups & _values(document.facets.get(pack.group_facet, "")))


def _values(facet: str | list[str]) -> set[str]:
    return {facet} if isinstance(facet, str) else set(facet)


def plan_sources(
    questions: Sequence[Question],
    documents: Sequence[Document],
    pack: Pack,
    search: Search,
    *,
    window: int | None,
    whole_up_to: int,
    max_tokens: int | None = None,
) -> list[Planned]:
    """Plan every (question, source): a short source is shown whole, a long one by its best passages.

    A source that does not fit the window as a whole is a long one, too: its end would be left out otherwise.
    """
    output = max_tokens or load_prompt("answer-source").max_tokens

    def plan(question: Question, document: Document, passages: Sequence[Passage]) -> Planned:
        kept, dropped = fit(passages, question.full_text, window, output)
        return Planned(question=question, condition=document.id, passages=kept, dropped=dropped)

    planned: list[Planned] = []
    for document in documents:
        mine = [question for question in questions if asked_of(question, document, pack)]
        if len(document.text) <= whole_up_to:
            whole = sections(document)
            tried = [plan(question, document, whole) for question in mine]
            planned += [item for item in tried if not item.dropped]
            mine = [item.question for item in tried if item.dropped]
        if mine:
            found = search(mine, document.id)
            planned += [plan(question, document, passages) for question, passages in zip(mine, found, strict=True)]
    return sorted(planned, key=lambda item: (item.question.id, item.condition))


def source_request(planned: Planned, pack: Pack, max_tokens: int | None = None) -> ChatRequest:
    """The call for one question and one source; its output contract names the sections that are shown."""
    prompt = load_prompt("answer-source")
    limit = max_tokens or prompt.max_tokens
    names = {heading: name for name, heading in _sections(planned.passages).items()}
    values = {
        "question": planned.question.full_text,
        "passages": [msgspec.structs.replace(item, heading=names[item.heading]) for item in planned.passages],
        "source_word": pack.source_word,
        "reader": pack.reader,
    }
    schema = msgspec.json.decode(msgspec.json.encode(prompt.schema))
    schema["properties"]["passage"]["enum"] = [*names.values(), NO_SECTION]
    schema["properties"]["answer"]["maxLength"] = max(60, 3 * limit - 100)  # the rest of the object needs room too
    return prompt.request(values, schema=schema, max_tokens=limit)


def _sections(passages: Sequence[Passage]) -> dict[str, str]:
    """The sections shown: the name a model sees, one for each heading and never `none`, and the heading itself."""
    names: dict[str, str] = {}
    for heading in dict.fromkeys(passage.heading for passage in passages):
        plain = name = label(heading).strip() or "untitled"
        number = 1
        while name in names or name.lower() == NO_SECTION:
            number += 1
            name = f"{plain[:110].strip()} ({number})"
        names[name] = heading
    return names


def answer_from_sources(
    model: Model, planned: Sequence[Planned], pack: Pack, *, max_tokens: int | None = None, progress: Progress = SILENT
) -> list[Answer]:
    """Answer every planned (question, source) and decide whether the source is silent on it.

    A model that chooses no section, or writes the sentence of absence, decides it at once; any other answer is put to a
    yes/no call. Citations count only where the heading was among the passages shown. A source of which nothing fits the
    model's window is not silent: that is a failure, without a call.
    """
    absence = load_prompt("absence")
    marker = _opening(pack.not_addressed)

    async def work(item: Planned) -> Answer:
        base = Answer(
            question=item.question.id,
            model=model.spec,
            condition="source",
            source=item.condition,
            evidence=item.passages,
            dropped=item.dropped,
        )
        if item.dropped and not item.passages:
            why = Failure(kind="context-overflow", message="no passage fits the model's window", attempts=0)
            return msgspec.structs.replace(base, failure=why)
        outcome = await model.chat_json(source_request(item, pack, max_tokens))
        if isinstance(outcome, Failure):
            return msgspec.structs.replace(base, failure=outcome)
        section, text = str(outcome.value["passage"]), str(outcome.value["answer"]).strip()
        if section == NO_SECTION or not text or _opening(text) == marker:
            return msgspec.structs.replace(base, text=pack.not_addressed, absent=True, calls=outcome.calls)
        check = await model.chat_json(absence.request({"question": item.question.full_text, "answer": text}))
        if isinstance(check, Failure):
            return msgspec.structs.replace(base, calls=outcome.calls, failure=check)
        return msgspec.structs.replace(
            base,
            text=text,
            absent=check.value["addressed"] == "no",
            citations=_citations(section, text, item.passages),
            calls=outcome.calls + check.calls,
        )

    return model.run(planned, work, title="answering from each source", progress=progress)


def _normal(text: str) -> str:
    return " ".join(re.sub(r"\W+", " ", text).lower().split())


def _opening(text: str) -> str:
    """The words before the first colon or full stop: what tells the sentence of absence from an answer."""
    return _normal(re.split(r"[:.]", text, maxsplit=1)[0])


def _citations(section: str, text: str, passages: Sequence[Passage]) -> tuple[str, ...]:
    """The headings cited: that of the section chosen, then those named in brackets, of those that were shown."""
    shown = _sections(passages)
    by_words = {_normal(name): heading for name, heading in shown.items()}
    named = (by_words.get(_normal(match), "") for match in _CITATION.findall(text))
    return tuple(dict.fromkeys(heading for heading in (shown[section], *named) if heading))
