"""People's analysis of errors in a report: from the export to shares by system, agreement and their words."""

from __future__ import annotations

import csv
from math import inf
from pathlib import Path

import pytest
from click.testing import CliRunner

from hoofbeat.cli import cli
from hoofbeat.errors import HoofbeatError, InputError
from hoofbeat.records import Answer
from hoofbeat.reports.model import Details, Notice
from hoofbeat.reports.section import ReportInputs, ReportOptions
from hoofbeat.reports.sections.errors_section import (
    KINDS,
    PHYSICIAN,
    SECTION,
    errors_chapter,
    known_answers,
    read_error_labels,
)
from hoofbeat.reports.tables import Table
from hoofbeat.store import Artefact, Counts, Manifest, create, open_artefact
from hoofbeat.store.tables import write_csv, write_jsonl

HEADER = ("item", "error", PHYSICIAN, "why", "annotator", "note")


@pytest.fixture
def judged(tmp_path: Path) -> Artefact:
    """Four answers of two invented models."""
    answers = [
        Answer(question=f"q{number}", model=model, condition="closed", text="Gout.")
        for model in ("alpha", "beta")
        for number in (1, 2)
    ]
    with create(tmp_path / "judged") as draft:
        write_jsonl(draft.path / "answers.jsonl", answers)
        write_jsonl(draft.path / "questions.jsonl", [])
        write_jsonl(draft.path / "judgments.jsonl", [])
        draft.finish(Manifest(kind="judgments", title="invented", counts=Counts(kept=4)))
    return open_artefact(tmp_path / "judged")


def code(judged: Artefact, model: str, question: str) -> str:
    return next(code for code, key in known_answers([judged]).items() if key[:2] == (question, model))


def labels(judged: Artefact, path: Path, *rows: tuple[str, str, str, str, str]) -> Path:
    """A file of rows: model, question, kind, whether a physician would err, person."""
    write_csv(
        path,
        HEADER,
        [(code(judged, model, asked), kind, erred, f"By {who}.", who, "") for model, asked, kind, erred, who in rows],
    )
    return path


def tables(judged: Artefact, *files: Path) -> dict[str, Table]:
    part = errors_chapter(files, [judged])
    opened = [inner for block in part.blocks for inner in (block.blocks if isinstance(block, Details) else (block,))]
    return {block.name: block for block in opened if isinstance(block, Table)}


def test_shares_intervals_and_agreement_are_those_counted_by_hand(judged: Artefact, tmp_path: Path) -> None:
    file = labels(
        judged,
        tmp_path / "errors.csv",
        ("alpha", "q1", "omission", "yes", "A"),
        ("alpha", "q1", "omission", "no", "B"),  # split on the physician
        ("alpha", "q2", "priority", "yes", "A"),
        ("alpha", "q2", "priority", "yes", "B"),
        ("beta", "q1", "", "no", "A"),  # the kind was left open
        ("beta", "q1", "knowledge", "no", "B"),
    )
    found = tables(judged, file)
    kinds = {(row[0], row[2]): row for row in found["errors-kinds"].rows}
    assert kinds["alpha", "omission"][3:7] == (2, 0, 1, (0.5, -inf, inf, 2)), "two answers: the count, no interval"
    assert kinds["beta", "knowledge"][3:7] == (1, 0, 1, (1.0, -inf, inf, 1))
    assert {name for _, name in kinds} == set(KINDS["error"])
    physicians = {row[0]: row for row in found["errors-physicians"].rows}
    assert physicians["alpha"][2:5] == (2, 1, 1)
    assert physicians["alpha"][6] == (0.5, 1.0), "had the split one been a no, and a yes"
    assert physicians["beta"][2:5] == (1, 0, 0)
    ((one_, other, both, agreed, _, _),) = found["errors-physicians-agreement"].rows
    assert (one_, other, both) == ("A", "B", 3)
    assert isinstance(agreed, tuple)
    assert agreed[0] == pytest.approx(2 / 3)
    assert len(found["errors-words"].rows) == 6


