"""The two-level check: every item read by a first reader, a drawn sample by physicians, findings sent back.

Labels come in one file, read by `reviewing.read_labels`; the last label of a reviewer on an item's criterion counts. A
label says that a criterion is met (`pass`) or not (anything else is a finding; its `note` says what must change). Two
criteria are no questions but revisions, and are carried out: `drop option` (value: the option) and `add to stem`
(value: words of the source). A finding that a revision answers is settled; any other keeps its item out of the
benchmark until it is. Built again with a longer file, the loop goes on until enough of the sample passes.

Who was drawn stands in `review-levels.tsv`: what review turns away later still counts in the sample, as a finding.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Literal

from hoofbeat.benchmarks.text_overlap import find_quote
from hoofbeat.errors import InputError
from hoofbeat.recipes.cases.answer_options import plain_option
from hoofbeat.recipes.cases.case_diagnosis import with_flags
from hoofbeat.recipes.cases.differentials import drop_options
from hoofbeat.recipes.cases.item_review import with_edits
from hoofbeat.recipes.cases.stems import joined, spans_of, with_stem, wordings_of
from hoofbeat.recipes.context import RecipeContext, TableFile
from hoofbeat.recipes.recipe_items import ItemRejection, Outcome, RecipeItem
from hoofbeat.recipes.review_tasks import ReviewLabel, ReviewTask, count_labels, drawn_for_review, known_labels
from hoofbeat.recipes.steps import RecipeStep, check, whole

LEVEL_1 = ("missing information", "options overlap")
"""What a first reader checks on every item."""
LEVEL_2 = ("clarity", "clinical rationality", "factual accuracy", "options appropriate")
"""What a physician checks on the sample."""
DROP, ADD = "drop option", "add to stem"
"""Revisions that are carried out."""

PASSES = frozenset({"pass", "passed", "ok", "yes", "good", "none", "met"})
_SETTLES = {"options overlap": DROP, "options appropriate": DROP, "missing information": ADD}
_WANTED = {1: LEVEL_1, 2: LEVEL_2}
_LEVELS = "review-levels"
_HEADER = ("item", "level", "criterion", "reviewer", "finding", "what must change", "state")

Labels = Mapping[str, Sequence[ReviewLabel]]


def read_reviews(path: str) -> Labels:
    """The labels of each item that count: revisions all, of the others a reviewer's last by criterion."""
    by_item: defaultdict[str, dict[tuple[str, str, str], ReviewLabel]] = defaultdict(dict)
    criteria = (*LEVEL_1, *LEVEL_2, DROP, ADD)
    for label in known_labels(path, criteria, several=criteria):
        if not label.value.strip() and label.criterion not in (DROP, ADD):
            raise InputError(
                f"the label of {label.item} by {label.criterion!r} is empty",
                where=path,
                fix="write pass or what is wrong, or remove the line",
            )
        own = label.value if label.criterion in (DROP, ADD) else ""
        by_item[label.item][label.criterion, label.reviewer, own] = label
    return {item: tuple(labels.values()) for item, labels in by_item.items()}


def draw_sample(name: str, share: float) -> RecipeStep:
    """Draw the items that physicians look at, before any review: the sample stays the same from round to round."""

    def judge(items: Sequence[RecipeItem], context: RecipeContext) -> list[Outcome]:
        drawn = {item.id for item in drawn_for_review(items, context, name, share)}
        outcomes: list[Outcome] = [item.put(level=2 if item.id in drawn else 1) for item in items]
        rows = [(item.id, 2 if item.id in drawn else 1) for item in items]
        context.tables[_LEVELS] = TableFile(("item", "level"), rows)
        return outcomes

    return whole(name, judge)


def revise(name: str, path: str, *, min_options: int, min_match: float) -> RecipeStep:
    """Carry out the revisions that reviewers ask for. One that can't be is a reason to turn the item away."""
    labels = read_reviews(path)

    def judge(item: RecipeItem, context: RecipeContext) -> Outcome:
        for label in labels.get(item.id, ()):
            if label.criterion == DROP:
                outcome = _drop(item, label, min_options, context)
            elif label.criterion == ADD:
                outcome = _add(item, label, min_match, context)
            else:
                continue
            if not isinstance(outcome, RecipeItem):
                return outcome
            item = outcome
        return item

    return check(name, judge)


def _drop(item: RecipeItem, label: ReviewLabel, minimum: int, context: RecipeContext) -> Outcome:
    wanted = plain_option(label.value).casefold()
    text = next((each["text"] for each in item["options"] if each["text"].casefold() == wanted), None)
    if text is None or text == item["diagnosis"]:
        return ItemRejection(reason="a revision drops what is not a wrong option", details=label.value)
    why = f"dropped by {label.reviewer or 'a reviewer'}: {label.note}".rstrip(": ")
    return drop_options(item, {text: why}, context, minimum=minimum)


def _add(item: RecipeItem, label: ReviewLabel, min_match: float, context: RecipeContext) -> Outcome:
    document = context.document(item.documents[0])
    found = find_quote(document, label.value, min_score=min_match)
    if found is None:
        return ItemRejection(reason="a revision adds words that are not in the source", details=label.value)
    spans = [*spans_of(item), *((span.start, span.end) for span in found.spans)]
    return with_stem(item, document, joined(spans, wordings_of(item)))


