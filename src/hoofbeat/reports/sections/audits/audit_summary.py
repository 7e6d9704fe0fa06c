"""How sources relate, in figures: cards and words first, then rates with their intervals, and the groups."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import polars
from msgspec import Struct
from numpy.typing import NDArray

from hoofbeat.audit.findings.institution_rates import WITHIN, InstitutionRate, institution_rates, rate_span
from hoofbeat.audit.findings.pair_arrays import AuditPairs, counts_by
from hoofbeat.audit.findings.relations import Rate, Relations, groups_of
from hoofbeat.findings.intervals import resampled_sums, wilson
from hoofbeat.reports.charts import Bar, interval_bars, stacked_bars
from hoofbeat.reports.model import Block, Card, Details, Heading, Lead, Notice
from hoofbeat.reports.section import counted, figure, share_in_words
from hoofbeat.reports.sections.audits.audit_facts import AuditAnswers, AuditFacts
from hoofbeat.reports.sections.audits.judge_trust import judged_by_answerer, mode_card
from hoofbeat.reports.tables import Cell, Column, Table, columns_of, count_of, judge_name, written

Span = tuple[float, float] | None
_CHARTED = 14
_LABEL_ONLY = "only the label could be read"


class RateIntervals(Struct, frozen=True, kw_only=True):
    """95% intervals of the rates: of pairs by resampling questions, of questions by Wilson's formula."""

    r_abs: Span
    r_div: Span
    r_con: Span
    any_div: Span


def rate_spans(pairs: AuditPairs, found: Relations) -> RateIntervals:
    """The intervals of an audit's rates. Pairs of one question hang together, so whole questions are resampled."""
    columns = np.stack(
        [
            pairs.by_question(),
            pairs.by_question(pairs.judged),
            pairs.by_question(pairs.has([pairs.domain.absent])),
            pairs.by_question(pairs.diverging),
            pairs.by_question(pairs.has([pairs.domain.consistent])),
        ],
        axis=1,
    ).astype(np.float64)
    if not len(columns):
        return RateIntervals(r_abs=None, r_div=None, r_con=None, any_div=None)
    drawn = resampled_sums(columns, seed=0)
    asked = found.any_div
    span = wilson(asked.count, asked.of)
    return RateIntervals(
        r_abs=rate_span(columns[:, [2, 0]], drawn[:, [2, 0]]),
        r_div=rate_span(columns[:, [3, 1]], drawn[:, [3, 1]]),
        r_con=rate_span(columns[:, [4, 1]], drawn[:, [4, 1]]),
        any_div=(span.low, span.high) if asked.of else None,
    )


def _div_span(pairs: AuditPairs, questions: Collection[str]) -> Span:
    """The interval of R_div over some of the questions."""
    chosen = [place for place, name in enumerate(pairs.questions) if name in questions]
    columns = np.stack([pairs.by_question(pairs.diverging), pairs.by_question(pairs.judged)], axis=1)[chosen].astype(
        np.float64
    )
    return rate_span(columns, resampled_sums(columns, seed=0)) if len(columns) else None


def warning_blocks(found: Relations) -> list[Block]:
    """What has to be said before any figure of an audit that has none."""
    if not found.pairs:
        return [Notice("No two sources were asked the same question, so there is nothing to compare.")]
    if sum(found.failed.values()) == found.pairs:
        return [Notice("Every comparison failed, so no pair has a label. See the table of failures.")]
    if not found.judged:
        return [Notice("No pair was judged: in every pair at least one source is silent or its answer failed.")]
    return []


def rate_blocks(facts: AuditFacts, spans: RateIntervals, prefix: str) -> list[Block]:
    """The labels as chart and table, the rates, and what failed."""
    found = facts.found
    without = {label: count for label, count in found.labels.items() if label != facts.domain.absent}
    rows: list[tuple[str, Mapping[str, int]]] = [("all labelled pairs", found.labels), ("judged pairs", without)]
    chart = figure(
        f"{prefix}-labels",
        "Labels of all pairs, and of the pairs in which both sources address the question.",
        lambda width: stacked_bars(rows, list(found.labels), title="How answers of two sources relate", width=width),
    )
    columns = columns_of("label | pairs:count | of all pairs:share | of judged:share")
    table = Table(
        name=f"{prefix}-labels",
        caption="Labels",
        n=found.pairs,
        unit="pairs",
        columns=columns,
        rows=tuple(
            (label, count, found.share_of_pairs[label], found.share_of_judged.get(label))
            for label, count in found.labels.items()
        ),
    )
    heading = Heading("How sources relate", f"{prefix}-relations", 3)
    return [heading, chart, table, _rates(facts, spans, prefix), *_failures(facts, prefix)]


