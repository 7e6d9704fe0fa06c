"""Facets per file from a table: which rows count, and what is said about those that can't."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hoofbeat as hb
from hoofbeat.corpus import Corpus, import_corpus
from hoofbeat.corpus.file_facets import FileFacets, file_facets_note
from hoofbeat.errors import InputError
from hoofbeat.records import Document
from hoofbeat.store.files import file_sha256
from tests.cli.support import hoofbeat, json_of

FILES = ("elm/drugs.md", "elm/food.md", "elm/old/drugs.md", "oak/drugs.md")
HEAD = "file,institution\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Invented handbooks of two institutions."""
    place = tmp_path / "handbooks"
    (place / "elm" / "old").mkdir(parents=True)
    (place / "oak").mkdir()
    for name in FILES:
        (place / name).write_text(
            f"---\ninstitution: stated\nyear: 1999\nid: {name.replace('/', '-')}\n---\n# Part {name[:3]}\n\nT {name}"
        )
    return place


def documents(folder: Path, table: str | bytes, name: str = "files.csv", **options: object) -> dict[str, Document]:
    path = folder.parent / name
    path.write_bytes(table if isinstance(table, bytes) else table.encode())
    artefact = import_corpus([folder], folder.parent / "c", facets_from=path, **options)  # type: ignore[arg-type]
    return {document.id.removesuffix(".md"): document for document in Corpus(artefact).documents()}


def said(folder: Path, table: str | bytes, name: str = "files.csv") -> dict[str, object]:
    """The institutions that a table gives to the files, without an import."""
    path = folder / name
    path.write_bytes(table if isinstance(table, bytes) else table.encode())
    read = FileFacets.read(path)
    read.match((file, (file, f"handbooks/{file}")) for file in FILES)
    return {file: read.about(file).facets["institution"] for file in FILES if read.about(file).facets}


def institutions(found: dict[str, Document]) -> dict[str, object]:
    return {id: document.facets["institution"] for id, document in found.items()}


def test_rows_and_patterns(folder: Path) -> None:
    found = documents(
        folder,
        "File,Institution,date,title,tags\n"
        "elm/**,Elm Centre (invented),,,\n"
        '"oak/drugs.md","Oak Clinic, Unit 2 (invented)",2024-05-01,Drugs at Oak,"[a, b]"\n'
        "elm/food.md,Elm Kitchen (invented),,,\n",
    )
    assert institutions(found) == {
        "elm-drugs": "Elm Centre (invented)",
        "elm-food": "Elm Kitchen (invented)",
        "elm-old-drugs": "Elm Centre (invented)",
        "oak-drugs": "Oak Clinic, Unit 2 (invented)",
    }
    oak = found["oak-drugs"]
    assert (oak.title, oak.facets["date"], oak.facets["year"], oak.facets["tags"]) == (
        "Drugs at Oak",
        "2024-05-01",
        "2024",
        ["a", "b"],
    )
    assert (found["elm-food"].title, found["elm-food"].facets["year"]) == ("Part elm", "1999")


@pytest.mark.parametrize(
    ("pattern", "matched"),
    [
        ("elm/*.md", {"elm/drugs.md", "elm/food.md"}),
        ("**/drugs.md", {"elm/drugs.md", "elm/old/drugs.md", "oak/drugs.md"}),
        ("elm/f??d.md", {"elm/food.md"}),
        ("./elm\\food.md", {"elm/food.md"}),
        ("handbooks/oak/*", {"oak/drugs.md"}),
        ("**", set(FILES)),
    ],
)
def test_what_a_pattern_matches(tmp_path: Path, pattern: str, matched: set[str]) -> None:
    assert said(tmp_path, f"file,institution\n{pattern},X\n").keys() == matched


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ("file;institution\noak/drugs.md;Öak\n".encode("cp1252"), "files.csv"),
        (b"\xef\xbb\xbf" + "sep=;\nfile;institution\noak/drugs.md;Öak\n".encode(), "files.csv"),
        ("file\tinstitution\noak/drugs.md\tÖak\n".encode("utf-16"), "files.txt"),
        ("file\tinstitution\r\noak/drugs.md\tÖak\r\n\r\n".encode(), "files.tsv"),
    ],
)
def test_what_spreadsheets_save(tmp_path: Path, content: bytes, name: str) -> None:
    assert said(tmp_path, content, name) == {"oak/drugs.md": "Öak"}


