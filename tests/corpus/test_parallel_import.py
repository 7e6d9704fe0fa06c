"""Import over several processes: the same bytes, and no file's misfortune is another's."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hoofbeat.corpus import Corpus, import_corpus
from hoofbeat.corpus import corpus_import as importing_module
from hoofbeat.engine import local_engine
from hoofbeat.errors import UsageError
from hoofbeat.progress import Task
from tests.corpus.test_corpus_import import folder_bytes
from tests.helpers import shared_data

FAULTS = """
import os, signal, sys, time
sys.path[:] = {path!r}
from hoofbeat.corpus import corpus_import
from hoofbeat.engine.worker import beat, serve
real = corpus_import.read_job
def read_job(job):
    name = os.path.basename(job.path)
    if name.startswith("once") and not os.path.exists(job.path + ".mark"):
        open(job.path + ".mark", "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    if name.startswith("kill"):
        os.kill(os.getpid(), signal.SIGKILL)
    if name.startswith("exit"):
        os._exit(3)
    if name.startswith("hang"):
        time.sleep(600)
    if name.startswith("slow"):
        for count in range(8):
            time.sleep(float(os.environ["SLOW_STEP"]))
            beat(count)
    if name.startswith("print"):
        print("noise " * 10_000, flush=True)
    return real(job)
corpus_import.read_job = read_job
read_job.__module__ = "hoofbeat.corpus.corpus_import"
serve(guarded={guarded})
"""


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_engine, "_SERVE", FAULTS)


@pytest.fixture(scope="module")
def patience() -> float:
    """Seconds in which every sound process gives a sign of life: several times what a start takes at this load."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", f"import {importing_module.__name__}"], check=True)
    return max(4.0, round(4 * (time.monotonic() - began), 1))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "figures").mkdir(parents=True)
    (folder / "figures" / "a.png").write_bytes(b"\x89PNG")
    for number in range(40):
        (folder / f"d{number:02d}.md").write_text(
            f"# Title {number}\n\nText {number}.\n\n![Fig. 1: C](figures/a.png)\n"
        )
    (folder / "broken.xml").write_text("<article>")
    (folder / "copy.md").write_bytes((folder / "d03.md").read_bytes())
    (folder / "rows.jsonl").write_text('{"id": "d05", "text": "Other."}\n{bad}\n{"id": "r1", "text": "Row."}\n')
    return folder


def reasons(folder: Path) -> dict[str, str]:
    rows = map(json.loads, (folder / "rejected.jsonl").read_text().splitlines())
    return {row["source"]: row["reason"] for row in rows}


def test_any_number_of_workers_gives_the_same_bytes(source: Path, tmp_path: Path) -> None:
    made = []
    for workers in (1, 2, 5):
        import_corpus([source], tmp_path / "c", workers=workers)
        made.append(folder_bytes(tmp_path / "c"))
    assert made[0] == made[1] == made[2]
    assert len([name for name in made[0] if name.startswith("images/")]) == 40
    assert reasons(tmp_path / "c") == {
        "broken.xml": reasons(tmp_path / "c")["broken.xml"],
        "d03.md": "same content as copy.md",
        "rows.jsonl: line 2": reasons(tmp_path / "c")["rows.jsonl: line 2"],
        "rows.jsonl": "id already used by d05.md: d05",
    }


def test_real_articles_with_two_workers_are_those_with_one(tmp_path: Path) -> None:
    folder = shared_data("jats")
    import_corpus([folder], tmp_path / "one", workers=1)
    import_corpus([folder], tmp_path / "two", workers=2)
    assert folder_bytes(tmp_path / "one") == folder_bytes(tmp_path / "two")


