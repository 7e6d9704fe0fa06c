"""Summaries of a leakage check against values by hand, and planted leakage found."""

from __future__ import annotations

import math

import pytest
from statsmodels.stats.proportion import proportion_confint

from hoofbeat.findings.outcomes import Outcome
from hoofbeat.leakage.leakage_figures import (
    CAVEATS,
    ContinuationOverlap,
    LikelihoodRow,
    OverlapRow,
    book_gaps,
    likelihood_summaries,
    overlap_summaries,
    reproduced,
)
from hoofbeat.records import Failure

UNSUPPORTED = Failure(kind="unsupported", message="none")


def likelihood(question: str, loss: float, control: str = "", model: str = "m", lowest: float = -5.0) -> LikelihoodRow:
    return LikelihoodRow(
        question=question,
        model=model,
        text="question",
        control=control,
        tokens=10,
        total=-10 * loss,
        lowest=lowest,
        zlib=20,
    )


def overlap(
    question: str, f: float, *, run: int = 2, recall: float = 0.1, control: float = 0.1, model: str = "m"
) -> OverlapRow:
    def found(value: float) -> ContinuationOverlap:
        return ContinuationOverlap(rouge_p=value, rouge_r=recall, rouge_f=value, edit=value, run=run)

    return OverlapRow(question=question, model=model, probe="continuation", own=found(f), control=found(control))


def outcome(question: str, condition: str, correct: bool | None, sample: int = 0, model: str = "m") -> Outcome:
    why = "" if correct is not None else "unjudged"
    return Outcome(question=question, model=model, condition=condition, sample=sample, correct=correct, unscored=why)


def test_perplexity_is_the_geometric_mean_and_its_ratio_is_paired() -> None:
    rows = [
        likelihood("a", 1.0),
        likelihood("b", 3.0),
        likelihood("a", 1.5, "shuffled"),
        likelihood("b", 3.5, "shuffled"),
    ]
    [found] = likelihood_summaries(rows, {}, {})
    assert found.perplexity.value == pytest.approx(math.exp(2.0))
    assert (found.perplexity.low, found.perplexity.high) == (None, None)  # two questions say nothing of the spread
    assert found.ratio.value == pytest.approx(math.exp(0.5))
    assert (found.ratio.low, found.ratio.high) == (None, None)
    assert (found.tokens, found.control, found.planned) == (20, "shuffled", 2)
    assert found.per_zlib.value == pytest.approx(20 / math.log(2) / 160)


def test_unscored_texts_stay_in_the_plan_and_are_counted_by_reason() -> None:
    failed = LikelihoodRow(question="b", model="m", text="question", failure=UNSUPPORTED)
    [found] = likelihood_summaries([likelihood("a", 1.0), failed], {}, {})
    assert (found.planned, found.perplexity.n, found.unscored) == (2, 1, {"unsupported": 1})
    [none] = likelihood_summaries([failed], {}, {})
    assert (none.perplexity.value, none.ratio.value) == (None, None)


def test_a_perplexity_beyond_all_numbers_does_not_break_the_summary() -> None:
    [found] = likelihood_summaries([likelihood("a", 2000.0)], {}, {})
    assert found.perplexity.value is not None
    assert math.isfinite(found.perplexity.value)


def test_groups_of_two_or_more_are_told_apart() -> None:
    rows = [likelihood(name, loss) for name, loss in (("a", 1.0), ("b", 1.0), ("c", 4.0), ("d", 4.0), ("e", 9.0))]
    groups = {"specialty": {"a": "x", "b": "x", "c": "y", "d": "y", "e": "z"}, "one": dict.fromkeys("abcde", "same")}
    found = {(row.by, row.group): row.perplexity.value for row in likelihood_summaries(rows, groups, {})}
    assert set(found) == {("", "all questions"), ("specialty", "x"), ("specialty", "y")}
    assert found["specialty", "y"] == pytest.approx(math.exp(4.0))


