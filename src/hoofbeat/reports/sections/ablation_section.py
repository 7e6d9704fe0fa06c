"""An ablation in a report: one structured call against the label alone, and what the order of answers does."""

from __future__ import annotations

from hoofbeat.audit.findings.protocol_comparison import ProtocolAgreement
from hoofbeat.audit.findings.validation_folder import AblationFolder
from hoofbeat.reports.interval_words import interval_method
from hoofbeat.reports.model import Block, Card, Heading, Lead, Notice, Text
from hoofbeat.reports.section import Chapter, ReportSection, chapter_per_artefact
from hoofbeat.reports.sections.validation_section import confusion_blocks
from hoofbeat.reports.tables import Cell, Column, Table, columns_of, count_of, judge_name, triple, written
from hoofbeat.store import Artefact


def ablation_chapter(artefact: Artefact, prefix: str) -> Chapter:
    """The chapter on one ablation."""
    found = AblationFolder(artefact).figures
    judge = judge_name(artefact.manifest.models)
    missing = sum(found.unscored.values())
    blocks: list[Block] = [
        Text(
            f"{count_of(found.pairs, 'pair')} of the audit {artefact.manifest.settings.get('audit', '')}, judged by "
            f"{judge} in one structured call (reasoning, label, topic, significance), and once more for the label "
            "alone, with topic and significance asked for later."
        ),
        *(
            [Notice(f"{count_of(missing, 'verdict')} failed; their pairs are left out of every comparison of the two.")]
            if missing
            else []
        ),
        _agreement(found, prefix),
        _shifts(found, prefix),
        *confusion_blocks(found.agreement, f"{prefix}-shift", ("structured", "label alone")),
        _levels(found, prefix),
        _costs(found, prefix),
        *_people(found, prefix),
        *_flips(found, prefix),
    ]
    cards = _cards(found)
    told = (
        f"The structured judge and the judge of labels alone agree on {cards[0].value} ({cards[0].detail})."
        if cards
        else ""
    )
    return Chapter(
        title=f"Structured or label alone: {artefact.path.name}",
        id=prefix,
        blocks=tuple(blocks),
        cards=cards,
        leads=(Lead(told, f"#{prefix}", "See where they differ"),) if told else (),
    )


def _cards(found: ProtocolAgreement) -> tuple[Card, ...]:
    if not found.agreement.n:
        return ()
    kappa = found.agreement.kappa
    return (
        Card(
            label="Structured judge and label alone agree",
            value=written(found.agreement.accuracy, "share"),
            detail=("κ has no value" if kappa is None else f"κ {written(kappa, 'number')}")
            + f", n\u00a0=\u00a0{found.agreement.n:,} pairs",
        ),
    )


def _agreement(found: ProtocolAgreement, prefix: str) -> Table:
    both, audit, levels = found.agreement, found.with_audit, found.significance
    shares: list[tuple[str, int, Cell, Cell]] = [
        (
            "labels of both methods",
            both.n,
            triple(both.accuracy, both.accuracy_interval),
            triple(both.kappa, both.kappa_interval),
        ),
        ("the same, estimated for all judged pairs", both.n, triple(found.estimate, found.estimate_interval), None),
        (
            "the same, linear weights",
            found.linear.n,
            None,
            triple(found.linear.value, found.linear.interval),
        ),
        (
            "structured call now and in the audit",
            audit.n,
            triple(audit.accuracy, audit.accuracy_interval),
            triple(audit.kappa, audit.kappa_interval),
        ),
        (
            "significance by both methods",
            levels.n,
            triple(levels.accuracy, levels.accuracy_interval) if levels.n else None,
            triple(levels.kappa, levels.kappa_interval),
        ),
    ]
    topics = found.topics
    alike = "no topics to compare" if topics.similarity is None else f"mean similarity {topics.similarity:.2f}"
    return Table(
        name=f"{prefix}-agreement",
        caption="How far the two methods agree",
        n=found.pairs,
        unit="pairs",
        columns=columns_of("what | pairs:count | agreement, 95%:share | κ, 95%:number"),
        rows=tuple(shares),
        note=f"The sample is drawn by label. Topics of pairs with the same label: {topics.same:,} "
        f"of {topics.n:,} the same words; {alike}.",
    )


