"""An OpenAI-compatible endpoint that misbehaves on request, on a real socket.

A request says itself what shall happen to it: `fault=503,429:0.4,ok` in its first user message plays 503 the first
time this message comes, 429 with `Retry-After: 0.4` the second, and answers from then on. What is not told otherwise
is answered: a text derived from the request's hash, or the smallest object that fits the schema given.

`thinks:1000` reasons with a thousand tokens before it answers, `capped:4096` takes no higher output limit.

In tests: `with FaultServer() as server: ...`. As a process of its own, for tests that kill things:

    python -m tests.models.fault_server --port 0 --delay-ms 20 --log calls.txt
"""

from __future__ import annotations

import argparse
import asyncio
import email.utils
import hashlib
import json
import random
import re
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple, Self

from aiohttp import web

__all__ = ["FaultServer", "Seen", "instance_of"]

MOST_REQUESTS = 50_000
LONGEST_HANG = 20.0
OVERFLOWS = {
    "overflow-openai": {
        "error": {
            "message": "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000.",
            "type": "invalid_request_error",
            "param": "messages",
            "code": "context_length_exceeded",
        }
    },
    "overflow-llama": {
        "error": {
            "code": 400,
            "message": "request (5038 tokens) exceeds the available context size (4096 tokens), try increasing it",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": 5038,
            "n_ctx": 4096,
        }
    },
}
ERRORS: dict[str, tuple[int, dict[str, Any]]] = {
    "400": (400, {"error": {"message": "stop must be a list"}}),
    "401": (401, {"error": {"message": "Incorrect API key provided"}}),
    "404": (404, {"detail": "Not Found"}),
    "no-model": (404, {"error": {"message": "The model `x` does not exist", "code": "model_not_found"}}),
    "429": (429, {"error": {"message": "Rate limit reached"}}),
    "quota": (429, {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}),
    "500": (500, {"error": {"message": "The server had an error"}}),
    "501": (501, {"error": {"message": "not built in"}}),
    "503": (503, {"error": {"message": "overloaded"}}),
    "policy": (400, {"error": {"message": "flagged", "code": "content_policy_violation"}}),
    "error-200": (200, {"error": {"message": "upstream failed"}}),
}
_FAULT = re.compile(r"fault=([\w:.,-]+)")


class Seen(NamedTuple):
    """One request as the server received it."""

    text: str
    at: float
    body: dict[str, Any]
    key: str


