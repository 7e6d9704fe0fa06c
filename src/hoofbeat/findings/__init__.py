"""Findings: every figure a report prints, as pure functions over stored records. No model is called here."""

from __future__ import annotations

from hoofbeat.findings.ablation import Ablation, ablation
from hoofbeat.findings.accuracy import Accuracy, Outcome, SystemDifference, accuracies, differences, outcomes
from hoofbeat.findings.agreement import Agreement, agreement
from hoofbeat.findings.breakdown import FacetTable, SetTable, by_facet, over_sets
from hoofbeat.findings.correlation import AnswersAndRetrieval, Correlation, answers_and_retrieval, correlation
from hoofbeat.findings.ranking import (
    Evaluation,
    Measure,
    evaluate,
    read_qrels,
    read_trec_run,
    trec_run_lines,
    write_qrels,
)
from hoofbeat.findings.relations import (
    Relations,
    coverage,
    judge_agreement,
    matrices,
    relations,
    relations_by_group,
)
from hoofbeat.findings.systems import SystemTable, compare_systems

__all__ = [
    "Ablation",
    "Accuracy",
    "Agreement",
    "AnswersAndRetrieval",
    "Correlation",
    "Evaluation",
    "FacetTable",
    "Measure",
    "Outcome",
    "Relations",
    "SetTable",
    "SystemDifference",
    "SystemTable",
    "ablation",
    "accuracies",
    "agreement",
    "answers_and_retrieval",
    "by_facet",
    "compare_systems",
    "correlation",
    "coverage",
    "differences",
    "evaluate",
    "judge_agreement",
    "matrices",
    "outcomes",
    "over_sets",
    "read_qrels",
    "read_trec_run",
    "relations",
    "relations_by_group",
    "trec_run_lines",
    "write_qrels",
]