def _shifts(found: ProtocolAgreement, prefix: str) -> Table:
    return Table(
        name=f"{prefix}-shifts",
        caption="How labels of the structured call change without structure",
        n=found.agreement.n,
        unit="pairs",
        columns=columns_of("structured | pairs:count | kept:share | becomes"),
        rows=tuple(
            (
                row.label,
                row.n,
                row.kept_share,
                ", ".join(f"{name} {count:,} ({count / row.n:.0%})" for name, count in row.became.items()),
            )
            for row in found.shifts
        ),
    )


def _levels(found: ProtocolAgreement, prefix: str) -> Table:
    names = list(next(iter(found.levels.values()), {}))
    return Table(
        name=f"{prefix}-levels",
        caption="Significance by each method",
        n=found.pairs,
        unit="pairs",
        columns=(Column("way"), *(Column(name, "count") for name in names)),
        rows=tuple((way, *(counts[name] for name in names)) for way, counts in found.levels.items()),
        note=f"{found.without_details:,} later calls failed." if found.without_details else "",
    )


def _costs(found: ProtocolAgreement, prefix: str) -> Table:
    per = max(1, found.pairs)
    return Table(
        name=f"{prefix}-costs",
        caption="Cost of each method",
        n=found.pairs,
        unit="pairs",
        columns=columns_of(
            "way | calls:count | tokens in:count | tokens out:count | tokens out per pair:amount | money"
        ),
        rows=tuple(
            (way, cost.calls, cost.tokens_in, cost.tokens_out, cost.tokens_out / per, f"{cost.money:.4f}")
            for way, cost in found.costs.items()
        ),
    )


def _people(found: ProtocolAgreement, prefix: str) -> list[Block]:
    people = found.people
    if people is None:
        return []
    gained = triple(people.difference.difference, people.difference.interval)
    table = Table(
        name=f"{prefix}-people",
        caption="Both methods against people",
        n=people.n,
        unit="pairs",
        columns=columns_of(
            "way | agreement, 95% Wilson:share | κ, 95% interval:number | κ, interval by | macro F1:number | "
            "only this way is right:count"
        ),
        rows=tuple(
            (
                name,
                triple(said.agreement.accuracy, said.agreement.accuracy_interval),
                triple(said.agreement.kappa, said.agreement.kappa_interval),
                interval_method(said.agreement.kappa_interval),
                triple(said.f1.macro, said.f1.macro_interval),
                only,
            )
            for name, said, only in (
                ("structured", people.structured, people.only_structured),
                ("label-only", people.label_only, people.only_label_only),
            )
        ),
        note=f"Structured minus label alone: {written(gained, 'points')} "
        f"points, resampled by question; p = {written(people.p, 'p')} (McNemar, exact).",
    )
    return [Heading("Against people", f"{prefix}-people", 3), table]


def _flips(found: ProtocolAgreement, prefix: str) -> list[Block]:
    if not found.flips:
        return []
    rates = Table(
        name=f"{prefix}-flips",
        caption="Labels that change when the two answers are exchanged",
        n=sum(row.n for row in found.flips),
        unit="pairs judged twice",
        columns=columns_of(
            "way | pairs:count | unscored:count | flipped:count | rate, 95% Wilson:share | "
            "estimated for all judged pairs:share"
        ),
        rows=tuple(
            (
                row.protocol,
                row.n,
                row.unscored,
                row.flips,
                triple(row.rate, row.interval),
                triple(row.estimate, row.estimate_interval),
            )
            for row in found.flips
        ),
    )
    moves = Table(
        name=f"{prefix}-flips-labels",
        caption="Which labels change",
        n=sum(row.flips for row in found.flips),
        unit="flips",
        columns=columns_of("way | label | pairs:count | flipped:count | rate:share"),
        rows=tuple(
            (row.protocol, label, pairs, flips, flips / pairs if pairs else None)
            for row in found.flips
            for label, (pairs, flips) in row.by_label.items()
        ),
        note="; ".join(
            f"{row.protocol}: {', '.join(f'{move} {count:,}' for move, count in row.moves.items())}"
            for row in found.flips
            if row.moves
        ),
    )
    return [Heading("The order of the two answers", f"{prefix}-order", 3), rates, moves]


SECTION = ReportSection(
    name="ablation",
    summary="the two judging protocols of an audit compared",
    order=120,
    kinds=("ablation",),
    build=chapter_per_artefact("ablation", ablation_chapter),
)
