"""Which pairs are judged, which label the others carry, and what every row says of it."""

from __future__ import annotations

from itertools import combinations

import pytest

from hoofbeat.audit.economy.carried_labels import QuestionPositions, carry
from hoofbeat.audit.economy.positions import Position
from hoofbeat.audit.pair_plan import Claim, PairVerdict, pair_frame, plan_pairs
from hoofbeat.audit.pair_table import TableEnums, each_row
from hoofbeat.prompts import load_pack
from hoofbeat.records import Comparison, Question
from tests.audit.economy.support import planted, position_of, relation

PACK = load_pack("clinicians")
QUESTION = Question(id="q", text="From what age?")


def held_by(claims: list[Claim]) -> QuestionPositions:
    groups: dict[str, list[int]] = {}
    texts: set[str] = set()
    for place, claim in enumerate(claims):
        if not claim.absent and claim.text not in texts:
            texts.add(claim.text)
            groups.setdefault(position_of(claim.text), []).append(place)
    return QuestionPositions([Position(tuple(each), f"line {name}") for name, each in groups.items()])


def rows_of(claims: list[Claim], held: QuestionPositions) -> tuple[list[Comparison], int]:
    plan = carry(plan_pairs(QUESTION, claims), held).plan
    verdicts = [
        PairVerdict(
            label=relation(*(position_of(plan.texts[place]) for place in pair)),
            reasoning="So.",
            calls=("c",),
            tokens_in=9,
        )
        for pair in plan.asked
    ]
    kinds = TableEnums.of(
        questions=["q"],
        sources=[claim.source for claim in claims],
        labels=[label.name for label in PACK.labels],
        levels=PACK.significance_levels,
        judges=["j"],
    )
    frame = pair_frame(plan, verdicts, PACK, kinds, "j")
    assert frame["tokens_in"].drop_nulls().len() == len(plan.asked)
    return list(each_row(frame)), len(plan.asked)


@pytest.mark.parametrize("positions", ["aaab", "aabbcc", "aaa", "a.abi.b", "abcd", "aa.", "..", "aaaaabbbbbiiiii"])
def test_every_pair_has_the_label_of_its_positions(positions: str) -> None:
    claims = planted(positions)
    rows, asked = rows_of(claims, held_by(claims))
    assert [(row.a, row.b) for row in rows] == [(a.source, b.source) for a, b in combinations(claims, 2)]
    letter = {claim.source: each for claim, each in zip(claims, positions, strict=True)}
    for row in rows:
        one, two = letter[row.a], letter[row.b]
        assert row.label == ("Absent" if "." in (one, two) else relation(one, two))
        assert (row.basis == "absent") == ("." in (one, two))
    spoken = {each: positions.count(each) for each in set(positions) - {"."}}
    assert asked == len(spoken) * (len(spoken) - 1) // 2 + sum(count > 2 for count in spoken.values())


def test_a_carried_row_says_where_it_is_from() -> None:
    claims = planted("aaabb")
    rows, _ = rows_of(claims, held_by(claims))
    by_pair = {(row.a, row.b): row for row in rows}
    lead = by_pair["s000", "s003"]
    assert (lead.basis, by_pair["s000", "s001"].basis) == ("judged", "judged")
    other = by_pair["s002", "s004"]
    assert (other.basis, other.judge, other.calls) == ("group", "j", ("c",))
    assert other.reasoning.startswith("Carried from s00")
    assert {"s000", "s003"} == {word for word in other.reasoning.replace(":", "").split() if word.startswith("s00")}
    two = by_pair["s003", "s004"]
    assert (two.basis, two.judge, two.calls) == ("group", "", ())
    assert two.reasoning == "Sorted into one position: line b"


def test_pairs_of_their_own_are_judged_and_keep_their_label() -> None:
    claims = planted("aaaabb")
    whole, held = plan_pairs(QUESTION, claims), held_by(planted("aaaabb"))
    held.own = {whole.asked[1], whole.asked[-1]}
    carried = carry(whole, held)
    assert set(carried.plan.asked) == {whole.asked[0], *held.own, carried_lead(whole.asked, claims)}
    assert carried.asked_by[len(whole.asked) - 1] == len(whole.asked) - 1


def carried_lead(asked: list[tuple[int, int]], claims: list[Claim]) -> tuple[int, int]:
    return next(pair for pair in asked if {claims[place].source for place in pair} == {"s000", "s004"})


def test_sources_with_the_same_text_hold_the_same_position() -> None:
    claims = planted("aab")
    claims += [Claim("t", claims[0].text), Claim("u", claims[2].text)]
    rows, asked = rows_of(claims, held_by(claims))
    by_pair = {(row.a, row.b): (row.label, row.basis) for row in rows}
    assert asked == 1
    assert by_pair["s000", "t"] == ("Consistent", "same")
    assert by_pair["t", "u"] == ("Divergent", "shared")
    assert by_pair["s001", "u"] == ("Divergent", "group")


def test_answers_that_leave_a_position_hold_one_together() -> None:
    claims = planted("aaaab")
    held = held_by(claims)
    assert held.split(0, [1, 3]) == 2
    assert [each.members for each in held.positions] == [(0, 2), (4,), (1, 3)]
    assert rows_of(claims, held)[1] == 3


def test_of_confirmed_positions_the_label_of_most_is_carried() -> None:
    claims = planted("aaabbb")
    whole, held = plan_pairs(QUESTION, claims), held_by(claims)
    held.confirmed = True
    first = carry(whole, held)
    between = [pair for pair in first.plan.asked if len({position_of(whole.texts[place]) for place in pair}) == 2]
    assert len(between) == 3
    told = {pair: PairVerdict(label="Consistent" if pair == between[0] else "Divergent") for pair in first.plan.asked}
    carried = carry(whole, held, told)
    speaking = {whole.asked[by] for by in carried.asked_by.tolist() if whole.asked[by] not in held.own}
    assert between[1] in speaking
    numbers = [number for number, pair in enumerate(whole.asked) if pair not in first.plan.asked]
    outside = [number for number in numbers if not carried.inside(number)]
    assert {whole.asked[carried.asked_by[number]] for number in outside} == {between[1]}
