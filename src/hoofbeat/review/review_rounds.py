"""Rounds of a review: what is found goes back to be revised, what is revised is looked at again, until enough passes.

In the two-level check a finding becomes a revision task, and a revised item is inspected once more by those who found
something. In the three-criterion review a flagged item becomes a task for an expert. Later items stand in the same
study: `stage` names their form, `key["of"]` the item of the first round, `key["round"]` the round.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from hoofbeat.errors import UsageError
from hoofbeat.recipes.cases.two_level_review import ADD, DROP, PASSES
from hoofbeat.review.adjudication_queue import EXPERT, FLAG, base_item
from hoofbeat.review.forms import Form, criterion_rows
from hoofbeat.review.label_export import REVISION
from hoofbeat.review.review_records import (
    Assignment,
    Decision,
    ItemLabel,
    ItemMaterial,
    Person,
    ReviewItem,
    Study,
    item_code,
)
from hoofbeat.review.reviewer_agreement import form_finder

if TYPE_CHECKING:
    from hoofbeat.review.review_store import ReviewStore


INSPECTIONS = ("two-level-1", "two-level-2")
"""The forms whose findings go round."""

MIN_PASSED = 0.95
_JOINT = "\n\n"

State = Literal["waiting", "passed", "findings"]


class Round(Struct, frozen=True, kw_only=True):
    """One round: items inspected in it by what came of them, and the revision tasks that followed."""

    number: int
    inspected: int
    passed: int
    findings: int
    waiting: int
    revised: int
    given_up: int
    in_revision: int


class Rounds(Struct, frozen=True, kw_only=True):
    """A study's rounds. `passed` of `sample` items are through; the verdict is waiting, passed or not passed."""

    rounds: tuple[Round, ...]
    sample: int
    passed: int
    given_up: int
    min_passed: float
    verdict: str

    @property
    def share(self) -> float:
        """The share of the sample that passed so far."""
        return self.passed / self.sample if self.sample else 0.0


class NextItem(Struct, frozen=True, kw_only=True):
    """What the next step adds: items with the people who should have them (none: anybody), and why."""

    item: ReviewItem
    people: tuple[str, ...]
    why: str


class _Seen(Struct, frozen=True, kw_only=True):
    """What is known of one item: its done labels and its decision."""

    item: ReviewItem
    form: Form
    labels: tuple[ItemLabel, ...]
    decision: Decision | None

    @property
    def round(self) -> int:
        """The round it belongs to."""
        return int(self.item.key.get("round", 1))

    @property
    def values(self) -> list[Mapping[str, Any]]:
        """What counts: the decision where there is one, else what everybody said."""
        return [self.decision.values] if self.decision else [label.values for label in self.labels]

    def findings(self) -> list[tuple[str, str]]:
        """The criteria on which something was found, each with what must change."""
        found: dict[str, list[str]] = {}
        for values in self.values:
            for row in criterion_rows(self.form, values):
                if row.criterion not in (DROP, ADD) and row.value.casefold() not in PASSES:
                    found.setdefault(row.criterion, []).append(row.note or row.value)
        return [(criterion, "; ".join(dict.fromkeys(notes))) for criterion, notes in found.items()]

    def state(self) -> State:
        """What came of an inspection."""
        if not self.values:
            return "waiting"
        return "findings" if self.findings() else "passed"


