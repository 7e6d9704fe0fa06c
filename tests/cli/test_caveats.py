"""Figures of a part say so: the first N of M questions, answers that were cut off, and calls that failed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hoofbeat.benchmarks.benchmark import write_benchmark
from hoofbeat.records import Question
from hoofbeat.store import Counts, open_artefact
from tests.cli.support import hoofbeat, json_of
from tests.models.fault_server import FaultServer
from tests.web.browse_support import Visitor, a_site

OPTIONS = ("Give aspirin.", "Wait and see.", "Operate at once.", "Give fluids.")
PART = "Only the first 2 of 5 questions were asked"


def invented(target: Path, faults: tuple[str, ...] = ("",) * 5) -> Path:
    """A benchmark of invented questions with options; what happens to the call is part of the question's text."""
    questions = [
        Question(id=f"q{n}", text=f"Patient {n} is tired. What now? {fault}", options=OPTIONS, answer=OPTIONS[n % 4])
        for n, fault in enumerate(faults)
    ]
    write_benchmark(target, questions, title="invented", inputs=[], counts=Counts(kept=len(questions)))
    return target


@pytest.fixture
def first_two(tmp_path: Path) -> Path:
    """A folder with a run of the first two questions of five, and judgments of it."""
    invented(tmp_path / "bench")
    with FaultServer() as server:
        words = ["answer", "bench", "--model", server.spec(), "--limit", "2", "--protocol", "likelihood/byte"]
        done = hoofbeat(*words, "-o", "run", folder=tmp_path)
        assert PART in done.stderr
        assert "(the first 2 of 5 questions)" in done.stderr
        told = json_of(hoofbeat(*words, "-o", "run2", "--condition", "options", "--json", folder=tmp_path))
    assert told["warnings"] == [f"{PART}, so no figure is about the whole benchmark."]
    judged = hoofbeat("judge", "run", "-o", "judged", folder=tmp_path)
    assert PART in judged.stderr
    assert "Leaderboard, by likelihood/byte (the first 2 of 5 questions)" in judged.stderr
    return tmp_path


def test_a_limited_run_says_so_beside_its_figures(first_two: Path) -> None:
    assert open_artefact(first_two / "run").manifest.settings["questions_in_all"] == 5
    for folder in ("run", "judged"):
        shown = hoofbeat("show", folder, folder=first_two)
        assert PART in shown.stdout
        assert PART in json_of(hoofbeat("show", folder, "--json", folder=first_two))["warnings"][0]
        hoofbeat("report", folder, "-o", f"report of {folder}", folder=first_two)
        report = (first_two / f"report of {folder}" / "report.md").read_text(encoding="utf-8")
        before = report[: report.index("\n## ")]
        assert f"{folder}: {PART}" in before, "on the first screen"
        assert "2 answers to the first 2 of 5 questions were planned" in report


def test_its_pages_say_so_once(first_two: Path) -> None:
    visitor = Visitor(a_site(first_two))
    for folder in ("run", "judged"):
        for page in (f"/runs/{folder}", f"/runs/{folder}/questions", f"/runs/{folder}/facets", f"/folders/{folder}"):
            assert visitor.get(page).text.count(PART) == 1, page
    hoofbeat("judge", "run", "-o", "again", folder=first_two)
    visitor = Visitor(a_site(first_two))
    assert f"judged, again: {PART}" in visitor.get("/side-by-side?a=judged&b=again").text


def test_a_comparison_carries_it_on(first_two: Path) -> None:
    hoofbeat("judge", "run", "-o", "again", folder=first_two)
    compared = hoofbeat("compare", "judged", "again", "-o", "compared", folder=first_two)
    assert f"[!] judged, again: {PART}" in compared.stderr
    settings = json.loads((first_two / "compared" / "manifest.json").read_bytes())["settings"]
    assert any(PART in each for each in settings["warnings"])


def test_a_limit_that_leaves_nothing_out_is_not_told(tmp_path: Path) -> None:
    invented(tmp_path / "bench")
    with FaultServer() as server:
        done = hoofbeat("answer", "bench", "--model", server.spec(), "--limit", "5", "-o", "run", folder=tmp_path)
    assert "first" not in done.stderr.replace("first 40%", "")
    assert "questions_in_all" not in open_artefact(tmp_path / "run").manifest.settings


def test_answers_that_were_cut_off_are_counted_everywhere(tmp_path: Path) -> None:
    invented(tmp_path / "bench", ("fault=truncated", "fault=truncated", ""))
    with FaultServer() as server:
        model = server.spec() + "[max_tokens=77]"
        done = hoofbeat("answer", "bench", "--model", model, "--protocol", "free", "-o", "run", folder=tmp_path)
        judged = hoofbeat("judge", "run", "--model", server.spec("judge"), "-o", "judged", folder=tmp_path)
    told = "2 answers were cut off at the output limit of 77 tokens"
    assert told in done.stderr
    assert open_artefact(tmp_path / "run").manifest.metrics["cut_off"] == {"answers": 2, "tokens": [77]}
    assert told in hoofbeat("show", "run", folder=tmp_path).stdout
    assert told in judged.stderr
    for folder in ("run", "judged"):
        hoofbeat("report", folder, "-o", "report", folder=tmp_path)
        report = (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
        assert told in report[: report.index("\n## ")]


def test_the_last_line_says_what_failed_and_what_to_do(tmp_path: Path) -> None:
    invented(tmp_path / "bench", ("fault=500,ok", "", "fault=500,ok", ""))
    with FaultServer() as server:
        (tmp_path / "hoofbeat.toml").write_text(f'[models.one]\nspec = "{server.spec()}"\nattempts = 1\n')
        words = ["answer", "bench", "--model", "one", "-o", "run"]
        done = hoofbeat(*words, folder=tmp_path)
        last = done.stderr.splitlines()[-1]
        assert last == (
            "warning: 2 of 4 answers failed (2 server-error). Run the same command again: it makes only the calls that "
            "have no reply yet."
        )
        assert len(server.seen) == 4
        again = json_of(hoofbeat(*words, "--json", folder=tmp_path))
        assert len(server.seen) == 6
    assert "warnings" not in again
    assert again["counts"]["failed"] == 0


def test_what_would_fail_again_is_told_as_that(tmp_path: Path) -> None:
    invented(tmp_path / "bench", ("fault=refusal", "", ""))
    with FaultServer() as server:
        words = ["answer", "bench", "--model", server.spec(), "-o", "run", "--json"]
        told = json_of(hoofbeat(*words, folder=tmp_path))
    assert told["warnings"] == ["1 of 3 answers failed (1 refusal). The same command would give the same result."]
