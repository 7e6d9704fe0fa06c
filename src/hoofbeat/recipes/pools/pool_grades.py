"""Grading: a pooled document is judged on two scales, and both decide whether it is an answer, none, or neither.

A document that is high on both is a positive, one that is low on both a negative. What lies between, or is high on one
scale and low on the other, is doubtful: it would be noise on either side, so it is neither.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from msgspec import Struct

from hoofbeat.errors import UsageError
from hoofbeat.prompts import load_prompt
from hoofbeat.recipes.context import RecipeContext, TableFile, fit_all
from hoofbeat.recipes.recipe_items import ItemRejection, Outcome, RecipeItem
from hoofbeat.recipes.steps import UNLIMITED, PartReply, RecipeStep, ask_each
from hoofbeat.records import Failure

Verdict = Literal["positive", "negative", "discarded", "failed"]
Contradictory = Literal["discarded", "negative"]
POOL_HEADER = ("item", "document", "known", "votes", "best_rank", "relevance", "support", "verdict", "reason")
HIGHEST = 10
_REASON = 300


class GradeThresholds(Struct, frozen=True, kw_only=True):
    """Where the scales are cut: high from `keep`, low up to `reject`. `contradictory`: what one of each makes."""

    keep: int = 8
    reject: int = 4
    contradictory: Contradictory = "discarded"

    def __post_init__(self) -> None:
        if not 0 <= self.reject < self.keep <= HIGHEST:
            raise UsageError(
                f"grades can't be kept from {self.keep} and rejected up to {self.reject}",
                fix="rejected ones end below kept ones, both between 0 and 10",
            )


def verdict(relevance: int, support: int, limits: GradeThresholds) -> Verdict:
    """What two grades make of a document."""
    low, high = sorted((relevance, support))
    if low >= limits.keep:
        return "positive"
    if high <= limits.reject:
        return "negative"
    doubtful = any(limits.reject < grade < limits.keep for grade in (low, high))
    return "discarded" if doubtful else limits.contradictory


def grade_step(
    name: str,
    prompt: str,
    *,
    text: Callable[[str, RecipeContext], str],
    limits: GradeThresholds,
    role: str = "model",
    maximum: int = UNLIMITED,
) -> RecipeStep:
    """Grade every document of an item's `pool`; an item without a positive is rejected.

    The prompt takes `query`, `answer`, `reasoning` and `document`, and gives `reason`, `relevance` and `support`. The
    pool with its grades is left as the table `pool`, for rejected items too. A document whose call failed has no grade.
    `maximum` is how large a pool can be, for estimates.
    """
    rows: list[tuple[object, ...]] = []

    def values(item: RecipeItem, part: dict[str, Any], context: RecipeContext) -> dict[str, object]:
        told = {name: str(item[name]) for name in ("query", "answer", "reasoning")}
        return {**fit_all({**told, "document": text(part["id"], context)}, load_prompt(prompt), context, role)}

    def read(item: RecipeItem, answers: Sequence[PartReply], _context: RecipeContext) -> Outcome:
        graded = [_graded(answer, limits) for answer in answers]
        rows.extend(pool_rows(item.id, graded))
        done = item.put(pool=graded)
        if any(each["verdict"] == "positive" for each in graded):
            return done
        failure = next((answer.failure for answer in answers if answer.failure is not None), None)
        return failure or _no_positive(graded)

    inner = ask_each(
        name, prompt, parts=lambda item, _context: item["pool"], values=values, read=read, role=role, maximum=maximum
    )

    def run(items: Sequence[RecipeItem], context: RecipeContext) -> Sequence[Outcome]:
        rows.clear()
        empty = [not item["pool"] for item in items]
        outcomes = iter(inner.run([item for item, none in zip(items, empty, strict=True) if not none], context))
        context.tables["pool"] = TableFile(POOL_HEADER, list(rows))
        nothing = ItemRejection(reason="nothing was found that could answer it")
        return [nothing if none else next(outcomes) for none in empty]

    return RecipeStep(name=name, run=run, prompts=inner.prompts, calls=inner.calls)


def pool_rows(item: str, graded: Sequence[dict[str, Any]]) -> list[tuple[object, ...]]:
    """The graded pool of an item as rows under `POOL_HEADER`."""
    return [
        (
            item,
            each["id"],
            "yes" if each["known"] else "no",
            each["votes"],
            each["best"] or "",
            each.get("relevance", ""),
            each.get("support", ""),
            each["verdict"],
            each["reason"],
        )
        for each in graded
    ]


def _graded(answer: PartReply, limits: GradeThresholds) -> dict[str, Any]:
    part: dict[str, Any] = answer.part
    if isinstance(answer.failure, Failure):
        return {**part, "verdict": "failed", "reason": f"no grade: {answer.failure.kind}"}
    value = answer.value or {}
    relevance, support = int(value["relevance"]), int(value["support"])
    reason = " ".join(str(value["reason"]).split())[:_REASON]
    made = verdict(relevance, support, limits)
    return {**part, "relevance": relevance, "support": support, "verdict": made, "reason": reason}


def _no_positive(graded: Sequence[dict[str, Any]]) -> ItemRejection:
    best = max(graded, key=lambda each: (min(each["relevance"], each["support"]), each["relevance"], each["id"]))
    return ItemRejection(
        reason="no document is graded as one that answers it",
        details=f"the best is {best['id']} with relevance {best['relevance']} and support {best['support']}",
    )