class FaultServer:
    """A server on 127.0.0.1 in a thread of its own. `busy_over` in flight it answers 429 to everything."""

    def __init__(self, *, delay: float = 0.0, busy_over: int | None = None) -> None:
        self.delay = delay
        self.busy_over = busy_over
        self.hangs = False
        self.seen: list[Seen] = []
        self.asked: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.in_flight = 0
        self.max_in_flight = 0
        self.url = ""
        self._jitter = random.Random(0)
        self._log: Path | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._stopping = asyncio.Event()
        self._runner: web.AppRunner | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self.start(0), self._loop).result(20)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(20)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(20)
        self._loop.close()

    def die(self) -> None:
        """Break all connections off and stop listening, as a killed server does."""
        asyncio.run_coroutine_threadsafe(self._die(), self._loop).result(20)

    def come_back(self) -> None:
        """Listen again at the same address."""
        port = int(self.url.removesuffix("/v1").rpartition(":")[2])
        asyncio.run_coroutine_threadsafe(self.start(port), self._loop).result(20)

    async def _die(self) -> None:
        assert self._runner is not None
        assert self._runner.server is not None
        for connection in self._runner.server.connections:
            if connection.transport is not None:
                connection.transport.abort()
        await self._runner.cleanup()

    def spec(self, name: str = "stub") -> str:
        """The model spec of this server."""
        return f"{self.url}#{name}"

    async def start(self, port: int) -> int:
        app = web.Application(client_max_size=2**26)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/embeddings", self._embeddings)
        app.router.add_post("/v1/completions", self._completions)
        app.router.add_post("/v1/rerank", self._rerank)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port, reuse_address=True)
        await site.start()
        address: tuple[str, int] = self._runner.addresses[0]
        self.url = f"http://127.0.0.1:{address[1]}/v1"
        return address[1]

    async def _stop(self) -> None:
        self._stopping.set()
        assert self._runner is not None
        await self._runner.cleanup()

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        text = next((_words(message["content"]) for message in body["messages"] if message["role"] == "user"), "")
        return await self._play(request, body, text, _completion(body))

    async def _embeddings(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        rows = [{"index": i, "embedding": _vector(text)} for i, text in enumerate(body["input"])]
        answer = {"data": rows[::-1], "model": body["model"]}  # order is told by index, not by place
        return await self._play(request, body, " | ".join(body["input"]), answer)

    async def _rerank(self, request: web.Request) -> web.StreamResponse:
        """As vLLM and llama.cpp score documents: a document is as relevant as the number it ends with."""
        body = await request.json()
        rows = [{"index": i, "relevance_score": float(text.split()[-1])} for i, text in enumerate(body["documents"])]
        answer = {"results": sorted(rows, key=lambda row: -row["relevance_score"])}
        return await self._play(request, body, " | ".join(body["documents"]), answer)

    async def _completions(self, request: web.Request) -> web.StreamResponse:
        """As vLLM echoes a prompt: a token a word, the first without log-probability, and one generated token."""
        body = await request.json()
        found = [*re.finditer(r"\s*\S+", body["prompt"] + " more")]
        logprobs = {
            "tokens": [match.group() for match in found],
            "token_logprobs": [None, *(-0.5 * len(match.group()) for match in found[1:])],
            "text_offset": [match.start() for match in found],
        }
        return await self._play(request, body, body["prompt"], {"choices": [{"text": "", "logprobs": logprobs}]})

    async def _play(
        self, request: web.Request, body: dict[str, Any], text: str, answer: dict[str, Any]
    ) -> web.StreamResponse:
        key = _hash(body)
        self.seen.append(Seen(text, time.monotonic(), body, request.headers.get("Authorization", "")))
        self.asked[text] += 1
        self._write(f"received {key}")
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        try:
            fault = _FAULT.search(text)
            steps = fault.group(1).split(",") if fault else ["ok"]
            step = steps[min(self.asked[text], len(steps)) - 1]
            if len(self.seen) > MOST_REQUESTS:
                step = "500"
            elif self.busy_over is not None and self.in_flight > self.busy_over:
                step = "429:0.05"
            elif self.hangs:
                step = "hang"
            if self.delay:
                await asyncio.sleep(self.delay * self._jitter.uniform(0.5, 1.5))
            response = await self._respond(request, step, body, answer)
            if step == "ok":
                self.answered[text] += 1
                self._write(f"sent {key}")
            return response
        finally:
            self.in_flight -= 1

    async def _respond(
        self, request: web.Request, step: str, body: dict[str, Any], answer: dict[str, Any]
    ) -> web.StreamResponse:
        name, _, argument = step.partition(":")
        if name == "429date":
            when = email.utils.formatdate(time.time() + float(argument), usegmt=True)
            return web.json_response(ERRORS["429"][1], status=429, headers={"Retry-After": when})
        if name in ERRORS:
            status, error = ERRORS[name]
            return web.json_response(error, status=status, headers={"Retry-After": argument} if argument else None)
        if name in OVERFLOWS:
            return web.json_response(OVERFLOWS[name], status=400)
        if name == "hang":
            await asyncio.wait([asyncio.ensure_future(self._stopping.wait())], timeout=LONGEST_HANG)
            return web.Response(status=500)
        if name in ("cut", "drip"):
            return await self._piecemeal(request, json.dumps(answer).encode(), cut=name == "cut")
        if name == "redirect":
            return web.Response(status=307, headers={"Location": "http://elsewhere.invalid/v1"})
        if name == "garbage":
            return web.Response(body=b"<html>\xff\xfe proxy error</html>")
        if name == "deep":
            return web.Response(body=b'{"choices":' + b"[" * 50_000 + b"]" * 50_000 + b"}")
        if name == "capped" and _limit(body) > int(argument):
            told = f"max_tokens is too large: {_limit(body)}. This model supports at most {argument} completion tokens"
            return web.json_response({"error": {"message": told}}, status=400)
        if name == "thinks" and _limit(body) <= int(argument):
            return web.json_response(_only_reasoning(body, answer))
        return web.json_response(_odd("ok" if name in ("capped", "thinks") else name, body, answer))

    async def _piecemeal(self, request: web.Request, data: bytes, *, cut: bool) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": str(len(data)), "Content-Type": "application/json"})
        await response.prepare(request)
        if cut:
            await response.write(data[: len(data) // 2])
            await asyncio.sleep(0.02)
            assert request.transport is not None
            request.transport.abort()
            return response
        for position in range(len(data)):
            if self._stopping.is_set() or request.transport is None:
                break
            await response.write(data[position : position + 1])
            await asyncio.sleep(0.05)
        return response

    def _write(self, line: str) -> None:
        if self._log is not None:
            with self._log.open("a", encoding="ascii") as stream:
                stream.write(line + "\n")

    async def serve(self, port: int, delay_ms: float, log: Path | None) -> None:
        """Serve until killed."""
        self.delay, self._log = delay_ms / 1000, log
        print(await self.start(port), flush=True)
        await asyncio.Event().wait()


def _limit(body: dict[str, Any]) -> int:
    return int(body.get("max_completion_tokens") or body["max_tokens"])


def _only_reasoning(body: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """What a model returns whose hidden reasoning takes all the tokens that it may use."""
    used = _limit(body)
    choice = {"index": 0, "finish_reason": "length", "message": {"role": "assistant", "content": ""}}
    usage = {"prompt_tokens": 9, "completion_tokens": used, "completion_tokens_details": {"reasoning_tokens": used}}
    return {**answer, "choices": [choice], "usage": usage}


def _odd(name: str, body: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """A well-formed answer with something odd about it."""
    choice = dict(answer.get("choices", [{}])[0])
    message = dict(choice.get("message", {}))
    if name == "no-choices":
        return {"choices": [], "usage": None}
    if name == "not-a-completion":
        return {"object": "list", "data": []}
    if name == "refusal":
        message.update(content=None, refusal="I won't go into that.")
    elif name == "filter":
        message.update(content="Half of an an")
        choice.update(finish_reason="content_filter")
    elif name == "words":
        message.update(content="I'm sorry, but I can't provide medical advice.")
    elif name == "wrong":
        message.update(content='{"label": "something else"}')
    elif name == "prose":
        message.update(content="The label is hard to choose.")
    elif name == "truncated":
        message.update(content='{"label": "equi')
        choice.update(finish_reason="length")
    elif name == "fenced":
        message.update(content=f"<think>hm</think>Here:\n```json\n{message['content']}\n```")
    elif name == "no-usage":
        answer = {key: value for key, value in answer.items() if key != "usage"}
    elif name == "short":
        answer = {**answer, "data": answer["data"][1:]}
    elif name != "ok":
        raise AssertionError(f"unknown fault {name}")
    return {**answer, "choices": [{**choice, "message": message}]} if message else answer


def _completion(body: dict[str, Any]) -> dict[str, Any]:
    digest = _hash(body)
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
    text = json.dumps(instance_of(schema, digest)) if schema else f"answer {digest}"
    words = sum(len(_words(message["content"]).split()) for message in body["messages"])
    choice: dict[str, Any] = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    if body.get("logprobs"):
        top = [{"token": token, "logprob": -0.1 * (1 + i)} for i, token in enumerate("AB"[: body["top_logprobs"]])]
        choice["logprobs"] = {"content": [{"token": "A", "logprob": -0.1, "top_logprobs": top}]}
    return {
        "id": f"chatcmpl-{digest}",
        "object": "chat.completion",
        "model": body["model"],
        "choices": [choice],
        "usage": {"prompt_tokens": words, "completion_tokens": len(text.split()), "total_tokens": words},
    }


def instance_of(schema: dict[str, Any], digest: str) -> Any:
    """The smallest value that fits a schema; what is free in it is chosen by the digest."""
    chosen = int(digest[:8], 16)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][chosen % len(schema["enum"])]
    kind = schema.get("type", "object")
    if isinstance(kind, list):
        kind = kind[0]
    if kind == "object":
        wanted = schema.get("required", list(schema.get("properties", {})))
        return {name: instance_of(schema["properties"][name], _hash([digest, name])) for name in wanted}
    if kind == "array":
        items = schema.get("items", {"type": "string"})
        return [instance_of(items, _hash([digest, i])) for i in range(schema.get("minItems", 0))]
    if kind in ("integer", "number"):
        return int(schema.get("minimum", 0)) + chosen % (int(schema.get("maximum", 9)) - int(schema.get("minimum", 0)))
    return {"boolean": chosen % 2 == 0, "null": None}.get(kind, f"text {digest[:12]}"[: schema.get("maxLength", 99)])


def _words(content: str | list[dict[str, Any]]) -> str:
    return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)


def _vector(text: str) -> list[float]:
    return [byte / 256 for byte in hashlib.sha256(text.encode()).digest()[:4]]


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def main() -> None:
    parser = argparse.ArgumentParser(description="an OpenAI-compatible endpoint for tests that kill things")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--delay-ms", type=float, default=0.0)
    parser.add_argument("--log", type=Path, default=None)
    options = parser.parse_args()
    asyncio.run(FaultServer().serve(options.port, options.delay_ms, options.log))


if __name__ == "__main__":
    main()
