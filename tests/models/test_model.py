"""`Model.run`: order, the ledger before everything else, and nothing asked twice."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from hoofbeat.models import CallResult, Image, Message, StructuredReply
from hoofbeat.models.pacing import Pacer
from hoofbeat.store.call_ledger import Ledger
from tests.models.fault_server import FaultServer
from tests.models.support import SCHEMA, a_model, ask, chats, ledger_in, reply_text

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def server() -> Iterator[FaultServer]:
    with FaultServer() as running:
        yield running


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with ledger_in(tmp_path) as opened:
        yield opened


def test_results_come_in_the_order_of_the_items(ledger: Ledger) -> None:
    with FaultServer(delay=0.01) as slow:
        results = chats(a_model(slow.spec(), ledger), [f"question {number}" for number in range(100)])
        by_text = {seen.text: seen.body for seen in slow.seen}
    assert len({reply_text(result) for result in results}) == len(by_text) == 100
    with FaultServer() as quick:
        model = a_model(quick.spec(), ledger)
        assert [reply_text(chats(model, [f"question {number}"])[0]) for number in (0, 57, 99)] == [
            reply_text(results[number]) for number in (0, 57, 99)
        ]


def test_the_second_run_asks_nothing_and_gives_the_same(server: FaultServer, ledger: Ledger) -> None:
    texts = [f"resumed {number}" for number in range(40)]
    first_model = a_model(server.spec(), ledger)
    first = chats(first_model, texts)
    asked = len(server.seen)
    model = a_model(server.spec(), ledger)
    assert chats(model, texts) == first
    assert len(server.seen) == asked
    assert (model.made, model.cached) == (0, 40)
    assert model.cost == first_model.cost, "a run from the ledger cost as much as the run that made it"


def test_what_is_missing_is_all_that_is_asked(server: FaultServer, ledger: Ledger) -> None:
    texts = [f"partly {number}" for number in range(20)]
    chats(a_model(server.spec(), ledger), texts[:7])
    chats(a_model(server.spec(), ledger), texts)
    assert [server.asked[text] for text in texts] == [1] * 20


def test_duplicates_in_one_run_are_asked_once(server: FaultServer, ledger: Ledger) -> None:
    model = a_model(server.spec(), ledger)
    results = chats(model, ["the same"] * 30)
    assert server.asked["the same"] == 1
    assert len({reply_text(result) for result in results}) == 1
    assert model.cost.calls == 1


def test_duplicates_of_a_call_that_fails_fail_with_it(server: FaultServer, ledger: Ledger) -> None:
    text = "the same fault=400"
    results = chats(a_model(server.spec(), ledger), [text] * 3)
    assert len(set(map(repr, results))) == 1
    assert server.asked[text] <= 3


def test_samples_of_one_question_are_calls_of_their_own(server: FaultServer, ledger: Ledger) -> None:
    model = a_model(server.spec(), ledger)
    requests = [ask("sampled", sample=number, temperature=0.7, seed=5) for number in range(3)]
    model.run(requests, model.chat)
    assert server.asked["sampled"] == 3
    assert sorted(seen.body["seed"] for seen in server.seen if seen.text == "sampled") == [5, 6, 7]


def test_a_crew_that_shrinks_while_all_finish_together_leaves_no_item_undone(ledger: Ledger) -> None:
    class Shrinking(Pacer):
        def succeeded(self) -> None:
            self.limit = 1

    async def work(item: int) -> int:
        async with lock_step:
            arrived.append(item)
            lock_step.notify_all()
            await lock_step.wait_for(lambda: len(arrived) >= 6)
        model.pacer.succeeded()
        return item

    lock_step = asyncio.Condition()
    arrived: list[int] = []
    model = a_model("http://127.0.0.1:1/v1#none", ledger)
    model.pacer = Shrinking(start=6, max_in_flight=6)
    assert model.run(list(range(20)), work) == list(range(20))


def test_an_empty_list_needs_no_endpoint(ledger: Ledger) -> None:
    model = a_model("http://127.0.0.1:1/v1#none", ledger)
    assert model.run([], model.chat) == []


def test_an_error_in_the_work_stops_the_run_and_keeps_what_was_answered(server: FaultServer, ledger: Ledger) -> None:
    async def work(number: int) -> CallResult | object:
        result = await model.chat(ask(f"fragile {number}"))
        if number == 12:
            raise ZeroDivisionError
        return result

    model = a_model(server.spec(), ledger)
    with pytest.raises(ZeroDivisionError):
        model.run(list(range(200)), work)
    answered = sum(count for text, count in server.asked.items() if text.startswith("fragile"))
    assert 13 <= answered < 200
    assert ledger.stats().calls == answered


def test_after_an_interrupted_run_the_next_one_works(server: FaultServer, tmp_path: Path) -> None:
    async def work(number: int) -> object:
        result = await model.chat(ask(f"interrupted {number}"))
        if number == 5:
            raise KeyboardInterrupt
        return result

    with Ledger(tmp_path / "slow.db", gather_seconds=0.2) as ledger:
        model = a_model(server.spec(), ledger)
        with pytest.raises(KeyboardInterrupt):
            model.run(list(range(60)), work)
        kept = ledger.stats().calls
        assert kept >= 6
        results = chats(model, [f"interrupted {number}" for number in range(60)])
        assert all(isinstance(result, CallResult) for result in results)
        assert model.cached == kept


def test_log_probabilities_images_and_schema_travel(server: FaultServer, ledger: Ledger) -> None:
    picture = Image.of(b"\x89PNG fake", "image/png")
    request = ask("see", schema=SCHEMA, top_logprobs=2, stop=("\n",), top_p=0.9)
    with_image = Message(role="user", content="see", images=(picture,))
    request = type(request)(messages=(with_image,), schema=SCHEMA, top_logprobs=2, stop=("\n",), top_p=0.9)
    model = a_model(server.spec("vision"), ledger, extra={"reasoning_effort": "low"})
    [result] = model.run([request], model.chat_json)
    assert isinstance(result, StructuredReply)
    assert result.reply.logprobs[0].top == {"A": -0.1, "B": -0.2}
    body = server.seen[-1].body
    assert body["model"] == "vision"
    assert body["reasoning_effort"] == "low"
    assert body["stop"] == ["\n"]
    assert body["response_format"]["json_schema"]["schema"] == SCHEMA
    assert body["messages"][0]["content"][1]["image_url"]["url"] == f"data:image/png;base64,{picture.data}"


def test_the_key_goes_to_the_endpoint_and_nowhere_else(
    server: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARD_KEY", "sk-very-secret")
    with ledger_in(tmp_path) as ledger:
        model = a_model(server.spec(), ledger, key="WARD_KEY")
        chats(model, ["keyed", "keyed fault=400"])
        assert server.seen[-1].key == "Bearer sk-very-secret"
        assert "secret" not in model.identity
        assert "secret" not in repr([*ledger.entries()])
    dump = "\n".join(sqlite3.connect(tmp_path / "ledger.db").iterdump())
    assert "sk-very-secret" not in dump
    assert b"sk-very-secret" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


def test_what_changes_answers_changes_the_identity(server: FaultServer, ledger: Ledger) -> None:
    plain = a_model(server.spec(), ledger)
    assert a_model(server.spec(), ledger, extra={"top_k": 1}).identity != plain.identity
    assert a_model(server.spec(), ledger, timeout=9.0).identity == plain.identity


def test_an_openai_name_at_another_address_is_another_model(
    server: FaultServer, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert a_model("openai:gpt-x", ledger).identity == "openai:gpt-x"
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    model = a_model("openai:gpt-x", ledger)
    assert model.identity == server.spec("gpt-x")
    assert isinstance(chats(model, ["hello"])[0], CallResult)


RUN_APART = """
import json, sys
from pathlib import Path
from hoofbeat.store.call_ledger import Ledger
from tests.models.support import a_model, chats, reply_text

