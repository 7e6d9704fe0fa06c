"""Recipes: documents in, questions out. A benchmark is an artefact of questions that point into their sources."""

from __future__ import annotations

from hoofbeat.recipes.benchmark import Benchmark, write_benchmark
from hoofbeat.recipes.evidence import locate
from hoofbeat.recipes.teaching import build_teaching, teaching_patient_questions

__all__ = ["Benchmark", "build_teaching", "locate", "teaching_patient_questions", "write_benchmark"]
