"""The allowance for hidden reasoning: who gets it, what is sent and estimated, what is said when it is too small."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hoofbeat.errors import BatchPending, BudgetSpent, UsageError
from hoofbeat.models import Budget, CallResult, Config, Model, ModelSettings, load_model
from hoofbeat.models.requests import request_key
from hoofbeat.store.call_ledger import Ledger
from tests.models.fault_server import FaultServer
from tests.models.support import SCHEMA, a_model, ask, chats, failure, ledger_in, reply_text

HIDDEN = "fault=thinks:1000"


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer() as running:
        yield running


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with ledger_in(tmp_path) as opened:
        yield opened


def limits(server: FaultServer) -> list[int]:
    return [seen.body["max_tokens"] for seen in server.seen]


def loaded(spec: str, ledger: Ledger, *, reasoning: int | None = None, **settings: Any) -> Model:
    config = Config(models={spec: ModelSettings(**settings)})
    return load_model(spec, ledger=ledger, config=config, reasoning=reasoning)


# Who gets one


@pytest.mark.parametrize(
    ("spec", "allowance"),
    [
        ("openai:gpt-4o-mini", 0),
        ("openai:gpt-4.1", 0),
        ("openai:o3-mini", 8000),
        ("openai:gpt-5-nano", 8000),
        ("http://host/v1#meta-llama/Llama-3.1-8B-Instruct", 0),
        ("http://host/v1#llama3.1:8b", 0),
        ("http://host/v1#Qwen/Qwen2.5-72B-Instruct", 0),
        ("http://host/v1#Qwen/Qwen3-32B", 8000),
        ("http://host/v1#deepseek-ai/DeepSeek-R1-Distill-Llama-70B", 8000),
        ("http://host/v1#microsoft/Phi-4-reasoning-plus", 8000),
        ("http://host/v1#openai/gpt-oss-120b", 8000),
        ("http://host/v1#our-own-model", 8000),
        ("batch:folder#gpt-4o", 0),
        ("batch:folder?format=gemini#gemini-2.5-pro", 8000),
        ("batch:folder?format=gemini#gemini-2.0-flash", 0),
        ("batch:folder?format=anthropic#claude-3-5-haiku-latest", 0),
    ],
)
def test_models_that_may_reason_get_an_allowance(spec: str, allowance: int, ledger: Ledger) -> None:
    model = load_model(spec, ledger=ledger)
    assert model.reasoning == allowance
    assert model.limit(ask("x", max_tokens=40)) == 40 + allowance
    assert model.limit(ask("x", max_tokens=2, top_logprobs=5)) == 2, "no more than its first tokens is read"


@pytest.mark.parametrize(
    ("extra", "allowance"),
    [
        ({"reasoning_effort": "low"}, 8000),
        ({"reasoning_effort": "none"}, 0),
        ({"thinking": {"type": "disabled"}}, 0),
        ({"thinking": {"type": "adaptive"}}, 8000),
        ({"thinking": {"type": "enabled", "budget_tokens": 16000}}, 16000),
        ({"generationConfig": {"thinkingConfig": {"thinkingBudget": 512}}}, 512),
        ({"generationConfig": {"thinkingConfig": {"thinkingBudget": -1}}}, 8000),
        ({"chat_template_kwargs": {"enable_thinking": False}}, 0),
        ({"thinking": "odd"}, 8000),
    ],
)
def test_the_fields_that_are_sent_say_how_much(extra: dict[str, object], allowance: int, ledger: Ledger) -> None:
    assert loaded("http://host/v1#model", ledger, extra=extra).reasoning == allowance


def test_option_before_setting_before_name(ledger: Ledger) -> None:
    assert loaded("openai:gpt-4o", ledger, reasoning=700).reasoning == 700
    set_in_file = ModelSettings(spec="openai:gpt-4o", reasoning=500)
    config = Config(models={"judge": set_in_file})
    assert load_model("judge", ledger=ledger, config=config).reasoning == 500
    assert load_model("judge", ledger=ledger, config=config, reasoning=0).reasoning == 0


def test_an_allowance_below_the_thinking_budget_is_refused(ledger: Ledger) -> None:
    extra: dict[str, object] = {"thinking": {"type": "enabled", "budget_tokens": 4000}}
    with pytest.raises(UsageError, match="allow 4000 tokens of reasoning, but reasoning is set to 1000"):
        loaded("batch:b?format=anthropic#claude-x", ledger, extra=extra, reasoning=1000)


# What is sent and reckoned with


def test_the_limit_that_is_sent_has_the_allowance_and_the_key_has_not(server: FaultServer, ledger: Ledger) -> None:
    model = a_model(server.spec(), ledger, reasoning=2000, price_in=0.0, price_out=1_000_000.0)
    request = ask("hello", max_tokens=40)
    assert model.estimate([request]).max_tokens_out == 2040
    assert model.estimate([request]).max_money == 2040.0
    [result] = model.run([request], model.chat)
    assert isinstance(result, CallResult)
    assert limits(server) == [2040]
    assert result.calls == (request_key(model.identity, "chat", request.content())[0],)
    plain = a_model(server.spec(), ledger)
    assert plain.run([request], plain.chat) == [result], "the same call is not made again without the allowance"
    assert len(server.seen) == 1


def test_the_budget_reckons_with_it(server: FaultServer, ledger: Ledger) -> None:
    budget = Budget(money=0.0019)
    model = a_model(server.spec(), ledger, budget=budget, reasoning=2000, price_in=0.0, price_out=1.0)
    with pytest.raises(BudgetSpent):
        chats(model, ["hello"], max_tokens=40)
    assert not server.seen


def test_a_window_leaves_what_it_can(ledger: Ledger) -> None:
    large = loaded("http://host/v1#model", ledger, context=64000)
    assert large.context == 56000, "what is shown leaves room for the reasoning"
    small = loaded("http://host/v1#model", ledger, context=4096)
    assert small.context == 4096
    assert 3000 < small.limit(ask("x" * 900, max_tokens=200)) < 4096 - 300
    assert small.limit(ask("x" * 90_000, max_tokens=200)) == 200


def test_an_endpoint_that_refuses_the_limit_is_asked_with_the_plain_one(server: FaultServer, ledger: Ledger) -> None:
    model = a_model(server.spec(), ledger, reasoning=8000)
    [result] = chats(model, ["fault=capped:4096"], max_tokens=40)
    assert reply_text(result)
    assert limits(server) == [8040, 40]
    [broken] = chats(model, ["fault=400"], max_tokens=40)
    assert failure(broken).kind == "bad-request"
    assert limits(server)[2:] == [8040], "another fault is not the limit's"


# What is said


def test_reasoning_that_took_everything_is_said(server: FaultServer, ledger: Ledger) -> None:
    model = a_model(server.spec(), ledger)
    request = ask(HIDDEN, schema=SCHEMA, max_tokens=300)
    [result] = model.run([request], model.chat_json)
    said = failure(result)
    assert said.kind == "truncated"
    assert said.message.startswith("the model used all 300 tokens for reasoning and wrote no answer; allow more")
    assert "--reasoning" in said.message
    assert model.starved == 1
    assert len(server.seen) == 1, "a repair could not mend it"


def test_a_higher_allowance_asks_again_for_what_reasoning_cut_short_and_nothing_else(
    server: FaultServer, ledger: Ledger
) -> None:
    texts = [HIDDEN, "an ordinary one", "fault=truncated"]
    starved, plain, cut = chats(a_model(server.spec(), ledger), texts, max_tokens=300)
    assert failure(starved).kind == "truncated"
    more = a_model(server.spec(), ledger, reasoning=2000)
    answered, same, still_cut = chats(more, texts, max_tokens=300)
    assert reply_text(answered)
    assert (same, still_cut) == (plain, cut)
    assert limits(server) == [300, 300, 300, 2300]
    assert chats(more, texts, max_tokens=300)[0] == answered
    assert len(server.seen) == 4
    short = a_model(server.spec(), ledger, reasoning=100)
    assert failure(chats(short, [HIDDEN], max_tokens=300)[0]).kind == "truncated"
    assert limits(server)[4:] == [400]
    assert failure(chats(short, [HIDDEN], max_tokens=300)[0]).kind == "truncated"
    assert len(server.seen) == 5, "asked once with this allowance"


def test_output_without_text_or_reasoning_is_said(tmp_path: Path, ledger: Ledger) -> None:
    (tmp_path / "replay.jsonl").write_text(json.dumps({"contains": "x", "text": "", "finish": "length"}) + "\n")
    [result] = chats(load_model(f"replay:{tmp_path / 'replay.jsonl'}", ledger=ledger), ["x"], max_tokens=9)
    assert failure(result).message == "no text within the output limit of 9 tokens"


def test_a_batch_asks_again_in_the_next_file(tmp_path: Path, ledger: Ledger) -> None:
    spec = f"batch:{tmp_path / 'b'}#thinker"

    def go(reasoning: int) -> list[Any]:
        return chats(a_model(spec, ledger, reasoning=reasoning), ["hello"], max_tokens=100)

    def line(number: int) -> Any:
        return json.loads((tmp_path / "b" / f"requests-{number:03d}.jsonl").read_text())

    with pytest.raises(BatchPending):
        go(500)
    assert line(1)["body"]["max_completion_tokens"] == 600
    body = {
        "choices": [{"message": {"content": None}, "finish_reason": "length"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 600, "completion_tokens_details": {"reasoning_tokens": 600}},
    }
    answer = {"custom_id": line(1)["custom_id"], "response": {"status_code": 200, "body": body}, "error": None}
    (tmp_path / "b" / "out.jsonl").write_text(json.dumps(answer))
    assert "used all 600 tokens for reasoning" in failure(go(500)[0]).message
    with pytest.raises(BatchPending):
        go(4000)
    assert line(2)["body"]["max_completion_tokens"] == 4100
