"""Judging: answers to judgments against a gold answer, and pairs of answers to relations between sources."""

from __future__ import annotations

from hoofbeat.judging.audit import Audit, AuditPlan, audit_sources
from hoofbeat.judging.equivalence import Judged, equivalence_request, judge_equivalence, write_judgments
from hoofbeat.judging.relation import compare_answers, comparison_request

__all__ = [
    "Audit",
    "AuditPlan",
    "Judged",
    "audit_sources",
    "compare_answers",
    "comparison_request",
    "equivalence_request",
    "judge_equivalence",
    "write_judgments",
]
