"""Questions that were asked before: the same words, the same thing in nearly the same words, or in other words.

Questions are taken in their order, and each is compared with those before it: the earlier one stays. The paper's rule
is a cosine over 0.85 (`near_step`). It takes one organ or medicine for another, so `same_step` has a model decide about
the nearest earlier questions. For the comparison, brands become generic names and everyday words one word each
(`drugs.toml`, `asking.toml`): else "forgot my Prograf" is not near "missed a dose of tacrolimus". What is written does
not change.
Every pair is listed for review; a reviewer who finds that two questions differ brings the dropped one back (`same`:
`no`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from string import ascii_uppercase
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from hoofbeat.models.encoder import Vectors
from hoofbeat.progress import Named
from hoofbeat.prompts import load_prompt
from hoofbeat.recipes.context import RecipeContext, TableFile
from hoofbeat.recipes.messages.anonymisation import in_plain_words
from hoofbeat.recipes.recipe_items import ItemRejection, Outcome, RecipeItem
from hoofbeat.recipes.review_tasks import ReviewLabel, ReviewTask, says_yes
from hoofbeat.recipes.steps import RecipeStep, ask, whole
from hoofbeat.recipes.wordlists import word_data
from hoofbeat.text import for_word_matching

TABLE = "duplicates"
HEADER = ("step", "dropped", "kept", "cosine", "decided", "dropped question", "kept question")
CRITERION = "same"
_DECIDED = {None: "dropped", True: "dropped, as a reviewer says, too", False: "kept by a reviewer"}
_DIFFERENT = "kept: the model finds them different"
_BLOCK = 256  # questions that are compared with all before them in one product


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
        vectors = context.encoder().encode(
            [plain_question(text) for text in texts], Named(context.progress, "encoding questions")
        )
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


@cache
def _plain_words() -> tuple[re.Pattern[str], dict[str, str]]:
    drugs, same = word_data("drugs")["drugs"], word_data("asking")["same"]
    assert isinstance(drugs, dict)
    assert isinstance(same, dict)
    plain = {str(name).lower(): str(word) for word, names in (*drugs.items(), *same.items()) for name in names}
    ordered = sorted(plain, key=lambda name: (-len(name), name))
    return re.compile(r"(?<!\w)(?:" + "|".join(map(re.escape, ordered)) + r")(?!\w)"), plain


def plain_question(text: str) -> str:
    """A question as it is compared: medicines by their generic names, everyday words by one word for each meaning."""
    pattern, plain = _plain_words()
    return pattern.sub(lambda match: plain[match[0]], text.lower().replace("’", "'"))


class _Earlier(Struct, frozen=True):
    """An earlier question that may ask the same: its place in the list, and how alike the two are."""

    place: int
    cosine: float


def nearest_earlier(vectors: Vectors, minimum: float, maximum: int) -> list[list[_Earlier]]:
    """For each question the earlier ones that are alike enough, the nearest first, at most `maximum`."""
    found: list[list[_Earlier]] = []
    for start in range(0, len(vectors), _BLOCK):
        cosines = np.round(vectors[start : start + _BLOCK] @ vectors[: start + _BLOCK].T, 4)
        for row, line in enumerate(cosines):
            before = line[: start + row]
            near = sorted(np.flatnonzero(before >= minimum).tolist(), key=lambda place: (-before[place], place))
            found.append([_Earlier(place, _cosine(before[place])) for place in near[:maximum]])
    return found


def same_step(
    name: str,
    value: str,
    *,
    minimum: float,
    sure: float,
    maximum: int = 3,
    labels: Mapping[str, Sequence[ReviewLabel]] | None = None,
    where: str = "",
) -> RecipeStep:
    """Turn away what a model finds to ask the same as an earlier question, and list every pair.

    The model sees the `maximum` nearest earlier questions whose cosine is at least `minimum`. Pairs over `sure` that it
    finds different are listed as well. `labels` are what reviewers said of items, read from the file `where`.
    """
    said_same = {item: found for item, said in (labels or {}).items() if (found := _same(said, where)) is not None}
    near: dict[str, list[tuple[str, str, float]]] = {}

    def read(item: RecipeItem, said: dict[str, Any], _context: RecipeContext) -> Outcome:
        chosen = [near[item.id][ascii_uppercase.index(letter)][0] for letter in said["same"]]
        return item.put(**{_CHOSEN: chosen})

    asked = ask(
        name,
        "sourceqa-duplicate",
        values=lambda item, _context: {
            "question": in_plain_words(str(item[value])),
            "earlier": "\n".join(
                f"{letter}. {text}" for letter, (_, text, _) in zip(ascii_uppercase, near[item.id], strict=False)
            ),
        },
        read=read,
        schema=lambda item, _context: _letters(len(near[item.id])),
        when=lambda item: bool(near[item.id]),
    )

    def run(items: Sequence[RecipeItem], context: RecipeContext) -> list[Outcome]:
        texts = [in_plain_words(str(item[value])) for item in items]
        vectors = context.encoder().encode(
            [plain_question(text) for text in texts], Named(context.progress, "encoding questions")
        )
        near.clear()
        for item, found in zip(items, nearest_earlier(vectors, minimum, maximum), strict=True):
            near[item.id] = [(items[each.place].id, texts[each.place], each.cosine) for each in found]
        outcomes = asked.run(items, context)
        return _decided(
            name, items, outcomes, near, {item.id: str(item[value]) for item in items}, sure, said_same, context
        )

    return RecipeStep(name=name, run=run, prompts=asked.prompts, calls=asked.calls)


_CHOSEN = "asks the same as"


def _decided(
    name: str,
    items: Sequence[RecipeItem],
    outcomes: Sequence[Outcome],
    near: Mapping[str, Sequence[tuple[str, str, float]]],
    texts: Mapping[str, str],
    sure: float,
    said_same: Mapping[str, bool],
    context: RecipeContext,
) -> list[Outcome]:
    """What becomes of every item, in order: the first of those that ask the same stays, or what reviewers keep."""
    stays: dict[str, str] = {item.id: item.id for item in items}
    rows: list[tuple[object, ...]] = []
    decided: list[Outcome] = []
    for item, outcome in zip(items, outcomes, strict=True):
        if not isinstance(outcome, RecipeItem):
            decided.append(outcome)
            continue
        chosen = list(outcome.get(_CHOSEN, ()))
        cosines = {id: cosine for id, _, cosine in near[item.id]}
        for id, cosine in cosines.items():
            if id not in chosen and cosine > sure:
                rows.append((name, item.id, id, f"{cosine:.4f}", _DIFFERENT, texts[item.id], texts[id]))
        bare = msgspec.structs.replace(outcome, values={k: v for k, v in outcome.values.items() if k != _CHOSEN})
        if not chosen:
            decided.append(bare)
            continue
        twin, kept = chosen[0], stays[chosen[0]]
        verdict = said_same.get(item.id)
        rows.append((name, item.id, kept, f"{cosines[twin]:.4f}", _DECIDED[verdict], texts[item.id], texts[kept]))
        if verdict is False:
            decided.append(bare)
            continue
        stays[item.id] = kept
        details = f"{kept}, cosine {cosines[twin]:.4f}"
        decided.append(ItemRejection(reason="asks the same as an earlier question", details=details))
    before = context.tables[TABLE].rows if TABLE in context.tables else ()
    context.tables[TABLE] = TableFile(HEADER, [*before, *rows])
    return decided


def _letters(count: int) -> dict[str, object]:
    schema = dict(load_prompt("sourceqa-duplicate").schema or {})
    properties = schema["properties"]
    assert isinstance(properties, dict)
    letters = {"type": "array", "items": {"type": "string", "enum": list(ascii_uppercase[:count])}, "maxItems": count}
    return {**schema, "properties": {**properties, "same": letters}}


def _same(labels: Sequence[ReviewLabel], where: str) -> bool | None:
    """Whether reviewers of a pair found that the two ask the same: most must say no; nothing where none looked."""
    said = [says_yes(label, where) for label in labels if label.criterion == CRITERION]
    return sum(said) * 2 >= len(said) if said else None


def duplicate_tasks(context: RecipeContext) -> list[ReviewTask]:
    """The listed pairs without a review, as tasks: does the dropped question ask the same as the one that stays?"""
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
