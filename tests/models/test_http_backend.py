"""The HTTP backend against a real OpenAI-compatible server: llama.cpp's, with the tiny model.

The answers' quality says nothing here; that they come through the same client as any hosted endpoint's does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hoofbeat.errors import ModelError, WeightsError
from hoofbeat.models import CallResult, Likelihood, Model, StructuredReply, embedded
from hoofbeat.models.embedded import EmbeddedServer
from hoofbeat.records import Failure
from hoofbeat.store.call_ledger import Ledger
from tests.models.support import SCHEMA, a_model, ask, chats, failure, ledger_in

MODEL = os.environ.get("HOOFBEAT_TEST_MODEL", "")  # the tiny one, unless another is to be tried
CONTEXT = 512
PARIS, DIMENSION = {"": (-0.26, 576), "qwen2.5-coder-1.5b": (-0.67, 1536)}[MODEL]


def started(**settings: Any) -> Iterator[EmbeddedServer]:
    try:
        server = embedded.start_embedded(MODEL, context=CONTEXT, **settings)
    except WeightsError as err:
        pytest.skip(f"the tiny model's weights are not here: {err.fix}")
    with server:
        yield server


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    yield from started()


@pytest.fixture(scope="module")
def embedder() -> Iterator[EmbeddedServer]:
    yield from started(embedding=True)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with ledger_in(tmp_path) as opened:
        yield opened


@pytest.fixture
def model(server: EmbeddedServer, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> Model:
    return by_address(server, ledger, monkeypatch)


def by_address(server: EmbeddedServer, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> Model:
    """The server as a user would name it who knows only its address, with the key in the environment."""
    monkeypatch.setenv("LOCAL_KEY", server.api_key)
    return a_model(f"{server.base_url}#{server.name}", ledger, key="LOCAL_KEY", timeout=120.0, **settings)


def test_chat_is_answered_kept_and_the_same_again(model: Model) -> None:
    [first] = chats(model, ["Name one bone of the hand."], max_tokens=12)
    assert isinstance(first, CallResult)
    assert first.reply.text
    assert first.reply.usage.tokens_in > 5
    assert 0 < first.reply.usage.tokens_out <= 12
    [again] = chats(model, ["Name one bone of the hand."], max_tokens=12)
    assert again == first
    assert (model.made, model.cached) == (1, 1)


def test_an_answer_cut_by_the_limit_says_so(model: Model) -> None:
    [result] = chats(model, ["Count from one to one hundred."], max_tokens=3)
    assert isinstance(result, CallResult)
    assert result.reply.finish == "length"


def test_output_follows_the_schema(model: Model) -> None:
    request = ask("Is 'aspirin' the same as 'acetylsalicylic acid'? Answer as JSON.", schema=SCHEMA, max_tokens=40)
    [result] = model.run([request], model.chat_json)
    assert isinstance(result, StructuredReply)
    assert result.value["label"] in ("equivalent", "mismatch")
    assert len(result.calls) == 1


def test_log_probabilities_come_with_the_tokens(model: Model) -> None:
    [result] = chats(model, ["Say yes or no."], max_tokens=2, top_logprobs=3)
    assert isinstance(result, CallResult)
    first = result.reply.logprobs[0]
    assert len(first.top) == 3
    assert first.logprob == max(first.top.values()) <= 0


def test_a_continuation_is_scored(model: Model) -> None:
    pairs = [("The capital of France is", " Paris"), ("The capital of France is", " Zanzibar")]
    likely, unlikely = model.run(pairs, lambda pair: model.loglikelihood(*pair))
    assert isinstance(likely, Likelihood)
    assert isinstance(unlikely, Likelihood)
    assert likely.total == pytest.approx(PARIS, abs=0.15)
    assert likely.per_token > unlikely.per_token
    assert "".join(likely.tokens) == " Paris"
    assert model.run(pairs, lambda pair: model.loglikelihood(*pair)) == [likely, unlikely]
    assert model.made == 2


def test_a_prompt_that_does_not_fit_is_a_failure_beside_the_others(model: Model) -> None:
    long, short = chats(model, ["fever and cough " * CONTEXT, "Hello."], max_tokens=4)
    assert failure(long).kind == "context-overflow"
    assert failure(long).attempts == 1
    assert isinstance(short, CallResult)


def test_a_wrong_key_stops_the_run(server: EmbeddedServer, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    model = by_address(server, ledger, monkeypatch)
    monkeypatch.setenv("LOCAL_KEY", "wrong")
    with pytest.raises(ModelError, match="refuses the key"):
        chats(model, ["Hello."])
    assert server.api_key not in repr([*ledger.entries()])


def test_embeddings_of_texts(embedder: EmbeddedServer, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    model = by_address(embedder, ledger, monkeypatch)
    [rows] = model.run([["fever", "raised temperature", "fever"]], model.embed)
    assert not isinstance(rows, Failure)
    assert rows.dtype == np.float32
    assert rows.shape == (3, DIMENSION)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1.0, abs=1e-3)
    assert (rows[0] == rows[2]).all()
    assert not (rows[0] == rows[1]).all()
