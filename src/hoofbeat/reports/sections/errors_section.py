"""Why diagnoses were missed, by people's word: kinds of error by system, and how far people agree on them.

An answer counts once: as it was settled, else as more than half of those said who labelled it. Where they are split, it
stays in the denominator without a kind.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec
from msgspec import Struct

from hoofbeat.errors import InputError
from hoofbeat.findings.agreement import agreement_with_intervals
from hoofbeat.findings.intervals import FEW
from hoofbeat.findings.outcomes import ModeShare, mode_shares
from hoofbeat.judging.aspects.error_type import ERROR_TYPE
from hoofbeat.judging.blinded_sheet import UNKEYED, blinding_secret
from hoofbeat.judging.criteria import Key, answer_key
from hoofbeat.judging.stratified_sample import blind_code
from hoofbeat.records import Answer, Failure, Judgment, Question
from hoofbeat.reports.charts import Shade, heatmap
from hoofbeat.reports.item_views import system_name
from hoofbeat.reports.model import Block, Details, Heading, Lead, Notice, Text
from hoofbeat.reports.section import Chapter, ReportInputs, ReportSection, figure
from hoofbeat.reports.sections.scores.accuracy_table import folded, labellers_table
from hoofbeat.reports.tables import Cell, Column, Table, columns_of, count_of, triple, written
from hoofbeat.store import Artefact
from hoofbeat.store.files import read_bytes
from hoofbeat.store.sheets import csv_delimiter, refuse_lines
from hoofbeat.store.tables import bare_cell, read_jsonl
from hoofbeat.text import cut

ASPECT = "error-analysis"
"""The study's form, of which the codes are made."""

ERROR = "error"
PHYSICIAN = "same mistake likely for a physician"
_PHYSICIAN_BEFORE = "physician would err too"
"""What files that were exported earlier call it."""

SETTLED = "adjudicated"
"""Who speaks in what was settled."""

KINDS: dict[str, tuple[str, ...]] = {ERROR: (*ERROR_TYPE.labels, "other"), PHYSICIAN: ("yes", "no")}
"""The answers to each of the two questions that are counted."""


class ErrorLabel(Struct, frozen=True, kw_only=True):
    """One person's word on one answer. `said` has the two questions that are counted, as far as they were answered."""

    answer: Key
    annotator: str
    said: dict[str, str]
    why: str = ""
    note: str = ""


def known_answers(artefacts: Iterable[Artefact]) -> dict[str, Key]:
    """The answers of runs and judgments by their codes."""
    found: dict[str, Key] = {}
    for artefact in artefacts:
        for answer in read_jsonl(artefact.file("answers.jsonl"), Answer):
            key = answer_key(answer)
            for secret in (blinding_secret(artefact), UNKEYED):
                found.setdefault(blind_code(key, ASPECT, secret), key)
    return found


def read_error_labels(paths: Sequence[Path], answers: Mapping[str, Key]) -> list[ErrorLabel]:
    """The labels of CSV or JSONL files; every one must be of an answer that is known, and nobody labels one twice."""
    found: list[ErrorLabel] = []
    seen: dict[tuple[str, str], str] = {}
    for path in paths:
        problems = []
        for line, cells in _rows(path):
            item, who = cells.get("item", ""), cells.get("annotator", "")
            said = {name: cells[name].lower() for name in KINDS if cells.get(name)}
            wrong = [name for name, value in said.items() if value not in KINDS[name]]
            if not item or not who:
                problems.append(f"line {line}: item or annotator is missing")
            elif item not in answers:
                problems.append(f"line {line}: there is no answer with the code {item} in the folders of this report")
            elif wrong:
                name = wrong[0]
                problems.append(f"line {line}: {said[name]!r} is not an answer to {name!r} ({', '.join(KINDS[name])})")
            elif (item, who) in seen:
                problems.append(f"line {line}: {who} has labelled this answer already ({seen[item, who]})")
            else:
                seen[item, who] = f"line {line} of {path.name}"
                why, note = cells.get("why", ""), cells.get("note", "")
                found.append(ErrorLabel(answer=answers[item], annotator=who, said=said, why=why, note=note))
        fix = "add the folder that the study is about, and the file that review export wrote"
        refuse_lines(problems, path, fix)
    if not found:
        raise InputError(
            "these files contain no label", where=str(paths[0]), fix="export the study: hoofbeat review export"
        )
    return found


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """The lines with their numbers, cells by column."""
    try:
        text = read_bytes(path).decode("utf-8-sig")
        if path.suffix == ".jsonl":
            for number, line in enumerate(text.splitlines(), start=1):
                if line.strip():
                    cells = msgspec.json.decode(line, type=dict[str, str])
                    yield number, {_column(name): cell.strip() for name, cell in cells.items()}
            return
        reader = csv.reader(
            io.StringIO(text, newline=""), delimiter=csv_delimiter(text.partition("\n")[0]), strict=True
        )
        header = [_column(name.strip().lower()) for name in next(reader, [])]
        if not {"item", "annotator", PHYSICIAN} <= set(header):
            raise InputError(
                "this is not a file of an error analysis, which has the columns item, error, same mistake likely for a "
                "physician, why, annotator, note",
                where=str(path),
                fix="export the study again: hoofbeat review export STUDY -o FILE.csv",
            )
        begins = reader.line_num + 1
        for row in reader:
            if any(cell.strip() for cell in row):
                yield begins, {name: bare_cell(cell).strip() for name, cell in zip(header, row, strict=False)}
            begins = reader.line_num + 1
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError, csv.Error) as err:
        raise InputError(f"the labels can't be read: {err}", where=str(path), fix="export the study again") from err


