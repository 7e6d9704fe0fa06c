"""The review store's databases: what is kept over a restart, what is refused, and what is said when one fails."""

from __future__ import annotations

import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from hoofbeat.errors import HoofbeatError, HostileInputError, InputError, UsageError
from hoofbeat.review.assignments import plan_of
from hoofbeat.review.review_records import DatabaseError, ItemLabel, ReviewRefusalError, SaveResult
from hoofbeat.review.review_store import ReviewStore
from tests.postgres import new_postgres_url, postgres_folder
from tests.review.stores import make_study
from tests.store.test_call_ledger import plant_earlier_content, plant_journal


def save(store: ReviewStore, person: str, base: int, request: str, item: str = "item-0", **more: Any) -> SaveResult:
    given: dict[str, Any] = {"values": {"quality": base + 1}, "state": "draft", "seconds": 1.0, **more}
    return store.save("study", item, person, base=base, request=request, **given)


def missing(store: ReviewStore, item: str) -> bool:
    """Whether there is no such item, be it said by nothing or by a refusal."""
    try:
        return store.item("study", item) is None
    except ReviewRefusalError as err:
        return err.status == 404


def fill(store: ReviewStore, person: str) -> None:
    for n in range(50):
        save(store, person, 1 + n, f"s{n}", values={"note": "x" * 20_000})


def test_everything_is_there_after_closing_and_opening(store_urls: str) -> None:
    with ReviewStore.open(store_urls) as store:
        _, (ada, _), (token, _) = make_study(store)
        signed = store.sign_in(token)
        assert signed is not None
        saved = save(store, ada.id, 0, "r1")
        trail = store.trail()
    with ReviewStore.open(store_urls) as store:
        assert store.label("study", "item-0", ada.id) == saved.label
        assert store.trail() == trail
        assert store.session(signed[1]) == signed[0]
        assert save(store, ada.id, 0, "r1") == saved


def test_a_newer_layout_is_refused(store_urls: str) -> None:
    with ReviewStore.open(store_urls) as store, store._database.write() as connection:
        connection.execute(text("UPDATE review_schema SET version=99"))
    with pytest.raises(InputError, match="newer Hoofbeat"):
        ReviewStore.open(store_urls)


def test_limits_of_older_studies_are_renamed(store_urls: str) -> None:
    with ReviewStore.open(store_urls) as store:
        make_study(store)
        with store._database.write() as connection:
            older = '{"least_passed":0.8,"plan":{"per_item":2,"most":7}}'
            connection.execute(text("UPDATE review_studies SET settings=:older"), {"older": older})
            connection.execute(text("UPDATE review_schema SET version=1"))
            connection.execute(text("DROP TABLE review_case_decisions"))
    with ReviewStore.open(store_urls) as store:
        study = store.study("study")
        assert study is not None
        assert study.settings == {"min_passed": 0.8, "plan": {"per_item": 2, "max_per_person": 7}}
        assert plan_of(study).max_per_person == 7


def test_only_hashes_of_secrets_are_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "review.db"
    with ReviewStore.open(str(path)) as store:
        _, token = store.invite("Ada Example", "admin", by="x")
        signed = store.sign_in(token)
        assert signed is not None
    written = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"Ada Example" in written
    assert token.encode() not in written
    assert signed[1].encode() not in written
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_commits_of_a_file_reach_the_disk_before_they_return(tmp_path: Path) -> None:
    with ReviewStore.open(str(tmp_path / "review.db")) as store, store._database.read() as connection:
        assert connection.execute(text("PRAGMA synchronous")).scalar_one() == 2
        assert connection.execute(text("PRAGMA journal_mode")).scalar_one() == "wal"


