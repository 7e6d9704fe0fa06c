"""What the sections of a report share: their shape, charts drawn for page and phone, and how questions are shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Protocol

from hoofbeat.corpus import Corpus
from hoofbeat.facets import FacetTally
from hoofbeat.records import Answer, Failure, Passage, Question, Span
from hoofbeat.reports.charts import NARROW, WIDE, Bar, interval_bars
from hoofbeat.reports.model import Block, Chart, Details, PassageView, QuestionView
from hoofbeat.reports.tables import Column, Table
from hoofbeat.reports.words import Form, written
from hoofbeat.text import cut

__all__ = [
    "PAGE_CHARACTERS",
    "counted",
    "facet_blocks",
    "failure_text",
    "figure",
    "passage_views",
    "question_view",
    "reasons_text",
    "sized",
    "spread",
]


PAGE_CHARACTERS = 3_000_000
"""About how much text of questions and answers one page holds; more makes browsers slow, and nobody reads it."""

_PASSAGE = 900
_AROUND = 220
_REASONS = 6
_CHARTED = 12


class ChartRenderer(Protocol):
    """A chart that can be drawn at any width."""

    def __call__(self, *, width: int) -> str:
        """Draw it."""
        ...


def figure(name: str, caption: str, draw: ChartRenderer) -> Chart:
    """A chart for the page and for the phone."""
    return Chart(name=name, caption=caption, wide=draw(width=WIDE), narrow=draw(width=NARROW))


def spread(interval: tuple[float, float] | None, form: Form, n: str, method: str = "") -> str:
    """The small print of a key figure: its interval, by which method, and n."""
    return (
        f"95% {method or 'interval'} {written(interval, form)}, n\u00a0=\u00a0{n}" if interval else f"n\u00a0=\u00a0{n}"
    )


def counted(
    name: str, caption: str, head: str, counts: Iterable[tuple[str, int]], total: int, unit: str, note: str = ""
) -> Table:
    """How often each thing was seen, with its share of the total."""
    rows = tuple((label, count, count / total if total else None) for label, count in counts)
    columns = (Column(head), Column("count", "count"), Column("share", "share"))
    return Table(name=name, caption=caption, n=total, unit=unit, columns=columns, rows=rows, note=note)


def facet_blocks(tally: FacetTally, prefix: str, unit: str) -> list[Block]:
    """How items spread over their facets: the first as a chart, the rest behind a line."""
    blocks: list[Block] = []
    for place, (name, ordered) in enumerate(tally.counts().items()):
        table = counted(f"{prefix}-{name}", f"{unit.capitalize()} by {name}", name, ordered, tally.total, unit)
        if place or len(ordered) > _CHARTED:
            blocks.append(Details(f"{table.caption} ({len(ordered)})", (table,)))
            continue
        bars = [Bar(label=label, value=count) for label, count in ordered]
        draw = partial(interval_bars, bars, title=table.caption, form="count")
        chart = figure(f"{prefix}-{name}", f"{table.caption}.", draw)
        blocks += [chart, Details(f"{table.caption} as a table", (table,))]
    return blocks


def reasons_text(reasons: Mapping[str, int]) -> str:
    """Reasons with their counts in one line, the most frequent first; what is too long to read is only counted."""
    ordered = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    rest = len(ordered) - _REASONS
    told = [f"{count:,} {cut(reason, 80)}" for reason, count in ordered[:_REASONS]]
    return "; ".join([*told, f"and {rest:,} other reasons"] if rest > 0 else told)


def failure_text(failure: Failure) -> str:
    """A failure in one line."""
    return f"{failure.kind}: {failure.message}"


def passage_views(passages: Sequence[Passage]) -> tuple[PassageView, ...]:
    """Passages as they were shown, long ones cut."""
    return tuple(
        PassageView(
            source=" · ".join(part for part in (passage.document, passage.heading, _length(passage.text)) if part),
            text=cut(passage.text, _PASSAGE),
        )
        for passage in passages
    )


def _length(text: str) -> str:
    return f"the first {_PASSAGE} of {len(text):,} characters" if len(text) > _PASSAGE else ""


def question_view(question: Question, corpus: Corpus | None = None) -> QuestionView:
    """A question with everything the benchmark knows of it; with the corpus, evidence is marked in its sentence."""
    return QuestionView(
        text=question.text,
        context=question.context,
        options=question.options,
        gold=question.answer,
        evidence=tuple(_evidence_view(span, corpus) for span in question.evidence),
    )


def _evidence_view(span: Span, corpus: Corpus | None) -> PassageView:
    source = f"{span.document}, characters {span.start:,}–{span.end:,}"
    if corpus is None or span.document not in corpus:
        return PassageView(source=source, text=span.quote)
    text = corpus.get(span.document).text
    if text[span.start : span.end] != span.quote:
        return PassageView(source=f"{source}; the source reads otherwise now", text=span.quote)
    low, high = max(0, span.start - _AROUND), min(len(text), span.end + _AROUND)
    before, after = text[low : span.start], text[span.end : high]
    return PassageView(
        source=source,
        text=span.quote,
        before=("… " + before.partition(" ")[2]) if low else before,
        after=(after.rpartition(" ")[0] + " …") if high < len(text) else after,
    )


def sized(question: Question, answers: Sequence[Answer]) -> int:
    """About how many characters a question and its answers take on the page."""
    shown = sum(len(a.text) + len(a.reasoning) + sum(min(_PASSAGE, len(p.text)) for p in a.evidence) for a in answers)
    return 600 + len(question.full_text) + len(question.answer) + shown + 400 * len(answers)
