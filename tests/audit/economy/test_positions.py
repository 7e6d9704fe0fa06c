"""Answers are sorted in rounds, masked, and what a model forgets or names twice is kept apart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hoofbeat.audit.economy.positions import (
    ANSWERS_IN_A_CALL,
    Position,
    positions_request,
    sort_answers,
    sorting_calls,
)
from hoofbeat.prompts import load_pack, pack_names
from hoofbeat.records import Question
from hoofbeat.store.call_ledger import Ledger
from tests.answering.support import Says, ScriptedServer, check_fenced, wire_text
from tests.audit.economy.support import PlantedServer, said
from tests.models.support import a_model, ledger_in

PACK = load_pack("clinicians")
QUESTION = Question(id="q", text="From what age?")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with ledger_in(tmp_path) as opened:
        yield opened


@pytest.mark.parametrize("name", pack_names())
def test_every_pack_says_what_agrees_and_what_does_not(name: str) -> None:
    pack = load_pack(name)
    text = positions_request(QUESTION, ["From 50."], ["from 45"], pack).messages[0].content
    for label in pack.judged:
        assert f"- {label.name}: " in text
    agree, differ = text.split("They hold different positions", 1)
    for label in pack.judged:
        assert f"- {label.name}: " in (differ if label.diverges else agree)


def test_many_answers_are_sorted_in_rounds_into_known_positions(ledger: Ledger) -> None:
    texts = [said("abci"[number % 4], f"s{number}") for number in range(2 * ANSWERS_IN_A_CALL + 5)]
    with PlantedServer() as server:
        found = sort_answers(a_model(server.spec(), ledger), [(QUESTION, texts)], PACK)[0]
        assert len(server.calls("positions")) == found.calls == sorting_calls(len(texts)) == 3
        last = wire_text(server.calls("positions")[-1].body)
    assert "1. a\n2. b\n3. c\n4. i" in last
    assert {each.line: len(each.members) for each in found.positions} == {"a": 12, "b": 11, "c": 11, "i": 11}
    for each in found.positions:
        assert {texts[place].split("position ")[1][0] for place in each.members} == {each.line}


def test_answers_are_material_and_carry_no_name(ledger: Ledger) -> None:
    with PlantedServer() as server:
        sort_answers(a_model(server.spec(), ledger), [(QUESTION, [said("a", "x"), said("b", "y")])], PACK)
        check_fenced(server.calls("positions")[0].body, "As x says it", fences=4)


def test_what_is_forgotten_or_named_twice_is_kept_apart(ledger: Ledger) -> None:
    reply = {
        "positions": [
            {"known": 7, "members": [1, 2, 9], "line": "first"},
            {"known": 0, "members": [2, 3], "line": "second"},
        ]
    }
    with ScriptedServer(Says("positions", "", reply)) as server:
        found = sort_answers(a_model(server.spec(), ledger), [(QUESTION, ["a", "b", "c", "d"])], PACK)[0]
    assert found.positions == (Position((0,), "first"), Position((2,), "second"), Position((1,)), Position((3,)))
    assert (found.calls, found.failed) == (1, 0)


def test_a_reply_that_can_not_be_read_sorts_nothing(ledger: Ledger) -> None:
    with ScriptedServer(Says("positions", "", "They all agree.")) as server:
        found = sort_answers(a_model(server.spec(), ledger), [(QUESTION, ["a", "b"])], PACK)[0]
    assert found.positions == (Position((0,)), Position((1,)))
    assert found.failed == 1


def test_long_answers_are_sorted_by_more_calls_in_a_small_window(ledger: Ledger) -> None:
    texts = [said("a", f"s{number}") + " Indeed." * 400 for number in range(6)]
    with PlantedServer() as server:
        found = sort_answers(a_model(server.spec(), ledger, context=8_000), [(QUESTION, texts)], PACK)[0]
    assert found.calls > 1
    assert [len(each.members) for each in found.positions] == [6]


def test_a_window_that_is_not_known_has_room_for_answers_of_the_usual_length(ledger: Ledger) -> None:
    """The allowance for reasoning is larger than the window that is assumed; it must not leave one answer a call."""
    texts = [f"{said('a', f's{number}')} {'Offer it to adults. ' * 20}" for number in range(14)]
    with PlantedServer() as server:
        model = a_model(server.spec(), ledger)
        model.reasoning = 8_000
        assert sort_answers(model, [(QUESTION, texts)], PACK)[0].calls <= 2
