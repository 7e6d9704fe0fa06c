"""Artefact folders: whole or not there, replaced only by their own kind, and readable errors for everything else."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import polars
import pytest

from hoofbeat.errors import ArtefactError, InputError, OutputError, UsageError
from hoofbeat.records import Answer, Failure, Passage, Question
from hoofbeat.store import Counts, Manifest, create, open_artefact
from hoofbeat.store.artefact import TRUST_CHANGED, ArtefactFolder, clear_abandoned, folder_entries
from hoofbeat.store.tables import write_csv, write_jsonl, write_parquet, write_tsv


def make(target: Path, kind: str = "run", text: str = "hello", replace_kind: str | None = "run") -> None:
    with create(target, replace_kind=replace_kind) as draft:
        write_jsonl(draft.path / "answers.jsonl", [{"text": text}])
        (draft.path / "sub").mkdir()
        (draft.path / "sub" / "note.txt").write_text("note")
        draft.finish(Manifest(kind=kind, counts=Counts(kept=1), seeds={"split": 3}))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def change_manifest(folder: Path, **fields: object) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def test_what_was_made_is_opened_and_verified(tmp_path: Path) -> None:
    make(tmp_path / "deep" / "run")
    artefact = open_artefact(tmp_path / "deep" / "run", "run")
    assert set(artefact.manifest.files) == {"answers.jsonl", "sub/note.txt"}
    assert artefact.file("sub/note.txt").read_text() == "note"
    assert artefact.has("answers.jsonl")
    assert not artefact.has("other")
    assert artefact.verify() == []
    assert artefact.manifest.counts.kept == 1
    assert artefact.reference().kind == "run"
    assert names(tmp_path / "deep") == ["run"], "no draft is left"
    with pytest.raises(ArtefactError, match="has no other"):
        artefact.file("other")


def test_the_same_inputs_give_the_same_bytes(tmp_path: Path) -> None:
    make(tmp_path / "one")
    make(tmp_path / "two")
    make(tmp_path / "other", text="bye")
    read = {name: (tmp_path / name / "manifest.json").read_bytes() for name in ("one", "two", "other")}
    assert read["one"] == read["two"] != read["other"]
    one, two = (open_artefact(tmp_path / name).reference() for name in ("one", "two"))
    assert one.sha256 == two.sha256


def test_the_manifest_holds_no_place_of_this_machine(tmp_path: Path) -> None:
    make(tmp_path / "run")
    assert str(tmp_path) not in (tmp_path / "run" / "manifest.json").read_text()


def test_changed_and_missing_files_are_found(tmp_path: Path) -> None:
    make(tmp_path / "run")
    artefact = open_artefact(tmp_path / "run")
    (tmp_path / "run" / "answers.jsonl").write_text('{"text":"hellO"}\n')
    (tmp_path / "run" / "sub" / "note.txt").unlink()
    assert artefact.verify() == ["answers.jsonl has changed since it was written", "sub/note.txt is missing"]
    with pytest.raises(ArtefactError, match=r"damaged: sub/note.txt is missing"):
        open_artefact(tmp_path / "run")


def test_links_and_pipes_are_found_like_added_files(tmp_path: Path) -> None:
    make(tmp_path / "run")
    artefact = open_artefact(tmp_path / "run")
    (tmp_path / "run" / "extra").symlink_to(tmp_path)
    (tmp_path / "run" / "nowhere").symlink_to(tmp_path / "missing")
    os.mkfifo(tmp_path / "run" / "sub" / "pipe")
    (tmp_path / "run" / "sub" / "note.txt").rename(tmp_path / "note.txt")
    (tmp_path / "run" / "sub" / "note.txt").symlink_to(tmp_path / "note.txt")
    assert artefact.verify() == [
        "extra was added",
        "nowhere was added",
        "sub/pipe was added",
        "sub/note.txt is a link now",
    ]


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(ArtefactError, match="no such folder"):
        open_artefact(tmp_path / "none")


def test_a_foreign_folder_and_a_file(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"x")
    for path in (tmp_path / "photos", tmp_path / "photos" / "cat.jpg"):
        with pytest.raises(ArtefactError, match="not a Hoofbeat artefact"):
            open_artefact(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "can't be read"),
        (b"{", "can't be read"),
        (b"\xff\xfe", "can't be read"),
        (b"[" * 100_000, "can't be read"),
        (b"[]", "not a Hoofbeat manifest"),
        (b'{"name": "chrome-extension"}', "not a Hoofbeat manifest"),
        (b'{"kind": "run", "schema": 99}', "newer Hoofbeat"),
        (b'{"kind": "run", "schema": "one"}', "damaged"),
        (b'{"kind": "run", "schema": 1, "files": []}', "damaged"),
    ],
)
def test_manifests_that_are_not_ours(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(ArtefactError, match=words) as caught:
        open_artefact(tmp_path)
    assert caught.value.fix
    assert caught.value.where


def test_the_wrong_kind_is_said(tmp_path: Path) -> None:
    make(tmp_path / "run")
    with pytest.raises(
        ArtefactError, match="the kind of this folder is run, but corpus or benchmark is needed"
    ) as told:
        open_artefact(tmp_path / "run", ("corpus", "benchmark"))
    assert told.value.fix == "name another folder; hoofbeat corpus import makes corpus; hoofbeat build makes benchmark"


def test_only_the_same_kind_is_replaced(tmp_path: Path) -> None:
    make(tmp_path / "run", text="old")
    make(tmp_path / "run", text="new")
    assert b"new" in (tmp_path / "run" / "answers.jsonl").read_bytes()
    for kind in ("corpus", None):
        with pytest.raises(OutputError, match=r"already holds other results \(run\)"):
            make(tmp_path / "run", replace_kind=kind)
    assert b"new" in (tmp_path / "run" / "answers.jsonl").read_bytes()
    assert names(tmp_path) == ["run"]


def test_what_hoofbeat_did_not_make_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("x")
    (tmp_path / "letter").write_text("x")
    for name in ("thesis", "letter"):
        with pytest.raises(OutputError, match="not a Hoofbeat folder"):
            make(tmp_path / name)
    assert (tmp_path / "thesis" / "chapter.tex").read_text() == "x"
    assert names(tmp_path) == ["letter", "thesis"]


def add_notes(run: Path) -> None:
    (run / "NOTES.txt").write_text("mine")


def add_result(run: Path) -> None:
    make(run / "judged", kind="judgments")


def add_link(run: Path) -> None:
    (run / "notes").symlink_to(run.parent)


def add_dangling_link(run: Path) -> None:
    (run / "sub" / "gone").symlink_to(run / "nowhere")


def change_table(run: Path) -> None:
    (run / "answers.jsonl").write_text('{"text":"corrected by hand"}\n')


@pytest.mark.parametrize(
    ("add", "told"),
    [
        (add_notes, r"\(NOTES\.txt\)"),
        (add_result, r"\(judged/\)"),
        (add_link, r"\(notes\)"),
        (add_dangling_link, r"\(sub/gone\)"),
        (change_table, r"\(answers\.jsonl was changed\)"),
    ],
)
def test_a_result_with_files_of_somebody_else_is_not_replaced(
    tmp_path: Path, add: Callable[[Path], None], told: str
) -> None:
    run = tmp_path / "run"
    make(run, text="old")
    add(run)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    with pytest.raises(OutputError, match=f"not overwritten: .*{told}") as caught:
        make(run, text="new")
    assert "-o" in (caught.value.fix or "")
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before
    assert names(tmp_path) == ["run"]


@pytest.mark.parametrize(("earlier", "told"), [(True, r"NOTES\.txt"), (False, "not a Hoofbeat folder")])
def test_what_is_added_while_a_command_runs_is_not_deleted(tmp_path: Path, earlier: bool, told: str) -> None:
    if earlier:
        make(tmp_path / "run", text="old")
    make(tmp_path / "run-2", text="another result")

    def write() -> None:
        with create(tmp_path / "run", replace_kind="run") as draft:
            (tmp_path / "run").mkdir(exist_ok=True)
            (tmp_path / "run" / "NOTES.txt").write_text("mine")
            write_jsonl(draft.path / "answers.jsonl", [{"text": "new"}])
            draft.finish(Manifest(kind="run"))

    with pytest.raises(OutputError, match=told) as caught:
        write()
    assert (tmp_path / "run" / "NOTES.txt").read_text() == "mine"
    assert names(tmp_path) == ["run", "run-2", "run-3"]
    assert "use run-3" in (caught.value.fix or ""), "the work of hours is not lost"
    assert "new" in open_artefact(tmp_path / "run-3").file("answers.jsonl").read_text()


def test_what_hoofbeat_and_desktops_leave_in_a_result_is_replaced_with_it(tmp_path: Path) -> None:
    run = tmp_path / "run"
    make(run, text="old")
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    (run / "manifest.json.sig").write_text("a signature")
    (run / ".DS_Store").write_text("x")
    (run / f".page.html.{dead.pid}.part").write_text("half")
    make(run / f".judged.{dead.pid}.draft")
    (run / "empty" / "below").mkdir(parents=True)
    make(run, text="new")
    assert names(run) == ["answers.jsonl", "manifest.json", "sub"]


@pytest.mark.parametrize("below", ["", "sub", "empty"])
def test_a_folder_around_the_current_one_is_not_replaced(
    tmp_path: Path, below: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    if below != "empty":
        make(run)
    (run / below).mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(run / below)
    with pytest.raises(OutputError, match="current folder"):
        make(run)
    make(Path("new"))
    assert open_artefact(run / below / "new").manifest.kind == "run"


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    make(tmp_path / "run")
    assert open_artefact(tmp_path / "run").manifest.kind == "run"
    assert names(tmp_path) == ["run"]


def test_an_error_while_drafting_leaves_the_earlier_artefact(tmp_path: Path) -> None:
    make(tmp_path / "run", text="old")
    with pytest.raises(ZeroDivisionError), create(tmp_path / "run", replace_kind="run") as draft:
        (draft.path / "half.txt").write_text(str(1 // 0))
    assert b"old" in (tmp_path / "run" / "answers.jsonl").read_bytes()
    assert names(tmp_path) == ["run"]


def test_a_rename_that_fails_leaves_the_earlier_artefact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "run", text="old")
    rename = Path.rename

    def full(self: Path, target: Path) -> Path:
        if self.suffix == ".draft":
            raise OSError(errno.ENOSPC, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", full)
    monkeypatch.setattr("hoofbeat.store.artefact.exchange_folders", lambda one, other: False)
    with pytest.raises(OutputError, match="No space left") as caught:
        make(tmp_path / "run", text="new")
    assert "free some space" in str(caught.value)
    assert b"old" in (tmp_path / "run" / "answers.jsonl").read_bytes()
    assert names(tmp_path) == ["run"]


def test_a_disk_that_fills_up_while_a_file_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match="No space left"):
        make(tmp_path / "run")
    assert names(tmp_path) == []


DEAD = """
import os, sys
from pathlib import Path
from hoofbeat.store import create
with create(Path(sys.argv[1]), replace_kind="run") as draft:
    (draft.path / "half.txt").write_text("half")
    print(draft.path.name, flush=True)
    os.kill(os.getpid(), 9)
