"""Progress in a terminal and elsewhere; in a notebook it is tested with the notebook."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from hoofbeat.progress import SILENT, Bars, default_progress


def test_a_bar_in_a_terminal() -> None:
    screen = io.StringIO()
    with Bars(Console(file=screen, force_terminal=True, width=120)).task("counting [1]", 3) as task:
        task.advance(3)
        task.note("2 \x1b[31mretries")
    shown = screen.getvalue()
    assert "counting [1]" in shown
    assert "3/3" in shown
    assert "\x1b[31mretries" not in shown


def test_silence_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    assert default_progress() is SILENT
