from __future__ import annotations

import polars
import pytest
from hypothesis import given, settings

from hoofbeat.audit.findings.pair_arrays import counts_by, each_matrix, label_counts, pairs_of, question_matrix
from hoofbeat.audit.findings.relations import RelationLabels, groups_of
from hoofbeat.errors import InputError
from hoofbeat.records import Comparison
from tests.audit.findings.support import QUESTIONS, audit, audits, plain_table, table


@settings(deadline=None, max_examples=25)
@given(audits)
def test_counts_are_the_same_of_any_table(questions: dict[str, str]) -> None:
    rows = audit(questions)
    groups = counts_by(table(rows), QUESTIONS, "organ")
    for name, found in groups.items():
        asked = [q.id for q in QUESTIONS if name in groups_of(q, "organ")]
        assert found == label_counts(table([row for row in rows if row.question in asked]), asked)
    for frame in (table(rows).lazy(), plain_table(rows), pairs_of(table(rows))):
        assert label_counts(frame) == label_counts(table(rows))
        assert label_counts(frame, QUESTIONS) == label_counts(table(rows), [question.id for question in QUESTIONS])
        assert counts_by(frame, QUESTIONS, "organ") == groups


@settings(deadline=None, max_examples=20)
@given(audits)
def test_matrices_are_those_of_the_records(questions: dict[str, str]) -> None:
    rows = audit(questions)
    for grid in each_matrix(table(rows)):
        cells = {(row.a, row.b): row.label for row in rows if row.question == grid.question}
        for row, a in enumerate(grid.sources):
            for column, b in enumerate(grid.sources):
                expected = "Consistent" if a == b else cells[min(a, b), max(a, b)]
                assert grid.labels[row][column] == expected
        for frame in (table(rows), plain_table(rows).lazy(), pairs_of(table(rows))):
            assert question_matrix(frame, grid.question) == grid


def test_nothing_at_all() -> None:
    empty = table([])
    found = label_counts(empty, ["q1"])
    assert (found.questions, found.pairs, found.r_div.value, found.any_div.value) == (1, 0, None, 0.0)
    assert list(each_matrix(empty)) == []
    with pytest.raises(InputError, match="'q9' has no pair"):
        question_matrix(empty, "q9")
    with pytest.raises(InputError, match="'q9' has no pair"):
        question_matrix(pairs_of(empty), "q9")


def test_what_is_wrong_is_said() -> None:
    rows = audit({"a": "cdm---"})
    with pytest.raises(InputError, match="'Odd' between 's1' and 's2' on question 'q'"):
        label_counts(
            plain_table([Comparison(question="q", a="s1", b="s2", label="Absent")]).with_columns(
                label=polars.lit("Odd")
            )
        )
    with pytest.raises(InputError, match="unknown label ''"):
        label_counts(table([Comparison(question="q", a="s1", b="s2")]))
    with pytest.raises(InputError, match="'a' is not in the benchmark"):
        counts_by(table(rows), QUESTIONS[1:], "organ")
    with pytest.raises(InputError, match="'s1' and 's2' are compared twice on question 'a'"):
        list(each_matrix(table([*rows, rows[0]])))
    with pytest.raises(InputError, match="a pair has no question"):
        label_counts(table(rows).with_columns(question=polars.lit(None, polars.String)))
    with pytest.raises(InputError, match="a pair names the question 'a'"):
        pairs_of(table(rows), questions=["b", "c"])


def test_another_domain_brings_its_labels() -> None:
    legal = RelationLabels(order=("Silent", "Same", "Split"), absent="Silent", consistent="Same", diverging=("Split",))
    rows = [
        Comparison(question="q", a="x", b="y", label="Same"),
        Comparison(question="q", a="x", b="z", label="Split"),
        Comparison(question="q", a="y", b="z", label="Silent"),
    ]
    frame = polars.DataFrame(
        [{"question": r.question, "a": r.a, "b": r.b, "label": r.label, "failure": None} for r in rows]
    )
    found = label_counts(frame, (), legal)
    assert (found.r_div.value, found.r_con.value) == (0.5, 0.5)


def test_the_lesser_source_comes_first_whatever_the_table_says() -> None:
    turned = plain_table([Comparison(question="q", a="z", b="b", label="Divergent")])
    pairs = pairs_of(turned)
    assert (pairs.sources[pairs.a[0]], pairs.sources[pairs.b[0]]) == ("b", "z")
