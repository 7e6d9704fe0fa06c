"""Reading JSON that a model wrote, against the schema it was asked for."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import fastjsonschema
import msgspec

from hoofbeat.models.requests import ChatRequest, Message, Reply
from hoofbeat.records import FailureKind
from hoofbeat.store.tables import canonical_json

_BEGINNING = 160  # characters that are shown again of an output that was cut off
_CUT_OFF = "That ran on and was cut off. Write the whole JSON object again, and keep every text in it short."

_FENCE = re.compile(r"```(?:json)?\s*(.*?)```", re.DOTALL)


class UnreadableOutput(msgspec.Struct, frozen=True):
    """Why an output is not the object that was asked for."""

    kind: FailureKind
    message: str


def without_limits(schema: Any) -> Any:
    """The schema without string lengths: they guide small models, but a long answer is no broken one."""
    if isinstance(schema, dict):
        return {key: without_limits(value) for key, value in schema.items() if key not in ("minLength", "maxLength")}
    if isinstance(schema, list):
        return [without_limits(value) for value in schema]
    return schema


class _Latest:
    """The last schema that was used and its validator: a thousand replies in a row are for one and the same."""

    def __init__(self) -> None:
        self._known: tuple[dict[str, object], Callable[[object], object]] | None = None

    def validator(self, schema: dict[str, object]) -> Callable[[object], object]:
        known = self._known
        if known is None or known[0] is not schema:
            known = self._known = schema, _validator(canonical_json(schema))
        return known[1]


_LATEST = _Latest()


@lru_cache(maxsize=256)
def _validator(schema: bytes) -> Callable[[object], object]:
    compiled: Callable[[object], object] = fastjsonschema.compile(without_limits(msgspec.json.decode(schema)))
    return compiled


def read_object(reply: Reply, schema: dict[str, object]) -> dict[str, Any] | UnreadableOutput:
    """The JSON object in a reply: plain, in a code fence, or after other words; checked against its schema."""
    value = _find_object(reply.text)
    if value is None:
        if reply.finish == "length":
            return UnreadableOutput("truncated", "the output limit cut the JSON off")
        return UnreadableOutput("unreadable", f"no JSON object in: {reply.text[:120]!r}")
    try:
        _LATEST.validator(schema)(value)
    except fastjsonschema.JsonSchemaValueException as err:
        return UnreadableOutput("schema", str(err.message))
    return value


def _find_object(text: str) -> dict[str, Any] | None:
    candidates = [text, *_FENCE.findall(text)]
    begin, end = text.find("{"), text.rfind("}")
    if 0 <= begin < end:
        candidates.append(text[begin : end + 1])
    for candidate in candidates:
        try:
            value = msgspec.json.decode(candidate)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
    return None


def repair_request(request: ChatRequest, reply: Reply, problem: UnreadableOutput) -> ChatRequest:
    """The one repair: the conversation so far, what was wrong, and the contract again.

    An output that ran on until it was cut off is asked for once more in short, and only its beginning is shown: shown
    all of it, a model would go on with it. Endpoints that take no string lengths do not hold outputs to them.
    """
    said = f"{reply.text[:_BEGINNING]} …" if reply.text and reply.finish == "length" else reply.text[:4000]
    ask = _CUT_OFF
    if problem.kind != "truncated":
        schema = canonical_json(request.schema).decode()
        ask = (
            f"That output can't be used: {problem.message}. Write the same answer again as one JSON object that fits "
            f"this schema, and nothing else: {schema}"
        )
    messages = (
        *request.messages,
        Message(role="assistant", content=said or "(nothing)"),
        Message(role="user", content=ask),
    )
    return msgspec.structs.replace(request, messages=messages)
