"""The command as a person meets it: wrong input on purpose, a full disk, Ctrl-C; and as a machine reads it."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from hoofbeat import teaching
from hoofbeat.cli import cli
from hoofbeat.corpus import import_corpus
from hoofbeat.store import open_artefact
from tests.cli.support import environment, hoofbeat, invented_benchmark, json_of, start
from tests.models.fault_server import FaultServer


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    return invented_benchmark(tmp_path / "bench", 12)


@contextlib.contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    """A small file system of its own at the folder; skips where the machine does not let us mount."""
    folder.mkdir(exist_ok=True)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("this machine does not let tests mount a small file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_every_verb_has_help_that_says_what_it_does() -> None:
    context = click.Context(cli)
    for verb in cli.list_commands(context):
        command = cli.get_command(context, verb)
        assert command is not None, verb
        assert command.help, verb


def test_a_wrong_path_is_said_with_what_to_do(tmp_path: Path) -> None:
    done = hoofbeat("answer", "nowhere", folder=tmp_path, code=1)
    assert "there is no such folder" in done.stderr
    assert "nowhere" in done.stderr
    assert "do:" in done.stderr


def test_a_folder_that_is_not_ours_is_named_as_such(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    done = hoofbeat("judge", "mine", folder=tmp_path, code=1)
    assert "not a Hoofbeat artefact" in done.stderr


def test_an_artefact_of_another_kind_is_refused(tmp_path: Path, bench: Path) -> None:
    done = hoofbeat("judge", "bench", folder=tmp_path, code=1)
    assert "the kind of this folder is benchmark, but run or judgments or rankings is needed" in done.stderr


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("opnai:gpt", "did you mean openai"),
        ("embedded:nothing", "there is no embedded model 'nothing'"),
        ("http://127.0.0.1:1/v1", "lacks its model name"),
        ("replay:none.jsonl", "no such replay file"),
    ],
)
def test_a_wrong_model_name_is_said_before_any_work(tmp_path: Path, bench: Path, spec: str, says: str) -> None:
    done = start(["answer", "bench", "--model", spec, "-o", "out"], tmp_path)
    _, err = done.communicate(timeout=60)
    assert done.returncode in (1, 2)
    assert says in err
    assert not (tmp_path / "out").exists()


def test_no_key_names_the_variable_to_set(tmp_path: Path, bench: Path) -> None:
    done = hoofbeat("answer", "bench", "--model", "openai:gpt-4o", folder=tmp_path, code=1)
    assert "OPENAI_API_KEY" in done.stderr


def test_an_endpoint_out_of_reach_is_said(tmp_path: Path) -> None:
    invented_benchmark(tmp_path / "bench", 2)
    (tmp_path / "hoofbeat.toml").write_text(
        '[models.gone]\nspec = "http://127.0.0.1:9/v1#x"\nattempts = 1\n', encoding="utf-8"
    )
    done = hoofbeat("answer", "bench", "--model", "gone", "-o", "out", folder=tmp_path, code=1)
    assert "can't be reached" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_full_disk_stops_readably_and_what_was_called_is_not_called_again(tmp_path: Path, bench: Path) -> None:
    invented_benchmark(tmp_path / "large", 150)
    with FaultServer() as server, mounted(tmp_path / "small", "size=256k") as small:
        words = ["answer", "large", "--model", server.spec(), "-o", "small/out", "--ledger", "ledger.sqlite"]
        (small / "ballast").write_bytes(b"x" * 250_000)
        done = hoofbeat(*words, folder=tmp_path, code=1)
        assert "No space left" in done.stderr
        assert "do:" in done.stderr
        assert [path.name for path in small.iterdir()] == ["ballast"]
        (small / "ballast").unlink()
        asked = server.asked.total()
        hoofbeat(*words, folder=tmp_path)
        assert server.asked.total() == asked == 150


def test_a_full_disk_under_the_ledger_stops_readably(tmp_path: Path) -> None:
    invented_benchmark(tmp_path / "large", 600)
    with FaultServer() as server, mounted(tmp_path / "small", "size=128k"):
        done = hoofbeat(
            "answer", "large", "--model", server.spec(), "--ledger", "small/l.sqlite", folder=tmp_path, code=1
        )
    assert "the ledger can't be written" in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_read_only_folder_is_said(tmp_path: Path, bench: Path) -> None:
    with FaultServer() as server, mounted(tmp_path / "fixed", "ro"):
        words = ["answer", "bench", "--model", server.spec(), "-o", "fixed/out", "--ledger", "ledger.sqlite"]
        done = hoofbeat(*words, folder=tmp_path, code=1)
    assert "Read-only file system" in done.stderr
    assert "-o" in done.stderr


def test_what_hoofbeat_did_not_make_is_not_overwritten(tmp_path: Path, bench: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("years of work", encoding="utf-8")
    with FaultServer() as server:
        done = hoofbeat("answer", "bench", "--model", server.spec(), "-o", "out", folder=tmp_path, code=1)
    assert "not a Hoofbeat folder" in done.stderr
    assert (tmp_path / "out" / "thesis.txt").read_text(encoding="utf-8") == "years of work"


def test_ctrl_c_stops_cleanly_and_the_same_command_goes_on(tmp_path: Path) -> None:
    invented_benchmark(tmp_path / "large", 300)
    with FaultServer(delay=0.1) as server:
        words = ["answer", "large", "--model", server.spec(), "-o", "out"]
        process = start(words, tmp_path)
        while server.answered.total() < 20 and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 130
        assert "stopped by Ctrl-C" in err
        assert "Traceback" not in err
        assert not (tmp_path / "out").exists()
        kept = json_of(hoofbeat("ledger", "stats", "--json", folder=tmp_path))["calls"]
        assert kept >= 12
        before = server.asked.total()
        done = hoofbeat(*words, "--json", folder=tmp_path)
        assert json_of(done)["counts"]["kept"] == 300
        assert server.asked.total() - before == 300 - kept


def test_a_budget_in_calls_is_never_exceeded_and_can_be_raised(tmp_path: Path, bench: Path) -> None:
    with FaultServer() as server:
        words = ["answer", "bench", "--model", server.spec(), "-o", "out"]
        done = hoofbeat(*words, "--budget", "5calls", folder=tmp_path, code=3)
        assert "the budget of 5 calls is spent" in done.stderr
        assert server.asked.total() == 5
        assert not (tmp_path / "out").exists()
        hoofbeat(*words, "--budget", "7calls", folder=tmp_path)
        assert server.asked.total() == 12


def test_estimate_says_what_is_then_called(tmp_path: Path, bench: Path) -> None:
    with FaultServer() as server:
        words = ["answer", "bench", "--model", server.spec(), "-o", "out"]
        estimate = json_of(hoofbeat(*words, "--estimate", "--json", folder=tmp_path))["estimate"]
        assert (estimate["calls"], estimate["cached"]) == (12, 0)
        assert server.asked.total() == 0
        hoofbeat(*words, folder=tmp_path)
        assert server.asked.total() == 12
        again = json_of(hoofbeat(*words, "--estimate", "--json", folder=tmp_path))["estimate"]
        assert (again["calls"], again["cached"]) == (0, 12)


def test_a_batch_folder_takes_two_runs_of_the_same_command(tmp_path: Path, bench: Path) -> None:
    words = ["answer", "bench", "--model", "batch:posted#gpt-4o", "-o", "out"]
    done = hoofbeat(*words, folder=tmp_path, code=4)
    assert "12 requests were written to requests-001.jsonl" in done.stdout
    assert "error" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("next: have them answered, put the answers file")
    told = json_of(hoofbeat(*words, "--json", folder=tmp_path, code=4))
    assert (told["exit"], told["batch"]["written"], told["batch"]["waiting"]) == (4, 0, 12)
    assert (told["batch"]["round"], told["batch"]["files"]) == (1, ["requests-001.jsonl"])
    assert "error" not in told
    lines = (tmp_path / "posted" / "requests-001.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(list((tmp_path / "posted").iterdir())) == 1
    answers = []
    for line in lines:
        request = json.loads(line)
        assert request["method"] == "POST"
        assert request["url"] == "/v1/chat/completions"
        message = {"role": "assistant", "content": f"answer to {request['custom_id'][:6]}"}
        body = {"choices": [{"message": message, "finish_reason": "stop"}], "usage": {"prompt_tokens": 5}}
        answers.append({"custom_id": request["custom_id"], "response": {"status_code": 200, "body": body}})
    text = "\n".join([*(json.dumps(answer) for answer in answers[:9]), "half a li"])
    (tmp_path / "posted" / "output.jsonl").write_text(text, encoding="utf-8")
    done = hoofbeat(*words, folder=tmp_path, code=4)
    assert "3 requests were written to requests-002.jsonl" in done.stdout
    assert "output.jsonl: 1 of 10 lines can't be used: line 10 (" in done.stderr
    text = "\n".join(json.dumps(answer) for answer in answers[9:])
    (tmp_path / "posted" / "output-2.jsonl").write_text(text, encoding="utf-8")
    done = hoofbeat(*words, "--json", folder=tmp_path)
    assert json_of(done)["counts"]["kept"] == 12


def test_json_is_one_object_on_standard_output_and_errors_are_objects_too(tmp_path: Path, bench: Path) -> None:
    with FaultServer() as server:
        done = hoofbeat("answer", "bench", "--model", server.spec(), "--json", folder=tmp_path)
    value = json_of(done)
    assert {"artefact", "kind", "counts", "cost", "seconds"} <= set(value)
    assert value["cost"]["calls"] == 12
    failed = hoofbeat("answer", "nowhere", "--json", folder=tmp_path, code=1)
    assert json_of(failed)["exit"] == 1


def test_usage_errors_exit_with_two(tmp_path: Path) -> None:
    done = hoofbeat("answr", folder=tmp_path, code=2)
    assert "answr" in done.stderr
    hoofbeat("answer", folder=tmp_path, code=2)
    hoofbeat(folder=tmp_path, code=2)


def test_standard_output_that_is_full_or_closed_does_not_crash(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "hoofbeat", "weights", "list", "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
            check=False,
        )
    assert done.returncode != 0
    assert "Traceback" not in done.stderr


def test_the_whole_flow_by_hand_with_the_documented_verbs(tmp_path: Path) -> None:
    import_corpus([teaching.cases_folder()], tmp_path / "cases")
    with FaultServer() as server:
        model = ["--model", server.spec()]
        hoofbeat("build", "teaching", "cases", "-o", "bench", folder=tmp_path)
        ranked = json_of(hoofbeat("retrieve", "bench", "--with", "bm25", "--json", folder=tmp_path))
        assert ranked["metrics"]["R@10"]["value"] > 0.9
        hoofbeat("answer", "bench", "--condition", "closed", "--condition", "bm25 @2", "--condition", "oracle", *model,
                 "-o", "run", folder=tmp_path)  # fmt: skip
        judged = json_of(hoofbeat("judge", "run", *model, "-o", "judged", "--json", folder=tmp_path))
        assert judged["counts"]["kept"] == 60
        report = json_of(hoofbeat("report", "rankings", "judged", "-o", "report", "--json", folder=tmp_path))
    page = (Path(tmp_path) / report["artefact"] / "report.html").read_text(encoding="utf-8")
    assert "Not for clinical use" in page
    hoofbeat("verify", "cases", "bench", "rankings", "run", "judged", "report", folder=tmp_path)
    (tmp_path / "run" / "answers.jsonl").write_text("", encoding="utf-8")
    done = hoofbeat("verify", "run", folder=tmp_path, code=1)
    assert "answers.jsonl has changed" in done.stdout
    assert open_artefact(tmp_path / "judged").verify() == []
