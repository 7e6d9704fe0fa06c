"""The ledger in a real PostgreSQL: the same as in a file, for several processes, and through a restart."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from hoofbeat.errors import HoofbeatError, InputError, UsageError
from hoofbeat.models import load_config
from hoofbeat.store.call_ledger import Ledger
from hoofbeat.store.ledger_base import CallLedger, LedgerEntry
from hoofbeat.store.ledger_places import copy_ledger, ledger_place, open_ledger
from hoofbeat.store.postgres_ledger import PostgresLedger
from tests.models.fault_server import FaultServer
from tests.models.support import a_model, chats, reply_text
from tests.postgres import new_postgres_url, password_url, restart_postgres
from tests.store.test_call_ledger import ROOT, entry, key_of, put


@pytest.fixture(scope="module")
def url() -> str:
    """One database for the module: making one takes longer than most tests."""
    return new_postgres_url()


@pytest.fixture
def ledger(url: str) -> Iterator[CallLedger]:
    with open_ledger(url) as opened:
        assert isinstance(opened, PostgresLedger)
        opened._run("TRUNCATE hoofbeat_calls, hoofbeat_troubles")
        yield opened


def content(ledger: CallLedger) -> list[bytes]:
    return list(map(msgspec.json.encode, ledger.entries()))


def test_it_keeps_finds_and_removes_as_a_file_does(ledger: CallLedger, url: str, tmp_path: Path) -> None:
    calls = [entry(str(number), model="mn"[number % 2], made=number) for number in range(700)]
    calls += [entry("vector", operation="embed", reply="ß€😀 'quoted' \\ " * 200)]
    with Ledger(tmp_path / "ledger.sqlite") as file, open_ledger(url) as other:
        for one in (file, ledger):
            assert put(one, *calls[:350], entry("0", model="m", made=0, reply="second"))[-1] == b'{"text":"0"}'
            assert one.add_all(calls) == 351
            assert one.get(key_of("vector")) == bytes(calls[-1].reply)
            assert one.get(key_of("none")) is None
            assert one.known([key_of(str(number)) for number in range(690, 800)]) == {c.key for c in calls[690:700]}
            one.trouble("m", "timeout")
            one.trouble("m", "timeout")
            one.flush()
        assert content(ledger) == content(file) == content(other)
        assert [e.key for e in ledger.entries(operation="embed")] == [key_of("vector")]
        assert {e.model for e in ledger.entries(model="n")} == {"n"}
        theirs, ours = file.stats(), other.stats()
        assert file.count_by_prompt("m") == other.count_by_prompt("m") != {}
        assert msgspec.structs.replace(theirs, bytes=ours.bytes) == ours
        with pytest.raises(ValueError, match="model or a time"):
            ledger.prune()
        assert ledger.prune(model="m", before=300) == file.prune(model="m", before=300) == 151
        assert content(ledger) == content(file)
        for one in (file, ledger):
            one.remove(key_of("vector"))
            one.remove(key_of("none"))
            assert one.get(key_of("vector")) is None
        assert content(ledger) == content(file)


def test_taking_in_what_breaks_halfway_takes_in_nothing(ledger: CallLedger) -> None:
    def broken() -> Iterator[LedgerEntry]:
        yield entry("a")
        raise InputError("line 2 is broken")

    with pytest.raises(InputError):
        ledger.add_all(broken())
    with pytest.raises(HoofbeatError):
        ledger.add_all([entry("a"), entry("b", model="nul \0")])
    assert ledger.stats().calls == 0
    with pytest.raises(HoofbeatError):
        put(ledger, entry("b", model="nul \0"))
    put(ledger, entry("a"))
    assert ledger.stats().calls == 1


RUN_APART = """
import json, sys
from hoofbeat.store.ledger_places import open_ledger
from tests.models.support import a_model, chats, reply_text

spec, place, *texts = sys.argv[1:]
with open_ledger(place) as ledger:
    results = chats(a_model(spec, ledger, timeout=60.0), texts)
