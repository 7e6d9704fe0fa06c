"""Answering: questions to answers, closed book, with retrieved evidence, from the oracle document, or per source."""

from __future__ import annotations

from hoofbeat.answering.answer import Planned, Sampling, answer_all, plan_answers, request_for
from hoofbeat.answering.conditions import Condition, parse_condition
from hoofbeat.answering.run import Run, write_run
from hoofbeat.answering.source import answer_from_sources, plan_sources, source_request

__all__ = [
    "Condition",
    "Planned",
    "Run",
    "Sampling",
    "answer_all",
    "answer_from_sources",
    "parse_condition",
    "plan_answers",
    "plan_sources",
    "request_for",
    "source_request",
    "write_run",
]
