"""What endpoints are sent, where they differ."""

from __future__ import annotations

import pytest

from hoofbeat.models.reply_text import same_model
from hoofbeat.models.wire import Dialect, chat_body, classify
from tests.models.support import ask

SCHEMA: dict[str, object] = {"type": "object", "properties": {"reason": {"type": "string", "maxLength": 240}}}


def test_openai_names_the_limit_otherwise_and_takes_no_string_lengths() -> None:
    request = ask("hello", schema=SCHEMA, max_tokens=7)
    plain, openai = chat_body("m", request), chat_body("m", request, Dialect(openai=True))
    assert plain["max_tokens"] == openai["max_completion_tokens"] == 7
    assert "max_tokens" not in openai
    assert "maxLength" in str(plain["response_format"])
    assert "maxLength" not in str(openai["response_format"])


def test_fields_are_added_and_left_out_and_change_the_identity() -> None:
    dialect = Dialect(extra={"reasoning_effort": "low"}, omit=("temperature",))
    body = chat_body("m", ask("hello"), dialect)
    assert body["reasoning_effort"] == "low"
    assert "temperature" not in body
    identities = {Dialect().identity("m"), dialect.identity("m"), Dialect(omit=("temperature",)).identity("m")}
    assert len(identities) == 3
    assert Dialect().identity("m") == "m"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, b'{"error":{"code":500,"message":"image input is not supported - hint: mmproj","type":"server_error"}}'),
        (501, b'{"error":{"message":"This server does not support embeddings","type":"not_supported_error"}}'),
    ],
)
def test_what_an_endpoint_can_t_do_is_not_tried_again(status: int, body: bytes) -> None:
    trouble = classify(status, {}, body)
    assert trouble.kind == "unsupported"
    assert not trouble.retryable


def test_an_embedding_input_that_is_too_long_is_an_overflow() -> None:
    body = b'{"error":{"message":"input (900 tokens) is too large to process","type":"server_error"}}'
    assert classify(500, {}, body).kind == "context-overflow"


@pytest.mark.parametrize(
    ("asked", "said", "same"),
    [
        ("gpt-4o", "gpt-4o-2024-08-06", True),
        ("claude-opus-4-5", "claude-opus-4-5-20251101", True),
        ("qwen/Qwen3-32B", "Qwen3-32B", True),
        ("llama3", "llama3:latest", True),
        ("gpt-4o", "", True),
        ("gpt-4o", "gpt-4o-mini", False),
        ("gpt-4", "gpt-4.1", False),
        ("gpt-4o", "tiny-llama-1b", False),
    ],
)
def test_whether_a_reply_is_from_the_model_that_was_asked(asked: str, said: str, same: bool) -> None:
    assert same_model(asked, said) is same
