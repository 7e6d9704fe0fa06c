"""PostgreSQL over TLS: a real server with a certificate made for the test, and what is said where it does not fit."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import Struct
from sqlalchemy import text

from hoofbeat.errors import HoofbeatError, UsageError
from hoofbeat.retrieval.index.postgres_vectors import VectorTable
from hoofbeat.review.review_records import DatabaseError
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.store.ledger_places import open_ledger
from hoofbeat.store.postgres_ledger import PostgresLedger
from tests.review.certificates import Certificate, make_authority, make_certificate
from tests.review.stores import make_study

# The server in the wheel that the other tests use was built without TLS.
INSTALLED = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
USERS = {each.pw_name for each in pwd.getpwall()}


class Server(Struct, frozen=True, kw_only=True):
    """A server that encrypts: its port, who vouches for it, and a stranger who does not."""

    port: int
    authority: Certificate
    stranger: Certificate

    def url(self, settings: str, host: str = "localhost") -> str:
        """The address of its database."""
        return f"postgresql://postgres:hush-hush@{host}:{self.port}/postgres?{settings}"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    root = os.geteuid() == 0
    if not INSTALLED or (root and "postgres" not in USERS):
        pytest.skip("needs PostgreSQL of the system, which is not installed here")
    programs, folder = INSTALLED[-1].parent, Path(tempfile.mkdtemp(prefix="hoofbeat-tls-"))
    authority, stranger = make_authority(folder), make_authority(folder, "stranger")
    made = make_certificate(folder, "DNS:localhost", authority)
    data, word = folder / "data", folder / "word"
    word.write_text("hush-hush")
    if root:
        for path in (folder, *folder.iterdir()):
            shutil.chown(path, "postgres", "postgres")
    user = "postgres" if root else None
    subprocess.run(
        [programs / "initdb", "-D", data, "-U", "postgres", "--auth=scram-sha-256", f"--pwfile={word}", "--no-sync"],
        check=True, capture_output=True, timeout=120, user=user, group=user,
    )  # fmt: skip
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "port": port, "listen_addresses": "127.0.0.1", "unix_socket_directories": folder, "fsync": "off",
        "ssl": "on", "ssl_cert_file": made.certificate, "ssl_key_file": made.key,
    }  # fmt: skip
    words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [programs / "postgres", "-D", data, *words], stdout=log, stderr=log, user=user, group=user
        )
    try:
        _wait(process, programs / "pg_isready", port)
        yield Server(port=port, authority=authority, stranger=stranger)
    finally:
        process.terminate()
        process.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def _wait(process: subprocess.Popen[bytes], ready: Path, port: int) -> None:
    """Wait until the server takes connections: its port is open earlier, while it starts up."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and process.poll() is None:
        if (
            subprocess.run([ready, "-h", "127.0.0.1", "-p", str(port)], capture_output=True, check=False).returncode
            == 0
        ):
            return
        time.sleep(0.05)
    pytest.fail("the server did not start")


def encrypted(store: ReviewStore) -> list[bool]:
    """Whether each line of the review store is encrypted, by the server's word."""
    with store._database.read() as connection:
        asked = (
            "SELECT s.ssl FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) WHERE a.application_name='hoofbeat'"
        )
        return [row[0] for row in connection.execute(text(asked))]


@pytest.mark.parametrize("settings", ["", "sslmode=prefer", "sslmode=require"])
def test_lines_are_encrypted_where_the_server_can(server: Server, settings: str) -> None:
    with ReviewStore.open(server.url(settings, "127.0.0.1")) as store:
        assert encrypted(store)
        assert all(encrypted(store))


def test_without_encryption_if_one_says_so(server: Server) -> None:
    with ReviewStore.open(server.url("sslmode=disable")) as store:
        assert encrypted(store)
        assert not any(encrypted(store))