def rounds_of(
    study: Study, items: Sequence[ReviewItem], labels: Iterable[ItemLabel], decisions: Iterable[Decision]
) -> Rounds:
    """The rounds of a two-level study so far."""
    seen = _seen(study, items, labels, decisions)
    inspected: defaultdict[int, list[_Seen]] = defaultdict(list)
    revised: defaultdict[int, list[_Seen]] = defaultdict(list)
    latest: dict[str, _Seen] = {}
    given_up: set[str] = set()
    for each in sorted(seen, key=lambda each: (each.round, each.item.place)):
        if each.form.name in INSPECTIONS:
            inspected[each.round].append(each)
            latest[base_item(each.item)] = each
        elif each.form.name == REVISION:
            revised[each.round].append(each)
            if _revision(each) == "leave":
                given_up.add(base_item(each.item))
    states = Counter(each.state() for each in latest.values())
    passed, sample = states["passed"], len(latest)
    min_passed = float(study.settings.get("min_passed", MIN_PASSED))
    open_findings = states["findings"] - len(given_up)
    if states["waiting"] or (open_findings and passed < min_passed * sample):
        verdict = "waiting"
    else:
        verdict = "passed" if sample and passed >= min_passed * sample else "not passed"
    rows = [_round(number, inspected[number], revised[number]) for number in sorted({*inspected, *revised})]
    return Rounds(
        rounds=tuple(rows), sample=sample, passed=passed, given_up=len(given_up), min_passed=min_passed, verdict=verdict
    )


def _round(number: int, inspected: Sequence[_Seen], revised: Sequence[_Seen]) -> Round:
    states = Counter(each.state() for each in inspected)
    done = Counter(_revision(each) for each in revised)
    return Round(
        number=number,
        inspected=len(inspected),
        passed=states["passed"],
        findings=states["findings"],
        waiting=states["waiting"],
        revised=done["revise"],
        given_up=done["leave"],
        in_revision=done[""],
    )


def next_items(
    study: Study, items: Sequence[ReviewItem], labels: Iterable[ItemLabel], decisions: Iterable[Decision]
) -> list[NextItem]:
    """What can be added now: revisions of what was found, inspections of what was revised, experts' items.

    The same state gives the same items, and one that is there already is not given again.
    """
    seen = _seen(study, items, labels, decisions)
    there = {each.item.id for each in seen}
    of_round = {(base_item(each.item), each.form.name, each.round): each for each in seen}
    found: list[NextItem] = []
    for each in seen:
        if each.form.name in INSPECTIONS and each.state() == "findings":
            found.append(_to_revise(study, each))
        elif each.form.name == REVISION and _revision(each) == "revise":
            before = of_round.get((base_item(each.item), study.form, each.round))
            if before is not None:
                found.append(_to_inspect(study, each, before))
        elif each.form.name in EXPERT and each.decision is None and (flagged := _flagged(each)):
            found.append(_for_expert(study, each, flagged))
    place = max((item.place for item in items), default=-1) + 1
    new = [each for each in found if each.item.id not in there]
    return [replace(each, item=replace(each.item, place=place + number)) for number, each in enumerate(new)]


def advance_rounds(store: ReviewStore, study: Study, people: Sequence[Person], *, by: str) -> list[NextItem]:
    """Add what can be added and give it out: to those it is for, the rest to `people` in turn."""
    added = next_items(study, store.items(study.id), store.labels(study.id), store.decisions(study.id))
    if not added:
        return []
    active = {person.id for person in store.people() if person.active}
    anybody = [person.id for person in people if person.id in active]
    places: Counter[str] = Counter()
    for row in store.assignments(study.id):
        places[row.person] = max(places[row.person], row.place + 1)
    rows = []
    for number, each in enumerate(added):
        takers = [person for person in each.people if person in active]
        if not takers and not anybody:
            raise UsageError("there is nobody to give these items to", fix="choose someone who should have them")
        for person in takers or [anybody[number % len(anybody)]]:
            rows.append(
                Assignment(study=study.id, item=each.item.id, person=person, place=places[person], why=each.why)
            )
            places[person] += 1
    store.add_items(study.id, [each.item for each in added], by=by)
    store.assign(study.id, rows, by=by)
    return added


def _seen(
    study: Study, items: Sequence[ReviewItem], labels: Iterable[ItemLabel], decisions: Iterable[Decision]
) -> list[_Seen]:
    done: defaultdict[str, list[ItemLabel]] = defaultdict(list)
    for label in labels:
        if label.state == "done":
            done[label.item].append(label)
    settled = {decision.item: decision for decision in decisions}
    form_of = form_finder(study)
    return [
        _Seen(item=item, form=form_of(item), labels=tuple(done[item.id]), decision=settled.get(item.id))
        for item in items
    ]


