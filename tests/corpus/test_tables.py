"""Tables of documents: JSONL, CSV, TSV and JSON arrays, mappings given and guessed, bad rows apart from good ones."""

from __future__ import annotations

import csv
import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from hoofbeat.corpus import Corpus, import_corpus, read_file
from hoofbeat.corpus.parsers import rows as rows_module
from hoofbeat.corpus.parsers.rows import read_rows
from hoofbeat.corpus.reader import Refusal, read_entries
from hoofbeat.corpus.readers.mapped import guess_mapping, parse_mapping
from hoofbeat.errors import InputError, UsageError
from hoofbeat.records import Document
from tests.corpus.checks import check_offsets
from tests.helpers import shared_data

MAPPING = "id=key,text=words,title=head,facets.institution=by.name,facets.date=on,notice=note"


def entries(path: Path, mapping: str = "") -> tuple[list[Document], list[tuple[str, str]]]:
    documents, refused = [], []
    for entry in read_entries(path, path.parent / "scratch", mapping=mapping):
        if isinstance(entry, Refusal):
            refused.append((entry.member, entry.reason))
        else:
            documents.append(entry.document)
    return documents, refused


def test_a_mapping_gives_fields_their_meaning(tmp_path: Path) -> None:
    row = {"key": "a/1", "words": "Body.", "head": " A  title", "by": {"name": "Elm"}, "on": "May 2011", "note": "N"}
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps(row) + "\n")
    document = entries(path, MAPPING)[0][0]
    assert (document.id, document.title, document.text, document.notices) == ("a_1", "A title", "Body.", ("N",))
    assert document.facets == {"institution": "Elm", "date": "May 2011", "year": "2011", "source_id": "a/1"}
    assert document.provenance is not None
    assert (document.provenance.reader, document.provenance.member) == ("mapped/1", "line 1")


@pytest.mark.parametrize("text", ["id", "id=", "=x", "colour=x,text=t", "id=x", "facets.=x,text=t"])
def test_wrong_mappings_are_named(text: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        parse_mapping(text)
    (tmp_path / "t.jsonl").write_text('{"id": "1", "text": "x"}\n')
    with pytest.raises(UsageError):
        import_corpus([tmp_path / "t.jsonl"], tmp_path / "c", mapping=text)
    assert not (tmp_path / "c").exists()


def test_fields_joined_by_a_mapping(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"id": 1, "source": "A", "text": "x"}\n{"id": 1, "source": "B", "text": "y"}\n')
    documents, _ = entries(path, "id=source+id,text=text")
    assert [document.id for document in documents] == ["A-1", "B-1"]


def test_a_mapping_is_guessed_by_well_known_names(tmp_path: Path) -> None:
    mapping = guess_mapping({"_id": "1", "Title": "t", "body": "x", "released": "2001", "weight": 3})
    assert mapping.parts == {"id": "_id", "title": "Title", "text": "body"}
    assert (mapping.facets, mapping.rest) == ({"date": "released"}, ("weight",))
    (tmp_path / "t.csv").write_text("colour,shape\nred,round\n")
    with pytest.raises(InputError, match="no field to take the text from"):
        list(read_file(tmp_path / "t.csv"))


def test_ids_that_repeat_with_another_text_are_told_apart(tmp_path: Path) -> None:
    rows = [("1", "A", "x"), ("1", "B", "y"), ("1", "B", "y"), ("1", "B", "z")]
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps({"id": id, "source": source, "text": text}) + "\n" for id, source, text in rows))
    artefact = import_corpus([path], tmp_path / "c")
    assert Corpus(artefact).ids() == ("1", "1-B", "1-B-3")
    assert Corpus(artefact).get("1-B").facets == {"source": "B", "source_id": "1"}
    assert artefact.manifest.counts.reasons == {"same content": 1}


