"""Forms as data: what a person is asked of an item, which answers there are, and what is said before the first one.

A form is a TOML file in `forms/`. The names of its fields are the criteria, and its values the words, that the readers
of labels take (`recipes.review_tasks`, `audit.validation`, `judging.humans`), so nothing is translated on the way.
The pair form takes its labels from the study's settings, which keep those of the domain pack.

A page shows an item's texts cut at their marks and, where a form is blinded, two sides in an order drawn by the seed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, Literal

import msgspec
from msgspec import Struct

from hoofbeat.errors import InputError, UsageError
from hoofbeat.review.review_records import Assignment, ItemLabel, ItemMaterial, ReviewItem, Study
from hoofbeat.store.tables import seeded_number
from hoofbeat.text import caseless, typed

Kind = Literal["scale", "choice", "yes-no", "text", "options", "flag"]
_FOLDER = resources.files("hoofbeat.review") / "forms"
_CRITERIA = frozenset({"scale", "choice", "yes-no", "flag"})
_MAX_LENGTH = 20_000
NOTE = "note"


class Choice(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One answer to choose: what is kept, what the page says, and the key that chooses it."""

    value: str
    label: str
    help: str = ""
    key: str = ""


class FormField(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One thing that is asked.

    `kind`: a `scale`, `choice`, `yes-no` or `flag` takes one of `choices` (a choice without any takes one of the item's
    options), `options` some of the item's options, `text` words (`each_line`: every line is a separate entry; `from
    source`: words that stand in the source). `when` names fields and values of which one must hold for this to be asked
    at all. `note_of` makes a text the note of that field. `measured` says that people's agreement on it is computed,
    `exported` that it goes to the readers.
    """

    name: str
    kind: Kind
    label: str
    help: str = ""
    choices: tuple[Choice, ...] = ()
    required: bool = True
    when: dict[str, tuple[str, ...]] = {}
    ordered: bool = False
    note_of: str = ""
    each_line: bool = False
    from_source: bool = False
    measured: bool = True
    exported: bool = True

    @property
    def criterion(self) -> bool:
        """Whether this is a judgment, not words beside one."""
        return self.kind in _CRITERIA


class Form(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What is asked of every item of a study. Of the fields in `at_least_one`, one that is asked must be filled in.

    `blinded`: items go by codes, and two answers are in random order. `hides`: while the study is open, nobody may see
    what items are made from, which holds for every blinded form. `needs` says in words which folders have items for it.
    `shows` are parts of an answer that this form shows
    beside the text: its `options`, its `reasoning`, its `sources`.
    """

    title: str
    instructions: tuple[str, ...]
    fields: tuple[FormField, ...] = ()
    name: str = ""
    needs: str = ""
    blinded: bool = False
    hides: bool = False
    at_least_one: tuple[str, ...] = ()
    shows: tuple[Literal["options", "reasoning", "sources"], ...] = ()

    def field(self, name: str) -> FormField | None:
        """The field of this name."""
        return next((field for field in self.fields if field.name == name), None)


class AgreementField(Struct, frozen=True, kw_only=True):
    """A field on which people's agreement is measured, with its labels in order."""

    name: str
    label: str
    labels: tuple[str, ...]
    ordered: bool


class CriterionRow(Struct, frozen=True, kw_only=True):
    """One line for the recipes' reader: a criterion, its value, and the note that belongs to it."""

    criterion: str
    value: str
    note: str = ""


def form_names() -> tuple[str, ...]:
    """All forms."""
    return tuple(
        sorted(entry.name.removesuffix(".toml") for entry in _FOLDER.iterdir() if entry.name.endswith(".toml"))
    )


def load_form(name: str, settings: Mapping[str, Any] | None = None) -> Form:
    """The form of this name; that of pairs with the labels and levels of the settings."""
    if name not in form_names():
        raise UsageError(f"there is no form {name!r}", fix=f"use one of: {', '.join(form_names())}")
    form = _shipped(name)
    return _pair_form(form, settings or {}) if name == "pair" else form


def form_hides(name: str) -> bool:
    """Whether a study of this form keeps something from those who take part; of an unknown form that is assumed."""
    return name not in form_names() or _shipped(name).hides or _shipped(name).blinded


def form_for(study: Study, item: ReviewItem) -> Form:
    """The form of an item: its study's, or that of the later round it belongs to."""
    return load_form(item.stage if item.stage in form_names() else study.form, study.settings)


@cache
def _shipped(name: str) -> Form:
    values = tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    form = msgspec.structs.replace(msgspec.convert(values, Form), name=name)
    return msgspec.structs.replace(form, fields=tuple(_filled(field) for field in form.fields))


_YES_NO = (Choice(value="yes", label="Yes", key="y"), Choice(value="no", label="No", key="n"))
_FLAG = (Choice(value="ok", label="In order", key="o"), Choice(value="flag", label="Flag for the expert", key="f"))


def _filled(field: FormField) -> FormField:
    """The field with the choices that its kind implies."""
    choices = field.choices or {"yes-no": _YES_NO, "flag": _FLAG}.get(field.kind, ())
    return msgspec.structs.replace(field, choices=choices)


def _pair_form(form: Form, settings: Mapping[str, Any]) -> Form:
    labels, levels = settings.get("labels"), settings.get("significance_levels")
    if not isinstance(labels, list | tuple) or not labels:
        raise InputError(
            "the study's settings have no labels for pairs", fix="make the study from the audit or its packets again"
        )
    rated = tuple(str(label["name"]) for label in labels if label.get("significance"))
    choices = tuple(
        Choice(value=str(each["name"]), label=str(each["name"]), help=str(each.get("definition", "")))
        for each in labels
    )
    fields = []
    for field in form.fields:
        if field.name == "label":
            fields.append(msgspec.structs.replace(field, choices=choices))
        elif field.name != "significance":
            fields.append(field)
        elif rated and levels:
            meant = tuple(Choice(value=str(level), label=str(level)) for level in levels)
            help_text = str(settings.get("significance_meaning", "")) or field.help
            fields.append(
                msgspec.structs.replace(field, choices=meant, when={"label": rated}, help=" ".join(help_text.split()))
            )
    words = {"READER": str(settings.get("reader", "a reader")), "SOURCE": str(settings.get("source_word", "source"))}
    told = tuple(_with(line, words) for line in form.instructions)
    return msgspec.structs.replace(form, fields=tuple(fields), instructions=told)


def _with(line: str, words: Mapping[str, str]) -> str:
    for name, word in words.items():
        line = line.replace(f"[{name}]", word)
    return line


def options_of(item: ReviewItem) -> tuple[str, ...]:
    """The item's options."""
    return next((shown.lines for shown in item.shown if shown.kind == "options"), ())


def asked_fields(form: Form, item: ReviewItem) -> tuple[FormField, ...]:
    """The fields asked of this item, those with the item's options filled in; its right answer can't be dropped."""
    left_out = {
        each.name for each in form.fields if each.criterion and item.criteria and each.name not in item.criteria
    }
    gold = {shown.text for shown in item.shown if shown.kind == "gold"}
    asked = []
    for field in form.fields:
        if field.name in left_out or field.note_of in left_out or (field.when and field.when.keys() <= left_out):
            continue
        if field.kind == "options" or (field.kind == "choice" and not field.choices):
            kept = [text for text in options_of(item) if field.kind == "choice" or text not in gold]
            choices = tuple(Choice(value=text, label=text) for text in kept)
            asked.append(msgspec.structs.replace(field, choices=choices))
        else:
            asked.append(field)
    return tuple(asked)


def field_applies(field: FormField, values: Mapping[str, Any]) -> bool:
    """Whether a field is asked, given what was said in others."""
    return not field.when or any(values.get(name) in wanted for name, wanted in field.when.items())


def check_values(form: Form, item: ReviewItem, values: Mapping[str, Any], *, complete: bool = True) -> dict[str, Any]:
    """The values that count, in the form's order; what is not asked is left out, what is wrong is refused.

    A draft need not be `complete`.
    """
    fields = asked_fields(form, item)
    unknown = sorted(set(values) - {field.name for field in form.fields})
    if unknown:
        raise InputError(f"the form has no field {unknown[0]!r}", fix="reload the page")
    taken: dict[str, Any] = {}
    for field in fields:
        value = _checked(field, values.get(field.name))
        if value:
            taken[field.name] = value
    while extra := [field.name for field in fields if field.name in taken and not field_applies(field, taken)]:
        for name in extra:
            del taken[name]
    if complete:
        _check_complete(form, fields, taken)
        for field in fields:
            if field.from_source and field.name in taken:
                _check_source(field, item, taken[field.name])
    return taken


def _check_complete(form: Form, fields: tuple[FormField, ...], taken: Mapping[str, Any]) -> None:
    asked = [field for field in fields if field_applies(field, taken)]
    missing = [field.label for field in asked if field.required and field.name not in taken]
    if missing:
        raise InputError(f"not filled in: {'; '.join(missing)}", fix="answer the marked questions, or skip the item")
    either = [field for field in asked if field.name in form.at_least_one]
    if either and not any(field.name in taken for field in either):
        names = " or ".join(field.label for field in either)
        raise InputError(f"fill in one of these: {names}", fix="fill one in, or choose another answer")


def _checked(field: FormField, value: object) -> Any:
    """The value as it is kept; nothing where it is empty."""
    if value is None or value in ("", []):
        return None
    if field.kind == "options":
        chosen = [value] if isinstance(value, str) else value
        allowed = [choice.value for choice in field.choices]
        if not isinstance(chosen, list | tuple) or any(each not in allowed for each in chosen):
            raise InputError(f"{field.label}: one of these is not an option", fix="choose from the list")
        return [each for each in allowed if each in chosen]
    if not isinstance(value, str):
        raise InputError(f"{field.label}: this is not an answer", fix="reload the page")
    if field.kind != "text":
        if value not in [choice.value for choice in field.choices]:
            raise InputError(f"{field.label}: {value[:40]!r} is not an answer to this", fix="choose from the list")
        return value
    if len(value) > _MAX_LENGTH:
        raise InputError(f"{field.label}: the text is too long", fix=f"{_MAX_LENGTH:,} characters is the maximum")
    return typed(value)


def _check_source(field: FormField, item: ReviewItem, text: str) -> None:
    """Every line must stand in the source, where it is shown: a recipe would turn the whole item away otherwise."""
    sources = [caseless(shown.text) for shown in item.shown if shown.kind == "source"]
    for line in text.splitlines() if sources else ():
        if caseless(line) and not any(caseless(line) in source for source in sources):
            raise InputError(
                f"{field.label}: these words are not in the source: {line[:60]!r}", fix="copy them from the source"
            )


def agreement_fields(form: Form) -> tuple[AgreementField, ...]:
    """The fields whose agreement is measured, with their labels in the form's order."""
    return tuple(
        AgreementField(
            name=each.name, label=each.label, labels=tuple(c.value for c in each.choices), ordered=each.ordered
        )
        for each in form.fields
        if each.criterion and each.measured and each.choices
    )


def criterion_rows(form: Form, values: Mapping[str, Any]) -> list[CriterionRow]:
    """What was said, as lines for the recipes' reader (`recipes.reviewing`); a note goes with its criterion."""
    own = {field.note_of: str(values[field.name]) for field in form.fields if field.note_of and field.name in values}
    common = str(values.get(NOTE, ""))
    rows: list[CriterionRow] = []
    for field in form.fields:
        if field.name not in values or field.name == NOTE or field.note_of or not field.exported:
            continue
        value = values[field.name]
        several = value if isinstance(value, list) else str(value).splitlines() if field.each_line else [str(value)]
        note = own.get(field.name) or common
        rows += [CriterionRow(criterion=field.name, value=each.strip(), note=note) for each in several if each.strip()]
    return rows


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
        drafts = f" ({self.drafts} started)" if self.drafts else ""
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