def findings_step(name: str, path: str, *, action: Literal["reject", "revise"], min_passed: float) -> RecipeStep:
    """Reject items with findings that no revision settles, list them in `revisions.tsv`, and count who passed.

    `action` says whether such an item is given up or waits for its revision; either way it is no question now. An item
    has passed when every criterion of its level has a label; what is missing stands in its `unread`.
    """
    labels = read_reviews(path)

    def judge(items: Sequence[RecipeItem], context: RecipeContext) -> list[Outcome]:
        levels = {item.id: int(item["level"]) for item in items}
        if _LEVELS in context.tables:
            levels = {str(id): int(str(level)) for id, level in context.tables[_LEVELS].rows}
        rows: list[tuple[object, ...]] = []
        for item in items:
            for label in _findings(labels.get(item.id, ())):
                settled = _settled(label, labels[item.id])
                state = "revised" if settled else "rejected" if action == "reject" else "to be revised"
                level = 2 if label.criterion in LEVEL_2 else 1
                rows.append((item.id, level, label.criterion, label.reviewer, label.value, label.note, state))
        outcomes = [_judged(item, labels.get(item.id, ()), action) for item in items]
        context.tables["revisions"] = TableFile(_HEADER, rows)
        context.metrics["two-level check"] = _tally(levels, {item.id for item in items}, labels, min_passed)
        if path:
            count_labels((each for mine in labels.values() for each in mine), levels, context)
        return outcomes

    return whole(name, judge)


def _findings(mine: Sequence[ReviewLabel]) -> list[ReviewLabel]:
    """The labels that say that something is wrong."""
    return [
        label for label in mine if label.criterion not in (DROP, ADD) and label.value.strip().casefold() not in PASSES
    ]


def _settled(label: ReviewLabel, mine: Sequence[ReviewLabel]) -> bool:
    """Whether a revision answers a finding."""
    return any(each.criterion == _SETTLES.get(label.criterion) for each in mine)


def _unread(level: int, mine: Sequence[ReviewLabel]) -> list[str]:
    """The criteria, up to a level, by which nobody has read an item."""
    read = {label.criterion for label in mine}
    return [each for wanted in range(1, level + 1) for each in _WANTED[wanted] if each not in read]


def _judged(item: RecipeItem, mine: Sequence[ReviewLabel], action: str) -> Outcome:
    first = next((label for label in _findings(mine) if not _settled(label, mine)), None)
    if first is not None:
        reason = f"a reviewer's finding: {first.criterion}" if action == "reject" else "waits for its revision"
        return ItemRejection(reason=reason, details=f"{first.criterion}: {first.value} {first.note}".strip())
    unread = _unread(item["level"], mine)
    return item.put(review="waiting" if unread else "passed", unread=unread)


def _tally(levels: Mapping[str, int], here: set[str], labels: Labels, min_passed: float) -> dict[str, object]:
    """How many of all that were drawn were read at each level, passed, have findings or wait; and the verdict."""
    counts: dict[int, Counter[str]] = {1: Counter(), 2: Counter()}
    for id, highest in levels.items():
        for level in range(1, highest + 1):
            counts[level][_state(level, id in here, labels.get(id, ()))] += 1
    sample = counts[2]
    read = sample["passed"] + sample["findings"]
    share = sample["passed"] / read if read else None
    verdict = "waiting" if share is None or sample["waiting"] else "passed" if share >= min_passed else "not passed"
    return {
        "level 1": dict(sorted(counts[1].items())),
        "level 2": dict(sorted(sample.items())),
        "share of the sample passed": share,
        "least share": min_passed,
        "verdict": verdict,
    }


def _state(level: int, here: bool, mine: Sequence[ReviewLabel]) -> str:
    """What became of an item at a level.

    One that was turned away after it was drawn has findings, or is lost where nobody had read it: a call failed. A
    first reader's open finding is one for the sample too.
    """
    if not here:
        return "findings" if mine else "lost"
    read = {label.criterion for label in mine}
    known = {*LEVEL_1, *_WANTED[level]}
    if any(label.criterion in known and not _settled(label, mine) for label in _findings(mine)):
        return "findings"
    return "passed" if read.issuperset(_WANTED[level]) else "waiting"


def review_tasks(items: Sequence[RecipeItem], question: str) -> list[ReviewTask]:
    """What waits for people, by the criteria that are missing: all for a first reader, the drawn for a physician."""
    tasks = []
    for item in items:
        unread = item.get("unread", (*LEVEL_1, *LEVEL_2))
        options = "\n".join(each["text"] for each in item["options"])
        told = {"stem": item["stem"], "options": options, "answer": item["diagnosis"]}
        shown = with_edits(item, with_flags(item, told))
        if item.get("image"):
            shown["image stem"] = item["image"]["text"]
            shown["removed"] = "\n".join(each["text"] for each in item["image"]["removed"])
        for level, why in ((1, "every item is read"), (2, "drawn for physicians")):
            criteria = tuple(each for each in _WANTED[level] if each in unread)
            if item["level"] >= level and criteria:
                tasks.append(
                    ReviewTask(
                        item=item.id,
                        kind="two-level",
                        criteria=criteria,
                        why=why,
                        step=f"level-{level}",
                        question=str(item.get("question") or question),
                        shown=shown,
                        documents=item.documents,
                    )
                )
    return tasks
