"""Recipes: documents in, questions out, and an account of everything that was turned away on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hoofbeat.lazy import lazy_names

if TYPE_CHECKING:
    from hoofbeat.recipes.teaching_questions import build_teaching, named_questions, teaching_patient_questions

__all__ = ["build_teaching", "named_questions", "teaching_patient_questions"]

__getattr__ = lazy_names(
    __name__,
    {
        "teaching_questions": "build_teaching named_questions teaching_patient_questions",
    },
)
