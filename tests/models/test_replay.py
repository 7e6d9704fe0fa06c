"""Replay files: an exported ledger answers what was asked before, rules answer the rest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hoofbeat.errors import InputError
from hoofbeat.models.replay import recording_of
from hoofbeat.models.requests import request_key
from hoofbeat.records import Failure
from hoofbeat.store.call_ledger import Ledger
from hoofbeat.store.tables import write_jsonl
from tests.models.fault_server import FaultServer
from tests.models.support import a_model, ask, chats, failure, ledger_in, reply_text


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with ledger_in(tmp_path) as opened:
        yield opened


def rules(tmp_path: Path, *lines: dict[str, object]) -> str:
    path = tmp_path / "rules.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return f"replay:{path}"


def test_an_exported_ledger_is_replayed_without_its_model(tmp_path: Path, ledger: Ledger) -> None:
    texts = [f"question {number}" for number in range(5)]
    pair = ("The diagnosis is", " gout")
    with FaultServer() as server, ledger_in(tmp_path, "first.db") as first:
        model = a_model(server.spec(), first)
        made = chats(model, texts)
        [scored] = model.run([pair], lambda both: model.loglikelihood(*both))
        [rows] = model.run([["fever", "cough"]], model.embed)
        write_jsonl(tmp_path / "export.jsonl", first.entries())
    replay = a_model(f"replay:{tmp_path / 'export.jsonl'}", ledger)
    assert [reply_text(result) for result in chats(replay, texts)] == [reply_text(result) for result in made]
    assert replay.run([pair], lambda both: replay.loglikelihood(*both)) == [scored]
    [again] = replay.run([["fever", "cough"]], replay.embed)
    assert not isinstance(again, Failure)
    assert not isinstance(rows, Failure)
    assert (again == rows).all()


def test_the_settings_of_a_request_count(tmp_path: Path, ledger: Ledger) -> None:
    with FaultServer() as server, ledger_in(tmp_path, "first.db") as first:
        chats(a_model(server.spec(), first), ["question"])
        write_jsonl(tmp_path / "export.jsonl", first.entries())
    replay = a_model(f"replay:{tmp_path / 'export.jsonl'}", ledger)
    [other] = replay.run([ask("question", temperature=0.5)], replay.chat)
    assert failure(other).kind == "bad-request"


def test_the_first_rule_that_fits_answers(tmp_path: Path, ledger: Ledger) -> None:
    spec = rules(
        tmp_path,
        {"contains": "fever", "text": "hot"},
        {"contains": "fever and cough", "text": "never"},
        {"contains": "long", "text": "cut o", "finish": "length"},
        {"contains": "", "text": "anything"},
    )
    results = chats(a_model(spec, ledger), ["fever and cough", "a long one", "else"])
    assert [reply_text(result) for result in results] == ["hot", "cut o", "anything"]
    assert getattr(results[1], "reply", None).finish == "length"  # type: ignore[union-attr]


def test_a_request_without_an_answer_is_a_failure(tmp_path: Path, ledger: Ledger) -> None:
    model = a_model(rules(tmp_path, {"contains": "fever", "text": "hot"}), ledger)
    assert failure(chats(model, ["rash"])[0]).kind == "bad-request"
    assert failure(model.run([["rash"]], model.embed)[0]).kind == "unsupported"


def test_a_changed_file_is_another_model(tmp_path: Path, ledger: Ledger) -> None:
    first = a_model(rules(tmp_path, {"contains": "", "text": "one"}), ledger)
    chats(first, ["question"])
    second = a_model(rules(tmp_path, {"contains": "", "text": "two"}), ledger)
    assert reply_text(chats(second, ["question"])[0]) == "two"


@pytest.mark.parametrize(
    "line",
    [
        {"text": "no words"},
        {"request": {"operation": "chat", "request": {}}, "reply": {"no": "text"}},
        {"request": {"operation": "sing", "request": {}}, "reply": {}},
        {"contains": 5},
    ],
)
def test_lines_that_are_nothing_are_named(tmp_path: Path, ledger: Ledger, line: dict[str, object]) -> None:
    with pytest.raises(InputError, match="1"):
        a_model(rules(tmp_path, line), ledger)


def test_a_missing_file_is_said(tmp_path: Path, ledger: Ledger) -> None:
    with pytest.raises(InputError, match="no such replay file"):
        a_model(f"replay:{tmp_path / 'none.jsonl'}", ledger)


def test_a_recording_says_who_wrote_it_and_is_found_by_the_keys_of_its_calls(tmp_path: Path, ledger: Ledger) -> None:
    header: dict[str, object] = {"recorded": {"by": "a strong model", "on": "1 May 2026", "context": 9000}}
    path = tmp_path / "rules.jsonl"
    spec = rules(tmp_path, header)
    model = a_model(spec, ledger)
    assert model.identity == "recorded: written by a strong model on 1 May 2026"
    assert model.window.tokens == 9000
    key, _ = request_key(model.identity, "chat", ask("fever?").content())
    rules(tmp_path, header, {"key": key, "prompt": "p@1", "reply": {"text": "38 °C"}})
    recorded = a_model(spec, ledger)
    [found, missing] = recorded.run([ask("fever?"), ask("cough?")], recorded.chat)
    assert reply_text(found) == "38 °C"
    assert failure(missing).kind == "bad-request"
    recording = recording_of(path)
    assert recording is not None
    assert recording.on == "1 May 2026"
    assert recording_of(tmp_path / "none.jsonl") is None
