"""Papers' protocols from a benchmark to one report: the paper's tables, published figures, and every difference."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hoofbeat as hb
from hoofbeat.errors import OutputError, UsageError
from hoofbeat.presets.paper_run import plain_findings
from hoofbeat.presets.protocol_steps import JudgeStep
from hoofbeat.reports.sections.protocol_section import read_differences
from hoofbeat.store import open_artefact
from tests.cli.test_kill import folder_bytes
from tests.helpers import needs_weights
from tests.models.fault_server import FaultServer

CUPCASE = """id,clean text,final diagnosis,distractor1,distractor2,distractor3
1,A gardener had a painless nodule. Others came along the forearm.,Sporotrichosis,Cat scratch,Leishmaniasis,Erysipelas
2,A cook had fever and a new murmur after a tooth was pulled.,Infective endocarditis,Rheumatic fever,Influenza,Lupus
"""


@pytest.fixture(scope="module")
def server() -> Iterator[FaultServer]:
    with FaultServer() as running:
        yield running


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(paper: str, bench: Any, output: str = "paper", **options: Any) -> hb.ReportFolder:
    """Run a protocol without showing what it warns of."""
    with warnings.catch_warnings(record=True):
        made: hb.ReportFolder = hb.run_paper(paper, bench, output, progress=hb.SILENT, **options)
    return made


def differences(output: str = "paper") -> dict[str, str]:
    """What differs from the paper, as the run's folder lists it."""
    return {each.what: each.here for each in read_differences(open_artefact(Path(output) / "protocol"))}


def page(output: str = "paper") -> str:
    return (Path(output) / "report" / "report.md").read_text(encoding="utf-8")


def cupcase_bench(folder: str = "bench") -> hb.Benchmark:
    Path("cupcase.csv").write_text(CUPCASE, encoding="utf-8")
    return hb.import_benchmark("cupcase.csv", folder, progress=hb.SILENT)


def test_cupcase_by_letter_likelihood_and_free_text(server: FaultServer) -> None:
    needs_weights("minilm")
    bench = cupcase_bench()
    before = len(server.seen)
    expected = hb.run_paper("cupcase", bench, model=server.spec(), estimate=True, progress=hb.SILENT)
    assert len(server.seen) == before
    made = run("cupcase", bench, model=server.spec())
    assert len(server.seen) - before == expected.calls == 2 * 5 * (1 + 4 + 1)  # letter, four likelihoods, free text
    text = page()
    for table in (
        "Leaderboard, letter",
        "Leaderboard, likelihood",
        "How much of the case is needed",
        "mean of 8 × 500",
    ):
        assert table in text, table
    assert "published by CUPCase and ours" in text
    assert "letter" not in "".join(line for line in text.splitlines() if line.startswith("| bertscore |"))
    assert set(differences()) == {"data set", "models", "prompts", "encoder", "tokens"}
    assert "2 questions of bench, imported" in differences()["data set"]
    assert "differs from CUPCase in 5 points" in text
    told = plain_findings(made.artefact)
    assert [line.split(":")[0] for line in told][:2] == ["closed, letter, accuracy", "closed, likelihood, accuracy"]
    assert any(line.startswith("closed, bertscore:") for line in told)


def test_a_protocol_that_was_stopped_ends_with_the_same_bytes(
    server: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_weights("minilm")
    results = []
    for place in ("stopped", "quiet"):
        (tmp_path / place).mkdir()
        monkeypatch.chdir(tmp_path / place)
        bench = cupcase_bench()
        if place == "stopped":
            with monkeypatch.context() as patch:
                patch.setattr(JudgeStep, "write", _stop)
                with pytest.raises(KeyboardInterrupt):
                    run("cupcase", bench, model=server.spec())
            assert not Path("paper/report").exists()
            made = len(server.seen)
            run("cupcase", bench, model=server.spec(), judge=server.spec())
            assert len(server.seen) == made
        else:
            run("cupcase", bench, model=server.spec(), judge=server.spec())
        results.append(folder_bytes(Path("paper")))
    assert results[0] == results[1]


def _stop(*_: object) -> None:
    raise KeyboardInterrupt


def test_what_an_endpoint_lacks_is_said_and_not_an_error(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_weights("minilm")
    bench = cupcase_bench()
    monkeypatch.setattr("hoofbeat.models.http_backend.score_by_echo", _unsupported)
    run("cupcase", bench, model=server.spec("silent"), limit=1)
    found = differences()
    assert "no log-probabilities here" in found["not answered"]
    assert found["sample"] == "the first 1 of 2"


async def _unsupported(*_: object) -> object:
    from hoofbeat.models.requests import Trouble  # noqa: PLC0415 - only this test speaks as a backend

    return Trouble(kind="unsupported", message="no log-probabilities here")


def test_a_benchmark_of_another_kind_is_refused(server: FaultServer) -> None:
    Path("asked.csv").write_text("question\nMay I swim?\n", encoding="utf-8")
    bench = hb.import_benchmark("asked.csv", "asked", progress=hb.SILENT)
    with pytest.raises(UsageError, match="no question of this benchmark has options"):
        run("cupcase", bench, model=server.spec())
    with pytest.raises(UsageError, match="takes one benchmark"):
        run("cupcase", [bench, bench], model=server.spec())
    with pytest.raises(UsageError, match="there is no preset 'cupcake'"):
        run("cupcake", bench, model=server.spec())
    assert not Path("paper").exists()


def test_a_folder_of_something_else_is_left_alone(server: FaultServer) -> None:
    bench = cupcase_bench()
    Path("mine").mkdir()
    Path("mine/notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(OutputError, match="not an earlier run"):
        run("cupcase", bench, "mine", model=server.spec())
    assert Path("mine/notes.txt").read_text(encoding="utf-8") == "mine"
