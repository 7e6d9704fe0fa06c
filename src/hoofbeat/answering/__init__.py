"""Answering: questions to answers, closed book, with evidence, or by an agent; models × conditions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hoofbeat.lazy import lazy_names

if TYPE_CHECKING:
    from hoofbeat.answering.answer_calls import PlannedAnswer, answer_all, plan_answers, request_for
    from hoofbeat.answering.answer_grid import Grid, PromptSettings, System, plan_systems, plans
    from hoofbeat.answering.answerers import Answerer, SamplingSettings, parse_answerer
    from hoofbeat.answering.condition_material import DocumentStore, PreparedCondition, prepare
    from hoofbeat.answering.conditions import INSTRUCTIONS, PROTOCOLS, Condition, parse_condition
    from hoofbeat.answering.run_folder import AnswerArtefact, Run, draft_run

__all__ = [
    "INSTRUCTIONS",
    "PROTOCOLS",
    "AnswerArtefact",
    "Answerer",
    "Condition",
    "DocumentStore",
    "Grid",
    "PlannedAnswer",
    "PreparedCondition",
    "PromptSettings",
    "Run",
    "SamplingSettings",
    "System",
    "answer_all",
    "draft_run",
    "parse_answerer",
    "parse_condition",
    "plan_answers",
    "plan_systems",
    "plans",
    "prepare",
    "request_for",
]

__getattr__ = lazy_names(
    __name__,
    {
        "answer_calls": "PlannedAnswer answer_all plan_answers request_for",
        "answer_grid": "PromptSettings Grid System plan_systems plans",
        "answerers": "Answerer SamplingSettings parse_answerer",
        "condition_material": "DocumentStore PreparedCondition prepare",
        "conditions": "INSTRUCTIONS PROTOCOLS Condition parse_condition",
        "run_folder": "AnswerArtefact Run draft_run",
    },
)
