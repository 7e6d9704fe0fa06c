"""Decisions on cases keep every version, on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import text

from hoofbeat.audit.case_records import CaseDecision, DisagreementCase, SideWords
from hoofbeat.review.review_records import DatabaseError, ReviewRefusalError
from hoofbeat.review.review_store import ReviewStore

CASE = DisagreementCase(
    id="0123456789abcdef", question="q1", text="How long?", a=SideWords(source="alder", answer="Six weeks."),
    b=SideWords(source="brook", answer="Four weeks.", quotes=("for four weeks",)), label="Divergent",
)  # fmt: skip


@pytest.fixture
def store(store_urls: str) -> Iterator[ReviewStore]:
    with ReviewStore.open(store_urls) as opened:
        yield opened


def decide(store: ReviewStore, person: str, base: int, request: str, **more: Any) -> CaseDecision:
    given: dict[str, Any] = {"status": "accepted", "audit": "first", **more}
    return store.decide_case(CASE, person, base=base, request=request, **given)


def test_every_version_stays_signed_and_dated(store: ReviewStore) -> None:
    ada, _ = store.invite("Dr. Ada", "adjudicator", by="test")
    bob, _ = store.invite("Dr. Bob", "admin", by="test")
    first = decide(store, ada.id, 0, "r1", status="open", owner="Ward 3\x00", note="Looked at.")
    second = decide(store, bob.id, 1, "r2", status="follow", follow="brook", position="Four weeks here.")
    assert store.case_history(CASE.id) == [first, second]
    assert store.case_decisions() == {CASE.id: second}
    assert (first.owner, first.name, first.seen) == ("Ward 3", "Dr. Ada", CASE)
    assert (second.status_words(), second.name, second.version) == ("follow brook", "Dr. Bob", 2)
    assert second.at >= first.at > 1e9
    trail = store.trail(what="case decided", item=CASE.id)
    assert [(each.person, (each.after or {})["status"]) for each in trail] == [(ada.id, "open"), (bob.id, "follow")]
    assert (trail[1].before or {})["note"] == "Looked at."


def test_a_save_that_is_sent_again_counts_once_and_a_stale_one_is_refused(store: ReviewStore) -> None:
    ada, _ = store.invite("Dr. Ada", "adjudicator", by="test")
    first = decide(store, ada.id, 0, "r1")
    assert decide(store, ada.id, 0, "r1") == first
    with pytest.raises(ReviewRefusalError, match="someone else has decided") as caught:
        decide(store, ada.id, 0, "r2")
    assert caught.value.status == 409
    with pytest.raises(ReviewRefusalError, match="another save"):
        store.decide_case(replace(CASE, id="other"), ada.id, status="open", request="r1")
    assert len(store.case_history()) == 1


def test_who_may_not_decide_and_what_is_not_taken(store: ReviewStore) -> None:
    ada, _ = store.invite("Dr. Ada", "adjudicator", by="test")
    rev, _ = store.invite("Dr. Rev", "reviewer", by="test")
    for person, given, words in (
        (rev.id, {}, "only adjudicators"),
        ("nobody", {}, "no longer valid"),
        (ada.id, {"status": "done"}, "no status 'done'"),
        (ada.id, {"status": "follow"}, "no source to follow"),
        (ada.id, {"status": "follow", "follow": "cairn"}, "not one of the two that disagree"),
        (ada.id, {"note": "x" * 4001}, "the note is too long"),
        (ada.id, {"owner": "x" * 201}, "the owner is too long"),
    ):
        with pytest.raises(ReviewRefusalError, match=words):
            decide(store, person, 0, "r", **given)
    with pytest.raises(ReviewRefusalError, match="needs an id"):
        decide(store, ada.id, 0, "no spaces")
    assert store.case_history() == []


@pytest.mark.parametrize(
    "statement", ["UPDATE review_case_decisions SET note='x'", "DELETE FROM review_case_decisions"]
)
def test_the_database_itself_refuses_to_change_a_decision(store: ReviewStore, statement: str) -> None:
    ada, _ = store.invite("Dr. Ada", "adjudicator", by="test")
    decide(store, ada.id, 0, "r1")
    with pytest.raises(DatabaseError), store._database.write() as connection:
        connection.execute(text(statement))
    assert len(store.case_history()) == 1
