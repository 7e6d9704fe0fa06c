"""What an endpoint says is bounded and checked: a lie costs at most its own call, never the command or the ledger."""

from __future__ import annotations

import asyncio
import gzip
import json
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from hoofbeat.errors import BudgetSpent
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
