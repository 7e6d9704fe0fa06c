"""Two audits of the same questions compared, before and after a change: from their folders to the figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hoofbeat.audit.audit_folder import Audit
from hoofbeat.audit.findings.audit_changes import AuditsComparison, AuditSide, changed_pairs, compare_audits
from hoofbeat.audit.findings.relations import RelationLabels
from hoofbeat.audit.findings.source_profiles import slim_answers
from hoofbeat.errors import UsageError
from hoofbeat.facets import facet_names
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import Pack

if TYPE_CHECKING:
    import polars

_MAX_FACETS = 4


def compare_folders(
    first: Audit, second: Audit, *, facets: Sequence[str], seed: int = 0, progress: Progress = SILENT
) -> tuple[AuditsComparison, polars.DataFrame]:
    """The comparison, and the pairs that have another label now; audits with different labels are refused."""
    domain = RelationLabels.of(same_domain(first, second).labels)
    with progress.task("comparing audits", 3) as task:
        sides = []
        for audit in (first, second):
            sides.append(_side(audit))
            task.advance()
        compared, joined = compare_audits(sides[0], sides[1], domain, facets=facets, seed=seed)
        changed = changed_pairs(joined, sides[0].table, sides[1].table)
        task.advance()
    return compared, changed


def comparison_facets(wanted: Sequence[str], audit: Audit) -> list[str]:
    """The facets to split the changes by: those wanted, else those that make few groups."""
    if not wanted:
        return facet_names(question.facets for question in audit.questions)[:_MAX_FACETS]
    known = {name for question in audit.questions for name in question.facets}
    if unknown := [name for name in wanted if name not in known]:
        raise UsageError(
            f"no question has the facet {unknown[0]!r}", fix=f"there are: {', '.join(sorted(known)) or 'none'}"
        )
    return list(dict.fromkeys(wanted))


def same_domain(first: Audit, second: Audit) -> Pack:
    """The pack of both; audits of different domains are refused."""
    if first.pack.name != second.pack.name or first.pack.labels != second.pack.labels:
        raise UsageError(
            f"the audits have different domain packs: {first.pack.name} and {second.pack.name}",
            where=f"{first.artefact.path}, {second.artefact.path}",
            fix="compare audits that were judged with the same labels",
        )
    return second.pack


def _side(audit: Audit) -> AuditSide:
    return AuditSide(
        table=audit.frame(),
        questions=audit.questions,
        sources=[source.id for source in audit.sources],
        answers=slim_answers(audit.each_answer()),
    )
