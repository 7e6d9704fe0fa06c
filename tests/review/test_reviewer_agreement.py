"""Agreement from labels: figures known in advance, the right scale for each field, and nobody named."""

from __future__ import annotations

import random
from collections import defaultdict
from itertools import permutations
from pathlib import Path

import pytest

from hoofbeat.findings.agreement import agreement_with_intervals, krippendorff_alpha
from hoofbeat.review.assignments import AssignmentPlan
from hoofbeat.review.forms import agreement_fields, form_for
from hoofbeat.review.label_export import export_labels
from hoofbeat.review.review_records import ItemLabel, LabelState, PersonRole, ReviewItem, Study
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.review.reviewer_agreement import Agreements, agreement_in_words, agreement_of, pseudonyms, study_progress
from tests.review.labelled import rated, team_of

STUDY = Study(id="s", title="t", form="leak", source="b", source_sha256="0")
YES_NO = ("diagnosis is right", "diagnosis is not mentioned", "nothing after the diagnosis")


def said(table: dict[str, str], field: str = YES_NO[0]) -> tuple[list[ReviewItem], list[ItemLabel]]:
    """Labels of people (letters: y, n, - for none) on items in order."""
    count = len(next(iter(table.values())))
    items = [ReviewItem(id=f"i{n:02d}", study="s", place=n, shown=()) for n in range(count)]
    words = {"y": "yes", "n": "no"}
    labels = [
        ItemLabel(study="s", item=f"i{n:02d}", person=who, values={field: words[mark]}, state="done", version=1)
        for who, marks in table.items()
        for n, mark in enumerate(marks)
        if mark in words
    ]
    return items, labels


def test_known_figures_of_two_reviewers() -> None:
    items, labels = said({"anna": "yyyyynnnny", "bert": "yyyynnnnyn"})
    field = agreement_of(STUDY, items, labels).fields[0]
    assert (field.field, field.items, field.people, field.compared, field.agree) == (YES_NO[0], 10, 2, 10, 7)
    assert field.share == pytest.approx(0.7)
    [pair] = field.pairs
    assert pair.kappa.weights == "none"
    assert pair.kappa.value == pytest.approx((0.7 - 0.5) / 0.5)  # anna 6 yes, bert 5 yes: chance 0.5
    rows = [
        ["yes" if mark == "y" else "no" for mark in marks] for marks in zip("yyyyynnnny", "yyyynnnnyn", strict=True)
    ]
    assert field.alpha.value == pytest.approx(krippendorff_alpha(rows).value)
    assert field.alpha.interval is not None
    assert field.alpha.interval.low < field.alpha.value < field.alpha.interval.high  # type: ignore[operator]


def test_pairs_that_share_nothing_are_not_there_and_drafts_do_not_count() -> None:
    items, labels = said({"anna": "yyn---", "bert": "yyn---", "carl": "---ynn"})
    labels.append(ItemLabel(study="s", item="i03", person="anna", values={YES_NO[0]: "no"}, state="draft", version=1))
    labels.append(ItemLabel(study="s", item="i04", person="anna", values={YES_NO[0]: "no"}, state="skipped", version=1))
    field = agreement_of(STUDY, items, labels).fields[0]
    assert len(field.pairs) == 1
    assert field.pairs[0].n == 3
    assert field.share == 1.0
    assert field.items == 3


def test_ordered_fields_are_weighted(tmp_path: Path, folders: Path) -> None:
    with ReviewStore.open(str(tmp_path / "review.db")) as store:
        team = team_of(store, folders, "likert")

        def near(person: object, item: ReviewItem, rng: random.Random) -> dict[str, str]:
            off = 1 if person == team.reviewers()[1] and item.place % 2 else 0
            low = 1 + item.place % 3
            return {"medical alignment": str(low + off), "need for expertise": rng.choice("12345")}

        rated(team, near)
        field, other = agreement_of(team.study, team.items, store.labels(team.study.id)).fields
    assert field.ordered
    assert field.alpha.scale == "ordinal"
    assert field.pairs[0].kappa.weights == "linear"
    values = [[str(1 + n % 3), str(1 + n % 3 + n % 2)] for n in range(len(team.items))]
    nominal = krippendorff_alpha(values, "nominal").value
    assert nominal is not None
    assert field.alpha.value is not None
    assert field.alpha.value > nominal, "near misses count less"
    assert other.field == "need for expertise"


