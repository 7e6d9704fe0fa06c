"""What a page shows of an item and of a person's list: texts cut at their marks, sides exchanged by seed, counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from hoofbeat.review.forms import Form, FormField, field_applies, form_for
from hoofbeat.review.review_records import Assignment, ItemLabel, ItemMaterial, ReviewItem, Study
from hoofbeat.store.tables import seeded_number

_PLAIN = frozenset({"question", "answer", "gold", "options", "quote", "image"})
_FOLDED_FROM = 700


class MaterialPart(Struct, frozen=True, kw_only=True):
    """One piece of the material: its text in pieces, each marked or not; `folded` where it is opened on demand."""

    title: str
    kind: str
    pieces: tuple[tuple[str, bool], ...]
    lines: tuple[str, ...] = ()
    folded: bool = False
    marks: int = 0
    number: int = 0


class WorklistProgress(Struct, frozen=True, kw_only=True):
    """How far a person has come with a study; drafts with something in them are among what is left."""

    done: int
    skipped: int
    drafts: int
    total: int

    @property
    def left(self) -> int:
        """What is neither done nor skipped."""
        return self.total - self.done - self.skipped

    @property
    def words(self) -> str:
        """The counts as a line."""
        drafts = f" ({self.drafts} begun)" if self.drafts else ""
        return f"{self.done} of {self.total} done, {self.skipped} skipped, {self.left} left{drafts}"


def sides_exchanged(study: Study, item: ReviewItem, person: str) -> bool:
    """Whether a person sees the sides of a pair exchanged: a coin thrown by the study's seed, person and item."""
    if not form_for(study, item).blinded or sum(shown.kind == "answer" for shown in item.shown) != 2:
        return False
    coin = seeded_number("sides", study.settings.get("seed", 0), study.id, person, item.id)
    return bool(coin >> 56 & 1)


def visible_material(study: Study, item: ReviewItem, person: str) -> tuple[ItemMaterial, ...]:
    """What a person sees of an item; exchanged answers keep their titles, so that A stands first."""
    if not sides_exchanged(study, item, person):
        return item.shown
    first, second = (place for place, shown in enumerate(item.shown) if shown.kind == "answer")
    sides = list(item.shown)
    texts = (sides[first].text, sides[second].text)
    sides[first] = ItemMaterial(title=sides[first].title, text=texts[1], kind="answer")
    sides[second] = ItemMaterial(title=sides[second].title, text=texts[0], kind="answer")
    return tuple(sides)


def split_marked(text: str, marks: Iterable[tuple[int, int]]) -> tuple[tuple[str, bool], ...]:
    """The text in pieces, with whether each is marked; marks that overlap or reach outside are joined and cut."""
    found: list[tuple[str, bool]] = []
    at = 0
    for start, end in sorted(marks):
        start, end = max(at, start), min(len(text), end)  # noqa: PLW2901 - cut to what is left
        if start >= end:
            continue
        if start > at:
            found.append((text[at:start], False))
        found.append((text[start:end], True))
        at = end
    if at < len(text):
        found.append((text[at:], False))
    return tuple(found)


def parts_for(study: Study, item: ReviewItem, person: str) -> list[MaterialPart]:
    """The material of an item for a page. Sources and long notes are folded; images are numbered for their address."""
    parts: list[MaterialPart] = []
    images = 0
    for shown in visible_material(study, item, person):
        cut = split_marked(shown.text, shown.marks)
        images += shown.kind == "image"
        long = len(shown.text) > _FOLDED_FROM
        parts.append(
            MaterialPart(
                title=shown.title,
                kind=shown.kind if shown.kind in {*_PLAIN, "source", "note"} else "case",
                pieces=cut,
                lines=shown.lines,
                folded=(shown.kind == "source" and long) or (shown.kind == "note" and long),
                marks=sum(marked for _, marked in cut),
                number=images if shown.kind == "image" else 0,
            )
        )
    return parts


def progress_of_person(assignments: Sequence[Assignment], labels: Iterable[ItemLabel]) -> WorklistProgress:
    """The counts over what a person is assigned."""
    mine = {row.item for row in assignments}
    own = [label for label in labels if label.item in mine]
    states = [label.state for label in own]
    begun = sum(label.state == "draft" and bool(label.values) for label in own)
    return WorklistProgress(done=states.count("done"), skipped=states.count("skipped"), drafts=begun, total=len(mine))


def next_undone(assignments: Sequence[Assignment], labels: Iterable[ItemLabel], after: str = "") -> str | None:
    """The first item that is neither done nor skipped, from behind `after` to the end and then from the start."""
    through = {label.item for label in labels if label.state != "draft"}
    order = [row.item for row in assignments]
    place = order.index(after) + 1 if after in order else 0
    return next((item for item in (*order[place:], *order[:place]) if item not in through and item != after), None)


def said_in_words(field: FormField, value: Any) -> str:
    """A value as the page says it."""
    words = {choice.value: choice.label for choice in field.choices}
    if isinstance(value, list | tuple):
        return ", ".join(words.get(str(each), str(each)) for each in value)
    return words.get(str(value), str(value)) if value else "nothing"


def when_words(fields: Sequence[FormField], field: FormField) -> str:
    """When a field is asked, in words; empty where it always is."""
    parts = []
    for name, values in field.when.items():
        asked = next((each for each in fields if each.name == name), None)
        if asked is not None:
            parts.append(f"“{asked.label}” is {' or '.join(said_in_words(asked, value) for value in values)}")
    return ", or ".join(parts)


def differences(
    form: Form, fields: Sequence[FormField], mine: Mapping[str, Any], theirs: Mapping[str, Any]
) -> list[tuple[str, str, str]]:
    """The fields in which two versions differ: the label, and what each says."""
    return [
        (field.label, said_in_words(field, mine.get(field.name)), said_in_words(field, theirs.get(field.name)))
        for field in fields
        if form.field(field.name) is not None
        and (mine.get(field.name) or None) != (theirs.get(field.name) or None)
        and (field_applies(field, mine) or field_applies(field, theirs))
    ]
