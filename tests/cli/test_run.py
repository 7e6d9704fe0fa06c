"""`hoofbeat run` as it is typed: differences before any call, one estimate, one JSON object, plain findings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.support import hoofbeat, json_of
from tests.cli.test_answer import choices
from tests.models.fault_server import FaultServer


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    return choices(tmp_path / "bench", 2)


def test_differences_and_the_estimate_come_before_any_call(tmp_path: Path, bench: Path) -> None:
    with FaultServer() as server:
        words = ["run", "clinbench", bench.name, "--model", server.spec(), "--judge", server.spec("judge")]
        done = hoofbeat(*words, "--estimate", folder=tmp_path)
        told = json_of(hoofbeat(*words, "--estimate", "--json", folder=tmp_path))
        assert not [seen for seen in server.seen if "messages" in seen.body]
    assert "data set: in the paper 2,014 questions of ClinBench; here 2 questions of bench, not imported" in done.stderr
    assert "image version: in the paper questions with their images; here not in this benchmark" in done.stderr
    assert told["estimate"]["calls"] == 2 * 3 + 2 * 3  # three runs, and an error type for each answer
    assert set(told["parts"]) == {"text: closed, letter", "errors: error-type"}
    assert not (tmp_path / "paper").exists()


def test_one_folder_one_report_one_object(tmp_path: Path, bench: Path) -> None:
    with FaultServer() as server:
        words = ["run", "clinbench", bench.name, "--model", server.spec(), "-o", "out"]
        done = hoofbeat(*words, folder=tmp_path)
        made = len(server.seen)
        told = json_of(hoofbeat(*words, "--json", folder=tmp_path))
        assert len(server.seen) == made
    assert "closed, letter, accuracy: " in done.stderr
    assert done.stdout.startswith("Wrote a report on 4 folders → out/report")
    assert (told["artefact"], told["kind"]) == ("out/report", "report")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["errors", "protocol", "report", "text"]


def test_what_is_wrong_is_said_in_words(tmp_path: Path, bench: Path) -> None:
    none = hoofbeat("run", "clinbank", bench.name, folder=tmp_path, code=2)
    assert "there is no preset 'clinbank'" in none.stderr
    assert "clinbench" in none.stderr
    (tmp_path / "released.csv").write_text("id,question\n1,Why?\n", encoding="utf-8")
    file = hoofbeat("run", "cupcase", "released.csv", "--model", "openai:gpt-4o", folder=tmp_path, code=2)
    assert "hoofbeat benchmark import" in file.stderr
