"""Recipes: documents in, questions out, and an account of everything that was turned away on the way."""

from __future__ import annotations

from hoofbeat.recipes.teaching_questions import build_teaching, named_questions, teaching_patient_questions

__all__ = ["build_teaching", "named_questions", "teaching_patient_questions"]
