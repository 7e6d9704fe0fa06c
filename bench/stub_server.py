"""A chat endpoint that does nothing but answer, as fast as Python allows: the client under test must be the slow part.

A hand-written HTTP/1.1 server on `asyncio.Protocol`: it finds each request's end by Content-Length and writes one
canned completion: a judgment, or to a model whose name begins with `answering` a meaningless answer of its own. To one
that begins with `judging`, two of five judgments say mismatch; which, the request's checksum decides. To one that
begins with `comparing` it says how two answers relate. `GET` answers with its own CPU seconds so far. With `--rate N`
it gives N answers a second at most, evenly spaced, as a busy endpoint does. Prints its port and serves until killed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sys
import time
import zlib
from functools import cache

__all__ = ["COMPLETION"]

_REASON = (
    "Both recommend plasma exchange before surgery; the order of steps and the wording differ, which does not change "
    "what the physician would do next for this patient."
)
_SYLLABLES = ("ba", "de", "fi", "go", "hu", "ka", "le", "mi", "no", "pu", "ra", "se", "ti", "vo", "zu")
_ANSWERS = 2048
_PLACE = "#" * 8


def _completion(content: str) -> bytes:
    return json.dumps(
        {
            "id": "chatcmpl-8f2c1d0b7a6e4f5d9c3b",
            "object": "chat.completion",
            "created": 1760000000,
            "model": "stub",
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": content, "refusal": None},
                    "logprobs": None,
                    "finish_reason": "stop",
                }
            ],
            "usage": {"prompt_tokens": 412, "completion_tokens": 46, "total_tokens": 458},
            "system_fingerprint": "fp_stub",
        }
    ).encode()


COMPLETION = _completion(json.dumps({"reason": _REASON, "label": "equivalent"}))


def _response(body: bytes) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


_CANNED = _response(COMPLETION)
_MISMATCH = _response(_completion(json.dumps({"reason": _REASON, "label": "mismatch"})))
_RELATIONS = [
    _response(_completion(json.dumps({"reasoning": _REASON, **said})))
    for said in (
        {"classification": "Consistent", "topic": "", "significance": "none"},
        {"classification": "Complementary", "topic": "wound care", "significance": "none"},
        {"classification": "Consistent", "topic": "", "significance": "none"},
        {"classification": "Divergent", "topic": "weeks until lifting", "significance": "medium"},
        {"classification": "Contradictory", "topic": "raw fish", "significance": "high"},
    )
]
_COMPARING = re.compile(rb'"model": ?"comparing')
_ANSWERING = re.compile(rb'"model": ?"answering')
_JUDGING = re.compile(rb'"model": ?"judging')


@cache
def _invented(number: int) -> tuple[bytes, bytes]:
    """One of the plain answers, some 500 characters of words that mean nothing, around the place of a number."""
    rng = random.Random(number)
    words = ("".join(rng.choices(_SYLLABLES, k=rng.randint(1, 4))) for _ in range(90))
    before, _, after = _response(_completion(f"{_PLACE} {' '.join(words)}.")).partition(_PLACE.encode())
    return before, after


def _answer_to(request: bytes) -> bytes:
    if not request.startswith(b"POST"):
        return _response(str(time.process_time()).encode())
    if _ANSWERING.search(request):
        checksum = zlib.crc32(request)
        return (b"%08x" % checksum).join(_invented(checksum % _ANSWERS))
    if _COMPARING.search(request):
        return _RELATIONS[zlib.crc32(request) % len(_RELATIONS)]
    return _MISMATCH if _JUDGING.search(request) and zlib.crc32(request) % 5 < 2 else _CANNED


class _Pace:
    """The moments at which answers may leave."""

    def __init__(self, rate: float) -> None:
        self._gap = 1 / rate if rate else 0.0
        self._next = 0.0

    def give(self, transport: asyncio.WriteTransport, answer: bytes) -> None:
        if not self._gap:
            transport.write(answer)
            return
        loop = asyncio.get_running_loop()
        self._next = max(self._next, loop.time()) + self._gap
        loop.call_at(self._next, transport.write, answer)


class _Stub(asyncio.Protocol):
    def __init__(self, pace: _Pace) -> None:
        self._pace = pace
        self._buffer = b""
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        self._buffer += data
        while True:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            length = 0
            at = self._buffer[:end].lower().find(b"content-length:")
            if at >= 0:
                length = int(self._buffer[at + 15 : end].split(b"\r\n", 1)[0])
            if len(self._buffer) < end + 4 + length:
                return
            answer = _answer_to(self._buffer[: end + 4 + length])
            self._buffer = self._buffer[end + 4 + length :]
            self._pace.give(self._transport, answer)


async def main() -> None:
    parser = argparse.ArgumentParser(description="a chat endpoint that does nothing but answer")
    parser.add_argument("--rate", type=float, default=0.0, help="answers a second at most (default: no limit)")
    pace = _Pace(parser.parse_args().rate)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Stub(pace), "127.0.0.1", 0, backlog=1024)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
