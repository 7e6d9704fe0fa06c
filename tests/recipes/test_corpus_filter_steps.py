"""Filters of a corpus as steps of a recipe."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from hoofbeat.corpus.filter import parse_filters
from hoofbeat.corpus.filters.rare import RarityLimits
from hoofbeat.errors import UsageError
from hoofbeat.recipes.context import RecipeContext, RecipeSettings
from hoofbeat.recipes.corpus_steps import filter_steps, rarity_step
from hoofbeat.recipes.recipe import from_documents
from hoofbeat.recipes.recipe_items import ItemRejection, RecipeItem
from hoofbeat.recipes.steps import RecipeStep
from hoofbeat.records import Document
from tests.corpus.filter_documents import case_reports, changed_copy, run_filters
from tests.recipes.support import a_context

LINE = "year>=2023; not retracted; unique(minhash, 0.5)"


def _document(id: str, **facets: str) -> Document:
    return Document(id=id, title=f"Case {id}", text=f"Invented case {id} of a cough.", facets=dict(facets))


def _through(steps: list[RecipeStep], context: RecipeContext) -> tuple[list[RecipeItem], dict[str, tuple[str, str]]]:
    """What the steps keep, and for what they reject, as a recipe would run them."""
    items, rejected = list(from_documents(context)), {}
    for step in steps:
        outcomes = step.run(items, context)
        for item, outcome in zip(items, outcomes, strict=True):
            if isinstance(outcome, ItemRejection):
                rejected[item.id] = (step.name, outcome.reason)
        items = [outcome for outcome in outcomes if isinstance(outcome, RecipeItem)]
    return items, rejected


def _silent(name: str, request: object) -> object:
    raise AssertionError("a filter asks no model")


def test_a_line_does_to_items_what_it_does_to_a_corpus(tmp_path: Path) -> None:
    reports = [
        msgspec.structs.replace(each, facets={"year": str(2021 + place % 4)})
        for place, each in enumerate(case_reports(12))
    ]
    reports.append(changed_copy(reports[2], "copy", 0.02, 1, facets={"year": "2024"}))
    reports.append(msgspec.structs.replace(reports[3], id="gone", notices=("Retraction of the article",)))
    kept, rejected, _ = run_filters(reports, parse_filters(LINE))
    with a_context(tmp_path, reports, RecipeSettings(), _silent) as context:
        items, turned_away = _through(filter_steps(LINE), context)
        assert [item.id for item in items] == [document.id for document in kept]
        assert turned_away == {each.id: (each.step, each.reason) for each in rejected}
        assert turned_away["copy"] == ("unique(minhash, 0.5)", "near-duplicate")
        assert turned_away["gone"][0] == "not retracted"
        assert context.tables["duplicates"].header[:2] == ("first", "second")
        assert len(context.tables["duplicates"].rows) == 1


def test_a_step_for_each_filter_and_none_for_an_empty_line() -> None:
    assert [step.name for step in filter_steps(LINE)] == ["year>=2023", "not retracted", "unique(minhash, 0.5)"]
    assert filter_steps("") == filter_steps(" ; ") == []
    with pytest.raises(UsageError, match="unknown filter"):
        filter_steps("yeer>2022")


def test_a_spared_reason_marks_and_rejects_nobody(tmp_path: Path) -> None:
    documents = [_document("listed", journal="BMJ Case Rep"), _document("other", journal="Nature"), _document("none")]
    with a_context(tmp_path, documents, RecipeSettings(), _silent) as context:
        items, rejected = _through(filter_steps("venue(medical)", spare=("no venue stated",)), context)
        assert {item.id: item.facets for item in items} == {"listed": {}, "none": {"venue": "unknown"}}
        assert rejected == {"other": ("venue(medical)", "venue not on the list")}
        items, rejected = _through(filter_steps("venue(medical)"), context)
        assert rejected["none"] == ("venue(medical)", "no venue stated")


def test_marks_become_facets_that_later_filters_see(tmp_path: Path) -> None:
    citations = tmp_path / "citations.csv"
    citations.write_text("citing,cited,case_report\n" + "".join(f"x{n},often,no\n" for n in range(5)) + "y,once,yes\n")
    documents = [_document(id, year="2024") for id in ("once", "often", "never")] + [_document("old", year="2019")]
    line = f'rare("{citations}"); facet.rarity=rare'
    with a_context(tmp_path, documents, RecipeSettings(), _silent) as context:
        items, rejected = _through(filter_steps(line), context)
        assert [item.id for item in items] == ["once"]
        assert items[0].facets == {"rarity": "rare", "cited_by": "1", "cited_by_other": "0"}
        assert rejected["never"][0] == "facet.rarity=rare"
        same, _ = _through([rarity_step(str(citations), RarityLimits())], context)
        assert {item.id: item.facets["rarity"] for item in same} == {"once": "rare", "never": "unknown"}


def test_without_citations_only_the_year_is_known(tmp_path: Path) -> None:
    documents = [_document("new", year="2024"), _document("old", year="2022"), _document("undated")]
    with a_context(tmp_path, documents, RecipeSettings(), _silent) as context:
        items, rejected = _through([rarity_step("", RarityLimits())], context)
        assert {item.id: item.facets["rarity"] for item in items} == {"new": "unknown", "undated": "unknown"}
        assert rejected == {"old": ("rare(no citations, year>2022)", "published in or before 2022")}


def test_an_item_stays_when_all_its_documents_do(tmp_path: Path) -> None:
    documents = [_document("new", year="2024"), _document("old", year="2020")]
    with a_context(tmp_path, documents, RecipeSettings(), _silent) as context:
        (step,) = filter_steps("year>=2023")
        both, one, none = (
            RecipeItem(id="b", documents=("new", "old")),
            RecipeItem(id="o", documents=("new",)),
            RecipeItem(id="n"),
        )
        outcomes = step.run([both, one, none], context)
        assert isinstance(outcomes[0], ItemRejection)
        assert outcomes[1:] == [one, none]


def test_two_tables_of_one_name_are_both_kept(tmp_path: Path) -> None:
    with a_context(tmp_path, case_reports(3), RecipeSettings(), _silent) as context:
        _through(filter_steps("unique(minhash, 0.5); unique(minhash, 0.2)"), context)
        assert sorted(context.tables) == ["duplicates", "duplicates-2"]
