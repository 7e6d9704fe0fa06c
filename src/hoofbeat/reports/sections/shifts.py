"""Two audits of the same questions in a report: did disagreement become more frequent, stronger, or only visible?"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hoofbeat.findings.relations import RelationLabels
from hoofbeat.findings.shift import Change, PrevalenceIntensity, prevalence_intensity
from hoofbeat.judging import Audit
from hoofbeat.reports.model import Block, Cell, Column, Heading, Notice, Table, Text
from hoofbeat.reports.sections.audits import audit_domain
from hoofbeat.reports.sections.common import Part, facet_names, facet_values
from hoofbeat.reports.words import count_of
from hoofbeat.store import Artefact

__all__ = ["shift_parts"]

_NONE = "(none)"
_NOTE = (
    "After less before, in percentage points, with 95% intervals from resampling questions (1,000 samples, seed 0), "
    "the same for both audits. A silent source can't disagree: what an audit finds more only because more pairs are "
    "answered stands under coverage."
)


def shift_parts(audits: Sequence[tuple[str, Artefact]]) -> list[Part]:
    """A chapter for every audit that follows another of the same questions, in the order given."""
    parts: list[Part] = []
    opened: list[Audit] = []
    for prefix, artefact in audits if len(audits) > 1 else ():
        audit = Audit(artefact)
        asked = {comparison.question for comparison in audit.comparisons}
        before = next((each for each in reversed(opened) if not asked.isdisjoint(_asked(each))), None)
        if before is not None:
            parts.append(_part(before, audit, f"{prefix}-shift"))
        opened.append(audit)
    return parts


def _asked(audit: Audit) -> set[str]:
    return {comparison.question for comparison in audit.comparisons}


def _part(before: Audit, after: Audit, prefix: str) -> Part:
    names = before.artefact.path.name, after.artefact.path.name
    domains = [audit_domain(str(each.artefact.manifest.settings.get("pack", "")))[1] for each in (before, after)]
    title = f"From {names[0]} to {names[1]}"
    if domains[0] != domains[1]:
        warning = "The two audits use different labels, so their rates can't be set against each other."
        return Part(title=title, id=prefix, blocks=(Notice(warning),))
    found = prevalence_intensity(before.comparisons, after.comparisons, domains[0])
    failed = sum(found.failed)
    blocks: list[Block] = [
        Text(
            f"{count_of(found.questions, 'question')} asked in both audits ({found.one_audit_only:,} in one only, left "
            f"out), {count_of(found.pairs_in_both, 'pair')} of sources answered in both"
            + (f"; {count_of(failed, 'pair')} without a label count as not answered." if failed else ".")
        ),
        _rates(found, prefix),
        *_groups(before, after, domains[0], prefix),
    ]
    return Part(title=title, id=prefix, blocks=tuple(blocks))


def _points(change: Change) -> Cell:
    if change.change is None or change.interval is None:
        return None
    return change.change, change.interval.low, change.interval.high


def _rates(found: PrevalenceIntensity, prefix: str) -> Table:
    def row(name: str, change: Change, meaning: str) -> tuple[Cell, ...]:
        return name, change.before, change.after, _points(change), meaning

    return Table(
        name=f"{prefix}-rates",
        caption="What changed between the audits",
        n=found.questions,
        unit="questions",
        columns=(
            Column("rate"),
            Column("before", "share"),
            Column("after", "share"),
            Column("change, points", "points"),
            Column("meaning"),
        ),
        rows=(
            row("R_abs", found.r_abs, "pairs with a silent source, of all pairs"),
            row("R_div", found.r_div, "pairs that diverge, of each audit's answered pairs"),
            row("intensity", found.intensity, "pairs that diverge, of the pairs answered in both audits"),
            row("pct_any_div", found.any_div, "questions with a pair that diverges"),
            row("prevalence", found.prevalence, "the same at fixed coverage: only pairs answered in both audits count"),
            ("by coverage", None, None, found.by_coverage, "what remains: pairs that only one audit answered"),
        ),
        note=_NOTE,
    )


def _groups(before: Audit, after: Audit, domain: RelationLabels, prefix: str) -> list[Block]:
    """The same for each value of the questions' first facet."""
    names = facet_names(question.facets for question in after.questions)
    if not names:
        return []
    facet = names[0]
    members: dict[str, set[str]] = {}
    for question in after.questions:
        for value in facet_values(question.facets, facet) or [_NONE]:
            members.setdefault(value, set()).add(question.id)
    both = _asked(before) & _asked(after)
    rows = [
        _group(value, _only(before, after, questions, domain))
        for value, questions in sorted(members.items())
        if questions & both
    ]
    columns = (
        Column(facet),
        Column("questions", "count"),
        Column("pairs in both", "count"),
        Column("R_abs", "points"),
        Column("R_div", "points"),
        Column("intensity", "points"),
        Column("pct_any_div", "points"),
        Column("prevalence", "points"),
        Column("by coverage", "points"),
    )
    table = Table(
        name=f"{prefix}-by-{facet}",
        caption=f"Changes by {facet}, in percentage points",
        n=len(both),
        unit="questions",
        columns=columns,
        rows=tuple(rows),
        note="A question with several values counts in each.",
    )
    return [Heading(f"By {facet}", f"{prefix}-groups", 3), table]


def _only(before: Audit, after: Audit, questions: Collection[str], domain: RelationLabels) -> PrevalenceIntensity:
    return prevalence_intensity(
        (row for row in before.comparisons if row.question in questions),
        (row for row in after.comparisons if row.question in questions),
        domain,
    )


def _group(value: str, found: PrevalenceIntensity) -> tuple[Cell, ...]:
    changes = (found.r_abs, found.r_div, found.intensity, found.any_div, found.prevalence)
    return (value, found.questions, found.pairs_in_both, *(_points(change) for change in changes), found.by_coverage)