def _revision(each: _Seen) -> str:
    """What a revision task came to: revise, leave, or nothing yet."""
    return next((str(values.get(REVISION, "")) for values in each.values), "")


def _flagged(each: _Seen) -> list[str]:
    names = [field.name for field in each.form.fields if field.kind == "flag"]
    return [name for name in names if any(values.get(name) == FLAG for values in each.values)]


def _to_revise(study: Study, each: _Seen) -> NextItem:
    findings = each.findings()
    base = base_item(each.item)
    proposed = [
        f"proposed, {row.criterion}: {row.value}"
        for values in each.values
        for row in criterion_rows(each.form, values)
        if row.criterion in (DROP, ADD)
    ]
    lines = (*(f"{criterion}: {change}" for criterion, change in findings), *dict.fromkeys(proposed))
    note = ItemMaterial(title="What reviewers found", kind="note", lines=lines)
    item = replace(
        each.item,
        id=item_code(REVISION, study.id, base, each.round),
        stage=REVISION,
        criteria=(),
        shown=(note, *each.item.shown),
        key={**each.item.key, "of": base, "round": each.round, "findings": [name for name, _ in findings]},
    )
    return NextItem(item=item, people=(), why="revision")


def _to_inspect(study: Study, each: _Seen, before: _Seen) -> NextItem:
    """The revised item for those who found something in it."""
    base = base_item(each.item)
    item = replace(
        before.item,
        id=item_code(study.form, study.id, base, each.round + 1),
        stage=study.form,
        shown=_revised(before.item.shown, each),
        key={**before.item.key, "of": base, "round": each.round + 1},
    )
    finders = [
        label.person
        for label in before.labels
        if _Seen(item=before.item, form=before.form, labels=(label,), decision=None).findings()
    ]
    return NextItem(item=item, people=tuple(dict.fromkeys(finders)), why="re-inspection")


def _revised(shown: Sequence[ItemMaterial], each: _Seen) -> tuple[ItemMaterial, ...]:
    """What is shown, with the revisions carried out on it; added words stand at the stem's end and are marked."""
    rows = [row for values in each.values for row in criterion_rows(each.form, values)]
    dropped = {row.value for row in rows if row.criterion == DROP}
    added = [row.value for row in rows if row.criterion == ADD]
    stem = next((place for place, part in enumerate(shown) if part.kind == "case"), None)
    told = [
        replace(part, lines=tuple(line for line in part.lines if line not in dropped))
        if part.kind == "options"
        else _longer(part, added if place == stem else ())
        for place, part in enumerate(shown)
    ]
    changes = [*(f"dropped: {option}" for option in sorted(dropped)), *(f"added: {words}" for words in added)]
    return (ItemMaterial(title="What was revised", kind="note", lines=tuple(changes)), *told)


def _longer(part: ItemMaterial, added: Sequence[str]) -> ItemMaterial:
    text, marks = part.text, list(part.marks)
    for words in added:
        text = f"{text}{_JOINT}{words}"
        marks.append((len(text) - len(words), len(text)))
    return replace(part, text=text, marks=tuple(marks))


def _for_expert(study: Study, each: _Seen, flagged: Sequence[str]) -> NextItem:
    expert = EXPERT[each.form.name]
    notes: defaultdict[str, list[str]] = defaultdict(list)
    for values in each.values:
        for row in criterion_rows(each.form, values):
            if row.criterion in flagged and row.value == FLAG and row.note:
                notes[row.criterion].append(row.note)
    lines = tuple(f"{name}: {'; '.join(dict.fromkeys(notes[name])) or 'no reason given'}" for name in flagged)
    item = replace(
        each.item,
        id=item_code(expert, study.id, each.item.id),
        stage=expert,
        criteria=tuple(flagged),
        shown=(ItemMaterial(title="What was flagged", kind="note", lines=lines), *each.item.shown),
        key={**each.item.key, "of": base_item(each.item), "round": each.round + 1},
    )
    return NextItem(item=item, people=(), why="flagged")
