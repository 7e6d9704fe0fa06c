"""What an endpoint says is bounded and checked: a lie costs at most its own call, never the command or the ledger."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import resource
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from aiohttp import web

from hoofbeat.ask.ask_jobs import cancellable_model
from hoofbeat.errors import BatchPending, BudgetSpent, ModelError
from hoofbeat.models import Budget, Reply, bounds
from hoofbeat.models.bounds import MAX_BODY, MAX_COUNT, within_bounds
from hoofbeat.models.http_backend import score_by_forcing
from hoofbeat.models.requests import Likelihood, TokenLogprob, Trouble
from hoofbeat.models.wire import retry_after_seconds
from hoofbeat.records import Failure, Usage
from hoofbeat.store.call_ledger import Ledger
from tests.models.fault_server import FaultServer
from tests.models.support import a_model, chats, failure, ledger_in, reply_text


def _usage(tokens_in: object, tokens_out: object = 3) -> dict[str, object]:
    return {"usage": {"prompt_tokens": tokens_in, "completion_tokens": tokens_out}}


LIES: dict[str, dict[str, object]] = {
    "over-63-bits": _usage(2**63),
    "over-64-bits": _usage(2**64 + 1, 2**70),
    "negative": _usage(-1_000_000, -1_000_000),
    "negative-out": _usage(5, -1_000_000),
    "million-million": _usage(10**12),
}


SMALL = 1_000_000
KEY = "sk-very/secret+42=a"
BOMB = gzip.compress(b" " * 200 * SMALL, 1)


class HostileServer(FaultServer):
    """Answers with what an honest endpoint never says."""

    async def _respond(
        self, request: web.Request, step: str, body: dict[str, Any], answer: dict[str, Any]
    ) -> web.StreamResponse:
        if step in LIES:
            return web.json_response({**answer, **LIES[step]})
        if step == "large":
            return web.Response(body=b'{"choices": "' + b"x" * 3 * SMALL + b'"}')
        if step == "bomb":
            return web.Response(body=BOMB, headers={"Content-Encoding": "gzip"})
        if step == "large-error":
            return web.Response(body=b"no" * SMALL, status=400)
        if step == "huge-vectors":
            return web.json_response({"data": [{"index": i, "embedding": [1e39]} for i in range(len(body["input"]))]})
        if step == "uneven-likelihood":
            far = {"tokens": ["a", " b", " c"], "token_logprobs": [None, -1e308, -1e308], "text_offset": [0, 1, 3]}
            return web.json_response({"choices": [{"logprobs": far}]})
        key = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if step == "echo":
            message = {"content": f"You sent {key}, that is {quote(key, safe='')}.", "reasoning": f"<{key}>"}
            return web.json_response({**answer, "model": key, "choices": [{"message": message}]})
        if step == "echo-error":  # where the message is cut, half of the key would be left
            return web.json_response({"error": {"message": "x" * 480 + f" {key} and {quote(key)}"}}, status=400)
        if step == "echo-401":
            return web.Response(text=f"Incorrect key {key}", status=401)
        return await super()._respond(request, step, body, answer)


@pytest.fixture(scope="module")
def server() -> Iterator[HostileServer]:
    with HostileServer() as running:
        yield running


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with ledger_in(tmp_path) as opened:
        yield opened


@pytest.mark.parametrize("lie", LIES)
def test_a_reply_with_impossible_usage_is_kept_beside_the_others(
    server: HostileServer, ledger: Ledger, lie: str
) -> None:
    model = a_model(server.spec(), ledger)
    results = chats(model, [f"honest {lie}", f"fault={lie}", f"as honest {lie}"])
    assert all(reply_text(each).startswith("answer") for each in results)
    assert ledger.stats().calls == 3
    assert 0 < model.cost.tokens_in < MAX_COUNT
    again = a_model(server.spec(), ledger)
    assert chats(again, [f"honest {lie}", f"fault={lie}", f"as honest {lie}"]) == results
    assert again.made == 0


@pytest.mark.parametrize("lie", ["negative", "negative-out", "over-63-bits"])
def test_impossible_usage_counts_as_the_most_that_the_call_could_cost(
    server: HostileServer, ledger: Ledger, lie: str
) -> None:
    budget = Budget(money=0.001)
    model = a_model(server.spec(), ledger, budget=budget, start=1, price_in=1.0, price_out=1.0)
    with pytest.raises(BudgetSpent):
        chats(model, [f"fault={lie} {number}" for number in range(50)])
    assert 0 < budget.spent_money <= 0.001


@pytest.mark.parametrize("fault", ["large", "bomb"])
def test_an_answer_without_end_is_a_failure_and_not_held(
    server: HostileServer, ledger: Ledger, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "MAX_BODY", SMALL)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = failure(chats(a_model(server.spec(), ledger), [f"fault={fault}"])[0])
    assert result.kind == "garbled"
    assert "larger than 1 MB" in result.message
    assert server.asked[f"fault={fault}"] == 1  # another attempt would bring as much again
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < 60 * SMALL


def test_of_a_large_error_page_only_the_beginning_is_read(server: HostileServer, ledger: Ledger) -> None:
    result = failure(chats(a_model(server.spec(), ledger), ["fault=large-error"])[0])
    assert result.kind == "bad-request"
    assert len(result.message) < 1000


def test_vectors_too_large_for_their_numbers_are_a_failure_and_nothing_is_kept(
    server: HostileServer, ledger: Ledger
) -> None:
    model = a_model(server.spec(), ledger, attempts=1)
    [result] = model.run([["fault=huge-vectors"]], model.embed)
    assert isinstance(result, Failure)
    assert result.kind == "garbled"
    assert ledger.stats().calls == 0


def test_a_likelihood_that_is_no_number_is_a_failure(server: HostileServer, ledger: Ledger) -> None:
    model = a_model(server.spec(), ledger, attempts=1)
    [result] = model.run([0], lambda _: model.loglikelihood("fault=uneven-likelihood", " b c d e f g h i"))
    assert isinstance(result, Failure)
    assert ledger.stats().calls == 0


@pytest.mark.parametrize(
    "result",
    [
        Likelihood(total=float("-inf"), tokens=("a",), logprobs=(float("-inf"),)),
        Likelihood(total=float("nan"), tokens=("a",), logprobs=(0.0,)),
        Reply(text="a", logprobs=(TokenLogprob(token="a", logprob=float("-inf")),)),
        Reply(text="a", logprobs=(TokenLogprob(token="a", logprob=0.0, top={"b": float("nan")}),)),
        Reply(text="a" * (MAX_BODY // 2)),
        [float("inf")],
        [[0.0, float("nan")]],
    ],
)
def test_what_the_ledger_could_not_give_back_is_a_trouble(result: object) -> None:
    found = within_bounds(result)
    assert isinstance(found, Trouble)
    assert found.kind == "garbled"


def test_what_is_right_is_left_as_it_is() -> None:
    reply = Reply(text="yes", usage=Usage(tokens_in=7, tokens_out=2), model="m", reasoning_tokens=1)
    assert within_bounds(reply) is reply
    assert within_bounds([0.5, 1.0]) == [0.5, 1.0]


def test_a_models_name_and_an_error_are_cut() -> None:
    named = within_bounds(Reply(text="yes", model="m" * 10_000, reasoning_tokens=-4))
    assert isinstance(named, Reply)
    assert len(named.model) <= 200
    assert named.reasoning_tokens == 0
    told = within_bounds(Trouble(kind="server-error", message="\x1b[31mred\x07\r\n" + "x" * 10_000, retry_after=1e300))
    assert isinstance(told, Trouble)
    assert len(told.message) <= 600
    assert told.message.isprintable()


@pytest.mark.parametrize(
    "value", ["Fri, 31 Dec 99999999999999 23:59:59 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "inf", "nan", "9" * 5000]
)
def test_a_time_to_wait_that_nobody_means_is_not_waited_for(value: str) -> None:
    assert retry_after_seconds(value) is None


async def _tokens_without_end(url: str, body: object) -> bytes | Trouble:
    return json.dumps({"tokens": list(range(100_000))}).encode()


def test_more_tokens_than_the_text_has_bytes_are_not_scored() -> None:
    found = asyncio.run(score_by_forcing(_tokens_without_end, "http://x", "context", " word"))
    assert isinstance(found, Trouble)
    assert found.kind == "garbled"


@pytest.mark.parametrize("damaged", [b"null", b"[1,null]", b"x\x9cno zlib", b"", b"{", b'{"text": 3}', b"\xff", 7])
def test_a_poisoned_row_costs_one_call_and_not_the_file(
    server: HostileServer, ledger: Ledger, damaged: bytes | int
) -> None:
    asked = ["this row", "another one"]
    first = chats(a_model(server.spec(), ledger), asked)
    key = next(entry.key for entry in ledger.entries() if asked[0].encode() in bytes(entry.request))
    ledger._db.execute("UPDATE calls SET reply=? WHERE key=?", (damaged, bytes.fromhex(key)))
    told: list[str] = []
    model = a_model(server.spec(), ledger)
    model._tell = told.append
    assert chats(model, asked) == first
    assert (model.made, model.cached) == (1, 1)
    assert len(told) == 1
    assert "can't be read" in told[0]
    assert chats(a_model(server.spec(), ledger), asked) == first  # the row is whole again


def test_a_poisoned_vector_is_asked_for_again(server: HostileServer, ledger: Ledger) -> None:
    model = a_model(server.spec(), ledger)
    [first] = model.run([["one text", "two texts"]], model.embed)
    ledger._db.execute("UPDATE calls SET reply=? WHERE CAST(request AS TEXT) LIKE '%one text%'", (b"[0.5,null]",))
    again = a_model(server.spec(), ledger)
    [second] = again.run([["one text", "two texts"]], again.embed)
    assert not isinstance(first, Failure)
    assert not isinstance(second, Failure)
    assert second.tolist() == first.tolist()
    assert again.made == 1


def test_a_key_that_an_endpoint_repeats_is_nowhere(
    server: HostileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARD_ENTRY", KEY)
    with ledger_in(tmp_path) as ledger:
        model = a_model(server.spec(), ledger, key="WARD_ENTRY")
        [echo, error] = chats(model, ["fault=echo", "fault=echo-error"])
        assert reply_text(echo) == "You sent [redacted], that is [redacted]."
        assert server.seen[-1].key == f"Bearer {KEY}"
        said = f"{echo} {error}"
        with pytest.raises(ModelError) as caught:
            chats(model, ["fault=echo-401"])
        assert "Incorrect key [redacted]" in str(caught.value)
        said += f"{caught.value} {list(ledger.entries())}"
    assert "sk-very" not in said
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"sk-very" not in kept


def test_a_key_is_redacted_where_a_page_asks_and_may_stop(
    server: HostileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARD_ENTRY", KEY)
    with ledger_in(tmp_path) as ledger:
        model = cancellable_model(a_model(server.spec(), ledger, key="WARD_ENTRY"), lambda: None)
        assert reply_text(chats(model, ["fault=echo"])[0]) == "You sent [redacted], that is [redacted]."
        assert model.address == ""
        assert model.lacks == frozenset()


def test_a_proxys_password_is_not_in_the_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://ward:word%2Fpass@127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    with ledger_in(tmp_path) as ledger, pytest.raises(ModelError) as caught:
        chats(a_model("http://judge.example.org/v1#m", ledger, attempts=1), ["through a proxy"])
    assert "word" not in str(caught.value)


def test_files_that_hold_prompts_are_for_their_owner_alone(server: HostileServer, tmp_path: Path) -> None:
    umask = os.umask(0o022)
    try:
        with ledger_in(tmp_path) as ledger:
            chats(a_model(server.spec(), ledger), ["private"])
            with pytest.raises(BatchPending):
                chats(a_model(f"batch:{tmp_path / 'requests'}#m", ledger), ["private as well"])
            files = [path for path in tmp_path.rglob("*") if path.is_file()]
            assert {path.name for path in files} >= {"ledger.db", "ledger.db-wal", "requests-001.jsonl"}
            assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    finally:
        os.umask(umask)


@pytest.mark.parametrize(("before", "after"), [(0o644, 0o600), (0o660, 0o660), (0o600, 0o600)])
def test_an_old_ledger_is_closed_to_others_unless_a_group_writes_to_it(tmp_path: Path, before: int, after: int) -> None:
    ledger_in(tmp_path).close()
    (tmp_path / "ledger.db").chmod(before)
    ledger_in(tmp_path).close()
    assert stat.S_IMODE((tmp_path / "ledger.db").stat().st_mode) == after
