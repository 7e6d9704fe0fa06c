"""`hoofbeat ledger` on a file and on a PostgreSQL database."""

from __future__ import annotations

import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from hoofbeat.models.http_backend import HttpBackend
from hoofbeat.store import open_ledger
from hoofbeat.store.call_ledger import Ledger
from tests.cli.support import environment, hoofbeat, invented_benchmark, json_of, printed, start
from tests.models.fault_server import FaultServer
from tests.postgres import new_postgres_url
from tests.store.test_call_ledger import entry


def test_a_ledger_is_copied_there_and_back_and_looked_into(tmp_path: Path) -> None:
    url = new_postgres_url()
    with Ledger(tmp_path / "from.sqlite") as ledger:
        ledger.add_all(entry(str(number)) for number in range(30))
    done = json_of(hoofbeat("ledger", "copy", "from.sqlite", url, "--json", folder=tmp_path))
    assert (done["calls"], done["new"], done["different"]) == (30, 30, 0)
    (tmp_path / "hoofbeat.toml").write_text(f'ledger = "{url}"')
    assert json_of(hoofbeat("ledger", "stats", "--json", folder=tmp_path))["calls"] == 30
    hoofbeat("ledger", "export", "there.jsonl", folder=tmp_path)
    hoofbeat("ledger", "export", "here.jsonl", "--ledger", "from.sqlite", folder=tmp_path)
    assert (tmp_path / "there.jsonl").read_bytes() == (tmp_path / "here.jsonl").read_bytes()
    back = hoofbeat("ledger", "copy", url, "back.sqlite", folder=tmp_path)
    assert "Compared 30 calls, 30 of them new" in back.stdout
    with Ledger(tmp_path / "back.sqlite") as copy:
        copy._db.execute("UPDATE calls SET reply='{}' WHERE key IN (SELECT key FROM calls LIMIT 2)")
    other = hoofbeat("ledger", "copy", "from.sqlite", "back.sqlite", folder=tmp_path, code=1)
    assert "2 calls have a different reply" in other.stderr
    assert json_of(hoofbeat("ledger", "prune", "--model", "m", "--json", folder=tmp_path))["removed"] == 30
    same = hoofbeat("ledger", "copy", "from.sqlite", "from.sqlite", folder=tmp_path, code=2)
    assert "same ledger" in same.stderr
    none = hoofbeat("ledger", "stats", "--ledger", "postgresql://u@127.0.0.1:1/d", folder=tmp_path, code=1)
    assert "can't be reached" in none.stderr


def test_a_run_is_the_same_with_either_ledger_and_two_at_once_pay_once(tmp_path: Path) -> None:
    invented_benchmark(tmp_path / "bench", 30)

    def run(name: str, ledger: str) -> subprocess.Popen[str]:
        (tmp_path / name).mkdir()
        words = ["answer", "../bench", "--model", server.spec(), "-o", "out"]
        return start(words, tmp_path / name, {"HOOFBEAT_LEDGER": ledger})

    with FaultServer(delay=0.02) as server:
        url = new_postgres_url()
        two = [run(name, url) for name in ("one", "other")]
        errors = [process.communicate(timeout=120)[1] for process in two]
        assert [process.returncode for process in two] == [0, 0], errors
        assert server.asked.total() == 30
        two = [run(name, str(tmp_path / "ledger.sqlite")) for name in ("third", "fourth")]
        errors = [process.communicate(timeout=120)[1] for process in two]
        assert [process.returncode for process in two] == [0, 0], errors
        assert server.asked.total() == 60
    found = [
        {path.name: path.read_bytes() for path in (tmp_path / name / "out").rglob("*") if path.is_file()}
        for name in ("one", "other", "third", "fourth")
    ]
    assert found[0] == found[1] == found[2] == found[3]
    assert "manifest.json" in found[0]
    assert b"postgresql" not in b"".join(found[0].values())


