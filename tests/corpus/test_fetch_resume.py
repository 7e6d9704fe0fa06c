"""A fetch that was killed goes on, from every state a kill can leave behind, to the same folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from hoofbeat.corpus.fetch.client import ArticleSelection, note_of
from hoofbeat.corpus.fetch.fetch_folder import open_folder
from hoofbeat.errors import HoofbeatError, OutputError
from tests.corpus.fetch_support import IDS, assert_complete, fetch, folder_contents, package_path, teaching_server
from tests.corpus.pmc_server import PmcServer


@pytest.fixture
def server() -> Iterator[PmcServer]:
    with teaching_server() as running:
        yield running


def back_to_part(target: Path, id: str, size: int | None = None) -> Path:
    """Make a finished file a part again, of so many bytes."""
    file = target / "articles" / f"{id}.tar.gz"
    data = file.read_bytes()
    file.unlink()
    part = target / ".fetch" / "parts" / id / f"{id}.tar.gz.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(data[:size])
    return part


def test_killed_after_the_journal_and_before_the_rename(server: PmcServer, tmp_path: Path) -> None:
    fetch(server, tmp_path / "out")
    before, asked = folder_contents(tmp_path / "out"), len(server.seen)
    back_to_part(tmp_path / "out", IDS[0])
    fetch(server, tmp_path / "out")
    assert len(server.seen) == asked
    assert folder_contents(tmp_path / "out") == before


@pytest.mark.parametrize("torn", [b"", b'{"id":"PMC9000', b"\x00\xff"])
def test_killed_after_the_download_and_before_the_journal(server: PmcServer, tmp_path: Path, torn: bytes) -> None:
    fetch(server, tmp_path / "out")
    before = folder_contents(tmp_path / "out")
    journal = tmp_path / "out" / ".fetch" / "journal.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-1]) + torn)
    part = back_to_part(tmp_path / "out", IDS[-1])
    note_of(part).write_bytes(msgspec.json.encode({"validator": '"v"', "total": part.stat().st_size}))
    server.seen.clear()
    fetch(server, tmp_path / "out")
    assert server.asked(package_path(IDS[-1])) == []
    assert folder_contents(tmp_path / "out") == before


def test_what_a_kill_left_half_written_is_swept_away(server: PmcServer, tmp_path: Path) -> None:
    server.faults[package_path(IDS[0])] = ["403"]
    fetch(server, tmp_path / "out")
    state = tmp_path / "out" / ".fetch"
    leftovers = [
        tmp_path / "out" / ".fetched.jsonl.4711.part",
        state / ".journal.jsonl.4711.part",
        state / "list" / "PMC-ids.csv.gz",
        state / "parts" / IDS[0] / f".{IDS[0]}.tar.gz.part.json.4711.part",
        state / "parts" / IDS[0] / "another-version.jpg.part",
    ]
    for path in leftovers:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"{")
    fetch(server, tmp_path / "out")
    fetch(server, tmp_path / "fresh")
    assert folder_contents(tmp_path / "out") == folder_contents(tmp_path / "fresh")
    assert not (state / "parts").exists()


@pytest.mark.parametrize("field", ["id", "file"])
def test_a_journal_from_others_deletes_and_moves_nothing_outside(server: PmcServer, tmp_path: Path, field: str) -> None:
    fetch(server, tmp_path / "out")
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "x").write_text("mine")
    journal = tmp_path / "out" / ".fetch" / "journal.jsonl"
    name = f'"{field}":"{IDS[0]}{"" if field == "id" else ".tar.gz"}"'
    hostile = f'"{field}":"../../../kept{"" if field == "id" else "/x"}"'
    text = journal.read_text()
    assert name in text
    journal.write_text(text.replace(name, hostile))
    with suppress(HoofbeatError):
        fetch(server, tmp_path / "out")
    assert (kept / "x").read_text() == "mine"


def test_a_part_without_a_note_begins_anew(server: PmcServer, tmp_path: Path) -> None:
    fetch(server, tmp_path / "out")
    before = folder_contents(tmp_path / "out")
    part = back_to_part(tmp_path / "out", IDS[0], 5000)
    assert not note_of(part).exists()
    server.seen.clear()
    fetch(server, tmp_path / "out")
    assert [each.range for each in server.asked(package_path(IDS[0]))] == [""]
    assert folder_contents(tmp_path / "out") == before


def test_another_limit_goes_on_with_what_is_there(server: PmcServer, tmp_path: Path) -> None:
    fetch(server, tmp_path / "out", selection=ArticleSelection(ids=IDS, limit=2))
    server.seen.clear()
    result = fetch(server, tmp_path / "out")
    assert (result.counts.kept, result.new) == (4, 2)
    assert server.asked(package_path(IDS[0])) == []
    assert_complete(server, tmp_path / "out", *IDS)


def test_two_fetches_never_share_a_folder(server: PmcServer, tmp_path: Path) -> None:
    with (
        open_folder(tmp_path / "out", "pmc packages", {}),
        pytest.raises(OutputError, match="another fetch is using"),
    ):
        fetch(server, tmp_path / "out")
    assert server.seen == []


def start(server: PmcServer, target: Path, *words: str) -> subprocess.Popen[str]:
    bases = [word for name, url in server.services().items() for word in ("--base", f"{name}={url}")]
    code = "import sys; from hoofbeat.cli.corpus_fetch import fetch_command; fetch_command(sys.argv[1:])"
    ids = [word for id in IDS for word in ("--id", id)]
    command = ["pmc-packages", *ids, "-o", str(target), "--email", "a@b.org", "--rate", "50", *bases, *words]
    return subprocess.Popen(
        [sys.executable, "-c", code, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_process_goes_on_and_leaves_the_same_folder(server: PmcServer, tmp_path: Path, how: int) -> None:
    fetch(server, tmp_path / "whole", settings={"rate": 50.0})
    reference = folder_contents(tmp_path / "whole")
    killed, resumed = 0, set()
    for sent in (10_000, 90_000, 250_000):
        resumed |= {each.range for each in server.seen} - {""}
        server.seen.clear()
        server.faults.update({package_path(id): ["slow:0.004"] for id in IDS})
        process = start(server, tmp_path / "killed")
        deadline = time.monotonic() + 300
        while sum(sum(each.sent) for each in list(server.seen)) < sent and process.poll() is None:
            assert time.monotonic() < deadline, "nothing is sent"
            time.sleep(0.005)
        if process.poll() is None:
            os.kill(process.pid, how)
            killed += 1
        process.communicate(timeout=60)
    assert killed >= 2
    server.faults.clear()
    server.seen.clear()
    process = start(server, tmp_path / "killed", "--json")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert msgspec.json.decode(out)["counts"]["kept"] == 4
    assert "Traceback" not in err
    resumed |= {each.range for each in server.seen} - {""}
    assert resumed, "no file was resumed in its middle"
    assert_complete(server, tmp_path / "killed", *IDS)
    assert folder_contents(tmp_path / "killed") == reference
