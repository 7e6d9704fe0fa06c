"""The audit question by question: a grid of sources, and behind each of its cells both answers and the reasoning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hoofbeat.findings.relations import RelationLabels, RelationMatrix, matrices
from hoofbeat.judging import Audit
from hoofbeat.records import Answer, Comparison, Question
from hoofbeat.reports.charts import label_matrix
from hoofbeat.reports.charts.bars import tone_of
from hoofbeat.reports.model import Block, Chart, Columns, Details, Entry, Notice, PairView, QuestionView, Text, Viewer
from hoofbeat.reports.sections.common import PAGE_CHARACTERS, failure_text
from hoofbeat.reports.sections.planted import PlantedLabels
from hoofbeat.reports.words import cut

__all__ = ["audit_viewer"]

_WIDEST = 40
_TITLE = 160
_ANSWER = 3000
_CELL_CHARACTERS = 190

Pair = tuple[str, str, str]


def audit_viewer(
    audit: Audit, prefix: str, domain: RelationLabels, planted: PlantedLabels, *, budget: int = PAGE_CHARACTERS
) -> tuple[Viewer, dict[Pair, str]]:
    """The questions as a viewer, those with most divergence first to be kept where not all fit; and pairs' anchors."""
    by_question: dict[str, list[Comparison]] = {question.id: [] for question in audit.questions}
    for comparison in audit.comparisons:
        by_question.setdefault(comparison.question, []).append(comparison)
    answers = {(answer.question, answer.source): answer for answer in audit.answers}
    grids = {grid.question: grid for grid in matrices(audit.comparisons, domain)}
    kept = _fitting(audit.questions, by_question, answers, domain, budget)
    entries, anchors = [], {}
    for number, question in enumerate(audit.questions, start=1):
        if question.id not in kept:
            continue
        mine = by_question[question.id]
        links = {(c.question, c.a, c.b): f"#{prefix}-q{number}-p{place}" for place, c in enumerate(mine, start=1)}
        anchors.update(links)
        pairs = [_pair(c, links, answers, domain, planted) for c in mine]
        entries.append(
            Entry(
                id=f"{prefix}-q{number}",
                name=question.id,
                title=cut(question.text, _TITLE),
                marks=_marks(mine, domain),
                states=tuple(dict.fromkeys(c.label or "no label" for c in mine)),
                blocks=(
                    *_asked(question),
                    *_grids(question, grids.get(question.id), links, domain, planted),
                    _answers(question, audit, answers),
                    *pairs,
                ),
            )
        )
    left_out = len(audit.questions) - len(entries)
    return Viewer(id=f"{prefix}-viewer", noun="questions", entries=tuple(entries), left_out=left_out), anchors


def _asked(question: Question) -> list[Block]:
    """The question in full, where the line that opens it does not say all."""
    whole = not question.context and len(question.text) <= _TITLE
    return [] if whole else [QuestionView(text=question.text, context=question.context)]


def _fitting(
    questions: Sequence[Question],
    by_question: dict[str, list[Comparison]],
    answers: dict[tuple[str, str], Answer],
    domain: RelationLabels,
    budget: int,
) -> set[str]:
    def diverging(question: Question) -> int:
        return -sum(c.label in domain.diverging for c in by_question[question.id])

    kept: set[str] = set()
    for question in sorted(questions, key=diverging):
        for c in by_question[question.id]:
            sides = (answers.get((c.question, side)) for side in (c.a, c.b))
            budget -= 300 + len(c.reasoning) + sum(min(_ANSWER, len(side.text)) for side in sides if side)
            budget -= 4 * _CELL_CHARACTERS
        if budget < 0 and kept:
            break
        kept.add(question.id)
    return kept


def _marks(mine: Sequence[Comparison], domain: RelationLabels) -> tuple[tuple[str, str], ...]:
    tally = Counter(c.label or "no label" for c in mine)
    marks = []
    for place, label in enumerate(domain.order):
        if tally[label]:
            marks.append((f"{label} {tally[label]}", f"tone{tone_of(place, len(domain.order))}"))
    if tally["no label"]:
        marks.append((f"no label {tally['no label']}", ""))
    return tuple(marks)


def _grids(
    question: Question,
    grid: RelationMatrix | None,
    links: dict[Pair, str],
    domain: RelationLabels,
    planted: PlantedLabels,
) -> list[Block]:
    if grid is None:
        return [Notice("Fewer than two sources were asked this question.")]
    if len(grid.sources) > _WIDEST:
        return [Notice(f"A grid of {len(grid.sources)} sources is too large for a page; the pairs stand below.")]
    where: dict[tuple[int, int], str] = {}
    truth = [["" for _ in grid.sources] for _ in grid.sources]
    for row, a in enumerate(grid.sources):
        for column, b in enumerate(grid.sources):
            pair = (question.id, min(a, b), max(a, b))
            if pair in links:
                where[row, column] = links[pair]
            truth[row][column] = planted.get(pair, "")
    wrong = {
        (row, column)
        for row, line in enumerate(truth)
        for column, label in enumerate(line)
        if label and label != grid.labels[row][column]
    }
    title = f"How sources relate on {question.id}"
    drawn = label_matrix(grid.sources, grid.labels, domain.order, title=title, links=where, marks=wrong)
    charts: list[Block] = [Chart(name=f"{question.id}-judge", caption="Judge", wide=drawn)]
    if any(label for line in truth for label in line):
        planted_title = f"How sources were planted to relate on {question.id}"
        drawn = label_matrix(grid.sources, truth, domain.order, title=planted_title)
        charts.append(Chart(name=f"{question.id}-planted", caption="Planted", wide=drawn))
    return [Columns(tuple(charts))] if len(charts) > 1 else charts


def _answers(question: Question, audit: Audit, answers: dict[tuple[str, str], Answer]) -> Block:
    said: list[Block] = []
    for source in audit.sources:
        answer = answers.get((question.id, source.id))
        if answer:
            cited = f"\nCites: {', '.join(answer.citations)}" if answer.citations else ""
            said.append(Text(_said(answer) + cited, label=source.id))
    return Details(f"What each source says ({len(said)})", tuple(said) or (Notice("No source was asked."),))


def _said(answer: Answer | None) -> str:
    if answer is None:
        return "Not asked."
    if answer.failure:
        return f"No answer. {failure_text(answer.failure)}"
    if answer.absent:
        return "Silent: the source does not address the question."
    text = answer.text
    return text if len(text) <= _ANSWER else f"{text[:_ANSWER]}… (the first {_ANSWER:,} of {len(text):,} characters)"


def _pair(
    c: Comparison,
    links: dict[Pair, str],
    answers: dict[tuple[str, str], Answer],
    domain: RelationLabels,
    planted: PlantedLabels,
) -> PairView:
    facts = [f"significance {c.significance}"] if c.significance else []
    facts += [c.topic] if c.topic else []
    truth = planted.get((c.question, c.a, c.b))
    if truth:
        facts.append("as planted" if truth == c.label else f"planted: {truth}")
    return PairView(
        id=links[c.question, c.a, c.b].removeprefix("#"),
        a=c.a,
        b=c.b,
        label=c.label or "no label",
        tone=tone_of(domain.order.index(c.label), len(domain.order)) if c.label in domain.order else 0,
        facts=tuple(facts),
        reasoning=failure_text(c.failure) if c.failure else c.reasoning,
        answer_a=_said(answers.get((c.question, c.a))),
        answer_b=_said(answers.get((c.question, c.b))),
    )
