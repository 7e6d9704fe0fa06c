"""Items from a run or a folder of judgments: answers under the codes and by the draw of `judging.humans`."""

from __future__ import annotations

from typing import Any

import msgspec

from hoofbeat.errors import UsageError
from hoofbeat.judging.aspects import Key, answer_key, answer_text, unanswered
from hoofbeat.judging.catalogue import takes
from hoofbeat.judging.designs import make_design
from hoofbeat.judging.folder import HUMAN, AnswerFolder
from hoofbeat.judging.sampling import Draw, allot_within, blind_code
from hoofbeat.records import Answer, Question
from hoofbeat.store import Artefact
from hoofbeat.web.review.items_tasks import group_of
from hoofbeat.web.review.records import Item, Shown

__all__ = ["ANSWER_FORMS", "answer_items"]

ANSWER_FORMS = ("equivalence", "failure-mode", "error-type", "error-analysis")
"""What people can be asked of an answer."""

_DEFAULT = 100
_FREE = ("equivalence",)


def answer_items(artefact: Artefact, form: str, sample: int | None, seed: int) -> tuple[dict[str, Any], list[Item]]:
    """Answers of every system in proportion, in the order of their codes; the study's settings keep the design.

    The same seed and number draw the same answers as a sheet would. What explains wrong answers is asked of those that
    a judge has explained, and the analysis of errors of all that were judged wrong.
    """
    folder = AnswerFolder(artefact)
    said = _judged(folder, form)
    if form not in _FREE and not said:
        wrong = form == "error-analysis"
        raise UsageError(
            "no answer here was judged wrong" if wrong else f"nobody has judged {form} here yet",
            where=str(artefact.path),
            fix="judge the run first: hoofbeat judge FOLDER" + ("" if wrong else f" --by {form}"),
        )
    count = sample or _DEFAULT
    draws: dict[tuple[str, ...], Draw[Answer]] = {}
    for answer in folder.each_answer():
        key = answer_key(answer)
        usable = unanswered(folder.questions.get(answer.question), answer) is None and takes(form, answer)
        if usable and (form in _FREE or key in said):
            stratum = (answer.model, answer.condition, said.get(key, "unjudged"))
            draws.setdefault(stratum, Draw(count, seed)).offer(key, answer)
    sizes = {stratum: draw.seen for stratum, draw in draws.items()}
    given = allot_within(sizes, count, seed)
    drawn = [(answer, stratum) for stratum, draw in draws.items() for answer in draw.drawn(given[stratum])]
    drawn.sort(key=lambda each: blind_code(answer_key(each[0]), form))
    items = [_item(answer, stratum, folder.questions[answer.question], form) for answer, stratum in drawn]
    design = make_design(
        sizes,
        given,
        [item.id for item in items],
        sheet="",
        aspect=form,
        seed=seed,
        asked=count,
        source=artefact.reference(),
    )
    return {"aspect": form, "design": msgspec.to_builtins(design)}, items


def _judged(folder: AnswerFolder, form: str) -> dict[Key, str]:
    """What judges other than people said, by answer; for the analysis of errors, the answers that are wrong."""
    if form == "error-analysis":
        return {key: "wrong" for key, right in folder.verdicts().items() if right is False}
    return {
        answer_key(each): "unscored" if each.failure else each.label
        for each in folder.each_judgment()
        if each.aspect == form and not each.judge.startswith(HUMAN)
    }


def _item(answer: Answer, stratum: tuple[str, ...], question: Question, form: str) -> Item:
    shown = [
        *([Shown(title="Case", text=question.context, kind="case")] if question.context else []),
        Shown(title="Question", text=question.text, kind="question"),
    ]
    if form in ("error-type", "error-analysis") and question.options:
        shown.append(Shown(title="Options", kind="options", lines=answer.options or question.options))
    shown += [
        Shown(title="Reference answer", text=question.answer, kind="gold"),
        Shown(title="Answer", text=answer_text(answer), kind="answer"),
    ]
    if form == "error-type":
        written = answer.text if answer.protocol and answer.text.strip() != answer_text(answer) else ""
        reasoning = "\n\n".join(part.strip() for part in (answer.reasoning, written) if part.strip())
        shown += [Shown(title="How it came to its answer", text=reasoning, kind="note")] if reasoning else []
    if form == "failure-mode":
        for number, passage in enumerate(answer.evidence, start=1):
            marks = tuple(
                (max(0, span.start - passage.start), min(len(passage.text), span.end - passage.start))
                for span in question.evidence
                if span.document == passage.document and passage.start <= span.start < passage.start + len(passage.text)
            )
            shown.append(Shown(title=f"Source it had, part {number}", text=passage.text, kind="source", marks=marks))
    identity = answer_key(answer)
    return Item(
        id=blind_code(identity, form),
        study="",
        place=0,
        shown=tuple(shown),
        key=dict(zip(("question", "model", "condition", "sample"), identity, strict=True)),
        stratum=" · ".join(stratum),
        group=group_of(question.facets),
    )