def test_a_file_that_is_something_else_is_refused(tmp_path: Path) -> None:
    words, other = tmp_path / "words.db", tmp_path / "other.db"
    words.write_text("no database, just some words that are long enough to be looked at\n" * 100)
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE calls (x)")
    connection.close()
    before = other.read_bytes()
    with pytest.raises(DatabaseError, match="not a database of reviews"):
        ReviewStore.open(str(words))
    with pytest.raises(InputError, match="something else"):
        ReviewStore.open(str(other))
    assert other.read_bytes() == before, "no write-ahead log is switched on in another program's file"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["other.db", "words.db"]
    with pytest.raises(DatabaseError, match="can't be written"):
        ReviewStore.open(str(tmp_path))
    with pytest.raises(DatabaseError, match="can't be written"):
        ReviewStore.open(str(words / "below.db"))


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_was_removed_takes_nothing_more(tmp_path: Path, replaced: bool) -> None:
    path = tmp_path / "review.db"
    with ReviewStore.open(str(path)) as store:
        _, (ada, _), _ = make_study(store)
        path.rename(tmp_path / "elsewhere.db")
        if replaced:
            path.write_bytes(b"")
        with pytest.raises(DatabaseError, match="removed or replaced while the server was running"):
            save(store, ada.id, 0, "r1")
        path.unlink(missing_ok=True)
        (tmp_path / "elsewhere.db").rename(path)
        assert save(store, ada.id, 0, "r1").label.version == 1


@pytest.mark.parametrize(
    "address", ["mysql://a:hush@b/c", "sqlite://", "postgresql://u:hush@h/d?secret=hush", "://hush"]
)
def test_addresses_of_other_kinds_are_refused(address: str) -> None:
    with pytest.raises(UsageError) as caught:
        ReviewStore.open(address)
    assert "hush" not in str(caught.value) + repr(caught.value)


def test_a_server_that_refuses_is_told_without_the_password(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    url = new_postgres_url()
    with ReviewStore.open(url) as store, store._database.write() as connection:
        connection.execute(text("CREATE ROLE locked LOGIN PASSWORD 'right'"))
        assert "hush" not in repr(store)
    base, _, socket = url.partition("?")
    name = base.rpartition("/")[2]
    cases = {
        f"postgresql://postgres:hush-hush@/no_such_database?{socket}": "no such database",
        f"postgresql://nobody:hush-hush@/{name}?{socket}": "refuses",
        f"postgresql://locked:hush-hush@/{name}?{socket}": "lacks the rights",
        "postgresql://postgres:hush-hush@127.0.0.1:9/postgres": "can't be reached",
        "postgresql://postgres:hush-hush@/postgres?host=/no/such/folder": "can't be reached",
    }
    for address, words in cases.items():
        with pytest.raises(HoofbeatError, match=words) as caught:
            ReviewStore.open(address)
        err = caught.value
        assert err.fix
        assert "hush-hush" not in f"{err}{err!r}{err.__cause__!r}{err.details}"
    monkeypatch.setenv("PGPASSWORD", "hush-hush")
    with ReviewStore.open(url) as store:
        assert "hush" not in store.where + repr(store) + repr(store._database)
    told = capfd.readouterr()
    assert "hush-hush" not in told.out + told.err


def test_a_server_that_hung_up_is_called_again(monkeypatch: pytest.MonkeyPatch) -> None:
    hang_up = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
    hang_up += " AND pid <> pg_backend_pid()"
    with ReviewStore.open(new_postgres_url()) as store, ReviewStore.open(store_address(store)) as other:
        _, (ada, _), _ = make_study(store)
        save(store, ada.id, 0, "r1")

        def cut() -> None:
            with other._database.read() as connection:
                connection.execute(text(hang_up))

        cut()  # a line in use: the call that meets it is told, the same call again goes through
        seen = [missing(store, "item-0") for _ in range(2) if not broken(store)]
        assert seen[-1:] == [False]
        assert not broken(store)
        monkeypatch.setattr("hoofbeat.review.database._IDLE_SECONDS", 0.0)
        cut()  # an idle line: nobody notices
        assert store.item("study", "item-0") is not None
        assert save(store, ada.id, 1, "r2").label.version == 2


def store_address(store: ReviewStore) -> str:
    return str(store._database._writer.url.render_as_string(hide_password=False)) + "?host=" + postgres_folder()


def broken(store: ReviewStore) -> bool:
    try:
        store.studies()
        return False
    except DatabaseError as err:
        return "can't be reached" in err.what


def test_a_full_disk_is_told_and_leaves_the_label_as_it_was(tmp_path: Path) -> None:
    with ReviewStore.open(str(tmp_path / "review.db")) as store:
        _, (ada, _), _ = make_study(store)
        first = save(store, ada.id, 0, "r1")
        with store._database.read() as connection:
            pages = connection.execute(text("PRAGMA page_count")).scalar_one()
        with store._database._writer.connect() as connection:
            connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")
        with pytest.raises(DatabaseError, match="full"):
            fill(store, ada.id)
        label: ItemLabel | None = store.label("study", "item-0", ada.id)
        assert label is not None
        assert label.version == len(store.trail(what="saved"))
        assert label.version >= first.label.version


def test_a_reviews_file_that_brings_code_is_refused(tmp_path: Path) -> None:
    """A trigger could change every label as it is saved; those that guard the trail are ours."""
    path = tmp_path / "review.db"
    with ReviewStore.open(str(path)):
        pass
    with ReviewStore.open(str(path)):
        pass
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TRIGGER t AFTER INSERT ON review_labels BEGIN UPDATE review_labels SET state = 'skipped'; END"
        )
    with pytest.raises(HostileInputError, match="has parts that Hoofbeat did not make: t"):
        ReviewStore.open(str(path))
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TRIGGER t")
        connection.execute("DROP TRIGGER review_events_DELETE")
        connection.execute("CREATE TRIGGER review_events_DELETE BEFORE DELETE ON review_labels BEGIN SELECT 1; END")
    with pytest.raises(HostileInputError, match="review_events_DELETE"):
        ReviewStore.open(str(path))


