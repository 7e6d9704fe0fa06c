"""Several servers of one model: every answer is there and none is paid twice, whatever happens to the servers."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from hoofbeat.errors import BudgetSpent, HoofbeatError, InputError, ModelError, UsageError
from hoofbeat.models import Budget, ChatRequest, Config, Model, fleet, load_config, load_model
from hoofbeat.models.requests import EndpointFigures
from hoofbeat.store.call_ledger import Ledger
from tests.models.fault_server import FaultServer
from tests.models.support import a_model, ask, chats, failure, ledger_in, reply_text


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with ledger_in(tmp_path) as opened:
        yield opened


@pytest.fixture
def servers() -> Iterator[list[FaultServer]]:
    with ExitStack() as stack:
        yield [stack.enter_context(FaultServer(delay=0.02)) for _ in range(3)]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks at the servers often and lets them rest for a short time."""
    monkeypatch.setattr(fleet, "_TICK", 0.05)
    monkeypatch.setattr(fleet, "_FIRST_REST", 0.1)
    monkeypatch.setattr(fleet, "_SLOW_SECONDS", 0.15)


def fleet_of(servers: Sequence[FaultServer], ledger: Ledger, budget: Budget | None = None, **settings: Any) -> Model:
    urls = [server.url for server in servers]
    return a_model("judge", ledger, budget=budget, name="stub", **{"endpoints": urls, "attempts": 4, **settings})


def by_server(model: Model, servers: Sequence[FaultServer]) -> list[EndpointFigures]:
    figures = {each.url: each for each in model.endpoints}
    return [figures[server.url] for server in servers]


def questions(count: int) -> list[str]:
    return [f"question {number}" for number in range(count)]


class At:
    """Does something once, when so many calls have been begun."""

    def __init__(self, model: Model, count: int, act: Any) -> None:
        self._model, self._left, self._act = model, count, act
        self._thread: threading.Thread | None = None

    async def __call__(self, request: ChatRequest) -> Any:
        self._left -= 1
        if self._left == 0:
            self._thread = threading.Thread(target=self._act)
            self._thread.start()
        return await self._model.chat(request)


def test_calls_are_spread_and_the_answers_are_those_of_one_model(servers: list[FaultServer], ledger: Ledger) -> None:
    model = fleet_of(servers, ledger)
    replies = [reply_text(each) for each in chats(model, questions(60))]
    assert model.identity == "fleet#stub"
    assert [each.calls for each in by_server(model, servers)] == [len(server.seen) for server in servers]
    assert min(len(server.seen) for server in servers) >= 10
    assert sum(len(server.seen) for server in servers) == 60
    other = fleet_of(servers[:1], ledger)
    assert [reply_text(each) for each in chats(other, questions(60))] == replies
    assert (other.made, other.cached) == (0, 60), "another server's answer is the same model's"


def test_a_server_that_dies_in_the_middle_costs_only_its_calls_in_flight(
    servers: list[FaultServer], ledger: Ledger
) -> None:
    model = fleet_of(servers, ledger, max_in_flight=12)
    texts = questions(300)
    results = model.run([ask(text) for text in texts], At(model, 90, servers[0].die))
    assert all(reply_text(each).startswith("answer ") for each in results)
    asked = sum((server.asked for server in servers), Counter[str]())
    assert set(asked) == set(texts)
    assert max(asked.values()) <= 2
    dead = by_server(model, servers)[0]
    assert asked.total() - len(texts) <= min(12, dead.failures)  # none where it died between two calls
    assert dead.set_aside >= 1
    assert (model.made, ledger.stats().calls) == (300, 300)


def test_a_dead_server_that_comes_back_gets_calls_again(servers: list[FaultServer], ledger: Ledger) -> None:
    servers[1].die()
    model = fleet_of(servers[:2], ledger, max_in_flight=4)
    results = model.run([ask(text) for text in questions(200)], At(model, 40, servers[1].come_back))
    assert all(reply_text(each).startswith("answer ") for each in results)
    assert not model.troubles, "a call that nobody took goes to another server at once"
    assert len(servers[1].seen) >= 10
    assert sum(len(server.seen) for server in servers) == 200
    assert by_server(model, servers[:2])[1].set_aside >= 1


def test_a_slow_server_is_set_aside(
    servers: list[FaultServer], ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet, "_MEASURED", 4)
    servers[2].delay = 0.6
    model = fleet_of(servers, ledger, max_in_flight=12)
    results = chats(model, questions(800))
    assert all(reply_text(each).startswith("answer ") for each in results)
    slow = by_server(model, servers)[2]
    assert slow.set_aside >= 1
    assert slow.failures == 0
    assert slow.calls <= 30


def test_a_server_that_hangs_holds_no_more_than_its_calls(
    servers: list[FaultServer], ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet, "_OLD_SECONDS", 0.2)
    servers[0].hangs = True
    model = fleet_of(servers, ledger, timeout=1.0, max_in_flight=6)
    results = chats(model, questions(150))
    assert all(reply_text(each).startswith("answer ") for each in results)
    assert len(servers[0].seen) <= 8
    assert by_server(model, servers)[0].failures >= 1


def test_a_server_that_always_fails_does_not_draw_all_calls(servers: list[FaultServer], ledger: Ledger) -> None:
    servers[0].busy_over = 0
    model = fleet_of(servers, ledger)
    assert all(reply_text(each).startswith("answer ") for each in chats(model, questions(100)))
    assert len(servers[0].seen) <= 60
    assert sum(server.answered.total() for server in servers) == 100
    assert not model.troubles


