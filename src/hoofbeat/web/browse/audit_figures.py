"""Audits, opened for their pages: the index first, the figures as soon as they are there."""

from __future__ import annotations

from fastapi import Request
from markupsafe import Markup
from msgspec import Struct

from hoofbeat.audit import Audit
from hoofbeat.audit.answer_changes import word_changes
from hoofbeat.audit.audit_doubts import doubt_words
from hoofbeat.audit.findings.serious_divergence import SeriousPair
from hoofbeat.audit.findings.source_profiles import pair_rates
from hoofbeat.reports.model import Card
from hoofbeat.reports.page import linked_html, rate_matrix
from hoofbeat.reports.pair_index import AuditIndex, index_audit
from hoofbeat.reports.sections.audits import shift_chapters
from hoofbeat.reports.sections.audits.audit_facts import AuditFacts, facts_doubts, read_facts, said_by_sources
from hoofbeat.reports.sections.audits.audit_summary import (
    cards,
    grounded_blocks,
    group_blocks,
    institution_blocks,
    notes,
    rate_blocks,
    rate_spans,
    summary,
    warning_blocks,
)
from hoofbeat.reports.sections.audits.disagreements import most_serious, read_themes, theme_blocks
from hoofbeat.reports.sections.audits.judge_trust import trust_blocks
from hoofbeat.reports.sections.audits.source_matrix import coverage_blocks, odd_blocks, ordered_sources
from hoofbeat.reports.sections.audits.synthesis_blocks import synthesis_blocks
from hoofbeat.reports.sections.audits.word_change_blocks import word_change_blocks
from hoofbeat.store.folder_library import Folder
from hoofbeat.web.browse.links import address, linked_folders, reference_of
from hoofbeat.web.browse.open_folders import BackgroundResult, opened_folder, prepare_in_background
from hoofbeat.web.site import Site

KIND = "audit"
_PREFIX = "audit"


class AuditFigures(Struct, frozen=True, kw_only=True):
    """What the pages on an audit say; charts, tables and matrices are kept as they stand on the page."""

    doubt: str
    synthesis: Markup
    summary: str
    notes: tuple[str, ...]
    cards: tuple[Card, ...]
    rates: Markup
    matrix: Markup
    serious: tuple[SeriousPair, ...]
    groups: Markup
    odd: Markup
    coverage: Markup
    trust: Markup


class AuditFolder(Struct, frozen=True):
    """An audit: its pairs can be found before its figures are worked out."""

    index: AuditIndex
    figures: BackgroundResult[AuditFigures]


class ThemeSummary(Struct, frozen=True, kw_only=True):
    """What sources disagree about; `named` are themes with how many pairs each has and the places of its wordings."""

    named: tuple[tuple[str, int, tuple[int, ...]], ...] = ()

    def topics(self, number: int) -> tuple[int, ...]:
        """The wordings of a theme by its number, from 1; none where there is no such theme."""
        return self.named[number - 1][2] if 1 <= number <= len(self.named) else ()


def audit_of(request: Request, slug: str) -> tuple[Folder, AuditFolder]:
    """The audit of a page; where it is not there, or is being read, another page is shown."""
    return opened_folder(request, slug, (KIND,), "audit", open_audit)


def open_audit(site: Site, folder: Folder, *, patience: float | None = None) -> AuditFolder | None:
    """The audit's index, and its figures as far as they are; None while the index is being made."""
    return prepare_in_background(site, folder, "pairs", _open, patience=patience)


def themes_of(site: Site, folder: Folder, index: AuditIndex) -> ThemeSummary:
    """The themes that were made of an audit, where their folder is shown here, too."""
    made = next(iter(linked_folders(site, folder, "themes")), None)
    if made is None:
        return ThemeSummary()
    return site.library.opened(made, f"themes of {folder.slug}", lambda each: _themes(each, index))


def themes_html(site: Site, folder: Folder) -> Markup | None:
    """The charts and tables on what sources disagree about; None while they are being made."""
    made = next(iter(linked_folders(site, folder, "themes")), None)
    purpose = f"themes {reference_of(site, made)}" if made else "topics"
    return prepare_in_background(site, folder, purpose, lambda each: _drawn(each, made))


