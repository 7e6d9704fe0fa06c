"""Why diagnoses were missed, by people's word: kinds of error by system, and how far people agree on them.

An answer counts once: as it was settled, else as more than half of those said who labelled it. Where they are split, it
stays in the denominator without a kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from hoofbeat.findings.agreement import agreement_with_intervals
from hoofbeat.findings.failure_modes import ModeShare, mode_shares
from hoofbeat.judging.criteria import Key
from hoofbeat.records import Failure, Judgment, Question
from hoofbeat.reports.charts import Shade, heatmap
from hoofbeat.reports.item_views import system_name
from hoofbeat.reports.model import Block, Details, Heading, Lead, Notice, Text
from hoofbeat.reports.section import Chapter, ReportInputs, ReportSection
from hoofbeat.reports.sections.common import figure
from hoofbeat.reports.sections.error_labels import (
    ERROR,
    KINDS,
    PHYSICIAN,
    SETTLED,
    ErrorLabel,
    known_answers,
    read_error_labels,
)
from hoofbeat.reports.sections.scores.facets import FEW
from hoofbeat.reports.sections.scores.labellers import labellers_table
from hoofbeat.reports.sections.scores.shown import folded, triple
from hoofbeat.reports.tables import Cell, Column, Table
from hoofbeat.reports.words import count_of, written
from hoofbeat.store import Artefact
from hoofbeat.store.tables import read_jsonl
from hoofbeat.text import cut

__all__ = ["SECTION", "errors_chapter"]


_ID = "errors"
_TITLES = {ERROR: "Kinds of error", PHYSICIAN: "Would a trained physician have erred too?"}
_UNDECIDED = "people are split"
_TITLE = 140


def errors_chapter(files: Sequence[Path], artefacts: Sequence[Artefact]) -> Chapter:
    """The chapter on people's analysis of errors."""
    labels = read_error_labels(files, known_answers(artefacts))
    people = sorted({label.annotator for label in labels} - {SETTLED})
    answers = {label.answer for label in labels}
    blocks: list[Block] = [
        Text(
            f"{count_of(len(people), 'person', 'people')} looked at {count_of(len(answers), 'wrong answer')}. "
            "An answer counts once: as it was settled, else as more than half of those who labelled it said; where "
            "they are split, it stays in the denominator without a kind."
        )
    ]
    leads: list[Lead] = []
    for name, title in _TITLES.items():
        given = [label for label in labels if name in label.said]
        blocks.append(Heading(title, _anchor(name), 3))
        if not given:
            blocks.append(Notice("Nobody has said so yet."))
            continue
        found = mode_shares(_decided(given, name), name, KINDS[name], judge=SETTLED)
        blocks += [*([_heat(name, title, found)] if name == ERROR else []), folded(_table(name, title, found))]
        blocks += _agreement(name, title, given)
        leads.append(_lead(name, found))
    blocks += [Heading("What they wrote", f"{_ID}-words", 3), _words(labels, _questions(artefacts))]
    return Chapter(title="Errors, as people explain them", id=_ID, blocks=tuple(blocks), leads=tuple(leads))


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
                tip=f"{written((row.share, row.interval.low, row.interval.high), 'share')}: {row.count:,} of {row.n:,}",
                few=row.n < FEW,
            )
            for row in mine
        ]
        for mine in systems.values()
    ]
    draw = partial(heatmap, rows, KINDS[name], cells, title=title, key="share of the answers that were explained")
    caption = "Share of each system's explained wrong answers by kind; how many were explained stands in brackets."
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
            Column("model"),
            Column("condition"),
            *((Column("kind"),) if name == ERROR else ()),
            Column("explained", "count"),
            Column("split", "count"),
            Column("count" if name == ERROR else "yes", "count"),
            Column("share, 95% Wilson", "share"),
            Column("sensitivity", "share"),
        ),
        rows=tuple(rows),
        note="Sensitivity, where people are split on more than 1% of answers: the share if none of those had this "
        "label, and if all had. Shares are of the answers that were drawn and explained, not of all wrong answers.",
    )


def _agreement(name: str, title: str, labels: Sequence[ErrorLabel]) -> list[Block]:
    """How far people agree, before anything was settled."""
    ratings: dict[str, dict[str, str]] = {}
    for label in labels:
        if label.annotator != SETTLED:
            ratings.setdefault(label.annotator, {})["\x1f".join(map(str, label.answer))] = label.said[name]
    if len(ratings) < 2:
        return [Notice("One person alone labelled this: nothing can be said of agreement.")] if ratings else []
    found = agreement_with_intervals(ratings, KINDS[name])
    if not found.nominal.items:
        return [Notice("No answer was labelled by two people: nothing can be said of agreement.")]
    pairs = labellers_table(
        found,
        name=f"{_anchor(name)}-agreement",
        caption=f"{title.rstrip('?')}: people among themselves",
        unit="answers",
    )
    alpha = found.nominal
    value = triple(alpha.value, alpha.interval)
    told = written(value, "number") if value is not None else "not defined: everybody gave one and the same label"
    words = f"Krippendorff's α, 95% bootstrap: {told}, over {count_of(alpha.items, 'answer')} of two labels or more."
    return [Text(words), pairs]


def _lead(name: str, found: Sequence[ModeShare]) -> Lead:
    counts: Counter[str] = Counter()
    for row in found:
        counts[row.label] += row.count
    explained = sum(mine[0].n for mine in _systems(found).values())
    if name == PHYSICIAN:
        said = f"By people's word a trained physician was likely to make {counts['yes']:,} of {explained:,} errors too."
    else:
        label, count = counts.most_common(1)[0]
        said = f"The most frequent kind of error, by people's word, is {label}: {count:,} of {explained:,}."
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
        caption="What people wrote of each answer",
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
