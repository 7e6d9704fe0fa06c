"""What the fetch tests share: a server with teaching cases, a quick connection to it, and how a folder is looked at."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from hoofbeat.corpus.fetch.articles import fetch_pmc
from hoofbeat.corpus.fetch.client import ArticleSelection, Connection
from hoofbeat.corpus.fetch.fetch_folder import FetchResult
from hoofbeat.teaching import cases_folder
from tests.corpus.pmc_server import PmcServer

__all__ = [
    "IDS",
    "assert_complete",
    "connection",
    "fetch",
    "folder_contents",
    "package_path",
    "rows",
    "teaching_server",
]

CASES = ("hbt-case-01", "hbt-case-02", "hbt-case-03", "hbt-case-04")
IDS = tuple(f"PMC90000{number}" for number in range(1, 5))


@contextmanager
def teaching_server() -> Iterator[PmcServer]:
    """A server with four teaching cases as articles, each with images and some ballast."""
    with PmcServer() as running:
        folder = cases_folder()
        for id, case in zip(IDS, CASES, strict=True):
            images = {path.name: path.read_bytes() for path in sorted(folder.glob(f"figures/{case}-*.png"))}
            ballast = b"".join(hashlib.sha256(f"{id}{n}".encode()).digest() for n in range(4000))
            running.add_article(
                id, {f"{case}.nxml": (folder / f"{case}.xml").read_bytes(), **images, "data.bin": ballast}
            )
        yield running


def connection(server: PmcServer, **settings: Any) -> Connection:
    chosen = Connection.chosen(email="tester@example.org", rate=100, services=server.services(), environment={})
    return msgspec.structs.replace(chosen, **settings)


def fetch(server: PmcServer, target: Path, *ids: str, **more: Any) -> FetchResult:
    settings = more.pop("settings", {})
    selection = more.pop("selection", None) or ArticleSelection(ids=ids or IDS)
    return fetch_pmc(selection, target, connection(server, **settings), via=more.pop("via", "packages"), **more)


def package_path(id: str) -> str:
    return f"/files/oa_package/0a/1b/{id}.tar.gz"


def rows(path: Path) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]


def assert_complete(server: PmcServer, target: Path, *ids: str) -> None:
    """Every package is there, byte for byte, and listed with its size and hash; nothing is left half done."""
    listed = {row["id"]: row for row in rows(target / "fetched.jsonl")}
    assert set(listed) == set(ids)
    for id in ids:
        data = server.files[package_path(id)]
        assert (target / "articles" / f"{id}.tar.gz").read_bytes() == data
        assert listed[id]["size"] == len(data)
        assert listed[id]["sha256"] == hashlib.sha256(data).hexdigest()
        assert listed[id]["url"] == package_path(id).removeprefix("/files/")
    assert not list(target.rglob("*.part*"))


def folder_contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder but the lock, with its bytes."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "lock")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
