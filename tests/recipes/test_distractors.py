"""Distractors from neighbouring descriptions: ranks, the guard, what is recorded, and vectors computed once."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoofbeat.corpus.terms import Term
from hoofbeat.corpus.vocabulary import Vocabulary, load_vocabulary
from hoofbeat.models.encoders.vector_cache import CachedEncoder, cached_encoder
from hoofbeat.recipes.cases.distractors import (
    NO_DIAGNOSES,
    Neighbour,
    Patient,
    choose_distractors,
    code_descriptions,
    distractor_step,
    find_candidates,
    fits_patient,
    nearest_codes,
    patient_of,
    plain_description,
    similarity_summary,
)
from hoofbeat.recipes.context import RecipeSettings
from hoofbeat.recipes.recipe_items import ItemRejection, RecipeItem
from hoofbeat.records import Document
from tests.recipes.support import a_context
from tests.retrieval.support import HashedWords


class Wider(HashedWords):
    """Hashed words that hardly ever meet."""

    name = identity = "hashed-words-256"
    dimension = 256


def _near(*descriptions: str, code: str = "A{}") -> list[Neighbour]:
    return [
        Neighbour(rank=rank, code=code.format(rank), description=text, cosine=1 - rank / 100)
        for rank, text in enumerate(descriptions, start=1)
    ]


def _taken(diagnosis: str, near: list[Neighbour], **more: object) -> list[str]:
    walked = choose_distractors(diagnosis, near, **more)  # type: ignore[arg-type]
    return [each.neighbour.description for each in walked if not each.why]


def test_ranks_two_to_four_where_nothing_stands_against_them() -> None:
    near = _near("Urticaria", "Vasculitis", "Gout", "Scurvy", "Rickets")
    assert _taken("Whipple disease", near) == ["Vasculitis", "Gout", "Scurvy"]
    assert _taken("Whipple disease", near, ranks=(1, 2)) == ["Urticaria", "Vasculitis"]
    assert _taken("Whipple disease", near, ranks=(3, 5)) == ["Gout", "Scurvy", "Rickets"]


def test_the_guard_walks_past_the_diagnosis_in_other_words() -> None:
    near = _near(
        "Sarcoidosis", "Sarcoidosis of skin", "Sarcoidosis, unspecified", "Gout", "Boeck disease", "Rabies", "Scurvy"
    )
    walked = choose_distractors("Sarcoidosis", near, synonyms=["Boeck disease"])
    assert [each.neighbour.description for each in walked if not each.why] == ["Gout", "Rabies", "Scurvy"]
    assert [bool(each.why) for each in walked] == [True, True, True, False, True, False, False]
    assert walked[0].why == "taken to be the diagnosis"


def test_distractors_do_not_repeat_each_other() -> None:
    near = _near(
        "Whipple's disease",
        "Goniosynechiae, right eye",
        "Goniosynechiae, left eye",
        "Bite of breast, initial encounter",
        "Bite of breast, sequela",
        "Gout",
    )
    assert _taken("Whipple disease", near) == ["Goniosynechiae, right eye", "Bite of breast, initial encounter", "Gout"]


def test_codes_that_name_no_diagnosis_are_passed_over() -> None:
    near = _near("Gout", "Family history of gout", "Rabies", "Measles", "Scurvy", code="Z{}")
    assert _taken("Whipple disease", near, leave_out=NO_DIAGNOSES) == []
    assert len(_taken("Whipple disease", near)) == 3
    organisms = _near("Gout", "Adenovirus as the cause of diseases classified elsewhere", "Rabies", code="B97.{}")
    assert _taken("Whipple disease", organisms, leave_out=NO_DIAGNOSES) == []


def test_what_the_nearest_description_is_called_counts_as_the_diagnosis() -> None:
    vocabulary = Vocabulary.of(
        "mine",
        [
            Term(code="A15", name="Respiratory tuberculosis"),
            Term(code="A15.0", name="Tuberculosis of lung", parents=("A15",)),
        ],
    )
    near = _near("Tuberculosis of lung", "Respiratory tuberculosis", "Gout", "Rabies", "Scurvy")
    taken = _taken("Pulmonary tuberculosis", near, vocabularies=[vocabulary])
    assert taken == ["Gout", "Rabies", "Scurvy"]


def test_the_classification_has_its_long_descriptions() -> None:
    vocabulary = load_vocabulary("icd10cm")
    every, few = code_descriptions(vocabulary), code_descriptions(vocabulary, encounters=False)
    assert len(every.descriptions) > 90_000  # the paper counted 94,766 in its release
    assert 40_000 < len(few.descriptions) < 60_000
    assert len(set(every.descriptions)) == len(every.descriptions)
    assert not any("-" in code for code in every.codes)
    assert any(text.endswith("subsequent encounter") for text in every.descriptions)
    assert not any(text.endswith("subsequent encounter") for text in few.descriptions)


def test_search_is_exact_and_vectors_are_computed_once(tmp_path: Path) -> None:
    codes = code_descriptions(load_vocabulary("icd10cm"), encounters=False)
    encoder = cached_encoder(Wider(), tmp_path)
    (near,) = nearest_codes(["Acute appendicitis"], codes, encoder, count=4)
    assert (near[0].description, near[0].cosine) == ("Acute appendicitis", 1.0)
    assert [each.cosine for each in near] == sorted((each.cosine for each in near), reverse=True)
    misses = encoder.misses
    again = CachedEncoder(Wider(), tmp_path)
    assert nearest_codes(["Acute appendicitis"], codes, again, count=4) == [near]
    assert again.misses == 0
    assert misses == len(codes.descriptions)  # the diagnosis is a description, word for word


class _None(RecipeSettings, frozen=True, kw_only=True):
    """No parameters."""


def test_the_step_gives_distractors_and_records_how_similar_they_are(tmp_path: Path) -> None:
    items = [
        RecipeItem(id=f"i{n}", values={"diagnosis": name})
        for n, name in enumerate(("Acute appendicitis", "Dengue fever"))
    ]
    documents = [Document(id="d", title="d", text="An invented text.")]
    with a_context(tmp_path, documents, _None(), lambda _n, _r: "", encoder=Wider) as context:
        outcomes = distractor_step("distractors", encounters=False).run(items, context)
        for outcome in outcomes:
            assert isinstance(outcome, RecipeItem)
            assert len(set(outcome["distractors"])) == 3
        table = context.tables["similarity"]
        assert table.header == ("item", "rank", "code", "description", "cosine", "use")
        uses = [str(row[-1]) for row in table.rows if row[0] == "i0"]
        assert uses[0] == "taken to be the diagnosis"
        assert [use for use in uses if use.startswith("distractor")] == ["distractor 1", "distractor 2", "distractor 3"]
        assert all(use.startswith(("taken", "passed over: ", "distractor")) for use in uses)
        summary = context.metrics["similarity"]
        assert isinstance(summary, dict)
        assert summary["descriptions"] > 40_000
        assert set(summary["quartiles"]) == {"1", "2", "3", "4", "distractors"}
        assert sum(summary["histogram"]["distractors"]) == 6
        assert context.vocabularies_used.keys() == {"icd10cm", "rare-diseases"}


def test_too_few_distractors_turn_an_item_away(tmp_path: Path) -> None:
    documents = [Document(id="d", title="d", text="An invented text.")]
    with a_context(tmp_path, documents, _None(), lambda _n, _r: "", encoder=Wider) as context:
        step = distractor_step("distractors", encounters=False, deepest=3)
        (outcome,) = step.run([RecipeItem(id="i", values={"diagnosis": "Acute appendicitis"})], context)
        assert isinstance(outcome, ItemRejection)
        assert outcome.reason == "too few distractors that exclude the diagnosis"
        assert outcome.details.endswith("among the 3 nearest descriptions")


def test_quartiles_and_histogram_of_known_numbers() -> None:
    found = [_near(*"abcd"), _near(*"abcd")]
    summary = similarity_summary(found, ["0.5", "-0.2", "1.0"], 2)
    quartiles, histogram = summary["quartiles"], summary["histogram"]
    assert isinstance(quartiles, dict)
    assert isinstance(histogram, dict)
    assert quartiles["1"] == {"min": 0.99, "q1": 0.99, "median": 0.99, "q3": 0.99, "max": 0.99}
    assert quartiles["distractors"]["median"] == pytest.approx(0.5)
    assert histogram["distractors"][0] == histogram["distractors"][10] == histogram["distractors"][-1] == 1


# Candidates, by text search and the tree of codes


def test_descriptions_lose_coding_words_and_leftover_groups_are_none() -> None:
    assert plain_description("Zygomycosis, unspecified") == "Zygomycosis"
    assert plain_description("Burn of unspecified degree of foot, initial encounter").startswith("Burn of degree")
    assert plain_description("Open wound of hand, sequela") == "Open wound of hand"
    assert plain_description("Viral infection of unspecified site") == "Viral infection"
    assert plain_description("Myasthenia gravis without (acute) exacerbation") == "Myasthenia gravis"
    for rest in ("Other specified myoneural disorders", "Disorders of sclera", "Personal history of gout"):
        assert plain_description(rest) == ""


@pytest.mark.parametrize(
    ("case", "patient"),
    [
        ("A 60-year-old man had a cough; his daughter is well.", Patient("male", 60)),
        ("A 3-month-old girl was brought by her father.", Patient("female", 0.25)),
        ("A woman, 31 years of age, at 20 weeks of gestation", Patient("female", 31, pregnant=True)),
        ("The patient had a cough.", Patient()),
    ],
)
def test_sex_age_and_pregnancy_are_read_from_a_case(case: str, patient: Patient) -> None:
    assert patient_of(case) == patient


@pytest.mark.parametrize(
    ("code", "text", "patient", "fits"),
    [
        ("N44.0", "Torsion of testis", Patient("female", 30), False),
        ("N80", "Endometriosis", Patient("male", 30), False),
        ("N80", "Endometriosis", Patient("", 30), True),
        ("O00", "Ectopic pregnancy", Patient("female", 30), False),
        ("O00", "Ectopic pregnancy", Patient("female", 30, pregnant=True), True),
        ("P78.83", "Newborn esophageal reflux", Patient("male", 50), False),
        ("M08", "Juvenile arthritis", Patient("male", 50), False),
        ("H25", "Age-related cataract", Patient("male", 20), False),
        ("B44", "Aspergillosis", Patient("male", 50), True),
    ],
)
def test_candidates_fit_sex_and_age(code: str, text: str, patient: Patient, fits: bool) -> None:
    assert fits_patient(code, text, patient) is fits


def test_candidates_are_other_diseases_near_to_the_diagnosis() -> None:
    icd, rare = load_vocabulary("icd10cm"), load_vocabulary("rare-diseases")

    def near(diagnosis: str, report: str = "") -> list[str]:
        found = find_candidates(
            diagnosis, Patient("male", 50), icd, count=16, report=report, guards=[icd, rare], leave_out=NO_DIAGNOSES
        )
        return [each.text for each in found]

    mucor = near("Mucormycosis", "We thought of sarcoidosis and of granulomatosis with polyangiitis.")
    assert {"Aspergillosis", "Candidiasis", "Sarcoidosis"} <= set(mucor)
    assert not [text for text in mucor if "ucormyc" in text or "ygomyc" in text]  # the parent is no other disease
    assert not [text for text in near("Aeromonas septic shock") if text in ("Septic shock", "Shock")]
    assert not [text for text in near("Myasthenia gravis") if text.startswith("Myasthenia gravis")]
    elsewhere = {"Sarcoidosis of lung", "Sarcoidosis of skin"}
    assert elsewhere.isdisjoint(near("Cardiac sarcoidosis"))
    assert "Pemphigus vulgaris" in near("Paraneoplastic pemphigus")
    assert near("Qwertyosis") == []


def test_what_the_case_names_comes_last_among_the_candidates() -> None:
    icd = load_vocabulary("icd10cm")
    case = "A 50-year-old man with hyperlipidemia had a cardiac arrest."
    report = f"{case} We thought of sarcoidosis. Hyperlipidemia and cardiac arrest are common."
    found = [
        each.text
        for each in find_candidates("Mucormycosis", Patient("male", 50), icd, count=100, report=report, case=case)
    ]
    assert set(found[-2:]) == {"Hyperlipidemia", "Cardiac arrest"}
    assert found[0] == "Sarcoidosis"


def test_numbers_and_names_of_all_kinds_of_diseases_find_no_candidates() -> None:
    icd = load_vocabulary("icd10cm")
    report = "An infectious disease and a malignant neoplasm were excluded."
    found = find_candidates("COVID-19", Patient("male", 50), icd, count=100, report=report)
    assert not [each.text for each in found if "body surface" in each.text]
    assert {"Infectious disease", "Malignant (primary) neoplasm"}.isdisjoint(each.text for each in found)