def _rates(facts: AuditFacts, spans: RateIntervals, prefix: str) -> Table:
    found, domain = facts.found, facts.domain
    failed = sum(found.failed.values())

    def row(name: str, meaning: str, rate: Rate, span: Span) -> tuple[Cell, ...]:
        value: Cell = None if rate.value is None else rate.value if span is None else (rate.value, *span)
        return name, value, rate.count, rate.of, failed, rate.sensitivity, meaning

    diverging = " or ".join(domain.diverging)
    return Table(
        name=f"{prefix}-rates",
        caption="Rates",
        n=found.pairs,
        unit="pairs",
        columns=columns_of(
            "rate | value:share | count:count | of:count | pairs without a label:count | "
            "range with failures:share | what it is"
        ),
        rows=(
            row("R_abs", "pairs in which a source is silent, of all pairs", found.r_abs, spans.r_abs),
            row("R_div", f"{diverging} pairs, of judged pairs", found.r_div, spans.r_div),
            row("R_con", f"{domain.consistent} pairs, of judged pairs", found.r_con, spans.r_con),
            row("pct_any_div", f"questions with at least one {diverging} pair", found.any_div, spans.any_div),
        ),
        note="Below each value is its 95% interval, from resampling questions (1,000 samples, seed 0); for "
        "pct_any_div it is Wilson's. The range shows how failed comparisons could change a rate. It is given "
        "where they exceed 1% of pairs, or for pct_any_div 1% of questions.",
    )


def grounded_blocks(facts: AuditFacts, said: AuditAnswers, prefix: str) -> list[Block]:
    """The rates of pairs whose answers are both grounded, beside those of all; nothing where no answer quotes."""
    if not said.grounded:
        return []
    pairs = facts.pairs
    known = np.zeros((len(pairs.questions), len(pairs.sources)), bool)
    questions, sources = ({name: at for at, name in enumerate(names)} for names in (pairs.questions, pairs.sources))
    for question, source in said.grounded:
        if question in questions and source in sources:
            known[questions[question], sources[source]] = True
    both = known[pairs.question, pairs.a] & known[pairs.question, pairs.b] & pairs.judged
    spoken = sum(state == "answered" for state in said.states.values())
    kinds = (("R_div", pairs.diverging), ("R_con", pairs.has([pairs.domain.consistent])))
    table = Table(
        name=f"{prefix}-grounded",
        caption="Rates for grounded answers only, beside those for all answers",
        n=int(pairs.judged.sum()),
        unit="judged pairs",
        columns=columns_of(
            "rate | all answers:share | grounded answers only:share | judged pairs:count | both grounded:count"
        ),
        rows=tuple(
            (name, _share(pairs, chosen, pairs.judged), _share(pairs, chosen, both), int(pairs.judged.sum()),
             int(both.sum()))
            for name, chosen in kinds
        ),
        note=f"{len(said.grounded):,} of {spoken:,} answers are grounded: they cite a section that the model saw, "
            f"their quote is in it, and no check objects. 95% intervals are from resampling questions (1,000 "
            f"samples, seed 0). Where the two columns differ, part of the disagreement is due to answers that their "
            f"passages do not support.",
    )  # fmt: skip
    return [Details(table.caption, (table,))]


def _share(pairs: AuditPairs, chosen: NDArray[np.bool_], of: NDArray[np.bool_]) -> Cell:
    """The share of some pairs that are chosen, with its interval; none where there are no such pairs."""
    columns = np.stack([pairs.by_question(chosen & of), pairs.by_question(of)], axis=1).astype(np.float64)
    total = columns.sum(axis=0)
    if not total[1]:
        return None
    span = rate_span(columns, resampled_sums(columns, seed=0))
    value = float(total[0] / total[1])
    return value if span is None else (value, *span)


def _failures(facts: AuditFacts, prefix: str) -> list[Block]:
    found, name = facts.found, f"{prefix}-failed"
    if facts.label_only:
        rows = [*found.failed.items(), (_LABEL_ONLY, facts.label_only)]
        note = (
            "Only the last row has labels, which count in every rate. It counts judgments: pairs with the same two "
            "texts share one."
        )
        return [counted(name, "Comparisons by what went wrong", "kind", rows, found.pairs, "pairs", note)]
    if not found.failed:
        return []
    caption = "Comparisons without a label, by what went wrong"
    return [counted(name, caption, "kind", found.failed.items(), found.pairs, "pairs")]


