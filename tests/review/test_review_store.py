"""The review store keeps every promise of its methods, on SQLite and on PostgreSQL."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import text

from hoofbeat.errors import UsageError
from hoofbeat.review.review_records import (
    Assignment,
    DatabaseError,
    ItemMaterial,
    ReviewItem,
    ReviewRefusalError,
    SaveResult,
    Study,
)
from hoofbeat.review.review_store import ReviewStore
from tests.review.stores import make_study

DAY = 24 * 3600.0


@pytest.fixture
def store(store_urls: str) -> Iterator[ReviewStore]:
    with ReviewStore.open(store_urls) as opened:
        yield opened


def save(store: ReviewStore, person: str, base: int, request: str, item: str = "item-0", **more: Any) -> SaveResult:
    given: dict[str, Any] = {"values": {"quality": base + 1}, "state": "draft", "seconds": 1.0, **more}
    return store.save("study", item, person, base=base, request=request, **given)


def missing(store: ReviewStore, item: str) -> bool:
    """Whether there is no such item, be it said by nothing or by a refusal."""
    try:
        return store.item("study", item) is None
    except ReviewRefusalError as err:
        return err.status == 404


def test_a_study_comes_back_as_it_was_given(store: ReviewStore) -> None:
    study, _, _ = make_study(store, items=3, labels=["a", "b"], nested={"ß": [1, None, 2.5]})
    assert store.study("study") == study
    assert store.studies() == [study]
    assert [item.id for item in store.items("study")] == ["item-0", "item-1", "item-2"]
    item = store.item("study", "item-1")
    assert item is not None
    assert (item.place, item.stratum, item.shown[0].text) == (1, "odd", "An invented case, number 1.")
    assert store.item("study", "other") is None
    assert store.study("other") is None
    assert store.items("other") == []


def test_the_same_study_again_is_nothing_and_another_of_its_name_is_refused(store: ReviewStore) -> None:
    study, _, _ = make_study(store, items=2)
    before = store.trail_size()
    store.create_study(study, store.items("study"))
    assert store.trail_size() == before
    with pytest.raises(UsageError, match="another study"):
        store.create_study(replace(study, title="Other"), store.items("study"))
    changed = replace(store.items("study")[0], group="other")
    with pytest.raises(UsageError, match="another study"):
        store.create_study(study, [changed])


@pytest.mark.parametrize("name", ["people", "", "../x", "a b", "a/b", "x" * 101])
def test_a_study_whose_name_can_not_stand_in_an_address_is_refused(store: ReviewStore, name: str) -> None:
    with pytest.raises(UsageError, match="can't be called"):
        store.create_study(Study(id=name, title="", form="likert", source="", source_sha256=""), [])


def test_items_of_another_study_or_twice_the_same_leave_nothing_behind(store: ReviewStore) -> None:
    study = Study(id="s", title="", form="likert", source="", source_sha256="")
    one = ReviewItem(id="a", study="s", place=0, shown=())
    for items in ([one, replace(one, study="other")], [one, one], [one, replace(one, id="a/b")]):
        with pytest.raises(UsageError):
            store.create_study(study, items)
    assert store.studies() == []
    assert store.trail() == []


def test_items_are_added_once(store: ReviewStore) -> None:
    make_study(store, items=2)
    more = [
        ReviewItem(id=f"item-{n}", study="study", place=n, shown=(ItemMaterial(title="t"),), stage="revision")
        for n in (1, 2)
    ]
    store.add_items("study", more, by="admin")
    store.add_items("study", more, by="admin")
    assert [item.stage for item in store.items("study")] == ["", "", "revision"]
    assert [event.after for event in store.trail(what="items added")] == [{"items": ["item-2"]}]
    with pytest.raises(ReviewRefusalError, match="this study does not exist"):
        store.add_items("other", [], by="admin")


def test_an_invitation_lets_its_person_in_until_it_is_renewed_or_revoked(store: ReviewStore) -> None:
    person, token = store.invite("  Ada   Example ", "reviewer", by="x", groups=["cardiology"])
    assert (person.name, person.groups) == ("Ada Example", ("cardiology",))
    assert store.invited(token) == person
    assert store.person(person.id) == person
    signed = store.sign_in(token)
    assert signed is not None
    assert store.session(signed[1]) == replace(person, link_used=signed[0].link_used)
    again = store.renew(person.id, "x")
    assert store.sign_in(token) is None
    assert store.session(signed[1]) is None
    signed = store.sign_in(again)
    assert signed is not None
    store.revoke(person.id, "x")
    assert store.sign_in(again) is None
    assert store.session(signed[1]) is None
    assert [each.active for each in store.people()] == [False]
    assert store.sign_in(store.renew(person.id, "x")) is not None
    assert [event.what for event in store.trail()] == [
        "invited", "signed in", "renewed", "signed in", "revoked", "renewed", "signed in",
    ]  # fmt: skip


def test_a_link_works_once_and_until_it_ends(store: ReviewStore) -> None:
    person, token = store.invite("Ada Example", "reviewer", by="x", days=2)
    assert person.link_until == pytest.approx(time.time() + 2 * DAY, abs=60)
    assert (store.person(person.id), person.link_trouble(time.time())) == (person, "")
    signed = store.sign_in(token)
    assert signed is not None
    assert store.sign_in(token) is None
    known = store.invited(token)
    assert known is not None
    assert "works once" in known.link_trouble(time.time())
    assert store.session(signed[1]) is not None, "the session goes on"
    late = store.renew(person.id, "x", days=-1)
    assert store.sign_in(late) is None
    known = store.invited(late)
    assert known is not None
    assert "this link ended on" in known.link_trouble(time.time())
    assert store.sign_in(store.renew(person.id, "x")) is not None


def test_of_many_who_use_a_link_at_once_one_comes_in(store: ReviewStore) -> None:
    _, token = store.invite("Ada Example", "reviewer", by="x")
    with ThreadPoolExecutor(8) as threads:
        signed = list(threads.map(lambda _: store.sign_in(token), range(8)))
    assert sum(each is not None for each in signed) == 1


def test_links_of_an_older_store_have_a_week(store_urls: str) -> None:
    with ReviewStore.open(store_urls) as store:
        _, token = store.invite("Ada Example", "reviewer", by="x")
        with store._database.write() as connection:
            for table, name in (("studies", "made_from"), ("people", "token_until"), ("people", "token_used")):
                connection.execute(text(f"ALTER TABLE review_{table} DROP COLUMN {name}"))
            connection.execute(text("UPDATE review_schema SET version=3"))
    with ReviewStore.open(store_urls) as store:
        (person,) = store.people()
        assert person.link_until == pytest.approx(time.time() + 7 * DAY, abs=60)
        assert store.sign_in(token) is not None


def test_a_session_is_prolonged(store: ReviewStore) -> None:
    signed = store.sign_in(store.invite("Ada Example", "reviewer", by="x")[1], hours=1)
    assert signed is not None
    store.prolong(signed[1], hours=48)
    found = store.session_until(signed[1])
    assert found is not None
    assert found[1] == pytest.approx(time.time() + 2 * DAY, abs=60)


def test_a_session_ends_by_leaving_and_by_time(store: ReviewStore) -> None:
    first, second = (
        store.sign_in(store.invite("Ada Example", "reviewer", by="x")[1], hours=hours) for hours in (1, -1)
    )
    assert first is not None
    assert second is not None
    assert store.session(second[1]) is None
    store.sign_out(first[1])
    store.sign_out(first[1])
    assert store.session(first[1]) is None
    assert len(store.trail(what="signed out")) == 1


@pytest.mark.parametrize("name", ["", "   ", "x" * 121, "a\u202eb", "a\x00b"])
def test_a_name_must_be_one(store: ReviewStore, name: str) -> None:
    with pytest.raises(UsageError, match="a name has"):
        store.invite(name, "reviewer", by="x")


def test_what_is_no_role_or_study_or_person_is_refused(store: ReviewStore) -> None:
    with pytest.raises(UsageError, match="no such role"):
        store.invite("Ada", "owner", by="x")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no study"):
        store.invite("Ada", "reviewer", by="x", studies=["none"])
    for act in (store.renew, store.revoke):
        with pytest.raises(ReviewRefusalError, match="no such person"):
            act("p-none", "x")
    assert store.people() == []


def test_assignments_come_in_the_order_of_each_list_and_only_once(store: ReviewStore) -> None:
    _, (ada, ben), _ = make_study(store, items=3)
    store.assign("study", [Assignment(study="study", item="item-0", person=ada.id, place=9)], by="x")
    assert [row.item for row in store.assignments("study", ada.id)] == ["item-0", "item-1", "item-2"]
    assert len(store.assignments("study")) == 6
    assert {row.person for row in store.assignments("study")} == {ada.id, ben.id}
    for wrong in ({"item": "none"}, {"person": "p-none"}, {"study": "other"}):
        row = replace(Assignment(study="study", item="item-0", person=ada.id, place=0), **wrong)
        with pytest.raises(ReviewRefusalError, match="not there"):
            store.assign("study", [row], by="x")


def test_saves_count_versions_and_leave_each_in_the_trail(store: ReviewStore) -> None:
    _, (ada, ben), _ = make_study(store)
    assert store.label("study", "item-0", ada.id) is None
    first = save(store, ada.id, 0, "r1", seconds=4.5)
    second = save(store, ada.id, 1, "r2", state="skipped", reason="can't tell\x00", seconds=2.0)
    assert not first.conflict
    assert (second.label.version, second.label.state, second.label.reason) == (2, "skipped", "can't tell")
    assert second.label.seconds == 4.5  # time spent never goes back
    assert store.label("study", "item-0", ada.id) == second.label
    save(store, ben.id, 0, "r1", state="done")
    assert len(store.labels("study")) == 2
    assert store.labels("study", person=ada.id) == [second.label]
    assert [label.person for label in store.labels("study", states=["done"])] == [ben.id]
    told = store.trail(study="study", item="item-0", person=ada.id)
    assert [(event.what, (event.before or {}).get("version"), (event.after or {})["version"]) for event in told] == [
        ("saved", None, 1),
        ("saved", 1, 2),
    ]


def test_a_save_that_is_sent_again_is_the_same_save(store: ReviewStore) -> None:
    _, (ada, _), _ = make_study(store)
    said: dict[str, Any] = {"quality": 5, "note": "naïve \U0001f40e"}
    first = save(store, ada.id, 0, "r1", values=said)
    assert save(store, ada.id, 0, "r1", values=said) == first
    for other in ({"values": {"quality": 1}}, {"values": said, "state": "done"}):  # Back, changed and sent
        assert save(store, ada.id, 0, "r1", **other) == SaveResult(label=first.label, conflict=True)
    second = save(store, ada.id, 1, "r2")
    assert save(store, ada.id, 0, "r1", values=said) == first
    assert store.label("study", "item-0", ada.id) == second.label
    assert len(store.trail(what="saved")) == 2
    with pytest.raises(ReviewRefusalError, match="used for another"):
        save(store, ada.id, 0, "r1", item="item-1")
    with pytest.raises(ReviewRefusalError, match="used for another"):
        store.undo("study", "item-0", ada.id, request="r1")


def test_a_save_on_what_another_tab_has_changed_is_not_taken(store: ReviewStore) -> None:
    _, (ada, _), _ = make_study(store)
    stands = save(store, ada.id, 0, "r1").label
    assert save(store, ada.id, 0, "r2", values={"quality": 9}) == SaveResult(label=stands, conflict=True)
    assert save(store, ada.id, 7, "r3") == SaveResult(label=stands, conflict=True)
    unknown = save(store, ada.id, 3, "r4", item="item-1")
    assert unknown.conflict
    assert unknown.label.version == 0
    assert store.label("study", "item-1", ada.id) is None
    assert len(store.trail(what="saved")) == 1


def test_undo_goes_back_step_by_step_and_a_new_save_goes_on_from_there(store: ReviewStore) -> None:
    _, (ada, _), _ = make_study(store)
    for base, value in enumerate("abc"):
        save(store, ada.id, base, f"r{base}", values={"v": value}, state="done" if value == "b" else "draft")
    seen = [store.undo("study", "item-0", ada.id, request=f"u{n}").label for n in range(2)]
    assert [(label.values["v"], label.state, label.version) for label in seen] == [("b", "done", 4), ("a", "draft", 5)]
    assert store.undo("study", "item-0", ada.id, request="u1").label == seen[1]  # sent again
    save(store, ada.id, 5, "r9", values={"v": "d"})
    values = [store.undo("study", "item-0", ada.id, request=f"w{n}").label.values for n in range(2)]
    assert values == [{"v": "a"}, {}]
    with pytest.raises(ReviewRefusalError, match="nothing to undo"):
        store.undo("study", "item-0", ada.id, request="w9")
    with pytest.raises(ReviewRefusalError, match="nothing to undo"):
        store.undo("study", "item-1", ada.id, request="w8")
    versions = [(event.after or {})["version"] for event in store.trail(item="item-0")]
    assert versions == list(range(1, 9))


def test_who_may_not_label_is_refused_and_nothing_is_kept(store: ReviewStore) -> None:
    _, (ada, _), _ = make_study(store)
    outsider, _ = store.invite("Cleo", "admin", by="x")
    before = store.trail_size()
    for study, item, person, words, status in (
        ("none", "item-0", ada.id, "this study does not exist", 404),
        ("study", "none", ada.id, "no such item", 404),
        ("study", "item-0", outsider.id, "not assigned", 403),
        ("study", "item-0", "p-none", "no longer valid", 403),
    ):
        with pytest.raises(ReviewRefusalError, match=words) as caught:
            store.save(study, item, person, values={}, state="done", seconds=0, base=0, request="r")
        assert caught.value.status == status
    store.revoke(ada.id, "x")
    with pytest.raises(ReviewRefusalError, match="no longer valid"):
        save(store, ada.id, 0, "r")
    assert store.labels("study") == []
    assert store.trail_size() == before + 1


def test_a_closed_study_takes_nothing_more(store: ReviewStore) -> None:
    _, (ada, ben), _ = make_study(store, people=["reviewer", "adjudicator"])
    first = save(store, ada.id, 0, "r1")
    store.close_study("study", "x")
    store.close_study("study", "x")
    assert [study.closed for study in store.studies()] == [True]
    with pytest.raises(ReviewRefusalError, match="closed"):
        save(store, ada.id, 1, "r2")
    with pytest.raises(ReviewRefusalError, match="closed"):
        store.undo("study", "item-0", ada.id, request="u1")
    with pytest.raises(ReviewRefusalError, match="closed"):
        store.decide("study", "item-0", ben.id, values={}, request="d1")
    assert save(store, ada.id, 0, "r1") == first  # the answer to a save that was taken before
    assert len(store.trail(what="study closed")) == 1


def test_decisions_have_versions_and_only_adjudicators_make_them(store: ReviewStore) -> None:
    _, (ada, ben, cleo), _ = make_study(store, people=["reviewer", "adjudicator", "admin"])
    with pytest.raises(ReviewRefusalError, match="only adjudicators"):
        store.decide("study", "item-0", ada.id, values={}, request="d")
    first = store.decide("study", "item-0", ben.id, values={"quality": 4}, note="agreed by phone", request="d1")
    assert store.decide("study", "item-0", ben.id, values={"quality": 4}, request="d1") == first
    with pytest.raises(ReviewRefusalError, match="settled this item meanwhile"):
        store.decide("study", "item-0", ben.id, values={"quality": 1}, request="d1")
    with pytest.raises(ReviewRefusalError, match="meanwhile") as caught:
        store.decide("study", "item-0", cleo.id, values={"quality": 2}, request="d2")
    assert caught.value.status == 409
    second = store.decide("study", "item-0", cleo.id, values={"quality": 2}, base=1, request="d3")
    assert (first.version, second.version) == (1, 2)
    assert store.decisions("study") == [second]
    told = store.trail(what="decided")[-1]
    assert told.before == {
        "person": ben.id, "values": {"quality": 4}, "note": "agreed by phone", "changed": first.changed, "version": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [
        {"state": "finished"},
        {"seconds": float("nan")},
        {"seconds": -1.0},
        {"request": ""},
        {"request": "a b"},
        {"values": {"x": object()}},
        {"values": {"x": "y" * 600_000}},
        {"reason": "x" * 5000},
    ],
)
def test_what_can_not_be_kept_is_refused_in_words(store: ReviewStore, wrong: dict[str, Any]) -> None:
    _, (ada, _), _ = make_study(store)
    with pytest.raises(ReviewRefusalError):
        save(store, ada.id, 0, **{"request": "r1", **wrong})
    assert store.labels("study") == []


def test_hostile_text_is_kept_as_text(store: ReviewStore) -> None:
    _, (ada, _), _ = make_study(store)
    said = {"note": "'; DROP TABLE review_labels; -- \ud800 \x00 <script>", "n\x00": [True, None, "ü"]}
    kept = save(store, ada.id, 0, "r1", values=said).label.values
    assert kept == {"note": "'; DROP TABLE review_labels; -- ?  <script>", "n": [True, None, "ü"]}
    for name in ("x\x00y", "\ud800", "' OR 1=1 --", "x" * 100_000):
        assert missing(store, name)


def test_the_trail_is_read_in_pages_and_by_what_is_asked(store: ReviewStore) -> None:
    _, (ada, ben), _ = make_study(store)
    for n in range(5):
        save(store, ada.id, n, f"r{n}")
    save(store, ben.id, 0, "r0")
    every = store.trail()
    assert [event.id for event in every] == sorted(event.id for event in every)
    assert store.trail(limit=2) == every[:2]
    assert store.trail(after=every[1].id, limit=3) == every[2:5]
    assert store.trail(newest=True, limit=2) == every[:-3:-1]
    assert store.trail(before=every[2].id, newest=True) == every[1::-1]
    assert {event.person for event in store.trail(person=ben.id)} == {ben.id}
    assert len(store.trail(study="study", item="item-0")) == 6
    assert store.trail(study="none") == []
    assert store.trail(after=10**30) == []


def test_the_trail_can_not_be_changed_even_with_sql(store: ReviewStore) -> None:
    make_study(store)
    for statement in ("UPDATE review_events SET person='x'", "DELETE FROM review_events"):
        with pytest.raises(DatabaseError), store._database.write() as connection:
            connection.execute(text(statement))
    assert {event.person for event in store.trail()} == {"test"}


def test_a_failed_write_leaves_nothing(store: ReviewStore) -> None:
    make_study(store)
    before = store.trail_size()

    def fail() -> None:
        with store._database.write() as connection:
            connection.execute(text("UPDATE review_studies SET title='half'"))
            store._note(connection, "half", by="x")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert store.trail_size() == before
    assert [study.title for study in store.studies()] == ["Invented cases"]
