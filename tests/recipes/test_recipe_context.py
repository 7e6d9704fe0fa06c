"""Several texts in one window: short ones stay whole, long ones share what is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoofbeat.prompts import load_prompt
from hoofbeat.recipes.context import RecipeSettings, fit_all
from hoofbeat.records import Document
from hoofbeat.window import ContextWindow
from tests.recipes.support import a_context

_LONG = "word " * 20_000


@pytest.mark.parametrize("window", [2000, 8000, 32_000])
def test_what_is_shown_fits_and_nothing_short_is_lost(tmp_path: Path, window: int) -> None:
    prompt = load_prompt("r2med-grade-case")
    texts = {"query": _LONG, "answer": "Gout.", "reasoning": "So it is.", "document": _LONG}
    with a_context(tmp_path, [Document(id="d", title="", text="x")], RecipeSettings(), lambda n, r: {}) as context:
        context.model().window = ContextWindow(tokens=window, source="configured")
        shown = fit_all(texts, prompt, context)
        alone = fit_all({"query": _LONG, "answer": "Gout."}, prompt, context)
    assert list(shown) == list(texts)
    assert (shown["answer"], shown["reasoning"]) == ("Gout.", "So it is.")
    assert sum(map(len, shown.values())) < 3 * window - len(prompt.system)
    assert min(len(shown["query"]), len(shown["document"])) > 3 * window // 12
    assert len(alone["query"]) > len(shown["query"])  # what the others leave is used


def test_what_fits_is_whole(tmp_path: Path) -> None:
    texts = {"query": "Which?", "answer": "That."}
    with a_context(tmp_path, [Document(id="d", title="", text="x")], RecipeSettings(), lambda n, r: {}) as context:
        assert fit_all(texts, load_prompt("r2med-type"), context) == texts
