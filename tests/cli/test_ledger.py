"""`hoofbeat ledger` on a file and on a PostgreSQL database."""

from __future__ import annotations

from pathlib import Path

from hoofbeat.store.call_ledger import Ledger
from tests.cli.support import hoofbeat, json_of
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
    assert "30 calls compared, 30 of them new" in back.stdout
    with Ledger(tmp_path / "back.sqlite") as copy:
        copy._db.execute("UPDATE calls SET reply='{}' WHERE key IN (SELECT key FROM calls LIMIT 2)")
    other = hoofbeat("ledger", "copy", "from.sqlite", "back.sqlite", folder=tmp_path, code=1)
    assert "2 calls have another reply" in other.stderr
    assert json_of(hoofbeat("ledger", "prune", "--model", "m", "--json", folder=tmp_path))["removed"] == 30
    same = hoofbeat("ledger", "copy", "from.sqlite", "from.sqlite", folder=tmp_path, code=2)
    assert "same ledger" in same.stderr
    none = hoofbeat("ledger", "stats", "--ledger", "postgresql://u@127.0.0.1:1/d", folder=tmp_path, code=1)
    assert "out of reach" in none.stderr
