"""A run in a report: answers that nobody has judged yet, so what was asked and what came back."""

from __future__ import annotations

from collections import Counter

from hoofbeat.records import Answer, Question
from hoofbeat.reports.charts import stacked_bars
from hoofbeat.reports.item_views import answers_viewer, system_name
from hoofbeat.reports.lookup import Lookup
from hoofbeat.reports.model import Block, Card, Heading, Lead, Notice, Text
from hoofbeat.reports.section import Chapter, PlacedArtefact, ReportInputs, ReportSection, figure
from hoofbeat.reports.tables import Cell, Table, columns_of, count_of
from hoofbeat.store import Artefact
from hoofbeat.store.tables import read_jsonl


def runs_to_score(report: ReportInputs) -> list[PlacedArtefact]:
    """The runs whose answers choose options, so that no judge is needed, and whose judgments are not in the report."""
    judged = _judged(report)
    return [(prefix, run) for prefix, run in report.of("run") if prefix not in judged and _makes_choices(run)]


def _judged(report: ReportInputs) -> set[str]:
    """The prefixes of the runs whose judgments are in the report."""
    behind = {ref.sha256 for _, judgments in report.of("judgments") for ref in judgments.manifest.inputs}
    return {prefix for prefix, run in report.of("run") if run.reference().sha256 in behind}


def _makes_choices(artefact: Artefact) -> bool:
    return any(answer.protocol for answer in read_jsonl(artefact.file("answers.jsonl"), Answer))


def _build(report: ReportInputs) -> list[Chapter]:
    judged, scored = _judged(report), {prefix for prefix, _ in runs_to_score(report)}
    return [run_chapter(run, prefix, prefix in judged) for prefix, run in report.of("run") if prefix not in scored]


def run_chapter(artefact: Artefact, prefix: str, judged: bool) -> Chapter:
    """The chapter on one run; where its judgments are in the report too, they show its answers."""
    questions = list(read_jsonl(artefact.file("questions.jsonl"), Question))
    states: dict[tuple[str, str], Counter[str]] = {}
    for answer in read_jsonl(artefact.file("answers.jsonl"), Answer):
        kind = answer.failure.kind if answer.failure else ""
        states.setdefault((answer.model, answer.condition), Counter())[kind] += 1
    planned = sum(count.total() for count in states.values())
    failed = sum(count.total() - count[""] for count in states.values())
    title = f"Answers: {artefact.path.name}"
    words = f"{count_of(len(questions), 'question')}, {count_of(planned, 'planned answer')}"
    if judged:
        return Chapter(title=title, id=prefix, blocks=(Text(f"{words}, shown with their judgments in this report."),))
    blocks: list[Block] = [Text(f"{words}; none has been judged.")]
    if not planned:
        return Chapter(title=title, id=prefix, blocks=(*blocks, Notice("This run has no answers.")))
    if failed == planned:
        blocks.append(Notice("Every call failed: there is no answer in this run."))
    models = len({model for model, _ in states})
    parts = [
        (system_name(*system, models), {"answered": count[""], "failed": count.total() - count[""]})
        for system, count in states.items()
    ]
    tones = {"answered": 1, "failed": 0}
    blocks += [
        figure(
            f"{prefix}-answered",
            "Planned answers that were given, and calls that failed.",
            lambda width: stacked_bars(parts, ("answered", "failed"), title="Answers", tones=tones, width=width),
        ),
        _table(states, prefix),
        Heading("Question by question", f"{prefix}-questions", 3),
        answers_viewer(prefix, questions, Lookup.read(artefact.file("answers.jsonl"), Answer), {}, ()),
    ]
    card = Card(label="Answers, not judged", value=f"{planned - failed:,}", detail=f"of {planned:,} planned")
    lead = f"Answers: {planned - failed:,} of {planned:,} planned. Nobody has judged them yet."
    return Chapter(
        title=title,
        id=prefix,
        blocks=tuple(blocks),
        cards=(card,),
        leads=(Lead(lead, f"#{prefix}", "See the answers"),),
    )


def _table(states: dict[tuple[str, str], Counter[str]], prefix: str) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for (model, condition), count in states.items():
        why = ", ".join(f"{kind} {times}" for kind, times in sorted(count.items()) if kind)
        rows.append((model, condition, count.total(), count[""], count.total() - count[""], why))
    columns = columns_of("model | condition | planned:count | answered:count | failed:count | failures by kind")
    return Table(
        name=f"{prefix}-answered",
        caption="Answers of each model and condition",
        n=sum(count.total() for count in states.values()),
        unit="planned answers",
        columns=columns,
        rows=tuple(rows),
    )


SECTION = ReportSection(
    name="runs",
    summary="answers without judgments: what was asked and what failed",
    order=50,
    kinds=("run",),
    build=_build,
)
