"""The synthesis table: positions, majority and outlier, silence, older statements, and parts that fit a page."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from hoofbeat.audit import Audit, AuditSource
from hoofbeat.audit.findings.relations import FIVE_RELATIONS
from hoofbeat.audit.source_names import SourceNames
from hoofbeat.audit.synthesis.synthesis_table import (
    HEADER,
    SourceStatement,
    SynthesisRow,
    positions_of,
    synthesis_records,
    synthesis_row,
    synthesis_tables,
)
from hoofbeat.records import Question
from tests.reports.audits import made_audit, teaching_audit

QUESTION = Question(id="q", text="How often?")
SOURCES = [
    AuditSource(id=name, title="", facets={"institution": institution, "year": year})
    for name, institution, year in (
        ("a", "Alder", "2010"), ("b", "Brook", "2016"), ("c", "Cairn", "2016"),
        ("d", "Dune", ""), ("d2", "Dune", "2012"),
    )
]  # fmt: skip
NAMES = SourceNames(SOURCES)
ALDER = ("ab", "ac", "ad")


def _row(labels: dict[str, str], silent: str = "", asked: int = 4) -> SynthesisRow:
    """A question with these labels (`ab`: of a and b; all others are consistent)."""
    statements = [
        SourceStatement(source=each.id, name=each.id, state="silent" if each.id in silent.split() else "answers",
                        line=each.id, year=NAMES[each.id].year)
        for each in SOURCES[:asked]
    ]  # fmt: skip
    spoken = [each.source for each in statements if each.state == "answers"]
    pairs = {(a, b): labels.get(f"{a}{b}", "Consistent") for a in spoken for b in spoken if a < b}
    return synthesis_row(QUESTION, statements, pairs, FIVE_RELATIONS, NAMES)


def _marks(row: SynthesisRow) -> str:
    return " ".join(next((each.mark for each in cell.shown), cell.state) for cell in row.cells)


@pytest.mark.parametrize(
    ("labels", "silent", "marks", "verdict"),
    [
        ({}, "", "agrees agrees agrees agrees", "All 4 agree"),
        ({"ab": "Complementary"}, "d", "adds adds agrees silent", "All 3 agree; 1 silent"),
        (dict.fromkeys(ALDER, "Divergent"), "", "differs agrees agrees agrees", "Alder differs from 3 others"),
        (dict.fromkeys(ALDER, "Contradictory"), "", "opposes agrees agrees agrees", "Alder differs from 3 others"),
        (dict.fromkeys(("ac", "ad", "bc", "bd"), "Divergent"), "", "differs differs differs differs",
         "Two views: Alder and Brook / Cairn and Dune"),
        ({"ab": "Divergent"}, "c d", "differs differs silent silent", "Alder and Brook differ; 2 silent"),
        (dict.fromkeys(("ab", "ac", "bc"), "Divergent"), "d", "differs differs differs silent",
         "Three views: Alder / Brook / Cairn; 1 silent"),
        ({}, "b c d", "alone silent silent silent", "Only Alder answers; 3 silent"),
        ({}, "a b c d", "silent silent silent silent", "All are silent"),
        # labelled Absent though both answer: such answers were called alike
        (dict.fromkeys(("ad", "bd", "cd"), "Absent"), "", "agrees agrees agrees unknown",
         "All 3 agree; 1 not compared"),
        ({"ab": "Absent"}, "c d", "unknown unknown silent silent", "Answers could not be compared; 2 silent"),
    ],
)  # fmt: skip
def test_who_agrees_and_who_differs(labels: dict[str, str], silent: str, marks: str, verdict: str) -> None:
    row = _row(labels, silent)
    assert (_marks(row), row.verdict) == (marks, verdict)


@pytest.mark.parametrize(
    ("labels", "silent", "verdict"),
    [
        ({}, "", "Both agree"),
        ({"ab": "Divergent"}, "", "Alder and Brook differ"),
        ({"ab": "Contradictory"}, "", "Alder and Brook say the opposite"),
        ({}, "a", "Only Brook answers"),
        ({"ab": "Absent"}, "", "Answers could not be compared"),
        ({}, "a b", "Both are silent"),
    ],
)
def test_two_institutions_are_both_and_not_most(labels: dict[str, str], silent: str, verdict: str) -> None:
    assert _row(labels, silent, asked=2).verdict == verdict


def test_a_view_names_who_shares_it_and_an_opposite_names_of_whom() -> None:
    row = _row({"ac": "Contradictory", "ad": "Divergent", "bc": "Divergent", "bd": "Divergent"})
    shown = [cell.shown[0] for cell in row.cells]
    assert [each.mark for each in shown] == ["opposes", "differs", "opposes", "differs"]
    assert [each.opposite_to for each in shown] == [("Cairn",), (), ("Alder",), ()]
    assert [each.shared_with for each in shown] == [("Brook",), ("Alder",), ("Dune",), ("Cairn",)]


def test_a_newer_document_is_named_only_where_none_as_new_agrees() -> None:
    row = _row({"ab": "Divergent", "bc": "Divergent", "bd": "Divergent"})
    assert [each.newer_differs for cell in row.cells for each in cell.shown] == ["", "", "", ""], (
        "Cairn, of the same year as Brook, agrees with Alder"
    )
    row = _row({"ab": "Divergent", "bc": "Divergent", "bd": "Divergent"}, silent="c")
    assert row.cells[0].shown[0].newer_differs == "Brook 2016"


def test_the_outlier_and_the_older_statement_are_marked() -> None:
    row = _row(dict.fromkeys(("ab", "ac", "ad"), "Divergent"))
    first, *others = (cell.shown[0] for cell in row.cells)
    assert first.outlier
    assert first.newer_differs == "Cairn 2016"
    assert not any(each.outlier or each.newer_differs for each in others)
    assert dict(first.labels) == {"Brook": "Divergent", "Cairn": "Divergent", "Dune": "Divergent"}


def test_positions_are_the_largest_groups_without_a_divergence() -> None:
    apart = {("a", "b"), ("b", "a"), ("b", "c"), ("c", "b")}
    assert positions_of("abc", apart) == [("a", "c"), ("b",)]
    many = [f"s{number:02}" for number in range(30)]
    odd = {(a, b) for a in many for b in many if (a == "s07") != (b == "s07")}
    assert [len(group) for group in positions_of(many, odd)] == [29, 1]


def test_two_documents_of_an_institution_share_a_cell() -> None:
    statements = [
        SourceStatement(source=name, name=name, state="answers", line=name, year=NAMES[name].year)
        for name in ("a", "d", "d2")
    ]
    agree = synthesis_row(
        QUESTION, statements, {("a", "d"): "Consistent", ("a", "d2"): "Consistent"}, FIVE_RELATIONS, NAMES
    )
    assert [[each.source for each in cell.shown] for cell in agree.cells] == [["a"], [], [], ["d2"]], (
        "the newest is shown"
    )
    apart = synthesis_row(
        QUESTION, statements, {("a", "d"): "Divergent", ("d", "d2"): "Divergent"}, FIVE_RELATIONS, NAMES
    )
    assert [each.source for each in apart.cells[3].shown] == ["d2", "d"]
    assert [each.mark for each in apart.cells[3].shown][1] == "differs"


def test_an_audit_becomes_a_table_for_each_topic(tmp_path: Path) -> None:
    audit = Audit(teaching_audit(tmp_path / "audit"))
    tables, left = synthesis_tables(audit)
    assert left == 0
    shown = [row.question for table in tables for row in (*table.rows, *table.unanswered)]
    assert sorted(shown) == sorted(each.id for each in audit.questions)
    assert all(len(table.rows) <= 10 and len(table.institutions) <= 8 for table in tables)
    for table in tables:
        contested = [row.contested for row in table.rows]
        assert contested == sorted(contested, reverse=True)
    records = list(synthesis_records(tables))
    assert len(records) == len(audit.answers)
    assert set(records[0]) == set(HEADER)
    spoken = [each for each in records if each["state"] == "answers"]
    assert all(each["statement"] and each["answer"] and each["quotes"] and each["labels"] for each in spoken)
    assert {each["statement_from"] for each in spoken} == {"first sentence"}


def test_a_large_audit_shows_the_most_contested_questions_in_parts(tmp_path: Path) -> None:
    audit = Audit(made_audit(tmp_path / "audit", 20, 30))
    tables, left = synthesis_tables(audit, 12)
    assert left == 18
    assert any("institutions 9 to" in table.part for table in tables)
    shown = {row.question for table in tables for row in table.rows}
    assert len(shown) == 12
    apart = {each.question for each in audit.comparisons if each.label in ("Divergent", "Contradictory")}
    assert shown <= apart or apart <= shown


def test_a_line_of_the_answer_is_taken_before_its_first_sentence(tmp_path: Path) -> None:
    audit = Audit(teaching_audit(tmp_path / "audit"))
    audit.__dict__["answers"] = [replace(each, statement="Short", strength="Grade A") for each in audit.answers]
    audit.each_answer = lambda: iter(audit.answers)  # type: ignore[method-assign]
    spoken = [each for each in synthesis_records(synthesis_tables(audit)[0]) if each["state"] == "answers"]
    assert {(each["statement"], each["statement_from"], each["strength"]) for each in spoken} == {
        ("Short", "model", "Grade A")
    }
