"""Assignment plans: everybody gets a fair share, the same seed the same one, and nothing that is assigned is lost."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoofbeat.errors import UsageError
from hoofbeat.review.assignments import AssignmentPlan, assignments_for, coverage, plan_of, stratified_sample
from hoofbeat.review.review_records import Assignment, Person, ReviewItem, Study


def items_of(count: int, strata: int = 3) -> list[ReviewItem]:
    return [
        ReviewItem(
            id=f"i{n:03d}",
            study="s",
            place=n,
            shown=(),
            stratum=f"level-{n % strata}",
            group="heart" if n % 2 else "skin",
        )
        for n in range(count)
    ]


def people_of(count: int, *groups: str) -> list[Person]:
    return [Person(id=f"p{n}", name=f"Invented {n}", role="reviewer", groups=groups) for n in range(count)]


def by_item(rows: list[Assignment]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in rows:
        found.setdefault(row.item, []).append(row.person)
    return found


@settings(max_examples=60, deadline=None)
@given(
    items=st.integers(1, 60),
    people=st.integers(1, 7),
    per_item=st.integers(0, 4),
    overlap=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    seed=st.integers(0, 5),
)
def test_every_item_gets_its_reviewers_and_loads_are_even(
    items: int, people: int, per_item: int, overlap: float, seed: int
) -> None:
    made, who = items_of(items), people_of(people)
    plan = AssignmentPlan(per_item=per_item, overlap=overlap, seed=seed)
    rows = assignments_for("s", made, who, plan)
    assert len({(row.item, row.person) for row in rows}) == len(rows), "nobody gets an item twice"
    seen = Counter(len(given) for given in by_item(rows).values())
    wanted = min(per_item or people, people)
    shared = math.ceil(items * overlap)
    expected = Counter({wanted: items - shared}) + Counter({people: shared})
    assert seen == expected
    loads = Counter(row.person for row in rows)
    assert max(loads.values()) - min(loads[person.id] for person in who) <= 1
    for person in who:
        assert sorted(row.place for row in rows if row.person == person.id) == list(range(loads[person.id]))
    assert rows == assignments_for("s", made, who, plan), "the same plan, the same rows"


def test_orders_differ_between_people_and_change_with_the_seed() -> None:
    made, who = items_of(30), people_of(3)

    def order(seed: int, person: str) -> list[str]:
        rows = assignments_for("s", made, who, AssignmentPlan(per_item=0, seed=seed))
        return [row.item for row in sorted(rows, key=lambda row: row.place) if row.person == person]

    orders = [order(0, "p0"), order(0, "p1"), order(0, "p2"), order(1, "p0")]
    assert len({tuple(each) for each in orders}) == 4
    assert all(sorted(each) == sorted(orders[0]) for each in orders)


def test_the_overlap_is_the_same_share_of_every_stratum() -> None:
    made, who = items_of(90), people_of(4)
    rows = assignments_for("s", made, who, AssignmentPlan(overlap=0.2, overlap_by=3))
    shared = {row.item for row in rows if row.why == "overlap"}
    strata = Counter(item.stratum for item in made if item.id in shared)
    assert strata == {"level-0": 6, "level-1": 6, "level-2": 6}
    assert {len(given) for item, given in by_item(rows).items() if item in shared} == {3}


def test_a_sample_is_stratified_and_does_not_hang_on_the_order() -> None:
    made = items_of(100, strata=4)
    drawn = stratified_sample(made, 20, seed=3)
    assert Counter(item.stratum for item in drawn) == {f"level-{n}": 5 for n in range(4)}
    assert {item.id for item in stratified_sample(made[::-1], 20, seed=3)} == {item.id for item in drawn}
    assert {item.id for item in stratified_sample(made, 20, seed=4)} != {item.id for item in drawn}
    assert stratified_sample(made, 200, seed=0) == made
    rows = assignments_for("s", made, people_of(2), AssignmentPlan(sample=20, seed=3))
    assert set(by_item(rows)) == {item.id for item in drawn}


@settings(max_examples=40, deadline=None)
@given(items=st.integers(1, 40), early=st.integers(1, 4), late=st.integers(1, 3), per_item=st.integers(1, 4))
def test_who_joins_later_takes_nothing_away(items: int, early: int, late: int, per_item: int) -> None:
    made, who = items_of(items), people_of(early + late)
    plan = AssignmentPlan(per_item=per_item, overlap=0.25, seed=1)
    before = assignments_for("s", made, who[:early], plan)
    added = assignments_for("s", made, who, plan, before)
    assert not {(row.item, row.person) for row in before} & {(row.item, row.person) for row in added}
    whole = [*before, *added]
    places = Counter((row.person, row.place) for row in whole)
    assert set(places.values()) == {1}, "a new row stands behind the old ones"
    shared = {row.item for row in whole if row.why == "overlap"}
    for item, given_to in by_item(whole).items():
        assert len(given_to) == (early + late if item in shared else min(per_item, early + late))
    assert assignments_for("s", made, who, plan, whole) == []


def test_a_newcomer_is_given_most_of_what_is_added() -> None:
    made, who = items_of(40), people_of(3)
    before = assignments_for("s", made[:20], who[:2], AssignmentPlan())
    added = assignments_for("s", made, who, AssignmentPlan(), before)
    assert sorted(Counter(row.person for row in [*before, *added]).values()) == [13, 13, 14]
    assert Counter(row.person for row in added)["p2"] >= 13


def test_people_stay_inside_or_outside_their_groups() -> None:
    made = items_of(20)
    who = [*people_of(2, "heart"), Person(id="skin", name="Invented", role="reviewer", groups=("Skin",))]
    group = {item.id: item.group for item in made}
    inside = assignments_for("s", made, who, AssignmentPlan(groups="inside", per_item=2))
    assert all((group[row.item] == "skin") == (row.person == "skin") for row in inside)
    outside = assignments_for("s", made, who, AssignmentPlan(groups="outside"))
    assert all((group[row.item] == "heart") == (row.person == "skin") for row in outside)
    found = coverage(made, who, AssignmentPlan(groups="inside", per_item=2), inside)
    assert found.reviewers == {1: 10, 2: 10}
    assert found.short == 10, "only one person may see skin"


def test_a_limit_is_kept_and_what_is_short_is_counted() -> None:
    made, who = items_of(10), people_of(2)
    rows = assignments_for("s", made, who, AssignmentPlan(per_item=2, max_per_person=6))
    assert Counter(row.person for row in rows) == {"p0": 6, "p1": 6}
    assert coverage(made, who, AssignmentPlan(per_item=2, max_per_person=6), rows).short == sum(
        len(by_item(rows).get(item.id, [])) < 2 for item in made
    )


def test_revoked_people_and_those_of_other_studies_get_nothing() -> None:
    gone = Person(id="gone", name="Invented", role="reviewer", active=False)
    elsewhere = Person(id="elsewhere", name="Invented", role="reviewer", studies=("other",))
    here = Person(id="here", name="Invented", role="reviewer", studies=("s",))
    rows = assignments_for("s", items_of(4), [gone, elsewhere, here], AssignmentPlan(per_item=0))
    assert {row.person for row in rows} == {"here"}


def test_a_plan_is_recorded_and_read_back() -> None:
    plan = AssignmentPlan(per_item=2, overlap=0.1, groups="inside", seed=7)
    study = Study(id="s", title="t", form="likert", source="b", source_sha256="0", settings={"plan": plan.recorded()})
    assert plan_of(study) == plan
    assert study.settings["plan"]["sample"] == 0, "defaults are written out"
    assert plan_of(Study(id="s", title="t", form="likert", source="b", source_sha256="0")) == AssignmentPlan()


@pytest.mark.parametrize(
    "given", [{"overlap": 1.5}, {"per_item": -1}, {"overlap": 0.5, "overlap_by": 1, "per_item": 2}]
)
def test_what_is_no_plan_is_refused(given: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        AssignmentPlan(**given)  # type: ignore[arg-type]
