"""The reference of Python is up to date, and the notebooks run and return what their pages show."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import hoofbeat as hb
from hoofbeat import teaching
from tests.models.fault_server import FaultServer
from tools import python_reference
from tools.docs_refresh import NOTEBOOKS
from tools.notebook import execute, notebook, rendered

ROOT = Path(__file__).parents[2]


def test_the_reference_is_up_to_date() -> None:
    assert python_reference.is_current(), "run python -m tools.docs_refresh references"


def test_the_reference_has_every_public_name() -> None:
    groups = (python_reference.VERBS, python_reference.FOLDERS, python_reference.RECORDS, python_reference.ERRORS)
    listed = [name for group in (*groups, python_reference.FUNCTIONS, python_reference.OTHERS) for name in group]
    assert sorted(listed) == sorted(hb.__all__)


@pytest.fixture(autouse=True)
def _paths(monkeypatch: pytest.MonkeyPatch) -> None:
    paths = os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    monkeypatch.setenv("PYTHONPATH", paths)


def test_the_notebook_runs_with_another_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = notebook(ROOT / "docs" / "notebooks" / "first_study.py")
    with FaultServer() as server:
        monkeypatch.setenv("STUDY_MODEL", server.spec())
        execute(made, tmp_path)
    assert (tmp_path / "study" / "report" / "report.html").is_file()
    shown = [output for cell in made.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in shown if output.output_type == "error"]
    html = " ".join(output.data.get("text/html", "") for output in shown if "data" in output)
    assert "<b>corpus</b> teaching cases (invented)" in html
    assert re.search(r"answering.*6/6", html, re.DOTALL), "a bar in the cell"


def test_the_loop_over_judgments_runs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    [code] = re.findall(r"## Loop over.*?```python\n(.*?)```", page, re.DOTALL)
    corpus = hb.import_corpus(teaching.cases_folder(), tmp_path / "corpus", progress=hb.SILENT)
    bench = hb.build("teaching", corpus, tmp_path / "bench", progress=hb.SILENT)
    with FaultServer() as server:
        options: dict[str, Any] = {"ledger": tmp_path / "ledger.sqlite", "progress": hb.SILENT}
        run = hb.answer(bench, tmp_path / "run", model=server.spec(), conditions=["closed"], limit=3, **options)
        judged = hb.judge(run, tmp_path / "judged", by=["exact"], **options)
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *lines, manifest, made = done.stdout.splitlines()
    assert len(lines) == len(judged.judgments) == 3
    assert all(line.startswith(each.text) for line, each in zip(lines, judged.questions, strict=True))
    assert manifest.startswith("judgments 3 0")
    assert "hoofbeat.judge(" in made


@pytest.mark.parametrize("source", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_return_what_their_pages_show(source: Path, tmp_path: Path) -> None:
    made = notebook(source)
    execute(made, tmp_path)
    page = source.with_suffix(".md").read_text(encoding="utf-8")
    now = rendered(made, f"docs/notebooks/{source.name}")
    assert now.splitlines() == page.splitlines(), "run python -m tools.docs_refresh notebooks"
