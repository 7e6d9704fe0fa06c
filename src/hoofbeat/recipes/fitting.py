"""Fitting: several texts into one model's window, so that a long one does not push out the others."""

from __future__ import annotations

from collections.abc import Mapping

from hoofbeat.prompts import Prompt
from hoofbeat.recipes.context import RecipeContext
from hoofbeat.window import size

__all__ = ["fit_all"]


def fit_all(texts: Mapping[str, str], prompt: Prompt, context: RecipeContext, role: str = "model") -> dict[str, str]:
    """The texts as a prompt takes them: short ones whole, and of the long ones as much as fits beside the rest.

    A text that is no longer than its fair share of the window is short. The longest gets what the others leave.
    """
    share = context.room(prompt, role) // max(1, len(texts))
    fitted: dict[str, str] = {}
    waiting = sorted(texts, key=lambda name: size(texts[name]))
    while waiting:
        name = waiting.pop(0)
        text = texts[name]
        if size(text) > share or not waiting:
            beside = sum(map(size, fitted.values())) + share * len(waiting)
            text = context.fit(text, prompt, role, beside=beside)
        fitted[name] = text
    return {name: fitted[name] for name in texts}
