"""Judging: answers to judgments against a gold answer, by models, by measures and by people."""

from __future__ import annotations

from hoofbeat.judging.aspects import Aspect
from hoofbeat.judging.aspects.equivalence import judge_equivalence
from hoofbeat.judging.catalogue import all_criteria, labels_of
from hoofbeat.judging.designs import LabelFile, SheetDesign, design_of, design_path
from hoofbeat.judging.humans import human_judgments, read_labels, write_sheet
from hoofbeat.judging.judging_pass import Job, Judging
from hoofbeat.judging.judgments_folder import HUMAN, AnswerFolder, Judged, Probe
from hoofbeat.judging.judgments_writer import judge_folder, own_judges
from hoofbeat.judging.probes import PROBES, FlipCount, flips
from hoofbeat.judging.scorers import Scorer
from hoofbeat.judging.selection import choose_aspects

__all__ = [
    "HUMAN",
    "PROBES",
    "AnswerFolder",
    "Aspect",
    "FlipCount",
    "Job",
    "Judged",
    "Judging",
    "LabelFile",
    "Probe",
    "Scorer",
    "SheetDesign",
    "all_criteria",
    "choose_aspects",
    "design_of",
    "design_path",
    "flips",
    "human_judgments",
    "judge_equivalence",
    "judge_folder",
    "labels_of",
    "own_judges",
    "read_labels",
    "write_sheet",
]
