"""Judging: answers to judgments against a gold answer, by models, by measures and by people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hoofbeat.lazy import lazy_names

if TYPE_CHECKING:
    from hoofbeat.judging.aspect import Aspect
    from hoofbeat.judging.aspects.equivalence import judge_equivalence
    from hoofbeat.judging.catalogue import all_criteria, labels_of
    from hoofbeat.judging.humans import (
        LabelFile,
        SheetDesign,
        design_of,
        design_path,
        human_judgments,
        read_labels,
        write_sheet,
    )
    from hoofbeat.judging.judge_plan import judge_folder, own_judges
    from hoofbeat.judging.judging_pass import JudgingJob, JudgingPass, choose_aspects
    from hoofbeat.judging.judgments_folder import HUMAN, AnswerFolder, JudgmentFolder, Probe
    from hoofbeat.judging.probes import PROBES, FlipCount, flips
    from hoofbeat.judging.scorers import Scorer

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
        "humans": "LabelFile SheetDesign design_of design_path human_judgments read_labels write_sheet",
        "judge_plan": "judge_folder own_judges",
        "judging_pass": "JudgingJob JudgingPass choose_aspects",
        "judgments_folder": "HUMAN AnswerFolder JudgmentFolder Probe",
        "probes": "PROBES FlipCount flips",
        "scorers": "Scorer",
    },
)
