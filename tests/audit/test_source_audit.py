"""The audit as a whole: what it would cost, what it then asks, and the folder it leaves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from hoofbeat.audit import Audit, AuditPlan, audit_sources
from hoofbeat.audit.answers_by_source import evidence_by_search
from hoofbeat.audit.audit_estimate import estimate_audit
from hoofbeat.errors import UsageError
from hoofbeat.prompts import load_pack
from hoofbeat.records import Document, Question
from hoofbeat.reports.report_build import assemble
from hoofbeat.store import InputRef
from hoofbeat.store.call_ledger import Ledger
from tests.answering.support import Says, ScriptedServer, a_document, search_in
from tests.models.fault_server import FaultServer
from tests.models.support import a_model, ledger_in

SOURCES = [
    a_document(f"{name}-{organ}", ("Bathing", f"At {name} no bath for {weeks} weeks."), ("Diet", f"{name} eats well."),
               facets={"organ": organ})
    for weeks, (name, organ) in enumerate([("alder", "kidney"), ("brook", "kidney"), ("cairn", "liver")], start=3)
]  # fmt: skip
QUESTIONS = [
    Question(id="bath", text="May I have a bath?"),
    Question(id="diet", text="What may I eat?", facets={"group": "general"}),
    Question(id="stent", text="When does the stent come out?", facets={"group": "kidney"}),
]
ADDRESSED = [
    *(
        Says(
            "passage",
            f"At {name} no bath",
            {"passage": "Bathing", "quote": "", "answer": f"{name} says wait.", "statement": "", "strength": ""},
        )
        for name in ("alder", "brook", "cairn")
    ),
    Says("addressed", "", {"addressed": "yes"}),
]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with ledger_in(tmp_path) as opened:
        yield opened


def a_plan(
    documents: list[Document] = SOURCES, questions: list[Question] = QUESTIONS, *, max_tokens: int | None = 100
) -> AuditPlan:
    return AuditPlan(
        questions=questions,
        documents=documents,
        pack=load_pack("transplant"),
        find=evidence_by_search(search_in(SOURCES), documents, 80_000),
        max_tokens=max_tokens,
        settings={"line": "bm25"},
    )


def test_nothing_costs_more_than_was_estimated(ledger: Ledger, tmp_path: Path) -> None:
    with FaultServer() as server:
        model = a_model(server.spec(), ledger)
        estimate = estimate_audit(a_plan(), model, model)
        assert server.seen == []
        audit_sources(a_plan(), model, model, tmp_path / "audit", inputs=[])
    again = [seen for seen in server.seen if len(seen.body["messages"]) > 2]
    assert again, "an invented answer is objected to"
    assert 8 <= len(server.seen) - len(again) <= estimate.calls == 8 + 8 + 7
    assert len(again) <= estimate.again_most == 23 + 2 * 8
    once = [seen for seen in server.seen if seen not in again]
    assert sum(seen.body["max_tokens"] for seen in once) <= estimate.max_tokens_out


def test_how_often_a_model_is_asked_again_is_taken_from_its_ledger(ledger: Ledger, tmp_path: Path) -> None:
    many = [Question(id=f"q{number}", text=f"May I bathe in week {number}?") for number in range(12)]
    more = [*many, *(Question(id=f"r{number}", text=f"Is fruit safe in week {number}?") for number in range(5))]
    with FaultServer() as server:
        model = a_model(server.spec(), ledger)
        before = estimate_audit(a_plan(questions=many), model, model)
        assert before.again_likely == round(len(SOURCES) * 12 * 8 / 150)
        assert "8 of 150 answers were repeated in our trials" in before.again_words
        audit_sources(a_plan(questions=many), model, model, tmp_path / "audit", inputs=[])
        after = estimate_audit(a_plan(questions=more), model, model)
        none = estimate_audit(a_plan(questions=many), model, model)
    seen = ledger.count_by_prompt(model.identity)
    share = seen["answer-source-again"] / seen["answer-source"]
    assert after.again_likely == round(len(SOURCES) * 5 * share)
    assert f"repeat {seen['answer-source-again']} of {seen['answer-source']} answers in the ledger" in (
        after.again_words
    )
    assert (none.calls, none.again_most, none.again_words) == (0, 0, "")


def test_the_estimate_is_reached_where_every_source_answers(ledger: Ledger, tmp_path: Path) -> None:
    with ScriptedServer(*ADDRESSED) as server:
        model = a_model(server.spec(), ledger)
        estimate = estimate_audit(a_plan(), model, model)
        audit_sources(a_plan(), model, model, tmp_path / "audit", inputs=[])
    asked = [len(server.calls(field)) for field in ("passage", "addressed", "classification")]
    assert asked == [8, 8, 7]
    assert (estimate.calls, estimate.cached) == (sum(asked), 0)
    assert estimate.max_tokens_out == sum(seen.body["max_tokens"] for seen in server.seen)


def test_what_the_ledger_has_is_not_estimated_again(ledger: Ledger, tmp_path: Path) -> None:
    with FaultServer() as server:
        model = a_model(server.spec(), ledger)
        audit_sources(a_plan(), model, model, tmp_path / "audit", inputs=[])
        after = estimate_audit(a_plan(), model, model)
        asked = len(server.seen)
        audit_sources(a_plan(), model, model, tmp_path / "again", inputs=[])
    assert (after.calls, after.cached) == (0, asked)
    assert len(server.seen) == asked


def test_one_source_costs_no_comparison(ledger: Ledger) -> None:
    with FaultServer() as server:
        model = a_model(server.spec(), ledger)
        assert estimate_audit(a_plan(SOURCES[:1]), model, model).calls == 3 + 3
        assert estimate_audit(a_plan([], []), model, model).calls == 0


def test_an_audit_opens_as_it_was_written(ledger: Ledger, tmp_path: Path) -> None:
    plan = a_plan()
    with ScriptedServer(*ADDRESSED) as server:
        model, judge = (a_model(server.spec(name), ledger) for name in ("reader", "judge"))
        inputs = [InputRef(name="handbooks", sha256="0" * 64, kind="corpus")]
        artefact = audit_sources(plan, model, judge, tmp_path / "audit", inputs=inputs, command=["hoofbeat", "audit"])
    assert artefact.verify() == []
    audit = Audit.open(tmp_path / "audit")
    assert audit.questions == QUESTIONS
    assert [(item.id, item.facets) for item in audit.sources] == [(item.id, item.facets) for item in SOURCES]
    assert [(answer.question, answer.source) for answer in audit.answers] == [
        *(("bath", item.id) for item in SOURCES),
        *(("diet", item.id) for item in SOURCES),
        *(("stent", item.id) for item in SOURCES[:2]),
    ]
    assert len(audit.comparisons) == 3 + 3 + 1
    assert all(item.a < item.b for item in audit.comparisons)
    assert {answer.model for answer in audit.answers} == {model.spec}
    assert {item.judge for item in audit.comparisons} == {judge.spec}
    manifest = audit.artefact.manifest
    assert manifest.models == {"answer": model.identity, "judge": judge.identity}
    assert manifest.settings == {
        "line": "bm25", "pack": f"transplant@{plan.pack.fingerprint}", "mode": "full",
        "plan": plan.fingerprint(model, judge), "windows": {"answer": {"tokens": 8192, "source": "assumed"}},
    }  # fmt: skip
    assert audit.pack == plan.pack
    assert set(manifest.prompts) == {"answer-source", "answer-source-again", "absence", "compare"}
    assert (manifest.inputs, manifest.command) == (inputs, ["hoofbeat", "audit"])
    assert (manifest.counts.kept, manifest.counts.failed) == (7, 0)
    assert manifest.cost.calls == 8 + 8 + 7
    behind = [*(answer.calls for answer in audit.answers), *(item.calls for item in audit.comparisons)]
    calls = {call for keys in behind for call in keys}
    assert len(calls) == 8 + 8 + 7
    assert ledger.known(sorted(calls)) == calls


def test_one_model_in_both_roles_is_paid_once(ledger: Ledger, tmp_path: Path) -> None:
    with ScriptedServer(*ADDRESSED) as server:
        model = a_model(server.spec(), ledger)
        artefact = audit_sources(a_plan(), model, model, tmp_path / "audit", inputs=[])
    assert artefact.manifest.cost.calls == len(server.seen)


def test_failures_are_counted_by_pair(ledger: Ledger, tmp_path: Path) -> None:
    questions = [QUESTIONS[0], Question(id="bad", text="Why? fault=400")]
    with ScriptedServer(*ADDRESSED) as server:
        model = a_model(server.spec(), ledger)
        artefact = audit_sources(a_plan(questions=questions), model, model, tmp_path / "audit", inputs=[])
    counts = artefact.manifest.counts
    assert (counts.kept, counts.failed, counts.failures) == (3, 3, {"bad-request": 3})


def test_the_same_audit_gives_the_same_bytes(ledger: Ledger, tmp_path: Path) -> None:
    with FaultServer(delay=0.01) as server:
        for name in ("one", "two"):
            model = a_model(server.spec(), ledger)
            audit_sources(a_plan(), model, model, tmp_path / name, inputs=[])
    names = ["answers.jsonl", "comparisons.parquet", "manifest.json", "pack.json", "questions.jsonl", "sources.jsonl"]
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == names
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_the_limit_of_an_answer_counts_against_the_window(ledger: Ledger) -> None:
    with FaultServer() as server:
        model = a_model(server.spec(), ledger, context=550)
        shown = {
            limit: [
                len(item.passages) for item in a_plan(questions=QUESTIONS[:1], max_tokens=limit).each_planned(model)
            ]
            for limit in (100, None)
        }
    assert shown == {100: [1, 1, 1], None: [0, 0, 0]}


@pytest.mark.parametrize(
    ("documents", "questions", "named"),
    [([*SOURCES, SOURCES[1]], QUESTIONS, "source brook-kidney"), (SOURCES, QUESTIONS[:2] * 2, "question bath")],
)
def test_a_source_or_question_given_twice_is_refused(
    documents: list[Document], questions: list[Question], named: str
) -> None:
    with pytest.raises(UsageError, match=f"the {named} appears more than once"):
        a_plan(documents, questions)


def test_a_question_without_a_text_is_refused() -> None:
    with pytest.raises(UsageError, match="the question blank has no text"):
        a_plan(questions=[*QUESTIONS, Question(id="blank", text=" \n")])


def test_questions_that_fewer_than_two_sources_are_asked_are_counted(ledger: Ledger, tmp_path: Path) -> None:
    questions = [
        *QUESTIONS,
        *(Question(id=organ, text="Why?", facets={"group": organ}) for organ in ("heart", "liver")),
    ]
    plan = a_plan(questions=questions)
    assert [question.id for question in plan.uncompared] == ["heart", "liver"]
    assert a_plan().uncompared == []
    with FaultServer() as server:
        model = a_model(server.spec(), ledger)
        found = audit_sources(plan, model, model, tmp_path / "audit", inputs=[]).manifest
        assert found.metrics["uncompared"] == 2
        assert "uncompared" not in audit_sources(a_plan(), model, model, tmp_path / "b", inputs=[]).manifest.metrics
    assert found.title == "3 sources, 5 questions"


def test_what_an_assumed_window_keeps_from_being_shown_is_said(ledger: Ledger, tmp_path: Path) -> None:
    long = a_document("dale-kidney", ("Bathing", "No bath at all. " * 2500), facets={"organ": "kidney"})
    documents = [SOURCES[0], long]
    with FaultServer() as server:
        model = a_model(server.spec(), ledger)
        plan = msgspec.structs.replace(
            a_plan(documents, QUESTIONS[:1]),
            find=evidence_by_search(search_in(documents), documents, 80_000),
        )
        made = audit_sources(plan, model, model, tmp_path / "audit", inputs=[])
        roomy = a_model(server.spec("other"), ledger, context=32_000)
        whole = audit_sources(plan, roomy, roomy, tmp_path / "whole", inputs=[])
    manifest = made.manifest
    assert manifest.settings["windows"] == {
        "answer": {"tokens": 8192, "source": "assumed"},
        "judge": {"tokens": 8192, "source": "assumed"},
    }
    assert manifest.metrics["routes"] == {"retrieved": 1, "whole": 1}
    assert manifest.metrics["limited by window"] == {"searched": 1}
    steps = {answer.source: answer.trace for answer in Audit(made).answers}
    assert [step.stage for step in steps["alder-kidney"]][:2] != ["line", "window"]
    told = next(step for step in steps["dale-kidney"] if step.stage == "window")
    assert "8,192 tokens, assumed" in told.text
    assert whole.manifest.metrics["routes"] == {"whole": 2}
    assert "limited by window" not in whole.manifest.metrics
    report = assemble([made], title="Audit")
    assert any("8,192 tokens, assumed" in note and "1 answer from a source" in note for note in report.notes)