def test_an_export_leaves_damaged_calls_out_and_says_so(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.add_all(entry(str(number)) for number in range(3))
        ledger._db.execute("UPDATE calls SET reply=x'78ff' WHERE key IN (SELECT key FROM calls LIMIT 1)")
    done = hoofbeat("ledger", "export", "calls.jsonl", "--ledger", "ledger.sqlite", folder=tmp_path)
    assert "Left out 1 damaged calls" in done.stderr
    assert len((tmp_path / "calls.jsonl").read_text().splitlines()) == 2
    assert done.stdout == "Exported 2 calls → calls.jsonl\n"
    again = hoofbeat("ledger", "export", "calls.jsonl", "--ledger", "ledger.sqlite", folder=tmp_path)
    assert again.stdout == "Exported 2 calls → calls.jsonl (replaced the earlier file)\n"


@pytest.mark.parametrize(
    "changed",
    [
        "tokens_in = 9223372036854775807",
        "tokens_in = 'many', tokens_out = x'00ff'",
        "seconds = 9e999",
        "seconds = 'long'",
        "made = 9223372036854775807",
        "made = 'today'",
        "model = x'ff00'",
        "operation = x'ff00', prompt = x'ff'",
        "model = 7, prompt = 7.5",
        "request = 'text', reply = 'text'",
        "request = 1, reply = 2",
        "model = CAST(x'fffe' AS TEXT)",
        "key = 'key' || rowid",
    ],
)
def test_values_that_no_call_has_are_left_out_or_said(tmp_path: Path, changed: str) -> None:
    """SQLite keeps values of any type in any column, and a ledger may be somebody's."""
    with Ledger(tmp_path / "l.sqlite") as ledger:
        ledger.add_all(entry(str(number)) for number in range(3))
    with closing(sqlite3.connect(tmp_path / "l.sqlite")) as database, database:
        database.execute(f"UPDATE calls SET {changed}")
    here = ("--ledger", "l.sqlite")
    for words in (("stats", *here), ("verify", *here), ("export", "x.jsonl", *here), ("copy", "l.sqlite", "m.sqlite")):
        for more in ((), ("--json",)) if words[0] in ("stats", "verify") else ((),):
            code, told = printed(["ledger", *words, *more], tmp_path, environment({}))
            assert code in (0, 1), (words, told)
            assert "Traceback" not in told


@pytest.mark.parametrize("database", [False, True], ids=["file", "database"])
def test_calls_that_do_not_match_their_keys_are_found(tmp_path: Path, database: bool) -> None:
    """A row of another request, of another model, or with a reply that can't be read."""
    invented_benchmark(tmp_path / "bench", 6)
    place = new_postgres_url() if database else str(tmp_path / "ledger.sqlite")
    words = ["answer", "bench", "-o", "out", "--ledger", place]
    with FaultServer() as server:
        hoofbeat(*words, "--model", server.spec(), folder=tmp_path)
        assert json_of(hoofbeat("ledger", "verify", "--ledger", place, "--json", folder=tmp_path))["checked"] == 6
        with open_ledger(place) as ledger:
            rows = [row for page in ledger.pages() for row in page]
            wrong = [
                rows[0]._replace(request=rows[1].request),
                rows[2]._replace(model="gpt-4o"),
                rows[3]._replace(reply=b"{"),
            ]
            for row in wrong:
                ledger.remove(row.key.hex())
            ledger.add_rows(wrong)
        told = hoofbeat("ledger", "verify", "--ledger", place, folder=tmp_path, code=1).stderr
        assert "3 of 6 calls don't match their keys" in told
        assert "another model or operation" in told
        hoofbeat("ledger", "verify", "--remove", "--ledger", place, folder=tmp_path, code=1)
        assert "3 calls checked" in hoofbeat("ledger", "verify", "--ledger", place, folder=tmp_path).stdout
        asked = server.asked.total()
        hoofbeat(*words, "--model", server.spec(), folder=tmp_path)
        assert server.asked.total() == asked + 3, "what was removed is asked again, and nothing else"


@pytest.mark.parametrize("database", [False, True], ids=["file", "database"])
def test_replies_of_earlier_commands_are_counted_with_their_dates(tmp_path: Path, database: bool) -> None:
    invented_benchmark(tmp_path / "bench", 5)
    place = new_postgres_url() if database else str(tmp_path / "ledger.sqlite")
    with FaultServer() as server:
        words = ["answer", "bench", "-o", "out", "--ledger", place, "--model", server.spec()]
        first = hoofbeat(*words, folder=tmp_path)
        assert "earlier commands" not in first.stderr
        with open_ledger(place) as ledger:
            planted = [row._replace(made=1_700_000_000) for page in ledger.pages() for row in page]
            for row in planted:
                ledger.remove(row.key.hex())
            ledger.add_rows(planted)
        second = hoofbeat(*words, folder=tmp_path)
        assert "5 replies from earlier commands, made 2023-11-14" in second.stderr
        told = json_of(hoofbeat(*words, "--json", folder=tmp_path))["earlier_replies"]
        assert told == {"count": 5, "first": "2023-11-14", "last": "2023-11-14"}


def test_a_time_before_all_times_does_not_end_a_command(tmp_path: Path) -> None:
    invented_benchmark(tmp_path / "bench", 2)
    with FaultServer() as server:
        words = ["answer", "bench", "-o", "out", "--ledger", "l.sqlite", "--model", server.spec()]
        hoofbeat(*words, folder=tmp_path)
        with closing(sqlite3.connect(tmp_path / "l.sqlite")) as database, database:
            database.execute("UPDATE calls SET made = -9000000000000000")
        told = json_of(hoofbeat(*words, "--json", folder=tmp_path))["earlier_replies"]
    assert told["count"] == 2


def test_replies_from_an_endpoint_that_a_command_does_not_call_are_told(tmp_path: Path) -> None:
    """Models with the same identity share answers: whoever uses them should know from where they came."""
    invented_benchmark(tmp_path / "bench", 3)
    words = ["answer", "bench", "-o", "out", "--ledger", "l.sqlite", "--model", "ours"]
    with FaultServer() as server:
        said = []
        for spec in (server.spec(), server.spec(), "http://gateway.example/v1#stub"):
            (tmp_path / "hoofbeat.toml").write_text(f'[models.ours]\nspec = "{spec}"\nidentity = "our-model"\n')
            said.append(hoofbeat(*words, folder=tmp_path, extra={"HOOFBEAT_TRUST": "1"}).stderr)
    assert ["in the ledger came from" in each for each in said] == [False, False, True]
    assert "3 replies in the ledger came from this machine, where this command sends no calls" in said[2]


def test_a_reply_names_its_endpoint_without_a_password() -> None:
    backend = HttpBackend(url="http://ward:secret@gateway.example/v1", name="m", identity="m")
    assert backend.places == ("http://gateway.example/v1",)