@pytest.mark.parametrize("mode", ["verify-full", "verify-ca", "require"])
def test_a_server_whose_certificate_is_right_is_used(server: Server, mode: str) -> None:
    with ReviewStore.open(server.url(f"sslmode={mode}&sslrootcert={server.authority.certificate}")) as store:
        assert all(encrypted(store))
        name = f"study-{mode}"
        _, (ada, _), _ = make_study(store, id=name)
        saved = store.save(name, "item-0", ada.id, base=0, request="r", values={"a": "1"}, state="done", seconds=1.0)
        assert store.label(name, "item-0", ada.id) == saved.label
        assert "hush-hush" not in store.where + repr(store)


@pytest.mark.parametrize(
    ("host", "settings", "words"),
    [
        ("127.0.0.1", "sslmode=verify-full&sslrootcert={authority}", "is for another name"),
        ("localhost", "sslmode=verify-full&sslrootcert={stranger}", "this machine does not trust"),
        ("localhost", "sslmode=verify-ca&sslrootcert={stranger}", "this machine does not trust"),
        ("localhost", "sslmode=require&sslrootcert={stranger}", "this machine does not trust"),
        ("localhost", "sslmode=verify-full", "this machine does not trust"),
    ],
)
def test_a_wrong_certificate_is_refused_in_plain_words(server: Server, host: str, settings: str, words: str) -> None:
    known = {"authority": server.authority.certificate, "stranger": server.stranger.certificate}
    with pytest.raises(DatabaseError, match=words) as caught:
        ReviewStore.open(server.url(settings.format(**known), host))
    err = caught.value
    assert err.fix
    assert "hush-hush" not in f"{err}{err!r}{err.__cause__!r}{err.details}"
    assert "SSL" not in err.what


def test_an_authority_alone_does_for_any_name(server: Server) -> None:
    with ReviewStore.open(
        server.url(f"sslmode=verify-ca&sslrootcert={server.authority.certificate}", "127.0.0.1")
    ) as store:
        assert all(encrypted(store))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("sslmode=sometimes", "no sslmode 'sometimes'"),
        ("sslmode=verify-full&sslrootcert=/no/such/root.pem", "can't be read"),
        ("sslmode=verify-full&sslrootcert={plain}", "no certificate"),
        ("sslrootcert={plain}", "does not check the server"),
    ],
)
def test_settings_that_make_no_sense_are_told_before_anybody_is_called(
    tmp_path: Path, settings: str, words: str
) -> None:
    plain = tmp_path / "plain.pem"
    plain.write_text("no certificate, just words\n")
    with pytest.raises(UsageError, match=words):
        ReviewStore.open(f"postgresql://postgres:hush@127.0.0.1:9/postgres?{settings.format(plain=plain)}")


def test_a_server_that_does_not_encrypt_is_told() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def refuse() -> None:
            line, _ = listener.accept()
            with line:
                line.recv(8)
                line.sendall(b"N")

        refusing = threading.Thread(target=refuse, daemon=True)
        refusing.start()
        with pytest.raises(HoofbeatError, match="does not encrypt"):
            ReviewStore.open(
                f"postgresql://postgres:hush@127.0.0.1:{listener.getsockname()[1]}/postgres?sslmode=require"
            )
        refusing.join(10)


def test_the_ledger_is_encrypted_by_the_same_rules(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    address = f"postgresql://postgres@localhost:{server.port}/postgres?sslmode=verify-full&sslrootcert="
    monkeypatch.setenv("PGPASSWORD", "wrong")
    with pytest.raises(HoofbeatError, match="refuses the user or the password"):
        open_ledger(f"{address}{server.authority.certificate}")
    monkeypatch.setenv("PGPASSWORD", "hush-hush")
    with pytest.raises(HoofbeatError, match="this machine does not trust") as caught:
        open_ledger(f"{address}{server.stranger.certificate}")
    assert "hush-hush" not in f"{caught.value}{caught.value.details}"
    with open_ledger(f"{address}{server.authority.certificate}") as ledger:
        assert isinstance(ledger, PostgresLedger)
        assert ledger._run("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()") == [[True]]
        assert ledger.stats().calls == 0


def test_a_server_that_has_no_pgvector_is_told(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "hush-hush")
    with pytest.raises(UsageError, match="the database has no pgvector"):
        VectorTable(f"postgresql://postgres@localhost:{server.port}/postgres", ["any"], "encoder")
