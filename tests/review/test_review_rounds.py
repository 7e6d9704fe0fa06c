"""Rounds: findings go back to be revised, what is revised is inspected again; flags go to an expert; the queue."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hoofbeat.errors import UsageError
from hoofbeat.recipes.cases.two_level_review import LEVEL_2, read_reviews
from hoofbeat.review.adjudication_queue import queue_of
from hoofbeat.review.forms import form_for
from hoofbeat.review.label_export import export_labels, write_export
from hoofbeat.review.review_records import Assignment, ReviewItem
from hoofbeat.review.review_rounds import Rounds, advance_rounds, next_items, rounds_of
from hoofbeat.review.review_store import ReviewStore
from tests.review.labelled import Team, team_of

PASS = dict.fromkeys(LEVEL_2, "pass")
UNCLEAR = {**PASS, "clarity": "finding", "what is unclear": "How long was the fever?"}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ReviewStore]:
    with ReviewStore.open(str(tmp_path / "review.db")) as opened:
        yield opened


@pytest.fixture
def team(store: ReviewStore, folders: Path) -> Team:
    return team_of(store, folders, "two-level-2", roles=("reviewer", "adjudicator", "admin"))


def state(team: Team) -> Rounds:
    store, study = team.store, team.study
    return rounds_of(study, store.items(study.id), store.labels(study.id), store.decisions(study.id))


def added(team: Team) -> list[ReviewItem]:
    reviser = team.people[1]
    return [each.item for each in advance_rounds(team.store, team.study, [reviser], by="test")]


def test_the_loop_goes_on_until_the_sample_passes(team: Team, tmp_path: Path) -> None:
    physician, reviser = team.people[:2]
    for place, item in enumerate(team.items):
        team.say(physician, item, UNCLEAR if place == 0 else PASS)
    first = state(team)
    assert (first.sample, first.passed, first.verdict) == (6, 5, "waiting")
    [task] = added(team)
    assert task.stage == "revision"
    assert task.shown[0].lines == ("clarity: How long was the fever?",)
    assert added(team) == [], "the same finding makes one task"
    assert [row.why for row in team.store.assignments(team.study.id, reviser.id)] == ["revision"]
    option = next(shown.lines for shown in task.shown if shown.kind == "options")[0]
    gold = next(shown.text for shown in task.shown if shown.kind == "gold")
    option = option if option != gold else next(shown.lines for shown in task.shown if shown.kind == "options")[1]
    team.say(reviser, task, {"revision": "revise", "drop option": [option], "note": "Dropped."})
    [again] = added(team)
    assert form_for(team.study, again).name == "two-level-2"
    assert again.key["round"] == 2
    assert option not in next(shown.lines for shown in again.shown if shown.kind == "options")
    assert again.shown[0].lines == (f"dropped: {option}",)
    assert [row.item for row in team.store.assignments(team.study.id, physician.id)][-1] == again.id
    assert state(team).verdict == "waiting"
    team.say(physician, again, PASS)
    last = state(team)
    assert (last.passed, last.sample, last.verdict) == (6, 6, "passed")
    assert [(row.number, row.inspected, row.passed, row.findings, row.revised) for row in last.rounds] == [
        (1, 6, 5, 1, 1),
        (2, 1, 1, 0, 0),
    ]
    write_export(export_labels(team.store, team.study), tmp_path / "labels.jsonl")
    mine = read_reviews(str(tmp_path / "labels.jsonl"))[str(team.items[0].key["item"])]
    assert {(label.criterion, label.value) for label in mine} == {
        *((criterion, "pass") for criterion in LEVEL_2),
        ("drop option", option),
    }


def test_what_cant_be_revised_is_left_out_and_counts_against_the_sample(team: Team) -> None:
    physician, reviser = team.people[:2]
    for place, item in enumerate(team.items):
        team.say(physician, item, UNCLEAR if place == 0 else PASS)
    [task] = added(team)
    team.say(reviser, task, {"revision": "leave", "note": "The source does not say."})
    assert added(team) == []
    last = state(team)
    assert (last.passed, last.given_up, last.verdict) == (5, 1, "not passed")
    assert last.rounds[0].given_up == 1


def test_a_second_finding_makes_a_second_round(team: Team) -> None:
    physician, reviser = team.people[:2]
    item = team.items[0]
    team.say(physician, item, UNCLEAR)
    options = next(shown.lines for shown in item.shown if shown.kind == "options")
    gold = next(shown.text for shown in item.shown if shown.kind == "gold")
    first, second = [option for option in options if option != gold][:2]
    for option in (first, second):
        [task] = added(team)
        team.say(reviser, task, {"revision": "revise", "drop option": [option]})
        [again] = added(team)
        team.say(physician, again, UNCLEAR)
    assert [row.number for row in state(team).rounds] == [1, 2, 3]
    rows = export_labels(team.store, team.study).rows
    assert [row["value"] for row in rows if row["criterion"] == "drop option"] == [first, second]
    assert [row["value"] for row in rows if row["criterion"] == "clarity"] == ["finding"]


def test_what_an_adjudicator_settles_needs_no_revision(store: ReviewStore, folders: Path) -> None:
    team = team_of(store, folders, "two-level-2")
    anna, bert, adjudicator, _ = team.people
    item = team.items[0]
    team.say(anna, item, UNCLEAR)
    team.say(bert, item, PASS)
    [waiting] = queue_of(store, team.study)
    assert (waiting.why, waiting.fields) == ("differ", ("clarity",))
    store.decide(team.study.id, item.id, adjudicator.id, values={"clarity": "pass"}, note="It is said.", request="d1")
    assert next_items(team.study, store.items(team.study.id), store.labels(team.study.id), store.decisions(team.study.id)) == []  # fmt: skip  # noqa: E501
    [settled] = queue_of(store, team.study)
    assert not settled.open


def test_nobody_to_revise_is_said(team: Team) -> None:
    team.say(team.people[0], team.items[0], UNCLEAR)
    with pytest.raises(UsageError, match="nobody to give"):
        advance_rounds(team.store, team.study, [], by="test")
    assert len(team.store.items(team.study.id)) == len(team.items), "nothing was added"


def test_flagged_items_become_an_experts(store: ReviewStore, folders: Path) -> None:
    team = team_of(store, folders, "three-criteria", roles=("reviewer", "adjudicator", "admin"))
    annotator, expert, _ = team.people
    first, second, third = team.items[:3]
    for item in (first, second):
        values = {"query": "flag", "flagged query": "Two in one.", "reasoning": "ok", "support": "ok"}
        team.say(annotator, item, values)
    team.say(annotator, third, {"query": "ok", "reasoning": "ok", "support": "ok"})
    assert [(each.item.id, each.why, each.form.name) for each in queue_of(store, team.study)] == [
        (item.id, "flagged", "three-criteria-expert") for item in (first, second)
    ]
    store.decide(team.study.id, first.id, expert.id, values={"query": "keep"}, request="d1")
    [made] = advance_rounds(store, team.study, [expert], by="test")
    assert made.why == "flagged"
    assert made.item.stage == "three-criteria-expert"
    assert made.item.criteria == ("query",)
    assert made.item.shown[0].lines == ("query: Two in one.",)
    assert made.item.key["of"] == second.id, "what is decided in the queue needs no expert any more"
    assert [each.item.id for each in queue_of(store, team.study)] == [first.id], "and the other way round"
    team.say(expert, made.item, {"query": "exclude", "note": "Two questions indeed."})
    rows = [row for row in export_labels(store, team.study).rows if row["item"] == second.key["item"]]
    assert [(row["criterion"], row["value"]) for row in rows if row["criterion"] == "query"] == [
        ("query", "flag"),
        ("query", "exclude"),
    ]


def test_who_is_still_to_label_does_not_see_what_others_said(store: ReviewStore, folders: Path) -> None:
    team = team_of(store, folders, "leak", roles=("reviewer", "reviewer", "adjudicator"))
    anna, bert, both = team.people
    item = team.items[0]
    yes = dict.fromkeys(("diagnosis is right", "diagnosis is not mentioned", "nothing after the diagnosis"), "yes")
    team.say(anna, item, yes)
    team.say(bert, item, {**yes, "diagnosis is right": "no", "note": "Secret words."})
    store.assign(team.study.id, [Assignment(study=team.study.id, item=item.id, person=both.id, place=0)], by="test")
    [hidden] = queue_of(store, team.study, person=both.id)
    assert hidden.hidden
    assert hidden.said == ()
    assert hidden.fields == ()
    assert "Secret" not in repr(hidden)
    team.say(both, item, yes)
    [labelled] = queue_of(store, team.study, person=both.id)
    assert (labelled.may_open, labelled.said, labelled.fields) == (True, (), ()), "not before their own label is final"
    store.see_labels(team.study.id, item.id, both.id)
    [shown] = queue_of(store, team.study, person=both.id)
    assert {said.reviewer for said in shown.said} == {"Reviewer 1", "Reviewer 2", "Reviewer 3"}
    assert not any(person.name in repr(shown.said) for person in team.people)
