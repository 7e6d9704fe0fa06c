"""A validation as a whole: references, people, judge and significance, against scikit-learn and by hand."""

from __future__ import annotations

import random

import msgspec
import pytest
from sklearn.metrics import cohen_kappa_score

from hoofbeat.audit.findings.relations import FIVE_RELATIONS
from hoofbeat.audit.findings.validation_figures import (
    RatedPair,
    Reference,
    Validation,
    judge_scores,
    reference,
    validation,
)

LABELS = FIVE_RELATIONS.order
LEVELS = ("low", "medium", "high")


def rated(judge: str, *labels: str, number: int = 0, levels: tuple[str, ...] = (), **more: str) -> RatedPair:
    return RatedPair(
        item=f"i{number}", question=f"q{number}", a="a", b="b", judge=judge,
        labels={f"p{place}": label for place, label in enumerate(labels) if label},
        significances={f"p{place}": level for place, level in enumerate(levels) if level},
        **more,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (rated("Divergent", "Divergent", "Divergent", levels=("low", "low")), ("Divergent", "low", "unanimous")),
        (rated("Divergent", "Divergent", "Divergent", levels=("low", "high")), ("Divergent", None, "unanimous")),
        (rated("Divergent", "Divergent", "Consistent", levels=("low",)), (None, None, "split")),
        (rated("Divergent", "Divergent", "Absent", "Divergent", levels=("high", "", "high")),
         ("Divergent", "high", "majority")),
        (rated("Divergent", "Divergent", "Absent", "Consistent"), (None, None, "split")),
        (rated("Divergent", "Divergent", "Divergent", "Absent", "Absent"), (None, None, "split")),
        (rated("Divergent", "Divergent", "", levels=("high",)), ("Divergent", "high", "single")),
        (rated("Divergent"), (None, None, "none")),
        (rated("Divergent", "Consistent", "Absent", adjudicated="Divergent", adjudicated_significance="low"),
         ("Divergent", "low", "adjudicated")),
        (rated("Divergent", "Divergent", "Absent", adjudicated="Divergent", levels=("high",)),
         ("Divergent", "high", "adjudicated")),
    ],
)  # fmt: skip
def test_what_people_say_together(row: RatedPair, expected: tuple[str | None, str | None, str]) -> None:
    label, significance, how = expected
    assert reference(row) == Reference(label=label, significance=significance, how=how)  # type: ignore[arg-type]


def noisy(seed: int = 5, n: int = 300, wrong: float = 0.25) -> list[RatedPair]:
    rng = random.Random(seed)
    rows = []
    for number in range(n):
        truth = rng.choice(LABELS)
        said = [truth if rng.random() > wrong else rng.choice(LABELS) for _ in range(3)]
        levels = [rng.choice(LEVELS) if label in FIVE_RELATIONS.diverging else "" for label in said]
        rows.append(
            rated(
                said[0],
                *said[1:],
                number=number,
                levels=tuple(levels[1:]),
                **({"judge_significance": levels[0]} if levels[0] else {}),
            )
        )
    return rows


def whole(rows: list[RatedPair], **more: int) -> Validation:
    counts = {label: 10 * sum(row.judge == label for row in rows) for label in LABELS}
    return validation(rows, counts, FIVE_RELATIONS, LEVELS, **more)


def test_kappas_are_scikit_learns() -> None:
    rows = noisy()
    found = whole(rows)
    assert found.people is not None
    (people,) = found.people.pairs
    one, two = ([row.labels[name] for row in rows] for name in ("p0", "p1"))
    order = list(LABELS)
    assert people.agreement == pytest.approx(sum(a == b for a, b in zip(one, two, strict=True)) / 300)
    assert people.linear is not None
    assert people.quadratic is not None
    for kappa, weights in ((people.kappa, None), (people.linear, "linear"), (people.quadratic, "quadratic")):
        assert kappa.value == pytest.approx(cohen_kappa_score(one, two, labels=order, weights=weights))
        assert kappa.value is not None
        assert kappa.interval is not None
        assert kappa.interval.low < kappa.value < kappa.interval.high
    agreed = [(row.judge, row.labels["p0"]) for row in rows if row.labels["p0"] == row.labels["p1"]]
    judge, gold = [pair[0] for pair in agreed], [pair[1] for pair in agreed]
    assert found.references == {"split": 300 - len(agreed), "unanimous": len(agreed)}
    assert found.judge.agreement.n == len(agreed)
    assert found.judge.agreement.kappa == pytest.approx(cohen_kappa_score(judge, gold))
    assert found.judge.quadratic.value == pytest.approx(
        cohen_kappa_score(judge, gold, labels=order, weights="quadratic")
    )
    right = sum(a == b for a, b in agreed)
    assert found.judge.sensitivity == pytest.approx((right / 300, (right + 300 - len(agreed)) / 300))
    each = found.by_annotator["p1"]
    assert each.kappa == pytest.approx(cohen_kappa_score([row.judge for row in rows], two))
    assert found.agreed is None


