"""`hoofbeat ask`: search alone, with a model, from standard input, and what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from hoofbeat import teaching
from hoofbeat.cli.ask import command
from hoofbeat.corpus import import_corpus
from hoofbeat.errors import ArtefactError, UsageError
from hoofbeat.prompts import load_prompt
from hoofbeat.store import Ledger
from tests.answering.support import ScriptedServer
from tests.ask.test_ask_flow import FEVER, script
from tests.cli.support import environment, hoofbeat, json_of


@pytest.fixture(scope="module")
def handbooks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ask")
    files = sorted((teaching.cases_folder().parent / "handbooks").glob("*.md"))
    import_corpus(files, folder / "handbooks", workers=1)
    return folder


def test_search_alone_says_that_nothing_was_answered(handbooks: Path) -> None:
    done = hoofbeat("ask", "handbooks", FEVER, "--line", "bm25", "--k", "2", folder=handbooks)
    assert done.stdout.startswith("Research software, not for clinical use.")
    assert "No model was chosen" in done.stdout
    assert "[1] " in done.stdout
    assert "(bm25: place 1, " in done.stdout
    assert not (handbooks / ".hoofbeat").exists(), "without a model there is no ledger"


def test_a_model_answers_and_sources_are_compared(handbooks: Path, tmp_path: Path) -> None:
    with ScriptedServer(*script()) as server:
        words = ["--line", "bm25", "--model", server.spec("stub"), "--ledger", str(tmp_path / "ledger.sqlite")]
        found = json_of(hoofbeat("ask", "handbooks", FEVER, *words, "--json", folder=handbooks))
        calls = len(server.seen)
        told = hoofbeat("ask", "handbooks", FEVER, *words, folder=handbooks)
        assert len(server.seen) == calls, "the second time every call is in the ledger"
    assert found["ask"]["by"] == "institution"
    assert found["cited"]["answer"]["text"] == "Call at once [1]."
    assert len(found["agreement"]["sources"]) == 6
    assert [pair["label"] for pair in found["agreement"]["comparisons"] if pair["label"] != "Absent"] == ["Divergent"]
    assert "ANSWER by" in told.stdout
    assert "2 of 6 sources answer" in told.stdout
    assert ": Divergent (fever threshold; high significance)" in told.stdout
    assert f"{calls} from the ledger" in told.stderr
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        assert ledger.stats().calls == calls + 1  # one is what the endpoint was asked of its window
    assert any("8,192 tokens, assumed" in note for note in found["notes"])


def test_an_allowance_for_reasoning_is_sent(handbooks: Path, tmp_path: Path) -> None:
    with ScriptedServer(*script()) as server:
        words = ["--line", "bm25", "--by", "none", "--model", server.spec("stub"), "--ledger", str(tmp_path / "l.db")]
        hoofbeat("ask", "handbooks", FEVER, *words, "--reasoning", "77", folder=handbooks)
        sent = [each.body["max_tokens"] for each in server.seen if "max_tokens" in each.body]
    assert sent == [load_prompt("ask-case").max_tokens + 77]


def test_a_list_of_questions_is_asked_one_by_one(handbooks: Path) -> None:
    (handbooks / "asked.csv").write_text(f"question\n{FEVER}\nMay I drive?\n", encoding="utf-8")
    words = [str(handbooks / "handbooks"), str(handbooks / "asked.csv"), "--line", "bm25", "--k", "1", "--json"]
    done = CliRunner().invoke(command, words, catch_exceptions=False)
    assert [each["ask"]["text"] for each in json.loads(done.stdout)["asks"]] == [FEVER, "May I drive?"]


def test_the_case_may_come_from_standard_input(handbooks: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hoofbeat", "ask", "handbooks", "-", "--line", "bm25", "--k", "1", "--json"],
        cwd=handbooks,
        env=environment(),
        input=FEVER,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["ask"]["text"] == FEVER


@pytest.mark.parametrize(
    ("words", "error", "says"),
    [
        (["handbooks"], UsageError, "ask needs a corpus and a case"),
        (["handbooks", "  "], UsageError, "no case"),
        (["nowhere", "fever"], ArtefactError, "no such folder"),
        (["handbooks", "fever", "--line", "bm26"], UsageError, "bm26"),
        (["handbooks", "fever", "--line", "hyde > bm25"], UsageError, "asks a language model"),
        (["handbooks", "fever", "--by", "colour"], UsageError, "distinguished"),
        (["handbooks", "fever", "--pack", "cooking"], UsageError, "cooking"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    handbooks: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], error: type[Exception], says: str
) -> None:
    monkeypatch.chdir(handbooks)
    with pytest.raises(error, match=says):
        CliRunner().invoke(command, words, catch_exceptions=False)