def test_a_row_counts_before_the_facet_of_all(folder: Path) -> None:
    found = documents(folder, "file,institution\noak/*,Oak\n", facets={"institution": "All", "country": "X"})
    assert institutions(found) == {"elm-drugs": "All", "elm-food": "All", "elm-old-drugs": "All", "oak-drugs": "Oak"}
    assert found["oak-drugs"].facets["country"] == "X"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (HEAD + "oak/drug.md,Oak\n", r"line 2: no imported file is named oak/drug\.md \(closest: oak/drugs\.md\)"),
        (HEAD + "ash/*,Ash\n", r"line 2: no file matches ash/\*"),
        (HEAD + "oak/drugs.md,A\n./oak/drugs.md,B\n", r"line 3: oak/drugs\.md is named again \(first in line 2\)"),
        (HEAD + "elm/*,A\n**/food.md,B\n", r"line 3: elm/food\.md gets the institution 'B', but 'A' in line 2"),
        (HEAD + "oak/drugs.md,=1+1\n", "line 2: the institution begins like a formula: '=1.1'"),
        (HEAD + "oak/drugs.md,@x\n", "begins like a formula"),
        (HEAD + "oak/drugs.md,#REF!\n", "a spreadsheet's error: #REF!"),
        (HEAD + "oak/drugs.md,Oak, Unit 2\n", "more cells than columns: 'Unit 2'"),
        ("file,\noak/drugs.md,Oak\n", "has no name in the first line"),
        (HEAD + ",Oak\n", "line 2: no file"),
        ("oak/drugs.md,Oak\n", "has no column 'file': its first line is 'oak/drugs.md,Oak'"),
        ("file,institution,institution\noak/drugs.md,A,B\n", "two columns named 'institution'"),
        (HEAD, "has no rows"),
        (HEAD + "oak/drugs.md,\n", "has no values"),
        ("", "no column 'file'"),
        (b"PK\x03\x04", "save the sheet as CSV"),
        (b"file,institution\n\0", "not a text file"),
    ],
)  # fmt: skip
def test_tables_that_can_not_be_used(tmp_path: Path, table: str | bytes, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        said(tmp_path, table)
    assert caught.value.fix
    assert str(caught.value.where).endswith("files.csv")


def test_all_problems_are_said_at_once(folder: Path) -> None:
    with pytest.raises(InputError) as caught:
        documents(folder, "file,institution\na.md,A\nb.md,B\n")
    assert "2 lines can't be used" in caught.value.what
    assert not (folder.parent / "c").exists()
    with pytest.raises(InputError, match="can't read the table of facets"):
        import_corpus([folder], folder.parent / "c", facets_from=folder / "none.csv")


def test_a_name_that_two_files_have(folder: Path) -> None:
    (folder.parent / "files.csv").write_text(HEAD + "drugs.md,A\n")
    roots = [folder / "elm", folder / "oak"]
    with pytest.raises(InputError, match=r"drugs\.md names 2 files; write the folder before the name"):
        import_corpus(roots, folder.parent / "c", facets_from=folder.parent / "files.csv")
    (folder.parent / "files.csv").write_text(HEAD + "oak/drugs.md,A\n")
    artefact = import_corpus(roots, folder.parent / "c", facets_from=folder.parent / "files.csv")
    assert Corpus(artefact).get("oak-drugs.md").facets["institution"] == "A"


def test_a_table_in_the_folder_is_not_a_document(folder: Path) -> None:
    table = folder / "files.csv"
    table.write_text("file,institution,text\n**/*.md,A,words that could be a document\n")
    artefact = import_corpus([folder], folder.parent / "c", facets_from=table)
    assert (artefact.manifest.counts.kept, artefact.manifest.counts.rejected) == (4, 0)


def test_the_manifest_names_the_table(folder: Path) -> None:
    table = folder.parent / "files.csv"
    table.write_text(HEAD + "elm/**,A\n")
    artefact = import_corpus([folder], folder.parent / "c", facets_from=table)
    manifest = artefact.manifest
    assert (manifest.inputs[-1].name, manifest.inputs[-1].kind) == ("files.csv", "table of facets")
    assert manifest.inputs[-1].sha256 == file_sha256(table)
    assert manifest.settings["facets_from"] == {
        "table": "files.csv",
        "sha256": file_sha256(table),
        "rows": 1,
        "files_without_row": ["oak/drugs.md"],
    }
    assert file_facets_note(manifest) == "note: 1 file is in no row of files.csv: oak/drugs.md"
    assert file_facets_note(import_corpus([folder], folder.parent / "d").manifest) == ""


def test_by_command_and_in_python(folder: Path) -> None:
    (folder.parent / "files.csv").write_text(HEAD + "elm/**,Elm (invented)\n")
    words = ("corpus", "import", "handbooks", "--facets-from", "files.csv", "--workers", "1", "-o", "c")
    done = hoofbeat(*words, "--json", folder=folder.parent)
    assert json_of(done)["metrics"]["files_without_row"] == 1
    assert "1 file is in no row of files.csv: oak/drugs.md" in done.stderr
    with pytest.warns(UserWarning, match="1 file is in no row of files.csv: oak/drugs.md"):
        corpus = hb.import_corpus(folder, folder.parent / "d", facets_from=folder.parent / "files.csv", workers=1)
    lines = [(folder.parent / name / "documents.jsonl").read_bytes() for name in "cd"]
    assert lines[0] == lines[1]
    assert json.loads(lines[0].splitlines()[0])["facets"]["institution"] == "Elm (invented)"
    assert len(corpus) == 4
