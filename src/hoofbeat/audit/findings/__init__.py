"""Findings over an audit's table of pairs, as pure functions that take millions of rows in seconds.

Each gives the figures of its slower kin over records (`relations`, `prevalence_intensity`), or what only a whole table
can tell: who stands apart, what sources disagree about, which pairs are dangerous, and what changed since last time.
"""

from __future__ import annotations

from hoofbeat.audit.findings.audit_changes import (
    CoverageChange,
    LabelShift,
    changed_pairs,
    coverage_changes,
    label_shift,
    split_between,
    split_by,
)
from hoofbeat.audit.findings.audit_comparison import AuditsComparison, AuditSide, compare_audits, reworded_questions
from hoofbeat.audit.findings.divergence_themes import Theme, ThemeExample, TopicPhrases, divergence_topics, themes
from hoofbeat.audit.findings.pair_arrays import AuditPairs, Frame, pairs_of
from hoofbeat.audit.findings.relation_counts import counts_by, label_counts
from hoofbeat.audit.findings.relation_matrices import each_matrix, question_matrix
from hoofbeat.audit.findings.serious_divergence import SeriousPair, SideBySide, SourceSide, serious_pairs, side_by_side
from hoofbeat.audit.findings.severity_weights import (
    BY_QUESTION,
    BY_SOURCE,
    BY_TOPIC,
    SeverityRanking,
    SeverityRow,
    severity_ranking,
)
from hoofbeat.audit.findings.source_profiles import (
    CoverageHeat,
    OutlierSource,
    PairRates,
    SourceRow,
    coverage_heat,
    outlier_sources,
    pair_rates,
    slim_answers,
    source_rows,
)
from hoofbeat.audit.findings.table_agreement import (
    FlipRate,
    LabelFlips,
    TableAgreement,
    agreement_of_tables,
    flip_rates,
    joined_agreement,
)
from hoofbeat.audit.findings.table_join import JoinedPairs, join

__all__ = [
    "BY_QUESTION",
    "BY_SOURCE",
    "BY_TOPIC",
    "AuditPairs",
    "AuditSide",
    "AuditsComparison",
    "CoverageChange",
    "CoverageHeat",
    "FlipRate",
    "Frame",
    "JoinedPairs",
    "LabelFlips",
    "LabelShift",
    "OutlierSource",
    "PairRates",
    "SeriousPair",
    "SeverityRanking",
    "SeverityRow",
    "SideBySide",
    "SourceRow",
    "SourceSide",
    "TableAgreement",
    "Theme",
    "ThemeExample",
    "TopicPhrases",
    "agreement_of_tables",
    "changed_pairs",
    "compare_audits",
    "counts_by",
    "coverage_changes",
    "coverage_heat",
    "divergence_topics",
    "each_matrix",
    "flip_rates",
    "join",
    "joined_agreement",
    "label_counts",
    "label_shift",
    "outlier_sources",
    "pair_rates",
    "pairs_of",
    "question_matrix",
    "reworded_questions",
    "serious_pairs",
    "severity_ranking",
    "side_by_side",
    "slim_answers",
    "source_rows",
    "split_between",
    "split_by",
    "themes",
]