def test_questions_of_one_source_are_resampled_together() -> None:
    rows = [overlap(name, value) for name, value in zip("abcd", (0.1, 0.1, 0.9, 0.9), strict=True)]
    [apart] = overlap_summaries(rows, {}, {})
    [together] = overlap_summaries(rows, {}, {"a": "s", "b": "s", "c": "t", "d": "t"})
    assert apart.rouge.value == together.rouge.value == pytest.approx(0.5)
    assert (together.rouge.low, together.rouge.high) == pytest.approx(proportion_confint(1, 2, method="wilson"))
    assert apart.rouge.low is not None
    assert together.rouge.low is not None
    assert apart.rouge.low >= together.rouge.low


def test_a_model_that_memorised_stands_out_against_one_that_did_not() -> None:
    known = {f"q{n}" for n in range(8)}
    names = [f"q{n}" for n in range(20)]
    rows = [overlap(q, 1.0 if q in known else 0.2, run=40 if q in known else 2, model="knowing") for q in names]
    rows += [overlap(q, 0.2, model="blank") for q in names]
    knowing, blank = overlap_summaries(rows, {}, {})
    assert (knowing.reproduced, blank.reproduced) == (8, 0)
    assert knowing.share.value == pytest.approx(0.4)
    assert knowing.share.low is not None
    assert blank.share.high is not None
    assert knowing.share.low > blank.share.high  # Wilson's intervals do not even touch
    assert knowing.rouge_gain.value == pytest.approx(0.4 * 0.9 + 0.6 * 0.1)
    assert knowing.run_longest == 40


def test_reproduced_needs_a_long_run_or_most_of_the_rest() -> None:
    assert reproduced(overlap("a", 0.3, run=13))
    assert not reproduced(overlap("a", 0.9, run=12, recall=0.7))
    assert reproduced(overlap("a", 0.8, run=3, recall=0.75))
    assert not reproduced(OverlapRow(question="a", model="m", probe="rationale", failure=UNSUPPORTED))


def test_the_gap_and_what_became_of_each_question() -> None:
    closed = {"a": True, "b": True, "c": False, "d": False, "e": None}
    oracle = {"a": True, "b": False, "c": True, "d": False, "e": True}
    rows = [outcome(q, "closed", right) for q, right in closed.items()]
    rows += [outcome(q, "oracle", right) for q, right in oracle.items()]
    rows += [outcome("a", "closed, letter", True), outcome("a", "bm25 @3", True)]
    [gap] = book_gaps(rows, {})
    assert (gap.model, gap.protocol, gap.pairs) == ("m", "free text", 5)
    assert (gap.both, gap.closed_only, gap.oracle_only, gap.neither, gap.unscored) == (1, 1, 1, 1, 1)
    assert (gap.closed.accuracy, gap.oracle.accuracy) == pytest.approx((0.4, 0.6))
    assert gap.gap.paired.difference == pytest.approx(0.2)
    assert gap.gap.paired.interval.low <= 0.2 <= gap.gap.paired.interval.high
    assert gap.gap.unscored == 1


def test_an_unscored_answer_is_not_wrong_in_what_became_of_it() -> None:
    """Right closed book and unscored with the source is no sign of memory: it is counted apart."""
    rows = [outcome("a", "closed", True), outcome("a", "oracle", None), outcome("b", "closed", None)]
    rows += [outcome("b", "oracle", None), outcome("c", "closed", True), outcome("c", "oracle", False)]
    [gap] = book_gaps(rows, {})
    assert (gap.both, gap.closed_only, gap.oracle_only, gap.neither, gap.unscored) == (0, 1, 0, 0, 2)
    assert gap.pairs == 3


def test_gaps_are_taken_within_a_protocol_and_by_sample() -> None:
    rows = [outcome("a", f"{how}, letter", right, sample) for how, rights in
            (("closed", (True, False)), ("oracle", (True, True))) for sample, right in enumerate(rights)]  # fmt: skip
    [gap] = book_gaps(rows, {})
    assert (gap.protocol, gap.pairs, gap.both, gap.oracle_only) == ("letter", 2, 1, 1)
    assert book_gaps([outcome("a", "closed", True), outcome("a", "oracle, letter", True)], {}) == []


def test_caveats_never_claim_proof() -> None:
    told = " ".join(CAVEATS.values()).lower()
    assert "consistent with" in told
    assert "prove" not in told
