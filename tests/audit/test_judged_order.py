"""A pair whose second source the judge saw first: what it says in short must be read against the right sources."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from hoofbeat.audit import Audit, AuditSource
from hoofbeat.audit.disagreement_cases import find_reference, read_cases, what_changed
from hoofbeat.audit.synthesis.audit_export import PairWords
from hoofbeat.cli import cli
from hoofbeat.errors import UsageError
from hoofbeat.records import Answer, Comparison, Question
from hoofbeat.reports.pair_index import index_audit
from hoofbeat.reports.report_build import assemble
from hoofbeat.reports.sections.audits.audit_facts import read_facts
from hoofbeat.reports.text_formats import to_markdown
from tests.reports.audits import write_audit

TOPIC = "when to call (38.5 vs 38.0 °C)"
SAID = "(A is oak, B is elm.) Source A says 38.5 °C, source B 38.0 °C. A reader of B would call and a reader of A not."


@pytest.fixture
def audit(tmp_path: Path) -> Audit:
    """Two invented handbooks, listed as elm and oak; the judge saw oak first."""
    question = Question(id="q", text="When to call about a fever?")
    names = {"elm": "Elm Clinic", "oak": "Oak Clinic"}
    sources = [
        AuditSource(id=id, title="Handbook (invented)", facets={"institution": name}) for id, name in names.items()
    ]
    answers = [
        Answer(question="q", model="m", condition="source", source=source, text=f"From {value} °C.", absent=False)
        for source, value in (("elm", "38.0"), ("oak", "38.5"))
    ]
    pair = Comparison(
        question="q", a="elm", b="oak", label="Contradictory", basis="judged", topic=TOPIC, significance="high",
        reasoning=SAID,
    )  # fmt: skip
    return Audit(write_audit(tmp_path / "audit", [question], sources, answers, [pair]))


def test_cases_and_lists_name_the_sources_in_the_order_of_the_judge(audit: Audit) -> None:
    (case,) = read_cases(audit)
    assert case.sources == ("oak", "elm")
    assert (case.a.answer, case.b.answer) == ("From 38.5 °C.", "From 38.0 °C.")
    row = index_audit(read_facts(audit)).pair_row(0)
    assert (row.a, row.b) == (2, 1)


@pytest.mark.parametrize("command", [("audit", "cases"), ("show",)])
def test_the_terminal_names_them_in_the_order_of_the_judge(audit: Audit, command: tuple[str, ...]) -> None:
    item = ["q"] if command == ("show",) else []
    shown = CliRunner().invoke(cli, [*command, str(audit.artefact.path), *item]).output
    told = " ".join(shown.split())
    assert "Oak Clinic and" in told, "a narrow table breaks before the second name"
    assert "Elm Clinic and" not in told
    assert TOPIC.split("(")[1] in told


def test_the_report_names_them_in_the_order_of_the_judge_and_without_letters(audit: Audit) -> None:
    page = to_markdown(assemble([audit.artefact], title=""))
    assert "Oak Clinic and Elm Clinic are contradictory" in page
    assert f"| Oak Clinic and Elm Clinic | Contradictory | high | {TOPIC} |" in page
    assert "A reader of Elm Clinic would call and a reader of Oak Clinic not." in page
    assert not re.search(r"reader of [AB]\b", page)


def test_a_table_in_the_other_order_says_which_order_the_words_have(audit: Audit) -> None:
    told = PairWords(audit).topic(TOPIC, SAID, "elm", "oak")
    assert told == f"{TOPIC} [in this order: Oak Clinic, Elm Clinic]"


def test_a_case_that_was_decided_in_the_other_order_did_not_change(audit: Audit) -> None:
    (now,) = read_cases(audit)
    before = replace(now, a=now.b, b=now.a)
    assert what_changed(before, now) == ()
    other = replace(before, a=replace(before.a, answer="From 37.0 °C."))
    assert what_changed(other, now) == ("the answer of elm changed",)


def test_the_reference_can_be_named_as_pages_name_it(audit: Audit) -> None:
    assert find_reference(audit, "oak clinic") == {"oak"}
    with pytest.raises(UsageError, match="not a source") as found:
        find_reference(audit, "ash")
    assert "Elm Clinic" in str(found.value.fix)