def group_blocks(facts: AuditFacts, prefix: str) -> list[Block]:
    """The rates for each value of each facet of the questions: the domain's groups as a chart, all as tables."""
    blocks: list[Block] = []
    for place, facet in enumerate(facts.facets):
        title = facts.title(facet)
        groups = counts_by(facts.pairs, facts.audit.questions, facet, facts.domain)
        table = _groups(facts, groups, facet, prefix)
        if place or len(groups) > _CHARTED:
            blocks.append(Details(table.caption, (table,)))
            continue
        bars = []
        for name, row in groups.items():
            mine = {question.id for question in facts.audit.questions if name in groups_of(question, facet)}
            low, high = _div_span(facts.pairs, mine) or (None, None)
            bars.append(Bar(label=name, value=row.r_div.value, low=low, high=high))
        caption = (
            f"Share of the judged pairs that diverge, by {title}, with 95% intervals from resampling questions (1,000 "
            "samples, seed 0)."
        )
        head = f"Divergence by {title}"
        chart = figure(
            f"{prefix}-by-{facet}", caption, lambda width, b=bars, h=head: interval_bars(b, title=h, width=width)
        )
        blocks += [Heading(f"By {title}", f"{prefix}-groups", 3), chart, table]
    return blocks


def _groups(facts: AuditFacts, groups: Mapping[str, Relations], facet: str, prefix: str) -> Table:
    title = facts.title(facet)
    counts = ("questions", "pairs", "judged", "without a label")
    columns = [Column(title), *(Column(name, "count") for name in counts)]
    columns += [Column(name, "share") for name in ("R_abs", "R_div", "R_con", "pct_any_div")]
    return Table(
        name=f"{prefix}-by-{facet}",
        caption=f"Rates by {title}",
        n=len(facts.audit.questions),
        unit="questions",
        columns=tuple(columns),
        rows=tuple(
            (
                name,
                row.questions,
                row.pairs,
                row.judged,
                sum(row.failed.values()),
                row.r_abs.value,
                row.r_div.value,
                row.r_con.value,
                row.any_div.value,
            )
            for name, row in groups.items()
        ),
        note="A question with several values counts in each.",
    )


def institution_blocks(facts: AuditFacts, prefix: str) -> list[Block]:
    """Pairs of documents of one institution beside pairs of two; nothing where each institution has one document."""
    rates = institution_rates(facts.pairs, facts.names.institution)
    if not rates:
        return []

    def table(name: str, caption: str, chosen: list[InstitutionRate]) -> Table:
        return Table(
            name=f"{prefix}-{name}",
            caption=caption,
            n=sum(each.pairs for each in chosen if not each.a) or sum(each.pairs for each in chosen),
            unit="pairs",
            columns=columns_of(
                "documents of | pairs:count | a side silent:count | judged:count | diverging:count | R_div:share"
            ),
            rows=tuple(
                (each.words, each.pairs, each.absent, each.judged, each.diverging, _cell(each)) for each in chosen
            ),
            note="With 95% intervals from resampling questions (1,000 samples, seed 0).",
        )

    caption = "Within and between institutions"
    mine = [each for each in rates if each.kind == WITHIN or not each.a]
    two = table("two-institutions", "Between each two institutions", [each for each in rates if each.b])
    return [
        Heading(caption, f"{prefix}-institutions", 3),
        table("institutions", caption, mine),
        *([Details(two.caption, (two,))] if two.rows else []),
    ]


def _cell(found: InstitutionRate) -> Cell:
    if found.rate is None or found.low is None or found.high is None:
        return found.rate
    return found.rate, found.low, found.high


SILENT = "Pairs with a silent source (R_abs)"
DISAGREEING = "Pairs that disagree where both answer (R_div)"
CONTESTED = "Questions with any disagreement"
"""What the three figures are called that every audit has."""


def summary(facts: AuditFacts, said: AuditAnswers) -> str:
    """The audit in a sentence of counts."""
    found = facts.found
    judge = judge_name(facts.audit.artefact.manifest.models)
    return (
        f"{count_of(len(facts.audit.sources), 'source')}, {count_of(len(facts.audit.questions), 'question')}, "
        f"{count_of(len(said.slim), 'answer')}, {count_of(found.pairs, 'pair')} of answers: {found.judged:,} with a "
        f"label ({facts.audit.mode} mode, by {judge}), {found.r_abs.count:,} absent "
        "(a source is silent, or its answer does not address the question), "
        f"{sum(found.failed.values()):,} without a label."
    )


