"""A corpus out again: what others read, and what a spreadsheet must not run."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from hoofbeat import teaching
from hoofbeat.corpus import Corpus, import_corpus, read_file
from hoofbeat.corpus.corpus import CorpusFormat, export_corpus
from hoofbeat.corpus.readers.beir import read_beir
from hoofbeat.corpus.readers.r2med import read_r2med
from hoofbeat.errors import HostileInputError, UsageError
from hoofbeat.records import Document, Question
from hoofbeat.registry import registry
from tests.recipes.support import a_corpus

QUESTIONS = [Question(id="q1", text="Which case?", answer="That one.", documents=("hbt-case-01",))]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    folder = tmp_path_factory.mktemp("corpus")
    import_corpus([teaching.cases_folder()], folder / "cases")
    return Corpus.open(folder / "cases")


@pytest.mark.parametrize("form", registry.names(CorpusFormat))
def test_every_format_holds_every_document_and_repeats_byte_for_byte(corpus: Corpus, tmp_path: Path, form: str) -> None:
    questions = QUESTIONS if form in ("beir", "r2med") else []
    first = export_corpus(corpus, tmp_path / "one", form, questions=questions)
    second = export_corpus(corpus, tmp_path / "two", form, questions=questions)
    assert first.manifest.counts.kept == len(corpus) == 24
    assert first.manifest.files == second.manifest.files
    assert first.verify() == []


def test_beir_comes_back_with_its_questions(corpus: Corpus, tmp_path: Path) -> None:
    export_corpus(corpus, tmp_path / "out", "beir", questions=QUESTIONS)
    back = read_beir(tmp_path / "out")
    assert [question.text for question in back.questions] == ["Which case?"]
    assert back.judgments == {"q1": {"hbt-case-01": 1}}
    import_corpus([tmp_path / "out"], tmp_path / "again")
    texts = {document.id: document.text for document in Corpus.open(tmp_path / "again").documents()}
    assert texts["hbt-case-01"].split() == corpus.get("hbt-case-01").text.split()


def test_r2med_comes_back_with_its_questions(corpus: Corpus, tmp_path: Path) -> None:
    export_corpus(corpus, tmp_path / "out", "r2med", questions=QUESTIONS)
    assert read_r2med(tmp_path / "out").judgments == {"q1": {"hbt-case-01": 1}}


def test_markdown_comes_back_with_its_headings(corpus: Corpus, tmp_path: Path) -> None:
    export_corpus(corpus, tmp_path / "out", "markdown")
    source = corpus.get("hbt-case-01")
    [back] = read_file(tmp_path / "out" / "documents" / "hbt-case-01.md")
    assert [section.heading for section in back.sections if section.heading] == [
        section.heading for section in source.sections if section.heading
    ]
    assert back.id == source.id
    assert back.title == source.title


def test_a_spreadsheet_runs_nothing(tmp_path: Path) -> None:
    (tmp_path / "evil.md").write_text(
        "---\nid: evil\ntitle: =HYPERLINK(1)\njournal: '@SUM(1)\n---\n\n+1 is how this text begins.\n", encoding="utf-8"
    )
    import_corpus([tmp_path / "evil.md"], tmp_path / "corpus")
    export_corpus(Corpus.open(tmp_path / "corpus"), tmp_path / "out", "csv")
    with (tmp_path / "out" / "documents.csv").open(encoding="utf-8", newline="") as stream:
        [row] = csv.DictReader(stream)
    assert row["title"].startswith("'=")
    assert row["text"].startswith("'+1")
    assert all(cell[:1] not in ("=", "+", "-", "@") for cell in row.values())


def test_a_spreadsheet_runs_nothing_behind_white_space(tmp_path: Path) -> None:
    text = '\t=HYPERLINK("http://x") is how this text begins.'
    a_corpus(tmp_path, [Document(id="d", title="\r=1+1", text=text, notices=("-1", "two"))])
    export_corpus(Corpus.open(tmp_path / "corpus"), tmp_path / "out", "csv")
    with (tmp_path / "out" / "documents.csv").open(encoding="utf-8", newline="") as stream:
        [row] = csv.DictReader(stream)
    assert (row["title"], row["text"], row["notices"]) == ("'\n=1+1", "'" + text, "'-1; two")


def test_questions_are_not_dropped_in_silence(corpus: Corpus, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't hold questions"):
        export_corpus(corpus, tmp_path / "out", "csv", questions=QUESTIONS)


def test_an_unknown_format_is_refused(corpus: Corpus, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no corpus format"):
        export_corpus(corpus, tmp_path / "out", "xlsx")


@pytest.mark.parametrize("id", ["/{}/escaped", "../../escaped", "a/../../../escaped", "..\\escaped"])
def test_an_id_that_is_a_path_writes_nothing_outside_the_export(tmp_path: Path, id: str) -> None:
    document = Document(id=id.format(str(tmp_path).lstrip("/")), title="t", text="words")
    hostile = a_corpus(tmp_path / "in", [document])
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(HostileInputError, match="outside its folder"):
        export_corpus(hostile, tmp_path / "out", "markdown")
    assert sorted(tmp_path.rglob("*")) == before
