"""What holds for every answer of an endpoint and every output of a model, whatever they say."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from hoofbeat.models.batch_formats import BATCH_FORMATS, read_answer
from hoofbeat.models.bounds import MAX_COUNT, MAX_WAIT, within_bounds
from hoofbeat.models.reply_text import UnreadableOutput, is_refusal, read_object, split_reasoning
from hoofbeat.models.requests import Reply, Trouble
from hoofbeat.models.wire import classify, read_chat, retry_after_seconds

SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {"label": {"type": "string"}, "score": {"type": "integer"}},
    "required": ["label", "score"],
    "additionalProperties": False,
}
words = st.text(st.characters(codec="utf-8"), max_size=60)
plain = words.filter(lambda text: not any(mark in text for mark in "<[◁{}`") and text.strip() == text)
scalars = st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats() | words
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4), max_leaves=12
)
FIELDS = (
    "choices",
    "message",
    "content",
    "usage",
    "prompt_tokens",
    "error",
    "logprobs",
    "top_logprobs",
    "finish_reason",
)
shaped = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=5),
    max_leaves=20,
)


def _sound(found: Reply | Trouble) -> None:
    """What the budget, the ledger and the screen rely on."""
    msgspec.json.decode(msgspec.json.encode(found), type=type(found))
    if isinstance(found, Trouble):
        assert found.message.isprintable()
        assert len(found.message) <= 600
        assert found.retry_after is None or 0 <= found.retry_after <= MAX_WAIT
    else:
        assert 0 <= found.usage.tokens_in <= MAX_COUNT
        assert 0 <= found.usage.tokens_out <= MAX_COUNT
        assert all(math.isfinite(token.logprob) for token in found.logprobs)


@given(anything | shaped)
def test_any_json_of_an_endpoint_is_a_reply_or_a_trouble(value: Any) -> None:
    data = json.dumps(value).encode()
    _sound(within_bounds(read_chat(data)))
    for status in (302, 400, 401, 404, 429, 500, 504):
        _sound(within_bounds(classify(status, {"retry-after": str(value)[:40], "location": str(value)[:40]}, data)))


@given(st.binary(max_size=80), words)
def test_any_bytes_and_any_pause_asked_for_are_read(data: bytes, header: str) -> None:
    _sound(within_bounds(read_chat(data)))
    waited = retry_after_seconds(header)
    assert waited is None or 0 <= waited <= MAX_WAIT


@given(shaped, st.sampled_from(("custom_id", "key")))
def test_any_line_of_a_batch_is_an_answer_or_refused(value: Any, name: str) -> None:
    for line in ({name: "a", "response": value}, {name: "a", "result": value}, {name: "a", "error": value}):
        try:
            id, found = read_answer(json.dumps(line).encode())
        except ValueError:
            continue
        assert id == "a"
        _sound(within_bounds(found))


@given(plain.filter(bool), st.sampled_from(BATCH_FORMATS), st.integers(0, 10**6), st.integers(0, 10**6))
def test_what_a_model_said_is_the_same_from_every_provider(text: str, format: str, read: int, wrote: int) -> None:
    chat = {
        "choices": [{"message": {"content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": read, "completion_tokens": wrote},
    }
    gemini = {
        "candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": read, "candidatesTokenCount": wrote},
    }
    message = {"content": [{"type": "text", "text": text}], "usage": {"input_tokens": read, "output_tokens": wrote}}
    lines: dict[str, Any] = {
        "openai": {"custom_id": "a", "response": {"status_code": 200, "body": chat}},
        "anthropic": {"custom_id": "a", "result": {"type": "succeeded", "message": message}},
        "gemini": {"key": "a", "response": gemini},
        "vertex": {"request": {"labels": {"hoofbeat_id": "a"}}, "response": gemini},
    }
    id, found = read_answer(json.dumps(lines[format]).encode())
    assert id == "a"
    assert isinstance(found, Reply)
    assert (found.text, found.finish) == (text, "stop")
    assert (found.usage.tokens_in, found.usage.tokens_out) == (read, wrote)


@given(plain, plain.filter(bool), st.sampled_from(("<think>{}</think>", "[THINK]{}[/THINK]", "◁think▷{}◁/think▷")))
def test_reasoning_and_answer_are_told_apart(thought: str, answer: str, marks: str) -> None:
    parted = split_reasoning(marks.format(thought) + "\n\n" + answer)
    assert (parted.text, parted.reasoning, parted.unfinished) == (answer, thought, False)


@given(words, st.integers(-(10**6), 10**6), plain, plain)
def test_an_object_is_found_in_a_fence_and_after_words(label: str, score: int, before: str, after: str) -> None:
    value = {"label": label, "score": score}
    written = json.dumps(value)
    shapes = [written, f"{before}{written}{after}"]
    if "```" not in written:
        shapes.append(f"{before}\n```json\n{written}\n```\n{after}")
    for text in shapes:
        assert read_object(Reply(text=text), SCHEMA) == value


@given(anything)
def test_an_object_of_another_shape_is_never_taken(value: Any) -> None:
    found = read_object(Reply(text=json.dumps(value)), SCHEMA)
    if not isinstance(found, UnreadableOutput):
        assert found == value
        assert set(found) == {"label", "score"}


@given(words)
def test_a_text_that_answers_is_no_refusal(text: str) -> None:
    assert not is_refusal(f"I can't help with that. However, the answer is {text}")
    assert not is_refusal(text + "x" * 400)
    assert is_refusal(text) in (True, False)
