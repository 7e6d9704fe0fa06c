"""Disagreements as cases: found again in the next audit, closed, reopened, new and gone; exported and read back."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from time import time
from typing import Any

import pytest
from msgspec.structs import replace

from hoofbeat.audit import Audit
from hoofbeat.audit.case_records import CaseDecision, CaseStatus, DisagreementCase, newest
from hoofbeat.audit.disagreement_cases import (
    COLUMNS,
    case_id,
    count_states,
    decisions_json,
    find_reference,
    opponents,
    read_cases,
    read_decisions,
    what_changed,
    words_of,
    worklist,
    write_worklist,
)
from hoofbeat.errors import InputError, UsageError
from hoofbeat.records import Answer, Question, TraceStep
from hoofbeat.reports.sections.audits.word_change_blocks import words_view
from tests.cli.audit_folders import invented_pairs, write_audit


def an_answer(question: str, source: str, text: str, quote: str = "") -> Answer:
    trace = (TraceStep(stage="citations", what="quoted", text=quote),) if quote else ()
    return Answer(
        question=question, model="m", condition="source", source=source, text=text, absent=not text, trace=trace
    )


def decided(case: DisagreementCase, status: CaseStatus, **more: str) -> CaseDecision:
    return CaseDecision(
        case=case.id, version=1, status=status, seen=case, person="p1", name="Dr. A", at=0.0, **more
    )  # fmt: skip


def an_audit(path: Path, labels: dict[str, str], **words: str) -> Audit:
    """An audit whose sources say what `question_source="…"` gives, or their own name."""
    answers = [
        an_answer(q, s, words.get(f"{q}_{s}", f"{s} on {q}."), f"{s} quotes {q}")
        for q in labels
        for s in ("alder", "brook", "cairn")
    ]
    return Audit.open(write_audit(path, invented_pairs(labels), answers=answers))


def test_cases_are_the_disagreements_the_most_serious_first(tmp_path: Path) -> None:
    audit = an_audit(tmp_path / "a", {"q1": "cd-", "q2": "xmm"})
    cases = read_cases(audit)
    assert [(case.question, case.sources, case.label) for case in cases] == [
        ("q2", ("alder", "brook"), "Contradictory"), ("q1", ("alder", "cairn"), "Divergent"),
    ]  # fmt: skip
    assert cases[0].a.answer == "alder on q2."
    assert cases[0].a.quotes == ("alder quotes q2",)
    assert cases[0].about == "time of q2"
    assert cases[0].id == case_id(audit.questions[1], "brook", "alder")


def test_words_that_no_source_has_are_not_shown_as_its_quote(tmp_path: Path) -> None:
    """A worklist said "quoted from the source" of a time stamp that a small model had given as its quote."""
    audit = an_audit(tmp_path / "a", {"q1": "dcc"})
    steps = (("quoted", "Six weeks."), ("quote not found", "2020-07-28 14:22"), ("quote changed", "No six weeks."))
    trace = tuple(TraceStep(stage="citations", what=what, text=text) for what, text in steps)
    words = words_of(replace(an_answer("q1", "alder", "Six weeks."), trace=trace), "alder")
    assert words.quotes == ("Six weeks.",)
    assert words.not_found == ("2020-07-28 14:22", "No six weeks.")
    view = words_view(words, audit.names["alder"])
    assert [(each.source, each.text) for each in view.cited][:2] == [
        ("quoted from the source", "Six weeks."),
        ("not found in the source, though the model gave it as a quote", "2020-07-28 14:22"),
    ]
    (case,) = read_cases(audit)
    unfounded = replace(case, a=words)
    write_worklist(tmp_path / "cases.csv", worklist(audit, [unfounded], {}), audit.names)
    with (tmp_path / "cases.csv").open(encoding="utf-8-sig", newline="") as stream:
        (row,) = csv.DictReader(stream)
    assert row["quotes a"] == "Six weeks."
    assert "2020-07-28" in row["quotes not found a"]
    assert (row["state"], row["status"]) == ("new", "")
    assert what_changed(case, replace(case, a=replace(case.a, quotes=(), not_found=case.a.quotes)))


def test_a_case_that_the_model_misread_is_dismissed(tmp_path: Path) -> None:
    audit = an_audit(tmp_path / "a", {"q1": "dcc"})
    (case,) = read_cases(audit)
    (row,) = worklist(audit, [case], {case.id: decided(case, "dismissed")})
    assert row.state == "closed"


def test_the_next_audit_shows_closed_reopened_new_and_gone(tmp_path: Path) -> None:
    first = an_audit(tmp_path / "a", {"q1": "ddd", "q2": "dxc"})
    by_name = {(case.question, *case.sources): case for case in read_cases(first)}
    made: tuple[tuple[DisagreementCase, CaseStatus], ...] = (
        (by_name["q1", "alder", "brook"], "accepted"),
        (by_name["q1", "alder", "cairn"], "escalated"),
        (by_name["q2", "alder", "brook"], "follow"),
        (by_name["q2", "alder", "cairn"], "accepted"),
    )
    decisions = {case.id: decided(case, status) for case, status in made}
    second = an_audit(tmp_path / "b", {"q1": "ddd", "q2": "cxd"}, q2_cairn="Cairn now says otherwise.")
    rows = worklist(second, read_cases(second), decisions)
    states = {(row.case.question, *row.case.sources): row.state for row in rows}
    assert states == {
        ("q1", "alder", "brook"): "closed",
        ("q1", "alder", "cairn"): "escalated",
        ("q1", "brook", "cairn"): "new",
        ("q2", "alder", "cairn"): "reopened",
        ("q2", "brook", "cairn"): "new",
        ("q2", "alder", "brook"): "gone",
    }
    assert [row.changes for row in rows if row.state == "reopened"] == [("the answer of cairn changed",)]
    assert [row.state for row in rows][-2:] == ["closed", "gone"]
    assert count_states(rows) == {"reopened": 1, "escalated": 1, "new": 2, "open": 0, "closed": 1, "gone": 1}


def test_a_case_is_open_again_when_its_words_change_and_not_for_typography(tmp_path: Path) -> None:
    case = read_cases(an_audit(tmp_path / "a", {"q1": "dcc"}))[0]
    assert what_changed(case, replace(case, a=replace(case.a, answer="alder  on q1"))) == ()
    quoted = replace(case, b=replace(case.b, quotes=("brook quotes another",)))
    assert what_changed(case, quoted) == ("the quote of brook changed",)
    assert what_changed(case, replace(case, label="Contradictory")) == (
        "the label changed from Divergent to Contradictory",
    )


def test_a_question_with_another_text_is_another_case(tmp_path: Path) -> None:
    first = an_audit(tmp_path / "a", {"q1": "dcc"})
    case = read_cases(first)[0]
    asked = [Question(id="q1", text="Something else?")]
    second = Audit.open(write_audit(tmp_path / "b", invented_pairs({"q1": "dcc"}), questions=asked))
    rows = worklist(second, read_cases(second), {case.id: decided(case, "accepted")})
    assert [row.state for row in rows] == ["new"]


def test_the_reference_comes_first_and_its_opponents_are_ranked(tmp_path: Path) -> None:
    audit = an_audit(tmp_path / "a", {"q1": "dxx", "q2": "cdx", "q3": "xcc"})
    cases = read_cases(audit)
    rows = worklist(audit, cases, {}, reference={"alder"})
    assert [row.against_reference for row in rows] == [True, True, True, True, False, False][: len(rows)]
    assert [(each.source, each.strongest, each.cases) for each in opponents(cases, {"alder"}, audit)] == [
        ("brook", 1, 2), ("cairn", 1, 2),
    ]  # fmt: skip
    assert find_reference(audit, "ALDER") == {"alder"}
    with pytest.raises(UsageError, match="'Elm' is not a source"):
        find_reference(audit, "Elm")


def test_decisions_are_written_and_read_back(tmp_path: Path) -> None:
    case = read_cases(an_audit(tmp_path / "a", {"q1": "dcc"}))[0]
    first = decided(case, "open", owner="Dr. B")
    second = replace(first, version=2, status="follow", follow="brook")
    (tmp_path / "decisions.json").write_bytes(decisions_json([second, first]))
    assert read_decisions(tmp_path / "decisions.json") == [first, second]
    assert newest([second, first]) == {case.id: second}
    assert second.status_words() == "follow brook"
    (tmp_path / "other.json").write_text('{"format": "x/1", "decisions": []}')
    (tmp_path / "broken.json").write_text("[]")
    for name, words in (("other", "format 'x/1'"), ("broken", "not a decisions file")):
        with pytest.raises(InputError, match=words):
            read_decisions(tmp_path / f"{name}.json")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"at": 1e300}, "`at` is 1e+300"),
        ({"at": -1e15}, "in the future or before 1970"),
        ({"at": time() + 7e4 * 86_400}, "in the future"),
        ({"status": "follow", "follow": "elm"}, "`follow` is 'elm'; it must be 'alder' or 'brook'"),
        ({"status": "follow"}, "`follow` is ''; it must be"),
        ({"follow": "brook"}, "empty for the status open"),
        ({"name": " "}, "nobody has signed it"),
        ({"version": 1}, "another decision has this version"),
        ({"version": 0}, "versions count from 1"),
        ({"case": "0" * 16}, "`seen` is not this case"),
        ({"seen": {"text": "Another question?"}}, "`seen` is not this case"),
    ],
)
def test_decisions_that_nobody_can_have_signed_are_refused(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    case = read_cases(an_audit(tmp_path / "a", {"q1": "dcc"}))[0]
    first = decided(case, "open")
    made = json.loads(decisions_json([first, replace(first, version=2)]))
    if seen := change.get("seen"):
        change = {"seen": made["decisions"][1]["seen"] | seen}
    made["decisions"][1] |= change
    (tmp_path / "d.json").write_text(json.dumps(made), encoding="utf-8")
    with pytest.raises(InputError, match="1 decision can't be used:\ndecision 2 ") as caught:
        read_decisions(tmp_path / "d.json")
    assert words in str(caught.value)


def test_a_worklist_for_a_spreadsheet_runs_nothing(tmp_path: Path) -> None:
    audit = an_audit(tmp_path / "a", {"q1": "dcc"}, q1_alder="=1+1")
    case = read_cases(audit)[0]
    decision = decided(case, "accepted", note="@SUM(A1)", owner="+Dr. A")
    write_worklist(tmp_path / "cases.csv", worklist(audit, [case], {case.id: decision}), audit.names)
    with (tmp_path / "cases.csv").open(encoding="utf-8", newline="") as stream:
        (row,) = csv.DictReader(stream)
    assert tuple(row) == COLUMNS
    assert [row["answer a"], row["note"], row["owner"]] == ["'=1+1", "'@SUM(A1)", "'+Dr. A"]
    assert (row["state"], row["signed by"], row["signed at"]) == ("closed", "Dr. A", "1970-01-01 00:00 UTC")
