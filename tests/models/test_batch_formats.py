"""The batch files of the large providers, on the shapes that their documentation shows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hoofbeat.errors import BatchPending, UsageError
from hoofbeat.models import Image, Message
from hoofbeat.models.batch_formats import BatchFormat, read_answer, request_line, unsupported
from hoofbeat.models.requests import ChatRequest, Reply, Trouble
from hoofbeat.models.wire import PLAIN, Dialect
from hoofbeat.store.call_ledger import Ledger
from tests.models.support import SCHEMA, a_model, ask, chats, failure, ledger_in, reply_text

Line = dict[str, Any]
ID = "0" * 40 + "-001"
TEXTS = [f"question {number}" for number in range(4)]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with ledger_in(tmp_path) as opened:
        yield opened


def a_request(**more: Any) -> ChatRequest:
    messages = (
        Message(role="system", content="You are an examiner."),
        Message(role="user", content="Judge this.", images=(Image.of(b"pixels", "image/png"),)),
        Message(role="assistant", content="hm"),
        Message(role="user", content="As JSON."),
    )
    return ChatRequest(messages=messages, max_tokens=300, **more)


def line(format: BatchFormat, dialect: Dialect = PLAIN, **more: Any) -> Line:
    made: Line = json.loads(json.dumps(request_line(ID, "some-model", a_request(**more), format, dialect)))
    return made


def read(answer: Line) -> Reply | Trouble:
    id, outcome = read_answer(json.dumps(answer).encode())
    assert id == ID
    return outcome


# Requests


def test_anthropic_requests() -> None:
    made = line("anthropic", schema=SCHEMA, seed=7, stop=("END",))
    assert set(made) == {"custom_id", "params"}
    params = made["params"]
    assert (params["model"], params["max_tokens"], params["temperature"]) == ("some-model", 300, 0.0)
    assert params["system"] == "You are an examiner."
    assert [message["role"] for message in params["messages"]] == ["user", "assistant", "user"]
    image, text = params["messages"][0]["content"]
    assert image == {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "cGl4ZWxz"}}
    assert text == {"type": "text", "text": "Judge this."}
    assert params["output_config"] == {"format": {"type": "json_schema", "schema": SCHEMA}}
    assert params["stop_sequences"] == ["END"]
    assert not {"seed", "n", "response_format", "max_completion_tokens"} & set(params), "Anthropic refuses these"


def test_anthropic_schemas_have_no_bounds_but_keep_their_fields() -> None:
    schema: dict[str, object] = {
        "type": "object",
        "properties": {
            "maximum": {"type": "integer", "minimum": 1, "maximum": 5},
            "items": {"type": "array", "minItems": 3, "maxItems": 4, "items": {"type": "string", "maxLength": 9}},
        },
        "required": ["maximum"],
        "additionalProperties": False,
    }
    sent = line("anthropic", schema=schema)["params"]["output_config"]["format"]["schema"]
    assert sent["properties"] == {
        "maximum": {"type": "integer"},
        "items": {"type": "array", "minItems": 1, "items": {"type": "string"}},
    }
    assert sent["additionalProperties"] is False


def test_a_temperature_is_not_sent_beside_thinking() -> None:
    thinking = Dialect(extra={"thinking": {"type": "enabled", "budget_tokens": 2000}}, omit=("stop_sequences",))
    params = line("anthropic", thinking, stop=("END",))["params"]
    assert params["thinking"]["budget_tokens"] == 2000
    assert "temperature" not in params
    assert "stop_sequences" not in params


@pytest.mark.parametrize("format", ["gemini", "vertex"])
def test_gemini_requests(format: BatchFormat) -> None:
    extra: dict[str, object] = {"generationConfig": {"thinkingConfig": {"thinkingBudget": 1024}}}
    made = line(format, Dialect(extra=extra, omit=("temperature",)), schema=SCHEMA, seed=7, stop=("END",), top_p=0.9)
    request = made["request"]
    if format == "gemini":
        assert made == {"key": ID, "request": request}
        assert "labels" not in request, "the Gemini API knows no labels"
    else:
        assert made == {"request": request}
        assert request["labels"] == {"hoofbeat_id": ID}
        assert len(ID) <= 63, "the length of a label's value"
    assert request["systemInstruction"] == {"parts": [{"text": "You are an examiner."}]}
    assert [content["role"] for content in request["contents"]] == ["user", "model", "user"]
    picture = {"inlineData": {"mimeType": "image/png", "data": "cGl4ZWxz"}}
    assert request["contents"][0]["parts"] == [picture, {"text": "Judge this."}]
    assert request["generationConfig"] == {
        "maxOutputTokens": 300,
        "topP": 0.9,
        "seed": 7,
        "stopSequences": ["END"],
        "responseMimeType": "application/json",
        "responseJsonSchema": SCHEMA,
        "thinkingConfig": {"thinkingBudget": 1024},
    }


def test_token_probabilities_are_openais_alone() -> None:
    assert unsupported(ask("x", top_logprobs=3), "openai") is None
    for format in ("anthropic", "gemini", "vertex"):
        refused = unsupported(ask("x", top_logprobs=3), format)
        assert refused is not None
        assert (refused.kind, refused.retryable) == ("unsupported", False)


# Answers


def anthropic(result: Line) -> Line:
    return {"custom_id": ID, "result": result}


def message(**more: Any) -> Line:
    return {
        "id": "msg_014VwiXbi91y3JMjcpyGBHX5",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": [{"type": "text", "text": "Hello again!"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 36, "cache_read_input_tokens": 5},
        **more,
    }


def test_anthropic_answers() -> None:
    reply = read(anthropic({"type": "succeeded", "message": message()}))
    assert isinstance(reply, Reply)
    assert (reply.text, reply.finish, reply.model) == ("Hello again!", "stop", "claude-x")
    assert (reply.usage.tokens_in, reply.usage.tokens_out) == (16, 36)
    thought = [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "redacted_thinking", "data": "d"}]
    cut = read(anthropic({"type": "succeeded", "message": message(content=thought, stop_reason="max_tokens")}))
    assert isinstance(cut, Reply)
    assert (cut.text, cut.reasoning, cut.finish) == ("", "hm", "length")
    refused = read(anthropic({"type": "succeeded", "message": message(content=[], stop_reason="refusal")}))
    assert isinstance(refused, Reply)
    assert refused.finish == "refusal"


@pytest.mark.parametrize(
    ("result", "kind", "retryable"),
    [
        ({"type": "expired"}, "server-error", True),
        ({"type": "canceled"}, "server-error", True),
        ({"type": "errored", "error": {"type": "error", "error": {"type": "overloaded_error", "message": "Busy"}}},
         "server-error", True),
        ({"type": "errored", "error": {"type": "error", "error": {
            "type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"}}},
         "context-overflow", False),
        ({"type": "errored", "error": {"type": "error", "error": {
            "type": "invalid_request_error", "message": "messages: roles must alternate"}}}, "bad-request", False),
        ({"type": "errored", "error": {"type": "rate_limit_error", "message": "slow down"}}, "rate-limited", True),
        ({"type": "errored"}, "server-error", True),
    ],
)  # fmt: skip
def test_anthropic_results_without_a_message(result: Line, kind: str, retryable: bool) -> None:
    trouble = read(anthropic(result))
    assert isinstance(trouble, Trouble)
    assert (trouble.kind, trouble.retryable) == (kind, retryable)


def gemini(**more: Any) -> Line:
    return {
        "candidates": [
            {"content": {"parts": [{"text": "Why not?"}], "role": "model"}, "finishReason": "STOP", "index": 0}
        ],
        "usageMetadata": {"promptTokenCount": 8, "candidatesTokenCount": 30, "totalTokenCount": 38},
        "modelVersion": "gemini-x",
        "responseId": "r",
        **more,
    }


def vertex(response: Line, status: str = "") -> Line:
    request = {"contents": [{"role": "user", "parts": [{"text": "x"}]}], "labels": {"hoofbeat_id": ID}}
    return {
        "status": status,
        "processed_time": "2026-11-01T18:13:16.826+00:00",
        "request": request,
        "response": response,
    }


@pytest.mark.parametrize("wrapped", [lambda body: {"key": ID, "response": body}, vertex], ids=["gemini", "vertex"])
def test_gemini_answers(wrapped: Callable[[Line], Line]) -> None:
    reply = read(wrapped(gemini()))
    assert isinstance(reply, Reply)
    assert (reply.text, reply.finish, reply.model) == ("Why not?", "stop", "gemini-x")
    assert (reply.usage.tokens_in, reply.usage.tokens_out) == (8, 30)
    usage = {"promptTokenCount": 8, "thoughtsTokenCount": 112}
    thought = {"content": {"parts": [{"text": "hm", "thought": True}]}, "finishReason": "MAX_TOKENS"}
    starved = read(wrapped(gemini(candidates=[thought], usageMetadata=usage)))
    assert isinstance(starved, Reply)
    assert (starved.text, starved.reasoning, starved.finish) == ("", "hm", "length")
    assert (starved.usage.tokens_out, starved.reasoning_tokens) == (112, 112)
    blocked = read(wrapped(gemini(candidates=[{"finishReason": "SAFETY"}])))
    assert isinstance(blocked, Reply)
    assert blocked.finish == "refusal"
    prompt = read(wrapped(gemini(candidates=[], promptFeedback={"blockReason": "PROHIBITED_CONTENT"})))
    assert isinstance(prompt, Reply)
    assert prompt.finish == "refusal"


@pytest.mark.parametrize(
    ("answer", "kind", "retryable"),
    [
        ({"key": ID, "error": {"code": 3, "message": "Invalid value at contents"}}, "bad-request", False),
        ({"key": ID, "error": {"code": 400, "message": "The input token count exceeds the maximum context length"}},
         "context-overflow", False),
        ({"key": ID, "error": {"code": 8, "message": "Resource exhausted"}}, "rate-limited", True),
        ({"key": ID, "error": {"code": 4, "message": "Deadline expired"}}, "timeout", True),
        ({"key": ID, "error": {"message": "?"}}, "server-error", True),
        ({"key": ID}, "server-error", True),
        ({"key": ID, "response": {"usageMetadata": {}}}, "server-error", True),
        (vertex({}, 'Bad Request: {"error": {"code": 400, "message": "Invalid mime type"}}'), "bad-request", False),
        (vertex({}, "Internal error occurred. Please retry."), "server-error", True),
    ],
)  # fmt: skip
def test_gemini_lines_without_a_response(answer: Line, kind: str, retryable: bool) -> None:
    trouble = read(answer)
    assert isinstance(trouble, Trouble)
    assert (trouble.kind, trouble.retryable) == (kind, retryable)


@pytest.mark.parametrize("code", ["batch_expired", "batch_cancelled", "request_timeout"])
def test_openai_requests_that_were_never_answered(code: str) -> None:
    trouble = read({"id": "b", "custom_id": ID, "response": None, "error": {"code": code, "message": "not executed"}})
    assert isinstance(trouble, Trouble)
    assert trouble.retryable
    assert code in trouble.message


@pytest.mark.parametrize(
    "broken", [b"", b"x", b"[]", b"{}", b'{"custom_id": 1}', b'{"key": "k", "response": {"candidates": 3}}', b"\xff"]
)
def test_what_is_no_answer_is_said(broken: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_answer(broken)


# Round trips


def answered(format: str, request: Line) -> Line:
    if format == "anthropic":
        said = "about " + request["params"]["messages"][0]["content"]
        return anthropic({"type": "succeeded", "message": message(content=[{"type": "text", "text": said}])}) | {
            "custom_id": request["custom_id"]
        }
    said = "about " + request["request"]["contents"][0]["parts"][0]["text"]
    response = gemini(candidates=[{"content": {"parts": [{"text": said}]}, "finishReason": "STOP"}])
    if format == "gemini":
        return {"key": request["key"], "response": response}
    return {**vertex(response), "request": request["request"]}


@pytest.mark.parametrize("format", ["anthropic", "gemini", "vertex"])
def test_a_round_trip_with_a_part_that_expired(tmp_path: Path, ledger: Ledger, format: str) -> None:
    folder = tmp_path / "batch"
    spec = f"batch:{folder}?format={format}#some-model"
    with pytest.raises(BatchPending, match="4 requests"):
        chats(a_model(spec, ledger), TEXTS)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["batch"]
    asked = [json.loads(each) for each in (folder / "requests-001.jsonl").read_text().splitlines()]
    lines = [answered(format, request) for request in asked[:3]]
    (folder / "results.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    with pytest.raises(BatchPending, match=r"1 request was written to requests-002.jsonl"):
        chats(a_model(spec, ledger), TEXTS)
    [again] = [json.loads(each) for each in (folder / "requests-002.jsonl").read_text().splitlines()]
    (folder / "rest.jsonl").write_text(json.dumps(answered(format, again)) + "\n")
    results = chats(a_model(spec, ledger), TEXTS)
    assert [reply_text(result) for result in results] == [f"about {text}" for text in TEXTS]


def test_a_format_that_nobody_has_is_said(tmp_path: Path, ledger: Ledger) -> None:
    with pytest.raises(UsageError, match="no batch format 'antropic'") as caught:
        a_model(f"batch:{tmp_path}?format=antropic#x", ledger)
    assert "did you mean anthropic?" in str(caught.value)


def test_a_request_for_probabilities_fails_without_a_file(tmp_path: Path, ledger: Ledger) -> None:
    model = a_model(f"batch:{tmp_path / 'b'}?format=gemini#x", ledger)
    assert failure(chats(model, ["x"], top_logprobs=2)[0]).kind == "unsupported"