def _column(name: str) -> str:
    return PHYSICIAN if name == _PHYSICIAN_BEFORE else name


_ID = "errors"
_TITLES = {ERROR: "Kinds of error", PHYSICIAN: "Was a trained physician likely to make the same mistake?"}
_UNDECIDED = "people are split"
_TITLE = 140


def errors_chapter(files: Sequence[Path], artefacts: Sequence[Artefact]) -> Chapter:
    """The chapter on people's analysis of errors."""
    labels = read_error_labels(files, known_answers(artefacts))
    people = sorted({label.annotator for label in labels} - {SETTLED})
    answers = {label.answer for label in labels}
    blocks: list[Block] = [
        Text(
            f"{count_of(len(people), 'person', 'people')} checked {count_of(len(answers), 'wrong answer')}. "
            "Each answer counts once, with the label that was settled or that more than half of the people gave. "
            "Where they are split, it stays in the denominator without a kind."
        )
    ]
    leads: list[Lead] = []
    for name, title in _TITLES.items():
        given = [label for label in labels if name in label.said]
        blocks.append(Heading(title, _anchor(name), 3))
        if not given:
            blocks.append(Notice("No labels yet."))
            continue
        found = mode_shares(_decided(given, name), name, KINDS[name], judge=SETTLED)
        blocks += [*([_heat(name, title, found)] if name == ERROR else []), folded(_table(name, title, found))]
        blocks += _agreement(name, title, given)
        leads.append(_lead(name, found))
    blocks += [Heading("Comments", f"{_ID}-words", 3), _words(labels, _questions(artefacts))]
    return Chapter(title="Errors explained by people", id=_ID, blocks=tuple(blocks), leads=tuple(leads))


def _anchor(name: str) -> str:
    return f"{_ID}-kinds" if name == ERROR else f"{_ID}-physicians"


def _decided(labels: Sequence[ErrorLabel], name: str) -> list[Judgment]:
    """One judgment an answer, in the order of their keys; a failure where people are split."""
    by_answer: dict[Key, list[ErrorLabel]] = {}
    for label in labels:
        by_answer.setdefault(label.answer, []).append(label)
    made = []
    for key in sorted(by_answer):
        said = _majority(by_answer[key], name)
        question, model, condition, sample = key
        made.append(
            Judgment(
                question=question,
                model=model,
                condition=condition,
                sample=sample,
                judge=SETTLED,
                aspect=name,
                label=said,
                failure=None if said else Failure(kind="no-majority", message=_UNDECIDED),
            )
        )
    return made


def _majority(labels: Sequence[ErrorLabel], name: str) -> str:
    """What was settled, else what more than half said; empty where nothing has that many."""
    settled = [label.said[name] for label in labels if label.annotator == SETTLED]
    if settled:
        return settled[-1]
    said, count = Counter(label.said[name] for label in labels).most_common(1)[0]
    return said if 2 * count > len(labels) else ""


def _systems(found: Sequence[ModeShare]) -> dict[tuple[str, str], list[ModeShare]]:
    systems: dict[tuple[str, str], list[ModeShare]] = {}
    for row in found:
        systems.setdefault((row.model, row.condition), []).append(row)
    return systems


def _heat(name: str, title: str, found: Sequence[ModeShare]) -> Block:
    systems = _systems(found)
    models = len({model for model, _ in systems})
    rows = [f"{system_name(*system, models)} ({mine[0].n:,})" for system, mine in systems.items()]
    cells = [
        [
            Shade(
                value=row.share,
                tip=f"{written(triple(row.share, row.interval), 'share')}: {row.count:,} of {row.n:,}",
                few=row.n < FEW,
            )
            for row in mine
        ]
        for mine in systems.values()
    ]
    draw = partial(heatmap, rows, KINDS[name], cells, title=title, key="share of the answers that were explained")
    caption = "Share of each system's explained wrong answers by kind; the number of explained answers is in brackets."
    return figure(_anchor(name), caption, draw)