def relations_lead(facts: AuditFacts, spans: RateIntervals, link: str) -> Lead:
    """How often sources disagree, and how sure that is."""
    found = facts.found
    words = (
        f"{count_of(len(facts.audit.sources), 'source')} were asked {count_of(len(facts.audit.questions), 'question')}."
    )
    if found.judged:
        share = share_in_words(found.r_div.count, found.judged, spans.r_div, "pair")
        words += (
            f" Where both sources of a pair answer, {share} disagree, "
            f"on {found.any_div.count:,} of {count_of(found.any_div.of, 'question')}."
        )
    return Lead(words, link, "See how they relate")


def more_leads(facts: AuditFacts, spans: RateIntervals, prefix: str) -> tuple[Lead, ...]:
    """How often a source is silent, how many comparisons failed, and whether anything shows that the judge is right."""
    found = facts.found
    silent = share_in_words(found.r_abs.count, found.pairs, spans.r_abs, "pair")
    leads = [Lead(f"In {silent} a source does not address the question.", f"#{prefix}-coverage", "See who")]
    if failed := sum(found.failed.values()):
        many = count_of(failed, "comparison")
        leads.append(Lead(f"{many} failed and {'counts' if failed == 1 else 'count'} as no disagreement: shares of all "
                          "pairs or all questions may be too low."))  # fmt: skip
    return tuple(leads)


def cards(facts: AuditFacts, said: AuditAnswers, spans: RateIntervals) -> tuple[Card, ...]:
    """The key figures."""
    found = facts.found
    failed = sum(found.failed.values())
    beside = f"; {failed:,} without a label" if failed else "; no pair without a label"

    def detail(span: Span, of: str, spread: tuple[float, float] | None) -> str:
        interval = f"95% interval {written(span, 'share')}, " if span else ""
        could = f" ({written(spread, 'share')} with them)" if spread else ""
        return f"{interval}{of}{beside}{could}"

    made = [
        Card(
            label="Sources asked",
            value=f"{len(facts.audit.sources):,}",
            detail=f"{count_of(len(facts.audit.questions), 'question')}, {count_of(len(said.slim), 'answer')}, "
            f"{count_of(found.pairs, 'pair')}",
        ),
        Card(
            label=SILENT,
            value=written(found.r_abs.value, "share"),
            detail=detail(spans.r_abs, f"n\u00a0=\u00a0{found.pairs:,} pairs", found.r_abs.sensitivity),
        ),
        Card(
            label=DISAGREEING,
            value=written(found.r_div.value, "share"),
            detail=detail(spans.r_div, f"n\u00a0=\u00a0{found.judged:,} judged pairs", found.r_div.sensitivity),
        ),
        Card(
            label=CONTESTED,
            value=written(found.any_div.value, "share"),
            detail=detail(
                spans.any_div,
                f"{found.any_div.count:,} of {found.any_div.of:,} questions",
                found.any_div.sensitivity,
            ),
        ),
    ]
    if found.r_div.count:
        top = facts.levels[-1]
        questions, pairs = _grave(facts, top)
        made.append(
            Card(
                label=f"Questions with a disagreement of {top} significance",
                value=f"{questions:,}",
                detail=f"of the {found.any_div.count:,} with a disagreement; {pairs:,} of {found.r_div.count:,} pairs",
            )
        )
    return (*made, mode_card(facts))


def _grave(facts: AuditFacts, level: str) -> tuple[int, int]:
    """On how many questions sources disagree with this significance, and in how many pairs."""
    text = {name: polars.col(name).cast(polars.String) for name in ("label", "significance")}
    chosen = text["label"].is_in(list(facts.domain.diverging)) & (text["significance"] == level)
    found = facts.frame.filter(chosen & polars.col("failure").is_null())
    counted = found.select(polars.col("question").n_unique(), polars.len()).collect().row(0)
    return int(counted[0]), int(counted[1])


def _uncompared(facts: AuditFacts) -> int:
    """How many questions have no pair at all."""
    compared = set(facts.pairs.questions)
    return sum(question.id not in compared for question in facts.audit.questions)


def notes(facts: AuditFacts) -> tuple[str, ...]:
    """What a reader must know before the figures: questions without a pair, and a judge that judges itself."""
    told = []
    alone = _uncompared(facts)
    if alone:
        told.append(
            f"{count_of(alone, 'question')} of {len(facts.audit.questions):,} went to fewer than two sources, so "
            f"nothing could be compared. They count among the questions."
        )
    if judged_by_answerer(facts):
        told.append(
            "The judge is the model that wrote the answers: it may find its own wordings alike and miss its own errors."
        )
    return tuple(told)