def test_significance_over_pairs_that_both_rate() -> None:
    rows = noisy()
    found = whole(rows).significance
    assert found is not None
    both = [
        (row.judge_significance, row.significances["p0"])
        for row in rows
        if row.judge_significance and "p0" in row.significances
    ]
    assert found.by_annotator["p0"].n == len(both)
    assert found.by_annotator["p0"].kappa == pytest.approx(cohen_kappa_score(*zip(*both, strict=True)))
    settled = [(row.judge_significance, reference(row).significance) for row in rows]
    assert found.agreement.n == sum(bool(a and b) for a, b in settled) > 10
    assert found.annotators is not None
    assert found.annotators.pairs[0].linear is not None
    assert whole([msgspec.structs.replace(row, significances={}) for row in rows]).significance is None


def test_adjudication_counts_before_the_majority() -> None:
    rows = [rated("Divergent", "Divergent", "Divergent", number=0), rated("Divergent", "Absent", "Divergent", number=1),
            rated("Consistent", "Consistent", "Consistent", number=2, adjudicated="Complementary"),
            rated("Divergent", "Absent", "Consistent", number=3, adjudicated="Divergent")]  # fmt: skip
    found = whole(rows)
    assert found.references == {"adjudicated": 2, "split": 1, "unanimous": 1}
    assert found.judge.agreement.n == 3
    assert found.judge.agreement.accuracy == pytest.approx(2 / 3)
    assert found.agreed is not None
    assert (found.agreed.n, found.agreed.accuracy) == (2, 1.0)


def test_three_annotators_have_an_alpha_and_a_majority() -> None:
    rng = random.Random(2)
    rows = [
        rated(
            "Divergent", *(rng.choice(LABELS) if rng.random() < 0.3 else "Divergent" for _ in range(3)), number=number
        )
        for number in range(80)
    ]
    found = whole(rows)
    assert found.people is not None
    assert len(found.people.pairs) == 3
    assert found.people.nominal.value is not None
    assert found.references["majority"] > 0
    assert found.references.keys() <= {"majority", "split", "unanimous"}


def test_one_annotator_and_none() -> None:
    found = whole([rated("Divergent", "Divergent"), rated("Absent", number=1)])
    assert (found.pairs, found.people, found.references) == (1, None, {"single": 1})
    empty = whole([])
    assert (empty.pairs, empty.judge.agreement.n, empty.judge.f1.macro) == (0, 0, None)


def test_by_how_the_label_came_about() -> None:
    rows = [rated("Divergent", "Divergent", number=n, basis="group") for n in range(4)]
    rows += [rated("Divergent", "Consistent", number=n, basis="judged") for n in range(4, 7)]
    found = whole(rows).by_basis
    assert {name: (each.n, each.accuracy) for name, each in found.items()} == {"group": (4, 1.0), "judged": (3, 0.0)}


def test_the_order_of_rows_does_not_matter_and_the_seed_does() -> None:
    rows = noisy(n=80)
    turned = [msgspec.structs.replace(row, labels=dict(reversed(row.labels.items()))) for row in reversed(rows)]
    assert whole(rows, seed=3) == whole(turned, seed=3)
    assert whole(rows, seed=3) != whole(rows, seed=4)


def test_a_failure_is_a_miss_and_no_find() -> None:
    found = judge_scores([("Divergent", "Divergent"), (None, "Divergent")], FIVE_RELATIONS)
    assert (found.agreement.unscored, found.agreement.accuracy) == (1, 0.5)
    (row,) = [row for row in found.f1.labels if row.label == "Divergent"]
    assert (row.precision, row.recall) == (1.0, 0.5)
    assert row.f1 == pytest.approx(2 / 3)
    assert found.borders.errors == 0


def test_figures_come_back_from_json() -> None:
    found = whole(noisy(n=60))
    assert msgspec.json.decode(msgspec.json.encode(found), type=Validation) == found
