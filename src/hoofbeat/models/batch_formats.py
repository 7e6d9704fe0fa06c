"""The batch files of the large providers: a request as one line of JSON, and a line of answers as a reply or a trouble.

    openai      {"custom_id", "method", "url", "body"}     → {"custom_id", "response": {"status_code", "body"}, "error"}
    anthropic   {"custom_id", "params"}                    → {"custom_id", "result": {"type", "message" or "error"}}
    gemini      {"key", "request"}                         → {"key", "response" or "error"}
    vertex      {"request"}, the id among its labels       → {"status", "processed_time", "request", "response"}

vLLM and most gateways take OpenAI's. Anthropic's API takes the lines as one list, `{"requests": [...]}`. Vertex returns
no key of ours, but the whole request: so the id is a label there. The shapes are those of the providers' documentation
(OpenAI Batch API, Anthropic Message Batches, Gemini Batch API, Vertex AI batch inference from Cloud Storage). What is
read is told by its shape, line by line, whatever was written.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any, Literal, get_args

import msgspec
from msgspec import Struct, field

from hoofbeat.models.reply_text import without_limits
from hoofbeat.models.requests import ChatRequest, Message, Reply, Trouble
from hoofbeat.models.wire import Dialect, chat_body, classify, read_chat
from hoofbeat.records import Usage

BatchFormat = Literal["openai", "anthropic", "gemini", "vertex"]
BATCH_FORMATS: tuple[str, ...] = get_args(BatchFormat)

_LABEL = "hoofbeat_id"
_encode = msgspec.json.Encoder().encode


# Requests


def request_line(id: str, name: str, request: ChatRequest, format: BatchFormat, dialect: Dialect) -> dict[str, object]:
    """One line of a requests file."""
    if format == "openai":
        body = chat_body(name, request, dialect)
        return {"custom_id": id, "method": "POST", "url": "/v1/chat/completions", "body": body}
    if format == "anthropic":
        return {"custom_id": id, "params": _changed(_anthropic_params(name, request, dialect), dialect)}
    content = _changed(_gemini_request(request), dialect)
    if format == "gemini":
        return {"key": id, "request": content}
    return {"request": {**content, "labels": {_LABEL: id}}}


def unsupported(request: ChatRequest, format: BatchFormat) -> Trouble | None:
    """What a provider's format can't ask for."""
    if request.top_logprobs and format != "openai":
        return Trouble(kind="unsupported", message=f"batches in the {format} format can't give token probabilities")
    return None


def _anthropic_params(name: str, request: ChatRequest, dialect: Dialect) -> dict[str, object]:
    system = "\n\n".join(message.content for message in request.messages if message.role == "system")
    params: dict[str, object] = {
        "model": name,
        "max_tokens": request.max_tokens,
        "messages": [_anthropic_message(message) for message in request.messages if message.role != "system"],
    }
    if system:
        params["system"] = system
    if "thinking" not in dialect.extra:  # the provider refuses a temperature beside it
        params["temperature"] = request.temperature
    if request.top_p is not None:
        params["top_p"] = request.top_p
    if request.stop:
        params["stop_sequences"] = request.stop
    if request.schema is not None:
        params["output_config"] = {"format": {"type": "json_schema", "schema": _without_counts(request.schema)}}
    return params


def _anthropic_message(message: Message) -> dict[str, object]:
    if not message.images:
        return {"role": message.role, "content": message.content}
    parts: list[dict[str, object]] = [
        {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": image.data}}
        for image in message.images
    ]
    return {"role": message.role, "content": [*parts, {"type": "text", "text": message.content}]}


_COUNTS = {"minimum", "maximum", "multipleOf", "minLength", "maxLength", "maxItems", "uniqueItems"}


def _without_counts(schema: Any) -> Any:
    """A schema as Anthropic takes it: no bounds on numbers, lengths and lists, but for "at least one".

    What comes back is checked against the whole schema all the same.
    """
    if isinstance(schema, list):
        return [_without_counts(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: _without_counts(value) for name, value in schema.items() if name not in (*_COUNTS, "properties")}
    if "properties" in schema:  # names of fields, not words of the schema language
        made["properties"] = {name: _without_counts(value) for name, value in schema["properties"].items()}
    if "minItems" in made:
        made["minItems"] = min(1, made["minItems"])
    return made


def _gemini_request(request: ChatRequest) -> dict[str, object]:
    settings: dict[str, object] = {"maxOutputTokens": request.max_tokens, "temperature": request.temperature}
    if request.top_p is not None:
        settings["topP"] = request.top_p
    if request.seed is not None:
        settings["seed"] = request.seed + request.sample
    if request.stop:
        settings["stopSequences"] = request.stop
    if request.schema is not None:
        settings["responseMimeType"] = "application/json"
        settings["responseJsonSchema"] = without_limits(request.schema)
    content: dict[str, object] = {
        "contents": [
            {"role": "model" if message.role == "assistant" else "user", "parts": _gemini_parts(message)}
            for message in request.messages
            if message.role != "system"
        ],
        "generationConfig": settings,
    }
    system = [{"text": message.content} for message in request.messages if message.role == "system"]
    if system:
        content["systemInstruction"] = {"parts": system}
    return content


def _gemini_parts(message: Message) -> list[dict[str, object]]:
    images: list[dict[str, object]] = [
        {"inlineData": {"mimeType": image.media_type, "data": image.data}} for image in message.images
    ]
    return [*images, {"text": message.content}]


def _changed(body: dict[str, object], dialect: Dialect) -> dict[str, object]:
    """A body with the fields that the configuration adds and leaves out; Gemini's are inside `generationConfig`."""
    made = {name: value for name, value in {**body, **dialect.extra}.items() if name not in dialect.omit}
    inner = body.get("generationConfig")
    if isinstance(inner, dict):
        added = dialect.extra.get("generationConfig")
        merged = {**inner, **(added if isinstance(added, dict) else {})}
        made["generationConfig"] = {name: value for name, value in merged.items() if name not in dialect.omit}
    return made


