"""How the environment's proxy is chosen, and that calls go through it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hoofbeat.models import CallResult, Message, load_model
from hoofbeat.models.http_backend import _proxy
from hoofbeat.models.requests import ChatRequest
from hoofbeat.store.call_ledger import Ledger

ADDRESS = "http://judge.example.org/v1"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def test_the_environment_names_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _proxy(ADDRESS) is None
    monkeypatch.setenv("http_proxy", "http://ward:word@proxy.example.org:3128")
    assert _proxy(ADDRESS) == "http://ward:word@proxy.example.org:3128"
    assert _proxy(ADDRESS.replace("http:", "https:")) is None
    monkeypatch.setenv("no_proxy", "example.org")
    assert _proxy(ADDRESS) is None


@pytest.mark.parametrize("address", ["http://127.0.0.1:8080/v1", "http://localhost/v1", "http://[::1]:9/v1"])
def test_never_for_this_machine(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.example.org:3128")
    assert _proxy(address) is None


def test_a_proxy_that_wants_tls_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "https://proxy.example.org:3128")
    assert _proxy(ADDRESS) is None


def test_calls_go_through_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy of a few lines, in the loop of the calls themselves, answers in the endpoint's place."""
    asked: list[bytes] = []
    answer = b'{"choices":[{"message":{"content":"yes"},"finish_reason":"stop"}]}'

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(answer), answer))
        await writer.drain()
        writer.close()

    request = ChatRequest(messages=(Message(role="user", content="Is it so?"),))
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        model = load_model(f"{ADDRESS}#judge", ledger=ledger)

        async def call() -> object:
            server = await asyncio.start_server(proxy, "127.0.0.1", 0)
            port = server.sockets[0].getsockname()[1]
            monkeypatch.setenv("http_proxy", f"http://ward:word@127.0.0.1:{port}")
            await model.backend.open()
            try:
                return await model.chat(request)
            finally:
                await model.backend.close()
                server.close()

        found = asyncio.run(call())
    assert isinstance(found, CallResult)
    assert found.reply.text == "yes"
    assert asked[0].startswith(b"POST http://judge.example.org/v1/chat/completions HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic d2FyZDp3b3Jk" in asked[0]
    assert b"User-Agent: hoofbeat\r\n" in asked[0]
