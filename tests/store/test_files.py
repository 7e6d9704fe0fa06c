"""Names from others lead nowhere but below their folder, for readers and for writers."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoofbeat.errors import HostileInputError
from hoofbeat.store.files import copy_inside, inside, leads_outside

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