print(json.dumps([reply_text(result) for result in results]))
"""


def apart(server: FaultServer, place: str, texts: list[str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", RUN_APART, server.spec(), place, *texts]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)


def test_two_processes_pay_a_call_once_and_one_that_is_killed_leaves_it_to_the_other(
    ledger: CallLedger, url: str
) -> None:
    texts = [f"shared {number}" for number in range(40)]
    with FaultServer(delay=0.03) as server:
        killed = apart(server, url, texts)
        while not server.seen:
            assert killed.poll() is None
            time.sleep(0.005)
        killed.kill()
        killed.communicate()
        lost = len(server.seen)
        assert lost <= 40
        processes = [apart(server, url, texts) for _ in range(2)]
        first, second = (json.loads(process.communicate(timeout=60)[0]) for process in processes)
        assert first == second
        assert ledger.stats().calls == 40
        assert len(server.seen) <= 40 + 8, "only calls in flight at the kill are paid twice"


def test_a_restart_of_the_server_loses_nothing_and_no_call_is_paid_twice(ledger: CallLedger) -> None:
    texts = [f"restart {number}" for number in range(150)]
    with FaultServer(delay=0.05) as server:
        model = a_model(server.spec(), ledger, timeout=60.0)
        restarting = threading.Timer(0.2, restart_postgres)
        restarting.start()
        answers = [reply_text(result) for result in chats(model, texts)]
        restarting.join()
        assert len(server.seen) == 150
        assert [reply_text(r) for r in chats(a_model(server.spec(), ledger), texts)] == answers
        assert len(server.seen) == 150


def test_a_copy_there_and_back_is_the_same_and_goes_on_where_it_stopped(ledger: CallLedger, tmp_path: Path) -> None:
    calls = [entry(str(number), reply=key_of(str(number)) * 30) for number in range(1200)]
    with Ledger(tmp_path / "from.sqlite") as source, Ledger(tmp_path / "back.sqlite") as back:
        source.add_all(calls)
        ledger.add_all(calls[:500])
        there = copy_ledger(source, ledger)
        assert (there.calls, there.new, there.different) == (1200, 700, 0)
        assert there.sha256 == there.copied_sha256
        assert copy_ledger(ledger, back).copied_sha256 == there.sha256
        assert content(back) == content(source)
        assert copy_ledger(source, ledger).new == 0
        back._db.execute("UPDATE calls SET reply='{}' WHERE key=?", (bytes.fromhex(calls[7].key),))
        other = copy_ledger(source, back)
        assert (other.new, other.different) == (0, 1)
        assert other.sha256 != other.copied_sha256


def test_passwords_come_from_the_environment_or_the_password_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    url = password_url("careful", "open:sesame")
    name = url.partition("@/")[2].partition("?")[0]
    file = tmp_path / "pgpass"
    file.write_text(f"# who\nelsewhere:*:*:careful:no\nlocalhost:5432:{name}:careful:open\\:sesame\n")
    file.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))
    for wrong in (None, "wrong"):
        if wrong:
            monkeypatch.setenv("PGPASSWORD", wrong)
        with pytest.raises(HoofbeatError, match="refuses") as caught:
            open_ledger(url)
        assert "PGPASSWORD" in str(caught.value)
        assert wrong is None or wrong not in str(caught.value)
    monkeypatch.setenv("PGPASSWORD", "open:sesame")
    open_ledger(url).close()
    monkeypatch.delenv("PGPASSWORD")
    monkeypatch.setenv("PGPASSFILE", str(file))
    open_ledger(url).close()
    file.chmod(0o644)
    with pytest.raises(HoofbeatError, match="refuses"):
        open_ledger(url)
    with_password = url.replace("careful@", "careful:open%3Asesame@")
    with pytest.raises(UsageError, match="contains a password") as caught_usage:
        open_ledger(with_password)
    assert "sesame" not in str(caught_usage.value)
    monkeypatch.setenv("HOOFBEAT_LEDGER", with_password)
    with open_ledger(ledger_place(None)) as opened:
        assert "sesame" not in opened.place


def test_the_configuration_may_name_the_ledger(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("HOOFBEAT_LEDGER", raising=False)
    (tmp_path / "hoofbeat.toml").write_text('ledger = "postgresql://team@db.example/calls"')
    configured = load_config(tmp_path / "hoofbeat.toml").ledger
    assert ledger_place(None, configured) == "postgresql://team@db.example/calls"
    assert ledger_place("other.sqlite", configured) == "other.sqlite"
    (tmp_path / "hoofbeat.toml").write_text('ledger = "calls.sqlite"')
    assert load_config(tmp_path / "hoofbeat.toml").ledger == str(tmp_path.resolve() / "calls.sqlite")


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("postgresql://u@127.0.0.1:1/none", "can't be reached"),
        ("postgresql://u@nowhere.invalid/none", "can't be reached"),
        ("postgresql://u@h/d?sslmode=maybe", "no sslmode 'maybe'"),
        ("postgresql://u@h/d?colour=red", "unknown settings: colour"),
        ("postgresql://u@h/d?password=geheim", "unknown settings: password"),
        ("postgresql://u:ge/h@geheim@h/d", "contains a password"),
        ("postgresql://u@h:port/d", "not the address"),
    ],
)
def test_what_is_wrong_with_an_address_is_said(address: str, words: str) -> None:
    with pytest.raises(HoofbeatError, match=words) as caught:
        open_ledger(address)
    assert caught.value.fix
    assert "geheim" not in str(caught.value)


def test_a_server_that_does_not_encrypt_is_refused_where_encryption_is_asked_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as plain:

        def refuse() -> None:
            connection = plain.accept()[0]
            connection.recv(8)
            connection.sendall(b"N")
            connection.close()

        answering = threading.Thread(target=refuse)
        answering.start()
        with pytest.raises(HoofbeatError, match="does not encrypt"):
            open_ledger(f"postgresql://u@127.0.0.1:{plain.getsockname()[1]}/d?sslmode=require")
        answering.join()


def test_a_newer_ledger_is_refused(ledger: CallLedger, url: str) -> None:
    assert isinstance(ledger, PostgresLedger)
    ledger._run("UPDATE hoofbeat_ledger SET version=99")
    try:
        with pytest.raises(InputError, match="newer Hoofbeat"):
            open_ledger(url)
    finally:
        ledger._run("UPDATE hoofbeat_ledger SET version=1")


def test_many_tasks_ask_at_once(ledger: CallLedger) -> None:
    async def one(number: int) -> bytes | None:
        key = key_of(str(number % 50))
        if (reply := await ledger.look_up(key)) is not None:
            return reply
        reply = await ledger.claim(key)
        if reply is None:
            await ledger.put(entry(str(number % 50)))
            ledger.release(key)
        return reply

    async def all_of_them() -> list[bytes | None]:
        return await asyncio.wait_for(asyncio.gather(*map(one, range(400))), 30)

    assert asyncio.run(all_of_them()).count(None) == 50
