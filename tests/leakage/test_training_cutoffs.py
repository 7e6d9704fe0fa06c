"""Publication dates against cutoffs."""

from __future__ import annotations

import re

import pytest

from hoofbeat.errors import UsageError
from hoofbeat.findings.outcomes import Outcome
from hoofbeat.leakage.training_cutoffs import (
    Cutoff,
    PublicationDate,
    accuracy_by_date,
    cutoff_of,
    date_counts,
    known_cutoffs,
    parse_cutoff,
    position,
    publication,
    publication_period,
)
from hoofbeat.records import Document, Question

JUNE = Cutoff(match="m", until="2024-06", kind="given", source="--cutoff")


def document(id: str, **facets: str) -> Document:
    return Document(id=id, title="Invented", text="Invented.", facets=dict(facets))


@pytest.mark.parametrize(
    ("published", "expected"),
    [
        (PublicationDate(2023, 12), "before"),
        (PublicationDate(2023), "before"),
        (PublicationDate(2024, 6), "before"),
        (PublicationDate(2024, 7), "after"),
        (PublicationDate(2024), "same year"),
        (PublicationDate(2025), "after"),
        (None, "undated"),
    ],
)
def test_where_a_publication_stands(published: PublicationDate | None, expected: str) -> None:
    assert position(published, JUNE) == expected


def test_a_year_as_cutoff_is_taken_to_its_end() -> None:
    _, cutoff = parse_cutoff("http://here/v1#mine=2024")
    assert position(PublicationDate(2024, 12), cutoff) == "before"
    assert position(PublicationDate(2024), cutoff) == "before"
    assert position(PublicationDate(2025, 1), cutoff) == "after"


def test_cutoffs_are_read_from_the_command() -> None:
    assert parse_cutoff("openai:gpt-x=2024-06") == (
        "openai:gpt-x",
        Cutoff(match="openai:gpt-x", until="2024-06", kind="given", source="--cutoff"),
    )
    for wrong in ("gpt-x", "=2024-06", "gpt-x=June", "gpt-x=2024-13"):
        with pytest.raises(UsageError, match="not a cutoff"):
            parse_cutoff(wrong)


def test_the_longest_known_name_decides_and_a_given_cutoff_goes_before_it() -> None:
    assert cutoff_of("openai:gpt-4o-mini") is not None
    found = cutoff_of("http://localhost:8000/v1#meta-llama/Llama-3.1-70B-Instruct")
    assert found is not None
    assert (found.match, found.until) == ("llama-3.1", "2023-12")
    embedded = cutoff_of("embedded", "embedded:smollm2-135m@abc;ctx=4096")
    assert embedded is not None
    assert embedded.kind == "released"
    assert cutoff_of("openai:unheard-of") is None
    assert cutoff_of("openai:gpt-4o", given={"openai:gpt-4o": JUNE}) == JUNE


def test_a_cutoff_holds_for_a_model_at_every_setting() -> None:
    may = Cutoff(match="m", until="2024-05", kind="given", source="--cutoff")
    warm = "openai:unheard-of[temperature=0.6,samples=3]"
    assert cutoff_of(warm, given={"openai:unheard-of": JUNE}) == JUNE
    assert cutoff_of(warm, given={"openai:unheard-of": JUNE, warm: may}) == may
    assert cutoff_of("openai:unheard-of", given={warm: may}) is None


def test_every_known_cutoff_is_a_month_with_a_source() -> None:
    assert len(known_cutoffs()) > 5
    for cutoff in known_cutoffs():
        assert re.fullmatch(r"20\d\d-(0[1-9]|1[0-2])", cutoff.until)
        assert cutoff.kind in ("stated", "released")
        assert cutoff.source
        assert cutoff.match == cutoff.match.lower()


def test_the_earliest_source_dates_a_question() -> None:
    documents = {"a": document("a", year="2021", date="2021-05-03"), "b": document("b", year="2019")}
    question = Question(id="q", text="?", documents=("a", "b", "missing"), facets={"year": "2010"})
    assert publication(question, documents) == PublicationDate(2019)
    assert publication(Question(id="q", text="?", documents=("a",)), documents) == PublicationDate(2021, 5)
    assert publication(Question(id="q", text="?", facets={"year": "2010"}), {}) == PublicationDate(2010)
    assert publication(Question(id="q", text="?"), documents) is None
    assert (publication_period(PublicationDate(2019, 2)), publication_period(None)) == ("2015–2019", "undated")


def test_counts_add_up_to_all_questions() -> None:
    dates = {"a": PublicationDate(2020), "b": PublicationDate(2024), "c": None, "d": PublicationDate(2025)}
    found = date_counts("m", JUNE, dates)
    assert found.positions == {"before": 1, "after": 1, "same year": 1, "undated": 1}
    assert sum(found.positions.values()) == found.questions == 4
    assert date_counts("m", None, dates).positions == {}


def test_accuracy_before_and_after_by_hand() -> None:
    dates = {f"q{n}": PublicationDate(2020 if n < 6 else 2025) for n in range(10)}
    right = [True, True, True, True, True, None, True, False, False, False]
    rows = [
        Outcome(
            question=f"q{n}",
            model="m",
            condition="closed",
            sample=0,
            correct=value,
            unscored="" if value is not None else "unjudged",
        )
        for n, value in enumerate(right)
    ]
    other = Outcome(question="q0", model="other", condition="closed", sample=0, correct=True)
    [found] = accuracy_by_date([*rows, other], dates, {"m": JUNE})
    assert (found.before_n, found.after_n, found.unscored) == (6, 4, 1)
    assert (found.before, found.after) == pytest.approx((5 / 6, 0.25))
    assert found.difference == pytest.approx(5 / 6 - 0.25)
    assert found.interval.low < found.difference < found.interval.high
    assert accuracy_by_date([*rows], dates, {"m": JUNE}) == [found]  # the same seed, the same interval
    assert accuracy_by_date(rows[:6], dates, {"m": JUNE}) == []


def test_the_interval_of_a_difference_without_spread_has_a_width() -> None:
    dates = {f"q{n}": PublicationDate(2020 if n < 5 else 2025) for n in range(10)}
    rows = [Outcome(question=f"q{n}", model="m", condition="closed", sample=0, correct=n < 5) for n in range(10)]
    [found] = accuracy_by_date(rows, dates, {"m": JUNE})
    assert found.interval.low < 0.5
    assert (found.interval.high, found.interval.few) == (1.0, 5)
