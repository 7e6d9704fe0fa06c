"""A reader, a filter and export formats, each one file outside the package, used through the command."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from tests.cli.support import hoofbeat, invented_benchmark, json_of

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

FILTER = """
from hoofbeat.corpus.filter import KEPT, CorpusFilter, FilterVerdict, per_document


class Vowels(CorpusFilter):
    name = "vowels"
    summary = "titles with at least N vowels"
    example = "vowels>=2"

    def build(self, clause):
        limit = clause.whole(clause.compared((">=",), self.example)[0])

        def judge(document):
            count = sum(letter in "aeiou" for letter in document.title.lower())
            return KEPT if count >= limit else FilterVerdict("few vowels", f"{count} in the title")

        return per_document(self.name, f"vowels>={limit}", judge, {"limit": limit})


FILTER = Vowels()
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
    return {each["name"]: each["sha256"] for each in inputs if each.get("kind") == "plugin"}


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
    assert "Hoofbeat can't read this kind of file: .rec" in error


def test_a_filter_is_one_file(folder: Path) -> None:
    (folder / "vowels.py").write_text(FILTER)
    hoofbeat("corpus", "import", "source/note.md", "-o", "notes", folder=folder)
    words = ("corpus", "filter", "notes", "--plugin", "vowels.py", "-o", "kept", "--json", "--keep")
    done = json_of(hoofbeat(*words, "vowels>=2; not vowels>=4", folder=folder))
    assert [step["step"] for step in done["funnel"]] == ["vowels>=2", "not vowels>=4"]
    assert done["counts"]["kept"] == 1
    assert list(plugin_inputs(folder / "kept" / "manifest.json")) == ["vowels.py"]
    assert "few vowels" in hoofbeat(*words, "vowels>=9", folder=folder, code=1).stderr
    assert "unknown filter 'vowels'" in hoofbeat(*words[:3], "--keep", "vowels>=2", folder=folder, code=2).stderr
    shown = hoofbeat("corpus", "filter", "--plugin", "vowels.py", "--help", folder=folder).stdout
    assert "titles with at least N vowels" in shown
    assert "journals on OGCaReBench's list" in shown


EXPORTS = """
from hoofbeat.benchmarks.export import ExportFormat
from hoofbeat.corpus.corpus import CorpusFormat


class Cards(ExportFormat):
    name = "cards"
    summary = "question and answer cards"

    def write(self, bundle, folder):
        lines = [f"{question.full_text} | {question.answer}" for question in bundle.questions]
        (folder / "cards.txt").write_text("\\n".join(lines))
        return len(lines)


class Titles(CorpusFormat):
    name = "titles"
    summary = "the titles alone"

    def write(self, folder, documents, questions):
        lines = [document.title for document in documents]
        (folder / "titles.txt").write_text("\\n".join(lines))
        return len(lines)


FORMATS = [Cards(), Titles()]
"""


def test_an_export_format_is_one_file(folder: Path) -> None:
    (folder / "formats.py").write_text(EXPORTS)
    invented_benchmark(folder / "bench", 3)
    words = ("--plugin", "formats.py", "export", "bench", "--as", "cards", "-o", "cards", "--json")
    done = json_of(hoofbeat(*words, folder=folder))
    assert done["counts"]["kept"] == len((folder / "cards" / "cards.txt").read_text().splitlines())
    assert list(plugin_inputs(folder / "cards" / "manifest.json")) == ["formats.py"]
    shown = hoofbeat("export", "--plugin", "formats.py", "--help", folder=folder).stdout
    assert "question and answer cards" in shown
    assert "|cards|" in shown
    error = hoofbeat(*words[2:], folder=folder, code=2).stderr
    assert "there is no export format 'cards'" in error


def test_a_corpus_format_is_one_file(folder: Path) -> None:
    (folder / "formats.py").write_text(EXPORTS)
    hoofbeat("corpus", "import", "source/note.md", "-o", "notes", folder=folder)
    words = ("corpus", "export", "notes", "--plugin", "formats.py", "--format", "titles", "-o", "titles")
    hoofbeat(*words, folder=folder)
    assert (folder / "titles" / "titles.txt").read_text() == "A note"
    assert list(plugin_inputs(folder / "titles" / "manifest.json")) == ["formats.py"]
    assert "the titles alone" in hoofbeat(*words[:2], "--plugin", "formats.py", "--help", folder=folder).stdout
    assert (
        "records of NAME: VALUE lines" in hoofbeat("corpus", "import", "--plugin", "rec.py", "-h", folder=folder).stdout
    )
