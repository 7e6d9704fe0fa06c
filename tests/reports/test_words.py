from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoofbeat.reports.tables import Form, written
from hoofbeat.store.files import slug


@pytest.mark.parametrize(
    ("value", "form", "words"),
    [
        (0.5342, "share", "53.4%"),
        (-0.05, "points", "−5.0"),
        (0.0, "points", "0.0"),
        (0.12, "points", "+12.0"),
        (0.0004, "p", "< 0.001"),
        (0.0314, "p", "0.031"),
        (12345, "count", "12,345"),
        (None, "share", "–"),
        ((0.1, 0.25), "share", "10.0–25.0%"),
        ((-0.1, 0.25), "points", "−10.0 to +25.0"),
        ((-0.1, 0.25), "number", "−0.100 to 0.250"),
        ((0.5, 0.4, 0.6), "share", "50.0% (40.0–60.0%)"),
        ("as it is", "share", "as it is"),
    ],
)
def test_figures_are_written_one_way(value: object, form: Form, words: str) -> None:
    assert written(value, form) == words


@given(st.text())
def test_slugs_are_safe_names(text: str) -> None:
    name = slug(text)
    assert name
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert not name.startswith(("-", "."))
