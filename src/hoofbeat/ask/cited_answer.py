"""The model's answer to a case, from the passages that are shown beside it and no others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from hoofbeat.answering.answer_calls import fit
from hoofbeat.ask.ask_records import AskRequest, CitedAnswer, SimilarReport
from hoofbeat.ask.citation_checks import check_answer, check_parts
from hoofbeat.ask.similar_reports import ASKED
from hoofbeat.audit.answers.source_citations import NO_SECTION, check_citations
from hoofbeat.models import Model
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import load_prompt
from hoofbeat.records import Answer, Failure, Passage, Question
from hoofbeat.window import nothing_fits

__all__ = ["PROMPT", "TOO_LONG", "answer_case"]

PROMPT = "ask-case"

TOO_LONG = "the case is too long for this model to read together with a report; shorten it and ask again"


def answer_case(
    ask: AskRequest, reports: Sequence[SimilarReport], model: Model, *, progress: Progress = SILENT
) -> CitedAnswer:
    """Ask the model, and check what it cites; a call that fails leaves an answer with its failure."""
    numbered = {
        each.number: replace(each.passage, heading=f"{report.title}: {each.passage.heading}".rstrip(": "))
        for report in reports
        for each in report.passages
    }
    question = Question(id=ASKED, text=ask.text)
    passages = list(numbered.values())
    kept, dropped = fit(passages, question.full_text, model.context, load_prompt(PROMPT).max_tokens)
    blank = Answer(
        question=question.id,
        model=model.spec,
        condition=f"{ask.line} @{len(passages)}",
        evidence=tuple(kept),
        dropped=tuple(dropped),
    )
    if nothing_fits(passages, kept, model.context) is not None:
        failure = Failure(kind="context-overflow", message=TOO_LONG, attempts=0)
        answer = replace(blank, failure=failure)
    else:
        answer = _answered(blank, ask.text, kept, model, progress)
    shown = dict(list(numbered.items())[: len(kept)])
    if answer.failure is not None:
        return CitedAnswer(answer=answer, shown=tuple(shown))
    parts = check_parts(answer.text, shown)
    return CitedAnswer(
        answer=answer,
        parts=parts,
        shown=tuple(shown),
        checks=check_citations(NO_SECTION, "", answer.text, kept).steps,
        doubts=check_answer(answer.text, parts, kept),
    )


def _answered(blank: Answer, case: str, passages: Sequence[Passage], model: Model, progress: Progress) -> Answer:
    """The model's statements as one text, each with the numbers of its passages behind it."""
    request = load_prompt(PROMPT).request({"case": case, "passages": passages})

    async def work(_: None) -> Answer:
        outcome = await model.chat_json(request)
        if isinstance(outcome, Failure):
            return replace(blank, failure=outcome)
        text = " ".join(filter(None, map(_statement, outcome.value["statements"])))
        used = outcome.reply.usage
        if not text:
            return replace(blank, failure=Failure(kind="unreadable", message="the model stated nothing", attempts=1))
        return replace(blank, text=text, calls=outcome.calls, usage=used)

    return model.run([None], work, title="answering", progress=progress)[0]


def _statement(said: Mapping[str, Any]) -> str:
    """One statement with its numbers before its full stop, but for those that its own words have already."""
    text = str(said["text"]).strip()
    there = {part.cites for part in check_parts(text, {})}
    numbers = [number for number in dict.fromkeys(said["passages"]) if number > 0 and number not in there]
    cited = "".join(f"[{number}]" for number in numbers)
    if not text or not cited:
        return text
    stop = text[-1] if text[-1] in ".!?" else "."
    return f"{text.removesuffix(stop)} {cited}{stop}"
