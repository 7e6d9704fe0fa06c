"""Judging: answers to judgments against a gold answer."""

from __future__ import annotations

from hoofbeat.judging.bertscore import BertScore, BertScorer
from hoofbeat.judging.catalogue import ASPECTS, MODEL_ASPECTS, choose_aspects, labels_of
from hoofbeat.judging.designs import LabelFile, SheetDesign, design_of, design_path
from hoofbeat.judging.equivalence import equivalence_request, judge_equivalence
from hoofbeat.judging.folder import HUMAN, AnswerFolder, Judged, Probe
from hoofbeat.judging.humans import human_judgments, read_labels, write_sheet
from hoofbeat.judging.probes import PROBES, FlipCount, flips
from hoofbeat.judging.scorers import RougeL, edit_similarity, exact_match, fuzzy_match, rouge_l
from hoofbeat.judging.stream import Job, Judging
from hoofbeat.judging.writing import judge_folder, own_judges

__all__ = [
    "ASPECTS",
    "HUMAN",
    "MODEL_ASPECTS",
    "PROBES",
    "AnswerFolder",
    "BertScore",
    "BertScorer",
    "FlipCount",
    "Job",
    "Judged",
    "Judging",
    "LabelFile",
    "Probe",
    "RougeL",
    "SheetDesign",
    "choose_aspects",
    "design_of",
    "design_path",
    "edit_similarity",
    "equivalence_request",
    "exact_match",
    "flips",
    "fuzzy_match",
    "human_judgments",
    "judge_equivalence",
    "judge_folder",
    "labels_of",
    "own_judges",
    "read_labels",
    "rouge_l",
    "write_sheet",
]
