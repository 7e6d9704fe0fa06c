"""An audit in a report: the figures for the wall first, then sources, groups and themes, then every pair to be read."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from hoofbeat.audit import Audit
from hoofbeat.audit.audit_doubts import doubt_words
from hoofbeat.audit.case_records import CaseDecision
from hoofbeat.audit.findings.relations import RelationLabels
from hoofbeat.audit.findings.source_profiles import source_rows
from hoofbeat.audit.synthesis.synthesis_table import topics_in_words
from hoofbeat.reports.model import Block, Card, Heading, Lead, Text
from hoofbeat.reports.section import Chapter, OwnFigure, PlacedArtefact, PlantedLabels, ReportSection
from hoofbeat.reports.sections.audits.audit_change_blocks import shift_chapters, shifts
from hoofbeat.reports.sections.audits.audit_facts import (
    AuditAnswers,
    AuditFacts,
    audit_domain,
    facts_doubts,
    read_facts,
    said_by_sources,
)
from hoofbeat.reports.sections.audits.audit_page_summary import audit_page_summary
from hoofbeat.reports.sections.audits.audit_summary import (
    CONTESTED,
    DISAGREEING,
    SILENT,
    cards,
    grounded_blocks,
    group_blocks,
    institution_blocks,
    more_leads,
    notes,
    rate_blocks,
    rate_spans,
    relations_lead,
    summary,
    warning_blocks,
)
from hoofbeat.reports.sections.audits.audit_viewers import (
    KEPT,
    PairSelection,
    kept_pairs,
    pairs_viewer,
    questions_shown,
    questions_viewer,
)
from hoofbeat.reports.sections.audits.disagreements import (
    Themes,
    decision_blocks,
    lead_of,
    most_serious,
    ranking_blocks,
    read_themes,
    serious_blocks,
    theme_blocks,
    themes_chapter,
)
from hoofbeat.reports.sections.audits.judge_trust import planted_blocks, trust_blocks
from hoofbeat.reports.sections.audits.source_matrix import (
    coverage_blocks,
    listed_pairs,
    matrix_blocks,
    matrix_files,
    odd_blocks,
    ordered_sources,
    pairs_file,
    strip_blocks,
    strip_labels,
)
from hoofbeat.reports.sections.audits.synthesis_blocks import synthesis_blocks, synthesis_file
from hoofbeat.reports.tables import count_of, model_name
from hoofbeat.store import Artefact

__all__ = ["SECTION", "audit_chapter", "audit_chapters", "audit_domain", "shift_chapters"]


def audit_chapters(
    audits: Sequence[PlacedArtefact],
    themes: Sequence[PlacedArtefact],
    planted: PlantedLabels | None,
    decisions: Sequence[CaseDecision] | None = None,
) -> list[Chapter]:
    """A chapter for each audit with its themes, for themes without their audit, and for audits that follow another.

    On the first screen, of several audits each is named; two of the same questions have the figures of their change.
    """
    made = {ref.sha256: folder for _, folder in reversed(themes) for ref in folder.manifest.inputs}
    parts, used = [], set()
    changes = shifts(audits)
    changed = {prefix for both, part in changes if part.cards for prefix in both}
    for prefix, audit in audits:
        folder = made.get(audit.reference().sha256)
        used.add(folder.path if folder else None)
        part = audit_chapter(audit, prefix, planted, read_themes(folder) if folder else None, decisions)
        parts.append(part if len(audits) == 1 else _named(part, audit.path.name, changed=prefix in changed))
    parts += [themes_chapter(folder, prefix) for prefix, folder in themes if folder.path not in used]
    if len(changes) == 1:
        return [*parts, changes[0][1]]
    return [*parts, *(replace(part, cards=_titled(part.cards, part.title)) for _, part in changes)]


def _named(part: Chapter, name: str, *, changed: bool) -> Chapter:
    """The chapter of one audit of several: what the first screen says of it bears its name, and is short."""
    kept = [] if changed else [card for card in part.cards if card.label in (SILENT, DISAGREEING, CONTESTED)]
    return replace(
        part,
        opening=tuple(
            replace(each, text=f"{each.text}: {name}") if isinstance(each, Heading) else each for each in part.opening
        ),
        cards=_titled(kept, name),
        leads=tuple(replace(lead, text=f"{name}: {lead.text}") for lead in part.leads[:2]),
        notes=tuple(f"{name}: {note}" for note in part.notes),
    )


def audit_chapter(
    artefact: Artefact,
    prefix: str,
    planted: PlantedLabels | None,
    themes: Themes | None = None,
    decisions: Sequence[CaseDecision] | None = None,
    *,
    most: int = KEPT,
) -> Chapter:
    """The chapter on one audit; `planted` labels, where known, are set against the judge's.

    `themes` are those of its divergence, where they were made; `decisions` are what a team decided on disagreements;
    `most` is how many pairs the page holds in full.
    """
    audit = Audit(artefact)
    facts = read_facts(audit)
    kept = kept_pairs(facts, most)
    said = said_by_sources(audit.each_answer(), audit.names, kept.answers, questions_shown(facts))
    known = _known(audit, planted)
    anchors = kept.anchors(prefix)
    spans = rate_spans(facts.pairs, facts.found)
    serious = most_serious(facts)
    odd, order = ordered_sources(facts)
    strips = strip_labels(facts, said.states, order)
    links = {question.id: f"#{prefix}-q{number}" for number, question in enumerate(audit.questions, start=1)}
    opening = synthesis_blocks(audit, prefix, lambda question, _: links.get(question, ""))
    blocks: list[Block] = [Text(summary(facts, said)), *warning_blocks(facts.found)]
    agreement_cards, agreement = planted_blocks(audit.comparisons, known, facts.domain, prefix) if known else ((), [])
    if facts.found.pairs:
        blocks += rate_blocks(facts, spans, prefix)
        blocks += grounded_blocks(facts, said, prefix)
        blocks += matrix_blocks(facts, order, prefix)
        blocks += strip_blocks(facts, strips, order, links, prefix)
        blocks += serious_blocks(facts, serious, anchors, prefix)
        blocks += decision_blocks(audit, decisions, links, prefix)
        blocks += odd_blocks(facts, odd, prefix)
        blocks += institution_blocks(facts, prefix)
        blocks += group_blocks(facts, prefix)
        blocks += ranking_blocks(facts, prefix)
        blocks += theme_blocks(facts, themes, anchors, prefix)
    blocks += coverage_blocks(facts, said.slim, prefix)
    blocks += trust_blocks(facts, said, prefix, planted=bool(known)) if facts.found.pairs else []
    blocks += agreement
    blocks += _reading(facts, kept, said, known, themes, prefix)
    subject = topics_in_words(audit.questions) or artefact.manifest.title or artefact.path.name
    doubts, worst = facts_doubts(facts, said), lead_of(facts, serious, anchors)
    leads = (
        *([Lead(doubt_words(doubts), f"#{prefix}-trust", "See why")] if doubts else []),
        relations_lead(facts, spans, f"#{prefix}"),
        *([worst] if worst else []),
        *more_leads(facts, spans, prefix),
    )
    return Chapter(
        title=f"Source audit: {subject}",
        id=prefix,
        subject=subject,
        opening=tuple(opening),
        blocks=tuple(blocks),
        cards=(*cards(facts, said, spans), *agreement_cards) if facts.found.pairs else (),
        leads=leads if facts.found.pairs else (),
        notes=notes(facts) if facts.found.pairs else (),
        figures=_figures(facts, said),
        summary=audit_page_summary(facts, spans, serious, subject, doubts, decisions),
        files=(
            synthesis_file(audit, prefix),
            *(matrix_files(facts, strips, order, prefix) if facts.found.pairs else ()),
            *([pairs_file(facts, prefix)] if listed_pairs(facts) and len(kept.pairs) < kept.total else ()),
        ),
    )


def _figures(facts: AuditFacts, said: AuditAnswers) -> tuple[OwnFigure, ...]:
    """What papers on sources report: the share of questions that a source does not address, averaged over sources."""
    asked = [row for row in source_rows(facts.pairs, said.slim, facts.domain) if row.planned]
    if not asked:
        return ()
    silent = OwnFigure(
        measure="silent on a question",
        model=model_name(facts.audit.artefact.manifest.models.get("answer", "")),
        condition=count_of(len(asked), "source"),
        value=sum(row.absent / row.planned for row in asked) / len(asked),
        n=len(facts.audit.questions),
        unscored=sum(row.unscored for row in asked),
    )
    return (silent,)


def _titled(cards: Sequence[Card], name: str) -> tuple[Card, ...]:
    """Cards that say what they are about, where others have the same labels."""
    return tuple(replace(card, label=f"{name}: {card.label}") for card in cards)


def _reading(
    facts: AuditFacts, kept: PairSelection, said: AuditAnswers, known: PlantedLabels, themes: Themes | None, prefix: str
) -> list[Block]:
    """The two viewers: pairs, then questions."""
    if not facts.audit.questions:
        return []
    blocks: list[Block] = []
    if kept.pairs:
        there = "All" if len(kept.pairs) == kept.total else f"The {len(kept.pairs):,} most serious of"
        rest = _rest(facts, kept, prefix)
        text = (
            f"{there} {kept.total:,} pairs, the most serious first, with both answers and the passages behind them. "
            f"Cited sections are marked.{rest}"
        )
        viewer = pairs_viewer(facts, kept, said.sides, known, themes.of_phrase if themes else {}, prefix)
        blocks += [Heading("Pair by pair", f"{prefix}-reading", 3), Text(text), viewer]
    viewer = questions_viewer(facts, kept.anchors(prefix), said, known, prefix)
    return [*blocks, Heading("Question by question", f"{prefix}-questions", 3), _how(facts.domain, bool(known)), viewer]


def _rest(facts: AuditFacts, kept: PairSelection, prefix: str) -> str:
    """Where the pairs are that the page does not hold."""
    if len(kept.pairs) == kept.total:
        return ""
    listed, diverging = listed_pairs(facts), facts.found.r_div.count
    some = f"all {diverging:,}" if listed == diverging else f"the {listed:,} most serious of {diverging:,}"
    file = f" The file pairs/{prefix}-diverging.csv beside this page lists {some} diverging pairs." if listed else ""
    return f"{file} The other {kept.total - len(kept.pairs):,} are in the audit's table comparisons.parquet."


def _how(domain: RelationLabels, planted: bool) -> Text:
    marked = " In outlined cells the judge's label differs from the planted one." if planted else ""
    return Text(
        f"Each grid shows how any two sources relate on one question, from {domain.consistent} to {domain.order[-1]}; "
        f"dashed cells have no label. Click a cell to open its pair; the arrow keys move between cells.{marked}"
    )


def _known(audit: Audit, planted: PlantedLabels | None) -> PlantedLabels:
    """The planted labels of this audit's questions and sources."""
    questions, sources = {question.id for question in audit.questions}, {source.id for source in audit.sources}
    return {
        (question, a, b): label
        for (question, a, b), label in (planted or {}).items()
        if question in questions and a in sources and b in sources
    }


SECTION = ReportSection(
    name="audits",
    summary="where sources disagree or are silent: rates, matrices, the most serious pairs, themes, trust in the judge",
    order=100,
    kinds=("audit", "themes"),
    build=lambda report: audit_chapters(
        report.of("audit"), report.of("themes"), report.planted, report.options.decisions
    ),
)
