"""What a command must not do: overwrite what it was given, say two things at once, call nothing a success."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from hoofbeat import teaching
from hoofbeat.corpus import import_corpus
from hoofbeat.store.call_ledger import Ledger
from tests.cli.support import hoofbeat, invented_benchmark, json_of


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("care")
    import_corpus([teaching.cases_folder()], folder / "cases")
    hoofbeat("build", "teaching", "cases", "-o", "bench", folder=folder)
    return folder


@pytest.fixture
def folder(source: Path, tmp_path: Path) -> Path:
    shutil.copytree(source, tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_a_file_inside_an_artefact_or_of_another_sort_is_not_written(folder: Path) -> None:
    before = (folder / "cases" / "manifest.json").read_bytes()
    words = ["corpus", "stats", "cases", "--scheme", "none", "--tokenizer", "none", "--plot"]
    hoofbeat(*words, "cases/manifest.json", folder=folder, code=2)
    hoofbeat(*words, "cases/plot.svg", folder=folder, code=1)
    hoofbeat(*words, ".", folder=folder, code=2)
    assert (folder / "cases" / "manifest.json").read_bytes() == before
    (folder / "ledger.sqlite").write_bytes(b"")
    done = hoofbeat("ledger", "export", "ledger.sqlite", "--ledger", "ledger.sqlite", "--json", folder=folder, code=2)
    assert "must end in .jsonl" in json_of(done)["error"]


def test_a_file_that_hoofbeat_did_not_write_is_not_replaced(folder: Path) -> None:
    stats = ["corpus", "stats", "cases", "--scheme", "none", "--tokenizer", "none", "--plot", "mine.svg"]
    aging = ["corpus", "aging", "bench", "--corpus", "cases", "--citations", "citations.csv", "-o", "mine.tsv"]
    export = ["ledger", "export", "mine.jsonl", "--ledger", "ledger.sqlite"]
    Ledger(folder / "ledger.sqlite").close()
    (folder / "citations.csv").write_text("citing,cited,case_report\n", encoding="utf-8")
    for words in (stats, aging, export):
        mine = folder / next(word for word in words if word.startswith("mine."))
        mine.write_text("my own notes\n", encoding="utf-8")
        assert "not a file that Hoofbeat wrote" in hoofbeat(*words, folder=folder, code=1).stderr
        assert mine.read_text(encoding="utf-8") == "my own notes\n"
        mine.unlink()
        for _ in range(2):  # its own file it writes again
            hoofbeat(*words, folder=folder)


def test_a_folder_that_nobody_named_is_kept_if_it_was_made_from_something_else(folder: Path) -> None:
    invented_benchmark(folder / "other", 3)
    hoofbeat("benchmark", "stats", "bench", folder=folder)
    before = (folder / "set-stats" / "manifest.json").read_bytes()
    done = hoofbeat("benchmark", "stats", "other", folder=folder, code=1)
    assert "Not overwritten: it was made from bench, which this command does not use" in done.stderr
    assert (folder / "set-stats" / "manifest.json").read_bytes() == before
    hoofbeat("benchmark", "stats", "bench", folder=folder)
    hoofbeat("benchmark", "stats", "other", "-o", "set-stats", folder=folder)
    assert (folder / "set-stats" / "manifest.json").read_bytes() != before


def test_the_demo_is_not_put_into_an_artefact(folder: Path) -> None:
    done = hoofbeat("demo", "-o", "cases", folder=folder, code=1)
    assert "is there already" in done.stderr
    assert not (folder / "cases" / "report").exists()


def test_verify_tells_all_of_every_folder_in_one_object(folder: Path) -> None:
    (folder / "cases" / "extra.txt").write_text("new", encoding="utf-8")
    manifest = json.loads((folder / "bench" / "manifest.json").read_text(encoding="utf-8"))
    manifest["files"]["../secret"] = "0" * 64
    (folder / "bench" / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    value = json_of(hoofbeat("verify", "cases", "bench", "nowhere", "--json", folder=folder, code=1))
    assert value["problems"]["cases"] == ["extra.txt was added"]
    assert "outside the folder" in value["problems"]["bench"][0]
    assert value["problems"]["nowhere"] == ["there is no such folder"]


def test_an_import_does_not_read_its_own_output(tmp_path: Path) -> None:
    shutil.copytree(teaching.cases_folder(), tmp_path / "papers")
    first = json_of(hoofbeat("corpus", "import", "papers", "-o", "papers/out", "--json", folder=tmp_path))
    written = (tmp_path / "papers" / "out" / "documents.jsonl").read_bytes()
    second = json_of(hoofbeat("corpus", "import", "papers", "-o", "papers/out", "--json", folder=tmp_path))
    assert first["counts"] == second["counts"]
    assert (tmp_path / "papers" / "out" / "documents.jsonl").read_bytes() == written
    done = hoofbeat("corpus", "import", "papers/out", "-o", "again", folder=tmp_path, code=1)
    assert "this is already a corpus" in done.stderr


def test_nothing_is_no_success(folder: Path) -> None:
    invented_benchmark(folder / "two", 2)
    (folder / "empty.jsonl").write_text("", encoding="utf-8")
    done = hoofbeat("answer", "two", "--model", "replay:empty.jsonl", "-o", "run", folder=folder, code=1)
    assert "2 failed" in done.stdout
    assert "next:" not in done.stderr
    (folder / "book.md").write_text("# A handbook\n\nInvented words.\n", encoding="utf-8")
    hoofbeat("corpus", "import", "book.md", "-o", "books", folder=folder)
    hoofbeat("build", "teaching", "books", "-o", "none", folder=folder, code=1)
    done = hoofbeat("retrieve", "bench", "--with", "bm25", "--corpus", "books", folder=folder, code=1)
    assert "none of the documents" in done.stderr


def test_wrong_numbers_are_usage_errors(folder: Path) -> None:
    hoofbeat("retrieve", "bench", "--with", "bm25", "--seed", "-1", folder=folder, code=2)
    hoofbeat("answer", "bench", "--limit", "0", folder=folder, code=2)
    hoofbeat("audit", "cases", "teaching", "--limit", "0", folder=folder, code=2)


def test_a_hint_can_be_pasted(folder: Path) -> None:
    done = hoofbeat("corpus", "import", str(teaching.cases_folder()), "-o", "my $(x) corpus", folder=folder)
    assert "hoofbeat corpus stats 'my $(x) corpus'" in done.stderr


def test_a_terminal_without_unicode_is_served(folder: Path) -> None:
    done = hoofbeat("corpus", "show", "cases", "hbt-case-01", folder=folder, extra={"PYTHONIOENCODING": "ascii"})
    assert "hbt-case-01" in done.stdout


def test_how_a_result_is_printed_does_not_change_it(folder: Path) -> None:
    hoofbeat("build", "teaching", "cases", "-o", "bench", folder=folder)
    first = (folder / "bench" / "manifest.json").read_bytes()
    hoofbeat("build", "teaching", "cases", "-o", "bench", "--json", folder=folder)
    assert (folder / "bench" / "manifest.json").read_bytes() == first


def test_no_weights_at_all_is_not_all_right(tmp_path: Path) -> None:
    done = hoofbeat("weights", "verify", folder=tmp_path, extra={"HOOFBEAT_WEIGHTS": str(tmp_path / "none")}, code=1)
    assert "there are no weights on this machine" in done.stderr


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ("return None", 2, "the scorer mine gave 'None' for the answer to"),
        ("return float('nan')", 2, "the scorer mine gave 'nan' for the answer to"),
        ("return 7", 2, "let it return a number from 0 to 1, or set its `scale`"),
        ("return 'much'", 2, "the scorer mine gave 'much' for the answer to"),
        ("return 1 / 0", 1, "the plugin failed (ZeroDivisionError: division by zero)"),
    ],
)
def test_a_plugin_that_is_wrong_is_named_and_writes_nothing(folder: Path, body: str, code: int, message: str) -> None:
    (folder / "mine.py").write_text(
        "from hoofbeat.judging import Scorer\n\n\ndef score(text, reference):\n    " + body + "\n\n\n"
        "MINE = Scorer(name='mine', summary='mine', method='mine', score=score)\n"
    )
    hoofbeat("answer", "bench", "--condition", "closed", "--model", "replay:teaching", "-o", "run", folder=folder)
    done = hoofbeat("--plugin", "mine.py", "judge", "run", "--by", "mine", "-o", "judged", folder=folder, code=code)
    assert message in done.stderr
    if code == 1:
        assert "mine.py, line 5" in done.stderr
    assert not (folder / "judged").exists()