def test_what_was_settled_counts_and_is_no_part_of_agreement(judged: Artefact, tmp_path: Path) -> None:
    file = labels(
        judged,
        tmp_path / "errors.csv",
        ("alpha", "q1", "omission", "yes", "A"),
        ("alpha", "q1", "priority", "no", "B"),
    )
    before = {row[2]: row[4:6] for row in tables(judged, file)["errors-kinds"].rows}
    assert before["omission"] == before["priority"] == (1, 0)
    settled = labels(judged, tmp_path / "errors.adjudicated.csv", ("alpha", "q1", "priority", "no", "adjudicated"))
    found = tables(judged, file, settled)
    assert {row[2]: row[4:6] for row in found["errors-kinds"].rows}["priority"] == (0, 1)
    assert [row[:2] for row in found["errors-kinds-agreement"].rows] == [("A", "B")]


def test_one_person_alone_says_nothing_of_agreement(judged: Artefact, tmp_path: Path) -> None:
    part = errors_chapter([labels(judged, tmp_path / "e.csv", ("beta", "q2", "", "yes", "A"))], [judged])
    told = [block.text for block in part.blocks if isinstance(block, Notice)]
    assert told == ["No labels yet.", "Only one person labelled this, so agreement is unknown."]
    assert (
        SECTION.build(ReportInputs(artefacts={"judgments": [("judgments-1", judged)]}, options=ReportOptions())) == []
    )


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (("nothing", "omission", "yes", "", "A", ""), "line 2: there is no answer with the code nothing"),
        (("CODE", "carelessness", "yes", "", "A", ""), "line 2: 'carelessness' is not an answer to 'error'"),
        (
            ("CODE", "omission", "maybe", "", "A", ""),
            "line 2: 'maybe' is not an answer to 'same mistake likely for a physician'",
        ),
        (("CODE", "omission", "yes", "", "", ""), "line 2: item or annotator is missing"),
    ],
)
def test_lines_that_can_t_be_used_are_named(judged: Artefact, tmp_path: Path, row: tuple[str, ...], words: str) -> None:
    path = tmp_path / "errors.csv"
    write_csv(path, HEADER, [[code(judged, "alpha", "q1") if cell == "CODE" else cell for cell in row]])
    with pytest.raises(InputError, match=words):
        read_error_labels([path], known_answers([judged]))


def test_files_of_another_kind_and_labels_that_stand_twice_are_refused(judged: Artefact, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    write_csv(other, ("item", "label", "annotator"), [("a", "b", "c")])
    with pytest.raises(InputError, match="not a file of an error analysis"):
        read_error_labels([other], {})
    same = ("alpha", "q1", "omission", "yes", "A")
    with pytest.raises(InputError, match="A has labelled this answer already"):
        read_error_labels([labels(judged, tmp_path / "twice.csv", same, same)], known_answers([judged]))
    empty = labels(judged, tmp_path / "empty.csv")
    with pytest.raises(InputError, match="no label"):
        read_error_labels([empty], known_answers([judged]))
    with pytest.raises(HoofbeatError):
        read_error_labels([tmp_path / "none.csv"], {})


def test_the_command_takes_the_file_and_writes_it_down(judged: Artefact, tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>"
    file = labels(judged, tmp_path / "errors.csv", ("alpha", "q1", "omission", "yes", hostile))
    words = ["report", str(judged.path), "--errors", str(file), "-o", str(tmp_path / "report")]
    done = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    report = open_artefact(tmp_path / "report")
    assert [(each.name, each.kind) for each in report.manifest.inputs][-1] == ("errors.csv", "labels")
    with report.file("tables/errors-kinds.csv").open(encoding="utf-8") as stream:
        first = next(csv.DictReader(stream))
    assert (first["model"], first["kind"]) == ("alpha", "omission")
    page = report.file("report.html").read_text("utf-8")
    assert "Errors explained by people" in page
    assert hostile not in page


def test_a_file_from_before_the_columns_new_name_is_read(judged: Artefact, tmp_path: Path) -> None:
    file = labels(judged, tmp_path / "errors.csv", ("alpha", "q1", "omission", "yes", "A"))
    older = tmp_path / "older.csv"
    older.write_text(file.read_text("utf-8-sig").replace(PHYSICIAN, "physician would err too"), "utf-8")
    known = known_answers([judged])
    assert read_error_labels([older], known) == read_error_labels([file], known)