def test_sections_become_sections(tmp_path: Path) -> None:
    sections = [
        {"heading": "Discussion", "text": "grade (\nA–C\n) is best\n, they say\nNext."},
        {"text": "No heading."},
    ]
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps({"id": "1", "title": "T", "sections": sections}) + "\n")
    document = entries(path)[0][0]
    assert [(section.heading, section.role) for section in document.sections] == [
        ("Discussion", "discussion"),
        ("", ""),
    ]
    assert document.text == "Discussion\n\ngrade (A–C) is best, they say\n\nNext.\n\nNo heading."
    check_offsets(document)
    with (tmp_path / "t.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([["id", "title", "sections"], ["1", "T", json.dumps(sections)], ["2", "T", "[1"]])
    documents, refused = entries(tmp_path / "t.csv")
    assert documents[0].text == document.text
    assert [member for member, _ in refused] == ["line 3"]


BAD_ROWS = [
    '{"id": "1", "text": "one"}',
    "{not json}",
    '["a", "list"]',
    '{"id": "2", "text": "two"',
    '{"id": "3", "text": "three\0"}',
    "[" * 100_000,
    "",
    '{"id": "4", "other": 1}',
    '{"id": "5", "text": "", "sections": 7}',
    '{"id": "6", "text": "six"}',
]


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_one_bad_row_never_costs_the_others(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"rows.jsonl{ending}"
    data = "\n".join(BAD_ROWS).encode()
    path.write_bytes(gzip.compress(data) if ending else data)
    artefact = import_corpus([path], tmp_path / "c")
    assert Corpus(artefact).ids() == ("1", "6")
    lines = artefact.file("rejected.jsonl").read_text().splitlines()
    sources = [json.loads(line)["source"] for line in lines]
    assert sources == [f"{path.name}: line {number}" for number in (2, 3, 4, 5, 6, 8, 9)]


def test_csv_rows_may_be_long_quoted_and_broken_over_lines(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    long = "word " * 200_000
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream, delimiter="\t")
        writer.writerows([["id", "text"], ["1", long], ["2", 'He said "a\tb".\n\nAnd left.'], ["3"], [], ["4", "four"]])
    documents, refused = entries(path)
    assert [document.id for document in documents] == ["1", "2", "4"]
    assert documents[0].text == long.strip()
    assert "And left." in documents[1].text
    assert refused == [("line 6", "wrong number of cells: 1, but the header has 2")]


def test_encodings_of_tables(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for data in ("id,text\n1,38 °C é\n".encode("cp1252"), b"\xef\xbb\xbf" + "id,text\n1,38 °C é\n".encode()):
        path.write_bytes(data)
        assert entries(path)[0][0].text == "38 °C é"


@pytest.mark.parametrize("step", [7, 64, 1 << 20])
def test_json_arrays_are_read_as_they_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    monkeypatch.setattr(rows_module, "STEP", step)
    objects = [{"id": str(number), "text": f"é {number} " + "x" * number} for number in range(60)]
    path = tmp_path / "t.json"
    for text in (json.dumps(objects), json.dumps(objects, indent=2, ensure_ascii=False) + "\n", json.dumps(objects[3])):
        path.write_text(text)
        found = [row for _, row in read_rows(path)]
        assert found == (objects if text.startswith("[") else [objects[3]])
    path.write_text(json.dumps(objects)[:-30])
    with pytest.raises(InputError, match="not readable JSON: object 60"):
        list(read_rows(path))


def test_real_guidelines_have_institutions_and_dates(tmp_path: Path) -> None:
    artefact = import_corpus([shared_data("guidelines.jsonl.gz")], tmp_path / "c")
    assert (artefact.manifest.counts.kept, artefact.manifest.counts.rejected) == (1374, 0)
    institutions: Counter[str] = Counter()
    for document in Corpus(artefact):
        found = document.facets["institution"]
        institutions.update([found] if isinstance(found, str) else found)
        assert str(document.facets["year"]) in str(document.facets["date"])
        assert document.sections[0].heading == "Major Recommendations"
        check_offsets(document)
    assert len(institutions) > 240
    assert institutions["American College of Radiology"] > 50
    assert not any(" - " in name and name.endswith(("Society", "Association", "Agency")) for name in institutions)


def test_real_answers_of_several_sources(tmp_path: Path) -> None:
    artefact = import_corpus([shared_data("medquad_multisource.jsonl.gz")], tmp_path / "c")
    assert (artefact.manifest.counts.kept, artefact.manifest.counts.rejected) == (3119, 0)
    sources = Counter(str(document.facets["source"]) for document in Corpus(artefact))
    assert len(sources) >= 5
    assert sum(sources.values()) == 3119


PATIENT = {
    "patient_id": "0",
    "patient_uid": "7665777-1",
    "PMID": "33492400",
    "file_path": "noncomm/PMC007xxxxxx/PMC7665777.xml",
    "title": "Early ARDS",
    "patient": "This 60-year-old male was hospitalized.\nHe improved.",
    "age": [[1.0, "year"], [6.0, "month"]],
    "gender": "M",
    "relevant_articles": {"32320506": 1, "32293716": 2},
    "similar_patients": {"7665777-2": 2, "7665800-1": 1},
}


@pytest.mark.parametrize("suffix", [".csv", ".json", ".csv.gz"])
def test_pmc_patients(tmp_path: Path, suffix: str) -> None:
    other = {**PATIENT, "patient_uid": "7665777-2", "similar_patients": {}, "patient": "A woman."}
    path = tmp_path / f"PMC-Patients{suffix}"
    if suffix == ".json":
        path.write_text(json.dumps([PATIENT, other, {"patient_uid": "x"}]))
    else:
        plain = path.with_suffix("") if suffix.endswith(".gz") else path
        with plain.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, list(PATIENT))
            writer.writeheader()
            writer.writerows([{name: str(value) for name, value in row.items()} for row in (PATIENT, other)])
        if suffix.endswith(".gz"):
            path.write_bytes(gzip.compress(plain.read_bytes()))
            plain.unlink()
    artefact = import_corpus([tmp_path], tmp_path / "c")
    corpus = Corpus(artefact)
    assert corpus.ids() == ("7665777-1", "7665777-2")
    document = corpus.get("7665777-1")
    assert (document.title, document.kind) == ("Early ARDS", "patient-summary")
    assert document.text == "This 60-year-old male was hospitalized.\n\nHe improved."
    similar = ["7665777-2", "7665800-1"]
    assert document.facets == {"pmid": "33492400", "gender": "M", "age": "1.5", "similar_patients": similar}
    assert artefact.manifest.counts.rejected == (1 if suffix == ".json" else 0)


def test_tables_of_something_else_beside_documents_are_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.txt").write_text("Text of a.")
    (folder / "scores.csv").write_text("id,score\na,1\n")
    (folder / "a.json").write_text('{"id": "a"}')
    (folder / "not_fetched.jsonl").write_text("")
    (folder / "notes.jsonl").write_text('{"text": "no id"}\n')
    artefact = import_corpus([folder], tmp_path / "c")
    assert (Corpus(artefact).ids(), artefact.manifest.counts.rejected) == (("a",), 0)
    mapped = import_corpus([folder], tmp_path / "d", mapping="text=text")
    assert Corpus(mapped).ids() == ("a", "notes-1")
