"""The hand-off to people: which items wait for whom, and what reviewers' labels make of them.

A recipe lists what should be looked at as `ReviewTask`s in the benchmark's `review.jsonl`. Labels come back as JSONL or
CSV (`item`, `criterion`, `value`, `reviewer`, `note`); built again with `reviews=FILE`, a recipe applies its rule.
"""

from __future__ import annotations

import csv
import io
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct, field

from hoofbeat.errors import InputError
from hoofbeat.recipes.items import Item, Outcome, Rejection
from hoofbeat.recipes.steps import RecipeStep, check
from hoofbeat.recipes.workshop import Workshop

__all__ = ["ReviewLabel", "ReviewTask", "drawn_for_review", "read_labels", "reviewed"]


class ReviewTask(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing for a person to look at.

    `kind` names the form (likert, leak, distractors, three-criteria, two-level), `criteria` what is asked, `shown` what
    the reviewer is given beside the question, `why` how the item came to be chosen.
    """

    item: str
    kind: str
    criteria: tuple[str, ...]
    why: str
    step: str = ""
    question: str = ""
    shown: dict[str, str] = field(default_factory=dict)


class ReviewLabel(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one reviewer said of one item by one criterion."""

    item: str
    criterion: str
    value: str
    reviewer: str = ""
    note: str = ""


def drawn_for_review(items: Sequence[Item], shop: Workshop, step: str, share: float) -> list[Item]:
    """A seeded share of the items, at least one where there are any and the share is not 0; in the items' order.

    Each item has a number of its own, so that one more or less item changes little of who is drawn.
    """
    if not items or share <= 0:
        return []
    count = min(len(items), max(1, math.ceil(len(items) * share)))
    order = sorted(items, key=lambda item: (shop.rng("review", step, item.id).random(), item.id))
    drawn = {item.id for item in order[:count]}
    return [item for item in items if item.id in drawn]


def read_labels(path: Path) -> list[ReviewLabel]:
    """Labels from a JSONL or CSV file; a line that is no label is named by its number."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as err:
        raise InputError(f"the labels can't be read: {err}", where=str(path), fix="check the file") from err
    rows: list[object]
    if path.suffix.lower() == ".csv":
        rows = list(csv.DictReader(io.StringIO(text)))
    else:
        rows = []
        for number, line in enumerate(text.splitlines(), start=1):
            if line.strip():
                try:
                    rows.append(msgspec.json.decode(line))
                except msgspec.DecodeError as err:
                    raise InputError(f"line {number} is no JSON: {err}", where=str(path), fix="correct it") from err
    labels = []
    for number, row in enumerate(rows, start=1):
        try:
            labels.append(msgspec.convert(row, ReviewLabel, strict=False))
        except msgspec.ValidationError as err:
            raise InputError(
                f"label {number} can't be read: {err}",
                where=str(path),
                fix="each label has item, criterion and value, and may have reviewer and note",
            ) from err
    return labels


def reviewed(
    name: str, path: str, rule: Callable[[Item, Mapping[str, Sequence[ReviewLabel]]], Rejection | None]
) -> RecipeStep:
    """Apply a rule to the labels of an item, by criterion; items without labels wait and go on. No file: all wait."""
    by_item: defaultdict[str, defaultdict[str, list[ReviewLabel]]] = defaultdict(lambda: defaultdict(list))
    for each in read_labels(Path(path)) if path else ():
        by_item[each.item][each.criterion].append(each)

    def judge(item: Item, _shop: Workshop) -> Outcome:
        labels = by_item.get(item.id)
        if labels is None:
            return item.put(review="waiting")
        return rule(item, labels) or item.put(review="passed")

    return check(name, judge)
