"""Probes of a judge: a biased one is caught, a steady one is not, and the sample is the same for the same seed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoofbeat.judging.judgments_folder import Probe
from hoofbeat.judging.probes import PROBES, flips, pad_text, probe_figures, probe_judge, probe_request
from hoofbeat.judging.stratified_sample import ReservoirSample, blind_code
from hoofbeat.models import ChatRequest
from hoofbeat.prompts import load_prompt
from tests.judging.folders import QUESTIONS, a_judge, said, user_text
from tests.models.support import ledger_in

BATH = QUESTIONS[0]
ANSWERS = [said(f"Answer number {n}.", sample=n) for n in range(12)]


def probed(tmp_path: Path, says: object, *probes: str) -> list[Probe]:
    with ledger_in(tmp_path) as ledger:
        judge, _ = a_judge(ledger, says)  # type: ignore[arg-type]
        return probe_judge(judge, probes or PROBES, {BATH.id: BATH}, ANSWERS)


def likes_long(prompt: str, request: ChatRequest) -> object:
    return {"reason": "long", "label": "equivalent" if len(user_text(request)) > 400 else "mismatch"}


def likes_first(prompt: str, request: ChatRequest) -> object:
    text = user_text(request)
    first = text.index("answer to judge") < text.index("reference answer")
    return {"reason": "order", "label": "equivalent" if first else "mismatch"}


def test_the_two_prompts_differ_in_order_only() -> None:
    usual, swapped = load_prompt("equivalence"), load_prompt("equivalence-swapped")
    assert usual.system == swapped.system
    assert usual.schema == swapped.schema
    assert (usual.max_tokens, usual.variables) == (swapped.max_tokens, swapped.variables)
    assert usual.user != swapped.user
    blocks = [[block.strip() for block in prompt.user.strip().split("\n\n")] for prompt in (usual, swapped)]
    assert blocks[1] == [blocks[0][0], blocks[0][2], blocks[0][1]]


def test_a_judge_that_likes_length_is_caught(tmp_path: Path) -> None:
    by_probe = {each.probe: each for each in flips(probed(tmp_path, likes_long))}
    assert (by_probe["length"].flips, by_probe["length"].n, by_probe["length"].to_equivalent) == (12, 12, 12)
    assert by_probe["order"].flips == by_probe["consistency"].flips == 0


def test_a_judge_that_likes_the_first_is_caught(tmp_path: Path) -> None:
    by_probe = {each.probe: each for each in flips(probed(tmp_path, likes_first))}
    assert (by_probe["order"].flips, by_probe["order"].to_equivalent, by_probe["order"].to_mismatch) == (12, 12, 0)
    assert by_probe["length"].flips == 0


def test_a_judge_that_wavers_is_caught(tmp_path: Path) -> None:
    draw = random.Random(1)
    (count,) = flips(
        probed(
            tmp_path,
            lambda prompt, request: {"reason": "coin", "label": draw.choice(["equivalent", "mismatch"])},
            "consistency",
        )
    )
    assert 0 < count.flips < 12


def test_what_was_judged_before_is_not_asked_again(tmp_path: Path) -> None:
    with ledger_in(tmp_path) as ledger:
        judge, script = a_judge(ledger, likes_long)
        probe_judge(judge, ["order"], {BATH.id: BATH}, ANSWERS)
        asked = len(script.requests)
        probe_judge(judge, ["order", "length"], {BATH.id: BATH}, ANSWERS)
    assert asked == 24
    assert len(script.requests) == 36


def test_a_pair_without_both_verdicts_does_not_count(tmp_path: Path) -> None:
    made = probed(
        tmp_path,
        lambda prompt, request: "no idea" if "number 3" in user_text(request) else {"reason": "x", "label": "mismatch"},
        "order",
    )
    (count,) = flips(made)
    assert (count.n, count.flips, count.unscored) == (11, 0, 1)
    assert next(each for each in made if each.sample == 3).failure.startswith("unreadable")


def test_figures_carry_wilson_s_interval(tmp_path: Path) -> None:
    (row,) = probe_figures(probed(tmp_path, likes_long, "length"))
    assert (row["n"], row["flips"], row["flip_rate"]) == (12, 12, 1.0)
    assert row["flip_rate_low"] == pytest.approx(0.2065, abs=1e-4)  # twelve samples of one question: 1 / (1 + 1.96²)
    assert row["flip_rate_high"] == 1.0
    assert (row["n_short"], row["n_long"], row["equivalent_short"]) == (6, 6, 0.0)
    assert probe_figures([]) == []


@pytest.mark.parametrize("text", ["Wait.", "word " * 100])
def test_padding_changes_length_and_nothing_else(text: str) -> None:
    longer = pad_text(text)
    assert longer.startswith(text.rstrip())
    added = len(longer.split()) - len(text.split())
    assert max(40, len(text.split())) <= added <= max(40, len(text.split())) + 25


def test_probes_ask_what_they_say() -> None:
    usual = user_text(probe_request("consistency", BATH, ANSWERS[0]))
    assert probe_request("consistency", BATH, ANSWERS[0]).sample == 1
    swapped = user_text(probe_request("order", BATH, ANSWERS[0]))
    assert usual.index("reference answer") < usual.index("answer to judge")
    assert swapped.index("answer to judge") < swapped.index("reference answer")


@given(st.lists(st.integers(0, 500), unique=True, max_size=60), st.integers(0, 5), st.integers(0, 20), st.randoms())
def test_a_draw_does_not_depend_on_the_order(numbers: list[int], seed: int, size: int, order: random.Random) -> None:
    def drawn(items: list[int]) -> list[int]:
        draw: ReservoirSample[int] = ReservoirSample(size, seed)
        for number in items:
            draw.offer(("q", "m", "c", number), number)
        return draw.drawn()

    first = drawn(numbers)
    mixed = numbers[:]
    order.shuffle(mixed)
    assert drawn(mixed) == first
    assert len(first) == min(size, len(numbers))


def test_a_draw_is_fair() -> None:
    times = [0] * 20
    for seed in range(600):
        draw: ReservoirSample[int] = ReservoirSample(5, seed)
        for number in range(20):
            draw.offer(("q", "m", "c", number), number)
        for number in draw.drawn():
            times[number] += 1
    assert min(times) > 100  # 150 are expected of each; 100 is five standard deviations below
    assert max(times) < 200


def test_codes_tell_nothing_and_are_told_apart() -> None:
    codes = {blind_code((f"q{n}", "m", "closed", s), "equivalence", b"secret") for n in range(200) for s in range(5)}
    assert len(codes) == 1000
    assert all(len(code) == 12 for code in codes)
