"""The synthesis table in a report: marks in words, what the legend explains, silence below the table, notes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from hoofbeat.audit import Audit, AuditSource
from hoofbeat.audit.synthesis.synthesis_table import SourceStatement, synthesis_tables
from hoofbeat.records import Answer, Comparison, Question
from hoofbeat.reports.model import SynthesisView
from hoofbeat.reports.page import blocks_html
from hoofbeat.reports.report_build import build_report
from hoofbeat.reports.sections.audits.synthesis_blocks import graded, signs_in_words, synthesis_blocks
from tests.reports.audits import write_audit
from tests.reports.examples import ANSWERER, JUDGE


def plain(page: str) -> str:
    """The words of a page."""
    return " ".join(re.sub(r"<[^>]+>", "", page).split())


YEARS = {"Alder": "2010", "Brook": "2016", "Cairn": "2016", "Dune": ""}


def _audit(
    path: Path,
    names: Sequence[str],
    labels: Sequence[Mapping[str, str]],
    silent: Sequence[str] = (),
    warned: str = "",
    topic: str = "fever",
    grades: Mapping[str, str] | None = None,
) -> Audit:
    """A question for each mapping of pairs (`AB`: of Alder and Brook) to labels, and one that all are silent on."""
    asked = [
        Question(id=f"q{place}", text=f"Question {place}?", facets={"topic": topic} if topic else {})
        for place in range(len(labels) + 1)
    ]
    sources = [
        AuditSource(id=name, title=f"{name} guideline", facets={"institution": name, "date": YEARS[name]})
        for name in names
    ]
    quiet = {(f"q{len(labels)}", name) for name in names} | {
        (f"q{place}", name) for place, some in enumerate(silent) for name in some.split()
    }
    answers = [
        Answer(question=each.id, model=ANSWERER, condition="source", source=name, text="Advice.", statement="Advice",
               strength=(grades or {}).get(name, "none given"), absent=(each.id, name) in quiet,
               warnings=("its quote is too short",) if name == warned else ())
        for each in asked
        for name in names
    ]  # fmt: skip
    pairs = []
    for place, each in enumerate(asked):
        found = labels[place] if place < len(labels) else {}
        for at, a in enumerate(names):
            for b in names[at + 1 :]:
                absent = {(each.id, a), (each.id, b)} & quiet
                label = "Absent" if absent else found.get(a[0] + b[0], "Consistent")
                basis = "absent" if absent else "judged"
                pairs.append(Comparison(question=each.id, a=a, b=b, label=label, basis=basis, judge=JUDGE))
    return Audit(write_audit(path, asked, sources, answers, pairs))


def _views(audit: Audit, *, own_notes: bool = True) -> list[SynthesisView]:
    blocks = synthesis_blocks(audit, "audit-1", lambda question, source: f"/{question}/{source}", own_notes=own_notes)
    return [block for block in blocks if isinstance(block, SynthesisView)]


def _key(view: SynthesisView) -> str:
    return "; ".join(f"{sign} {words}" for _, sign, words in view.key)


def test_two_institutions_agree_or_differ_without_a_majority(tmp_path: Path) -> None:
    (view,) = _views(_audit(tmp_path / "audit", ("Alder", "Brook"), [{}, {"AB": "Divergent"}], warned="Brook"))
    assert [row.verdict for row in view.rows] == ["Alder and Brook differ", "Both agree"]
    assert [each.tag for _, said in view.rows[0].cells for each in said] == ["DIFFERS", "DIFFERS"]
    assert _key(view) == "= agrees; ≠ DIFFERS from others that answer", "only the marks that occur"
    assert "No document grades these recommendations." in view.foot
    assert not any(each.facts for row in view.rows for _, said in row.cells for each in said), "said once, below"


def test_a_missing_grade_is_shown_where_another_document_has_one(tmp_path: Path) -> None:
    audit = _audit(tmp_path / "audit", ("Alder", "Brook"), [{}], grades={"Alder": "Strong"})
    (view,) = _views(audit)
    assert [each.facts for _, said in view.rows[0].cells for each in said] == [("Strong",), ("no grade given",)]
    assert "Grades are in each document's own words." in view.foot


@pytest.mark.parametrize(
    ("strength", "shown"),
    [
        ("none given", "no grade given"),
        ("none given / none given", "no grade given"),
        ("B recommendation / none given", "B recommendation; other parts not graded"),
        ("Strong; low certainty / Weak / Strong; low certainty", "Strong; low certainty / Weak"),
    ],
)
def test_grades_of_several_parts_are_told_once(strength: str, shown: str) -> None:
    statement = SourceStatement(source="a", name="A", state="answers", line="Yes", strength=strength)
    assert graded(statement) == shown


def test_more_institutions_are_named_with_whom_they_agree_and_of_whom_they_say_the_opposite(tmp_path: Path) -> None:
    apart = {"AC": "Contradictory", "AD": "Divergent", "BC": "Divergent", "BD": "Divergent"}
    (view,) = _views(_audit(tmp_path / "audit", tuple(YEARS), [apart, {"AB": "Complementary"}]))
    assert [each.tag for _, said in view.rows[0].cells for each in said] == [
        "OPPOSITE to Cairn", "DIFFERS with Alder", "OPPOSITE to Alder", "DIFFERS with Cairn"
    ]  # fmt: skip
    assert "⇄ OPPOSITE to the one named" in _key(view)
    assert "+ agree, with different details" in _key(view)
    assert "“DIFFERS with” names who shares the view." in view.foot
    assert "Position" not in plain(blocks_html([view]))
    assert view.columns[3] == ("Dune", "Dune guideline, no date given")
    assert view.columns[0] == ("Alder", "Alder guideline, 2010")


def test_a_newer_document_is_explained_only_where_one_is_named(tmp_path: Path) -> None:
    (view,) = _views(_audit(tmp_path / "one", ("Alder", "Brook"), [{"AB": "Divergent"}]))
    assert view.rows[0].cells[0][1][0].flags == ("newer: Brook 2016 says otherwise",)
    assert "“Newer”" in view.foot
    (view,) = _views(_audit(tmp_path / "two", ("Alder", "Brook"), [{}]))
    assert "“Newer”" not in view.foot


@pytest.mark.parametrize("own_notes", [True, False])
def test_what_is_to_be_checked_has_a_note_that_says_why(tmp_path: Path, own_notes: bool) -> None:
    (view,) = _views(_audit(tmp_path / "audit", ("Alder", "Brook"), [{}], warned="Brook"), own_notes=own_notes)
    said = view.rows[0].cells[1][1][0]
    assert said.check == "check in the source"
    (note,) = [note for note in view.notes if note.number == said.note]
    assert note.check == "its quote is too short"
    page = blocks_html([view])
    assert f'href="#audit-1-synthesis-n{said.note}"' in page
    assert f'id="audit-1-synthesis-n{said.note}"' in page
    assert "To be checked: its quote is too short" in plain(page)
    assert len(view.notes) == (2 if own_notes else 1)


def test_questions_that_nobody_answers_are_named_below_the_table(tmp_path: Path) -> None:
    audit = _audit(tmp_path / "audit", ("Alder", "Brook"), [{}] * 17, silent=["Brook"])
    first, last = _views(audit)
    assert (first.part, last.part) == (
        "questions 1 to 15 of 17, continued on the next page",
        "questions 16 to 17 of 17",
    )
    assert (first.unanswered, last.unanswered) == ((), (("Question 17?", "/q17/"),))
    assert (len(first.notes), len(last.notes)) == (0, 33), "the passages come after the last table"
    assert "No document answers: Question 17?" in plain(blocks_html([last]))
    assert "No document answers: Question 17?" in last.table.note
    assert "– silent: no answer found in what was read of the document" in _key(first)
    assert "silent" not in _key(last)
    assert signs_in_words(synthesis_tables(audit)[0]) == (
        "= agrees; ○ the only one that answers; – silent: no answer found in what was read of the document"
    )


def test_a_topic_that_nobody_answers_has_no_empty_table(tmp_path: Path) -> None:
    (view,) = _views(_audit(tmp_path / "audit", ("Alder", "Brook"), []))
    page = blocks_html([view])
    assert "No document answers: Question 0?" in plain(page)
    assert "<table" not in page


def test_the_report_on_one_audit_is_named_by_its_topic_and_its_table_says_what_it_is(tmp_path: Path) -> None:
    _audit(tmp_path / "audit", ("Alder", "Brook"), [{}])
    made = build_report([tmp_path / "audit"], tmp_path / "report")
    assert made.manifest.title == "Fever"
    page = plain((made.path / "report.html").read_text(encoding="utf-8"))
    assert "Who says what: fever Research software. Not for clinical use." in page