"""


def test_a_killed_draft_is_cleared_by_the_next_command(tmp_path: Path) -> None:
    make(tmp_path / "run", text="old")
    target = str(tmp_path / "run")
    dead = subprocess.run([sys.executable, "-c", DEAD, target], capture_output=True, text=True, check=False)
    assert names(tmp_path) == sorted(["run", dead.stdout.strip()])
    assert b"old" in (open_artefact(tmp_path / "run").path / "answers.jsonl").read_bytes()
    make(tmp_path / "run", text="new")
    assert names(tmp_path) == ["run"]


def test_a_draft_of_a_command_that_runs_is_left(tmp_path: Path) -> None:
    theirs = tmp_path / f".run.{os.getppid()}.draft"
    theirs.mkdir()
    make(tmp_path / "run")
    assert names(tmp_path) == sorted([theirs.name, "run"])


def test_a_killed_draft_that_had_our_process_number_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / f".run.{os.getpid()}.draft").mkdir()
    make(tmp_path / "run")
    assert names(tmp_path) == ["run"]


def test_a_kill_between_the_two_renames_is_mended(tmp_path: Path) -> None:
    make(tmp_path / "run", text="old")
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    (tmp_path / "run").rename(tmp_path / f".run.{dead.pid}.old")
    with pytest.raises(ZeroDivisionError), create(tmp_path / "run", replace_kind="run"):
        raise ZeroDivisionError
    assert b"old" in (tmp_path / "run" / "answers.jsonl").read_bytes()


def test_odd_names_work(tmp_path: Path) -> None:
    for name in ("run[1]", "läuft *", "a.b"):
        make(tmp_path / name)
        make(tmp_path / name)
        assert open_artefact(tmp_path / name).verify() == []
    assert len(names(tmp_path)) == 3


def test_a_file_in_the_way_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="can't write") as caught:
        make(tmp_path / "file" / "run")
    assert "-o" in str(caught.value)


def test_a_read_only_file_system(tmp_path: Path) -> None:
    with pytest.raises(OutputError):
        make(Path("/proc/hoofbeat-test/run"))


LIMITED = """
import resource, sys
from pathlib import Path
from hoofbeat.errors import OutputError
from hoofbeat.store import Manifest, create
from hoofbeat.store.tables import write_jsonl
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
try:
    with create(Path(sys.argv[1])) as draft:
        write_jsonl(draft.path / "big.jsonl", ({"number": number} for number in range(10_000)))
        draft.finish(Manifest(kind="run"))
