"""Forms as data: what a person is asked of an item, which answers there are, and what is said before the first one.

A form is a TOML file in `forms/`. The names of its fields are the criteria, and its values the words, that the readers
of labels take (`recipes.reviewing`, `packet_labels`, `judging.humans`), so nothing is translated on the way.
The pair form takes its labels from the study's settings, where the domain pack's stand.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, Literal

import msgspec
from msgspec import Struct

from hoofbeat.errors import InputError, UsageError
from hoofbeat.review.review_records import ReviewItem, Study
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
    options), `options` some of the item's options, `text` words (`each_line`: every line is an entry of its own; `from
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

    `blinded`: items go by codes, and two answers stand in an order of chance.
    """

    title: str
    instructions: tuple[str, ...]
    fields: tuple[FormField, ...] = ()
    name: str = ""
    blinded: bool = False
    at_least_one: tuple[str, ...] = ()

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


# Reading


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


# Using


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
        raise InputError(f"the form has no field {unknown[0]!r}", fix="load the page again")
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
        raise InputError(f"still to be filled in: {'; '.join(missing)}", fix="answer what is marked, or skip the item")
    either = [field for field in asked if field.name in form.at_least_one]
    if either and not any(field.name in taken for field in either):
        names = " or ".join(field.label for field in either)
        raise InputError(f"one of these must be filled in: {names}", fix="fill one in, or choose another answer")


def _checked(field: FormField, value: object) -> Any:
    """The value as it is kept; nothing where it is empty."""
    if value is None or value in ("", []):
        return None
    if field.kind == "options":
        chosen = [value] if isinstance(value, str) else value
        allowed = [choice.value for choice in field.choices]
        if not isinstance(chosen, list | tuple) or any(each not in allowed for each in chosen):
            raise InputError(f"{field.label}: one of these is no option that can be chosen", fix="choose from the list")
        return [each for each in allowed if each in chosen]
    if not isinstance(value, str):
        raise InputError(f"{field.label}: this is no answer", fix="load the page again")
    if field.kind != "text":
        if value not in [choice.value for choice in field.choices]:
            raise InputError(f"{field.label}: {value[:40]!r} is no answer to this", fix="choose from the list")
        return value
    if len(value) > _MAX_LENGTH:
        raise InputError(f"{field.label}: the text is too long", fix=f"{_MAX_LENGTH:,} characters are allowed")
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