# Answers


class _Response(Struct):
    status_code: int | None = None
    body: msgspec.Raw = msgspec.Raw(b"null")


class _Part(Struct):
    text: str = ""
    thought: bool = False


class _Parts(Struct):
    parts: list[_Part] = field(default_factory=list)


class _Candidate(Struct, rename="camel"):
    content: _Parts = field(default_factory=_Parts)
    finish_reason: str = ""


class _GeminiUsage(Struct, rename="camel"):
    prompt_token_count: int = 0
    candidates_token_count: int = 0
    thoughts_token_count: int = 0


class _Feedback(Struct, rename="camel"):
    block_reason: str = ""


class _GeminiReply(Struct, rename="camel"):
    candidates: list[_Candidate] = field(default_factory=list)
    usage_metadata: _GeminiUsage = field(default_factory=_GeminiUsage)
    prompt_feedback: _Feedback = field(default_factory=_Feedback)
    model_version: str = ""


class _Block(Struct):
    type: str
    text: str = ""
    thinking: str = ""


class _AnthropicUsage(Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int | None = 0
    cache_read_input_tokens: int | None = 0


class _AnthropicReply(Struct):
    content: list[_Block]
    stop_reason: str | None = None
    usage: _AnthropicUsage = field(default_factory=_AnthropicUsage)
    model: str = ""


class _Result(Struct):
    type: str
    message: msgspec.Raw = msgspec.Raw(b"null")
    error: dict[str, Any] | None = None


class _Request(Struct):
    labels: dict[str, str] = field(default_factory=dict)
    contents: list[_Parts] = field(default_factory=list)


class _Line(Struct):
    """What tells whose line it is, in any of the formats."""

    custom_id: str = ""
    key: str = ""
    request: _Request | None = None

    @property
    def id(self) -> str:
        label = self.request.labels.get(_LABEL, "") if self.request else ""
        return self.custom_id or self.key or label


class _AnswerLine(_Line):
    """Every provider's answer in one: only the fields of one of them are there."""

    result: _Result | None = None
    response: msgspec.Raw = msgspec.Raw(b"null")
    error: object = None
    status: str | None = None


_decode = msgspec.json.Decoder(_AnswerLine).decode
_decode_line = msgspec.json.Decoder(_Line).decode


def request_id(line: bytes) -> str:
    """The id of a line of a requests file. Raises `ValueError` for any other line."""
    try:
        return _decode_line(line).id
    except (msgspec.DecodeError, RecursionError) as err:
        raise ValueError(str(err)) from err


def asked_words(line: bytes) -> bytes:
    """A hash of the words of the request that a line shows: Vertex's answers repeat the request. Empty for others."""
    request = _decode_line(line).request
    if request is None or _LABEL not in request.labels:
        return b""
    return sha256(_encode([[part.text for part in each.parts] for each in request.contents])).digest()


def read_answer(line: bytes) -> tuple[str, Reply | Trouble]:
    """A line of an answers file: whose answer it is, and what it is. Raises `ValueError` for any other line."""
    try:
        answer = _decode(line)
        if not answer.id:
            raise ValueError("no custom_id, key or label says which request it answers")
        if answer.result is not None:
            return answer.id, _anthropic_answer(answer.result)
        if answer.custom_id:
            return answer.id, _openai_answer(answer)
        return answer.id, _gemini_answer(answer)
    except (msgspec.DecodeError, RecursionError) as err:  # a UnicodeDecodeError is a ValueError already
        raise ValueError(str(err)) from err


def _openai_answer(answer: _AnswerLine) -> Reply | Trouble:
    response = msgspec.json.decode(answer.response, type=_Response | None)
    if response is None or response.status_code is None:
        code = answer.error.get("code") if isinstance(answer.error, dict) else answer.error
        return _again(f"batch error: {code or answer.error}")
    if response.status_code == 200:
        return read_chat(bytes(response.body))
    return classify(response.status_code, {}, bytes(response.body))


_ANTHROPIC_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
}


