"""Findings: every figure a report prints, as pure functions over stored records. No model is called here."""

from __future__ import annotations

from hoofbeat.findings.ablation import Ablation, ablation
from hoofbeat.findings.accuracy import Accuracy, SystemDifference, accuracies, comparable_pairs, differences
from hoofbeat.findings.agreement import (
    Agreement,
    Annotators,
    Kappa,
    PairAgreement,
    agreement,
    agreement_with_intervals,
    weighted_kappa,
)
from hoofbeat.findings.alpha import Alpha, krippendorff_alpha
from hoofbeat.findings.breakdown import FacetTable, SetTable, by_facet, over_sets
from hoofbeat.findings.clusters import clusters_of
from hoofbeat.findings.corrected import PPI, CorrectedAccuracy, corrected_accuracies, labels_needed, ppi_mean
from hoofbeat.findings.correlation import AnswersAndRetrieval, Correlation, answers_and_retrieval, correlation
from hoofbeat.findings.groups import GroupAccuracy, GroupDifference, group_differences
from hoofbeat.findings.information import InformationCurve, InformationPoint, information_curves, retained_scores
from hoofbeat.findings.intervals import Difference, Interval, holm, mcnemar_exact, wilson
from hoofbeat.findings.leaderboard import LeaderboardRow, leaderboard
from hoofbeat.findings.modes import ModeShare, mode_shares
from hoofbeat.findings.options import MacroRate, OptionDecisions, OptionRate, option_decisions
from hoofbeat.findings.ranking import (
    Evaluation,
    Measure,
    evaluate,
    read_qrels,
    read_trec_run,
    trec_run_lines,
    write_qrels,
)
from hoofbeat.findings.repeats import (
    BootstrapSD,
    RunsMean,
    WorstAtK,
    bootstrap_sd,
    runs_mean,
    worst_at_k,
)
from hoofbeat.findings.scores import ScoreMean, score_means
from hoofbeat.findings.scoring import Outcome, choice_outcomes, outcomes, scored_outcomes
from hoofbeat.findings.systems import SystemTable, compare_systems

__all__ = [
    "PPI",
    "Ablation",
    "Accuracy",
    "Agreement",
    "Alpha",
    "Annotators",
    "AnswersAndRetrieval",
    "BootstrapSD",
    "CorrectedAccuracy",
    "Correlation",
    "Difference",
    "Evaluation",
    "FacetTable",
    "GroupAccuracy",
    "GroupDifference",
    "InformationCurve",
    "InformationPoint",
    "Interval",
    "Kappa",
    "LeaderboardRow",
    "MacroRate",
    "Measure",
    "ModeShare",
    "OptionDecisions",
    "OptionRate",
    "Outcome",
    "PairAgreement",
    "RunsMean",
    "ScoreMean",
    "SetTable",
    "SystemDifference",
    "SystemTable",
    "WorstAtK",
    "ablation",
    "accuracies",
    "agreement",
    "agreement_with_intervals",
    "answers_and_retrieval",
    "bootstrap_sd",
    "by_facet",
    "choice_outcomes",
    "clusters_of",
    "comparable_pairs",
    "compare_systems",
    "corrected_accuracies",
    "correlation",
    "differences",
    "evaluate",
    "group_differences",
    "holm",
    "information_curves",
    "krippendorff_alpha",
    "labels_needed",
    "leaderboard",
    "mcnemar_exact",
    "mode_shares",
    "option_decisions",
    "outcomes",
    "over_sets",
    "ppi_mean",
    "read_qrels",
    "read_trec_run",
    "retained_scores",
    "runs_mean",
    "score_means",
    "scored_outcomes",
    "trec_run_lines",
    "weighted_kappa",
    "wilson",
    "worst_at_k",
    "write_qrels",
]
