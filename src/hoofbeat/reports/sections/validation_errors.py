"""Where an audit's judge errs: which borders between labels, and the pairs themselves with both answers."""

from __future__ import annotations

from collections.abc import Sequence

from hoofbeat.audit.findings.validation_figures import Validation
from hoofbeat.audit.findings.validation_folder import ValidatedPair
from hoofbeat.reports.charts.bars import tone_of
from hoofbeat.reports.model import Block, Entry, Heading, PairView, SideView, Text, Viewer
from hoofbeat.reports.tables import Column, Table
from hoofbeat.text import cut

__all__ = ["error_blocks"]

_ANSWER = 4_000
_TITLE = 140


def error_blocks(found: Validation, pairs: Sequence[ValidatedPair], prefix: str) -> list[Block]:
    """The table of borders, and every error."""
    lines = found.judge.borders
    heading = Heading("Where the errors lie", f"{prefix}-errors", 3)
    if not lines.errors:
        return [heading, Text("The judge makes no error on the pairs that have a reference.")]
    touched = max(lines.touching, key=lambda label: lines.touching[label])
    table = Table(
        name=f"{prefix}-borders",
        caption="Errors by the border between labels that they cross",
        n=lines.errors,
        unit="errors",
        columns=(
            Column("between"),
            Column("steps", "count"),
            Column("errors", "count"),
            Column("of all errors", "share"),
            Column("judge says the later", "count"),
            Column("judge says the earlier", "count"),
            Column("changes whether it diverges"),
        ),
        rows=tuple(
            (
                f"{row.lower} / {row.upper}",
                row.steps,
                row.over + row.under,
                row.share,
                row.over,
                row.under,
                "yes" if row.crosses else "no",
            )
            for row in lines.borders
        ),
        note=f"{lines.adjacent:,} of {lines.errors:,} errors are between neighbours in the order of labels, "
        f"{lines.distant:,} go further; {lines.crossing:,} change whether a pair counts as diverging. {touched} has a "
        f"part in {lines.touching[touched]:,}.",
    )
    return [heading, table, _viewer(found, pairs, prefix)]


def _viewer(found: Validation, pairs: Sequence[ValidatedPair], prefix: str) -> Viewer:
    """The pairs on which judge and people differ, with both answers."""
    order = found.judge.agreement.labels
    entries = []
    wrong = [pair for pair in pairs if pair.reference.label is not None and pair.reference.label != pair.rated.judge]
    for number, pair in enumerate(wrong, start=1):
        rated, label = pair.rated, pair.reference.label
        said = [f"{who}: {given}" for who, given in rated.labels.items()]
        said += [f"{who} notes: {note}" for who, note in pair.notes.items()]
        said += [f"adjudicated: {rated.adjudicated}"] if rated.adjudicated else []
        view = PairView(
            a=SideView(name=rated.a, text=_cut(pair.answer_a)),
            b=SideView(name=rated.b, text=_cut(pair.answer_b)),
            label=rated.judge,
            tone=tone_of(order.index(rated.judge), len(order)),
            facts=tuple(said),
            reasoning=pair.reasoning,
        )
        entries.append(
            Entry(
                id=f"{prefix}-e{number}",
                name=rated.question,
                title=cut(pair.question, _TITLE),
                marks=((f"judge {rated.judge}", ""), (f"people {label}", "")),
                states=(f"{label}, judged {rated.judge}",),
                blocks=(view,),
            )
        )
    return Viewer(id=f"{prefix}-wrong", noun="errors", entries=tuple(entries))


def _cut(text: str) -> str:
    return text if len(text) <= _ANSWER else f"{text[:_ANSWER]}… (the first {_ANSWER:,} of {len(text):,} characters)"
