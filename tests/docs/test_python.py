"""The page on Python is up to date, and the notebook runs."""

from __future__ import annotations

import os
import re
from pathlib import Path

import nbclient
import pytest

import hoofbeat as hb
from tests.models.fault_server import FaultServer
from tools import python_reference
from tools.notebook import notebook

ROOT = Path(__file__).parents[2]


def test_the_reference_is_up_to_date() -> None:
    page = python_reference.PAGE.read_text(encoding="utf-8")
    told = "run python tools/python_reference.py"
    assert page.partition(python_reference.MARK)[2] == python_reference.reference().removeprefix(
        python_reference.MARK
    ), told


def test_the_reference_has_every_public_name() -> None:
    groups = (python_reference.VERBS, python_reference.FOLDERS, python_reference.RECORDS, python_reference.ERRORS)
    listed = [name for group in (*groups, python_reference.OTHERS) for name in group]
    assert sorted(listed) == sorted(hb.__all__)


def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = notebook(ROOT / "docs" / "notebooks" / "first_study.py")
    paths = os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    monkeypatch.setenv("PYTHONPATH", paths)
    with FaultServer() as server:
        monkeypatch.setenv("STUDY_MODEL", server.spec())
        client = nbclient.NotebookClient(made, timeout=120, resources={"metadata": {"path": str(tmp_path)}})
        client.execute()
    assert (tmp_path / "study" / "report" / "report.html").is_file()
    shown = [output for cell in made.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in shown if output.output_type == "error"]
    html = " ".join(output.data.get("text/html", "") for output in shown if "data" in output)
    assert "<b>corpus</b> teaching cases (invented)" in html
    assert re.search(r"answering.*6/6", html, re.DOTALL), "a bar in the cell"
