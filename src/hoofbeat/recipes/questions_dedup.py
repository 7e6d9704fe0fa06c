"""Questions that were asked before: the same words, or the same thing in nearly the same words.

Questions are taken in their order, and each is compared with those before it that stay: the earlier one stays. Every
pair is listed for review; a reviewer who finds that two questions differ brings the dropped one back (`same`: `no`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from hoofbeat.models.encoder import Vectors
from hoofbeat.recipes.items import Item, Outcome, Rejection
from hoofbeat.recipes.reviewing import ReviewLabel, ReviewTask
from hoofbeat.recipes.steps import RecipeStep, whole
from hoofbeat.recipes.workshop import TableFile, Workshop

__all__ = ["Twin", "duplicate_tasks", "exact_step", "near_step", "near_twins"]

TABLE = "duplicates"
HEADER = ("step", "dropped", "kept", "cosine", "decided", "dropped question", "kept question")
CRITERION = "same"
_DIFFERENT = frozenset({"no", "different", "0", "false"})


class Twin(Struct, frozen=True):
    """A question that resembles an earlier one that stays: places in the list, and the cosine of their vectors."""

    place: int
    earlier: int
    cosine: float


def near_twins(vectors: Vectors, threshold: float, *, spared: frozenset[int] = frozenset()) -> list[Twin]:
    """Questions whose cosine with an earlier one that stays is above the threshold, each with the nearest of them.

    Those in `spared` are found, too, and stay all the same.
    """
    staying: list[int] = []
    found = []
    for place in range(len(vectors)):
        twin = _nearest(vectors, place, staying, threshold)
        if twin is not None:
            found.append(twin)
        if twin is None or place in spared:
            staying.append(place)
    return found


def _nearest(vectors: Vectors, place: int, staying: Sequence[int], threshold: float) -> Twin | None:
    if not staying:
        return None
    cosines = np.round(vectors[staying] @ vectors[place], 4)
    best = int(np.argmax(cosines))
    return Twin(place, staying[best], float(cosines[best])) if cosines[best] > threshold else None


def exact_step(name: str, value: str) -> RecipeStep:
    """Turn away what says the same words as an earlier question, whatever their case and punctuation."""

    def judge(items: Sequence[Item], _shop: Workshop) -> list[Outcome]:
        first: dict[str, str] = {}
        outcomes: list[Outcome] = []
        for item in items:
            earlier = first.setdefault(" ".join(re.findall(r"\w+", str(item[value]).casefold())), item.id)
            same = earlier != item.id
            outcomes.append(
                Rejection(reason="the same words as an earlier question", details=earlier) if same else item
            )
        return outcomes

    return whole(name, judge)


def near_step(
    name: str, value: str, threshold: float, labels: Mapping[str, Sequence[ReviewLabel]] | None = None
) -> RecipeStep:
    """Turn away near-duplicates of earlier questions and list every pair in the table `duplicates`.

    `labels` are what reviewers said of items; those they found to be different stay.
    """
    known = labels or {}

    def judge(items: Sequence[Item], shop: Workshop) -> list[Outcome]:
        texts = [str(item[value]) for item in items]
        vectors = shop.encoder().encode(texts, shop.progress)
        spared = frozenset(place for place, item in enumerate(items) if _different(known.get(item.id, ())))
        twins = {twin.place: twin for twin in near_twins(vectors, threshold, spared=spared)}
        rows = [
            (name, items[twin.place].id, items[twin.earlier].id, f"{twin.cosine:.4f}",
             "kept by a reviewer" if twin.place in spared else "dropped", texts[twin.place], texts[twin.earlier])
            for twin in twins.values()
        ]  # fmt: skip
        before = shop.tables[TABLE].rows if TABLE in shop.tables else ()
        shop.tables[TABLE] = TableFile(HEADER, [*before, *rows])
        return [
            Rejection(
                reason="nearly the same as an earlier question",
                details=f"{items[twins[place].earlier].id}, cosine {twins[place].cosine:.4f}",
            )
            if place in twins and place not in spared
            else item
            for place, item in enumerate(items)
        ]

    return whole(name, judge)


def _different(labels: Sequence[ReviewLabel]) -> bool:
    """Whether most reviewers of a pair found that the two ask different things."""
    said = [label.value.strip().lower() in _DIFFERENT for label in labels if label.criterion == CRITERION]
    return bool(said) and sum(said) * 2 > len(said)


def duplicate_tasks(shop: Workshop) -> list[ReviewTask]:
    """The listed pairs as tasks: does the dropped question ask the same as the one that stays?"""
    rows = shop.tables[TABLE].rows if TABLE in shop.tables else ()
    return [
        ReviewTask(
            item=str(dropped),
            kind="duplicate",
            criteria=(CRITERION,),
            why=f"cosine {cosine} with {kept}",
            step=str(step),
            question=str(text),
            shown={"kept": str(kept_text)},
        )
        for step, dropped, kept, cosine, decided, text, kept_text in rows
        if decided == "dropped"
    ]
