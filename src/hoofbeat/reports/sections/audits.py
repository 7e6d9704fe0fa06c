"""An audit in a report: how often sources are silent, agree and differ, which pairs matter most, and each question."""

from __future__ import annotations

from collections.abc import Mapping

from hoofbeat.errors import UsageError
from hoofbeat.findings.intervals import wilson
from hoofbeat.findings.relations import (
    FIVE_RELATIONS,
    Coverage,
    Rate,
    RelationLabels,
    Relations,
    coverage,
    relations,
    relations_by_group,
)
from hoofbeat.judging import Audit
from hoofbeat.prompts import Pack, load_pack
from hoofbeat.records import Comparison
from hoofbeat.reports.charts import Bar, interval_bars, stacked_bars
from hoofbeat.reports.model import Block, Card, Cell, Column, Details, Heading, Notice, Table, Text
from hoofbeat.reports.sections.common import Part, counted, facet_names, figure
from hoofbeat.reports.sections.pairs import audit_viewer
from hoofbeat.reports.sections.planted import PlantedLabels, planted_blocks
from hoofbeat.reports.words import count_of, cut, model_name, written
from hoofbeat.store import Artefact

__all__ = ["audit_domain", "audit_part"]

_SERIOUS = 20


def audit_part(artefact: Artefact, prefix: str, planted: PlantedLabels | None) -> Part:
    """The chapter on one audit; `planted` labels, where known, are set against the judge's."""
    audit = Audit(artefact)
    pack, domain = audit_domain(str(artefact.manifest.settings.get("pack", "")))
    found = relations(audit.comparisons, [question.id for question in audit.questions], domain)
    judge = model_name(artefact.manifest.models.get("judge", "an unnamed judge"))
    blocks: list[Block] = [
        Text(
            f"{count_of(len(audit.sources), 'source')}, {count_of(len(audit.questions), 'question')}, "
            f"{count_of(found.pairs, 'pair')} of answers: {found.judged:,} judged by {judge}, "
            f"{found.r_abs.count:,} absent because a source is silent, {sum(found.failed.values()):,} without a label."
        ),
        *_warnings(found),
    ]
    known = _known(audit, planted)
    viewer, anchors = audit_viewer(audit, prefix, domain, known)
    if found.pairs:
        blocks += [*_distribution(found, prefix), _rates(found, domain, prefix)]
        blocks += _failures(found, prefix)
        blocks += _groups(audit, domain, prefix)
        blocks += _coverage(audit, prefix)
        blocks += _serious(audit, pack, domain, anchors, prefix)
        agreement_cards, agreement_blocks = planted_blocks(audit.comparisons, known, domain, prefix)
        blocks += agreement_blocks
    else:
        agreement_cards = ()
        blocks += _coverage(audit, prefix)
    if audit.questions:
        blocks += [Heading("Question by question", f"{prefix}-questions", 3), _reading(domain, bool(known)), viewer]
    return Part(
        title=f"Source audit: {artefact.path.name}",
        id=prefix,
        blocks=tuple(blocks),
        cards=(*_cards(found), *agreement_cards),
    )


def audit_domain(setting: str) -> tuple[Pack | None, RelationLabels]:
    """The pack an audit names and its labels; the five usual ones where this version does not know the pack."""
    try:
        pack = load_pack(setting.partition("@")[0])
    except UsageError:
        return None, FIVE_RELATIONS
    labels = RelationLabels(
        order=tuple(label.name for label in pack.labels),
        absent=pack.absent,
        consistent=pack.consistent,
        diverging=tuple(label.name for label in pack.labels if label.diverges),
    )
    return pack, labels


def _known(audit: Audit, planted: PlantedLabels | None) -> PlantedLabels:
    """The planted labels of this audit's questions and sources."""
    questions, sources = {question.id for question in audit.questions}, {source.id for source in audit.sources}
    return {
        (question, a, b): label
        for (question, a, b), label in (planted or {}).items()
        if question in questions and a in sources and b in sources
    }


