"""Judging: answers to judgments against a gold answer, by models, by measures and by people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hoofbeat.lazy import lazy_names

if TYPE_CHECKING:
    from hoofbeat.judging.aspect import Aspect
    from hoofbeat.judging.aspects.equivalence import judge_equivalence
    from hoofbeat.judging.catalogue import all_criteria, labels_of
    from hoofbeat.judging.designs import LabelFile, SheetDesign, design_of, design_path
    from hoofbeat.judging.humans import human_judgments, read_labels, write_sheet
    from hoofbeat.judging.judging_pass import JudgingJob, JudgingPass
    from hoofbeat.judging.judgments_folder import HUMAN, AnswerFolder, JudgmentFolder, Probe
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
    "JudgingJob",
    "JudgingPass",
    "JudgmentFolder",
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

__getattr__ = lazy_names(
    __name__,
    {
        "aspect": "Aspect",
        "aspects.equivalence": "judge_equivalence",
        "catalogue": "all_criteria labels_of",
        "designs": "LabelFile SheetDesign design_of design_path",
        "humans": "human_judgments read_labels write_sheet",
        "judging_pass": "JudgingJob JudgingPass",
        "judgments_folder": "HUMAN AnswerFolder JudgmentFolder Probe",
        "judgments_writer": "judge_folder own_judges",
        "probes": "PROBES FlipCount flips",
        "scorers": "Scorer",
        "selection": "choose_aspects",
    },
)
