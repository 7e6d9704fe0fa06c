"""A reverse proxy that ends TLS, as nginx or Caddy would before Hoofbeat: one request a connection, and no more."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.review.certificates import Certificate

__all__ = ["TlsProxy", "tls_proxy"]

_HEAD = 256 * 1024


class TlsProxy:
    """A proxy at `port` of loopback. It appends who asked to `X-Forwarded-For`, as every proxy does that says so.

    `backend` is the port of the server behind it; `keeps_host` hands the name on that the browser asked for (Caddy, and
    nginx when told), else the server's own address takes its place (nginx when not).
    """

    def __init__(self) -> None:
        self.port = 0
        self.backend = 0
        self.keeps_host = True

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Hand one request on and its answer back."""
        with suppress(OSError, asyncio.IncompleteReadError, ssl.SSLError):
            head = await reader.readuntil(b"\r\n\r\n")
            behind_reader, behind = await asyncio.open_connection("127.0.0.1", self.backend)
            try:
                behind.write(self._head(head, str(writer.get_extra_info("peername")[0])))
                behind.write(await reader.readexactly(_length(head)))
                await behind.drain()
                while piece := await behind_reader.read(65536):
                    writer.write(piece)
                    await writer.drain()
            finally:
                behind.close()
        with suppress(OSError, ssl.SSLError):
            writer.close()
            await writer.wait_closed()

    def _head(self, head: bytes, client: str) -> bytes:
        first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
        named = b", ".join(_value(line) for line in lines if _name(line) == b"x-forwarded-for")
        ours = [b"connection", b"x-forwarded-for", b"x-forwarded-proto", *([] if self.keeps_host else [b"host"])]
        kept = [line for line in lines if _name(line) not in ours]
        kept += [b"Connection: close", b"X-Forwarded-Proto: https"]
        kept += [b"X-Forwarded-For: " + (named + b", " if named else b"") + client.encode()]
        kept += [] if self.keeps_host else [f"Host: 127.0.0.1:{self.backend}".encode()]
        return b"\r\n".join([first, *kept]) + b"\r\n\r\n"


def _name(line: bytes) -> bytes:
    return line.partition(b":")[0].strip().lower()


def _value(line: bytes) -> bytes:
    return line.partition(b":")[2].strip()


def _length(head: bytes) -> int:
    return next((int(_value(line)) for line in head.split(b"\r\n") if _name(line) == b"content-length"), 0)


@contextmanager
def tls_proxy(certificate: Certificate) -> Iterator[TlsProxy]:
    """A proxy that listens; say where the server is before the first request."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.certificate, certificate.key)
    proxy, loop, listening = TlsProxy(), asyncio.new_event_loop(), threading.Event()

    async def listen() -> None:
        server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0, ssl=context, limit=_HEAD)
        proxy.port = server.sockets[0].getsockname()[1]
        listening.set()

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(listen())
        loop.run_forever()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert listening.wait(20), "the proxy did not start"
    try:
        yield proxy
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
