"""What people said, in the very format that its reader takes.

- `criteria`: item, criterion, value, reviewer, note: `recipes.review_tasks.read_labels`, that is `build --reviews`
- `pairs`: item, label, significance, passages answer it, note, annotator, sides: `audit validate --labels`
- `answers`: item, label, second label, annotator, note: `judge --human`
- `errors`: item, error, same mistake likely for a physician, why, annotator, note: `report --errors`

Beside a file of labels lies another, `NAME.study.json`, that says which study they are of and which artefact they are
about, so that they are not applied to another version of it, and the hash of the file, so that nobody's later words are
taken for the study's. Beside labels of answers lies `NAME.design.json`, how the
answers were drawn, where `judge` looks for it. Decisions of adjudicators take the place of the reviewers'
labels where the reader knows no other way (`criteria`); else they are a file of their own.
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct, field

from hoofbeat.errors import InputError, OutputError, UsageError
from hoofbeat.judging.catalogue import human_aspects
from hoofbeat.judging.humans import SheetDesign, design_path, write_design
from hoofbeat.recipes.cases.two_level_review import ADD, DROP
from hoofbeat.review.adjudication_queue import EXPERT, base_item
from hoofbeat.review.forms import criterion_rows, form_for, sides_exchanged
from hoofbeat.review.review_records import Decision, ItemLabel, ReviewItem, Study
from hoofbeat.review.reviewer_agreement import names_of
from hoofbeat.store.artefact import changes_are_trusted
from hoofbeat.store.files import file_sha256, read_bytes, write_bytes
from hoofbeat.store.tables import plain_cell, write_csv, write_jsonl

if TYPE_CHECKING:
    from hoofbeat.recipes.review_tasks import ReviewLabel
    from hoofbeat.review.review_store import ReviewStore

Format = Literal["criteria", "pairs", "answers", "errors"]
Rows = list[dict[str, str]]

HEADERS: dict[Format, tuple[str, ...]] = {
    "criteria": ("item", "criterion", "value", "reviewer", "note"),
    "pairs": ("item", "label", "significance", "passages answer it", "note", "annotator", "sides"),
    "answers": ("item", "label", "second label", "annotator", "note"),
    "errors": ("item", "error", "same mistake likely for a physician", "why", "annotator", "note"),
}
KEPT_AS = {"passages answer it": "says_so", "same mistake likely for a physician": "physician would err too"}
"""Columns whose field has another name in the forms, and so in review stores."""

_WHO: dict[Format, str] = {format: "reviewer" if format == "criteria" else "annotator" for format in HEADERS}
_FORMATS: dict[str, Format] = {"pair": "pairs", "error-analysis": "errors"}
ADJUDICATED = "adjudicated"
"""Who speaks in a decision."""

REVISION = "revision"
"""The form in which findings are answered."""

_EXPERT_WORDS = frozenset({"keep", "exclude"})
_SUFFIX = ".study.json"


class Origin(Struct, frozen=True, kw_only=True):
    """Where labels come from: the study, its form, and the artefact it is about by name and content hash.

    `labels_sha256` is the hash of the file they were written to; older exports have none.
    """

    study: str
    form: str
    source: str
    source_sha256: str
    format: Format
    labels: int
    people: int
    settings: dict[str, Any] = field(default_factory=dict)
    labels_sha256: str = ""


class LabelExport(Struct, frozen=True, kw_only=True):
    """The rows of a study, and those that adjudicators settled where they are a file of their own."""

    origin: Origin
    rows: Rows
    adjudicated: Rows

    @property
    def header(self) -> tuple[str, ...]:
        """The columns."""
        return HEADERS[self.origin.format]

    @property
    def design(self) -> SheetDesign | None:
        """How the answers that people labelled were drawn, where this is about answers and of one study."""
        kept = self.origin.settings.get("design") if self.origin.format in ("answers", "errors") else None
        return msgspec.convert(kept, SheetDesign) if kept is not None else None


def export_labels(store: ReviewStore, study: Study, *, each: bool = False, blind: bool = False) -> LabelExport:
    """The labels of a study that are done, as rows in the order of items.

    With `each`, everybody's own labels stand there, without decisions and with those of earlier rounds. With `blind`,
    people are Reviewer 1, 2, … instead of their names.
    """
    if study.form == "exam":
        raise UsageError("an exam's answers are a run, not labels", fix="hoofbeat review export STUDY -o FOLDER")
    items = store.items(study.id)
    labels = store.labels(study.id, states=["done"])
    names = names_of(study, store, blind=blind)
    decisions = [] if each else store.decisions(study.id)
    format = _FORMATS.get(study.form, "answers" if study.form in human_aspects() else "criteria")
    told = _Told(study, items, labels, decisions, names)
    if format == "criteria":
        rows, settled = (told.criteria(latest=not each), [])
    else:
        rows, settled = told.sheet(format), told.settled(format)
    origin = Origin(
        study=study.id,
        form=study.form,
        source=study.source,
        source_sha256=study.source_sha256,
        format=format,
        labels=len(labels),
        people=len({label.person for label in labels}),
        settings=study.settings,
    )
    return LabelExport(origin=origin, rows=rows, adjudicated=settled)


def join_exports(exports: Sequence[LabelExport]) -> LabelExport:
    """Several exports as one; they must be of one artefact and in one format."""
    first = exports[0]
    for other in exports[1:]:
        if (other.origin.source_sha256, other.origin.format) != (first.origin.source_sha256, first.origin.format):
            raise UsageError(
                f"{first.origin.study} and {other.origin.study} are not about the same folder, or use another form",
                fix="export them into separate files",
            )
    if len(exports) == 1:
        return first
    origins = [export.origin for export in exports]
    origin = msgspec.structs.replace(
        first.origin,
        study=" + ".join(each.study for each in origins),
        form=" + ".join(dict.fromkeys(each.form for each in origins)),
        labels=sum(each.labels for each in origins),
        people=len({row[_WHO[first.origin.format]] for export in exports for row in export.rows} - {ADJUDICATED}),
        settings={each.study: each.settings for each in origins},
    )
    return LabelExport(
        origin=origin,
        rows=[row for export in exports for row in export.rows],
        adjudicated=[row for export in exports for row in export.adjudicated],
    )


class _Told:
    """What a study holds, ready to be written down."""

    def __init__(
        self,
        study: Study,
        items: Sequence[ReviewItem],
        labels: Sequence[ItemLabel],
        decisions: Sequence[Decision],
        names: Mapping[str, str],
    ) -> None:
        self.study, self.items, self.names = study, items, names
        self.labels: defaultdict[str, list[ItemLabel]] = defaultdict(list)
        for label in labels:
            self.labels[label.item].append(label)
        self.decisions = {decision.item: decision for decision in decisions}

    def criteria(self, *, latest: bool) -> Rows:
        """A row a criterion; with `latest`, only what still counts after later rounds and decisions."""
        by_base: dict[str, list[ReviewItem]] = {}
        for item in self.items:
            by_base.setdefault(base_item(item), []).append(item)
        rows: Rows = []
        for rounds in by_base.values():
            mine: list[tuple[str, dict[str, str]]] = []
            for item in sorted(rounds, key=lambda item: int(item.key.get("round", 1))):
                form = form_for(self.study, item).name
                new = self._said(item, settled=latest)
                if latest:
                    mine = [(of, row) for of, row in mine if self._stands(of, row, form, new, item)]
                mine += [(form, row) for row in new]
            rows += [row for _, row in mine]
        return rows

    def _stands(self, of: str, row: Mapping[str, str], form: str, new: Rows, item: ReviewItem) -> bool:
        """Whether a row of an earlier round still counts beside the new ones of this item.

        An expert's word stands beside the flag that it answers, and revisions beside each other. What a reviewer
        proposed to revise goes when the revision is done, and what a reviewer found when the item is inspected again.
        """
        revises = row["criterion"] in (DROP, ADD)
        if form in EXPERT.values():
            return True
        if form == REVISION:
            return of == REVISION or not revises or not self.labels[item.id]
        return revises or row["criterion"] not in {each["criterion"] for each in new}

    def _said(self, item: ReviewItem, *, settled: bool) -> Rows:
        """What reviewers said of an item, and what was settled in place of it or, by experts, beside it."""
        form = form_for(self.study, item)
        rows = [
            _criterion(item, row.criterion, row.value, self.names[label.person], row.note)
            for label in self._in_order(item)
            for row in criterion_rows(form, label.values)
        ]
        decision = self.decisions.get(item.id) if settled else None
        if decision is None:
            return rows
        decided = [
            _criterion(item, row.criterion, row.value, ADJUDICATED, decision.note or row.note)
            for row in criterion_rows(form, decision.values)
        ]
        beside = form.name in EXPERT and any(row["value"] in _EXPERT_WORDS for row in decided)
        replaced = set() if beside else {row["criterion"] for row in decided}
        return [row for row in rows if row["criterion"] not in replaced] + decided

    def sheet(self, format: Format) -> Rows:
        """A row a label."""
        return [
            self._row(format, item, label.values, label.person, self.names[label.person])
            for item in self.items
            for label in self._in_order(item)
        ]

    def settled(self, format: Format) -> Rows:
        """A row a decision."""
        return [
            self._row(format, item, {**decision.values, "note": decision.note}, "", ADJUDICATED)
            for item in self.items
            if (decision := self.decisions.get(item.id)) is not None
        ]

    def _row(
        self, format: Format, item: ReviewItem, values: Mapping[str, Any], person: str, who: str
    ) -> dict[str, str]:
        """A label as a row. No label hangs on which side is which; `sides` is for those who read A and B in a note."""
        row = {
            **{name: str(values.get(KEPT_AS.get(name, name), "")) for name in HEADERS[format]},
            "item": item.known_code,
            "annotator": who,
        }
        if format == "pairs":
            row["sides"] = "B, A" if sides_exchanged(self.study, item, person) else "A, B"
        return row

    def _in_order(self, item: ReviewItem) -> list[ItemLabel]:
        return sorted(self.labels[item.id], key=lambda label: (self.names[label.person], label.person))


def _criterion(item: ReviewItem, criterion: str, value: str, reviewer: str, note: str) -> dict[str, str]:
    known = str(item.key.get("item", item.id))
    return {"item": known, "criterion": criterion, "value": value, "reviewer": reviewer, "note": note}


# Files


def origin_path(labels: Path) -> Path:
    """Where it stands what a file of labels is of."""
    return labels.with_suffix(_SUFFIX)


def origin_of(labels: Path) -> Origin | None:
    """What a file of labels is of, where that lies beside it."""
    path = origin_path(labels)
    if not path.is_file():
        return None
    try:
        return msgspec.json.decode(read_bytes(path), type=Origin)
    except (msgspec.DecodeError, UnicodeDecodeError) as err:
        raise InputError(
            f"the description of these labels can't be read: {err}", where=str(path), fix="export the labels again"
        ) from err


def unchanged_origin(path: Path, origin: Origin, labels: Sequence[ReviewLabel]) -> Origin:
    """The origin of labels that are those of their export; changed ones are refused.

    Where the user trusts them (`--trust-changed`), it says that they have changed, and counts what is there.
    """
    people = {label.reviewer for label in labels} - {ADJUDICATED}
    said = {(label.item, label.reviewer) for label in labels if label.reviewer != ADJUDICATED}
    if origin.labels_sha256 and origin.labels_sha256 != file_sha256(path):
        what = f"these labels have changed since {origin.study} was exported"
    elif len(people) > origin.people or len(said) > origin.labels:
        what = (
            f"{origin_path(path).name} counts {_counted(origin.labels, origin.people)}, but the file has at least "
            f"{_counted(len(said), len(people))}"
        )
    else:
        return origin
    if not changes_are_trusted():
        raise InputError(
            what,
            where=str(path),
            fix="export them again; --trust-changed applies them as they are, and the result says so",
        )
    study = f"{origin.study} ({path.name} changed after the export)"
    return msgspec.structs.replace(origin, study=study, people=len(people), labels=len(said))


def _counted(labels: int, people: int) -> str:
    return f"{labels} label{'s' * (labels != 1)} by {people} {'person' if people == 1 else 'people'}"


def write_export(export: LabelExport, path: Path) -> list[Path]:
    """Write the labels as `.jsonl` or `.csv`, what they are of beside them, and decisions where they stand apart."""
    if path.suffix not in (".jsonl", ".csv"):
        raise UsageError("labels are written as .jsonl or .csv", where=str(path), fix="name such a file with -o")
    if not export.rows:
        raise InputError("nobody has finished a label yet", fix="see the progress with: hoofbeat review status")
    if path.exists() and not origin_path(path).is_file():
        raise OutputError(
            "not overwritten: this file is not an earlier export of labels",
            where=str(path),
            fix="name another file with -o, or move this one",
        )
    written = [path]
    _write(path, export.header, export.rows)
    if export.adjudicated:
        apart = path.with_name(f"{path.stem}.{ADJUDICATED}{path.suffix}")
        _write(apart, export.header, export.adjudicated)
        written.append(apart)
    if (design := export.design) is not None:
        write_design(path, msgspec.structs.replace(design, sheet=path.name))
        written.append(design_path(path))
    beside = origin_path(path)
    origin = msgspec.structs.replace(export.origin, labels_sha256=file_sha256(path))
    write_bytes(beside, msgspec.json.format(msgspec.json.encode(origin), indent=1) + b"\n")
    return [*written, beside]


def _write(path: Path, header: Sequence[str], rows: Rows) -> None:
    if path.suffix == ".jsonl":
        write_jsonl(path, rows)
        return
    write_csv(path, header, ([row[name] for name in header] for row in rows))


def as_csv(export: LabelExport) -> str:
    """The rows as CSV text that no spreadsheet runs, for a download."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(export.header)
    writer.writerows([plain_cell(row[name]) for name in export.header] for row in export.rows)
    return stream.getvalue()
