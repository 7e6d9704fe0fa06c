"""Questions that were asked before: the same words, or the same thing in nearly the same words.

Questions are taken in their order, and each is compared with those before it that stay: the earlier one stays. Every
pair is listed for review; a reviewer who finds that two questions differ brings the dropped one back (`same`: `no`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from hoofbeat.models.encoder import Vectors
from hoofbeat.recipes.context import RecipeContext, TableFile
from hoofbeat.recipes.recipe_items import ItemRejection, Outcome, RecipeItem
from hoofbeat.recipes.review_tasks import ReviewLabel, ReviewTask, says_yes
from hoofbeat.recipes.steps import RecipeStep, whole
from hoofbeat.text import for_word_matching

TABLE = "duplicates"
HEADER = ("step", "dropped", "kept", "cosine", "decided", "dropped question", "kept question")
CRITERION = "same"
_DECIDED = {None: "dropped", True: "dropped, as a reviewer says, too", False: "kept by a reviewer"}
_BLOCK = 256  # so many questions are compared with all before them in one product


class DuplicateQuestion(Struct, frozen=True):
    """A question that resembles an earlier one that stays: places in the list, and the cosine of their vectors."""

    place: int
    earlier: int
    cosine: float


def near_twins(vectors: Vectors, threshold: float, *, spared: frozenset[int] = frozenset()) -> list[DuplicateQuestion]:
    """Questions whose cosine with an earlier one that stays is above the threshold, each with the nearest of them.

    Those in `spared` are found, too, and stay all the same.
    """
    kept = np.empty_like(vectors)  # the vectors of those that stay, one below the other, as far as they are known
    staying: list[int] = []
    found = []
    for start in range(0, len(vectors), _BLOCK):
        block = vectors[start : start + _BLOCK]
        before = _best(block, kept[: len(staying)])
        among = np.round(block @ block.T, 4)
        mine: list[int] = []
        for row in range(len(block)):
            twin = _nearest(start, row, before[row], among[row], mine, staying)
            if twin is not None and twin.cosine > threshold:
                found.append(twin)
            if twin is None or twin.cosine <= threshold or start + row in spared:
                mine.append(row)
        kept[len(staying) : len(staying) + len(mine)] = block[mine]
        staying += [start + row for row in mine]
    return found


def _best(block: Vectors, kept: Vectors) -> list[tuple[int, float]]:
    """For each vector of a block the nearest of those kept so far, the first of equals; none where nothing is kept."""
    if not len(kept):
        return [(-1, -1.0)] * len(block)
    cosines = block @ kept.T
    np.round(cosines, 4, out=cosines)
    return [(place := int(row.argmax()), _cosine(row[place])) for row in cosines]


def _nearest(
    start: int, row: int, before: tuple[int, float], among: Vectors, mine: Sequence[int], staying: Sequence[int]
) -> DuplicateQuestion | None:
    """The nearest earlier question that stays: of those before the block, or of those of the block itself."""
    if mine:
        own = mine[int(among[mine].argmax())]
        if before[0] < 0 or _cosine(among[own]) > before[1]:
            return DuplicateQuestion(start + row, start + own, _cosine(among[own]))
    return DuplicateQuestion(start + row, staying[before[0]], before[1]) if before[0] >= 0 else None


def _cosine(value: float) -> float:
    """Four digits and no more: what single precision adds behind them must not lift a cosine above a threshold."""
    return round(float(value), 4)


def exact_step(name: str, value: str) -> RecipeStep:
    """Turn away what says the same words as an earlier question, whatever their case and punctuation."""

    def judge(items: Sequence[RecipeItem], _context: RecipeContext) -> list[Outcome]:
        first: dict[str, str] = {}
        outcomes: list[Outcome] = []
        for item in items:
            earlier = first.setdefault(for_word_matching(str(item[value])), item.id)
            same = earlier != item.id
            outcomes.append(
                ItemRejection(reason="the same words as an earlier question", details=earlier) if same else item
            )
        return outcomes

    return whole(name, judge)


def near_step(
    name: str,
    value: str,
    threshold: float,
    labels: Mapping[str, Sequence[ReviewLabel]] | None = None,
    *,
    where: str = "",
) -> RecipeStep:
    """Turn away near-duplicates of earlier questions and list every pair in the table `duplicates`.

    `labels` are what reviewers said of items, read from the file `where`; those they found to be different stay.
    """
    same = {item: found for item, said in (labels or {}).items() if (found := _same(said, where)) is not None}

    def judge(items: Sequence[RecipeItem], context: RecipeContext) -> list[Outcome]:
        texts = [str(item[value]) for item in items]
        vectors = context.encoder().encode(texts, context.progress)
        spared = frozenset(place for place, item in enumerate(items) if same.get(item.id) is False)
        twins = {twin.place: twin for twin in near_twins(vectors, threshold, spared=spared)}
        rows = [
            (name, items[twin.place].id, items[twin.earlier].id, f"{twin.cosine:.4f}",
             _DECIDED[same.get(items[twin.place].id)], texts[twin.place], texts[twin.earlier])
            for twin in twins.values()
        ]  # fmt: skip
        before = context.tables[TABLE].rows if TABLE in context.tables else ()
        context.tables[TABLE] = TableFile(HEADER, [*before, *rows])
        return [
            ItemRejection(
                reason="nearly the same as an earlier question",
                details=f"{items[twins[place].earlier].id}, cosine {twins[place].cosine:.4f}",
            )
            if place in twins and place not in spared
            else item
            for place, item in enumerate(items)
        ]

    return whole(name, judge)


def _same(labels: Sequence[ReviewLabel], where: str) -> bool | None:
    """Whether reviewers of a pair found that the two ask the same: most must say no; nothing where none looked."""
    said = [says_yes(label, where) for label in labels if label.criterion == CRITERION]
    return sum(said) * 2 >= len(said) if said else None


def duplicate_tasks(context: RecipeContext) -> list[ReviewTask]:
    """The listed pairs that nobody looked at as tasks: does the dropped question ask the same as the one that stays?"""
    rows = context.tables[TABLE].rows if TABLE in context.tables else ()
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
        if decided == _DECIDED[None]
    ]
