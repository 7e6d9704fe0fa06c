"""The hand-off to people: which items wait for whom, and what reviewers' labels make of them.

A recipe lists what should be looked at as `ReviewTask`s in the benchmark's `review.jsonl`. Labels come back as JSONL or
CSV (`item`, `criterion`, `value`, `reviewer`, `note`); built again with `reviews=FILE`, a recipe applies its rule.
A label that can't be read, or whose criterion nobody asked about, is refused: it must not count as a pass. So is a
second one by the same reviewer: nobody votes twice.

Review in two stages: an annotator sees every item and says `ok` or `flag` by each criterion; an expert sees what was
flagged and says `keep` or `exclude`.
"""

from __future__ import annotations

import csv
import io
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from hoofbeat.errors import InputError
from hoofbeat.recipes.context import RecipeContext
from hoofbeat.recipes.recipe_items import ItemRejection, Outcome, RecipeItem
from hoofbeat.recipes.steps import RecipeStep, whole
from hoofbeat.records import AcceptedAnswer, Facets
from hoofbeat.store.sheets import csv_delimiter, refuse_lines
from hoofbeat.store.tables import UNREADABLE, bare_cell

_YES = frozenset({"yes", "y", "true", "1", "ok", "pass", "passed"})
_NO = frozenset({"no", "n", "false", "0", "fail", "failed"})


SECOND_RIGHT = "second right option"
RIVAL = "another answer as good"
NOT_ANSWERABLE = "not answerable"
HELD = "held back by a referee"
WRONG = "answered wrongly"
TOLD = "given away by the question"
CASE_TELLS = "given away by the case"
UNGRADED = "grading left open"
GIVEN_AWAY = "given away by the options"
ABSURD = "absurd option"
STYLE = "options differ in style"
NOT_TRIED = "not tried"
NO_DOUBT = "none"
DOUBTS = (
    SECOND_RIGHT,
    RIVAL,
    NOT_ANSWERABLE,
    HELD,
    WRONG,
    TOLD,
    CASE_TELLS,
    UNGRADED,
    GIVEN_AWAY,
    ABSURD,
    STYLE,
    NOT_TRIED,
)
"""What the trials of a question may find (facet `doubts`), the gravest first."""


