"""The key of a request: the same for the same content, another for anything that can change the answer."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoofbeat.models import ChatRequest, Image, Likelihood, Message
from hoofbeat.models.requests import request_key
from tests.models.support import SCHEMA, ask

BASE = ask("A man has fever.", schema=SCHEMA, seed=1)


def key(request: ChatRequest, identity: str = "m", operation: str = "chat") -> str:
    return request_key(identity, operation, request.content())[0]


@pytest.mark.parametrize(
    "change",
    [
        {"messages": (Message(role="user", content="A man has fever"),)},
        {"messages": (Message(role="system", content="A man has fever."),)},
        {"messages": (*BASE.messages, Message(role="user", content="x"))},
        {"max_tokens": 513},
        {"temperature": 0.1},
        {"top_p": 1.0},
        {"seed": 2},
        {"seed": None},
        {"stop": ("\n",)},
        {"schema": None},
        {"schema": {**SCHEMA, "additionalProperties": True}},
        {"top_logprobs": 5},
        {"sample": 1},
    ],
)
def test_everything_that_can_change_the_answer_changes_the_key(change: dict[str, Any]) -> None:
    assert key(msgspec.structs.replace(BASE, **change)) != key(BASE)


def test_model_and_operation_change_the_key() -> None:
    assert len({key(BASE), key(BASE, identity="n"), key(BASE, operation="embed")}) == 3


def test_the_prompts_name_does_not_change_the_key() -> None:
    assert key(msgspec.structs.replace(BASE, prompt="equivalence@abc")) == key(BASE)


def test_the_key_is_stable() -> None:
    """Another value here means that no ledger made before is read again."""
    expected = "4262065644f2ddbc4944c2528697c0e0621b5cc6d3264b9bb4d3b02aff834acd"
    assert key(BASE) == expected


def test_the_order_of_a_schemas_fields_does_not_change_the_key() -> None:
    turned = dict(reversed(SCHEMA.items()))
    assert list(turned) != list(SCHEMA)
    assert key(msgspec.structs.replace(BASE, schema=turned)) == key(BASE)


def test_images_count_by_content_and_are_not_kept() -> None:
    one, two = (Image.of(content, "image/png") for content in (b"one", b"two"))
    keys = set()
    for images in ((), (one,), (two,), (one, two), (two, one)):
        request = ChatRequest(messages=(Message(role="user", content="see", images=images),))
        keys.add(key(request))
        assert one.data not in str(request.content())
    assert len(keys) == 5


@given(st.text(), st.text())
def test_different_texts_have_different_keys(one: str, two: str) -> None:
    assert (key(ask(one)) == key(ask(two))) == (one == two)


def test_a_likelihood_per_token() -> None:
    assert Likelihood(total=-3.0, tokens=("a", "b"), logprobs=(-1.0, -2.0)).per_token == -1.5
    assert Likelihood(total=0.0, tokens=(), logprobs=()).per_token == 0.0