def _warnings(found: Relations) -> list[Block]:
    if not found.pairs:
        return [Notice("No two sources were asked the same question, so there is nothing to compare.")]
    if sum(found.failed.values()) == found.pairs:
        return [Notice("Every comparison failed: no pair has a label. The table of failures says why.")]
    if not found.judged:
        return [Notice("No pair was judged: in every pair at least one source is silent or its answer failed.")]
    return []


def _cards(found: Relations) -> tuple[Card, ...]:
    labels = (
        ("Pairs that diverge or contradict (R_div)", found.r_div, "judged pairs"),
        ("Questions with any divergence", found.any_div, "questions"),
        ("Pairs with a silent source (R_abs)", found.r_abs, "pairs"),
    )
    return tuple(
        Card(
            label=label,
            value=written(rate.value, "share"),
            detail=f"{rate.count:,} of {rate.of:,} {unit}"
            + (f"; {written(rate.sensitivity, 'share')} with failures" if rate.sensitivity else ""),
        )
        for label, rate, unit in labels
    )


def _distribution(found: Relations, prefix: str) -> list[Block]:
    absent = next(iter(found.labels))
    without = {label: count for label, count in found.labels.items() if label != absent}
    rows: list[tuple[str, Mapping[str, int]]] = [("all labelled pairs", found.labels), ("judged pairs", without)]
    chart = figure(
        f"{prefix}-labels",
        "Labels of all pairs, and of the pairs in which both sources address the question.",
        lambda width: stacked_bars(rows, list(found.labels), title="How answers of two sources relate", width=width),
    )
    table = Table(
        name=f"{prefix}-labels",
        caption="Labels",
        n=found.pairs,
        unit="pairs",
        columns=(
            Column("label"),
            Column("pairs", "count"),
            Column("of all pairs", "share"),
            Column("of judged", "share"),
        ),
        rows=tuple(
            (label, count, found.share_of_pairs[label], found.share_of_judged.get(label))
            for label, count in found.labels.items()
        ),
    )
    return [Heading("How sources relate", f"{prefix}-relations", 3), chart, table]


def _rates(found: Relations, domain: RelationLabels, prefix: str) -> Table:
    def row(name: str, meaning: str, rate: Rate) -> tuple[Cell, ...]:
        return name, rate.value, rate.count, rate.of, rate.sensitivity, meaning

    diverging = " or ".join(domain.diverging)
    return Table(
        name=f"{prefix}-rates",
        caption="Rates",
        n=found.pairs,
        unit="pairs",
        columns=(
            Column("rate"),
            Column("value", "share"),
            Column("count", "count"),
            Column("of", "count"),
            Column("range with failures", "share"),
            Column("what it is"),
        ),
        rows=(
            row("R_abs", "pairs in which a source is silent, of all pairs", found.r_abs),
            row("R_div", f"{diverging} pairs, of judged pairs", found.r_div),
            row("R_con", f"{domain.consistent} pairs, of judged pairs", found.r_con),
            row("pct_any_div", f"questions with at least one {diverging} pair, of all questions", found.any_div),
        ),
        note="The range is given where more than 1% of comparisons failed: what they could make of the rate.",
    )


def _failures(found: Relations, prefix: str) -> list[Block]:
    if not found.failed:
        return []
    caption = "Comparisons without a label, by what went wrong"
    return [counted(f"{prefix}-failed", caption, "kind", found.failed.items(), found.pairs, "pairs")]


def _groups(audit: Audit, domain: RelationLabels, prefix: str) -> list[Block]:
    blocks: list[Block] = []
    for facet in facet_names([question.facets for question in audit.questions]):
        rows = tuple(
            (
                name,
                row.questions,
                row.pairs,
                row.judged,
                row.r_abs.value,
                row.r_div.value,
                row.r_con.value,
                row.any_div.value,
            )
            for name, row in relations_by_group(audit.comparisons, audit.questions, facet, domain).items()
        )
        columns = [Column(facet), *(Column(name, "count") for name in ("questions", "pairs", "judged"))]
        columns += [Column(name, "share") for name in ("R_abs", "R_div", "R_con", "pct_any_div")]
        table = Table(
            name=f"{prefix}-by-{facet}",
            caption=f"Rates by {facet}",
            n=len(audit.questions),
            unit="questions",
            columns=tuple(columns),
            rows=rows,
        )
        blocks.append(Details(table.caption, (table,)))
    return blocks