spec, path, *texts = sys.argv[1:]
with Ledger(Path(path)) as ledger:
    results = chats(a_model(spec, ledger, timeout=60.0), texts)
print(json.dumps([reply_text(result) for result in results]))
"""


def test_two_processes_share_a_ledger(tmp_path: Path) -> None:
    shared = [f"shared {number}" for number in range(60)]
    mine, yours = [f"mine {number}" for number in range(60)], [f"yours {number}" for number in range(60)]
    path = tmp_path / "ledger.db"
    with FaultServer(delay=0.01) as server:
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", RUN_APART, server.spec(), str(path), *texts], cwd=ROOT, stdout=subprocess.PIPE
            )
            for texts in (shared + mine, shared + yours)
        ]
        first, second = (json.loads(process.communicate(timeout=60)[0]) for process in processes)
        assert first[:60] == second[:60]
        with Ledger(path) as ledger:
            assert ledger.stats().calls == 180
            asked = len(server.seen)
            assert asked == 180, "a call that both needed was paid once"
            model = a_model(server.spec(), ledger)
            assert [reply_text(result) for result in chats(model, shared + mine)] == first
            assert len(server.seen) == asked


def test_where_another_process_was_quicker_its_reply_is_used(server: FaultServer, tmp_path: Path) -> None:
    async def work(text: str) -> CallResult | object:
        with Ledger(tmp_path / "ledger.db") as other:
            other.add_all(elsewhere.entries())
        return await model.chat(ask(text))

    with ledger_in(tmp_path, "elsewhere.db") as elsewhere, ledger_in(tmp_path) as ledger:
        model = a_model(server.spec(), ledger)
        known = a_model(server.spec(), elsewhere)
        chats(known, ["race"])
        elsewhere._db.execute("UPDATE calls SET reply=?", (zlib.compress(b'{"text":"said by the quicker one"}'),))
        model.ledger = _Blind(ledger)  # type: ignore[assignment]
        [result] = model.run(["race"], work)
    assert reply_text(result) == "said by the quicker one"


class _Blind:
    """A ledger that does not see an entry before it writes: the moment between two processes."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def look_up(self, key: str) -> None:
        return None

    async def claim(self, key: str) -> None:
        return None

    def __getattr__(self, name: str) -> object:
        return getattr(self._ledger, name)


