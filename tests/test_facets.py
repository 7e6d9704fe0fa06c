"""Facets are read in one way: one value or many, each once."""

from __future__ import annotations

from hoofbeat.facets import FacetTally, facet_names, facet_value, facet_values, has_facets, year_of
from hoofbeat.records import Document, Facets

FACETS: Facets = {"organ": "liver", "topics": ["dose", "timing", "dose"], "none": []}


def test_values_are_listed_once_in_order() -> None:
    assert facet_values(FACETS, "topics") == ["dose", "timing"]
    assert facet_values(FACETS, "organ", "missing", "none", "topics") == ["liver", "dose", "timing"]
    assert [facet_value(FACETS, name) for name in ("organ", "topics", "none", "missing")] == ["liver", "dose", "", ""]


def test_one_of_the_values_wanted_of_each_facet_is_enough() -> None:
    assert has_facets(FACETS, {})
    assert has_facets(FACETS, {"organ": {"kidney", "liver"}, "topics": ["timing"]})
    assert not has_facets(FACETS, {"organ": {"liver"}, "missing": {"x"}})


def test_the_year_is_read_from_what_states_it() -> None:
    assert year_of(Document(id="d", title="", text="", facets={"date": "3 May 2019"})) == 2019
    assert year_of(Document(id="d", title="", text="", facets={"year": "12019"})) is None


def test_facets_that_tell_nothing_apart_are_not_counted() -> None:
    rows: list[Facets] = [
        {"id": str(n), "organ": "ab"[n % 2], "same": "x", "specialty": "st"[n % 2]} for n in range(50)
    ]
    assert facet_names(rows) == ["specialty", "organ"]
    assert FacetTally(rows).counts()["organ"] == [("a", 25), ("b", 25)]
