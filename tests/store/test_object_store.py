"""Artefacts in an object store: a real S3 server on loopback (moto's), and folders by `file://`."""

from __future__ import annotations

import builtins
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hoofbeat.errors import InputError, OutputError, UsageError
from hoofbeat.retrieval.index.kept_parts import keeping_indexes
from hoofbeat.retrieval.index_set import index_documents
from hoofbeat.store import Manifest, create
from hoofbeat.store.object_store import check_url, check_writable, fetch, is_there, is_url, put
from tests.retrieval.index.test_shards import WORDS, a_document, found
from tests.retrieval.support import HashedWords

s3fs = pytest.importorskip("s3fs")
moto_server = pytest.importorskip("moto.server")
BUCKET = "s3://team-indexes"
SECRET = "not-a-real-key"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A server with one bucket; keys and its address are in the environment, as for the store's own tools."""
    patch = pytest.MonkeyPatch()
    made: Any = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    made.start()
    host, port = made.get_host_and_port()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        patch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    s3fs.S3FileSystem().mkdir("team-indexes")
    yield f"http://{host}:{port}"
    made.stop()
    patch.undo()
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture(params=["s3", "file"])
def store(request: pytest.FixtureRequest, server: str, tmp_path: Path) -> str:
    return f"{BUCKET}/{tmp_path.name}" if request.param == "s3" else f"file://{tmp_path}/store"


def artefact(folder: Path, text: str = "rows") -> Path:
    with create(folder) as draft:
        (draft.path / "rows.npy").write_text(text)
        draft.finish(Manifest(kind="index", title="rows"))
    return folder


def test_an_artefact_goes_there_and_comes_back(store: str, tmp_path: Path) -> None:
    url = f"{store}/part"
    assert not is_there(url)
    assert not fetch(url, tmp_path / "nothing")
    check_writable(url)
    put(artefact(tmp_path / "made"), url)
    assert is_there(url)
    assert fetch(url, tmp_path / "other" / "copy")
    files = {path.name: path.read_bytes() for path in (tmp_path / "made").iterdir()}
    assert {path.name: path.read_bytes() for path in (tmp_path / "other" / "copy").iterdir()} == files


def test_what_is_damaged_or_names_files_elsewhere_is_not_taken(store: str, tmp_path: Path) -> None:
    made = artefact(tmp_path / "made")
    put(made, f"{store}/changed")
    (tmp_path / "else").write_text("other")
    system, path = __import__("fsspec").core.url_to_fs(f"{store}/changed")
    system.put_file(str(tmp_path / "else"), f"{path}/rows.npy")
    assert not fetch(f"{store}/changed", tmp_path / "copy")
    hostile = (made / "manifest.json").read_text().replace("rows.npy", "../../rows.npy")
    system.pipe_file(f"{path}/manifest.json", hostile.encode())
    assert not fetch(f"{store}/changed", tmp_path / "copy")
    system.pipe_file(f"{path}/manifest.json", b"{}")
    assert not fetch(f"{store}/changed", tmp_path / "copy")
    assert sorted(each.name for each in tmp_path.iterdir() if each.name != "store") == ["else", "made"]


def test_indexes_in_a_store_are_made_once_and_read_by_every_machine(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = [a_document(number, WORDS[number % 3 :]) for number in range(8)]
    queries = ["fever of zebra", "rash"]
    encoders = []

    def ranked(cache: str, place: str, shards: int) -> bytes:
        monkeypatch.setenv("HOOFBEAT_CACHE", str(tmp_path / cache))
        encoders.append(HashedWords())
        with keeping_indexes(place, shards=shards):
            made = index_documents(documents, "b" * 24, encoder=lambda _: encoders[-1])
            return found(made, "bm25 + dense", queries)

    one = ranked("alone", "", 1)
    for machine in ("first", "second"):
        assert ranked(machine, store, 3) == one
    assert encoders[1].texts > encoders[2].texts == 4, "the second machine encodes the queries only"
    parts = [path.relative_to(tmp_path / "second") for path in (tmp_path / "second").rglob("*.npy")]
    assert len(parts) > 8
    assert all((tmp_path / "first" / part).read_bytes() == (tmp_path / "second" / part).read_bytes() for part in parts)
    kept = [path for cache in ("first", "second") for path in (tmp_path / cache).rglob("*.json")]
    assert not any(SECRET in path.read_text() or store in path.read_text() for path in kept)


@pytest.mark.usefixtures("server")
def test_stores_that_cant_be_used_are_said_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OutputError, match="the object store can't be written") as caught:
        check_writable("s3://nobody-made-this-bucket/indexes")
    assert "AWS_ENDPOINT_URL" in str(caught.value.fix)
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{taken.getsockname()[1]}")
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
        s3fs.S3FileSystem.clear_instance_cache()
        monkeypatch.setattr(s3fs.S3FileSystem, "retries", 1)
        with pytest.raises(InputError, match="the object store can't be read"):
            is_there(f"{BUCKET}/indexes")
    monkeypatch.undo()
    s3fs.S3FileSystem.clear_instance_cache()


def test_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_url("s3://bucket/x")
    assert not any(map(is_url, ["folder", "/folder", "C:\\folder", "~/x"]))
    assert check_url("file:///somewhere/") == "file:///somewhere"
    for secret in ("s3://key:hush@bucket/x", "s3://bucket/x?token=hush"):
        with pytest.raises(UsageError, match="contains a key or settings") as caught:
            check_url(secret)
        assert "hush" not in f"{caught.value} {caught.value.where}"
    with pytest.raises(UsageError, match="is not the address of a folder"):
        check_url("s3://")
    with pytest.raises(UsageError, match="this kind of store can't be used"):
        check_url("nosuchstore://bucket/x")

    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "fsspec":
            raise ImportError("No module named 'fsspec'")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UsageError, match="object stores need fsspec") as lacking:
        check_url("s3://bucket/x")
    assert "hoofbeat[objects]" in str(lacking.value.fix)