def test_nothing_says_who_said_what(tmp_path: Path, folders: Path) -> None:
    with ReviewStore.open(str(tmp_path / "review.db")) as store:
        team = team_of(store, folders, "likert")
        rated(team, lambda *_: {"medical alignment": "4", "need for expertise": "4"})
        text = repr(agreement_of(team.study, team.items, store.labels(team.study.id)))
    for person in team.people:
        assert person.name not in text
        assert person.id not in text
    names = pseudonyms("s", ["a", "b", "c"])
    assert sorted(names.values()) == ["Reviewer 1", "Reviewer 2", "Reviewer 3"]
    assert names == pseudonyms("s", ["c", "b", "a"])
    orders = {tuple(pseudonyms("s", "abcdef", str(item)).items()) for item in range(20)}
    assert len(orders) > 10, "from item to item the numbers are dealt out anew"


@pytest.mark.parametrize(
    ("table", "start"),
    [
        ({"anna": "y---", "bert": "-y--"}, "Nobody has labelled the same item"),
        ({"anna": "yyyy", "bert": "yyyy"}, "All labels on the 4 items seen by several are the same"),
        ({"anna": "yn" * 12, "bert": "yn" * 12}, "Reviewers agree well"),
        ({"anna": "yn" * 12, "bert": "ny" * 12}, "Reviewers agree no better than by chance"),
        ({"anna": "yyyynnnn" * 3, "bert": "yyynnnny" * 3}, "Reviewers agree too little"),
        ({"anna": "ynynynyn" * 3, "bert": "ynynynyy" * 3}, "Reviewers agree fairly"),
    ],
)
def test_what_a_figure_means_is_said_in_words(table: dict[str, str], start: str) -> None:
    items, labels = said(table)
    field = agreement_of(STUDY, items, labels).fields[0]
    assert field.words.startswith(start), (field.alpha.value, field.words)
    assert field.words == agreement_in_words(field.alpha, field.share)


def test_few_items_are_told() -> None:
    items, labels = said({"anna": "ynyn", "bert": "ynyn"})
    assert "rests on 4 items only" in agreement_of(STUDY, items, labels).fields[0].words


def test_it_is_computed_again_only_when_something_happened(tmp_path: Path, folders: Path) -> None:
    with ReviewStore.open(str(tmp_path / "review.db")) as store:
        team = team_of(store, folders, "likert")
        kept = Agreements()
        first = kept.of(store, team.study)
        assert kept.of(store, team.study) is first
        anna, bert = team.reviewers()
        for person in (anna, bert):
            team.say(person, team.items[0], {"medical alignment": "4", "need for expertise": "3"})
        second = kept.of(store, team.study)
        assert second.position > first.position
        assert [field.items for field in second.fields] == [1, 1]
        other = team_of(store, folders, "leak", roles=("reviewer",))
        assert other.study.id != team.study.id
        assert kept.of(store, team.study) is second, "what happens in other studies does not matter"


def coincidences(rows: list[list[str]]) -> float:
    """Nominal α by the table of coincidences, as it is taught: 1 - observed over expected disagreement."""
    weight: dict[tuple[str, str], float] = defaultdict(float)
    for row in rows:
        for a, b in permutations(range(len(row)), 2):
            weight[row[a], row[b]] += 1 / (len(row) - 1)
    totals: dict[str, float] = defaultdict(float)
    for (name, _), each in weight.items():
        totals[name] += each
    n = sum(totals.values())
    observed = sum(each for (one, other), each in weight.items() if one != other) / n
    expected = sum(totals[one] * totals[other] for one, other in permutations(totals, 2)) / (n * (n - 1))
    return 1 - observed / expected