def _table(name: str, title: str, found: Sequence[ModeShare]) -> Table:
    shown = [row for row in found if name == ERROR or row.label == "yes"]
    rows: list[tuple[Cell, ...]] = [
        (
            row.model,
            row.condition,
            *((row.label,) if name == ERROR else ()),
            row.n,
            row.unscored,
            row.count,
            triple(row.share, row.interval),
            row.sensitivity,
        )
        for row in shown
    ]
    return Table(
        name=_anchor(name),
        caption=f"{title.rstrip('?')}, by system",
        n=sum(mine[0].n for mine in _systems(found).values()),
        unit="answers",
        columns=(
            *columns_of("model | condition"),
            *((Column("kind"),) if name == ERROR else ()),
            *columns_of("explained:count | split:count"),
            Column("count" if name == ERROR else "yes", "count"),
            *columns_of("share, 95% Wilson:share | sensitivity:share"),
        ),
        rows=tuple(rows),
        note="Sensitivity is given where people are split on more than 1% of answers: the share if none of those, "
        "and if all of those, had this label. Shares are of the sampled and explained answers, not of all wrong "
        "answers.",
    )


def _agreement(name: str, title: str, labels: Sequence[ErrorLabel]) -> list[Block]:
    """How far people agree, before anything was settled."""
    ratings: dict[str, dict[str, str]] = {}
    for label in labels:
        if label.annotator != SETTLED:
            ratings.setdefault(label.annotator, {})["\x1f".join(map(str, label.answer))] = label.said[name]
    if len(ratings) < 2:
        return [Notice("Only one person labelled this, so agreement is unknown.")] if ratings else []
    questions = {item: item.partition("\x1f")[0] for rows in ratings.values() for item in rows}
    found = agreement_with_intervals(ratings, KINDS[name], clusters=questions)
    if not found.nominal.items:
        return [Notice("No answer was labelled by two people, so agreement is unknown.")]
    pairs = labellers_table(
        found,
        name=f"{_anchor(name)}-agreement",
        caption=f"{title.rstrip('?')}: agreement between people",
        unit="answers",
    )
    alpha = found.nominal
    value = triple(alpha.value, alpha.interval)
    told = written(value, "number") if value is not None else "not defined: everybody gave the same label"
    by = f" (interval by {alpha.interval.by})" if alpha.interval else ""
    words = f"Krippendorff's α: {told}{by}, over {count_of(alpha.items, 'answer')} with at least two labels."
    return [Text(words), pairs]


def _lead(name: str, found: Sequence[ModeShare]) -> Lead:
    counts: Counter[str] = Counter()
    for row in found:
        counts[row.label] += row.count
    explained = sum(mine[0].n for mine in _systems(found).values())
    if name == PHYSICIAN:
        of = f"{counts['yes']:,} of {explained:,} errors"
        said = f"People say that a trained physician would probably also have made {of}."
    else:
        label, count = counts.most_common(1)[0]
        said = f"The most frequent kind of error, people say, is {label}: {count:,} of {explained:,}."
    return Lead(said, f"#{_anchor(name)}", "See the table")


def _questions(artefacts: Sequence[Artefact]) -> dict[str, str]:
    return {
        question.id: question.answer
        for artefact in artefacts
        for question in read_jsonl(artefact.file("questions.jsonl"), Question)
    }


def _words(labels: Sequence[ErrorLabel], gold: Mapping[str, str]) -> Block:
    ordered = sorted(labels, key=lambda label: (label.answer, label.annotator))
    table = Table(
        name=f"{_ID}-words",
        caption="Comments on each answer",
        n=len(ordered),
        unit="labels",
        columns=tuple(
            map(Column, ("question", "diagnosis", "model", "condition", "person", ERROR, PHYSICIAN, "why", "note"))
        ),
        rows=tuple(
            (
                label.answer[0],
                cut(gold.get(label.answer[0], ""), _TITLE),
                label.answer[1],
                label.answer[2],
                label.annotator,
                label.said.get(ERROR, ""),
                label.said.get(PHYSICIAN, ""),
                label.why,
                label.note,
            )
            for label in ordered
        ),
    )
    return Details(f"{table.caption} ({len(ordered):,})", (table,))


def _build(report: ReportInputs) -> list[Chapter]:
    files = report.options.errors
    return [errors_chapter(files, [each for _, each in report.of("judgments", "run")])] if files else []


SECTION = ReportSection(
    name="errors", summary="why diagnoses were missed, by people's labels (--errors)", order=70, build=_build
)
