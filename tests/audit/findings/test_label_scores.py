"""F1 and its kin against scikit-learn, intervals that hold what they should, and the borders that errors cross."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score, precision_recall_fscore_support

from hoofbeat.audit.findings.label_scores import Border, borders, f1_scores, label_table
from hoofbeat.audit.findings.relations import FIVE_RELATIONS

LABELS = FIVE_RELATIONS.order
ONE = st.sampled_from(LABELS)
PAIRS = st.lists(st.tuples(st.one_of(ONE, st.none()), ONE), min_size=1, max_size=60)


@settings(deadline=None, max_examples=60)
@given(PAIRS)
def test_f1_is_scikit_learns(pairs: list[tuple[str | None, str]]) -> None:
    found = f1_scores(label_table(pairs, LABELS), LABELS, samples=20)
    truth = [reference for _, reference in pairs]
    given_labels = [label or "(none)" for label, _ in pairs]
    present = [label for label in LABELS if label in truth or label in given_labels]
    precision, recall, f1, n = precision_recall_fscore_support(
        truth, given_labels, labels=list(LABELS), zero_division=0
    )
    for place, row in enumerate(found.labels):
        assert row.n == n[place]
        assert (row.precision or 0.0) == pytest.approx(precision[place])
        assert (row.recall or 0.0) == pytest.approx(recall[place])
        assert (row.f1 or 0.0) == pytest.approx(f1[place])
        assert (row.f1 is None) == (row.label not in present)
    macro = f1_score(truth, given_labels, labels=present, average="macro", zero_division=0)
    weighted = f1_score(truth, given_labels, labels=list(LABELS), average="weighted", zero_division=0)
    assert found.macro == pytest.approx(macro)
    assert found.weighted == pytest.approx(weighted)


def test_intervals_hold_the_value_and_narrow_with_n() -> None:
    rng = np.random.default_rng(1)
    widths = []
    for n in (50, 800):
        pairs = [(LABELS[label] if rng.random() < 0.8 else LABELS[rng.integers(5)], LABELS[label])
                 for label in rng.integers(5, size=n)]  # fmt: skip
        found = f1_scores(label_table(pairs, LABELS), LABELS, seed=3)
        assert found.macro is not None
        assert found.macro_interval is not None
        assert found.macro_interval.low < found.macro < found.macro_interval.high
        widths.append(found.macro_interval.high - found.macro_interval.low)
        assert f1_scores(label_table(pairs, LABELS), LABELS, seed=3) == found
    assert widths[1] < 0.4 * widths[0]


def test_nothing_has_no_value() -> None:
    found = f1_scores(label_table([], LABELS), LABELS)
    assert (found.macro, found.macro_interval, found.weighted, found.weighted_interval) == (None, None, None, None)
    assert all((row.precision, row.recall, row.f1, row.f1_interval) == (None,) * 4 for row in found.labels)


def test_errors_by_the_border_they_cross() -> None:
    """The shape of the paper's errors: most of them have Complementary on one side."""
    pairs = [("Divergent", "Complementary")] * 8 + [("Consistent", "Complementary")] * 6
    pairs += [("Complementary", "Divergent")] * 2 + [("Contradictory", "Consistent")] + [("Absent", "Contradictory")]
    pairs += [("Consistent", "Consistent")] * 40
    scored: list[tuple[str | None, str]] = [*pairs, (None, "Divergent")]
    found = borders(label_table(scored, LABELS), LABELS, FIVE_RELATIONS.diverging)
    assert (found.errors, found.adjacent, found.distant, found.crossing) == (18, 16, 2, 12)
    assert found.borders[0] == Border(
        lower="Complementary", upper="Divergent", steps=1, over=8, under=2, share=10 / 18, crosses=True
    )
    assert [(row.lower, row.upper, row.over, row.under, row.crosses) for row in found.borders[1:]] == [
        ("Consistent", "Complementary", 0, 6, False),
        ("Consistent", "Contradictory", 1, 0, True),
        ("Absent", "Contradictory", 0, 1, True),
    ]
    assert found.touching == {
        "Absent": 1, "Consistent": 7, "Complementary": 16, "Divergent": 10, "Contradictory": 2
    }  # fmt: skip
    assert sum(row.share for row in found.borders) == pytest.approx(1)


def test_no_errors_no_borders() -> None:
    found = borders(label_table([("Absent", "Absent")], LABELS), LABELS, FIVE_RELATIONS.diverging)
    assert (found.errors, found.borders, found.adjacent) == (0, (), 0)