def test_the_file_is_read_again_when_it_changes(servers: list[FaultServer], ledger: Ledger, tmp_path: Path) -> None:
    first, second, third = servers
    file = tmp_path / "endpoints.txt"
    file.write_text(f"# the job's servers\n{first.url}\n\n{second.url}/\n")
    (tmp_path / "hoofbeat.toml").write_text(
        '[models.judge]\nname = "stub"\nendpoints_file = "endpoints.txt"\nreasoning = 0\nmax_in_flight = 8\n'
    )
    told: list[str] = []
    model = load_model("judge", ledger=ledger, config=load_config(tmp_path / "hoofbeat.toml"), tell=told.append)

    def change() -> None:
        file.write_text("")  # as an editor or a script leaves it for a moment
        time.sleep(0.15)
        file.write_text(f"{second.url}\nnonsense\nftp://me:hush@a/v1\n{third.url}")

    results = model.run([ask(text) for text in questions(600)], At(model, 100, change))
    assert all(reply_text(each).startswith("answer ") for each in results)
    assert len(third.seen) > 50
    assert sum(len(server.seen) for server in servers) == 600
    assert [each.url for each in model.endpoints] == [server.url for server in servers]
    assert by_server(model, servers)[0].failures == 0
    assert len([each for each in told if "nonsense" in each]) == 1
    assert "hush" not in " ".join(told)

    # a server that is no longer in the file is never asked again, so its end is not noticed
    first.die()
    file.unlink()
    assert all(map(reply_text, chats(model, ["one more"])))
    assert by_server(model, servers)[0].failures == 0


def test_one_wrong_server_is_set_aside_and_all_wrong_stop_the_run(servers: list[FaultServer], ledger: Ledger) -> None:
    wrong = servers[0].url.removesuffix("/v1") + "/v2"
    model = a_model("judge", ledger, name="stub", endpoints=[wrong, servers[1].url])
    assert all(map(reply_text, chats(model, questions(30))))
    assert len(servers[1].seen) == 30
    assert model.endpoints[0].set_aside >= 1
    with pytest.raises(ModelError, match="not available"):
        chats(a_model("judge", ledger, name="stub", endpoints=[wrong, wrong + "/"]), ["new"])


def test_a_fleet_out_of_reach_stops_the_run(servers: list[FaultServer], ledger: Ledger) -> None:
    for server in servers:
        server.die()
    with pytest.raises(ModelError, match="judge can't be reached"):
        chats(fleet_of(servers, ledger, attempts=2), questions(20))


def test_what_no_server_can_mend_stays_a_failure(servers: list[FaultServer], ledger: Ledger) -> None:
    model = fleet_of(servers, ledger, attempts=2)
    assert failure(chats(model, ["fault=503"])[0]).kind == "server-error"
    assert failure(chats(model, ["fault=overflow-openai"])[0]).kind == "context-overflow"
    assert sum(each.set_aside for each in model.endpoints) == 0


def test_one_budget_and_one_rate_for_all(servers: list[FaultServer], ledger: Ledger) -> None:
    with pytest.raises(BudgetSpent):
        chats(fleet_of(servers, ledger, budget=Budget.parse("20calls")), questions(60))
    assert sum(len(server.seen) for server in servers) == 20
    paced = fleet_of(servers, ledger, requests_per_minute=1200)
    began = time.monotonic()
    chats(paced, [f"paced {number}" for number in range(20)])
    assert time.monotonic() - began > 0.9, "20 calls at 50 ms, whichever server takes them"


def test_embeddings_scores_and_likelihoods_come_from_any_server(servers: list[FaultServer], ledger: Ledger) -> None:
    servers[0].die()
    model = fleet_of(servers, ledger)
    assert model.run([["a"], ["b"]], model.embed)[0].shape == (1, 4)  # type: ignore[union-attr]

    async def relevance(text: str) -> object:
        return await model.relevance("query", [text])

    async def likelihood(text: str) -> object:
        return await model.loglikelihood(text, " more")

    assert model.run(["text 3"], relevance) == [[3.0]]
    assert model.run(["some text"], likelihood)[0].tokens == (" more",)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "text",
    [
        'name = "stub"',
        'endpoints = ["http://a/v1"]',
        'name = "stub"\nendpoints = ["http://a/v1"]\nspec = "http://a/v1#stub"',
        'name = "stub"\nendpoints = ["http://a/v1"]\nendpoints_file = "x"',
        'name = "stub"\nendpoints = ["http://a/v1#stub"]',
        'name = "stub"\nendpoints = ["ftp://a/v1"]',
        'name = "stub"\nendpoints = ["http://user:hush@a/v1"]',
    ],
)
def test_a_wrong_table_is_said(tmp_path: Path, ledger: Ledger, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_model("judge", ledger=ledger, config=config(tmp_path, text))
    assert caught.value.fix
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (None, InputError),
        ("", InputError),
        ("# none yet\n", InputError),
        ("a b", UsageError),
        ("http://me:hush@a/v1", UsageError),
    ],
)
def test_a_wrong_file_is_said(tmp_path: Path, ledger: Ledger, content: str | None, kind: type[HoofbeatError]) -> None:
    if content is not None:
        (tmp_path / "list.txt").write_text(content)
    with pytest.raises(kind) as caught:
        load_model("judge", ledger=ledger, config=config(tmp_path, 'name = "stub"\nendpoints_file = "list.txt"'))
    assert "list.txt" in str(caught.value)
    assert caught.value.fix
    assert "hush" not in str(caught.value)


def config(tmp_path: Path, text: str) -> Config:
    (tmp_path / "hoofbeat.toml").write_text(f"[models.judge]\n{text}\n")
    return load_config(tmp_path / "hoofbeat.toml")
