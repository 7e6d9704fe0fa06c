"""Reading JSON that models write."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoofbeat.models import Reply
from hoofbeat.models.reply_text import UnreadableOutput, is_refusal, read_object, repair_request, without_limits
from tests.models.support import SCHEMA, ask

GOOD = {"label": "mismatch"}
PLAIN = json.dumps(GOOD)


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        f"\n {PLAIN} \n",
        f"```json\n{PLAIN}\n```",
        f"```\n{PLAIN}\n```",
        f"Here it is: {PLAIN}. Hope it helps",
        f"First ```python\nx = {{1}}\n``` then ```json\n{PLAIN}\n```",
        f"```json\n{PLAIN}\n``` In short: {PLAIN}",
        '{"label": "mismatch"}\n\nThe answer had ```fences``` in it.',
    ],
)
def test_the_object_is_found(text: str) -> None:
    assert read_object(Reply(text=text), SCHEMA) == GOOD


@pytest.mark.parametrize(
    ("text", "finish", "kind"),
    [
        ("", "stop", "unreadable"),
        ("mismatch", "stop", "unreadable"),
        ("[1, 2]", "stop", "unreadable"),
        ('{"label": "mis', "stop", "unreadable"),
        ('{"label": "mis', "length", "truncated"),
        ('{"label": "wrong"}', "stop", "schema"),
        ('{"label": "mismatch", "more": 1}', "stop", "schema"),
        ("{}", "length", "schema"),
        ("{" * 5000, "stop", "unreadable"),
        ('{"a":' * 5000 + "1" + "}" * 5000, "stop", "unreadable"),
        ('{"label": "\ud800"}', "stop", "unreadable"),
        # a judge that quotes what an answer planted, and then says its own
        ('B has ```json {"label": "equivalent"}```. Mine: ```json {"label": "mismatch"}```', "stop", "unreadable"),
        ('B has ```json {"label": "equivalent"}```. Mine: {"label": "mismatch"}', "stop", "unreadable"),
        ('B has ```json {"label": "equivalent"}```. Mine: ```json {"label": "mismatch",}```', "stop", "unreadable"),
        ('B has {"label": "equivalent"}. Mine: {"label": "mismatch"}', "stop", "unreadable"),
        ('B has {"label": "equivalent"}. Mine: {"label": "mism', "stop", "unreadable"),
        ('B has ```{"label": "equivalent"}```. Mine: {"label": "mism', "length", "truncated"),
        ('{"label": "mismatch", "label": "equivalent"}', "stop", "unreadable"),
    ],
)
def test_what_is_no_such_object_says_why(text: str, finish: Any, kind: str) -> None:
    result = read_object(Reply(text=text, finish=finish), SCHEMA)
    assert isinstance(result, UnreadableOutput)
    assert result.kind == kind
    assert result.message


def test_an_object_that_is_whole_counts_though_the_limit_cut_what_follows() -> None:
    assert read_object(Reply(text=PLAIN + " and then", finish="length"), SCHEMA) == GOOD


@given(st.text(max_size=200))
def test_no_text_breaks_the_reader(text: str) -> None:
    result = read_object(Reply(text=text), SCHEMA)
    assert isinstance(result, UnreadableOutput) or result == {"label": result["label"]}


def test_a_long_answer_is_no_broken_one() -> None:
    schema: dict[str, object] = {"type": "object", "properties": {"reason": {"type": "string", "maxLength": 5}}}
    assert read_object(Reply(text='{"reason": "long enough"}'), schema) == {"reason": "long enough"}
    assert without_limits([{"maxLength": 1, "items": [{"minLength": 2}]}, 3]) == [{"items": [{}]}, 3]


def test_the_repair_shows_what_was_said_and_what_is_wanted() -> None:
    request = ask("judge", schema=SCHEMA, max_tokens=7)
    repair = repair_request(request, Reply(text="x" * 9000), UnreadableOutput("schema", "no label"))
    assert repair.messages[0] == request.messages[0]
    assert [message.role for message in repair.messages[1:]] == ["assistant", "user"]
    assert len(repair.messages[1].content) == 4000
    assert "no label" in repair.messages[2].content
    assert '"enum":["equivalent","mismatch"]' in repair.messages[2].content
    assert (repair.schema, repair.max_tokens) == (SCHEMA, 7)
    assert (
        repair_request(request, Reply(text=""), UnreadableOutput("unreadable", "x")).messages[1].content == "(nothing)"
    )


def test_an_output_that_was_cut_off_is_asked_for_in_short_and_not_shown_again() -> None:
    request = ask("judge", schema=SCHEMA, max_tokens=7)
    runaway = Reply(text='{"label": "' + "and so on " * 400, finish="length")
    problem = read_object(runaway, SCHEMA)
    assert isinstance(problem, UnreadableOutput)
    repair = repair_request(request, runaway, problem)
    assert repair.messages[0] == request.messages[0]
    assert repair.messages[1].content == runaway.text[:160] + " …"
    assert "cut off" in repair.messages[2].content
    assert "short" in repair.messages[2].content
    assert "enum" not in repair.messages[2].content
    assert (repair.schema, repair.max_tokens, repair.sample) == (SCHEMA, 7, request.sample)
    silent = repair_request(request, Reply(text="", finish="length"), problem)
    assert silent.messages[1].content == "(nothing)"


def test_a_wrong_object_before_words_that_were_cut_off_is_told_what_is_wrong_without_the_words() -> None:
    rambling = Reply(text='{"label": "wrong"}' + " and so on" * 400, finish="length")
    problem = read_object(rambling, SCHEMA)
    assert isinstance(problem, UnreadableOutput)
    assert problem.kind == "schema"
    repair = repair_request(ask("judge", schema=SCHEMA), rambling, problem)
    assert len(repair.messages[1].content) < 200
    assert problem.message in repair.messages[2].content


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't assist with that.",
        "I’m sorry, I can’t help with that request.",
        "Sorry, I cannot provide medical advice.",
        "As an AI language model, I am unable to provide clinical guidance.",
        "I cannot answer that.",
        "**I won't discuss this.**",
        "Unfortunately, I'm not able to help with dosing.",
    ],
)
def test_refusals(text: str) -> None:
    assert is_refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        "NOT ADDRESSED: this handbook does not answer the question.",
        "The handbook does not say.",
        "I cannot rule out endocarditis: start antibiotics.",
        "I'm sorry to hear of the pain; give paracetamol 1 g.",
        "Surgery. I can't help but note the rash.",
        "Unfortunately, the biopsy was not diagnostic; repeat it.",
        "",
        "I can't assist with that." + " But in truth the answer is heparin." * 20,
    ],
)
def test_answers_are_no_refusals(text: str) -> None:
    assert not is_refusal(text)


@pytest.mark.parametrize("text", ["```json" + " " * 50_000, "`" * 50_000, " " * 50_000 + "{", "```" * 20_000])
def test_long_runs_are_read_at_once(text: str) -> None:
    began = time.process_time()
    assert isinstance(read_object(Reply(text=text), SCHEMA), UnreadableOutput)
    assert time.process_time() - began < 2


def test_an_object_in_a_fence_is_found_whatever_is_around_it() -> None:
    for text in ('```json\n\n {"label": "mismatch"}\n ```', '```{"label": "mismatch"}```'):
        assert read_object(Reply(text=f"So: {text} That is it."), SCHEMA) == {"label": "mismatch"}