@pytest.mark.usefixtures("faults")
def test_a_process_that_dies_or_hangs_costs_its_file_only(source: Path, tmp_path: Path, patience: float) -> None:
    for name in ("kill.md", "exit.md", "hang.md", "once.md", "print.md"):
        (source / name).write_text(f"Text of {name}.")
    artefact = import_corpus([source], tmp_path / "c", workers=2, patience=patience)
    found = reasons(artefact.path)
    assert found["kill.md"] == "the reader crashed on it (signal 9)"
    assert found["exit.md"] == "the reader crashed on it (exit code 3)"
    assert found["hang.md"] == f"reading it took too long: no document in {patience:g} s"
    ids = Corpus(artefact).ids()
    assert {"once", "print", "r1", *(f"d{number:02d}" for number in range(40) if number != 3)} <= set(ids)
    assert artefact.manifest.counts.reasons["the reader crashed on it"] == 2
    assert not list(artefact.path.glob(".*"))


@pytest.mark.usefixtures("faults")
def test_a_slow_file_that_shows_signs_of_life_is_waited_for(
    tmp_path: Path, patience: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLOW_STEP", str(patience / 6))  # eight steps take longer than the patience, one does not
    (tmp_path / "slow.md").write_text("Slow.")
    artefact = import_corpus([tmp_path / "slow.md"], tmp_path / "c", patience=patience)
    assert Corpus(artefact).ids() == ("slow",)


class Watched:
    """A progress that remembers."""

    def __init__(self) -> None:
        self.total: int | None = None
        self.done = 0
        self.notes: list[str] = []

    def advance(self, steps: int = 1) -> None:
        self.done += steps

    def note(self, text: str) -> None:
        self.notes.append(text)

    @contextmanager
    def task(self, title: str, total: int | None) -> Iterator[Task]:
        self.total = total
        yield self


def test_progress_counts_files_and_says_how_many_documents(source: Path, tmp_path: Path) -> None:
    watched = Watched()
    import_corpus([source], tmp_path / "c", progress=watched, workers=2)
    assert watched.done == watched.total == 43
    assert watched.notes[-1] == "41 documents"


def test_a_corpus_copied_elsewhere_works(source: Path, tmp_path: Path) -> None:
    import_corpus([source], tmp_path / "c")
    shutil.copytree(tmp_path / "c", tmp_path / "far" / "away")
    shutil.rmtree(source)
    shutil.rmtree(tmp_path / "c")
    corpus = Corpus.open(tmp_path / "far" / "away")
    assert corpus.artefact.verify() == []
    assert (corpus.path / corpus.get("d07").figures[0].files[0]).read_bytes() == b"\x89PNG"


def test_many_inputs_are_listed_beside_the_manifest(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing_module, "MAX_INPUTS", 10)
    artefact = import_corpus([source], tmp_path / "c")
    (listed,) = artefact.manifest.inputs
    assert (listed.name, listed.sha256) == ("sources.jsonl", artefact.manifest.files["sources.jsonl"])
    assert len(artefact.file("sources.jsonl").read_text().splitlines()) == 43


def test_no_workers_is_no_import(source: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        import_corpus([source], tmp_path / "c", workers=0)


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_import_leaves_no_process_and_no_corpus(tmp_path: Path, sign: signal.Signals) -> None:
    (tmp_path / "in").mkdir()
    for number in range(3_000):
        (tmp_path / "in" / f"{number}.md").write_text(f"Text {number}. " * 500)
    code = (
        "import sys; from pathlib import Path; from hoofbeat.corpus import import_corpus\n"
        "import_corpus([Path(sys.argv[1])], Path(sys.argv[2]), workers=2)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "in"), str(tmp_path / "c")]
    process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE)
    while process.poll() is None and not list(tmp_path.glob(".c.*.draft/.documents*")):
        time.sleep(0.02)
    time.sleep(0.1)
    assert process.poll() is None
    (os.killpg if sign is signal.SIGINT else os.kill)(process.pid, sign)
    assert process.wait(timeout=60) != 0
    for _ in range(600):
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.05)
    else:
        pytest.fail("a reading process is left")
    assert not (tmp_path / "c").exists()
    if sign is signal.SIGINT:
        assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]
        assert b"KeyboardInterrupt" in (process.stderr.read() if process.stderr else b"")