def test_an_estimate_is_what_is_then_called(server: FaultServer, ledger: Ledger) -> None:
    model = a_model(server.spec(), ledger, price_in=1.0, price_out=2.0)
    chats(model, ["estimated 0", "estimated 1"])
    requests = [ask(f"estimated {number % 12}") for number in range(20)]
    before = len(server.seen)
    estimate = model.estimate(requests)
    assert len(server.seen) == before
    model.run(requests, model.chat)
    assert (estimate.calls, estimate.cached) == (len(server.seen) - before, 2) == (10, 2)
    assert estimate.max_money is not None
    assert estimate.max_money >= model.cost.money > 0
    assert model.estimate(requests).calls == 0


def test_a_model_without_a_price_has_no_estimate_of_money(server: FaultServer, ledger: Ledger) -> None:
    estimate = a_model(server.spec(), ledger).estimate([ask("free?")])
    assert estimate.calls == 1
    assert estimate.max_money is None


def test_long_replies_come_back_as_they_were(server: FaultServer, ledger: Ledger) -> None:
    text = "long " + "fever and cough " * 500
    [first] = chats(a_model(server.spec(), ledger), [text])
    assert chats(a_model(server.spec(), ledger), [text]) == [first]
    [kept] = ledger.entries()
    assert text in bytes(kept.request).decode()
