"""Grouping cases by diagnosis, choosing those that ask, and what is left of a case as its presentation."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from hoofbeat.corpus.terms import Match
from hoofbeat.corpus.vocabulary import Vocabulary, load_vocabulary
from hoofbeat.errors import HoofbeatError
from hoofbeat.recipes.context import RecipeSettings
from hoofbeat.recipes.pools.diagnosis_groups import (
    choose_queries,
    group_cases,
    group_names,
    groups_of,
)
from hoofbeat.recipes.pools.pool_sources import PieceCollection
from hoofbeat.recipes.recipe_items import ItemRejection, RecipeItem
from hoofbeat.records import Document
from tests.recipes.support import a_context


def test_names_of_one_condition_share_a_group() -> None:
    names = [
        "Sarcoidosis",
        "sarcoidosis",
        "pulmonary embolism",
        "Pulmonary embolisms",
        "systemic lupus erythematosus",
        "SLE",
        "type 1 diabetes mellitus",
        "type 2 diabetes mellitus",
        "carcinoma",
        "carcinoma of the liver",
    ]
    assert groups_of(names) == [0, 0, 2, 2, 4, 4, 6, 7, 8, 9]
    assert groups_of([]) == []


def test_a_vocabulary_joins_other_names() -> None:
    try:
        vocabulary = load_vocabulary("icd10cm")
    except HoofbeatError as err:
        pytest.skip(f"needs ICD-10-CM: {err}")
    names = ["Graves' disease", "toxic diffuse goiter", "Hashimoto thyroiditis"]
    numbers = groups_of(names, [vocabulary])
    assert numbers[0] != numbers[2]
    assert groups_of(["nephroblastoma", "Wilms tumor"], [vocabulary]) in ([0, 0], [0, 1])


def test_however_many_cases_share_a_name_they_are_one_group() -> None:
    assert set(groups_of(["Sarcoidosis", "sarcoidosis"] * 300)) == {0}
    found = group_names(["type 1 diabetes", "type 2 diabetes"] * 300, max_together=2)
    assert set(found.numbers) == {0, 1}
    assert (found.names, found.skipped) == (2, {})


def test_a_word_that_too_many_share_is_not_compared_and_is_said() -> None:
    names = ["liver abscess", "lung abscess", "brain abscess", "abscess of the brain"]
    few = group_names(names, max_together=2)
    assert few.skipped == {"word absce": 4}
    assert few.numbers == [0, 1, 2, 2]  # the two of the brain still meet by their other word
    assert group_names(names, max_together=4).skipped == {}


def _near(names: list[str], vocabularies: list[Vocabulary]) -> list[list[int]]:
    return [sorted(each) for each in group_names(names, vocabularies).near]


def test_a_condition_and_a_kind_of_it_are_near_and_not_one() -> None:
    names = ["Appendicitis", "acute ruptured appendicitis", "rhabdomyolysis-induced AKI"]
    assert group_names(names).numbers == [0, 1, 2]
    assert _near(names, []) == [[1], [0], []]


def test_names_that_hold_one_condition_of_a_vocabulary_are_near() -> None:
    known = _vocabularies()
    names = [
        "Necrotizing fasciitis of the neck",
        "Necrotizing fasciitis of the leg due to group A streptococcus",
        "Scrub typhus complicated by ARDS",
        "Typhus fever due to Rickettsia tsutsugamushi",
        "Sepsis due to Capnocytophaga canimorsus",
        "Sepsis due to Escherichia coli",
    ]
    assert _near(names, known) == [[1], [0], [3], [2], [], []]
    assert groups_of(["Weil disease", "Leptospirosis icterohemorrhagica"], known) == [0, 0]
    assert groups_of(["Wegener granulomatosis", "Granulomatosis with polyangiitis"], known) == [0, 0]


def test_what_excludes_each_other_is_not_near() -> None:
    names = ["acute promyelocytic leukemia with differentiation syndrome", "chronic promyelocytic leukemia"]
    assert _near(names, _vocabularies()) == [[], []]


def _vocabularies() -> list[Vocabulary]:
    try:
        return [load_vocabulary("icd10cm"), load_vocabulary("rare-diseases")]
    except HoofbeatError as err:
        pytest.skip(f"needs the vocabularies: {err}")


class _Codes:
    """A vocabulary that knows many names under one code."""

    name = "invented"

    def lookup(self, name: str) -> list[Match]:
        found = Match(code="X1", name="Invented", start=0, end=len(name), text=name)
        return [found] if name.startswith("Inv") else []

    def find_phrases(self, name: str) -> list[Match]:
        return self.lookup(name)

    def term(self, code: str) -> None:
        return None

    terms = ()


def test_very_many_names_of_one_code_are_one_group() -> None:
    names = [f"Inv{chr(97 + n % 26)}{chr(97 + n // 26)}osis" for n in range(120)]
    found = group_names([*names, "gout"], [cast(Vocabulary, _Codes())], max_together=20)
    assert found.numbers == [0] * 120 + [120]


def test_what_was_not_compared_stands_in_the_metrics(tmp_path: Path) -> None:
    items = [_case(str(n), name) for n, name in enumerate(["liver abscess", "lung abscess", "brain abscess"])]
    documents = [Document(id=item.id, title="", text="x") for item in items]
    with a_context(tmp_path, documents, RecipeSettings(), lambda n, r: {}) as context:
        step = group_cases("group", PieceCollection(cases=True), minimum=2, vocabularies=(), max_together=2)
        step.run(items, context)
        assert context.metrics["group"] == {
            "names": 3,
            "diagnoses": 3,
            "not compared, too common": {"word absce": 3},
        }


def _case(id: str, diagnosis: str, **values: object) -> RecipeItem:
    return RecipeItem(id=id, documents=(id,), values={"diagnosis": diagnosis, **values})


def test_cases_with_too_few_fellows_are_turned_away(tmp_path: Path) -> None:
    items = [_case("a", "sarcoidosis"), _case("b", "gout"), _case("c", "Sarcoidosis"), _case("d", "sarcoidosis")]
    documents = [Document(id=item.id, title="", text="x") for item in items]
    with a_context(tmp_path, documents, RecipeSettings(), lambda n, r: {}) as context:
        a, b, c, _ = group_cases("group", PieceCollection(cases=True), minimum=2, vocabularies=()).run(items, context)
        assert isinstance(a, RecipeItem)
        assert a["fellows"] == ["c", "d"]
        assert a["synonyms"] == ["Sarcoidosis"]
        assert isinstance(b, ItemRejection)
        assert b.reason == "too few cases of its diagnosis"
        assert isinstance(c, RecipeItem)
        assert c["group"] == a["group"]
        four = group_cases("group", PieceCollection(cases=True), minimum=4, vocabularies=()).run(items, context)
        assert all(isinstance(each, ItemRejection) for each in four)


def test_fellows_of_a_kind_come_after_those_of_the_same_diagnosis(tmp_path: Path) -> None:
    items = [
        _case("a", "necrotizing fasciitis"),
        _case("b", "necrotizing fasciitis of the neck"),
        _case("c", "Necrotising fasciitis"),
        _case("d", "flesh-eating disease", synonyms=["necrotizing fasciitis"]),
        _case("e", "gout"),
    ]
    documents = [Document(id=item.id, title="", text="x") for item in items]
    with a_context(tmp_path, documents, RecipeSettings(), lambda n, r: {}) as context:
        shelf = PieceCollection(cases=True)
        a, b, _, d, e = group_cases("group", shelf, minimum=2, vocabularies=(), kinds=True).run(items, context)
        assert isinstance(a, RecipeItem)
        assert (a["fellows"], a["near"]) == (["c", "d", "b"], ["b"])  # d goes by another name in its report
        assert isinstance(b, RecipeItem)
        assert b["fellows"] == b["near"] == ["a", "c", "d"]
        assert isinstance(d, RecipeItem)
        assert d["group"] == a["group"] != b["group"]
        assert isinstance(e, ItemRejection)
        strict = group_cases("group", PieceCollection(cases=True), minimum=2, vocabularies=()).run(items, context)
        assert isinstance(strict[1], ItemRejection)


def test_a_fellows_diagnosis_is_no_other_name_of_the_answer(tmp_path: Path) -> None:
    """Cases of one group share a name; the leak check must not look for the organism of another patient."""
    shared = ["necrotizing fasciitis"]
    items = [
        _case("a", "Klebsiella pneumoniae necrotizing fasciitis", synonyms=shared),
        _case("b", "Pseudomonas aeruginosa necrotizing fasciitis", synonyms=shared),
        _case("c", "necrotizing fasciitis due to Klebsiella pneumoniae", synonyms=shared),
    ]
    documents = [Document(id=item.id, title="", text=f"The case of {item.id}.") for item in items]
    shelf = PieceCollection(cases=True)
    with a_context(tmp_path, documents, RecipeSettings(), lambda n, r: {}) as context:
        a, b, _ = group_cases("group", shelf, minimum=2, vocabularies=()).run(items, context)
        assert isinstance(a, RecipeItem)
        assert isinstance(b, RecipeItem)
        assert (a["fellows"], b["fellows"]) == (["b", "c"], ["a", "c"])
        assert "Pseudomonas aeruginosa necrotizing fasciitis" not in a["synonyms"]
        assert b["synonyms"] == shared
        told = "Diagnosis that its report comes to: Pseudomonas aeruginosa necrotizing fasciitis\nThe case of b."
        assert shelf.case_text("b", context) == told


def test_those_that_ask_are_not_found_and_some_are_left_to_find(tmp_path: Path) -> None:
    ids = ["a", "b", "c", "x", "y"]
    groups = {"a": "abc", "b": "abc", "c": "abc", "x": "xy", "y": "xy"}
    items = [_case(id, "gout", group=groups[id], fellows=[each for each in groups[id] if each != id]) for id in ids]
    documents = [Document(id=id, title="", text=f"The case of {id}.") for id in ids]
    seen = set()
    for seed in range(8):
        shelf = PieceCollection(cases=True)
        with a_context(tmp_path, documents, RecipeSettings(), lambda n, r: {}, seed=seed) as context:
            outcomes = choose_queries("queries", shelf, maximum=5).run(items, context)
            asking = [each for each in outcomes if isinstance(each, RecipeItem)]
            assert len([each for each in asking if each["group"] == "abc"]) == 2
            assert len([each for each in asking if each["group"] == "xy"]) == 1
            left = {piece.id for piece in shelf.pieces(context)}
            for item in asking:
                assert len(item["known"]) == 1
                assert set(item["known"]) <= left
                assert item.id not in left
            seen.add(tuple(item.id for item in asking))
    assert len(seen) > 1