def _anthropic_answer(result: _Result) -> Reply | Trouble:
    if result.type == "succeeded":
        return _read_message(bytes(result.message))
    if result.type != "errored":  # expired or canceled: it was never tried
        return _again(f"batch error: {result.type}")
    error = (result.error or {}).get("error", result.error) or {}
    kind = str(error.get("type", "")) if isinstance(error, dict) else ""
    return classify(_ANTHROPIC_STATUS.get(kind, 500), {}, _encode({"error": error}))


def _read_message(data: bytes) -> Reply:
    wire = msgspec.json.decode(data, type=_AnthropicReply)
    usage = wire.usage
    cached = (usage.cache_creation_input_tokens or 0) + (usage.cache_read_input_tokens or 0)
    text = "".join(block.text for block in wire.content if block.type == "text")
    stop = wire.stop_reason
    return Reply(
        text=text,
        finish="refusal" if stop == "refusal" else "length" if stop in _CUT else "stop",
        reasoning="\n\n".join(block.thinking for block in wire.content if block.thinking),
        usage=Usage(tokens_in=usage.input_tokens + cached, tokens_out=usage.output_tokens),
        model=wire.model,
    )


_CUT = ("max_tokens", "model_context_window_exceeded")
_BLOCKED = re.compile(r"SAFETY|RECITATION|LANGUAGE|BLOCKLIST|PROHIBITED_CONTENT|SPII", re.IGNORECASE)
_INVALID = re.compile(r"INVALID_ARGUMENT|Bad Request|\b400\b", re.IGNORECASE)
_GRPC = {3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 14: 503, 16: 401}


def _gemini_answer(answer: _AnswerLine) -> Reply | Trouble:
    error = answer.error
    if isinstance(error, dict):
        code = error.get("code")
        status = _GRPC.get(code, code if code >= 400 else 500) if isinstance(code, int) else 500
        return classify(status, {}, _encode({"error": {"message": error.get("message") or str(error)}}))
    if error or answer.status:  # Vertex says what went wrong in words
        words = str(error or answer.status)
        return classify(400 if _INVALID.search(words) else 500, {}, _encode({"error": words}))
    wire = msgspec.json.decode(answer.response, type=_GeminiReply | None)
    if wire is None:
        return _again("batch error: neither a response nor an error")
    usage = wire.usage_metadata
    used = Usage(
        tokens_in=usage.prompt_token_count, tokens_out=usage.candidates_token_count + usage.thoughts_token_count
    )
    if not wire.candidates:
        reason = wire.prompt_feedback.block_reason
        if not reason:
            return _again("batch error: the response has no candidates")
        return Reply(text=f"blocked: {reason}", finish="refusal", usage=used, model=wire.model_version)
    candidate = wire.candidates[0]
    parts = candidate.content.parts
    text = "".join(part.text for part in parts if not part.thought)
    blocked = bool(_BLOCKED.search(candidate.finish_reason))
    return Reply(
        text=text or (f"blocked: {candidate.finish_reason}" if blocked else ""),
        finish="refusal" if blocked else "length" if candidate.finish_reason == "MAX_TOKENS" else "stop",
        reasoning="\n\n".join(part.text for part in parts if part.thought),
        reasoning_tokens=usage.thoughts_token_count,
        usage=used,
        model=wire.model_version,
    )


def _again(message: str) -> Trouble:
    return Trouble(kind="server-error", message=message, retryable=True)
