"""Economy: fewer calls, never more; the labels of full judging where claims are what they seem; nothing mixed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hoofbeat import teaching
from hoofbeat.audit.answer_facts import facts_conflict, facts_of
from hoofbeat.audit.economy.economy_plan import (
    EconomyPlan,
    EconomySettings,
    SourcePair,
    economy_compare,
    plan_economy,
    plan_groups,
)
from hoofbeat.audit.pair_plan import asked_order
from hoofbeat.errors import UsageError
from hoofbeat.prompts import load_pack
from hoofbeat.records import Answer, Comparison, Failure, Question
from tests.retrieval.support import HashedWords

PACK = load_pack("transplant")
BATH = Question(id="bath", text="May I have a bath?")
ALL = EconomySettings(likeness=0.0)
WORDINGS = {
    "six": [
        "No bath for six weeks.", "Do not bathe for 6 weeks.", "A bath is not allowed for 42 days.",
        "Avoid baths for 6 weeks.",
    ],
    "eight": ["No bath for eight weeks.", "Do not bathe for 8 weeks.", "Avoid baths for 8 weeks."],
    "now": ["A bath is fine at once.", "You may bathe right away."],
}  # fmt: skip
Judge = Callable[[list[tuple[EconomyPlan, SourcePair]]], list[Comparison]]


def of(source: str, text: str = "", *, absent: bool = False, failed: bool = False, question: str = "bath") -> Answer:
    failure = Failure(kind="timeout", message="too late") if failed else None
    return Answer(
        question=question, model="m", condition="source", source=source, text=text, absent=absent, failure=failure
    )


def said(text: str) -> str:
    """The claim behind a wording."""
    return next(claim for claim, texts in WORDINGS.items() if text in texts)


def relation(a: str, b: str) -> str:
    """The true label between two wordings."""
    one, two = said(a), said(b)
    return "Consistent" if one == two else "Divergent" if "now" not in (one, two) else "Contradictory"


class Judging:
    """A judge that says what is true of the texts, or what a test wants; keeps what it was asked."""

    def __init__(
        self, answers: Sequence[Answer], broken: Sequence[SourcePair] = (), labels: dict[str, str] | None = None
    ) -> None:
        self.texts = {(each.question, each.source): each.text for each in answers}
        self.broken = set(broken)
        self.labels = labels or {}
        self.asked: list[tuple[str, str, str]] = []
        self.rounds = 0

    def __call__(self, wanted: list[tuple[EconomyPlan, SourcePair]]) -> list[Comparison]:
        self.rounds += 1
        return [self.one(plan.question, *pair) for plan, pair in wanted]

    def one(self, question: str, a: str, b: str) -> Comparison:
        self.asked.append((question, a, b))
        base = Comparison(question=question, a=a, b=b, judge="j", basis="judged", calls=(f"{a}-{b}",))
        if (a, b) in self.broken:
            return Comparison(question=question, a=a, b=b, judge="j", basis="judged",
                              failure=Failure(kind="schema", message="no label"))  # fmt: skip
        label = self.labels.get(a + b) or relation(self.texts[question, a], self.texts[question, b])
        topic = "time" if label == "Divergent" else None
        return Comparison(**{f: getattr(base, f) for f in ("question", "a", "b", "judge", "basis", "calls")},
                          label=label, topic=topic, reasoning="A waits, B does not.")  # fmt: skip


def compared(answers: Sequence[Answer], judge: Judging, chosen: EconomySettings = ALL) -> list[Comparison]:
    (rows,) = economy_compare([plan_economy(BATH, answers, PACK, settings=chosen)], judge)
    return rows


def worded(count: int, seed: int) -> list[Answer]:
    rng = Random(seed)
    every = [text for texts in WORDINGS.values() for text in texts]
    return [of(f"s{number:02}", rng.choice(every)) for number in range(count)]


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 25), st.integers(0, 10**6), st.sampled_from([0.0, 0.5, 0.75]), st.sampled_from([1, 3, 5]))
def test_labels_are_those_of_full_judging_with_fewer_calls(count: int, seed: int, likeness: float, votes: int) -> None:
    answers = worded(count, seed)
    judge = Judging(answers)
    rows = compared(answers, judge, EconomySettings(likeness=likeness, votes=votes))
    assert [(row.a, row.b) for row in rows] == list(combinations(sorted(each.source for each in answers), 2))
    text = {each.source: each.text for each in answers}
    assert all(row.label == relation(text[row.a], text[row.b]) for row in rows)
    assert len(judge.asked) == len(set(judge.asked))
    voices = len(set(text.values()))
    assert len(judge.asked) <= voices * (voices - 1) // 2
    judged = {(row.a, row.b) for row in rows if row.basis == "judged"}
    assert judged == {(a, b) for _, a, b in judge.asked}


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 20), st.integers(0, 10**6), st.booleans())
def test_a_group_never_mixes_answers_that_clash_whatever_the_judge_says(count: int, seed: int, sure: bool) -> None:
    answers = worded(count, seed)
    plan = plan_economy(
        BATH, answers, PACK, settings=EconomySettings(likeness=0.0, sure=0.0 if sure else None, words=0)
    )
    judged: dict[SourcePair, Comparison] = {}
    while wanted := plan.wanted(judged):
        judged |= {pair: Comparison(question="bath", a=pair[0], b=pair[1], label="Consistent") for pair in wanted}
    text = {each.source: each.text for each in answers}
    groups = plan.groups(judged).groups
    assert sorted(source for group in groups for source in group.members) == sorted(text)
    for group in (*groups, *plan_groups(BATH, answers, PACK, settings=ALL).groups):
        assert group.representative in group.members
        for a, b in combinations(group.members, 2):
            assert not facts_conflict(facts_of(text[a]), facts_of(text[b]))


@given(st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=20)
def test_the_order_of_answers_changes_nothing(shuffler: Random) -> None:
    answers = worded(12, 7)
    expected = compared(answers, Judging(answers))
    groups = plan_groups(BATH, answers, PACK, settings=ALL)
    shuffler.shuffle(answers)
    assert compared(answers, Judging(answers)) == expected
    assert plan_groups(BATH, answers, PACK, settings=ALL) == groups


def test_many_sources_that_repeat_each_other_cost_a_fraction() -> None:
    rng = Random(3)
    answers = [
        of(f"s{number:02}", f"{rng.choice(WORDINGS[claim])} {'Rest. ' * number}")
        for number, claim in enumerate(rng.choices(list(WORDINGS), k=40))
    ]
    claims = {each.source: said(each.text.partition(" Rest")[0].strip()) for each in answers}
    calls = 0

    def judge(wanted: list[tuple[EconomyPlan, SourcePair]]) -> list[Comparison]:
        nonlocal calls
        calls += len(wanted)
        return [
            Comparison(
                question="bath", a=a, b=b, basis="judged",
                label="Consistent" if claims[a] == claims[b] else "Divergent",
            )
            for _, (a, b) in wanted
        ]  # fmt: skip

    plan = plan_economy(BATH, answers, PACK, settings=EconomySettings(likeness=0.3))
    (rows,) = economy_compare([plan], judge)
    assert all((row.label == "Consistent") == (claims[row.a] == claims[row.b]) for row in rows)
    assert plan.spoken_pairs == len(rows) == 780
    assert calls <= 780 / 5


def test_every_label_says_how_it_came_about() -> None:
    texts = [*WORDINGS["six"][:3], f" {WORDINGS['six'][0]} ", *WORDINGS["eight"][:2]]
    answers = [of("abcdef"[number], text) for number, text in enumerate(texts)]
    answers += [of("x", absent=True), of("y", failed=True)]
    rows = {(row.a, row.b): row for row in compared(answers, Judging([*answers[:3], of("d", texts[0]), *answers[4:6]]))}
    assert len(rows) == 28
    assert (rows["a", "d"].basis, rows["a", "d"].label, rows["a", "d"].calls) == ("same", "Consistent", ())
    assert {rows[pair].basis for pair in rows if "x" in pair} == {"absent"}
    assert {rows[pair].label for pair in rows if "x" in pair} == {"Absent"}
    broken = rows["a", "y"].failure
    assert broken is not None
    assert (broken.kind, broken.message, broken.attempts) == ("timeout", "no answer of y: too late", 0)
    groups = {pair: row for pair, row in rows.items() if row.basis == "group"}
    assert {rows[pair].basis for pair in rows if "y" in pair and "x" not in pair} == {""}
    judged = {pair: row for pair, row in rows.items() if row.basis == "judged"}
    assert len(judged) == 2 + 1 + 1
    assert {row.label for pair, row in groups.items() if set(pair) <= set("abcd")} == {"Consistent"}
    across = [row for pair, row in groups.items() if set(pair) & set("ef")]
    (spoken,) = [row for pair, row in judged.items() if len(set(pair) & set("ef")) == 1]
    assert {(row.label, row.topic, row.calls) for row in across} == {("Divergent", "time", spoken.calls)}
    said = {answer.source: answer.text for answer in answers}
    one, two = (
        (spoken.a, spoken.b)
        if asked_order(said[spoken.a], said[spoken.b])[0] == said[spoken.a]
        else (spoken.b, spoken.a)
    )
    assert {row.reasoning for row in across} == {f"As between {one} (A) and {two} (B): A waits, B does not."}
    assert spoken.reasoning == ("" if one == spoken.a else f"(A is {one}, B is {two}.) ") + "A waits, B does not."
    within = [row for pair, row in groups.items() if set(pair) <= set("abcd")]
    assert all(len(row.calls) == 2 and row.judge == "j" for row in within)


def test_a_pair_with_the_two_texts_of_a_judged_pair_is_shared() -> None:
    answers = [of("a", WORDINGS["six"][0]), of("b", WORDINGS["now"][0]), of("c", WORDINGS["now"][0])]
    rows = {(row.a, row.b): row.basis for row in compared(answers, Judging(answers))}
    assert rows == {("a", "b"): "judged", ("a", "c"): "shared", ("b", "c"): "same"}


def test_what_a_representative_turns_away_is_grouped_anew_and_no_call_is_lost() -> None:
    answers = [of(name, text) for name, text in zip("abcd", WORDINGS["six"], strict=True)]
    differing = {"ab": "Complementary", "ac": "Complementary", "ad": "Complementary",
                 "bc": "Consistent", "bd": "Consistent", "cd": "Consistent"}  # fmt: skip
    for first in "abcd":
        # whoever speaks first, a alone differs from the others
        judge = Judging(answers, labels=differing)
        rows = {(row.a, row.b): row.label for row in compared(answers, judge)}
        assert rows == {(a, b): differing[a + b] for a, b in combinations("abcd", 2)}, first
        assert len(judge.asked) <= 5


def test_a_confirming_call_that_fails_joins_nobody() -> None:
    answers = [of("a", WORDINGS["six"][0]), of("b", WORDINGS["six"][1])]
    judge = Judging(answers, broken=[("a", "b")])
    (row,) = compared(answers, judge)
    assert row.failure is not None
    assert (row.label, len(judge.asked)) == ("", 1)


def test_a_failed_call_between_groups_is_tried_with_another_member() -> None:
    answers = [of(name, text) for name, text in zip("abc", WORDINGS["six"][:3], strict=True)] + [
        of("z", WORDINGS["now"][0])
    ]
    first = Judging(answers)
    rows = compared(answers, first)
    (spoken,) = [(a, b) for _, a, b in first.asked if b == "z"]
    judge = Judging(answers, broken=[spoken])
    labels = {(row.a, row.b): (row.label, row.failure) for row in compared(answers, judge)}
    assert labels[spoken][0] == ""
    others = {pair for pair in labels if pair[1] == "z"} - {spoken}
    assert {labels[pair] for pair in others} == {("Contradictory", None)}
    assert len(judge.asked) == len(first.asked) + 1
    all_broken = Judging(answers, broken=[(name, "z") for name in "abc"])
    rows = compared(answers, all_broken)
    spread = [row for row in rows if row.b == "z" and row.basis == "group"]
    assert len(spread) == 1
    assert spread[0].failure is not None
    assert (spread[0].label, spread[0].failure.attempts) == ("", 0)


def test_with_votes_one_wrong_label_does_not_spread() -> None:
    claims = [*["six"] * 4, *["eight"] * 3]
    answers = [of("abcdefg"[number], text) for number, text in enumerate([*WORDINGS["six"], *WORDINGS["eight"]])]
    wanted = {(a, b): "Consistent" if claims[x] == claims[y] else "Divergent"
              for (x, a), (y, b) in combinations(enumerate("abcdefg"), 2)}  # fmt: skip
    alone = Judging(answers)
    compared(answers, alone)
    (spoken,) = [(a, b) for _, a, b in alone.asked if wanted[a, b] == "Divergent"]
    wrong = {"".join(spoken): "Complementary"}
    single = {(row.a, row.b): row.label for row in compared(answers, Judging(answers, labels=wrong))}
    assert sum(single[pair] != wanted[pair] for pair in wanted) == 12
    voting = Judging(answers, labels=wrong)
    voted = {(row.a, row.b): row.label for row in compared(answers, voting, EconomySettings(likeness=0.0, votes=3))}
    assert [pair for pair in wanted if voted[pair] != wanted[pair]] == [spoken]
    assert len(alone.asked) < len(voting.asked) <= len(wanted)


def test_votes_of_others_do_not_join_an_answer_to_a_representative_it_differs_from() -> None:
    """Two pairs of answers that agree and no clash in words: whoever speaks for all four, the pairs stay apart."""
    answers = [of(name, text) for name, text in zip("abcd", WORDINGS["six"], strict=True)]
    for one, other in (("ab", "cd"), ("ac", "bd"), ("ad", "bc")):
        labels = {a + b: "Consistent" if a + b in (one, other) else "Complementary" for a, b in combinations("abcd", 2)}
        rows = compared(answers, Judging(answers, labels=labels), EconomySettings(likeness=0.0, votes=3))
        assert {row.a + row.b: row.label for row in rows} == labels


def test_with_votes_one_wrong_agreement_joins_nobody() -> None:
    answers = [of(name, text) for name, text in zip("abcd", WORDINGS["six"], strict=True)]
    true = {a + b: "Complementary" if "d" in (a, b) else "Consistent" for a, b in combinations("abcd", 2)}
    for partner in "abc":
        lying = Judging(answers, labels={**true, f"{partner}d": "Consistent"})
        rows = compared(answers, lying, EconomySettings(likeness=0.0, votes=3))
        wrong = [row for row in rows if row.label != true[row.a + row.b]]
        assert [(row.a, row.b) for row in wrong] == [(partner, "d")]


def test_a_pair_judged_for_the_check_keeps_its_own_judgment() -> None:
    answers = [of(name, text) for name, text in zip("abc", WORDINGS["six"][:3], strict=True)]
    plan = plan_economy(BATH, answers, PACK, settings=ALL)
    judge = Judging(answers)
    judged = {pair: judge.one("bath", *pair) for pair in plan.pairs}
    assert plan.wanted(judged) == ()
    (spread,) = [row for row in plan.spread(judged) if row.basis == "group"]
    own = Comparison(question="bath", a=spread.a, b=spread.b, label="Complementary", basis="judged")
    assert own in plan.spread({**judged, (spread.a, spread.b): own})


def test_labels_are_not_spread_before_all_is_judged() -> None:
    plan = plan_economy(BATH, [of("a", WORDINGS["six"][0]), of("b", WORDINGS["now"][0])], PACK)
    with pytest.raises(UsageError, match="1 pairs of question 'bath' are still to be judged"):
        plan.spread({})


def test_sure_answers_join_without_a_call() -> None:
    answers = [of("a", "No bath for six weeks."), of("b", "No bath for 6 weeks"), of("c", "No shower for six weeks.")]
    judge = Judging(answers, labels={"ab": "Consistent", "ac": "Divergent", "bc": "Divergent"})
    compared(answers, judge, EconomySettings(likeness=0.0, sure=0.9))
    assert len(judge.asked) == 1
    first = plan_groups(BATH, answers, PACK, settings=EconomySettings(likeness=0.5, sure=0.9))
    assert [(group.members, group.unsure) for group in first.groups] == [(("a", "b"), ()), (("c",), ())]


def test_an_encoder_says_how_alike_answers_are() -> None:
    answers = [of("a", WORDINGS["six"][0]), of("b", WORDINGS["six"][1]), of("c", WORDINGS["six"][2])]

    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        return np.array([[1, 0] if "Do not" in text else [0, 1] for text in texts], np.float32)

    groups = plan_groups(BATH, answers, PACK, encode).groups
    assert [group.members for group in groups] == [("a", "c"), ("b",)]
    hashed = HashedWords()
    assert plan_groups(BATH, answers, PACK, hashed.encode) == plan_groups(BATH, answers[::-1], PACK, hashed.encode)
    assert plan_groups(BATH, [], PACK, hashed.encode).groups == ()


def test_rounds_go_over_all_questions_at_once() -> None:
    answers = [of(source, text, question=q) for q in ("q1", "q2", "q3") for source, text in
               zip("abcd", [*WORDINGS["six"][:2], *WORDINGS["eight"][:2]], strict=True)]  # fmt: skip
    plans = [plan_economy(Question(id=q, text="?"), answers, PACK, settings=ALL) for q in ("q1", "q2", "q3")]
    judge = Judging(answers)
    found = economy_compare(plans, judge)
    assert [len(rows) for rows in found] == [6, 6, 6]
    assert [{row.question for row in rows} for rows in found] == [{"q1"}, {"q2"}, {"q3"}]
    assert (judge.rounds, len(judge.asked)) == (2, 9)
    assert economy_compare([], judge) == []


def test_the_handbooks_labels_come_out_as_planted() -> None:
    """Real wording of the teaching set: every label right, and calls saved though only eight sources are there."""
    planted = {(each.question, each.a, each.b): each.label for each in teaching.relations()}
    answers = [
        of(gold.source, gold.answer, absent=gold.absent, question=gold.question) for gold in teaching.patient_gold()
    ]
    plans = [plan_economy(Question(id=q.id, text=q.text), answers, PACK, settings=EconomySettings(likeness=0.5))
             for q in teaching.patient_questions()]  # fmt: skip
    calls = 0

    def judge(wanted: list[tuple[EconomyPlan, SourcePair]]) -> list[Comparison]:
        nonlocal calls
        calls += len(wanted)
        return [
            Comparison(question=plan.question, a=a, b=b, label=planted[plan.question, a, b], basis="judged")
            for plan, (a, b) in wanted
        ]

    rows = [row for found in economy_compare(plans, judge) for row in found]
    assert {(row.question, row.a, row.b): row.label for row in rows} == planted
    spoken = sum(plan.spoken_pairs for plan in plans)
    assert calls < 0.7 * spoken


@pytest.mark.parametrize(
    "wrong", [{"likeness": 1.5}, {"sure": -0.1}, {"words": 2}, {"rounds": 0}, {"tries": 0}, {"votes": 2}]
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="econom"):
        EconomySettings(**wrong)  # type: ignore[arg-type]


def test_a_source_that_answers_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="two answers to question 'bath'"):
        plan_economy(BATH, [of("a", "x"), of("a", "y")], PACK)
