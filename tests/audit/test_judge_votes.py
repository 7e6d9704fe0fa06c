"""Several judges: the majority decides, every vote is kept, and a pair without a majority has no label."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars
import pytest

from hoofbeat.audit import Audit, AuditPlan, audit_sources
from hoofbeat.audit.answers_file import SourceAnswer
from hoofbeat.audit.audit_estimate import estimate_audit
from hoofbeat.audit.findings.panel_agreement import panel_agreement
from hoofbeat.audit.judge_votes import majority_verdict
from hoofbeat.audit.pair_plan import PairVerdict
from hoofbeat.audit.pair_table import read_comparisons
from hoofbeat.prompts import load_pack
from hoofbeat.records import Failure, Question
from hoofbeat.store.call_ledger import Ledger
from tests.answering.support import Says, ScriptedServer
from tests.models.support import a_model, ledger_in

PACK = load_pack("transplant")
JUDGES = ("x", "y", "z")
LABELS = [label.name for label in PACK.labels]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with ledger_in(tmp_path) as opened:
        yield opened


def said(label: str, level: str | None = None, *, topic: str | None = None) -> PairVerdict:
    if not label:
        return PairVerdict(failure=Failure(kind="timeout", message="too late"))
    return PairVerdict(
        label=label, reasoning=f"So says {label}.", significance=level, topic=topic, calls=(label,), tokens_in=5
    )


def test_the_majority_decides_and_every_vote_is_kept() -> None:
    votes = [said("Consistent"), said("Divergent", "low"), said("Divergent", "high", topic="weeks")]
    found = majority_verdict(JUDGES, votes, PACK)
    assert (found.label, found.votes) == ("Divergent", ("Consistent", "Divergent", "Divergent"))
    assert (found.topic, found.significance) == ("weeks", "high")
    assert found.reasoning == "2 of 3 judges (x: Consistent, y: Divergent, z: Divergent). So says Divergent."
    assert (found.calls, found.tokens_in) == (("Consistent", "Divergent", "Divergent"), 15)


@pytest.mark.parametrize(
    "labels", [("Consistent", "Divergent"), ("Absent", "Consistent", "Divergent"), ("Divergent", "", "")]
)
def test_without_a_majority_there_is_no_label_and_the_votes_are_told(labels: tuple[str, ...]) -> None:
    found = majority_verdict(JUDGES[: len(labels)], [said(label) for label in labels], PACK)
    assert (found.label, found.votes) == ("", labels)
    assert found.failure is not None
    assert found.failure.kind == "no-majority"
    assert f"x: {labels[0]}" in found.failure.message


@pytest.mark.parametrize(
    ("labels", "label"),
    [
        (("Consistent", "Complementary", "Divergent"), "Complementary"),
        (("Consistent", "Contradictory", "Divergent"), "Divergent"),
        (("Contradictory", "Insufficient", "Divergent"), "Insufficient"),
    ],
)
def test_a_majority_for_a_side_takes_the_label_next_to_the_border(labels: tuple[str, ...], label: str) -> None:
    found = majority_verdict(JUDGES, [said(each) for each in labels], load_pack("clinicians"))
    assert (found.label, found.votes) == (label, labels)
    assert "but with different labels (x: " in found.reasoning
    assert found.reasoning.endswith(f"So says {label}.")


def test_judges_that_all_fail_leave_their_failure() -> None:
    found = majority_verdict(JUDGES, [said("")] * 3, PACK)
    assert (found.label, found.failure) == ("", Failure(kind="timeout", message="too late"))


def small_plan() -> AuditPlan:
    given = [
        SourceAnswer(question=question, source=source, text=f"{question}: {source} says so.", absent=False)
        for question in ("q1", "q2")
        for source in ("a", "b", "c")
    ]
    questions = [Question(id="q1", text="May I drive?"), Question(id="q2", text="May I swim?")]
    return AuditPlan(questions=questions, pack=PACK, settings={}, given=given, given_sources=["a", "b", "c"])


def answer(label: str) -> Says:
    value = {"reasoning": "Because.", "classification": label, "topic": "weeks", "significance": "high"}
    return Says("classification", "", value)


def test_an_audit_with_three_judges(tmp_path: Path, ledger: Ledger) -> None:
    with (
        ScriptedServer(answer("Divergent")) as one,
        ScriptedServer(answer("Divergent")) as two,
        ScriptedServer(answer("Consistent")) as three,
    ):
        judges = [a_model(server.spec(), ledger) for server in (one, two, three)]
        plan = small_plan()
        before = estimate_audit(plan, judges[0], judges)
        audit = Audit(audit_sources(plan, judges[0], judges, tmp_path / "audit", inputs=[]))
        again = estimate_audit(plan, judges[0], judges)
    manifest = audit.artefact.manifest
    assert [role for role in manifest.models if role.startswith("judge: ")] == [
        f"judge: {each.spec}" for each in judges
    ]
    judged = [each for each in audit.comparisons if each.basis == "judged"]
    assert judged
    assert {(each.label, each.votes, each.judge) for each in judged} == {
        ("Divergent", ("Divergent", "Divergent", "Consistent"), "majority of 3")
    }
    assert len(judged) == len(three.calls("classification"))
    assert before.calls > again.calls == 0
    panel = panel_agreement(audit.frame(), audit.judges, LABELS)
    assert panel is not None
    assert (panel.pairs, panel.unanimous, panel.no_majority, panel.incomplete) == (len(judged), 0, 0, 0)
    assert [two.agree for two in panel.every_two.pairs].count(len(judged)) == 1
    assert sum(two.agree for two in panel.every_two.pairs) == len(judged)


def test_one_judge_is_no_panel_and_old_tables_have_no_votes(tmp_path: Path, ledger: Ledger) -> None:
    with ScriptedServer(answer("Divergent")) as server:
        model = a_model(server.spec(), ledger)
        audit = Audit(audit_sources(small_plan(), model, model, tmp_path / "audit", inputs=[]))
    assert panel_agreement(audit.frame(), audit.judges, LABELS) is None
    assert {each.votes for each in audit.comparisons} == {()}
    old = tmp_path / "old.parquet"
    audit.frame().collect().drop("votes").write_parquet(old)
    assert "votes" not in polars.read_parquet_schema(old)
    assert list(read_comparisons(old)) == audit.comparisons
