"""Judged answers in a report: accuracy of every model under every condition, and what retrieval added to it.

Folders of judgments that belong together (the same questions, the same judge) are read as one, so that conditions run
apart can be compared; the denominator is always what was planned.
"""

from __future__ import annotations

from collections.abc import Sequence

from hoofbeat.findings.accuracy import Accuracy, Outcome, SystemDifference, accuracies, differences, outcomes
from hoofbeat.judging import Judged
from hoofbeat.records import Answer, Judgment, Question
from hoofbeat.reports.charts import Bar, interval_bars, stacked_bars
from hoofbeat.reports.model import Block, Card, Cell, Column, Heading, Notice, Table, Text
from hoofbeat.reports.sections.answers import answer_key, answers_viewer, system_name
from hoofbeat.reports.sections.common import Part, figure, spread
from hoofbeat.reports.sections.facets import facet_tables
from hoofbeat.reports.words import count_of, model_name, written
from hoofbeat.store import Artefact

__all__ = ["judgments_parts"]

_CLOSED = ("closed", "closed-book")
_PAIRED = (
    "Paired by question: bootstrap of 1,000 samples (seed 0), exact McNemar test, Holm's correction over the table."
)

System = tuple[str, str]


class _Group:
    """Judgments of the same questions by the same judge."""

    def __init__(self, prefix: str, opened: Judged) -> None:
        self.prefix = prefix
        self.names: list[str] = []
        self.questions: dict[str, Question] = {}
        self.answers: list[Answer] = []
        self.judgments: list[Judgment] = []
        self.keys: set[tuple[str, str, str, int]] = set()
        settings = opened.artefact.manifest.settings
        self.aspect, self.positive = (
            str(settings.get("aspect", "equivalence")),
            str(settings.get("positive", "equivalent")),
        )
        self.judge = opened.artefact.manifest.models.get("judge", "")
        self.same_model = False
        self.add(opened)

    def takes(self, opened: Judged) -> bool:
        """Whether these judgments can be read together with those already here."""
        manifest = opened.artefact.manifest
        shared = [question for question in opened.questions if question.id in self.questions]
        return (
            manifest.models.get("judge", "") == self.judge
            and str(manifest.settings.get("aspect", "equivalence")) == self.aspect
            and str(manifest.settings.get("positive", "equivalent")) == self.positive
            and bool(shared)
            and all(self.questions[question.id] == question for question in shared)
            and not any(answer_key(answer) in self.keys for answer in opened.answers)
        )

    def add(self, opened: Judged) -> None:
        """Take these judgments in."""
        self.names.append(opened.artefact.path.name)
        self.questions.update({question.id: question for question in opened.questions})
        self.answers += opened.answers
        self.judgments += opened.judgments
        self.keys.update(answer_key(answer) for answer in opened.answers)
        models = opened.artefact.manifest.models
        self.same_model |= bool(self.judge) and models.get("answer") == self.judge

    def systems(self) -> list[System]:
        """Models and conditions in the order they were run, the closed book first."""
        seen = dict.fromkeys((answer.model, answer.condition) for answer in self.answers)
        models = list(dict.fromkeys(model for model, _ in seen))
        return sorted(seen, key=lambda system: (models.index(system[0]), system[1] not in _CLOSED))


def judgments_parts(artefacts: Sequence[tuple[str, Artefact]]) -> list[Part]:
    """A chapter for each set of judgments that belong together."""
    groups: list[_Group] = []
    for prefix, artefact in artefacts:
        opened = Judged(artefact)
        home = next((group for group in groups if group.takes(opened)), None)
        if home:
            home.add(opened)
        else:
            groups.append(_Group(prefix, opened))
    return [_part(group) for group in groups]


