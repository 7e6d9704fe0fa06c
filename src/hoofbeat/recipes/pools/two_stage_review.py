"""Review in two stages: an annotator sees every item, an expert what the annotator flagged.

The annotator says `ok` or `flag` of each criterion, the expert `keep` or `exclude` of each that was flagged. Labels
come back as one file of both (`item`, `criterion`, `value`, `reviewer`, `note`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from hoofbeat.errors import InputError
from hoofbeat.recipes.context import RecipeContext
from hoofbeat.recipes.recipe_items import ItemRejection, Outcome, RecipeItem
from hoofbeat.recipes.review_tasks import ReviewLabel, ReviewTask, count_labels, known_labels
from hoofbeat.recipes.steps import RecipeStep, whole

_ANNOTATOR = frozenset({"ok", "flag"})
_EXPERT = frozenset({"keep", "exclude"})
WAITING, FLAGGED, PASSED = "waiting for the annotator", "waiting for the expert", "passed"


def two_stage(name: str, path: str, *, criteria: Sequence[str], forgiven: Sequence[str] = ()) -> RecipeStep:
    """Apply the labels of both stages; what nobody has looked at goes on and waits.

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
                f"the label {label.value!r} of {label.item} by {label.criterion!r} means nothing here",
                where=path,
                fix="an annotator says ok or flag, an expert keep or exclude",
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
