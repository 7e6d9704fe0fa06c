"""Audits: the same questions answered from one source at a time, and every pair of answers compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hoofbeat.lazy import lazy_names

if TYPE_CHECKING:
    from hoofbeat.audit.audit_folder import Audit, OrderProbe
    from hoofbeat.audit.audit_plan import AuditPlan
    from hoofbeat.audit.pair_judge import compare_answers, comparison_request
    from hoofbeat.audit.source_audit import audit_sources
    from hoofbeat.audit.source_names import AuditSource

__all__ = ["Audit", "AuditPlan", "AuditSource", "OrderProbe", "audit_sources", "compare_answers", "comparison_request"]

__getattr__ = lazy_names(
    __name__,
    {
        "audit_folder": "Audit OrderProbe",
        "audit_plan": "AuditPlan",
        "pair_judge": "compare_answers comparison_request",
        "source_audit": "audit_sources",
        "source_names": "AuditSource",
    },
)
