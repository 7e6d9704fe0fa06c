"""Findings: every figure a report prints, as pure functions over stored records. No model is called here."""

from __future__ import annotations

from hoofbeat.findings.accuracy import Accuracy, Outcome, SystemDifference, accuracies, differences, outcomes
from hoofbeat.findings.agreement import Agreement, agreement
from hoofbeat.findings.ranking import Evaluation, Measure, evaluate, read_qrels, read_trec_run, trec_run_lines
from hoofbeat.findings.relations import (
    Relations,
    coverage,
    judge_agreement,
    matrices,
    relations,
    relations_by_group,
)

__all__ = [
    "Accuracy",
    "Agreement",
    "Evaluation",
    "Measure",
    "Outcome",
    "Relations",
    "SystemDifference",
    "accuracies",
    "agreement",
    "coverage",
    "differences",
    "evaluate",
    "judge_agreement",
    "matrices",
    "outcomes",
    "read_qrels",
    "read_trec_run",
    "relations",
    "relations_by_group",
    "trec_run_lines",
]