def _open(folder: Folder) -> AuditFolder:
    facts = read_facts(Audit(folder.artefact()))
    return AuditFolder(index_audit(facts), BackgroundResult(lambda: _figures(folder, facts)))


def _themes(made: Folder, index: AuditIndex) -> ThemeSummary:
    places = {phrase: place for place, (phrase, _) in enumerate(index.topics)}
    found = read_themes(made.artefact())
    return ThemeSummary(
        named=tuple(
            (theme.name, theme.count, tuple(places[phrase] for phrase, _ in theme.phrases if phrase in places))
            for theme, _ in found.rows
        )
    )


def _drawn(folder: Folder, made: Folder | None) -> Markup:
    facts = read_facts(Audit(folder.artefact()))
    themes = read_themes(made.artefact()) if made else None
    return linked_html(theme_blocks(facts, themes, {}, _PREFIX)) if facts.found.pairs else Markup("")


def _figures(folder: Folder, facts: AuditFacts) -> AuditFigures:
    said = said_by_sources(facts.audit.each_answer(), facts.names, (), ())
    spans = rate_spans(facts.pairs, facts.found)
    some = bool(facts.found.pairs)
    odd, order = ordered_sources(facts)
    numbers = {source.id: number for number, source in enumerate(facts.audit.sources, start=1)}

    def link(a: str, b: str) -> str:
        first, second = sorted((numbers[a], numbers[b]))
        return address(f"/audits/{folder.slug}/pairs", a=first, b=second)

    def of_source(short: str) -> str:
        known = {name.short: numbers[name.id] for name in facts.names}
        return address(f"/audits/{folder.slug}/pairs", a=known[short]) if short in known else ""

    places = {question.id: number for number, question in enumerate(facts.audit.questions, start=1)}

    def answer(question: str, source: str) -> str:
        anchor = f"#source-{numbers[source]}" if source in numbers else ""
        return f"/audits/{folder.slug}/questions/{places[question]}{anchor}"

    rates = [*rate_blocks(facts, spans, _PREFIX), *grounded_blocks(facts, said, _PREFIX)] if some else []
    return AuditFigures(
        doubt=doubt_words(facts_doubts(facts, said)),
        synthesis=linked_html(synthesis_blocks(facts.audit, _PREFIX, answer, own_notes=False)[1:]),
        summary=summary(facts, said),
        notes=notes(facts) if some else (),
        cards=cards(facts, said, spans) if some else (),
        rates=linked_html([*warning_blocks(facts.found), *rates]),
        matrix=rate_matrix(pair_rates(facts.pairs, facts.domain), order, link, facts.names.short)
        if len(order) > 1
        else Markup(""),
        serious=tuple(most_serious(facts)),
        groups=linked_html([*institution_blocks(facts, _PREFIX), *group_blocks(facts, _PREFIX)])
        if some
        else Markup(""),
        odd=linked_html(odd_blocks(facts, odd, _PREFIX), of_source) if some else Markup(""),
        coverage=linked_html(coverage_blocks(facts, said.slim, _PREFIX), of_source),
        trust=linked_html(trust_blocks(facts, said, _PREFIX)) if some else Markup(""),
    )


def asked_too(site: Site, folder: Folder) -> list[Folder]:
    """Other audits that asked some of the same questions."""
    mine = site.library.opened(folder, "asked", _asked)
    others = (each for each in site.library.folders(KIND) if each != folder)
    return [each for each in others if not mine.isdisjoint(site.library.opened(each, "asked", _asked))]


def _asked(folder: Folder) -> frozenset[str]:
    return frozenset(question.id for question in Audit(folder.artefact()).questions)


def open_shift(site: Site, after: Folder, before: Folder) -> Markup | None:
    """What changed from one audit to another of the same questions; None while that is being worked out."""
    purpose = f"since {before.slug} {reference_of(site, before)}"
    return prepare_in_background(site, after, purpose, lambda each: _shift(before, each))


def _shift(before: Folder, after: Folder) -> Markup:
    first, second = before.artefact(), after.artefact()
    parts = shift_chapters([("before", first), ("after", second)])
    audits = Audit(first), Audit(second)
    words = word_change_blocks(word_changes(*audits), *audits)
    return linked_html([*words, *(block for part in parts for block in part.blocks)])
