"""Answers from one source at a time: only that source's passages, its headings cited, or the sentence of absence."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from hoofbeat.answering.answer import Planned, fit
from hoofbeat.models import ChatRequest, Model
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import Pack, load_prompt
from hoofbeat.records import Answer, Document, Failure, Passage, Question

__all__ = ["answer_from_sources", "asked_of", "plan_sources", "source_request"]

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
            whole = Passage(
                id=document.id, document=document.id, text=document.text, end=len(document.text), heading=document.title
            )
            shown: Sequence[Sequence[Passage]] = [[whole]] * len(mine)
        else:
            shown = search(mine, document.id)
        for question, passages in zip(mine, shown, strict=True):
            kept, dropped = fit(passages, question.full_text, window, load_prompt("answer-source").max_tokens)
            planned.append(Planned(question=question, condition=document.id, passages=kept, dropped=dropped))
    return sorted(planned, key=lambda item: (item.question.id, item.condition))


def source_request(planned: Planned, pack: Pack, max_tokens: int | None = None) -> ChatRequest:
    """The call for one question and one source."""
    return load_prompt("answer-source").request(
        {
            "question": planned.question.full_text,
            "passages": planned.passages,
            "source_word": pack.source_word,
            "reader": pack.reader,
            "not_addressed": pack.not_addressed,
        },
        max_tokens=max_tokens,
    )


def answer_from_sources(
    model: Model, planned: Sequence[Planned], pack: Pack, *, max_tokens: int | None = None, progress: Progress = SILENT
) -> list[Answer]:
    """Answer every planned (question, source) and decide whether the source is silent on it.

    The sentence of absence decides at once; any other answer is put to a yes/no call. Citations count only where the
    heading was among the passages shown.
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
        outcome = await model.chat(source_request(item, pack, max_tokens))
        if isinstance(outcome, Failure):
            return msgspec.structs.replace(base, failure=outcome)
        text = outcome.reply.text.strip()
        if not text or _normal(text).startswith(marker):
            return msgspec.structs.replace(base, text=text, absent=True, calls=outcome.calls)
        check = await model.chat_json(absence.request({"question": item.question.full_text, "answer": text}))
        if isinstance(check, Failure):
            return msgspec.structs.replace(base, text=text, calls=outcome.calls, failure=check)
        return msgspec.structs.replace(
            base,
            text=text,
            absent=check.value["addressed"] == "no",
            citations=_citations(text, item.passages),
            calls=outcome.calls + check.calls,
        )

    return model.run(planned, work, title="answering from each source", progress=progress)


def _normal(text: str) -> str:
    return " ".join(re.sub(r"\W+", " ", text).lower().split())


def _citations(text: str, passages: Sequence[Passage]) -> tuple[str, ...]:
    headings = {_normal(passage.heading): passage.heading for passage in passages}
    found = (_normal(match) for match in _CITATION.findall(text))
    return tuple(dict.fromkeys(headings[name] for name in found if name in headings))
