"""How a benchmark was built, as its report tells it."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import msgspec
import pytest

from hoofbeat.benchmarks.benchmark import KIND
from hoofbeat.reports.report_build import build_report
from hoofbeat.store import Artefact, create, open_artefact
from tests.recipes.support import build
from tests.recipes.test_recipe import TOY, Few, _documents, _says
from tests.reports.parsing import parsed, words


@pytest.fixture
def bench(tmp_path: Path) -> Artefact:
    return build(tmp_path, TOY, _documents(), Few(), _says)


def _rows(report: Artefact, name: str) -> list[dict[str, str]]:
    (file,) = [each for each in report.manifest.files if each.startswith("tables/") and each.endswith(f"-{name}.csv")]
    with report.file(file).open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_funnel_rejections_and_failures(bench: Artefact, tmp_path: Path) -> None:
    report = build_report([bench.path], tmp_path / "report", title="A test")
    steps = _rows(report, "steps")
    assert [(row["step"], row["in"], row["kept"], row["rejected"], row["failed"]) for row in steps] == [
        ("length", "8", "7", "1", "0"),
        ("draw", "7", "7", "0", "0"),
        ("quote", "7", "3", "2", "2"),
    ]
    assert "1 a quote is not in the source" in steps[2]["reasons"]
    assert {row["candidate"] for row in _rows(report, "rejected-list")} == {"short", "void", "d1"}
    assert {row["candidate"]: row["why"].partition(":")[0] for row in _rows(report, "failed-list")} == {
        "d2": "bad-request",
        "d3": "unreadable",
    }
    text = words(parsed((report.path / "report.html").read_text("utf-8")))
    assert "Review tasks waiting" in text
    assert "Model calls to build the benchmark" in text
    assert "bare (the same)" in text


def test_evidence_is_marked_in_its_sentence(bench: Artefact, tmp_path: Path) -> None:
    report = build_report([bench.path], tmp_path / "report", title="A test")
    tree = parsed((report.path / "report.html").read_text("utf-8"))
    marks = tree.xpath("//mark")
    assert [mark.text for mark in marks] == ["a rare condition"] * 3
    assert marks[0].getparent().text.endswith("The patient 0 had ")
    assert marks[0].tail.startswith(" of the liver")


def test_without_the_corpus_the_quote_stands_alone(bench: Artefact, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "corpus")
    report = build_report([bench.path], tmp_path / "report", title="A test")
    tree = parsed((report.path / "report.html").read_text("utf-8"))
    assert not tree.xpath("//mark")
    assert "a rare condition" in words(tree)


def test_similarity_of_distractors_is_drawn(bench: Artefact, tmp_path: Path) -> None:
    similarity = {
        "descriptions": 1234,
        "quartiles": {"distractors": {"min": 0.4, "q1": 0.5, "median": 0.6, "q3": 0.7, "max": 0.8}},
        "histogram": {"edges": [0.0, 0.25, 0.5, 0.75, 1.0], "distractors": [0, 3, 6, 0]},
    }
    with create(tmp_path / "other") as draft:
        for name in bench.manifest.files:
            shutil.copyfile(bench.path / name, draft.path / name)
        metrics = {**bench.manifest.metrics, "similarity": similarity}
        draft.finish(msgspec.structs.replace(bench.manifest, metrics=metrics))
    other = open_artefact(tmp_path / "other", KIND)
    report = build_report([other.path], tmp_path / "report", title="A test")
    text = words(parsed((report.path / "report.html").read_text("utf-8")))
    assert "0.25 to 0.50" in text
    assert "0.75 to 1.00" not in text
    assert "1,234 descriptions" in text
    assert _rows(report, "similarity")[0]["median"] == "0.6"