@pytest.mark.parametrize("form", ["leak", "likert", "equivalence"])
def test_live_agreement_is_that_of_the_exported_labels(tmp_path: Path, folders: Path, form: str) -> None:
    """With an overlap, a skip, a draft and somebody who has not begun: many items lack somebody's label."""
    roles: tuple[PersonRole, ...] = ("reviewer",) * 4
    with ReviewStore.open(str(tmp_path / "review.db")) as store:
        team = team_of(
            store, folders, form, roles=roles, plan=AssignmentPlan(per_item=2, overlap=0.5, overlap_by=3, seed=3)
        )
        known = {item.id: item for item in team.items}
        rng = random.Random(form)
        for person in team.people[:3]:
            for place, given in enumerate(store.assignments(team.study.id, person.id)):
                item = known[given.item]
                values = {
                    field.name: rng.choices(field.labels, weights=range(len(field.labels), 0, -1))[0]
                    for field in agreement_fields(form_for(team.study, item))
                }
                states: tuple[LabelState, ...] = ("skipped", "draft") if person == team.people[1] else ()
                state = states[place] if place < len(states) else "done"
                request = f"{person.id}-{place}"
                store.save(
                    team.study.id, item.id, person.id, values=values, state=state, seconds=1, base=0, request=request
                )
        live = Agreements().of(store, team.study)
        rows = export_labels(store, team.study, each=True, blind=True).rows
        names = {one.name for one in study_progress(store, team.study, names=False).people}
    for field in live.fields:
        ratings: dict[str, dict[str, str]] = defaultdict(dict)
        for row in rows:
            if row.get("criterion", "label") == field.field:
                ratings[row.get("reviewer") or row["annotator"]][row["item"]] = row.get("value") or row["label"]
        assert ratings.keys() <= names, "a reviewer has one number on every page and in the export"
        again = agreement_with_intervals(ratings, field.labels, ordered=field.ordered)
        alpha = again.ordinal if again.ordinal is not None else again.nominal
        assert field.alpha.value == pytest.approx(alpha.value)
        assert (field.alpha.items, field.alpha.values) == (alpha.items, alpha.values)
        assert field.alpha.left_out == alpha.left_out  # items with one label only; how many, people's random ids decide
        by_item: dict[str, list[str]] = defaultdict(list)
        for said_by in ratings.values():
            for item_id, value in said_by.items():
                by_item[item_id].append(value)
        several = [values for values in by_item.values() if len(values) > 1]
        if (
            len({value for values in several for value in values}) > 1
        ):  # by chance all labels may be the same: no α then
            assert again.nominal.value == pytest.approx(coincidences(several))
        if form == "equivalence":  # items go by the same codes, so that even the resampling is the same
            assert field.alpha.interval == alpha.interval
        expected = {(pair.a, pair.b): pair for pair in again.pairs if pair.n}
        assert {(pair.a, pair.b) for pair in field.pairs} == expected.keys()
        for pair in field.pairs:
            other = expected[pair.a, pair.b]
            assert (pair.n, pair.agree, pair.share_interval) == (other.n, other.agree, other.agreement_interval)
            assert pair.kappa == (other.linear if field.ordered else other.kappa)


def test_a_reviewer_keeps_their_number_as_labels_come_in(tmp_path: Path, folders: Path) -> None:
    with ReviewStore.open(str(tmp_path / "review.db")) as store:
        team = team_of(store, folders, "leak", roles=("reviewer",) * 5)
        seen = {row.name for row in study_progress(store, team.study, names=False).people}
        assert len(seen) == 5
        numbers: dict[str, str] = {}
        for person in team.people:
            team.say(person, team.items[0], {**dict.fromkeys(YES_NO, "yes"), "note": person.id})
            now = {row["note"]: row["reviewer"] for row in export_labels(store, team.study, blind=True).rows}
            assert now == numbers | {person.id: now[person.id]}, "who was there is called as before"
            numbers = now
            pairs = Agreements().of(store, team.study).fields[0].pairs
            assert {name for pair in pairs for name in (pair.a, pair.b)} in (set(now.values()), set())
        assert set(numbers.values()) == seen


def test_strata_of_a_blinded_study_are_for_admins(tmp_path: Path, folders: Path) -> None:
    with ReviewStore.open(str(tmp_path / "review.db")) as store:
        blinded, plain = team_of(store, folders, "pair", sample=5), team_of(store, folders, "likert", roles=())
        assert study_progress(store, blinded.study, names=False).strata == ()
        assert len(study_progress(store, blinded.study, names=True).strata) > 1
        assert study_progress(store, plain.study, names=False).strata
