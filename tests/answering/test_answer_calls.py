"""Plans into answers through a real endpoint: order, failures, reasoning, samples, and the ledger behind them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from hoofbeat.answering import PlannedAnswer, SamplingSettings, answer_all, plan_answers, request_for
from hoofbeat.records import Answer, Question
from hoofbeat.store.call_ledger import Ledger
from tests.answering.support import Says, ScriptedServer, passages_under, wire_text
from tests.models.fault_server import FaultServer
from tests.models.support import a_model, ledger_in

TWO = [Question(id="q1", text="What now?", context="A man of 40."), Question(id="q2", text="What then?")]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with ledger_in(tmp_path) as opened:
        yield opened


def closed(*texts: str, samples: int = 1) -> list[PlannedAnswer]:
    questions = [Question(id=f"q{number}", text=text) for number, text in enumerate(texts)]
    return plan_answers(questions, "closed", {}, window=None, samples=samples)


def kind(answer: Answer) -> str:
    return answer.failure.kind if answer.failure else ""


def test_a_plan_has_every_question_so_many_times() -> None:
    shown = {"q1": passages_under("Case 1", "Case 2")}
    planned = plan_answers(TWO, "bm25 @2", shown, window=None, samples=3)
    assert [(item.question.id, item.sample) for item in planned] == [(q, s) for q in ("q1", "q2") for s in range(3)]
    assert {item.condition for item in planned} == {"bm25 @2"}
    assert all(item.passages == (shown["q1"] if item.question.id == "q1" else ()) for item in planned)


def test_a_plan_records_what_the_window_leaves_out() -> None:
    long = [msgspec.structs.replace(item, text="word " * 900) for item in passages_under("Case 1", "Case 2")]
    (item,) = plan_answers(TWO[:1], "bm25 @2", {"q1": long}, window=2300)
    assert (item.passages, item.dropped) == ((long[0],), ("d#1",))


def test_closed_book_shows_the_question_only() -> None:
    passages = passages_under("Case 1")
    text = request_for(PlannedAnswer(question=TWO[0], condition="closed", passages=passages)).messages[-1].content
    assert "A man of 40.\n\nWhat now?" in text
    assert passages[0].text not in text
    shown = request_for(PlannedAnswer(question=TWO[0], condition="oracle", passages=passages)).messages[-1].content
    assert passages[0].text in shown
    assert "A man of 40.\n\nWhat now?" in shown


def test_answers_come_in_the_order_of_the_plan(ledger: Ledger) -> None:
    planned = closed(*(f"Question {number}?" for number in range(30)), samples=2)
    with FaultServer(delay=0.01) as server:
        model = a_model(server.spec(), ledger)
        answers = answer_all(model, planned)
    assert [(a.question, a.sample) for a in answers] == [(item.question.id, item.sample) for item in planned]
    assert {(a.model, a.condition, kind(a)) for a in answers} == {(model.spec, "closed", "")}
    assert len(server.seen) == 60


def test_an_answer_names_the_ledger_entries_behind_it(ledger: Ledger) -> None:
    with FaultServer() as server:
        model = a_model(server.spec(), ledger)
        answers = answer_all(model, closed("One?", "Two?"))
        assert answer_all(model, closed("One?", "Two?")) == answers
    assert len(server.seen) == 2
    entries = {entry.key: entry for entry in ledger.entries()}
    assert {call for answer in answers for call in answer.calls} == set(entries)
    for answer in answers:
        (call,) = answer.calls
        assert answer.text in bytes(entries[call].reply).decode()


def test_failures_stay_as_rows_with_their_kind(ledger: Ledger) -> None:
    faults = ["400", "ok", "overflow-openai", "refusal", "words", "501"]
    with FaultServer() as server:
        answers = answer_all(a_model(server.spec(), ledger), closed(*(f"Why? fault={fault}" for fault in faults)))
    assert [answer.question for answer in answers] == [f"q{number}" for number in range(6)]
    assert [kind(answer) for answer in answers] == [
        "bad-request", "", "context-overflow", "refusal", "refusal", "server-error",
    ]  # fmt: skip
    assert all(bool(answer.text) == (not answer.failure) for answer in answers)


def test_what_was_shown_and_left_out_stays_with_an_answer_whatever_becomes_of_it(ledger: Ledger) -> None:
    passages = passages_under("Case 1")
    planned = [
        PlannedAnswer(question=Question(id=text, text=text), condition="oracle", passages=passages, dropped=("d#9",))
        for text in ("fault=ok", "fault=400")
    ]
    with FaultServer() as server:
        answers = answer_all(a_model(server.spec(), ledger), planned)
    assert [(answer.evidence, answer.dropped) for answer in answers] == [(passages, ("d#9",))] * 2


def test_reasoning_is_kept_apart_from_the_answer(ledger: Ledger) -> None:
    with ScriptedServer(Says("", "Why?", "<think>Could be gout.</think>\n\nAspirate the joint. ")) as server:
        (answer,) = answer_all(a_model(server.spec(), ledger), closed("Why?"))
    assert (answer.text, answer.reasoning) == ("Aspirate the joint.", "Could be gout.")


@pytest.mark.parametrize(
    ("said", "finish", "expected"),
    [
        ("<think>Still thinking about", "length", "truncated"),
        ("<think>Done.</think> \n", "stop", "unreadable"),
        ("", "stop", "unreadable"),
    ],
)
def test_no_text_is_no_answer(ledger: Ledger, said: str, finish: str, expected: str) -> None:
    with ScriptedServer(Says("", "Why?", said, finish)) as server:
        (answer,) = answer_all(a_model(server.spec(), ledger), closed("Why?"))
    assert (kind(answer), answer.text, answer.reasoning) == (expected, "", "")
    assert ledger.known(answer.calls) == set(answer.calls) != set()


def test_samples_are_drawn_with_their_own_seeds_and_keys(ledger: Ledger) -> None:
    with FaultServer() as server:
        model = a_model(server.spec(), ledger)
        answers = answer_all(model, closed("Why?", samples=3), sampling=SamplingSettings(temperature=0.7, seed=40))
    assert sorted(seen.body["seed"] for seen in server.seen) == [40, 41, 42]
    assert {seen.body["temperature"] for seen in server.seen} == {0.7}
    assert len({answer.calls for answer in answers}) == len({answer.text for answer in answers}) == 3


def test_without_temperature_no_seed_is_sent_and_samples_still_have_their_own_keys(ledger: Ledger) -> None:
    with FaultServer() as server:
        model = a_model(server.spec(), ledger)
        answers = answer_all(model, closed("Why?", samples=2), sampling=SamplingSettings(seed=7))
    assert all("seed" not in seen.body and seen.body["temperature"] == 0 for seen in server.seen)
    assert len({answer.calls for answer in answers}) == 2


def test_passages_reach_the_wire_in_order_and_with_their_numbers(ledger: Ledger) -> None:
    planned = PlannedAnswer(question=TWO[0], condition="bm25 @2", passages=passages_under("Gout", "Sepsis"))
    with FaultServer() as server:
        answer_all(a_model(server.spec(), ledger), [planned])
    text = wire_text(server.seen[0].body)
    order = ['name="passage 1: Gout"', "Invented text 0.", 'name="passage 2: Sepsis"', "Invented text 1.", "What now?"]
    places = [text.index(words) for words in order]
    assert places == sorted(places)
