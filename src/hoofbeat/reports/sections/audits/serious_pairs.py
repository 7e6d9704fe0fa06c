"""What is at stake: the most serious pair of each question, and rankings in which serious pairs count for more."""

from __future__ import annotations

from collections.abc import Mapping

from hoofbeat.audit.findings import (
    BY_QUESTION,
    BY_SOURCE,
    SeriousPair,
    SeverityRanking,
    serious_pairs,
    severity_ranking,
)
from hoofbeat.reports.model import Block, Details, Heading, Lead, Text
from hoofbeat.reports.sections.audits.audit_facts import AuditFacts, question_texts
from hoofbeat.reports.tables import Cell, Column, Table
from hoofbeat.reports.words import count_of, written
from hoofbeat.text import cut

SERIOUS = 20
"""How many questions the table of the most serious pairs has."""

_ROWS = 20

Pair = tuple[str, str, str]


def most_serious(facts: AuditFacts) -> list[SeriousPair]:
    """The most serious pair of each of the most serious questions."""
    return serious_pairs(facts.frame, facts.domain, facts.levels, SERIOUS)


def lead_of(facts: AuditFacts, serious: list[SeriousPair], anchors: Mapping[Pair, str]) -> Lead | None:
    """The most serious disagreement in one sentence."""
    if not serious:
        return None
    worst = serious[0]
    text = cut(question_texts(facts.audit.questions).get(worst.question, worst.question), 140)
    level = f"{worst.significance} significance, " if worst.significance else ""
    topic = f", on {cut(worst.topic, 80)}" if worst.topic else ""
    others = f"; {count_of(worst.alike - 1, 'more pair')} of that question like it" if worst.alike > 1 else ""
    return Lead(
        f"The most serious disagreement: asked “{text}”, {worst.a} and {worst.b} are {worst.label.lower()} "
        f"({level}{worst.question}){topic}{others}.",
        anchors.get((worst.question, worst.a, worst.b), ""),
        "Read both sides",
    )


def serious_blocks(
    facts: AuditFacts, serious: list[SeriousPair], anchors: Mapping[Pair, str], prefix: str
) -> list[Block]:
    """The table of the most serious pairs, each leading to its pair."""
    heading = Heading("Most serious pairs", f"{prefix}-serious", 3)
    if not serious:
        return [heading, Text("No judged pair diverges or contradicts.")]
    texts = question_texts(facts.audit.questions)
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            pair.question,
            cut(texts.get(pair.question, ""), 80),
            f"{pair.a} and {pair.b}",
            pair.label,
            pair.significance or "not given",
            cut(pair.topic, 80),
            pair.alike,
        )
        for pair in serious
    )
    names = ("question", "text", "sources", "label", "significance", "topic")
    diverging = facts.found.any_div.count
    table = Table(
        name=f"{prefix}-serious",
        caption="The most serious pair of each question",
        n=facts.found.r_div.count,
        unit="diverging pairs",
        columns=(*(Column(name) for name in names), Column("pairs like it", "count")),
        rows=rows,
        links=tuple(anchors.get((pair.question, pair.a, pair.b), "") for pair in serious),
        note=f"By significance, then label; the first {len(rows)} of {diverging:,} questions."
        if diverging > len(rows)
        else "By significance, then label.",
    )
    return [heading, table]


def ranking_blocks(facts: AuditFacts, prefix: str) -> list[Block]:
    """Rankings by diverging pairs and by their weight: of groups, topics, questions and sources."""
    if not facts.found.r_div.count:
        return []
    kinds = [(facet, facts.title(facet)) for facet in facts.facets[:2]]
    kinds += [(BY_QUESTION, "question"), (BY_SOURCE, "source")]
    weights = ", ".join(f"{level} {weight:g}" for level, weight in facts.weights.items())
    blocks: list[Block] = [
        Heading("When serious pairs count for more", f"{prefix}-severity", 3),
        Text(
            f"Each diverging pair counts once in the one ranking and by its significance in the other ({weights}). "
            "Spearman's ρ says how far the two go together: near 1, the same things lead whether stakes count or not."
        ),
    ]
    found = [
        (
            by,
            title,
            severity_ranking(facts.frame, facts.audit.questions, by, facts.domain, facts.weights, pairs=facts.pairs),
        )
        for by, title in kinds
    ]
    blocks.append(_spearmans(found, prefix))
    for by, title, ranking in found:
        table = _ranking(facts, ranking, by, title, prefix)
        blocks.append(Details(table.caption, (table,)))
    return blocks


def _spearmans(found: list[tuple[str, str, SeverityRanking]], prefix: str) -> Table:
    def row(title: str, ranking: SeverityRanking) -> tuple[Cell, ...]:
        pairs = (ranking.spearman, ranking.interval), (ranking.rate_spearman, ranking.rate_interval)
        values: list[Cell] = [
            value if value is None or span is None else (value, span.low, span.high) for value, span in pairs
        ]
        first = ranking.rows[0].name if ranking.rows else ""
        return title, len(ranking.rows), *values, cut(first, 60)

    return Table(
        name=f"{prefix}-spearman",
        caption="Unweighted against severity-weighted ranking",
        n=len(found),
        unit="rankings",
        columns=(
            Column("ranking of"),
            Column("ranked", "count"),
            Column("ρ of counts", "number"),
            Column("ρ of rates", "number"),
            Column("heaviest"),
        ),
        rows=tuple(row(title, ranking) for _, title, ranking in found),
        note="With 95% intervals from resampling what is ranked (five things or more). Counts go together almost by "
        "themselves, for what has many pairs has much of everything; rates are by judged pair. Only what diverges at "
        "all is ranked.",
    )


def _ranking(facts: AuditFacts, ranking: SeverityRanking, by: str, title: str, prefix: str) -> Table:
    texts = question_texts(facts.audit.questions) if by == BY_QUESTION else {}
    shown = ranking.rows if by not in (BY_QUESTION, BY_SOURCE) else ranking.rows[:_ROWS]
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            row.name,
            *((cut(texts.get(row.name, ""), 70),) if texts else ()),
            row.diverging,
            *(row.levels.get(level, 0) for level in reversed(facts.levels)),
            row.unrated,
            row.weighted,
            f"{written(row.rank, 'amount')} → {written(row.weighted_rank, 'amount')}",
        )
        for row in shown
    )
    counts = ["diverging", *reversed(facts.levels), "not rated"]
    return Table(
        name=f"{prefix}-severity-{by.removeprefix('@')}",
        caption=f"Severity by {title}",
        n=len(ranking.rows),
        unit=f"{title}s with a diverging pair",
        columns=(
            Column(title),
            *((Column("text"),) if texts else ()),
            *(Column(name, "count") for name in counts),
            Column("weight", "amount"),
            Column("place, unweighted → weighted"),
        ),
        rows=rows,
        note=f"The first {len(rows)} of {len(ranking.rows):,}." if len(rows) < len(ranking.rows) else "",
    )