@pytest.mark.parametrize(
    ("table", "one", "other"),
    [
        ("review_labels", "PRIMARY KEY", "UNIQUE (study) ON CONFLICT REPLACE, PRIMARY KEY"),
        ("review_labels", "state TEXT NOT NULL", "state TEXT NOT NULL CHECK (state != 'done')"),
        ("review_people", "role TEXT NOT NULL", "role TEXT NOT NULL COLLATE NOCASE"),
    ],
)
def test_a_reviews_file_whose_tables_have_other_conditions_is_refused(
    tmp_path: Path, table: str, one: str, other: str
) -> None:
    """Each label that is saved would take the place of another one."""
    path = tmp_path / "review.db"
    with ReviewStore.open(str(path)):
        pass
    with sqlite3.connect(path) as connection:
        made = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0]
        assert one in made
        connection.execute(f"DROP TABLE {table}")
        connection.execute(made.replace(one, other))
    with pytest.raises(HostileInputError, match=f"has parts that Hoofbeat did not make: {table}"):
        ReviewStore.open(str(path))


def test_a_journal_beside_a_reviews_file_that_would_remove_a_file_is_refused(tmp_path: Path) -> None:
    victim, path = tmp_path / "notes.txt", tmp_path / "review.db"
    victim.write_text("mine")
    with ReviewStore.open(str(path)):
        pass
    plant_journal(path, victim)
    with pytest.raises(HostileInputError, match="names another file"):
        ReviewStore.open(str(path))
    assert victim.read_text() == "mine"


def test_what_a_journal_puts_back_is_looked_at_as_well(tmp_path: Path) -> None:
    path = tmp_path / "review.db"
    with ReviewStore.open(str(path)):
        pass
    plant_earlier_content(path, "CREATE TRIGGER t AFTER INSERT ON review_labels BEGIN DELETE FROM review_labels; END")
    with pytest.raises(HostileInputError, match="did not make: t"):
        ReviewStore.open(str(path))


def test_a_reviews_file_of_an_earlier_layout_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "review.db"
    with ReviewStore.open(str(path)):
        pass
    with sqlite3.connect(path) as connection:
        connection.execute("ALTER TABLE review_studies DROP COLUMN made_from")
        connection.execute("ALTER TABLE review_people DROP COLUMN token_used")
        connection.execute("UPDATE review_schema SET version = 3")
    for _ in range(2):
        with ReviewStore.open(str(path)) as store:
            assert store.studies() == []
    with sqlite3.connect(path) as connection:
        assert len(connection.execute("PRAGMA table_info(review_studies)").fetchall()) == 9
