"""Everything an endpoint can do wrong, one at a time and all together: survived, told apart, counted, nothing lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from hoofbeat.errors import ModelError
from hoofbeat.models import StructuredReply
from hoofbeat.models.http_backend import HttpBackend
from hoofbeat.models.wire import classify, read_chat, retry_after_seconds
from hoofbeat.records import Failure
from hoofbeat.store.call_ledger import Ledger
from tests.models.fault_server import FaultServer
from tests.models.support import SCHEMA, a_model, ask, chats, failure, ledger_in, reply_text


@pytest.fixture(scope="module")
def server() -> Iterator[FaultServer]:
    with FaultServer() as running:
        yield running


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with ledger_in(tmp_path) as opened:
        yield opened


PASSING = {
    "429": "rate-limited",
    "429:0.2": "rate-limited",
    "429date:1": "rate-limited",
    "500": "server-error",
    "503": "server-error",
    "503:0.2": "server-error",
    "error-200": "server-error",
    "hang": "timeout",
    "drip": "timeout",
    "cut": "connection",
    "garbage": "garbled",
    "deep": "garbled",
    "no-choices": "garbled",
    "not-a-completion": "garbled",
}


@pytest.mark.parametrize("fault", PASSING)
def test_a_passing_fault_is_survived_and_counted(server: FaultServer, ledger: Ledger, fault: str) -> None:
    model = a_model(server.spec(), ledger, timeout=0.5)
    text = f"passing fault={fault},ok"
    assert reply_text(chats(model, [text])[0]).startswith("answer ")
    assert server.asked[text] == 2
    assert dict(model.troubles) == {PASSING[fault]: 1}
    assert model.retries == 1
    assert ledger.stats().troubles == {model.identity: {PASSING[fault]: 1}}
    assert model.made == 1


@pytest.mark.parametrize("fault", PASSING)
def test_a_lasting_fault_becomes_a_failure_of_its_kind(server: FaultServer, ledger: Ledger, fault: str) -> None:
    model = a_model(server.spec(), ledger, timeout=0.5)
    text = f"lasting fault={fault}"
    result = failure(chats(model, [text])[0])
    assert (result.kind, result.attempts) == (PASSING[fault], 2)
    assert (model.troubles.total(), model.retries) == (2, 1), "of two attempts that failed, one was a retry"
    assert result.message
    assert server.asked[text] == 2
    assert ledger.stats().calls == 0, "what brought no reply is not kept, so that the next run asks again"


FINAL = {
    "400": "bad-request",
    "501": "server-error",
    "policy": "refusal",
    "overflow-openai": "context-overflow",
    "overflow-llama": "context-overflow",
}


@pytest.mark.parametrize("fault", FINAL)
def test_what_another_attempt_cannot_mend_is_not_tried_again(server: FaultServer, ledger: Ledger, fault: str) -> None:
    model = a_model(server.spec(), ledger)
    text = f"final fault={fault}"
    result = failure(chats(model, [text])[0])
    assert (result.kind, result.attempts) == (FINAL[fault], 1)
    assert model.retries == 0
    assert server.asked[text] == 1
    assert dict(model.troubles) == {FINAL[fault]: 1}


@pytest.mark.parametrize("fault", ["refusal", "filter", "words"])
def test_a_refusal_is_a_failure_that_was_paid_and_is_kept(server: FaultServer, ledger: Ledger, fault: str) -> None:
    model = a_model(server.spec(), ledger)
    text = f"refused fault={fault}"
    first, second = chats(model, [text])[0], chats(model, [text])[0]
    assert failure(first).kind == "refusal"
    assert first == second
    assert server.asked[text] == 1
    assert (model.made, model.cached, ledger.stats().calls) == (1, 1, 1)


@pytest.mark.parametrize("fault", ["401", "404", "no-model", "redirect", "quota"])
def test_an_unusable_model_stops_the_run_at_once(server: FaultServer, ledger: Ledger, fault: str) -> None:
    model = a_model(server.spec(), ledger, start=1)
    texts = [f"{number} unusable fault={fault}" for number in range(20)]
    with pytest.raises(ModelError) as caught:
        chats(model, texts)
    assert caught.value.fix
    assert sum(server.asked[text] for text in texts) == 1


@contextmanager
def a_mover(target: str) -> Iterator[tuple[str, list[str]]]:
    """A server that sends every GET on to another address, or answers `{}` without one; and the keys it got."""
    keys: list[str] = []

    class Mover(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            keys.append(self.headers.get("Authorization", ""))
            self.send_response(302 if target else 200)
            self.send_header("Location", f"{target}{self.path}")
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Mover)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", keys
    finally:
        server.shutdown()
        server.server_close()


def test_a_key_does_not_follow_a_redirect(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOFBEAT_API_KEY", "sk-only-for-the-first")
    with a_mover("") as (elsewhere, keys_elsewhere), a_mover(elsewhere) as (address, keys):
        backend = a_model(f"{address}/v1#m", ledger).backend
        assert isinstance(backend, HttpBackend)
        assert backend.served_window() == 0
    assert keys == ["Bearer sk-only-for-the-first"] * 2, "the list of models, and llama.cpp's settings"
    assert keys_elsewhere == []


def test_an_endpoint_out_of_reach_stops_the_run(ledger: Ledger) -> None:
    with FaultServer() as gone:
        spec = gone.spec()
    with pytest.raises(ModelError, match="can't be reached"):
        chats(a_model(spec, ledger), [f"question {number}" for number in range(20)])


def test_all_faults_at_once_lose_nothing(server: FaultServer, ledger: Ledger) -> None:
    lasting = {**PASSING, **FINAL, "refusal": "refusal", "filter": "refusal", "words": "refusal"}
    good = [f"storm {number} good" for number in range(60)]
    mended = [f"storm mended fault={fault},ok" for fault in PASSING]
    failing = [f"storm failing fault={fault}" for fault in lasting]
    texts = [text for number in range(60) for text in (*good[number : number + 1], *(mended + failing)[number::60])]
    model = a_model(server.spec(), ledger, timeout=0.7)
    results = dict(zip(texts, chats(model, texts), strict=True))

    assert {text for text in texts if not isinstance(results[text], Failure)} == {*good, *mended}
    for text, kind in zip(failing, lasting.values(), strict=True):
        assert failure(results[text]).kind == kind
    assert [server.asked[text] for text in good] == [1] * len(good)
    assert sum(model.troubles.values()) == len(PASSING) * 3 + len(FINAL)

    asked = len(server.seen)
    again = chats(a_model(server.spec(), ledger, timeout=0.7), [*good, *mended])
    assert again == [results[text] for text in (*good, *mended)]
    assert len(server.seen) == asked


@pytest.mark.parametrize("fault", ["429:0.4", "503:0.4", "429date:2"])
def test_retry_after_is_honoured(server: FaultServer, ledger: Ledger, fault: str) -> None:
    text = f"wait fault={fault},ok"
    chats(a_model(server.spec(), ledger), [text])
    first, second = (seen.at for seen in server.seen if seen.text == text)
    assert second - first >= (0.4 if fault.endswith("0.4") else 0.9)  # an HTTP date counts whole seconds


def test_retry_after_on_a_429_holds_back_every_call(server: FaultServer, ledger: Ledger) -> None:
    texts = ["hold fault=429:0.5,ok", *(f"hold {number}" for number in range(6))]
    chats(a_model(server.spec(), ledger, start=1), texts)
    times = [seen.at for seen in server.seen if seen.text in texts]
    assert min(later - times[0] for later in times[1:]) >= 0.49


def test_wrong_output_is_repaired_once(server: FaultServer, ledger: Ledger) -> None:
    model = a_model(server.spec(), ledger)
    for fault in ("wrong", "prose", "truncated"):
        text = f"repair fault={fault},ok"
        [result] = model.run([ask(text, schema=SCHEMA)], model.chat_json)
        assert isinstance(result, StructuredReply)
        assert result.value["label"] in ("equivalent", "mismatch")
        assert len(set(result.calls)) == 2
        assert server.asked[text] == 2
        said = [message["role"] for message in server.seen[-1].body["messages"]]
        assert said == ["user", "assistant", "user"]
        assert ("cut off" in server.seen[-1].body["messages"][-1]["content"]) == (fault == "truncated")


@pytest.mark.parametrize(("fault", "kind"), [("wrong", "schema"), ("prose", "unreadable"), ("truncated", "truncated")])
def test_output_wrong_twice_is_a_failure(server: FaultServer, ledger: Ledger, fault: str, kind: str) -> None:
    model = a_model(server.spec(), ledger)
    text = f"twice fault={fault}"
    [result] = model.run([ask(text, schema=SCHEMA)], model.chat_json)
    assert (failure(result).kind, failure(result).attempts) == (kind, 2)
    assert server.asked[text] == 2
    model.run([ask(text, schema=SCHEMA)], model.chat_json)
    assert server.asked[text] == 2, "both outputs are in the ledger"


def test_json_in_a_fence_after_thinking_needs_no_repair(server: FaultServer, ledger: Ledger) -> None:
    model = a_model(server.spec(), ledger)
    [result] = model.run([ask("fault=fenced", schema=SCHEMA)], model.chat_json)
    assert isinstance(result, StructuredReply)
    assert len(result.calls) == 1
    assert result.reply.reasoning == "hm"


def test_embeddings_come_in_order_and_are_kept_by_text(server: FaultServer, ledger: Ledger) -> None:
    model = a_model(server.spec("embedder"), ledger)
    [rows] = model.run([["fever", "cough", "fever"]], model.embed)
    assert not isinstance(rows, Failure)
    assert rows.shape == (3, 4)
    assert (rows[0] == rows[2]).all()
    assert (rows[0] != rows[1]).any()
    assert server.seen[-1].body["input"] == ["fever", "cough"], "the same text is embedded once"
    [more] = model.run([["cough", "rash"]], model.embed)
    assert not isinstance(more, Failure)
    assert (more[0] == rows[1]).all()
    assert server.seen[-1].body["input"] == ["rash"]
    assert (model.cost.calls, model.cached) == (0, 1), "embeddings are not in the cost"


@pytest.mark.parametrize(("fault", "kind"), [("garbage", "garbled"), ("short", "garbled"), ("500", "server-error")])
def test_broken_embeddings_are_a_failure(server: FaultServer, ledger: Ledger, fault: str, kind: str) -> None:
    model = a_model(server.spec(), ledger)
    [result] = model.run([[f"fault={fault}", "other"]], model.embed)
    assert (failure(result).kind, failure(result).attempts) == (kind, 2)


def test_a_continuation_is_scored_by_an_echoed_prompt(server: FaultServer, ledger: Ledger) -> None:
    model = a_model(server.spec(), ledger)
    scored, empty = model.run(
        [("The diagnosis is", " acute appendicitis"), ("Nothing", "")], lambda pair: model.loglikelihood(*pair)
    )
    assert not isinstance(scored, Failure)
    assert scored.tokens == (" acute", " appendicitis")
    assert scored.total == sum(scored.logprobs) == pytest.approx(-0.5 * len(" acute appendicitis"))
    assert failure(empty).kind == "bad-request"
    asked = len(server.seen)
    [again] = model.run([("The diagnosis is", " acute appendicitis")], lambda pair: model.loglikelihood(*pair))
    assert again == scored
    assert len(server.seen) == asked
    assert model.cost.calls == 1


@pytest.mark.parametrize("value", ["soon", "", "nan", "Wed, 99 Foo", "Wed, 21 Oct 2015 07:28:00 +9999", None])
def test_an_unreadable_retry_after_is_no_reason_to_wait(value: str | None) -> None:
    assert not retry_after_seconds(value)


def test_a_quota_with_a_time_to_wait_is_a_rate_limit() -> None:
    body = b'{"error":{"message":"You exceeded your current quota"}}'
    assert not classify(429, {}, body).retryable
    assert classify(429, {"retry-after": "7"}, body).retryable


def test_a_thinking_block_that_never_ends_is_no_answer() -> None:
    reply = read_chat(b'{"choices":[{"message":{"content":"<think>so far"},"finish_reason":"length"}]}')
    assert (getattr(reply, "text", None), getattr(reply, "reasoning", None)) == ("", "so far")