def _part(group: _Group) -> Part:
    questions, prefix = list(group.questions.values()), group.prefix
    results = outcomes(group.answers, group.judgments, positive=group.positive, aspect=group.aspect)
    clusters = {question.id: question.documents[0] for question in questions if question.documents}
    order = group.systems()
    table = sorted(accuracies(results, clusters=clusters), key=lambda row: order.index((row.model, row.condition)))
    models = len({model for model, _ in order})
    blocks: list[Block] = [
        Text(
            f"{count_of(len(questions), 'question')}, {count_of(len(group.answers), 'planned answer')}, judged by "
            f"{model_name(group.judge) or 'an unnamed judge'} ({group.aspect}; right means “{group.positive}”)."
        )
    ]
    if group.same_model:
        blocks.append(Notice("The judge is the model that answered; a model tends to agree with itself."))
    if not table:
        blocks.append(Notice("No answers were planned, so there is nothing to score."))
    else:
        blocks += _scores(table, prefix, models, len(questions))
        blocks += _deltas(results, order, clusters, prefix, models)
        blocks += facet_tables(results, questions, order, prefix, models)
        by_key = {answer_key(row): row for row in results}
        judged = {answer_key(judgment): judgment for judgment in group.judgments if judgment.aspect == group.aspect}
        blocks += [
            Heading("Question by question", f"{prefix}-questions", 3),
            answers_viewer(prefix, questions, group.answers, by_key, judged),
        ]
    title = "Answers and judgments" if len(group.names) > 1 else f"Answers and judgments: {group.names[0]}"
    return Part(title=title, id=prefix, blocks=tuple(blocks), cards=_cards(table, models))


def _cards(table: Sequence[Accuracy], models: int) -> tuple[Card, ...]:
    if not table:
        return ()
    closed = [row for row in table if row.condition in _CLOSED]
    others = [row for row in table if row.condition not in _CLOSED]
    chosen = [max(rows, key=lambda row: row.accuracy) for rows in (closed, others) if rows]
    return tuple(
        Card(
            label=f"Accuracy, {system_name(row.model, row.condition, models)}",
            value=written(row.accuracy, "share"),
            detail=spread(_interval(row), "share", f"{row.planned:,}")
            + (f", {sum(row.unscored.values()):,} unscored" if row.unscored else ""),
        )
        for row in chosen
    )


def _interval(row: Accuracy) -> tuple[float, float]:
    """The bootstrap interval, or Wilson's where all answers fare alike and resampling shows no spread."""
    chosen = row.wilson if row.bootstrap.low == row.bootstrap.high else row.bootstrap
    return chosen.low, chosen.high


def _scores(table: Sequence[Accuracy], prefix: str, models: int, questions: int) -> list[Block]:
    names = [system_name(row.model, row.condition, models) for row in table]
    bars = [
        Bar(label=name, value=row.accuracy, low=_interval(row)[0], high=_interval(row)[1])
        for name, row in zip(names, table, strict=True)
    ]
    alike = " Where all answers fare alike, resampling shows no spread, and Wilson's interval stands instead."
    chart = figure(
        f"{prefix}-accuracy",
        "Share right of all planned answers, with 95% bootstrap intervals; questions from one document stay together."
        + (alike if any(row.bootstrap.low == row.bootstrap.high for row in table) else ""),
        lambda width: interval_bars(bars, title="Accuracy", limits=(0, 1), width=width),
    )
    blocks: list[Block] = [
        Heading("Accuracy", f"{prefix}-accuracy", 3),
        chart,
        _accuracy_table(table, prefix, questions),
    ]
    missing = [row for row in table if row.unscored]
    if all(sum(row.unscored.values()) == row.planned for row in table):
        blocks.insert(1, Notice("No answer could be scored. The figures below only say what went wrong."))
    if missing:
        parts = []
        for name, row in zip(names, table, strict=True):
            lost = sum(row.unscored.values())
            parts.append((name, {"unscored": lost, "right": row.correct, "wrong": row.planned - row.correct - lost}))
        tones = {"right": 1, "wrong": 3, "unscored": 0}
        blocks.append(
            figure(
                f"{prefix}-outcomes",
                "What became of every planned answer.",
                lambda width: stacked_bars(
                    parts, ("right", "wrong", "unscored"), title="Outcomes", tones=tones, width=width
                ),
            )
        )
        blocks.append(_unscored_table(missing, prefix))
    return blocks


