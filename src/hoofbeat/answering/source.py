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
    group = question.facets.get("group", "general")
    return group in ("general", "", document.facets.get(pack.group_facet))


def plan_sources(
    questions: Sequence[Question],
    documents: Sequence[Document],
    pack: Pack,
    search: Search,
    *,
    window: int | None,
    whole_up_to: int,
) -> list[Planned]:
    """Plan every (question, source): a short source is shown whole, a long one by its best passages."""
    planned = []
    for document in documents:
        mine = [question for question in questions if asked_of(question, document, pack)]
        if len(document.text) <= whole_up_to:
            shown: Sequence[Sequence[Passage]] = [sections(document)] * len(mine)
        else:
            shown = search(mine, document.id)
        for question, passages in zip(mine, shown, strict=True):
            kept, dropped = fit(passages, question.full_text, window, load_prompt("answer-source").max_tokens)
            planned.append(Planned(question=question, condition=document.id, passages=kept, dropped=dropped))
    return sorted(planned, key=lambda item: (item.question.id, item.condition))


def source_request(planned: Planned, pack: Pack, max_tokens: int | None = None) -> ChatRequest:
    """The call for one question and one source; its output contract names the sections that are shown."""
    prompt = load_prompt("answer-source")
    limit = max_tokens or prompt.max_tokens
    values = {
        "question": planned.question.full_text,
        "passages": planned.passages,
        "source_word": pack.source_word,
        "reader": pack.reader,
    }
    schema = msgspec.json.decode(msgspec.json.encode(prompt.schema))
    schema["properties"]["passage"]["enum"] = [*_sections(planned.passages), NO_SECTION]
    schema["properties"]["answer"]["maxLength"] = max(60, 3 * limit - 100)  # the rest of the object needs room too
    return prompt.request(values, schema=schema, max_tokens=limit)


def _sections(passages: Sequence[Passage]) -> dict[str, str]:
    """The sections shown: the name a model sees, and the heading it stands for."""
    return {label(passage.heading) or "untitled": passage.heading for passage in passages}


def answer_from_sources(
    model: Model, planned: Sequence[Planned], pack: Pack, *, max_tokens: int | None = None, progress: Progress = SILENT
) -> list[Answer]:
    """Answer every planned (question, source) and decide whether the source is silent on it.

    A model that chooses no section, or writes the sentence of absence, decides it at once; any other answer is put to a
    yes/no call. Citations count only where the heading was among the passages shown.
    """
    absence = load_prompt("absence")
    marker = _normal(pack.not_addressed.partition(":")[0])

    async def work(item: Planned) -> Answer:
        base = Answer(
            question=item.question.id,
            model=model.spec,
            condition="source",
            source=item.condition,
            evidence=item.passages,
            dropped=item.dropped,
        )
        outcome = await model.chat_json(source_request(item, pack, max_tokens))
        if isinstance(outcome, Failure):
            return msgspec.structs.replace(base, failure=outcome)
        section, text = str(outcome.value["passage"]), str(outcome.value["answer"]).strip()
        if section == NO_SECTION or not text or _normal(text).startswith(marker):
            return msgspec.structs.replace(base, text=pack.not_addressed, absent=True, calls=outcome.calls)
        heading = _sections(item.passages).get(section, section)
        check = await model.chat_json(absence.request({"question": item.question.full_text, "answer": text}))
        if isinstance(check, Failure):
            return msgspec.structs.replace(base, text=text, calls=outcome.calls, failure=check)
        return msgspec.structs.replace(
            base,
            text=text,
            absent=check.value["addressed"] == "no",
            citations=_citations(f"[{heading}] {text}", item.passages),
            calls=outcome.calls + check.calls,
        )

    return model.run(planned, work, title="answering from each source", progress=progress)


def _normal(text: str) -> str:
    return " ".join(re.sub(r"\W+", " ", text).lower().split())


def _citations(text: str, passages: Sequence[Passage]) -> tuple[str, ...]:
    headings = {_normal(passage.heading): passage.heading for passage in passages}
    found = (_normal(match) for match in _CITATION.findall(text))
    return tuple(dict.fromkeys(headings[name] for name in found if name in headings))
