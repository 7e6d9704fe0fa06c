"""A chat endpoint that does nothing but answer, as fast as Python allows: the client under test must be the slow part.

A hand-written HTTP/1.1 server on `asyncio.Protocol`: it finds each request's end by Content-Length and writes one
canned completion. `GET` answers with its own CPU seconds so far. Prints its port and serves until killed.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

__all__ = ["COMPLETION"]

COMPLETION = json.dumps(
    {
        "id": "chatcmpl-8f2c1d0b7a6e4f5d9c3b",
        "object": "chat.completion",
        "created": 1760000000,
        "model": "stub",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": json.dumps(
                        {
                            "reason": "Both recommend plasma exchange before surgery; the order of steps and the "
                            "wording differ, which does not change what the physician would do next for this patient.",
                            "label": "equivalent",
                        }
                    ),
                    "refusal": None,
                },
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 412, "completion_tokens": 46, "total_tokens": 458},
        "system_fingerprint": "fp_stub",
    }
).encode()


def _response(body: bytes) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


_CANNED = _response(COMPLETION)


class _Stub(asyncio.Protocol):
    def __init__(self) -> None:
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
            answer = _CANNED if self._buffer[:4] == b"POST" else _response(str(time.process_time()).encode())
            self._buffer = self._buffer[end + 4 + length :]
            self._transport.write(answer)


async def main() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(_Stub, "127.0.0.1", 0, backlog=1024)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
