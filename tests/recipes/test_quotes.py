"""Quotes prove what was extracted, or the item is turned away with the quote that is not there."""

from __future__ import annotations

from hoofbeat.recipes.guards.text_checks import prove
from hoofbeat.recipes.recipe_items import ItemRejection, RecipeItem
from hoofbeat.records import Document

TEXT = "On day 2 the left knee was aspirated. Crystals were seen. No growth was found after five days."
DOCUMENT = Document(id="d", title="", text=TEXT)
ITEM = RecipeItem(id="i", documents=("d",))


def test_all_quotes_become_evidence_once() -> None:
    proven = prove(
        ITEM, DOCUMENT, ["crystals WERE seen", "Crystals were seen.", "the left knee … five days"], "finding"
    )
    assert isinstance(proven, RecipeItem)
    assert [span.quote for span in proven.evidence] == [
        "Crystals were seen",
        "Crystals were seen.",
        "the left knee",
        "five days",
    ]
    again = prove(proven, DOCUMENT, ["Crystals were seen."], "finding")
    assert isinstance(again, RecipeItem)
    assert again.evidence == proven.evidence


def test_a_quote_that_is_not_there_is_named() -> None:
    refused = prove(ITEM, DOCUMENT, ["Crystals were seen", "The right knee was replaced."], "significance")
    assert refused == ItemRejection(
        reason="a quote for the significance is not in the source", details="The right knee was replaced."
    )


def test_nothing_and_little_words_prove_nothing() -> None:
    assert prove(ITEM, DOCUMENT, [], "limitation") == ItemRejection(reason="there is no quote for the limitation")
    for quote in ("", "  ", "...", "was", "of the", "5"):
        refused = prove(ITEM, DOCUMENT, [quote], "limitation")
        assert isinstance(refused, ItemRejection)
        assert refused.reason == "a quote for the limitation says nothing"


def test_a_quote_from_elsewhere_in_the_document_does_not_count() -> None:
    cut = TEXT.index("Crystals")
    refused = prove(ITEM, DOCUMENT, ["Crystals were seen"], "finding", within=(0, cut))
    assert isinstance(refused, ItemRejection)
    assert isinstance(prove(ITEM, DOCUMENT, ["Crystals were seen"], "finding", within=(cut, len(TEXT))), RecipeItem)


def test_a_long_made_up_quote_is_shown_in_part() -> None:
    refused = prove(ITEM, DOCUMENT, ["nonsense " * 500], "finding")
    assert isinstance(refused, ItemRejection)
    assert len(refused.details) <= 300
