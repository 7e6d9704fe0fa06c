"""Clusters of questions: every shared document links, however long the chain."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hoofbeat.findings import clusters_of
from hoofbeat.records import Question


def asked(name: str, *documents: str) -> Question:
    return Question(id=name, text="?", documents=documents)


def test_a_second_document_links_too() -> None:
    found = clusters_of([asked("q1", "d2", "d1"), asked("q2", "d3", "d2"), asked("q3", "d9"), asked("q4")])
    assert found == {"q1": "d1", "q2": "d1", "q3": "d9"}


def test_a_late_question_joins_two_clusters() -> None:
    found = clusters_of([asked("q1", "a"), asked("q2", "b"), asked("q3", "b", "a")])
    assert set(found.values()) == {"a"}


@given(st.lists(st.lists(st.integers(0, 12), max_size=3), max_size=12), st.randoms())
def test_it_is_the_closure_of_sharing_whatever_the_order(documents: list[list[int]], random: st.DataObject) -> None:
    questions = [asked(f"q{n}", *(f"d{d:02}" for d in found)) for n, found in enumerate(documents)]
    reach = {question.id: {question.id} for question in questions if question.documents}
    for _ in questions:
        for one in questions:
            for other in questions:
                if set(one.documents) & set(other.documents):
                    joined = reach[one.id] | reach[other.id]
                    reach[one.id] = reach[other.id] = joined
    found = clusters_of(questions)
    assert found.keys() == reach.keys()
    for name, members in reach.items():
        assert {other for other in found if found[other] == found[name]} == members
    random.shuffle(questions)  # type: ignore[attr-defined]
    assert clusters_of(questions) == found
