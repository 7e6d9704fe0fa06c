"""A reader, a filter and export formats, each one file outside the package, used through the command."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from tests.cli.support import hoofbeat, json_of

READER = """
from hoofbeat.corpus.reader import DocumentEntry, Reader
from hoofbeat.records import Document


class Records(Reader):
    name = "rec"
    summary = "records of NAME: VALUE lines, an empty line between them"
    suffixes = (".rec",)

    def read(self, source):
        for number, block in enumerate(source.text().strip().split("\\n\\n"), start=1):
            fields = dict(line.split(": ", 1) for line in block.splitlines())
            document = Document(id=fields.pop("id"), title=fields.pop("title"), text=fields.pop("text"), facets=fields)
            yield DocumentEntry(document=document, member=str(number))


READER = Records()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rec.py").write_text(READER)
    source = tmp_path / "source"
    source.mkdir()
    for part in range(4):
        blocks = [f"id: r{part}{n}\ntitle: Case {n}\nyear: 20{n}2\ntext: Words number {part}{n}." for n in (1, 2)]
        (source / f"part{part}.rec").write_text("\n\n".join(blocks))
    (source / "note.md").write_text("# A note\n\nRead by the built-in reader.\n")
    return tmp_path


def plugin_inputs(manifest: Path) -> dict[str, str]:
    inputs = json.loads(manifest.read_text())["inputs"]
    return {each["name"]: each["sha256"] for each in inputs if each["kind"] == "plugin"}


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_reader_is_one_file(folder: Path, workers: str) -> None:
    words = ("--plugin", "rec.py", "corpus", "import", "source", "-o", "corpus", "--workers", workers, "--json")
    done = json_of(hoofbeat(*words, folder=folder))
    assert done["counts"]["kept"] == 9
    documents = [json.loads(line) for line in (folder / "corpus" / "documents.jsonl").read_text().splitlines()]
    assert documents[1]["id"] == "r01"
    assert documents[1]["facets"] == {"year": "2012"}
    assert documents[1]["provenance"]["reader"] == "rec/1"
    found = plugin_inputs(folder / "corpus" / "manifest.json")
    assert found == {"rec.py": hashlib.sha256((folder / "rec.py").read_bytes()).hexdigest()}


def test_without_the_plugin_its_files_are_unknown(folder: Path) -> None:
    done = json_of(hoofbeat("corpus", "import", "source", "-o", "corpus", "--json", folder=folder))
    assert done["counts"]["kept"] == 1
    error = hoofbeat("corpus", "import", "source/part0.rec", "-o", "other", folder=folder, code=1).stderr
    assert "no reader for this kind of file: .rec" in error
