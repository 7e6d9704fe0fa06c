"""What an answer claims, read from its words: the guard that keeps answers apart which only sound alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoofbeat import teaching
from hoofbeat.audit.answer_facts import Quantity, facts_conflict, facts_of, shared_words

HOUR, WEEK = 3600, 604800


def between(a: str, b: str) -> str:
    reason = facts_conflict(facts_of(a), facts_of(b))
    assert facts_conflict(facts_of(b), facts_of(a)) == reason
    return reason


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Wait six weeks.", {(str(6 * WEEK), "s", "")}),
        ("After 42 days you may.", {(str(6 * WEEK), "s", "")}),
        ("Four to six weeks", {(str(4 * WEEK), "s", ""), (str(6 * WEEK), "s", "")}),
        ("4–6 weeks", {(str(4 * WEEK), "s", ""), (str(6 * WEEK), "s", "")}),
        ("at 38.0 °C or higher", {("38", "°c", ">=")}),
        ("above 38 °C", {("38", "°c", ">")}),
        ("no more than 2 g", {("2000", "mg", "<=")}),
        ("at most 2,000 mg", {("2000", "mg", "<=")}),
        ("nothing heavier than 5 kg", {("5000000", "mg", ">")}),
        ("not less than 5 kg", {("5000000", "mg", ">=")}),
        ("within 4 hours", {(str(4 * HOUR), "s", "<=")}),
        ("twice a week", {("2", "", ""), (str(WEEK), "s", "")}),
        ("daily", {(str(24 * HOUR), "s", "")}),
        ("twenty-one days", {(str(3 * WEEK), "s", "")}),
        ("two hundred euros", {("200", "euro", "")}),
        ("€50", {("50", "euro", "")}),
        ("0.5 per cent", {("1/2", "%", "")}),
        ("at 14:30", {("52200", "s", "")}),
        ("half a litre", {("1/2", "", "")}),
        ("1.5 litres", {("1500", "ml", "")}),
        ("1½ litres", {("1500", "ml", "")}),
        ("⅓ of it", {("1/3", "", "")}),
        ("10³ copies", {("1000", "", "")}),
        ("10⁻³ or 0⁻¹", {("1/1000", "", ""), ("0", "", "")}),
        ("T₃, m² and ②", {("3", "", ""), ("2", "", "")}),
        ("in the second trimester", {("2", "", "")}),
        ("in the first trimester, one tablet", set()),
        ("As the handbook says [Section 5.2], rest (page 12).", set()),
        ("1. Rest.\n2. Drink.", set()),
    ],
)
def test_numbers_are_read_with_their_units_and_bounds(text: str, found: set[tuple[str, str, str]]) -> None:
    assert facts_of(text).quantities == {Quantity(*each) for each in found}


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Do not drive for six weeks.", "No driving for 42 days!"),
        ("Never take ibuprofen.", "Ibuprofen is forbidden."),
        ("Take no more than 2 g of paracetamol.", "At most 2000 mg of paracetamol should be taken."),
        ("Call at 38.0 °C or higher.", "Call us at a temperature of 38 °C or more."),
        ("Drink 2 to 3 litres every day.", "You should drink 2–3 l daily."),
        ("The deposit is at most three months' rent.", "A deposit may be up to 3 months of rent."),
    ],
)
def test_the_same_rule_in_other_words_does_not_clash(a: str, b: str) -> None:
    assert between(a, b) == ""


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        ("Wait 6 weeks.", "Wait 8 weeks.", "numbers differ"),
        ("Wait 6 weeks.", "Wait 6 months.", "numbers differ"),
        ("Wait 6 weeks.", "Wait.", "numbers differ"),
        ("Above 10³ copies, call.", "Above 103 copies, call.", "numbers differ"),
        ("Take 2½ mg.", "Take 21⁄2 mg.", "numbers differ"),
        ("It is 5 m² wide.", "It is 5 m³ wide.", "numbers differ"),
        ("Wait four to six weeks.", "Wait six weeks.", "numbers differ"),
        ("Call above 38 °C.", "Call below 38 °C.", "thresholds differ"),
        ("Call at 38 °C or more.", "Call above 38 °C.", "thresholds differ"),
        ("Lift at least 5 kg.", "Lift at most 5 kg.", "thresholds differ"),
        ("Swimming is allowed.", "Swimming is not allowed.", "one denies and the other does not"),
        ("Swimming is fine.", "Avoid swimming.", "one denies and the other does not"),
        ("You can't swim; showers are fine.", "You can swim; showers are not fine.", "what is denied differs"),
        ("Take it before meals.", "Take it after meals.", "they take opposite sides"),
        ("It raises the level.", "It lowers the level.", "they take opposite sides"),
        ("Attendance is mandatory.", "Attendance is optional.", "they take opposite sides"),
    ],
)
def test_what_differs_where_it_matters_clashes(a: str, b: str, reason: str) -> None:
    assert between(a, b) == reason


@given(st.text(max_size=300))
def test_any_text_is_read_and_never_clashes_with_itself(text: str) -> None:
    facts = facts_of(text)
    assert facts_conflict(facts, facts) == ""
    assert shared_words(facts, facts) in (0.0, 1.0)


def test_shared_words_count_what_the_longer_answer_adds() -> None:
    short, long = facts_of("No grapefruit."), facts_of("No grapefruit, pomelo, lime or orange.")
    assert shared_words(short, long) == shared_words(long, short) == 0.25
    assert shared_words(facts_of(""), short) == 0.0


def test_hardly_any_planted_disagreement_gets_past_the_guard() -> None:
    """Of the teaching handbooks' answers, most that agree do not clash, and most that disagree do."""
    said = {(gold.question, gold.source): facts_of(gold.answer) for gold in teaching.patient_gold()}
    passed: dict[str, list[bool]] = {}
    for pair in teaching.relations():
        if pair.label != "Absent":
            free = not facts_conflict(said[pair.question, pair.a], said[pair.question, pair.b])
            passed.setdefault(pair.label, []).append(free)
    share = {label: sum(free) / len(free) for label, free in passed.items()}
    assert share["Consistent"] >= 0.85
    assert share["Divergent"] <= 0.05
    assert share["Contradictory"] <= 0.15
