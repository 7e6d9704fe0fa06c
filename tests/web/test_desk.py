"""The desk keeps every promise of its methods, on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import text

from hoofbeat.errors import UsageError
from hoofbeat.web.review.desk import Desk
from hoofbeat.web.review.records import Assignment, Item, Saved, Shown, Study
from hoofbeat.web.review.refusals import DatabaseError, Refused
from tests.web.desks import make_study


@pytest.fixture
def desk(desk_urls: str) -> Iterator[Desk]:
    with Desk.open(desk_urls) as opened:
        yield opened


def save(desk: Desk, person: str, base: int, request: str, item: str = "item-0", **more: Any) -> Saved:
    given: dict[str, Any] = {"values": {"quality": base + 1}, "state": "draft", "seconds": 1.0, **more}
    return desk.save("study", item, person, base=base, request=request, **given)


def missing(desk: Desk, item: str) -> bool:
    """Whether there is no such item, be it said by nothing or by a refusal."""
    try:
        return desk.item("study", item) is None
    except Refused as err:
        return err.status == 404


def test_a_study_comes_back_as_it_was_given(desk: Desk) -> None:
    study, _, _ = make_study(desk, items=3, labels=["a", "b"], nested={"ß": [1, None, 2.5]})
    assert desk.study("study") == study
    assert desk.studies() == [study]
    assert [item.id for item in desk.items("study")] == ["item-0", "item-1", "item-2"]
    item = desk.item("study", "item-1")
    assert item is not None
    assert (item.place, item.stratum, item.shown[0].text) == (1, "odd", "An invented case, number 1.")
    assert desk.item("study", "other") is None
    assert desk.study("other") is None
    assert desk.items("other") == []


def test_the_same_study_again_is_nothing_and_another_of_its_name_is_refused(desk: Desk) -> None:
    study, _, _ = make_study(desk, items=2)
    before = desk.trail_size()
    desk.create_study(study, desk.items("study"))
    assert desk.trail_size() == before
    with pytest.raises(UsageError, match="another study"):
        desk.create_study(replace(study, title="Other"), desk.items("study"))
    changed = replace(desk.items("study")[0], group="other")
    with pytest.raises(UsageError, match="another study"):
        desk.create_study(study, [changed])


@pytest.mark.parametrize("name", ["people", "", "../x", "a b", "a/b", "x" * 101])
def test_a_study_whose_name_can_not_stand_in_an_address_is_refused(desk: Desk, name: str) -> None:
    with pytest.raises(UsageError, match="can't be called"):
        desk.create_study(Study(id=name, title="", form="likert", source="", source_sha256=""), [])


def test_items_of_another_study_or_twice_the_same_leave_nothing_behind(desk: Desk) -> None:
    study = Study(id="s", title="", form="likert", source="", source_sha256="")
    one = Item(id="a", study="s", place=0, shown=())
    for items in ([one, replace(one, study="other")], [one, one], [one, replace(one, id="a/b")]):
        with pytest.raises(UsageError):
            desk.create_study(study, items)
    assert desk.studies() == []
    assert desk.trail() == []


def test_items_are_added_once(desk: Desk) -> None:
    make_study(desk, items=2)
    more = [Item(id=f"item-{n}", study="study", place=n, shown=(Shown(title="t"),), stage="revision") for n in (1, 2)]
    desk.add_items("study", more, by="admin")
    desk.add_items("study", more, by="admin")
    assert [item.stage for item in desk.items("study")] == ["", "", "revision"]
    assert [event.after for event in desk.trail(what="items added")] == [{"items": ["item-2"]}]
    with pytest.raises(Refused, match="no such study"):
        desk.add_items("other", [], by="admin")


def test_an_invitation_lets_its_person_in_until_it_is_renewed_or_revoked(desk: Desk) -> None:
    person, token = desk.invite("  Ada   Example ", "reviewer", by="x", groups=["cardiology"])
    assert (person.name, person.groups) == ("Ada Example", ("cardiology",))
    assert desk.invited(token) == person
    assert desk.person(person.id) == person
    signed = desk.sign_in(token)
    assert signed is not None
    assert desk.session(signed[1]) == person
    again = desk.renew(person.id, "x")
    assert desk.sign_in(token) is None
    assert desk.session(signed[1]) is None
    signed = desk.sign_in(again)
    assert signed is not None
    desk.revoke(person.id, "x")
    assert desk.sign_in(again) is None
    assert desk.session(signed[1]) is None
    assert [each.active for each in desk.people()] == [False]
    assert desk.sign_in(desk.renew(person.id, "x")) is not None
    assert [event.what for event in desk.trail()] == [
        "invited", "signed in", "renewed", "signed in", "revoked", "renewed", "signed in",
    ]  # fmt: skip


def test_a_session_ends_by_leaving_and_by_time(desk: Desk) -> None:
    _, token = desk.invite("Ada Example", "reviewer", by="x")
    first, second = desk.sign_in(token), desk.sign_in(token, hours=-1)
    assert first is not None
    assert second is not None
    assert desk.session(second[1]) is None
    desk.sign_out(first[1])
    desk.sign_out(first[1])
    assert desk.session(first[1]) is None
    assert len(desk.trail(what="signed out")) == 1


@pytest.mark.parametrize("name", ["", "   ", "x" * 121, "a\u202eb", "a\x00b"])
def test_a_name_must_be_one(desk: Desk, name: str) -> None:
    with pytest.raises(UsageError, match="a name has"):
        desk.invite(name, "reviewer", by="x")


def test_what_is_no_role_or_study_or_person_is_refused(desk: Desk) -> None:
    with pytest.raises(UsageError, match="no such role"):
        desk.invite("Ada", "owner", by="x")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no study"):
        desk.invite("Ada", "reviewer", by="x", studies=["none"])
    for act in (desk.renew, desk.revoke):
        with pytest.raises(Refused, match="no such person"):
            act("p-none", "x")
    assert desk.people() == []


def test_assignments_come_in_the_order_of_each_list_and_only_once(desk: Desk) -> None:
    _, (ada, ben), _ = make_study(desk, items=3)
    desk.assign("study", [Assignment(study="study", item="item-0", person=ada.id, place=9)], by="x")
    assert [row.item for row in desk.assignments("study", ada.id)] == ["item-0", "item-1", "item-2"]
    assert len(desk.assignments("study")) == 6
    assert {row.person for row in desk.assignments("study")} == {ada.id, ben.id}
    for wrong in ({"item": "none"}, {"person": "p-none"}, {"study": "other"}):
        row = replace(Assignment(study="study", item="item-0", person=ada.id, place=0), **wrong)
        with pytest.raises(Refused, match="not there"):
            desk.assign("study", [row], by="x")


def test_saves_count_versions_and_leave_each_in_the_trail(desk: Desk) -> None:
    _, (ada, ben), _ = make_study(desk)
    assert desk.label("study", "item-0", ada.id) is None
    first = save(desk, ada.id, 0, "r1", seconds=4.5)
    second = save(desk, ada.id, 1, "r2", state="skipped", reason="can't tell\x00", seconds=2.0)
    assert not first.conflict
    assert (second.label.version, second.label.state, second.label.reason) == (2, "skipped", "can't tell")
    assert second.label.seconds == 4.5  # time spent never goes back
    assert desk.label("study", "item-0", ada.id) == second.label
    save(desk, ben.id, 0, "r1", state="done")
    assert len(desk.labels("study")) == 2
    assert desk.labels("study", person=ada.id) == [second.label]
    assert [label.person for label in desk.labels("study", states=["done"])] == [ben.id]
    told = desk.trail(study="study", item="item-0", person=ada.id)
    assert [(event.what, (event.before or {}).get("version"), (event.after or {})["version"]) for event in told] == [
        ("saved", None, 1),
        ("saved", 1, 2),
    ]


def test_a_save_that_is_sent_again_is_the_same_save(desk: Desk) -> None:
    _, (ada, _), _ = make_study(desk)
    first = save(desk, ada.id, 0, "r1", values={"quality": 5, "note": "naïve \U0001f40e"})
    assert save(desk, ada.id, 0, "r1", values={"quality": 1}) == first
    second = save(desk, ada.id, 1, "r2")
    assert save(desk, ada.id, 0, "r1") == first
    assert desk.label("study", "item-0", ada.id) == second.label
    assert len(desk.trail(what="saved")) == 2
    with pytest.raises(Refused, match="used for another"):
        save(desk, ada.id, 0, "r1", item="item-1")
    with pytest.raises(Refused, match="used for another"):
        desk.undo("study", "item-0", ada.id, request="r1")


def test_a_save_on_what_another_tab_has_changed_is_not_taken(desk: Desk) -> None:
    _, (ada, _), _ = make_study(desk)
    stands = save(desk, ada.id, 0, "r1").label
    assert save(desk, ada.id, 0, "r2", values={"quality": 9}) == Saved(label=stands, conflict=True)
    assert save(desk, ada.id, 7, "r3") == Saved(label=stands, conflict=True)
    unknown = save(desk, ada.id, 3, "r4", item="item-1")
    assert unknown.conflict
    assert unknown.label.version == 0
    assert desk.label("study", "item-1", ada.id) is None
    assert len(desk.trail(what="saved")) == 1


def test_undo_goes_back_step_by_step_and_a_new_save_goes_on_from_there(desk: Desk) -> None:
    _, (ada, _), _ = make_study(desk)
    for base, value in enumerate("abc"):
        save(desk, ada.id, base, f"r{base}", values={"v": value}, state="done" if value == "b" else "draft")
    seen = [desk.undo("study", "item-0", ada.id, request=f"u{n}").label for n in range(2)]
    assert [(label.values["v"], label.state, label.version) for label in seen] == [("b", "done", 4), ("a", "draft", 5)]
    assert desk.undo("study", "item-0", ada.id, request="u1").label == seen[1]  # sent again
    save(desk, ada.id, 5, "r9", values={"v": "d"})
    values = [desk.undo("study", "item-0", ada.id, request=f"w{n}").label.values for n in range(2)]
    assert values == [{"v": "a"}, {}]
    with pytest.raises(Refused, match="nothing to undo"):
        desk.undo("study", "item-0", ada.id, request="w9")
    with pytest.raises(Refused, match="nothing to undo"):
        desk.undo("study", "item-1", ada.id, request="w8")
    versions = [(event.after or {})["version"] for event in desk.trail(item="item-0")]
    assert versions == list(range(1, 9))


def test_who_may_not_label_is_refused_and_nothing_is_kept(desk: Desk) -> None:
    _, (ada, _), _ = make_study(desk)
    outsider, _ = desk.invite("Cleo", "admin", by="x")
    before = desk.trail_size()
    for study, item, person, words, status in (
        ("none", "item-0", ada.id, "no such study", 404),
        ("study", "none", ada.id, "no such item", 404),
        ("study", "item-0", outsider.id, "not assigned", 403),
        ("study", "item-0", "p-none", "not valid", 403),
    ):
        with pytest.raises(Refused, match=words) as caught:
            desk.save(study, item, person, values={}, state="done", seconds=0, base=0, request="r")
        assert caught.value.status == status
    desk.revoke(ada.id, "x")
    with pytest.raises(Refused, match="not valid any more"):
        save(desk, ada.id, 0, "r")
    assert desk.labels("study") == []
    assert desk.trail_size() == before + 1


def test_a_closed_study_takes_nothing_more(desk: Desk) -> None:
    _, (ada, ben), _ = make_study(desk, people=["reviewer", "adjudicator"])
    first = save(desk, ada.id, 0, "r1")
    desk.close_study("study", "x")
    desk.close_study("study", "x")
    assert [study.closed for study in desk.studies()] == [True]
    with pytest.raises(Refused, match="closed"):
        save(desk, ada.id, 1, "r2")
    with pytest.raises(Refused, match="closed"):
        desk.undo("study", "item-0", ada.id, request="u1")
    with pytest.raises(Refused, match="closed"):
        desk.decide("study", "item-0", ben.id, values={}, request="d1")
    assert save(desk, ada.id, 0, "r1") == first  # the answer to a save that was taken before
    assert len(desk.trail(what="study closed")) == 1


def test_decisions_have_versions_and_only_adjudicators_make_them(desk: Desk) -> None:
    _, (ada, ben, cleo), _ = make_study(desk, people=["reviewer", "adjudicator", "admin"])
    with pytest.raises(Refused, match="only adjudicators"):
        desk.decide("study", "item-0", ada.id, values={}, request="d")
    first = desk.decide("study", "item-0", ben.id, values={"quality": 4}, note="agreed by phone", request="d1")
    assert desk.decide("study", "item-0", ben.id, values={"quality": 1}, request="d1") == first
    with pytest.raises(Refused, match="meanwhile") as caught:
        desk.decide("study", "item-0", cleo.id, values={"quality": 2}, request="d2")
    assert caught.value.status == 409
    second = desk.decide("study", "item-0", cleo.id, values={"quality": 2}, base=1, request="d3")
    assert (first.version, second.version) == (1, 2)
    assert desk.decisions("study") == [second]
    told = desk.trail(what="decided")[-1]
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
def test_what_can_not_be_kept_is_refused_in_words(desk: Desk, wrong: dict[str, Any]) -> None:
    _, (ada, _), _ = make_study(desk)
    with pytest.raises(Refused):
        save(desk, ada.id, 0, **{"request": "r1", **wrong})
    assert desk.labels("study") == []


def test_hostile_text_is_kept_as_text(desk: Desk) -> None:
    _, (ada, _), _ = make_study(desk)
    said = {"note": "'; DROP TABLE review_labels; -- \ud800 \x00 <script>", "n\x00": [True, None, "ü"]}
    kept = save(desk, ada.id, 0, "r1", values=said).label.values
    assert kept == {"note": "'; DROP TABLE review_labels; -- ?  <script>", "n": [True, None, "ü"]}
    for name in ("x\x00y", "\ud800", "' OR 1=1 --", "x" * 100_000):
        assert missing(desk, name)


def test_the_trail_is_read_in_pages_and_by_what_is_asked(desk: Desk) -> None:
    _, (ada, ben), _ = make_study(desk)
    for n in range(5):
        save(desk, ada.id, n, f"r{n}")
    save(desk, ben.id, 0, "r0")
    every = desk.trail()
    assert [event.id for event in every] == sorted(event.id for event in every)
    assert desk.trail(limit=2) == every[:2]
    assert desk.trail(after=every[1].id, limit=3) == every[2:5]
    assert desk.trail(newest=True, limit=2) == every[:-3:-1]
    assert desk.trail(before=every[2].id, newest=True) == every[1::-1]
    assert {event.person for event in desk.trail(person=ben.id)} == {ben.id}
    assert len(desk.trail(study="study", item="item-0")) == 6
    assert desk.trail(study="none") == []
    assert desk.trail(after=10**30) == []


def test_the_trail_can_not_be_changed_even_with_sql(desk: Desk) -> None:
    make_study(desk)
    for statement in ("UPDATE review_events SET person='x'", "DELETE FROM review_events"):
        with pytest.raises(DatabaseError), desk._database.write() as connection:
            connection.execute(text(statement))
    assert {event.person for event in desk.trail()} == {"test"}


def test_a_failed_write_leaves_nothing(desk: Desk) -> None:
    make_study(desk)
    before = desk.trail_size()

    def fail() -> None:
        with desk._database.write() as connection:
            connection.execute(text("UPDATE review_studies SET title='half'"))
            desk._note(connection, "half", by="x")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert desk.trail_size() == before
    assert [study.title for study in desk.studies()] == ["Invented cases"]
