"""The model's answer to a case, from the passages that are shown beside it and no others."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from hoofbeat.answering import Planned, answer_all
from hoofbeat.answering.answer import fit, nothing_fits
from hoofbeat.answering.source_checks import NO_SECTION, check_citations
from hoofbeat.models import Model
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import load_prompt
from hoofbeat.records import Failure, Question
from hoofbeat.web.ask.checking import check_answer, check_parts
from hoofbeat.web.ask.finding import ASKED
from hoofbeat.web.ask.records import Ask, Cited, Report

__all__ = ["TOO_LONG", "answer_case"]

TOO_LONG = "the case is too long for this model to read together with a report; shorten it and ask again"


def answer_case(ask: Ask, reports: Sequence[Report], model: Model, *, progress: Progress = SILENT) -> Cited:
    """Ask the model, and check what it cites; a call that fails leaves an answer with its failure."""
    numbered = {
        each.number: replace(each.passage, heading=f"{report.title}: {each.passage.heading}".rstrip(": "))
        for report in reports
        for each in report.passages
    }
    question = Question(id=ASKED, text=ask.text)
    passages = list(numbered.values())
    output = load_prompt("answer-evidence").max_tokens
    kept, dropped = fit(passages, question.full_text, model.context, output)
    failure = nothing_fits(passages, kept, model.context)
    if failure is not None:
        failure = Failure(kind="context-overflow", message=TOO_LONG, attempts=0)
    planned = Planned(
        question=question,
        condition=f"{ask.line} @{len(passages)}",
        passages=kept,
        dropped=dropped,
        failure=failure,
    )
    answer = answer_all(model, [planned], progress=progress)[0]
    shown = dict(list(numbered.items())[: len(kept)])
    if answer.failure is not None:
        return Cited(answer=answer, shown=tuple(shown))
    parts = check_parts(answer.text, shown)
    return Cited(
        answer=answer,
        parts=parts,
        shown=tuple(shown),
        checks=check_citations(NO_SECTION, "", answer.text, kept).steps,
        doubts=check_answer(answer.text, parts, kept),
    )
