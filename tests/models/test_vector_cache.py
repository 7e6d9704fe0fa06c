"""Vectors kept by content: across processes, damage and a kill."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from hoofbeat.models.encoder import EncoderBase, Vectors
from hoofbeat.models.encoders.vector_cache import VectorCache, cached_encoder, vectors_folder
from hoofbeat.progress import SILENT, Progress

TEXTS = [f"text {number}" for number in range(600)]


class Hashed(EncoderBase):
    """Vectors from a text's hash; remembers what it was asked to encode."""

    dimension = 8

    def __init__(self, identity: str = "hashed") -> None:
        self.name = self.identity = identity
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str], progress: Progress = SILENT) -> Vectors:
        self.asked += texts
        seeds = [int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:4]) for text in texts]
        rows = np.array([np.random.default_rng(seed).normal(size=self.dimension) for seed in seeds])
        vectors: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        return vectors


def files_of(folder: Path) -> tuple[Path, Path]:
    (only,) = (path for path in folder.iterdir() if path.is_dir())
    return only / "vectors", only / "keys"


def test_a_second_run_encodes_nothing(tmp_path: Path) -> None:
    first, second = Hashed(), Hashed()
    writer, reader = cached_encoder(first, tmp_path), cached_encoder(second, tmp_path)
    vectors = writer.encode(TEXTS)
    np.testing.assert_array_equal(vectors, Hashed().encode(TEXTS))
    np.testing.assert_array_equal(reader.encode(TEXTS[::-1])[::-1], vectors)
    assert (writer.hits, writer.misses, reader.hits, reader.misses) == (0, 600, 600, 0)
    assert second.asked == []


def test_equal_texts_are_encoded_once(tmp_path: Path) -> None:
    inner = Hashed()
    rows = cached_encoder(inner, tmp_path).encode(["a", "b", "a", "a", "\ud800"])
    assert inner.asked == ["a", "b", "\ud800"]
    np.testing.assert_array_equal(rows[0], rows[3])
    assert cached_encoder(inner, tmp_path).encode([]).shape == (0, 8)


def test_other_encoders_and_instructions_have_their_own_vectors(tmp_path: Path) -> None:
    from hoofbeat.models.encoder import Instructions  # noqa: PLC0415

    cached_encoder(Hashed(), tmp_path).encode(["a"])
    other, told = Hashed("other"), Hashed()
    cached_encoder(other, tmp_path).encode(["a"])
    cached_encoder(told, tmp_path).encode_queries(["a"], Instructions(query="find "))
    assert (other.asked, told.asked) == (["a"], ["find a"])


@pytest.mark.parametrize("torn", [1, 7, 31, 33])
def test_a_torn_end_is_not_counted_and_cut_off(tmp_path: Path, torn: int) -> None:
    cached_encoder(Hashed(), tmp_path).encode(TEXTS[:5])
    rows, keys = files_of(tmp_path)
    with rows.open("ab") as stream:
        stream.write(b"\1" * torn)
    with keys.open("ab") as stream:
        stream.write(b"\2" * min(torn, 19))
    inner = Hashed()
    again = cached_encoder(inner, tmp_path)
    np.testing.assert_array_equal(again.encode(TEXTS[:9]), Hashed().encode(TEXTS[:9]))
    assert inner.asked == TEXTS[5:9]
    assert (rows.stat().st_size, keys.stat().st_size) == (9 * 32, 9 * 20)
    third = Hashed()
    cached_encoder(third, tmp_path).encode(TEXTS[:9])
    assert third.asked == []


def test_damaged_rows_are_encoded_again(tmp_path: Path) -> None:
    cached_encoder(Hashed(), tmp_path).encode(TEXTS)
    rows, _ = files_of(tmp_path)
    data = bytearray(rows.read_bytes())
    data[32 * 3] ^= 1
    data[32 * 500 + 9] ^= 128
    rows.write_bytes(data)
    inner = Hashed()
    np.testing.assert_array_equal(cached_encoder(inner, tmp_path).encode(TEXTS), Hashed().encode(TEXTS))
    assert inner.asked == [TEXTS[3], TEXTS[500]]
    healed = Hashed()
    np.testing.assert_array_equal(cached_encoder(healed, tmp_path).encode(TEXTS), Hashed().encode(TEXTS))
    assert healed.asked == []


@pytest.mark.parametrize("which", [0, 1])
def test_a_file_lost_or_full_of_noise_costs_encoding_again(tmp_path: Path, which: int) -> None:
    cached_encoder(Hashed(), tmp_path).encode(TEXTS[:50])
    path = files_of(tmp_path)[which]
    noise = np.random.default_rng(0).bytes(path.stat().st_size)
    for damage in (lambda: path.write_bytes(noise), path.unlink, lambda: path.write_bytes(b"")):
        damage()
        inner = Hashed()
        np.testing.assert_array_equal(cached_encoder(inner, tmp_path).encode(TEXTS[:50]), Hashed().encode(TEXTS[:50]))
        assert inner.asked == TEXTS[:50]
        healed = Hashed()
        cached_encoder(healed, tmp_path).encode(TEXTS[:50])
        assert healed.asked == []


_WRITER = """
import sys
import time
from pathlib import Path
from hoofbeat.models.encoders import vector_cache
from tests.models.test_vector_cache import Hashed
vector_cache._BLOCK = 1
texts = [f"{sys.argv[2]} {number}" for number in range(int(sys.argv[3]))]
print("ready", flush=True)
vector_cache.cached_encoder(Hashed(), Path(sys.argv[1])).encode(texts)
"""


def start_writer(folder: Path, name: str, texts: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _WRITER, str(folder), name, str(texts)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_two_processes_write_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    writers = [start_writer(tmp_path, name, 300) for name in ("one", "two")]
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0]
    inner = Hashed()
    texts = [f"{name} {number}" for name in ("one", "two") for number in range(300)]
    np.testing.assert_array_equal(cached_encoder(inner, tmp_path).encode(texts), Hashed().encode(texts))
    assert inner.asked == []


def test_a_killed_writer_leaves_what_it_had_written(tmp_path: Path) -> None:
    writer = start_writer(tmp_path, "text", 1_000_000)
    cache = VectorCache(tmp_path, "hashed", 8)
    while len(cache) < 200:
        assert writer.poll() is None
        time.sleep(0.01)
    os.kill(writer.pid, signal.SIGKILL)
    writer.wait()
    kept = len(cache)
    inner = Hashed()
    texts = [f"text {number}" for number in range(kept + 10)]
    np.testing.assert_array_equal(cached_encoder(inner, tmp_path).encode(texts), Hashed().encode(texts))
    assert inner.asked == texts[kept:]


def test_a_folder_that_cant_be_written_is_left_alone(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no folder", encoding="utf-8")
    encoder = cached_encoder(Hashed(), blocked)
    np.testing.assert_array_equal(encoder.encode(TEXTS), Hashed().encode(TEXTS))
    assert encoder.trouble.startswith("vectors can't be cached")


def test_where_vectors_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOFBEAT_CACHE", str(tmp_path / "here"))
    assert vectors_folder() == tmp_path / "here" / "vectors"
    monkeypatch.delenv("HOOFBEAT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert vectors_folder() == tmp_path / "hoofbeat" / "vectors"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert vectors_folder() == tmp_path / "home" / ".cache" / "hoofbeat" / "vectors"