except OutputError as err:
    print(err.what)
"""


def test_a_file_that_cannot_grow(tmp_path: Path) -> None:
    target = str(tmp_path / "run")
    run = subprocess.run([sys.executable, "-c", LIMITED, target], capture_output=True, text=True, check=False)
    assert "can't write" in run.stdout, run.stderr
    assert names(tmp_path) == []


def test_a_copied_folder_is_still_whole(tmp_path: Path) -> None:
    make(tmp_path / "run")
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    assert open_artefact(tmp_path / "copy").verify() == []
    (tmp_path / "copy" / "manifest.json").unlink()
    with pytest.raises(InputError):
        open_artefact(tmp_path / "copy")


@pytest.fixture
def folder(tmp_path: Path) -> ArtefactFolder:
    with create(tmp_path / "things") as draft:
        write_jsonl(
            draft.path / "rows.jsonl",
            [{"id": "a", "facets": {"organ": "kidney"}}, {"id": "b", "n": 2, "facets": {"organ": ["kidney", "liver"]}}],
        )
        write_jsonl(draft.path / "none.jsonl", [])
        write_tsv(draft.path / "figures.tsv", ("name", "value"), [("=SUM(A1)", 0.5), ('a "b"', 2)])
        write_csv(draft.path / "sheet.csv", ("name", "text"), [["x", "two\nlines, and a comma"]])
        write_parquet(draft.path / "big.parquet", polars.DataFrame({"n": [1, 2]}))
        (draft.path / "both.tsv").write_text("a\n1\n")
        (draft.path / "both.csv").write_text("a\n1\n")
        metrics: dict[str, object] = {"R@1": {"value": 0.25, "low": 0.1, "high": 0.4}, "rows": [1], "labels": {"x": 3}}
        counts = Counts(kept=2, rejected=1)
        draft.finish(Manifest(kind="things", title="<b>two</b> things", counts=counts, metrics=metrics))
    return ArtefactFolder(open_artefact(tmp_path / "things"))


def test_tables_of_every_format_are_data_frames(folder: ArtefactFolder) -> None:
    assert folder.tables == [
        "big.parquet", "both.csv", "both.tsv", "figures.tsv", "none.jsonl", "rows.jsonl", "sheet.csv"
    ]  # fmt: skip
    rows = folder.table("rows")
    assert rows["n"].to_list() == [None, 2]
    assert rows["facets"].to_list() == [{"organ": "kidney"}, {"organ": '["kidney", "liver"]'}]
    assert folder.table("none").is_empty()
    assert folder.table("figures.tsv").rows() == [("=SUM(A1)", 0.5), ('a "b"', 2.0)]
    assert folder.table("sheet").rows() == [("x", "two\nlines, and a comma")]
    assert folder.table("big")["n"].to_list() == [1, 2]
    assert list(folder.pandas("big")["n"]) == [1, 2]


@pytest.mark.parametrize(("name", "told"), [("both", "2 tables are called both"), ("rovs", "did you mean rows?")])
def test_an_unknown_table_is_answered_with_those_there_are(folder: ArtefactFolder, name: str, told: str) -> None:
    with pytest.raises(UsageError) as raised:
        folder.table(name)
    assert told in str(raised.value)


def test_what_is_shown_names_kind_counts_and_figures(folder: ArtefactFolder) -> None:
    assert repr(folder) == f"ArtefactFolder({str(folder.path)!r}, 2 kept, 1 rejected)"
    shown = folder._repr_html_()
    assert "&lt;b&gt;two&lt;/b&gt; things" in shown
    assert "0.250 [0.100, 0.400]" in shown
    assert "3 x" in shown
    assert folder.kind == "things"


@pytest.mark.parametrize("linked", ["answers.jsonl", "sub/note.txt", "sub", "manifest.json"])
def test_a_folder_whose_files_are_links_to_outside_is_refused(tmp_path: Path, linked: str) -> None:
    make(tmp_path / "run")
    artefact = open_artefact(tmp_path / "run")
    (tmp_path / "run" / linked).rename(tmp_path / "moved")
    (tmp_path / "run" / linked).symlink_to(tmp_path / "moved")
    with pytest.raises(ArtefactError, match="outside the folder"):
        open_artefact(tmp_path / "run")
    if linked == "sub":  # changed after it was opened, as under a server
        with pytest.raises(InputError, match="outside its folder"):
            artefact.file("sub/note.txt")


def test_a_changed_file_is_refused_when_it_is_read(tmp_path: Path) -> None:
    make(tmp_path / "run")
    artefact = open_artefact(tmp_path / "run")
    assert artefact.file("answers.jsonl").is_file()
    before = artefact.reference()
    (tmp_path / "run" / "answers.jsonl").write_text('{"text":"HELLO"}\n')  # as long as before
    with pytest.raises(ArtefactError, match="has changed since it was written") as caught:
        artefact.file("answers.jsonl")
    assert "--trust-changed" in (caught.value.fix or "")
    assert artefact.file("sub/note.txt").read_text() == "note", "files that are as they were can be read"
    assert artefact.reference() == before


def test_a_trusted_change_is_read_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "run")
    before = open_artefact(tmp_path / "run").reference()
    (tmp_path / "run" / "answers.jsonl").write_text('{"text":"bye"}\n')
    monkeypatch.setenv(TRUST_CHANGED, "1")
    artefact = open_artefact(tmp_path / "run")
    assert "bye" in artefact.file("answers.jsonl").read_text()
    reference = artefact.reference()
    assert reference.changed == ("answers.jsonl",)
    assert reference.sha256 != before.sha256
    make(tmp_path / "other", text="bye")
    assert reference.sha256 == open_artefact(tmp_path / "other").reference().sha256, "the hash is of what was read"


def test_readers_always_find_a_folder_while_it_is_replaced(tmp_path: Path) -> None:
    make(tmp_path / "run", text="0")
    missing: list[str] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            if not (tmp_path / "run" / "manifest.json").exists():
                missing.append("no folder")

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for number in range(60):
            make(tmp_path / "run", text=str(number))
    finally:
        done.set()
        reader.join()
    assert not missing
    assert names(tmp_path) == ["run"]


def test_without_exchange_the_old_folder_is_moved_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "run", text="old")
    monkeypatch.setattr("hoofbeat.store.artefact.exchange_folders", lambda one, other: False)
    make(tmp_path / "run", text="new")
    assert "new" in open_artefact(tmp_path / "run").file("answers.jsonl").read_text()
    assert names(tmp_path) == ["run"]


def test_what_killed_commands_left_is_no_entry(tmp_path: Path) -> None:
    dead = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True
    )
    pid = dead.stdout.strip()
    make(tmp_path / "several" / "one")
    (tmp_path / "several" / f".two.{pid}.draft").mkdir()
    (tmp_path / "several" / f".lines.tsv.{pid}.part").write_text("half")
    (tmp_path / "several" / f".mine.{os.getppid()}.draft").mkdir()
    assert [path.name for path in folder_entries(tmp_path / "several")] == ["one"]
    clear_abandoned(tmp_path / "several")
    assert names(tmp_path / "several") == [f".mine.{os.getppid()}.draft", "one"], "a running command's draft stays"


def test_tables_of_records_have_the_same_columns_whatever_they_hold(tmp_path: Path) -> None:
    plain = [Answer(question="q1", model="m", condition="closed", text="Yes.")]
    full = [
        Answer(
            question="q2", model="m", condition="bm25 @1", text="No.", choice="No", confidence=0.5, dropped=("d1",),
            evidence=(Passage(id="p", document="d", text="Words."),), failure=Failure(kind="timeout", message="late"),
        ),
    ]  # fmt: skip
    asked = [Question(id="q1", text="Why?", facets={"organ": "kidney"}), Question(id="q2", text="How?")]
    frames = {}
    for name, answers, questions in (("a", plain, asked[1:]), ("b", [*plain, *full], asked), ("c", [], [])):
        with create(tmp_path / name, replace_kind="run") as draft:
            write_jsonl(draft.path / "answers.jsonl", answers)
            write_jsonl(draft.path / "questions.jsonl", questions)
            draft.finish(Manifest(kind="run", title="invented"))
        folder = ArtefactFolder(open_artefact(tmp_path / name))
        frames[name] = folder.table("answers")
        assert folder.table("questions").columns == list(Question.__struct_fields__)
    assert frames["a"].schema == frames["b"].schema == frames["c"].schema
    assert frames["a"].columns == list(Answer.__struct_fields__)
    row = frames["a"].row(0, named=True)
    assert {name: row[name] for name in ("text", "sample", "dropped", "choice", "failure")} == {
        "text": "Yes.", "sample": 0, "dropped": [], "choice": None, "failure": None,
    }  # fmt: skip
    assert frames["b"]["evidence"].to_list()[1][0]["document"] == "d"
