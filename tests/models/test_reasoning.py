"""Reasoning parted from answers, in the marks of several model families, finished and cut off."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoofbeat.models.reply_text import split_reasoning
from hoofbeat.models.requests import Reply
from hoofbeat.models.wire import read_chat

FINISHED = [
    ("<think>It is A.</think>\n\nB", "B", "It is A."),
    ("<think>\n\n</think>\n\nB", "B", ""),
    ("<thinking>First.</thinking>The answer is C.", "The answer is C.", "First."),
    ("\n<THINK>Loud.</THINK>C", "C", "Loud."),
    ("<reasoning>Why.</reasoning>\n<answer>C</answer>", "<answer>C</answer>", "Why."),
    ("[THINK]Hm.[/THINK]D", "D", "Hm."),
    ("<|think|>Hm.<|/think|>D", "D", "Hm."),
    ("◁think▷Hm.◁/think▷D", "D", "Hm."),
    ("<think>One.</think><think>Two.</think>D", "D", "One.\n\nTwo."),
    ("The prompt had opened it.</think>\n\nB", "B", "The prompt had opened it."),
    ("</think>\n\nB", "B", ""),
    ("<|begin_of_thought|>Hm.<|end_of_thought|>\n<|begin_of_solution|>A<|end_of_solution|>", "A", "Hm."),
    (
        "<|channel|>analysis<|message|>Weigh.<|end|><|start|>assistant<|channel|>final<|message|>B<|return|>",
        "B",
        "Weigh.",
    ),
    (
        "<|channel|>analysis<|message|>Weigh.<|end|><|start|>assistant<|channel|>commentary<|message|>Look.<|end|>"
        "<|start|>assistant<|channel|>final<|message|>B",
        "B",
        "Weigh.\n\nLook.",
    ),
]
UNFINISHED = [
    ("<think>It is A, or", "It is A, or"),
    ("[THINK]Hm", "Hm"),
    ("<think>One.</think><think>Two", "One.\n\nTwo"),
    ("<|channel|>analysis<|message|>Probably B because", "Probably B because"),
    ("<|begin_of_thought|>Hm", "Hm"),
]
PLAIN = ["B", "", "The answer is <5 mm.", "[A]", "<answer>B</answer>", "I think </i> B"]


@pytest.mark.parametrize(("output", "text", "reasoning"), FINISHED)
def test_reasoning_is_taken_off_and_kept(output: str, text: str, reasoning: str) -> None:
    parted = split_reasoning(output)
    assert (parted.text, parted.reasoning, parted.unfinished) == (text, reasoning, False)


@pytest.mark.parametrize(("output", "reasoning"), UNFINISHED)
def test_reasoning_that_was_cut_off_leaves_no_answer(output: str, reasoning: str) -> None:
    parted = split_reasoning(output)
    assert (parted.text, parted.reasoning, parted.unfinished) == ("", reasoning, True)


@pytest.mark.parametrize("output", PLAIN)
def test_other_outputs_stay_as_they_are(output: str) -> None:
    assert split_reasoning(output).text == output
    assert not split_reasoning(output).reasoning


def _reply(**message: str) -> Reply:
    body = {"choices": [{"message": {"content": "", **message}, "finish_reason": "stop"}]}
    reply = read_chat(msgspec.json.encode(body))
    assert isinstance(reply, Reply)
    return reply


def test_an_endpoint_s_own_field_and_blocks_in_the_text_are_both_kept() -> None:
    assert _reply(content="B", reasoning_content="Field.").reasoning == "Field."
    assert _reply(content="B", reasoning="Field.").reasoning == "Field."
    both = _reply(content="<think>Block.</think>B", reasoning_content="Field.")
    assert (both.text, both.reasoning) == ("B", "Field.\n\nBlock.")
    empty = _reply(content="<think>\n\n</think>\n\nB")
    assert (empty.text, empty.reasoning) == ("B", "")
    cut = _reply(content="<think>Block")
    assert (cut.text, cut.reasoning) == ("", "Block")


@given(st.text(alphabet="<>|/thinkTHINK[]◁▷ab \n", max_size=80))
def test_no_text_breaks_it(output: str) -> None:
    parted = split_reasoning(output)
    assert len(parted.text) + len(parted.reasoning) <= len(output) + 2 * output.count("<") + 2 * output.count("[") + 2


@pytest.mark.parametrize(
    "output",
    [
        "<think>" * 50_000,
        "<|channel|>" * 20_000,
        "</think>" * 50_000,
        "[THINK]" * 50_000,
        "<|channel|>" + "a" * 200_000,
        "<think>x</think><|begin_of_solution|>" + " " * 200_000 + "x",
    ],
)
def test_hostile_outputs_are_parted_at_once(output: str) -> None:
    split_reasoning(output)
