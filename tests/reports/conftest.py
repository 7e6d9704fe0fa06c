from __future__ import annotations

from pathlib import Path

import pytest

from hoofbeat.reports.report_build import build_report
from hoofbeat.store import Artefact
from tests.reports import corpora, examples


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("study")
    return [*examples.study(folder), *corpora.made(folder)]


@pytest.fixture(scope="session")
def report(study: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Artefact:
    target = tmp_path_factory.mktemp("out") / "report"
    notes = ["The default model is tiny."]
    return build_report(study, target, title="An invented study", notes=notes, planted=examples.planted())
