"""The ledger: what is put is kept, once, by key, and a file that can't be used says so."""

from __future__ import annotations

import asyncio
import hashlib
import os
import resource
import sqlite3
import struct
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from hoofbeat.errors import HostileInputError, InputError, OutputError
from hoofbeat.store.call_ledger import _SCHEMA, Ledger
from hoofbeat.store.ledger_base import COLUMNS, CallLedger, LedgerEntry

ROOT = Path(__file__).parents[2]


def key_of(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def entry(name: str, *, model: str = "m", operation: str = "chat", made: int = 100, reply: str = "") -> LedgerEntry:
    return LedgerEntry(
        key=key_of(name),
        model=model,
        operation=operation,
        request=msgspec.Raw(msgspec.json.encode({"request": name})),
        reply=msgspec.Raw(msgspec.json.encode({"text": reply or name})),
        tokens_in=3,
        tokens_out=2,
        seconds=0.5,
        made=made,
    )


def put(ledger: CallLedger, *entries: LedgerEntry) -> list[bytes | None]:
    async def all_of_them() -> list[bytes | None]:
        return await asyncio.wait_for(asyncio.gather(*(ledger.put(one) for one in entries)), 30)

    return asyncio.run(all_of_them())


async def put_only(ledger: Ledger, name: str) -> None:
    ledger.put(entry(name))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger.db") as opened:
        yield opened


def test_what_was_awaited_is_there_for_others(ledger: Ledger) -> None:
    put(ledger, entry("a"), entry("b"))
    with Ledger(ledger.path) as other:
        assert other.get(key_of("a")) == b'{"text":"a"}'
        assert other.get(key_of("c")) is None


def test_what_was_not_awaited_is_written_when_the_ledger_closes(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l.db", gather_seconds=60) as ledger:
        asyncio.run(put_only(ledger, "a"))
        ledger.trouble("m", "timeout")
    with Ledger(tmp_path / "l.db") as again:
        assert again.get(key_of("a")) is not None
        assert again.stats().troubles == {"m": {"timeout": 1}}


def test_a_loop_that_died_does_not_keep_the_next_one_waiting(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l.db", gather_seconds=0.05) as ledger:
        asyncio.run(put_only(ledger, "a"))
        put(ledger, entry("b"))
        assert ledger.known([key_of("a"), key_of("b")]) == {key_of("a"), key_of("b")}


def test_many_at_once_are_all_kept(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l.db", gather_rows=7) as ledger:
        put(ledger, *(entry(str(number)) for number in range(100)))
        assert ledger.stats().calls == 100


def test_the_first_reply_counts(ledger: Ledger) -> None:
    assert put(ledger, entry("a", reply="first")) == [None]
    assert put(ledger, entry("b"), entry("a", reply="second")) == [None, b'{"text":"first"}']
    assert put(ledger, entry("a", reply="first")) == [None]
    assert ledger.get(key_of("a")) == b'{"text":"first"}'


def test_known_names_exactly_what_is_there(ledger: Ledger) -> None:
    names = [str(number) for number in range(1200)]
    ledger.add_all(entry(name) for name in names[::2])
    assert ledger.known([key_of(name) for name in names]) == {key_of(name) for name in names[::2]}
    assert ledger.known([]) == set()


def test_entries_come_in_the_order_of_their_keys(ledger: Ledger, tmp_path: Path) -> None:
    made = [entry(str(number), model="mn"[number % 2], operation="chat") for number in range(20)]
    put(ledger, *made)
    put(ledger, entry("vector", operation="embed"))
    assert [one.key for one in ledger.entries()] == sorted(one.key for one in [*made, entry("vector")])
    assert {one.model for one in ledger.entries(model="n")} == {"n"}
    assert [one.key for one in ledger.entries(operation="embed")] == [key_of("vector")]
    with Ledger(tmp_path / "copy.db") as copy:
        assert copy.add_all(ledger.entries()) == 21
        assert copy.add_all(ledger.entries()) == 0
        assert list(map(msgspec.json.encode, copy.entries())) == list(map(msgspec.json.encode, ledger.entries()))


def test_taking_in_what_breaks_halfway_takes_in_nothing(ledger: Ledger) -> None:
    def broken() -> Iterator[LedgerEntry]:
        yield entry("a")
        raise InputError("line 2 is broken")

    with pytest.raises(InputError):
        ledger.add_all(broken())
    assert ledger.stats().calls == 0
    assert ledger.add_all([entry("a")]) == 1


def test_prune_removes_by_model_and_time(ledger: Ledger) -> None:
    put(ledger, entry("old m", made=100), entry("new m", made=900), entry("old n", model="n", made=100))
    with pytest.raises(ValueError, match="model or a time"):
        ledger.prune()
    assert ledger.prune(model="m", before=900) == 1
    assert ledger.known([key_of("old m"), key_of("new m"), key_of("old n")]) == {key_of("new m"), key_of("old n")}
    assert ledger.prune(before=900) == 1
    assert ledger.prune(model="m") == 1
    assert ledger.stats().calls == 0


def test_prune_gives_the_space_back(ledger: Ledger) -> None:
    ledger.add_all(entry(str(number), reply=key_of(str(number)) * 20) for number in range(500))
    ledger.add_all([entry("kept", model="n")])
    ledger._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = ledger.stats().bytes
    ledger.prune(model="m")
    assert ledger.stats().bytes < before / 2


def test_stats_add_up(ledger: Ledger) -> None:
    put(ledger, entry("a"), entry("b"), entry("c", model="n", operation="embed"))
    for kind in ("timeout", "timeout", "rate-limited"):
        ledger.trouble("m", kind)
    stats = ledger.stats()
    assert stats.calls == 3
    assert [(row["model"], row["operation"], row["calls"], row["tokens_in"]) for row in stats.by_model] == [
        ("m", "chat", 2, 6),
        ("n", "embed", 1, 3),
    ]
    assert stats.troubles == {"m": {"rate-limited": 1, "timeout": 2}}


@pytest.mark.parametrize(
    "content", [b"not a database, but long enough to be taken for one" * 40, b"SQLite format 3\0" * 99]
)
def test_a_file_that_is_no_ledger_is_said(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "ledger.db"
    path.write_bytes(content)
    with pytest.raises(InputError, match="can't be read") as caught:
        Ledger(path)
    assert caught.value.fix
    assert path.read_bytes() == content


def somebodys(path: Path, statement: str, mode: str = "DELETE") -> None:
    """A database that another program made."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute(f"PRAGMA journal_mode={mode}")
        database.executescript(statement)
    path.chmod(0o644)


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('mine')",
        "CREATE TABLE calls (number TEXT, seconds REAL)",
        "CREATE TABLE notes (text TEXT); PRAGMA user_version=99",
        "PRAGMA user_version=7",
        "PRAGMA application_id=252006673",
    ],
)
def test_a_database_of_something_else_is_not_touched(tmp_path: Path, statement: str, mode: str) -> None:
    path = tmp_path / "mine.sqlite"
    somebodys(path, statement, mode)
    before = path.read_bytes()
    with pytest.raises(InputError, match="is not a ledger") as caught:
        Ledger(path)
    assert "--ledger" in (caught.value.fix or "")
    assert path.read_bytes() == before
    assert path.stat().st_mode & 0o777 == 0o644
    assert [each.name for each in tmp_path.iterdir()] == ["mine.sqlite"]


_WITHOUT_END = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT "
_COLUMNS = ", ".join(f"x AS {name}" for name in COLUMNS.split(","))


def _other_calls(one: str, other: str) -> str:
    """The table made anew, with something else in place of one column."""
    assert one in _SCHEMA
    return f"DROP TABLE calls; {_SCHEMA.replace(one, other)}"


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER INSERT ON calls BEGIN DELETE FROM calls WHERE key = NEW.key; END",
        f"DROP TABLE calls; CREATE VIEW calls AS {_WITHOUT_END}{_COLUMNS} FROM n",
        f"CREATE VIEW more AS {_WITHOUT_END} x FROM n",
        "CREATE VIRTUAL TABLE more USING fts5(x); PRAGMA writable_schema=1;"
        " UPDATE sqlite_master SET sql=replace(sql, 'CREATE ', 'CREATE/**/') WHERE name='more'",
        "CREATE UNIQUE INDEX more ON calls (model)",
        "CREATE TRIGGER calls AFTER INSERT ON calls BEGIN DELETE FROM calls WHERE key = NEW.key; END",
        "CREATE INDEX more ON calls (length(hex(zeroblob(90))))",
        _other_calls("made INTEGER NOT NULL", "made INTEGER NOT NULL, CHECK (made < 0)"),
        _other_calls("made INTEGER NOT NULL", "made INTEGER NOT NULL CHECK (length(hex(zeroblob(90))) > 0)"),
        _other_calls("model TEXT NOT NULL", "model TEXT NOT NULL UNIQUE ON CONFLICT REPLACE"),
        _other_calls("model TEXT NOT NULL", "model TEXT NOT NULL COLLATE NOCASE"),
        _other_calls("reply BLOB NOT NULL", "reply BLOB NOT NULL, more GENERATED ALWAYS AS (reply) VIRTUAL"),
        _other_calls("reply BLOB NOT NULL", "more BLOB NOT NULL, reply BLOB NOT NULL"),
    ],
)
def test_a_ledger_that_brings_code_is_refused_and_not_changed(tmp_path: Path, statement: str) -> None:
    """A trigger could lose replies that were paid for, and so could a condition, which `INSERT OR IGNORE` obeys without
    a word; a view can run without end, and no signal stops it."""
    path = tmp_path / "l.sqlite"
    with Ledger(path) as ledger:
        put(ledger, entry("a"))
    somebodys(path, statement)
    before = path.read_bytes()
    with pytest.raises(HostileInputError, match=r"has parts that Hoofbeat did not make: (t|calls|more)"):
        Ledger(path)
    assert path.read_bytes() == before


def plant_journal(path: Path, victim: Path) -> None:
    """A journal as one of several databases leaves it that were changed together: it names a file that lists them all.

    SQLite takes the change back and then removes the file that is named, whatever it is.
    """
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode=DELETE")
        size, count = (database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_size", "page_count"))
    magic, name = bytes.fromhex("d9d505f920a163d7"), os.fsencode(victim)
    head = (magic + struct.pack(">IIIII", 0, 0, count, 512, size)).ljust(512, b"\0")
    end = struct.pack(">II", len(name), sum(name)) + magic
    path.with_name(f"{path.name}-journal").write_bytes(head + struct.pack(">I", 0x40000000 // size + 1) + name + end)


def test_a_journal_that_would_remove_a_file_elsewhere_is_refused(tmp_path: Path) -> None:
    victim = tmp_path / "notes.txt"
    victim.write_text("mine")
    path = tmp_path / "folder" / "l.sqlite"
    with Ledger(path) as ledger:
        put(ledger, entry("a"))
    plant_journal(path, victim)
    with pytest.raises(HostileInputError, match="names another file"):
        Ledger(path)
    assert victim.read_text() == "mine"
    with closing(sqlite3.connect(path)) as plain:
        plain.execute("SELECT * FROM calls")
    assert not victim.exists(), "that is what SQLite does by itself"


def plant_earlier_content(path: Path, statement: str) -> None:
    """A journal by which SQLite, when it opens this file, puts back what was never there: the result of a statement."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode=DELETE")
        size = database.execute("PRAGMA page_size").fetchone()[0]
    whole = path.read_bytes()
    somebodys(path, statement)
    other = path.read_bytes()
    path.write_bytes(whole)
    records = [(at // size + 1, other[at : at + size]) for at in range(0, len(other), size)]
    journal = struct.pack(">8sIIIII", bytes.fromhex("d9d505f920a163d7"), len(records), 0, len(records), 512, size)
    journal = journal.ljust(512, b"\0")
    for number, page in records:
        journal += struct.pack(">I", number) + page + struct.pack(">I", sum(page[size - 200 :: -200][: size // 200]))
    path.with_name(f"{path.name}-journal").write_bytes(journal)


def test_what_a_journal_puts_back_is_looked_at_as_well(tmp_path: Path) -> None:
    path = tmp_path / "l.sqlite"
    with Ledger(path) as ledger:
        put(ledger, entry("a"))
    plant_earlier_content(path, "CREATE TRIGGER t AFTER INSERT ON calls BEGIN DELETE FROM calls; END")
    with pytest.raises(HostileInputError, match="did not make: t"):
        Ledger(path)


@pytest.mark.parametrize("beside", ["-journal", "-wal", "-shm", "-claims"])
def test_links_beside_a_ledger_are_not_followed(tmp_path: Path, beside: str) -> None:
    path = tmp_path / "folder" / "l.sqlite"
    with Ledger(path) as ledger:
        put(ledger, entry("a"))
    link = path.with_name(path.name + beside)
    link.unlink(missing_ok=True)
    link.symlink_to(tmp_path / "new.txt")
    with pytest.raises(HostileInputError, match="is a link"):
        Ledger(path)
    assert not (tmp_path / "new.txt").exists()


def test_a_ledger_with_columns_in_another_order_is_refused(tmp_path: Path) -> None:
    """Rows are written by place: a reply would be read where its request is."""
    made = _SCHEMA.replace("request BLOB", "one BLOB").replace("reply BLOB", "request BLOB").replace("one ", "reply ")
    somebodys(tmp_path / "l.sqlite", made)
    with pytest.raises(InputError, match="is not a ledger"):
        Ledger(tmp_path / "l.sqlite")


def test_ledgers_of_the_first_versions_are_opened(tmp_path: Path) -> None:
    tables = _SCHEMA.replace("made INTEGER NOT NULL\n)", "made INTEGER NOT NULL\n) WITHOUT ROWID")
    somebodys(
        tmp_path / "l.sqlite", f"{tables} CREATE INDEX IF NOT EXISTS calls_made ON calls (made); CREATE TABLE x (y);"
    )
    for _ in range(2):
        with Ledger(tmp_path / "l.sqlite") as ledger:
            put(ledger, entry("a"))
            assert ledger.get(key_of("a")) == b'{"text":"a"}'
            ledger.stats()


def test_a_file_that_is_no_database_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("<p>mine</p>" * 500)
    path.chmod(0o755)
    with pytest.raises(InputError, match="can't be read"):
        Ledger(path)
    assert path.stat().st_mode & 0o777 == 0o755
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]


UNFINISHED = {
    "an empty file": "",
    "before the tables": "PRAGMA journal_mode=WAL; PRAGMA user_version=0",
    "between the tables": f"PRAGMA journal_mode=WAL; {_SCHEMA.partition(';')[0]}",
    "before the version": f"PRAGMA journal_mode=WAL; {_SCHEMA}",
}


@pytest.mark.parametrize("state", UNFINISHED)
def test_a_ledger_whose_making_was_killed_is_finished(tmp_path: Path, state: str) -> None:
    path = tmp_path / "ledger.sqlite"
    path.touch()
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.executescript(UNFINISHED[state])
    with Ledger(path) as ledger:
        put(ledger, entry("a"))
        with Ledger(path) as other:  # while its content is in the write-ahead log
            assert other.get(key_of("a")) is not None
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_new_ledger_waits_for_another_process_that_makes_it(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        ends = threading.Timer(0.3, other.execute, ["COMMIT"])
        ends.start()
        with Ledger(path) as ledger:
            assert put(ledger, entry("a")) == [None]
        ends.join()


def test_a_ledger_damaged_inside_is_said(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger(path) as ledger:
        ledger.add_all(entry(str(number), reply=key_of(str(number)) * 30) for number in range(300))
        ledger._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray(path.read_bytes())
    for start in range(8192, len(data), 4096):
        data[start : start + 2048] = b"\xff" * 2048
    path.write_bytes(data)

    def use() -> None:
        with Ledger(path) as damaged:
            for number in range(300):
                damaged.get(key_of(str(number)))

    with pytest.raises(InputError, match="can't be read"):
        use()


def test_a_reply_damaged_inside_is_empty_and_can_be_removed(ledger: Ledger) -> None:
    put(ledger, entry("a"))
    put(ledger, entry("b"))
    for damaged in (b"\x78\xff", zlib.compress(b" " * 300_000_000), 7, "text"):
        ledger._db.execute("UPDATE calls SET reply=? WHERE key=?", (damaged, bytes.fromhex(key_of("a"))))
        assert ledger.get(key_of("a")) == b""
    assert [each.key for each in ledger.entries()] == [key_of("b")]
    ledger.remove(key_of("a"))
    assert ledger.get(key_of("a")) is None
    assert ledger.get(key_of("b")) is not None


def test_a_row_that_the_file_cannot_hold_is_said_to_whoever_waits(ledger: Ledger) -> None:
    with pytest.raises(InputError):
        put(ledger, msgspec.structs.replace(entry("a"), tokens_in=2**63))


def test_a_newer_ledger_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    Ledger(path).close()
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version=99")
    database.close()
    with pytest.raises(InputError, match="newer Hoofbeat"):
        Ledger(path)


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError):
        Ledger(tmp_path / "file" / "ledger.db")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OutputError, match="can't be written"):
        Ledger(tmp_path / "folder")


def test_a_ledger_that_may_only_be_read_is_said(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger(path) as ledger:
        ledger._db.execute("PRAGMA query_only=1")
        with pytest.raises(OutputError, match="can't be written") as caught:
            put(ledger, entry("a"))
        assert "--ledger" in str(caught.value)


FULL_DISK = """
import asyncio, resource, sys
from pathlib import Path
from hoofbeat.errors import OutputError
from tests.store.test_call_ledger import entry, key_of, put
from hoofbeat.store.call_ledger import Ledger

ledger = Ledger(Path(sys.argv[1]))
kept = 0
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
try:
    for number in range(2000):
        put(ledger, entry(str(number), reply=key_of(str(number)) * 20))
        kept += 1
except OutputError as err:
    print(kept, str(err).replace(chr(10), " "))
"""


def test_a_full_disk_is_said_and_what_was_kept_stays(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    run = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(path)], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert run.returncode == 0, run.stderr
    kept, _, message = run.stdout.partition(" ")
    assert "can't be written" in message
    with Ledger(path) as ledger:
        names = [key_of(str(number)) for number in range(int(kept))]
        assert int(kept) > 0
        assert ledger.known(names) == set(names)
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


KILLED = """
import os, sys
from pathlib import Path
from tests.store.test_call_ledger import entry, put
from hoofbeat.store.call_ledger import Ledger

ledger = Ledger(Path(sys.argv[1]))
for number in range(100):
    put(ledger, entry(str(number)))
    os.write(1, f"{number}\\n".encode())
    if number == 41:
        os.kill(os.getpid(), 9)
"""


def test_kill_9_takes_nothing_back_that_was_awaited(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    run = subprocess.run(
        [sys.executable, "-c", KILLED, str(path)], capture_output=True, text=True, check=False, cwd=ROOT
    )
    told = run.stdout.split()
    assert len(told) == 42
    with Ledger(path) as ledger:
        assert ledger.known([key_of(name) for name in told]) == {key_of(name) for name in told}
