"""A benchmark in a report: the funnel from candidates to questions, with reasons, and examples to judge it by."""

from __future__ import annotations

from hoofbeat.benchmarks import Benchmark, corpus_beside
from hoofbeat.facets import FacetTally
from hoofbeat.reports.charts import Bar, interval_bars
from hoofbeat.reports.item_views import question_view
from hoofbeat.reports.model import Block, Card, Entry, Heading, Notice, Text, Viewer
from hoofbeat.reports.section import Chapter, ReportSection, chapter_per_artefact
from hoofbeat.reports.sections.common import facet_blocks, figure
from hoofbeat.reports.sections.recipes import build_blocks, build_cards
from hoofbeat.reports.tables import Column, Table
from hoofbeat.reports.words import count_of
from hoofbeat.store import Artefact, Counts
from hoofbeat.text import cut

__all__ = ["SECTION", "benchmark_chapter", "funnel_blocks"]


_EXAMPLES = 5


def benchmark_chapter(artefact: Artefact, prefix: str) -> Chapter:
    """The chapter on one benchmark."""
    questions = Benchmark(artefact).questions
    corpus = corpus_beside(artefact)
    counts = artefact.manifest.counts
    with_gold = sum(bool(question.answer) for question in questions)
    choice = sum(bool(question.options) for question in questions)
    words = (
        f"{count_of(len(questions), 'question')}: {with_gold:,} with a gold answer, {choice:,} multiple choice, "
        f"{sum(bool(question.evidence) for question in questions):,} with evidence in their source."
    )
    blocks: list[Block] = [Text(words)]
    if not questions:
        blocks.append(Notice("This benchmark holds no questions."))
    blocks += build_blocks(artefact, prefix) or funnel_blocks(counts, prefix)
    blocks += facet_blocks(FacetTally(question.facets for question in questions), f"{prefix}-questions", "questions")
    if questions:
        entries = tuple(
            Entry(
                id=f"{prefix}-example-{number}",
                name=question.id,
                title=cut(question.text, 160),
                blocks=(question_view(question, corpus=corpus, facets=False),),
            )
            for number, question in enumerate(questions[:_EXAMPLES], start=1)
        )
        blocks += [
            Heading("Examples", f"{prefix}-examples", 3),
            Text(f"The first {len(entries)} of {count_of(len(questions), 'question')}."),
            Viewer(id=f"{prefix}-viewer", noun="examples", entries=entries),
        ]
    candidates = counts.kept + counts.rejected + counts.failed
    detail = f"of {count_of(candidates, 'candidate')}" if candidates > len(questions) else ""
    card = Card(label="Questions in the benchmark", value=f"{len(questions):,}", detail=detail)
    title = artefact.manifest.title or artefact.path.name
    return Chapter(title=f"Benchmark: {title}", id=prefix, blocks=tuple(blocks), cards=(card, *build_cards(artefact)))


def funnel_blocks(counts: Counts, prefix: str) -> list[Block]:
    """What became of every candidate. Nothing is drawn where all came through."""
    total = counts.kept + counts.rejected + counts.failed
    if not total or total == counts.kept:
        return []
    rows: list[tuple[str, str, int, float]] = [("kept", "", counts.kept, counts.kept / total)]
    for fate, reasons, of_fate in (
        ("rejected", counts.reasons, counts.rejected),
        ("failed", counts.failures, counts.failed),
    ):
        ordered = sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0]))
        rest = of_fate - sum(reasons.values())
        rows += [
            (fate, reason, count, count / total) for reason, count in [*ordered, ("no reason noted", rest)] if count > 0
        ]
    bars = [Bar(label="candidates", value=total)]
    bars += [Bar(label=f"{fate}: {reason}" if reason else fate, value=count) for fate, reason, count, _ in rows]
    table = Table(
        name=f"{prefix}-funnel",
        caption="From candidates to questions",
        n=total,
        unit="candidates",
        columns=(Column("fate"), Column("reason"), Column("count", "count"), Column("share", "share")),
        rows=tuple(rows),
    )
    caption = "Each candidate counts once. A failure is a call that brought no result; a rejection is a decision."
    chart = figure(
        f"{prefix}-funnel",
        caption,
        lambda width: interval_bars(bars, title="From candidates to questions", form="count", width=width),
    )
    return [chart, table]


SECTION = ReportSection(
    name="benchmark",
    summary="the funnel from candidates to questions, with reasons, and examples",
    order=30,
    kinds=("benchmark",),
    build=chapter_per_artefact("benchmark", benchmark_chapter),
)