class ReviewTask(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing for a person to look at.

    `kind` names the form (likert, leak, distractors, three-criteria, two-level), `criteria` what is asked, `shown` what
    the reviewer is given beside the question, `why` how the item came to be chosen, `documents` its sources by id.
    """

    item: str
    kind: str
    criteria: tuple[str, ...]
    why: str
    step: str = ""
    question: str = ""
    shown: dict[str, str] = field(default_factory=dict)
    documents: tuple[str, ...] = ()


ACCEPT = "accept answer"
"""The criterion of a label that is a revision: its value is another answer that counts as right from now on."""

SUPPORTS = "supporting document"
"""The same for documents: its value is the id of one that supports the answer, and counts as found from now on."""


class ReviewLabel(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one reviewer said of one item by one criterion."""

    item: str
    criterion: str
    value: str
    reviewer: str = ""
    note: str = ""


def doubtful_first(tasks: Sequence[ReviewTask], items: Sequence[RecipeItem]) -> list[ReviewTask]:
    """The tasks, those of the most doubtful items first and with the doubts among the reasons why."""
    doubts = {item.id: doubts_of(item.facets) for item in items}
    told = [
        msgspec.structs.replace(task, why=f"{task.why}; in the trials: {', '.join(doubts[task.item])}")
        if doubts.get(task.item)
        else task
        for task in tasks
    ]
    return sorted(told, key=lambda task: gravity(doubts.get(task.item, ())))


def doubts_of(facets: Facets) -> tuple[str, ...]:
    """The doubts that facets name; none where nothing was doubtful or nothing was tried."""
    said = facets.get("doubts", ())
    return tuple(each for each in ([said] if isinstance(said, str) else said) if each in DOUBTS)


def gravity(doubts: Sequence[str]) -> tuple[int, int]:
    """Sorts the most doubtful first: by the gravest doubt, then by how many there are."""
    return (min(map(DOUBTS.index, doubts), default=len(DOUBTS)), -len(doubts))


def drawn_for_review(items: Sequence[RecipeItem], context: RecipeContext, step: str, share: float) -> list[RecipeItem]:
    """A seeded share of the items, at least one where there are any and the share is not 0; in the items' order.

    Each item has its own number, so that one more or less item changes little of who is drawn.
    """
    if not items or share <= 0:
        return []
    count = min(len(items), max(1, math.ceil(len(items) * share)))
    order = sorted(items, key=lambda item: (context.rng("review", step, item.id).random(), item.id))
    drawn = {item.id for item in order[:count]}
    return [item for item in items if item.id in drawn]


def read_labels(path: Path, *, several: Collection[str] = (ACCEPT, SUPPORTS)) -> list[ReviewLabel]:
    """Labels from a JSONL or CSV file; a line that is not a label is named by its number.

    A reviewer has one label of an item by a criterion (as an expert another), of the criteria `several` any number.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as err:
        raise InputError(f"the labels can't be read: {err}", where=str(path), fix="check the file") from err
    rows: list[tuple[int, object]]
    if path.suffix.lower() == ".csv":
        try:
            table = csv.DictReader(io.StringIO(text), delimiter=csv_delimiter(text.partition("\n")[0]))
            rows = [(table.line_num, _bare(row)) for row in table]
        except csv.Error as err:
            raise InputError(f"the labels can't be read: {err}", where=str(path), fix="check the file") from err
    else:
        rows = []
        for number, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                try:
                    rows.append((number, msgspec.json.decode(line)))
                except UNREADABLE as err:
                    raise InputError(f"line {number} is not JSON: {err}", where=str(path), fix="correct it") from err
    labels: list[ReviewLabel] = []
    said: dict[tuple[object, ...], int] = {}
    doubled = []
    for number, (at, row) in enumerate(rows, start=1):
        try:
            label = msgspec.convert(row, ReviewLabel, strict=False)
        except msgspec.ValidationError as err:
            raise InputError(
                f"label {number} can't be read: {err}",
                where=str(path),
                fix="each label has item, criterion and value, and may have reviewer and note",
            ) from err
        labels.append(label)
        who, by_expert = label.reviewer.strip(), label.value.strip().lower() in _EXPERT
        first = said.setdefault((label.item, label.criterion, who, by_expert), at)
        if who and first != at and label.criterion not in several:
            doubled.append(f"line {at}: {who} has already labelled {label.item} by {label.criterion!r} (line {first})")
    refuse_lines(doubled, path, fix="keep one of these lines; nothing was written")
    return labels


def _bare(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of CSV as it was before it was written; cells that are missing or too many are left as they are."""
    return {name: bare_cell(cell) if isinstance(cell, str) else cell for name, cell in row.items()}


def known_labels(path: str, criteria: Sequence[str], *, several: Collection[str] = ()) -> list[ReviewLabel]:
    """The labels of a file, none where no file is named; one by a criterion that is not among these is refused."""
    labels = read_labels(Path(path), several=several) if path else []
    for label in labels:
        if label.criterion not in criteria:
            raise InputError(
                f"the criterion {label.criterion!r} of a label for {label.item} is unknown here",
                where=path,
                fix=f"criteria are {', '.join(criteria)}",
            )
    return labels


def says_yes(label: ReviewLabel, where: str) -> bool:
    """Whether a label says yes (yes, true, 1, ok, pass) or no (no, false, 0, fail); anything else is refused."""
    value = label.value.strip().casefold()
    if value in _YES or value in _NO:
        return value in _YES
    raise InputError(
        f"the label {label.value!r} of {label.item} by {label.criterion!r} is neither yes nor no",
        where=where,
        fix="write yes or no, or remove the line",
    )


def read_rating(label: ReviewLabel, where: str, *, lowest: float = 1, highest: float = 5) -> float:
    """The rating that a label gives; anything but a number within these bounds is refused."""
    try:
        rating = float(label.value)
    except ValueError:
        rating = math.nan
    if lowest <= rating <= highest:
        return rating
    raise InputError(
        f"the label {label.value!r} of {label.item} by {label.criterion!r} is not a rating",
        where=where,
        fix=f"give a number from {lowest:g} to {highest:g}, or remove the line",
    )


def count_labels(labels: Iterable[ReviewLabel], items: Iterable[str], context: RecipeContext) -> None:
    """Say in the metrics how many labels are for these items (by their ids), and how many are for none of them."""
    here = set(items)
    found = Counter(label.item in here for label in labels)
    context.metrics["review labels"] = {"used": found[True], "for items not here": found[False]}


def accepted_answers(labels: Iterable[ReviewLabel], study: str = "") -> tuple[AcceptedAnswer, ...]:
    """The answers that labels accept, each once with everybody who accepted it."""
    said: dict[str, list[ReviewLabel]] = {}
    for label in labels:
        if label.criterion == ACCEPT and label.value.strip():
            said.setdefault(label.value.strip(), []).append(label)
    return tuple(
        AcceptedAnswer(
            text=text,
            by=tuple(sorted({label.reviewer for label in mine if label.reviewer})),
            study=study,
            note="; ".join(dict.fromkeys(label.note for label in mine if label.note)),
        )
        for text, mine in said.items()
    )


def reviewed(
    name: str,
    path: str,
    rule: Callable[[RecipeItem, Mapping[str, Sequence[ReviewLabel]]], ItemRejection | None],
    *,
    criteria: Sequence[str] = (),
    others: Sequence[str] = (),
) -> RecipeStep:
    """Apply a rule to the labels of an item, by criterion. What it does not turn away goes on, passed or waiting.

    An item has passed when it has a label by each of `criteria`, and waits for the rest otherwise; labels by `others`
    are allowed besides, and any further criterion is refused. Without `criteria` a label of any kind will do. Answers
    that labels accept are the item's `accepted`.
    """
    known = (*criteria, *others)
    labels = known_labels(path, known, several=others) if criteria else read_labels(Path(path)) if path else []
    by_item: defaultdict[str, defaultdict[str, list[ReviewLabel]]] = defaultdict(lambda: defaultdict(list))
    for each in labels:
        by_item[each.item][each.criterion].append(each)

    def judge(item: RecipeItem) -> Outcome:
        mine = by_item.get(item.id)
        if mine is None:
            return item.put(review="waiting")
        if rejection := rule(item, mine):
            return rejection
        if accepted := accepted_answers(mine.get(ACCEPT, ())):
            item = item.put(accepted=msgspec.to_builtins(accepted))
        return item.put(review="passed" if all(mine.get(each) for each in criteria) else "waiting")

    def judge_all(items: Sequence[RecipeItem], context: RecipeContext) -> list[Outcome]:
        if path:
            count_labels(labels, (item.id for item in items), context)
        return [judge(item) for item in items]

    return whole(name, judge_all)


_ANNOTATOR = frozenset({"ok", "flag"})
_EXPERT = frozenset({"keep", "exclude"})
WAITING, FLAGGED, PASSED = "waiting for the annotator", "waiting for the expert", "passed"


def two_stage(name: str, path: str, *, criteria: Sequence[str], forgiven: Sequence[str] = ()) -> RecipeStep:
    """Apply the labels of both stages; what nobody has reviewed goes on and waits.

    An item that the expert excludes by a criterion is rejected, unless all those are `forgiven`.
    """
    every = known_labels(path, criteria)
    labels = _read(every, path)

    def judge(item: RecipeItem) -> Outcome:
        said = labels.get(item.id, {})
        excluded = [each for each in criteria if "exclude" in said.get(each, ())]
        serious = [each for each in excluded if each not in forgiven]
        if serious:
            return ItemRejection(reason="an expert excluded it in review", details=", ".join(excluded))
        state, unread = _state(said, criteria)
        return item.put(review=state, unread=unread)

    def judge_all(items: Sequence[RecipeItem], context: RecipeContext) -> list[Outcome]:
        if path:
            count_labels(every, (item.id for item in items), context)
        return [judge(item) for item in items]

    return whole(name, judge_all)


def _state(said: Mapping[str, set[str]], criteria: Sequence[str]) -> tuple[str, list[str]]:
    """Whom an item waits for, if anyone, and by which criteria."""
    flagged = [each for each in criteria if "flag" in said.get(each, ()) and not said[each] & _EXPERT]
    unread = [each for each in criteria if not said.get(each)]
    return (FLAGGED, flagged) if flagged else (WAITING, unread) if unread else (PASSED, [])


def _read(every: Sequence[ReviewLabel], path: str) -> dict[str, dict[str, set[str]]]:
    labels: defaultdict[str, dict[str, set[str]]] = defaultdict(dict)
    for label in every:
        value = label.value.strip().lower()
        if value not in _ANNOTATOR | _EXPERT:
            raise InputError(
                f"the label {label.value!r} of {label.item} by {label.criterion!r} is unknown here",
                where=path,
                fix="an annotator writes ok or flag, an expert keep or exclude",
            )
        labels[label.item].setdefault(label.criterion, set()).add(value)
    return dict(labels)


def review_tasks(
    items: Sequence[RecipeItem], *, kind: str, criteria: Sequence[str], shown: Callable[[RecipeItem], dict[str, str]]
) -> tuple[ReviewTask, ...]:
    """What waits for whom: what is unlabelled for the annotator, what is flagged for the expert."""
    waiting = [item for item in items if item["review"] in (WAITING, FLAGGED)]
    return tuple(
        ReviewTask(
            item=item.id,
            kind=kind,
            criteria=tuple(item.get("unread", criteria)),
            why=str(item["review"]),
            step="review",
            question=str(item["query"]),
            shown=shown(item),
            documents=item.documents,
        )
        for item in waiting
    )