def _accuracy_table(table: Sequence[Accuracy], prefix: str, questions: int) -> Table:
    columns = (
        Column("model"),
        Column("condition"),
        Column("planned", "count"),
        Column("right", "count"),
        Column("unscored", "count"),
        Column("accuracy, 95% bootstrap", "share"),
        Column("95% Wilson", "share"),
        Column("sensitivity", "share"),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            row.model,
            row.condition,
            row.planned,
            row.correct,
            sum(row.unscored.values()),
            (row.accuracy, row.bootstrap.low, row.bootstrap.high),
            (row.wilson.low, row.wilson.high),
            row.sensitivity,
        )
        for row in table
    )
    note = (
        "An answer without a score stays in the denominator. Where such answers exceed 1%, sensitivity is the accuracy "
        "had all of them been wrong and had all been right."
    )
    return Table(
        name=f"{prefix}-accuracy",
        caption="Accuracy of each model and condition",
        n=questions,
        unit="questions",
        columns=columns,
        rows=rows,
        note=note,
    )


def _unscored_table(missing: Sequence[Accuracy], prefix: str) -> Table:
    columns = (
        Column("model"),
        Column("condition"),
        Column("stage and reason"),
        Column("count", "count"),
        Column("of planned", "share"),
    )
    rows = tuple(
        (row.model, row.condition, reason.replace(":", ": "), count, count / row.planned)
        for row in missing
        for reason, count in row.unscored.items()
    )
    total = sum(sum(row.unscored.values()) for row in missing)
    caption = "Answers without a score, by what went wrong"
    return Table(name=f"{prefix}-unscored", caption=caption, n=total, unit="answers", columns=columns, rows=rows)


def _deltas(
    results: Sequence[Outcome], order: Sequence[System], clusters: dict[str, str], prefix: str, models: int
) -> list[Block]:
    """Every condition against the closed book of the same model, or every two conditions where there is none."""
    asked = {system: {row.question for row in results if (row.model, row.condition) == system} for system in order}
    pairs = [
        (system, base)
        for base in order
        for system in order
        if base[1] in _CLOSED and system[0] == base[0] and system != base and asked[system] & asked[base]
    ]
    versus = "the closed book"
    if not pairs:
        versus = "each other"
        pairs = [(b, a) for n, a in enumerate(order) for b in order[n + 1 :] if a[0] == b[0] and asked[a] & asked[b]]
    if not pairs:
        return []
    found = differences(results, pairs, clusters=clusters)
    bars = [
        Bar(
            label=f"{system_name(*row.a, models)} over {row.b[1]}",
            value=row.paired.difference,
            low=row.paired.interval.low,
            high=row.paired.interval.high,
        )
        for row in found
    ]
    reach = max([0.1, *(abs(end) for bar in bars for end in (bar.low or 0.0, bar.high or 0.0))])
    limits = (-reach, reach)
    title = f"Differences to {versus}" if versus == "the closed book" else "Differences between conditions"
    chart = figure(
        f"{prefix}-differences",
        "Difference in accuracy in percentage points, with 95% paired bootstrap intervals.",
        lambda width: interval_bars(bars, title=title, form="points", limits=limits, width=width),
    )
    return [Heading(title, f"{prefix}-differences", 3), chart, _difference_table(found, prefix, title)]


def _difference_table(found: Sequence[SystemDifference], prefix: str, title: str) -> Table:
    columns = (
        Column("model"),
        Column("condition"),
        Column("against"),
        Column("pairs", "count"),
        Column("difference, points", "points"),
        Column("only this right", "count"),
        Column("only that right", "count"),
        Column("McNemar p", "p"),
        Column("Holm p", "p"),
        Column("sensitivity", "points"),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            row.a[0],
            row.a[1],
            row.b[1],
            row.paired.n,
            (row.paired.difference, row.paired.interval.low, row.paired.interval.high),
            row.only_a,
            row.only_b,
            row.p,
            row.p_holm,
            row.sensitivity,
        )
        for row in found
    )
    n = max(row.paired.n for row in found)
    return Table(
        name=f"{prefix}-differences", caption=title, n=n, unit="questions", columns=columns, rows=rows, note=_PAIRED
    )
