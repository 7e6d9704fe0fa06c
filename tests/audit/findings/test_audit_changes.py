from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import assume, given, settings

from hoofbeat.audit.findings.audit_changes import (
    KINDS,
    changed_pairs,
    coverage_changes,
    label_shift,
    split_between,
    split_by,
)
from hoofbeat.audit.findings.pair_arrays import pairs_of
from hoofbeat.audit.findings.relations import FIVE_RELATIONS, RelationLabels
from hoofbeat.audit.findings.table_agreement import join
from hoofbeat.errors import InputError, UsageError
from hoofbeat.records import Answer, Comparison, Failure
from tests.audit.findings.support import QUESTIONS, audit, audits, plain_table, table

ORDER = FIVE_RELATIONS.order


@settings(deadline=None, max_examples=25)
@given(audits, audits)
def test_the_split_is_the_same_of_any_table_and_of_a_group_alone(one: dict[str, str], two: dict[str, str]) -> None:
    assume(one.keys() & two.keys())
    before, after = audit(one), audit(two)
    expected = split_between(join(table(before), table(after)), samples=40, seed=3)
    assert split_between(join(plain_table(before), plain_table(after).lazy()), samples=40, seed=3) == expected
    groups = split_by(join(table(before), table(after)), QUESTIONS, "organ", samples=40, seed=3)
    for name, found in groups.items():
        mine = {
            q.id for q in QUESTIONS if name in (q.facets.get("organ", "(none)"), *q.facets.get("organ", ["(none)"]))
        }
        first, second = ([row for row in rows if row.question in mine] for rows in (before, after))
        assert found == split_between(join(table(first), table(second)), samples=40, seed=3)
        assert split_between(join(table(before), table(after)), mine, samples=40, seed=3) == found


@settings(deadline=None, max_examples=60)
@given(audits, audits)
def test_labels_that_moved_are_counted_and_listed(one: dict[str, str], two: dict[str, str]) -> None:
    before, after = audit(one, "lmh"), audit(two, "hl")
    old, new = ({(row.question, row.a, row.b): row for row in rows} for rows in (before, after))
    shared = sorted(old.keys() & new.keys())
    joined = join(table(before), plain_table(after))
    shift = label_shift(joined)
    counts = Counter((old[key].label, new[key].label) for key in shared)
    assert shift.labels == (*ORDER, "")
    assert {
        (shift.labels[i], shift.labels[j]): n for i, row in enumerate(shift.counts) for j, n in enumerate(row) if n
    } == counts
    assert (shift.pairs, shift.same) == (len(shared), sum(old[key].label == new[key].label for key in shared))
    assert (shift.only_before, shift.only_after) == (len(old) - len(shared), len(new) - len(shared))
    listed = changed_pairs(joined, table(before).lazy(), plain_table(after))
    moved = [key for key in shared if old[key].label != new[key].label]
    assert sorted(listed.select("question", "a", "b").rows()) == moved
    places = []
    for row in listed.iter_rows(named=True):
        key = row["question"], row["a"], row["b"]
        first, second = old[key], new[key]
        assert (row["before"], row["after"]) == (first.label, second.label)
        assert (row["topic_before"], row["significance_before"]) == (first.topic, first.significance)
        assert (row["topic_after"], row["significance_after"]) == (second.topic, second.significance)
        if not first.label or not second.label:
            kind = "without a label"
        else:
            kind = {True: "answered now", False: "judged in both"}[first.label == "Absent"]
            kind = "silent now" if second.label == "Absent" else kind
        assert row["kind"] == kind
        steps = abs(
            (ORDER.index(first.label) if first.label else -1) - (ORDER.index(second.label) if second.label else -1)
        )
        places.append((KINDS.index(kind), -steps, key))
    assert places == sorted(places)


def test_tables_that_cannot_be_laid_over_each_other() -> None:
    rows = audit({"a": "cd----"})
    with pytest.raises(InputError, match="share no question"):
        split_between(join(table(rows), table(audit({"b": "cd----"}))))
    with pytest.raises(InputError, match="compared twice"):
        join(table([*rows, rows[1]]), table(rows))
    legal = RelationLabels(order=("Absent", "Same"), absent="Absent", consistent="Same", diverging=())
    other = pairs_of(table([Comparison(question="a", a="s1", b="s2", label="Absent")]), legal)
    with pytest.raises(UsageError, match="different labels"):
        join(pairs_of(table(rows)), other)


def test_sources_of_one_audit_only_are_no_shared_pairs() -> None:
    before = [Comparison(question="q", a="a", b="m", label="Divergent")]
    after = [*before, Comparison(question="q", a="b", b="m", label="Divergent")]
    joined = join(table(before), table(after))
    assert joined.before.sources == ("a", "b", "m")
    assert (label_shift(joined).pairs, label_shift(joined).only_after) == (1, 1)


def test_coverage_changes_by_hand() -> None:
    def told(marks: str, source: str = "s") -> list[Answer]:
        return [
            Answer(
                question=f"q{number:02}", model="m", condition="source", source=source,
                absent={"1": False, "0": True, "?": None, "!": None}[mark],
                failure=Failure(kind="timeout", message="x") if mark == "!" else None,
            )
            for number, mark in enumerate(marks)
        ]  # fmt: skip

    first, second, third = coverage_changes(
        [*told("0011?1"), *told("01", "gone")], [*told("1011110"), *told("11", "new")]
    )
    assert (first.source, second.source, third.source) == ("gone", "new", "s")
    assert (first.coverage, first.shared, first.change, first.interval) == ((0.5, None), 0, None, None)
    assert (second.coverage, second.planned) == ((None, 1.0), (0, 2))
    assert (third.planned, third.shared, third.gained, third.lost) == ((6, 7), 5, 1, 0)
    assert third.coverage == (3 / 6, 5 / 7)
    assert third.change == pytest.approx(1 / 5)
    assert third.interval is not None
    assert third.interval.low <= 0.2 <= third.interval.high
    assert third.p == 1.0
    (many,) = coverage_changes(told("0" * 20), told("1" * 20))
    assert many.change == 1.0
    assert many.p == pytest.approx(2 / 2**20)
