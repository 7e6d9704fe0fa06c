"""Forms as data: their fields and values are those of the readers, and nothing else gets through."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoofbeat.errors import InputError, UsageError
from hoofbeat.judging.catalogue import labels_of
from hoofbeat.prompts import load_pack, pack_names
from hoofbeat.recipes.cases import two_level_review
from hoofbeat.recipes.messages.question_duplicates import CRITERION
from hoofbeat.recipes.papers import cupcase, ogcare, r2med, sourceqa
from hoofbeat.recipes.review_tasks import ReviewLabel, known_labels, read_labels, read_rating, says_yes, two_stage
from hoofbeat.review.forms import (
    agreement_fields,
    asked_fields,
    check_values,
    criterion_rows,
    form_for,
    form_names,
    load_form,
)
from hoofbeat.review.review_records import ItemMaterial, ReviewItem, Study
from hoofbeat.review.study_items import pack_settings
from hoofbeat.store.tables import write_jsonl
from tests.review.review_studies import ANSWERS, FORMS

PAIR = pack_settings(load_pack("transplant"))
ITEM = ReviewItem(
    id="i",
    study="s",
    place=0,
    shown=(
        ItemMaterial(title="Options", kind="options", lines=("Gout", "Pseudogout", "Sepsis")),
        ItemMaterial(title="Reference answer", kind="gold", text="Gout"),
        ItemMaterial(title="Source", kind="source", text="The knee was  red.\nFever of 39 °C for two days."),
    ),
)


def names(form: str) -> tuple[str, ...]:
    return tuple(field.name for field in load_form(form, PAIR).fields if field.criterion and field.exported)


def test_there_is_every_form() -> None:
    assert set(form_names()) == {*FORMS, "exam"}
    for name in form_names():
        form = load_form(name, PAIR)
        assert form.title
        assert form.instructions
        for field in form.fields:
            assert field.label
            keys = [choice.key for choice in field.choices if choice.key]
            assert len(set(keys)) == len(keys)
            assert not set(keys) & set("jkhlusg"), "keys of the page itself"


def test_the_fields_are_the_criteria_of_the_recipes() -> None:
    assert names("likert") == ogcare.CRITERIA
    assert names("leak") == cupcase.LEAK_CRITERIA
    assert names("distractors") == cupcase.DISTRACTOR_CRITERIA
    assert names("three-criteria") == names("three-criteria-expert") == r2med.CRITERIA
    assert names("two-level-1") == two_level_review.LEVEL_1
    assert names("two-level-2") == two_level_review.LEVEL_2
    assert names("question") == sourceqa.CRITERIA
    assert names("duplicate") == (CRITERION,)
    for form in ("two-level-1", "two-level-2", "revision"):
        assert {two_level_review.DROP, two_level_review.ADD} <= {field.name for field in load_form(form).fields}


@pytest.mark.parametrize("aspect", ["equivalence", "failure-mode", "error-type"])
def test_the_values_are_the_labels_of_the_judges(aspect: str) -> None:
    for field in load_form(aspect).fields:
        if field.criterion:
            assert tuple(choice.value for choice in field.choices) == labels_of(aspect)


@pytest.mark.parametrize("name", FORMS)
def test_a_complete_answer_is_taken_as_it_is_and_an_empty_one_is_not(name: str) -> None:
    form = load_form(name, PAIR)
    assert check_values(form, ITEM, ANSWERS[name]) == ANSWERS[name]
    assert check_values(form, ITEM, {}, complete=False) == {}
    with pytest.raises(InputError, match="not filled in"):
        check_values(form, ITEM, {})


def written(path: Path, *forms: str) -> Path:
    rows = [
        ReviewLabel(item="q1", criterion=row.criterion, value=row.value, reviewer="R", note=row.note)
        for form in forms
        for row in criterion_rows(load_form(form), ANSWERS[form])
    ]
    write_jsonl(path, rows)
    return path


def test_the_recipes_read_what_the_forms_give(tmp_path: Path) -> None:
    path = written(tmp_path / "likert.jsonl", "likert")
    assert [read_rating(label, "") for label in known_labels(str(path), ogcare.CRITERIA)] == [4, 5]
    path = written(tmp_path / "leak.jsonl", "leak", "distractors")
    assert [says_yes(label, "") for label in known_labels(str(path), cupcase.CRITERIA)] == [True, False, True, True]
    path = written(tmp_path / "question.jsonl", "question", "duplicate")
    said = known_labels(str(path), (*sourceqa.CRITERIA, CRITERION))
    assert [says_yes(label, "") for label in said] == [True, False, True, False]
    path = written(tmp_path / "three.jsonl", "three-criteria", "three-criteria-expert")
    two_stage("review", str(path), criteria=r2med.CRITERIA)  # refuses what it can't read
    assert [label.note for label in read_labels(path) if label.value == "flag"] == ["A step is missing."]
    path = written(tmp_path / "levels.jsonl", "two-level-1", "two-level-2")
    labels = two_level_review.read_reviews(str(path))["q1"]
    findings = {label.criterion: label.note for label in labels if label.value == "finding"}
    assert findings == {"options overlap": "B is A.", "factual accuracy": "The dose."}


def test_revisions_are_one_row_each() -> None:
    values = {"revision": "revise", "drop option": ["Sepsis", "Pseudogout"], "add to stem": "knee was red\nfever of 39"}
    form = load_form("revision")
    taken = check_values(form, ITEM, values)
    assert taken["drop option"] == ["Pseudogout", "Sepsis"]
    rows = [(row.criterion, row.value) for row in criterion_rows(form, taken)]
    assert rows == [
        ("drop option", "Pseudogout"),
        ("drop option", "Sepsis"),
        ("add to stem", "knee was red"),
        ("add to stem", "fever of 39"),
    ]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"revision": "revise"}, "fill in one of these"),
        ({"revision": "revise", "drop option": ["Gout"]}, "not an option"),
        ({"revision": "revise", "add to stem": "the hip was red"}, "not in the source"),
        ({"revision": "burn"}, "not an answer"),
        ({"revision": 1}, "not an answer"),
        ({"revision": "leave", "note": "x" * 20_001}, "too long"),
        ({"revision": "leave", "other": "x"}, "no field 'other'"),
        ({"revision": "revise", "drop option": {"a": 1}}, "not an option"),
    ],
)
def test_what_is_wrong_is_refused_in_words(values: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        check_values(load_form("revision"), ITEM, values)


def test_what_is_not_asked_is_left_out() -> None:
    form = load_form("pair", PAIR)
    said = {"label": "Consistent", "significance": "high", "note": " a\x00b\ud800 "}
    assert check_values(form, ITEM, said) == {"label": "Consistent", "note": "ab"}
    with pytest.raises(InputError, match="How much does the difference matter"):
        check_values(form, ITEM, {"label": "Divergent"})


def test_an_item_is_asked_for_its_criteria_alone() -> None:
    item = ReviewItem(id="i", study="s", place=0, shown=ITEM.shown, criteria=("options overlap",))
    asked = [field.name for field in asked_fields(load_form("two-level-1"), item)]
    assert asked == ["options overlap", "what overlaps", "drop option"]
    assert check_values(load_form("two-level-1"), item, {"options overlap": "pass"}) == {"options overlap": "pass"}


@pytest.mark.parametrize("name", pack_names())
def test_pairs_take_the_labels_of_any_pack(name: str) -> None:
    pack = load_pack(name)
    label, significance = agreement_fields(load_form("pair", pack_settings(pack)))
    assert label.labels == tuple(each.name for each in pack.labels)
    assert label.ordered
    assert significance.labels == tuple(pack.significance_levels)
    field = load_form("pair", pack_settings(pack)).field("significance")
    assert field is not None
    assert field.when == {"label": tuple(each.name for each in pack.labels if each.significance)}
    assert pack.reader in " ".join(load_form("pair", pack_settings(pack)).instructions)


def test_a_pair_form_without_labels_is_refused() -> None:
    with pytest.raises(InputError, match="no labels for pairs"):
        load_form("pair", {})
    with pytest.raises(UsageError, match="no form 'x'"):
        load_form("x", {})


def test_what_agreement_is_measured_on() -> None:
    assert [each.name for each in agreement_fields(load_form("failure-mode"))] == ["label"]
    assert agreement_fields(load_form("exam")) == ()
    rating = agreement_fields(load_form("likert"))[0]
    assert rating.labels == ("1", "2", "3", "4", "5")
    assert rating.ordered


def test_a_later_round_has_its_own_form() -> None:
    study = Study(id="s", title="", form="two-level-1", source="", source_sha256="")
    assert form_for(study, ITEM).name == "two-level-1"
    later = ReviewItem(id="r", study="s", place=1, shown=(), stage="revision")
    assert form_for(study, later).name == "revision"


VALUES = st.one_of(
    st.sampled_from(
        ["", "1", "yes", "no", "ok", "flag", "pass", "finding", "Divergent", "Consistent", "high", "Sepsis"]
    ),
    st.text(max_size=12),
    st.lists(st.sampled_from(["Gout", "Pseudogout", "Sepsis"]), max_size=3),
)


@given(name=st.sampled_from(FORMS), data=st.data())
def test_what_is_taken_is_taken_again_unchanged(name: str, data: st.DataObject) -> None:
    form = load_form(name, PAIR)
    values = {field.name: data.draw(VALUES) for field in form.fields}
    try:
        taken = check_values(form, ITEM, values, complete=False)
    except InputError:
        return
    assert check_values(form, ITEM, taken, complete=False) == taken
    for field in form.fields:
        if field.name in taken and field.when:
            assert any(taken.get(other) in wanted for other, wanted in field.when.items())
