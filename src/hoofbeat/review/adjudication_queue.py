"""What waits for an adjudicator: items over which reviewers differ, and those that an annotator flagged.

Labels are shown under Reviewer 1, 2, … in an order of chance that changes from item to item. Whoever is still to label
an item themselves does not see what others said of it. Whoever has labelled or skipped it may: then that is final.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from hoofbeat.review.forms import AgreementField, Form, agreement_fields, criterion_rows, load_form
from hoofbeat.review.review_records import Assignment, Decision, ItemLabel, ReviewItem, Study
from hoofbeat.review.reviewer_agreement import form_finder, pseudonyms

if TYPE_CHECKING:
    from hoofbeat.review.review_store import ReviewStore

EXPERT = {"three-criteria": "three-criteria-expert"}
"""The form in which what was flagged in another is decided."""

FLAG = "flag"


class ReviewerStatement(Struct, frozen=True, kw_only=True):
    """What one reviewer said of an item: the value and the note by field."""

    reviewer: str
    values: dict[str, str]
    notes: dict[str, str]


class AdjudicationItem(Struct, frozen=True, kw_only=True):
    """An item for the adjudicator. `why`: differ or flagged; `fields` those it is about; `form` asks for the decision.

    `hidden` says that nothing of what others said is here: the adjudicator has yet to label it or, with `may_open`, has
    labelled or skipped it, and has not seen what others said.
    """

    item: ReviewItem
    why: str
    fields: tuple[str, ...]
    form: Form
    said: tuple[ReviewerStatement, ...]
    decision: Decision | None = None
    hidden: bool = False
    may_open: bool = False

    @property
    def open(self) -> bool:
        """Whether it is still to be decided."""
        return self.decision is None

    @property
    def to_label(self) -> bool:
        """Whether the adjudicator has to label it first."""
        return self.hidden and not self.may_open


def base_item(item: ReviewItem) -> str:
    """The item of the first round that a later one goes back to; itself where it is of the first."""
    return str(item.key.get("of", item.id))


def queue_of(
    store: ReviewStore, study: Study, *, person: str = "", items: Sequence[ReviewItem] | None = None
) -> list[AdjudicationItem]:
    """Everything that is or was in the queue, what is open first, as `person` may see it."""
    return open_queue(
        study,
        items or store.items(study.id),
        store.labels(study.id),
        store.decisions(study.id),
        store.assignments(study.id, person) if person and not study.closed else (),
        person=person,
        seen=store.seen_labels(study.id, person) if person else (),
    )


def open_queue(
    study: Study,
    items: Sequence[ReviewItem],
    labels: Iterable[ItemLabel],
    decisions: Iterable[Decision],
    own: Iterable[Assignment] = (),
    *,
    person: str = "",
    seen: Collection[str] = (),
) -> list[AdjudicationItem]:
    """The same from what the review store keeps; `own` are the assignments of the person who looks.

    `seen` are the items of which the person has seen what others said.
    """
    by_item: defaultdict[str, list[ItemLabel]] = defaultdict(list)
    states: dict[tuple[str, str], str] = {}
    for label in labels:
        states[label.item, label.person] = label.state
        if label.state == "done":
            by_item[label.item].append(label)
    settled = {decision.item: decision for decision in decisions}
    mine = {row.item: states.get((row.item, person), "draft") for row in own if row.item not in seen}
    experts = {base_item(item) for item in items if item.stage in EXPERT.values()}
    form_of = form_finder(study)
    measured: dict[str, tuple[AgreementField, ...]] = {}
    found = []
    for item in items:
        form = form_of(item)
        if form.name not in measured:
            measured[form.name] = agreement_fields(form)
        waiting = _waiting(study, item, form, measured[form.name], by_item[item.id], settled.get(item.id))
        if waiting is None or (waiting.why == "flagged" and item.id in experts and waiting.open):
            continue  # an expert has it as a task of their own
        if item.id in mine:
            may = mine[item.id] != "draft"
            decision = waiting.decision if may else None
            waiting = replace(waiting, fields=(), said=(), decision=decision, hidden=True, may_open=may)
        found.append(waiting)
    return sorted(found, key=lambda each: (not each.open, each.to_label, each.item.place, each.item.id))


def _waiting(
    study: Study,
    item: ReviewItem,
    form: Form,
    measured: Sequence[AgreementField],
    done: Sequence[ItemLabel],
    decision: Decision | None,
) -> AdjudicationItem | None:
    flagged = _flagged(form, done)
    differing = [
        field.name
        for field in measured
        if len({str(label.values[field.name]) for label in done if field.name in label.values}) > 1
    ]
    expert = EXPERT.get(form.name)
    if flagged and expert:
        why, fields, asks = "flagged", flagged, load_form(expert, study.settings)
    elif differing:
        why, fields, asks = "differ", differing, form
    else:
        return None
    return AdjudicationItem(
        item=item, why=why, fields=tuple(fields), form=asks, said=_said(study, item, form, done), decision=decision
    )


def _flagged(form: Form, done: Sequence[ItemLabel]) -> list[str]:
    names = [field.name for field in form.fields if field.kind == "flag"]
    return [name for name in names if any(label.values.get(name) == FLAG for label in done)]


def _said(study: Study, item: ReviewItem, form: Form, done: Sequence[ItemLabel]) -> tuple[ReviewerStatement, ...]:
    names = pseudonyms(study.id, (label.person for label in done), item.id)
    rows = [
        ReviewerStatement(
            reviewer=names[label.person],
            values={name: _in_words(form, name, value) for name, value in label.values.items()},
            notes={row.criterion: row.note for row in criterion_rows(form, label.values) if row.note},
        )
        for label in done
    ]
    return tuple(sorted(rows, key=lambda row: row.reviewer))


def _in_words(form: Form, name: str, value: Any) -> str:
    field = form.field(name)
    words: Mapping[str, str] = {choice.value: choice.label for choice in field.choices} if field else {}
    values = value if isinstance(value, list) else [value]
    return "; ".join(words.get(str(each), str(each)) for each in values)
