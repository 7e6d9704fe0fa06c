"""The rare-disease track: published patients' diagnoses are found under their codes, everyday ones are not."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from hoofbeat.corpus.terms import Term
from hoofbeat.corpus.vocabulary import Vocabulary, load_vocabulary
from hoofbeat.recipes.cases.rare_diseases import rare_match, rare_track
from hoofbeat.recipes.context import RecipeSettings
from hoofbeat.recipes.recipe_items import RecipeItem
from hoofbeat.records import Document
from tests.helpers import shared_data
from tests.recipes.support import a_context

SMALL = Vocabulary.of(
    "rare",
    [
        Term(code="ORPHA:1", name="Erdheim-Chester disease"),
        Term(code="OMIM:2", name="Marfan syndrome", synonyms=("MFS1 deficiency",)),
        Term(code="DECIPHER:3", name="Leri pleonosteosis"),
    ],
)


@pytest.mark.parametrize(
    ("names", "code"),
    [
        (["Erdheim-Chester disease"], "ORPHA:1"),
        (["Erdheim–Chester Disease of the orbit"], "ORPHA:1"),
        (["Something else", "MFS1 deficiency"], "OMIM:2"),
        (["Aortic dissection with pain and fever in a man who was told of Marfan syndrome"], ""),
        (["Leri pleonosteosis"], ""),
        (["Pneumonia"], ""),
        ([""], ""),
        ([], ""),
    ],
)
def test_an_entry_is_found_by_any_name_that_it_makes_up(names: list[str], code: str) -> None:
    match = rare_match(SMALL, names, cover=0.6)
    assert (match.code if match else "") == code


def test_other_catalogues_may_be_asked_for() -> None:
    assert rare_match(SMALL, ["Leri pleonosteosis"], cover=0.6, catalogues=("DECIPHER",)) is not None
    assert rare_match(SMALL, ["Marfan syndrome"], cover=0.6, catalogues=("ORPHA",)) is None


def test_diagnoses_of_published_patients_are_rare() -> None:
    """Those that the catalogue's release has at all, under whatever name."""
    vocabulary = load_vocabulary("rare-diseases")
    names = set()
    with gzip.open(shared_data("phenopackets.jsonl.gz"), "rt", encoding="utf-8") as stream:
        for line in stream:
            disease = json.loads(line)["disease"]
            if vocabulary.term(disease["id"]):
                names.add(disease["label"])
    found = [name for name in sorted(names) if rare_match(vocabulary, [name], cover=0.6)]
    assert len(names) > 400
    assert len(found) > 0.95 * len(names)


def test_everyday_diagnoses_are_not_rare() -> None:
    vocabulary = load_vocabulary("rare-diseases")
    everyday = ["Acute appendicitis", "Urinary tract infection", "Iron deficiency anemia", "Pulmonary embolism",
                "Community-acquired pneumonia", "Tension headache", "Ankle sprain", "Acute cholecystitis"]  # fmt: skip
    assert [name for name in everyday if rare_match(vocabulary, [name], cover=0.6)] == []


def test_the_track_is_a_facet_with_the_code(tmp_path: Path) -> None:
    documents = [Document(id="d", title="", text="x")]
    with a_context(tmp_path, documents, RecipeSettings(), lambda *_: {}) as context:
        items = [
            RecipeItem(id="a", values={"diagnosis": "Whipple disease"}),
            RecipeItem(id="b", values={"diagnosis": "Acute appendicitis", "synonyms": []}),
        ]
        first, second = rare_track("rare", cover=0.6).run(items, context)
    assert isinstance(first, RecipeItem)
    assert isinstance(second, RecipeItem)
    assert first.facets == {"rare": "yes", "rare-code": "ORPHA:3452"}
    assert first["rare_name"] == "Whipple disease"
    assert second.facets == {"rare": "no"}