def _coverage(audit: Audit, prefix: str) -> list[Block]:
    titles = {source.id: source.title for source in audit.sources}
    rows: list[Coverage] = coverage(audit.answers)
    if not rows:
        return [Notice("No source was asked anything.")]
    bars = []
    for row in rows:
        span = wilson(row.answered, row.planned)
        bars.append(Bar(label=row.source, value=row.coverage, low=span.low, high=span.high))
    chart = figure(
        f"{prefix}-coverage",
        "Share of the questions put to a source that it addresses, with 95% Wilson intervals.",
        lambda width: interval_bars(bars, title="Coverage of each source", limits=(0, 1), width=width),
    )
    table = Table(
        name=f"{prefix}-coverage",
        caption="Coverage of each source",
        n=sum(row.planned for row in rows),
        unit="questions put to sources",
        columns=(
            Column("source"),
            Column("title"),
            Column("asked", "count"),
            Column("addressed", "count"),
            Column("silent", "count"),
            Column("failed", "count"),
            Column("coverage", "share"),
        ),
        rows=tuple(
            (row.source, titles.get(row.source, ""), row.planned, row.answered, row.absent, row.unscored, row.coverage)
            for row in rows
        ),
    )
    return [Heading("Coverage", f"{prefix}-coverage", 3), chart, table]


def _serious(
    audit: Audit, pack: Pack | None, domain: RelationLabels, anchors: Mapping[tuple[str, str, str], str], prefix: str
) -> list[Block]:
    levels = pack.significance_levels if pack else ["low", "medium", "high"]
    texts = {question.id: question.text for question in audit.questions}

    def weight(item: Comparison) -> tuple[int, int]:
        level = levels.index(item.significance) if item.significance in levels else -1
        return -level, -domain.order.index(item.label)

    found = sorted((c for c in audit.comparisons if not c.failure and c.label in domain.diverging), key=weight)
    heading = Heading("Most serious pairs", f"{prefix}-serious", 3)
    if not found:
        return [heading, Text("No judged pair diverges or contradicts.")]
    worst: dict[str, Comparison] = {}
    for c in found:
        worst.setdefault(c.question, c)
    shown = list(worst.values())[:_SERIOUS]
    rows: list[tuple[Cell, ...]] = []
    for c in shown:
        alike = sum(other.question == c.question and weight(other) == weight(c) for other in found)
        text = cut(texts.get(c.question, ""), 80)
        rows.append(
            (c.question, text, f"{c.a} and {c.b}", c.label, c.significance or "not given", c.topic or "", alike)
        )
    names = ("question", "text", "sources", "label", "significance", "topic")
    table = Table(
        name=f"{prefix}-serious",
        caption="The most serious pair of each question",
        n=len(found),
        unit="diverging pairs",
        columns=(*(Column(name) for name in names), Column("pairs like it", "count")),
        rows=tuple(rows),
        links=tuple(anchors.get((c.question, c.a, c.b), "") for c in shown),
        note=f"By significance, then label; the first {_SERIOUS} of {len(worst):,} questions."
        if len(worst) > _SERIOUS
        else "By significance, then label.",
    )
    return [heading, table]


def _reading(domain: RelationLabels, planted: bool) -> Text:
    marked = " An outlined cell is one in which the judge's label is not the planted one." if planted else ""
    return Text(
        f"Each grid shows how any two sources relate on one question, from {domain.consistent} to {domain.order[-1]}; "
        f"a dashed cell has no label, and a cell leads to its pair.{marked}"
    )
