"""Batch folders: requests out as provider files, answers in, nothing asked twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hoofbeat.errors import BatchPending, InputError, OutputError
from hoofbeat.models import StructuredReply
from hoofbeat.models.model import model_facts
from hoofbeat.store.call_ledger import Ledger
from tests.models.support import SCHEMA, a_model, ask, chats, failure, ledger_in, reply_text

TEXTS = [f"question {number}" for number in range(6)]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with ledger_in(tmp_path) as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "batch"


def requests_in(folder: Path, number: int) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"requests-{number:03d}.jsonl").read_text().splitlines()]


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def answer(request: dict[str, Any], text: str = "") -> dict[str, Any]:
    said = text or "about " + request["body"]["messages"][0]["content"]
    body = {
        "choices": [{"message": {"role": "assistant", "content": said}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    }
    response = {"status_code": 200, "request_id": "r", "body": body}
    return {"id": "batch_req_1", "custom_id": request["custom_id"], "response": response, "error": None}


def put(folder: Path, name: str, lines: list[dict[str, Any]]) -> None:
    (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))


def run(folder: Path, ledger: Ledger, texts: list[str] | None = None) -> list[Any]:
    return chats(a_model(f"batch:{folder}#gpt-x", ledger), TEXTS if texts is None else texts)


def test_the_round_trip(folder: Path, ledger: Ledger) -> None:
    with pytest.raises(BatchPending) as pending:
        run(folder, ledger)
    assert pending.value.exit_code == 4
    assert "6 requests" in str(pending.value)
    asked = requests_in(folder, 1)
    put(folder, "output.jsonl", [answer(request) for request in reversed(asked)])
    results = run(folder, ledger)
    assert [reply_text(result) for result in results] == [f"about {text}" for text in TEXTS]
    (folder / "output.jsonl").unlink()
    assert run(folder, ledger) == results, "the answers are in the ledger now"
    assert files(folder) == ["requests-001.jsonl"]


def test_the_requests_file_is_what_providers_take(folder: Path, ledger: Ledger) -> None:
    with pytest.raises(BatchPending):
        run(folder, ledger)
    asked = requests_in(folder, 1)
    ids = [request["custom_id"] for request in asked]
    assert len(set(ids)) == 6
    assert all(len(name) <= 64 for name in ids)
    for request in asked:
        assert set(request) == {"custom_id", "method", "url", "body"}
        assert (request["method"], request["url"]) == ("POST", "/v1/chat/completions")
        assert request["body"]["model"] == "gpt-x"
        assert request["body"]["max_completion_tokens"] == 512
        assert [set(message) for message in request["body"]["messages"]] == [{"role", "content"}]


def test_the_same_requests_give_the_same_file(tmp_path: Path) -> None:
    written = []
    for name, texts in (("a", TEXTS), ("b", TEXTS[::-1])):
        with ledger_in(tmp_path, f"{name}.db") as ledger, pytest.raises(BatchPending):
            run(tmp_path / name, ledger, texts)
        written.append((tmp_path / name / "requests-001.jsonl").read_bytes())
    assert written[0] == written[1]


def test_requests_without_answers_are_waited_for(folder: Path, ledger: Ledger) -> None:
    for _ in range(3):
        with pytest.raises(BatchPending):
            run(folder, ledger)
    assert files(folder) == ["requests-001.jsonl"]
    with pytest.raises(BatchPending, match=r"1 request was written.*6 earlier"):
        run(folder, ledger, [*TEXTS, "a new one"])
    assert len(requests_in(folder, 2)) == 1


def test_partial_answers_are_taken_and_the_rest_is_asked_once_more(folder: Path, ledger: Ledger) -> None:
    with pytest.raises(BatchPending):
        run(folder, ledger)
    asked = requests_in(folder, 1)
    put(folder, "part.jsonl", [answer(request) for request in asked[:4]])
    for _ in range(3):
        with pytest.raises(BatchPending):
            run(folder, ledger)
    assert files(folder) == ["part.jsonl", "requests-001.jsonl", "requests-002.jsonl"]
    missing = {request["custom_id"][:40] for request in asked[4:]}
    assert {request["custom_id"][:40] for request in requests_in(folder, 2)} == missing
    put(folder, "rest.jsonl", [answer(request) for request in requests_in(folder, 2)])
    assert [reply_text(result) for result in run(folder, ledger)] == [f"about {text}" for text in TEXTS]


def test_an_error_line_is_asked_again_exactly_once_a_round(folder: Path, ledger: Ledger) -> None:
    with pytest.raises(BatchPending):
        run(folder, ledger)
    asked = requests_in(folder, 1)
    expired = {"custom_id": asked[0]["custom_id"], "response": None, "error": {"code": "batch_expired"}}
    busy = {"custom_id": asked[1]["custom_id"], "response": {"status_code": 503, "body": {}}, "error": None}
    put(folder, "output.jsonl", [expired, busy, *(answer(request) for request in asked[2:])])
    for _ in range(3):
        with pytest.raises(BatchPending):
            run(folder, ledger)
    assert files(folder) == ["output.jsonl", "requests-001.jsonl", "requests-002.jsonl"]
    assert len(requests_in(folder, 2)) == 2

    again = requests_in(folder, 2)
    put(folder, "output-2.jsonl", [{**expired, "custom_id": again[0]["custom_id"]}, answer(again[1])])
    with pytest.raises(BatchPending):
        run(folder, ledger)
    assert len(requests_in(folder, 3)) == 1
    put(folder, "output-3.jsonl", [answer(requests_in(folder, 3)[0])])
    assert [reply_text(result) for result in run(folder, ledger)] == [f"about {text}" for text in TEXTS]


def test_an_error_that_no_asking_mends_is_a_failure(folder: Path, ledger: Ledger) -> None:
    with pytest.raises(BatchPending):
        run(folder, ledger, TEXTS[:2])
    first, second = requests_in(folder, 1)
    error = {"error": {"message": "maximum context length", "code": "context_length_exceeded"}}
    refused = {"custom_id": first["custom_id"], "response": {"status_code": 400, "body": error}, "error": None}
    put(folder, "output.jsonl", [refused, answer(second)])
    kinds = sorted(type(result).__name__ for result in run(folder, ledger, TEXTS[:2]))
    assert kinds == ["CallResult", "Failure"]
    [failed] = [result for result in run(folder, ledger, TEXTS[:2]) if type(result).__name__ == "Failure"]
    assert failure(failed).kind == "context-overflow"
    assert files(folder) == ["output.jsonl", "requests-001.jsonl"]


def test_a_repair_is_a_round_of_its_own(folder: Path, ledger: Ledger) -> None:
    def go() -> list[Any]:
        model = a_model(f"batch:{folder}#gpt-x", ledger)
        return model.run([ask("judge this", schema=SCHEMA)], model.chat_json)

    with pytest.raises(BatchPending):
        go()
    put(folder, "one.jsonl", [answer(requests_in(folder, 1)[0], text="hm")])
    with pytest.raises(BatchPending):
        go()
    put(folder, "two.jsonl", [answer(requests_in(folder, 2)[0], text='{"label": "mismatch"}')])
    [result] = go()
    assert isinstance(result, StructuredReply)
    assert result.value == {"label": "mismatch"}


def test_a_removed_requests_file_is_asked_anew_and_no_file_is_overwritten(folder: Path, ledger: Ledger) -> None:
    with pytest.raises(BatchPending):
        run(folder, ledger, TEXTS[:3])
    with pytest.raises(BatchPending):
        run(folder, ledger)
    kept = requests_in(folder, 2)
    (folder / "requests-001.jsonl").unlink()
    with pytest.raises(BatchPending):
        run(folder, ledger)
    assert files(folder) == ["requests-002.jsonl", "requests-003.jsonl"]
    assert requests_in(folder, 2) == kept
    assert len(requests_in(folder, 3)) == 3


@pytest.mark.parametrize("content", [b"not json\n", b'{"id": 1}\n', b"\xff\xfe\n", b"[" * 100_000 + b"\n"])
def test_a_garbage_answers_file_is_named_and_answers_nothing(folder: Path, ledger: Ledger, content: bytes) -> None:
    with pytest.raises(BatchPending):
        run(folder, ledger)
    (folder / "answers.jsonl").write_bytes(content)
    with pytest.raises(BatchPending, match=r"6 requests in requests-001.jsonl still wait") as caught:
        run(folder, ledger)
    [note] = caught.value.notes
    assert note.startswith("answers.jsonl: 1 of 1 lines can't be used: line 1 (")
    assert files(folder) == ["answers.jsonl", "requests-001.jsonl"]


@pytest.mark.parametrize(
    "broken",
    [
        '{"custom_id": "half of a li',
        "null",
        '{"custom_id": 7}',
        '{"custom_id": "somebody-elses", "response": null, "error": null}',
        '{"custom_id": "%s", "response": {"status_code": "two hundred"}}',
        '{"custom_id": "%s", "result": {"type": "succeeded", "message": {"content": "no list"}}}',
    ],
)
def test_a_broken_line_costs_that_line_only(folder: Path, ledger: Ledger, broken: str) -> None:
    with pytest.raises(BatchPending):
        run(folder, ledger)
    asked = requests_in(folder, 1)
    lines = [json.dumps(answer(request)) for request in asked]
    lines[2] = broken.replace("%s", asked[2]["custom_id"])
    (folder / "output.jsonl").write_bytes(b"\xef\xbb\xbf" + "\r\n\r\n".join(lines).encode())
    with pytest.raises(BatchPending, match="1 request was written to requests-002") as caught:
        run(folder, ledger)
    [note] = caught.value.notes
    assert note.startswith("output.jsonl: 1 of 6 lines can't be used: line 5 (")
    [again] = requests_in(folder, 2)
    assert again["custom_id"][:40] == asked[2]["custom_id"][:40]
    put(folder, "rest.jsonl", [answer(again)])
    assert [reply_text(result) for result in run(folder, ledger)] == [f"about {text}" for text in TEXTS]


def test_a_second_and_different_answer_to_a_request_is_told_and_does_not_count(folder: Path, ledger: Ledger) -> None:
    with pytest.raises(BatchPending):
        run(folder, ledger, ["one"])
    [asked] = requests_in(folder, 1)
    put(folder, "output.jsonl", [answer(asked, "first"), answer(asked, "first"), answer(asked, "planted")])
    model = a_model(f"batch:{folder}#gpt-x", ledger)
    assert reply_text(chats(model, ["one"])[0]) == "first"
    [note] = model.notes
    assert "1 of 3 lines can't be used: line 3 (a second, different answer" in note


def test_an_answer_that_shows_another_request_is_none_of_ours(folder: Path, ledger: Ledger) -> None:
    spec = f"batch:{folder}?format=vertex#gemini-x"
    with pytest.raises(BatchPending):
        chats(a_model(spec, ledger), ["one", "two"])
    asked = requests_in(folder, 1)
    response = {"candidates": [{"content": {"parts": [{"text": "said"}]}, "finishReason": "STOP"}]}
    lines = [{**each, "status": "", "response": response} for each in asked]
    lines[1]["request"]["contents"][0]["parts"][0]["text"] = "another question"
    put(folder, "output.jsonl", lines)
    with pytest.raises(BatchPending, match="1 request was written") as caught:
        chats(a_model(spec, ledger), ["one", "two"])
    assert "it answers another request than ours with this id" in caught.value.notes[0]


def test_replies_of_another_model_are_counted(folder: Path, ledger: Ledger) -> None:
    with pytest.raises(BatchPending):
        run(folder, ledger, ["one", "two", "three"])
    lines = [answer(asked) for asked in requests_in(folder, 1)]
    for line, name in zip(lines, ("gpt-x-2026-01-02", "tiny", "tiny"), strict=True):
        line["response"]["body"]["model"] = name
    put(folder, "output.jsonl", lines)
    for _ in ("from the folder", "from the ledger"):
        model = a_model(f"batch:{folder}#gpt-x", ledger)
        chats(model, ["one", "two", "three"])
        assert model.others == {"tiny": 2}
        assert model_facts({"model": model})["other_models"] == {"model": {"tiny": 2}}


def test_all_that_one_command_asks_is_one_file(folder: Path, ledger: Ledger) -> None:
    model = a_model(f"batch:{folder}#gpt-x", ledger)
    with pytest.raises(BatchPending, match="4 requests"):
        chats(model, TEXTS[:4])
    with pytest.raises(BatchPending) as caught:
        chats(model, TEXTS[3:])
    assert (caught.value.written, caught.value.waiting, caught.value.round) == (2, 0, 1)
    with pytest.raises(BatchPending) as caught:
        chats(model, TEXTS[:2])
    assert (caught.value.written, caught.value.waiting) == (0, 2)
    assert files(folder) == ["requests-001.jsonl"]
    asked = requests_in(folder, 1)
    assert len({request["custom_id"] for request in asked}) == 6
    put(folder, "part.jsonl", [answer(request) for request in asked[:5]])
    with pytest.raises(BatchPending, match=r"1 request was written to requests-002.jsonl"):
        chats(model, TEXTS)
    assert len(requests_in(folder, 1)) == 6, "what was answered stays as it was"


def test_a_damaged_requests_file_is_named(folder: Path, ledger: Ledger) -> None:
    with pytest.raises(BatchPending):
        run(folder, ledger)
    with (folder / "requests-001.jsonl").open("ab") as stream:
        stream.write(b'{"custom_id": ')
    with pytest.raises(InputError, match="line 7") as caught:
        run(folder, ledger)
    assert "requests-001.jsonl" in str(caught.value)


def test_the_message_names_step_round_and_what_is_left(folder: Path, ledger: Ledger) -> None:
    model = a_model(f"batch:{folder}#gpt-x", ledger)
    with pytest.raises(BatchPending) as caught:
        model.run([ask(text) for text in TEXTS], model.chat, title="write the question")
    pending = caught.value
    assert pending.what == "6 requests were written to requests-001.jsonl for the step “write the question” (round 1)"
    assert pending.details == {
        "folder": str(folder), "files": ["requests-001.jsonl"], "written": 6, "waiting": 0,
        "step": "write the question", "round": 1, "notes": [],
    }  # fmt: skip
    put(folder, "part.jsonl", [answer(request) for request in requests_in(folder, 1)[:4]])
    with pytest.raises(BatchPending, match=r"2 requests were written to requests-002.jsonl.*\(round 2\)"):
        model.run([ask(text) for text in TEXTS], model.chat, title="write the question")
    with pytest.raises(BatchPending, match=r"2 requests in requests-002.jsonl.*still wait"):
        model.run([ask(text) for text in TEXTS], model.chat, title="write the question")


def test_a_garbled_answer_is_asked_again(folder: Path, ledger: Ledger) -> None:
    with pytest.raises(BatchPending):
        run(folder, ledger, TEXTS[:1])
    [request] = requests_in(folder, 1)
    odd = {"custom_id": request["custom_id"], "response": {"status_code": 200, "body": {"what": 1}}, "error": None}
    put(folder, "odd.jsonl", [odd])
    with pytest.raises(BatchPending):
        run(folder, ledger, TEXTS[:1])
    assert len(requests_in(folder, 2)) == 1


def test_large_work_is_cut_into_files(folder: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hoofbeat.models.batch._MAX_REQUESTS_PER_FILE", 4)
    with pytest.raises(BatchPending):
        run(folder, ledger)
    assert [len(requests_in(folder, number)) for number in (1, 2)] == [4, 2]
    monkeypatch.setattr("hoofbeat.models.batch._MAX_BYTES_PER_FILE", 900)
    with pytest.raises(BatchPending):
        run(folder, ledger, ["another " + "x" * 300 + str(number) for number in range(3)])
    assert [len(requests_in(folder, number)) for number in (3, 4, 5)] == [1, 1, 1]


def test_a_file_in_the_folders_place_is_said(tmp_path: Path, ledger: Ledger) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError):
        run(tmp_path / "file", ledger)


def test_other_operations_are_not_to_be_had(folder: Path, ledger: Ledger) -> None:
    model = a_model(f"batch:{folder}#gpt-x", ledger)
    assert failure(model.run([["text"]], model.embed)[0]).kind == "unsupported"
    assert failure(model.run(["text"], lambda text: model.loglikelihood(text, "x"))[0]).kind == "unsupported"


def test_answers_whose_ids_match_no_request_are_told_and_answer_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "batch"
    with ledger_in(tmp_path) as ledger:
        with pytest.raises(BatchPending):
            chats(a_model(f"batch:{folder}#m", ledger), ["asked"])
        stray = {"custom_id": f"{'0' * 40}-001", "response": {"status_code": 200, "body": {"choices": []}}}
        (folder / "answers.jsonl").write_text(json.dumps(stray) + "\n")
        with pytest.raises(BatchPending) as caught:
            chats(a_model(f"batch:{folder}#m", ledger), ["asked"])
    assert "not the id of a request in requests-001.jsonl" in caught.value.notes[0]
    assert [path.name for path in folder.glob("requests-*")] == ["requests-001.jsonl"]  # still waited for
