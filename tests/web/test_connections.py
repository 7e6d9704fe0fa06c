"""Connections that never finish, on real sockets: they are cut off, and others get their pages meanwhile."""

from __future__ import annotations

import json
import resource
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse

from hoofbeat.web import FolderLibrary, Site, connections, create_app
from tests.cli.support import start
from tests.web.support import serving
from tests.web.visitors import Visitor

FILES = 256
IDLE = 300
HEAD = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@contextmanager
def line_to(address: str) -> Iterator[socket.socket]:
    host, _, port = address.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=60) as line:
        yield line


def is_cut(line: socket.socket) -> bool:
    """Whether the server closes a connection without a word; the time that the socket waits is the limit."""
    try:
        return line.recv(100) == b""
    except ConnectionResetError:
        return True


def keeps_taking(line: socket.socket) -> bool:
    """Whether the server still takes bytes after a minute of one every 0.1 s."""
    try:
        for _ in range(600):
            line.sendall(b"a")
            time.sleep(0.1)
    except OSError:  # reset or broken pipe, as the system has it
        return False
    return True


def length_of(line: socket.socket) -> int:
    """How many bytes come until the connection is over."""
    total = 0
    try:
        while got := line.recv(1 << 20):
            total += len(got)
    except ConnectionResetError:
        return total
    return total


@pytest.fixture
def address(folders: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.5)
    monkeypatch.setattr(connections, "BODY_SECONDS", 0.7)
    with serving(create_app(Site(library=FolderLibrary([folders / "bench"])))) as where:
        yield where


@pytest.mark.parametrize("begun", [b"", b"GET / HT", HEAD, HEAD + b"X-Slow: "])
def test_unfinished_headers_are_not_waited_for(address: str, begun: bytes) -> None:
    with line_to(address) as line:
        line.sendall(begun)
        assert is_cut(line)


def test_a_header_that_trickles_gains_no_time(address: str) -> None:
    with line_to(address) as line:
        line.sendall(HEAD + b"X-Slow: ")
        assert not keeps_taking(line)


def test_an_unfinished_body_is_not_waited_for(address: str) -> None:
    with line_to(address) as line:
        line.sendall(b"POST /ask HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\ntext=")
        assert is_cut(line)


def test_a_second_request_on_a_connection_has_its_own_time(address: str) -> None:
    with line_to(address) as line:
        for _ in range(2):
            line.sendall(HEAD + b"\r\n")
            got = b""
            while b"</html>" not in got:
                got += (more := line.recv(1 << 20))
                assert more
            assert got.startswith(b"HTTP/1.1 200")
            time.sleep(0.3)
        line.sendall(HEAD)
        assert is_cut(line)


def test_an_answer_that_nobody_reads_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "READ_SECONDS", 0.5)
    app = FastAPI()
    app.get("/")(lambda: PlainTextResponse(b"x" * (64 << 20)))
    with serving(app) as where, line_to(where) as line:
        line.sendall(HEAD + b"\r\n")
        time.sleep(2)
        assert length_of(line) < 64 << 20


def test_the_longest_wait_ends_where_too_many_are_connected(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 10)
    with serving(create_app(Site(library=FolderLibrary([folders / "bench"])))) as where, ExitStack() as stack:
        lines = [stack.enter_context(line_to(where)) for _ in range(9)]
        for line in lines:
            line.sendall(HEAD)
        visitor = Visitor(where)
        for _ in range(5):
            assert visitor.get("/").status == 200
        lines += [stack.enter_context(line_to(where)) for _ in range(4)]
        for line in lines[9:]:
            line.sendall(HEAD)
        assert visitor.get("/").status == 200
        assert is_cut(lines[0])
        lines[-1].sendall(b"\r\n")
        assert lines[-1].recv(1000).startswith(b"HTTP/1.1 200")


def test_pages_are_served_beside_300_idle_sockets(folders: Path, tmp_path: Path) -> None:
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, allowed[1]))
    try:
        process: subprocess.Popen[str] = start(["serve", str(folders / "bench"), "--port", "0", "--json"], tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, allowed)
    try:
        assert process.stdout is not None
        where = json.loads(process.stdout.readline())["address"]
        with ExitStack() as stack:
            for number in range(IDLE):
                line = stack.enter_context(line_to(where))
                line.sendall(HEAD if number % 2 else b"")
            for _ in range(3):
                assert Visitor(where).get("/benchmarks/bench").status == 200
    finally:
        process.kill()
        process.communicate(timeout=30)
