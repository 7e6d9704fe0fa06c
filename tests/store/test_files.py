"""Names from others lead nowhere but below their folder, for readers and for writers; half files are removed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hoofbeat.errors import HostileInputError
from hoofbeat.store.files import copy_inside, inside, leads_outside, write_bytes

OUTSIDE = ["/abs/x", "//x", "..", "../x", "a/../../x", "a/../x", "", ".", "a\\..\\x", "a\0b", "link", "link/x", "far"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x").write_text("secret")
    made = tmp_path / "folder"
    (made / "sub").mkdir(parents=True)
    (made / "sub" / "x").write_text("own")
    (made / "link").symlink_to(tmp_path / "outside")
    (made / "far").symlink_to(tmp_path / "outside" / "x")
    (made / "near").symlink_to(made / "sub" / "x")
    return made


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_name_that_leads_outside_is_refused(folder: Path, name: str) -> None:
    assert leads_outside(folder, name)
    with pytest.raises(HostileInputError, match="outside its folder"):
        inside(folder, name)
    with pytest.raises(HostileInputError):
        copy_inside(folder / "sub" / "x", name, folder)
    assert (folder.parent / "outside" / "x").read_text() == "secret"


@pytest.mark.parametrize("name", ["x", "sub/x", "new/deep/x", "10.1000/182", "..x", "a..b", "near", "doc:1"])
def test_a_name_below_the_folder_is_taken_as_it_is(folder: Path, name: str) -> None:
    assert inside(folder, name) == folder / name
    assert inside(folder.parent / "not-there", name) == folder.parent / "not-there" / name


def test_a_folder_may_itself_be_a_link(folder: Path) -> None:
    (folder.parent / "alias").symlink_to(folder)
    assert inside(folder.parent / "alias", "sub/x").read_text() == "own"


def test_what_a_killed_process_left_of_a_file_is_removed_when_it_is_written_again(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    for name in (f".plot.svg.{dead.pid}.part", f".plot.svg.{os.getppid()}.part", f".other.svg.{dead.pid}.part"):
        (tmp_path / name).write_text("half")
    write_bytes(tmp_path / "plot.svg", b"whole")
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == sorted([f".other.svg.{dead.pid}.part", f".plot.svg.{os.getppid()}.part", "plot.svg"])
