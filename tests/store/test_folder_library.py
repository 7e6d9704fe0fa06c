from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import pytest

from hoofbeat.errors import ArtefactError, InputError
from hoofbeat.records import Document, Question
from hoofbeat.store.folder_library import Folder, FolderLibrary
from tests.web.browse_support import a_benchmark, a_corpus

DOCUMENT = Document(id="d", title="A title", text="Some words.")


def test_folders_are_found_two_levels_down_and_named_by_slugs(tmp_path: Path) -> None:
    a_corpus(tmp_path / "Fälle 2024", [DOCUMENT])
    a_corpus(tmp_path / "study" / "cases", [DOCUMENT])
    a_corpus(tmp_path / "other" / "cases", [DOCUMENT])
    a_corpus(tmp_path / "too" / "deep" / "down" / "cases", [DOCUMENT])
    (tmp_path / "link").symlink_to(tmp_path / "study")
    (tmp_path / "notes").mkdir()
    library = FolderLibrary([tmp_path])
    assert [folder.slug for folder in library.folders()] == ["cases", "cases-2", "falle-2024"]
    assert library.folder("cases", "benchmark") is None
    assert library.folder("../cases") is None


def test_what_is_made_later_appears_and_what_is_gone_goes(tmp_path: Path) -> None:
    a_corpus(tmp_path / "one", [DOCUMENT])
    library = FolderLibrary([tmp_path])
    a_corpus(tmp_path / "a-new-one", [DOCUMENT])
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / "manifest.json").write_text("{")
    library.look_again()
    assert [folder.slug for folder in library.folders()] == ["a-new-one", "one"]
    shutil.rmtree(tmp_path / "one")
    library.look_again()
    assert [folder.slug for folder in library.folders()] == ["a-new-one"]
    shutil.rmtree(damaged)
    a_corpus(damaged, [DOCUMENT])
    library.look_again()
    assert library.folder("damaged") is not None


def test_a_folder_named_outright_must_open(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        FolderLibrary([tmp_path / "none"])
    with pytest.raises(ArtefactError, match="has no Hoofbeat results"):
        FolderLibrary([tmp_path])
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(ArtefactError, match="can't be read"):
        FolderLibrary([tmp_path])


def test_what_was_opened_is_kept_until_the_folder_changes(tmp_path: Path) -> None:
    a_corpus(tmp_path / "one", [DOCUMENT])
    library = FolderLibrary([tmp_path / "one"])
    folder = library.folders()[0]
    loaded: list[str] = []

    def load(each: Folder) -> int:
        loaded.append(each.slug)
        return len(loaded)

    assert [library.opened(folder, "count", load) for _ in range(3)] == [1, 1, 1]
    manifest = folder.path / "manifest.json"
    os.utime(manifest, ns=(0, 0))
    assert library.opened(folder, "count", load) == 2
    shutil.rmtree(folder.path)
    with pytest.raises(ArtefactError, match="can no longer be read"):
        library.opened(folder, "count", load)


def test_a_slow_load_keeps_nobody_else_waiting_and_is_done_once(tmp_path: Path) -> None:
    a_corpus(tmp_path / "one", [DOCUMENT])
    library = FolderLibrary([tmp_path / "one"])
    folder = library.folders()[0]
    begun, go_on = threading.Event(), threading.Event()
    calls: list[int] = []

    def slow(_: Folder) -> str:
        calls.append(1)
        begun.set()
        assert go_on.wait(20)
        return "slow"

    results: list[str] = []
    threads = [
        threading.Thread(target=lambda: results.append(library.opened(folder, "slow", slow)), daemon=True)
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    assert begun.wait(20)
    assert library.opened(folder, "quick", lambda _: "quick") == "quick"
    assert library.folders() == [folder]
    go_on.set()
    for thread in threads:
        thread.join(20)
    assert results == ["slow"] * 4
    assert calls == [1]


def test_a_load_may_open_something_else_of_the_library(tmp_path: Path) -> None:
    a_corpus(tmp_path / "one", [DOCUMENT])
    library = FolderLibrary([tmp_path / "one"])
    folder = library.folders()[0]
    inner = library.opened(folder, "outer", lambda each: library.opened(each, "inner", lambda _: 7))
    assert inner == 7


def test_a_folder_is_shown_as_it_is_on_disk_now(tmp_path: Path) -> None:
    a_corpus(tmp_path / "one", [DOCUMENT])
    a_corpus(tmp_path / "two", [DOCUMENT])
    library = FolderLibrary([tmp_path])
    shutil.rmtree(tmp_path / "one")
    assert [folder.slug for folder in library.folders()] == ["two"]
    assert library.folder("one") is None
    a_benchmark(tmp_path / "one", [Question(id="q", text="Which?")])
    assert library.folder("one", "corpus") is None
    found = library.folder("one", "benchmark")
    assert found is not None
    assert found.artefact().manifest.kind == "benchmark"


def test_what_can_not_be_read_is_told_until_it_is_whole_again(tmp_path: Path) -> None:
    a_corpus(tmp_path / "one", [DOCUMENT])
    a_corpus(tmp_path / "two", [DOCUMENT])
    library = FolderLibrary([tmp_path])
    manifest = tmp_path / "one" / "manifest.json"
    whole, stat = manifest.read_bytes(), manifest.stat()
    manifest.write_text("{")
    assert [folder.slug for folder in library.folders()] == ["two"]
    assert [(each.name, each.why[:24]) for each in library.unreadable()] == [("one", "the manifest can't be re")]
    manifest.write_bytes(whole)
    os.utime(manifest, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    library.look_again()
    assert [folder.slug for folder in library.folders()] == ["one", "two"]
    assert library.unreadable() == []
    manifest.write_text("{")
    library.look_again()
    shutil.rmtree(tmp_path / "one")
    library.look_again()
    assert library.unreadable() == []
