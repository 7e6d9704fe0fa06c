"""Which diagnoses mean the same, and how proposals become options that exclude each other."""

from __future__ import annotations

import random
import tomllib
from functools import cache
from importlib import resources
from itertools import chain

import pytest

from hoofbeat.corpus.terms import Term, tokens
from hoofbeat.corpus.vocabulary import Vocabulary, load_vocabulary
from hoofbeat.recipes.cases.answer_options import CORRECT, merge_options, plain_option, same, shuffled, unfit
from hoofbeat.recipes.guards.diagnosis_names import excludes, same_as_answer, without_sides

SAME = [
    ("tuberculosis of lung", "Pulmonary tuberculosis"),
    ("haemorrhages", "hemorrhage"),
    ("Kawasaki syndrome", "Kawasaki's disease"),
    ("type I diabetes mellitus", "Diabetes mellitus, type 1"),
    ("acute pancreatitis", "Acute pancreatitis with necrosis"),
    ("tumour of the brain", "brain tumor"),
    ("Fracture of shaft of femur, initial encounter for closed fracture", "fracture of shaft of femur"),
    ("rheumatoid arthritis", "Rheumatoid arthritis, unspecified"),
    ("renal cell carcinoma", "kidney cancer"),
    ("breast cancer", "Malignant neoplasm of breast"),
    ("GPA", "granulomatosis with polyangiitis"),
    ("granulomatosis with polyangiitis", "Granulomatosis with polyangiitis (GPA)"),
    ("polyarteritis nodosa", "PAN"),
    ("DLBCL", "diffuse large B-cell lymphoma"),
    ("Myocardial infarction", "heart attack"),
    ("left ureteral stone", "Calculus of ureter"),
    ("Ewing sarcoma of the mandible", "Malignant neoplasm of mandible"),
    ("cirrhosis of the liver", "Disease of liver, unspecified"),
    ("necrotising fasciitis", "necrotizing fascitis"),
    ("Myeloid sarcoma", "Myeloid sarcoma, in relapse"),
    ("breast cancer", "Neoplasm of unspecified behavior of breast"),
    ("Diabetic ketoacidosis", "Type 2 diabetes mellitus with ketoacidosis"),
    ("Diabetic ketoacidosis", "Type 1 diabetes mellitus with ketoacidosis without coma"),
    ("Klebsiella pneumoniae", "Klebsiella pneumoniae [K. pneumoniae] as the cause of diseases classified elsewhere"),
    ("Pneumonia", "Abscess of lung with pneumonia"),
    ("Hypotension", "Maternal hypotension syndrome"),
    ("Cardiac sarcoidosis", "Sarcoid myocarditis"),
    ("Tuberculous meningitis", "Tuberculosis of meninges"),
    ("Listeria rhombencephalitis", "Encephalitis and encephalomyelitis in diseases classified elsewhere"),
    ("Anti-NMDAR encephalitis", "Encephalitis, myelitis and encephalomyelitis, unspecified"),
    ("Aspergillus fumigatus pneumonia", "Other pulmonary aspergillosis"),
    ("Aspergillus pneumonia", "Aspergillosis, unspecified"),
]
DIFFERENT = [
    ("type 1 diabetes mellitus", "type 2 diabetes mellitus"),
    ("left ureteral stone", "right ureteral stone"),
    ("benign neoplasm of colon", "malignant neoplasm of colon"),
    ("acute pancreatitis", "chronic pancreatitis"),
    ("primary hyperparathyroidism", "secondary hyperparathyroidism"),
    ("asthma with exacerbation", "asthma without exacerbation"),
    ("hyperthyroidism", "hypothyroidism"),
    ("hyperkalemia", "hypokalemia"),
    ("Hodgkin lymphoma", "non-Hodgkin lymphoma"),
    ("gout", "pseudogout"),
    ("bronchitis", "bronchiolitis"),
    ("laryngitis", "pharyngitis"),
    ("arthritis", "arteritis"),
    ("hepatitis B", "hepatitis C"),
    ("B-cell lymphoma", "T-cell lymphoma"),
    ("Factor V deficiency", "Factor VII deficiency"),
    ("multiple sclerosis", "systemic sclerosis"),
    ("MS", "mesothelioma"),
    ("granulomatosis with polyangiitis (GPA)", "granulomatous prostatitis"),
    ("hypercalcemia due to lymphoma", "lymphoma"),
    ("ischemic stroke", "hemorrhagic stroke"),
    ("intracranial abscess", "extracranial abscess"),
    ("sarcoidosis", "tuberculosis"),
    ("leukemia", "leukopenia"),
    ("", "sarcoidosis"),
    ("Diabetic ketoacidosis", "Type 1 diabetes mellitus without ketoacidosis"),
    ("Diabetic ketoacidosis", "Alcoholic ketoacidosis"),
    ("multiple myeloma", "hypercalcemia due to multiple myeloma"),
    ("pneumonia", "whooping cough without pneumonia"),
    ("Cardiac sarcoidosis", "Sarcoidosis of lung"),
    ("Anti-NMDAR encephalitis", "Acute disseminated encephalitis and encephalomyelitis (ADEM)"),
    ("Aspergillus pneumonia", "Cerebral aspergillosis"),
    ("Aspergillus pneumonia", "Allergic bronchopulmonary aspergillosis"),
    ("Candida pneumonia", "Candidal stomatitis"),
]
SAME_BY_CODE = [
    ("Crohn's disease", "regional enteritis"),
    ("Wegener's granulomatosis", "Granulomatosis with polyangiitis (GPA)"),
    ("primary biliary cirrhosis", "primary biliary cholangitis"),
    ("SLE", "systemic lupus erythematosus"),
    ("Sarcoidosis", "Sarcoid myocarditis"),  # a kind of it
    ("Wegener's granulomatosis without renal involvement", "granulomatosis with polyangiitis"),
]


@cache
def _vocabularies() -> tuple[Vocabulary, ...]:
    return (load_vocabulary("icd10cm"), load_vocabulary("rare-diseases"))


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_in_other_words(one: str, other: str) -> None:
    for vocabularies in ((), _vocabularies()):
        assert same(one, other, vocabularies)
        assert same(other, one, vocabularies)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_words_that_look_alike_are_not_the_same(one: str, other: str) -> None:
    for vocabularies in ((), _vocabularies()):
        assert not same(one, other, vocabularies)
        assert not same(other, one, vocabularies)


@pytest.mark.parametrize(("one", "other"), SAME_BY_CODE)
def test_a_vocabulary_knows_names_that_words_do_not(one: str, other: str) -> None:
    assert not same(one, other) or one == "SLE"
    assert same(one, other, _vocabularies())
    assert same(other, one, _vocabularies())


def test_the_lists_stand_in_the_form_that_words_are_compared_in() -> None:
    data = resources.files("hoofbeat.recipes") / "data"
    lists = tomllib.loads((data / "sameness.toml").read_text(encoding="utf-8"))
    places = tomllib.loads((data / "organisms.toml").read_text(encoding="utf-8"))["places"]
    listed = [*lists["empty"], *lists["ends_head"], *lists["kinds"], *chain(*lists["opposites"])]
    for word in [*listed, *lists["words"], *lists["words"].values(), *places, *places.values()]:
        assert list(tokens(word).forms) == [word]


def test_a_code_for_the_rest_of_a_group_makes_nothing_the_same() -> None:
    rest = Vocabulary.of("mine", [Term(code="Q87.1", name="Other short stature", synonyms=("Cockayne", "Aarskog"))])
    one = Vocabulary.of("mine", [Term(code="Q87.1", name="Short stature", synonyms=("Cockayne", "Aarskog"))])
    assert not same("Cockayne", "Aarskog", [rest])
    assert same("Cockayne", "Aarskog", [one]) == "the same code in mine"


def test_names_exclude_each_other_by_single_words() -> None:
    assert excludes("Fracture, left femur", "Fracture, right femur")
    assert not excludes("Fracture of femur", "Fracture, right femur")
    assert without_sides("Goniosynechiae, right eye") == "Goniosynechiae,"


def test_proposals_merge_to_options_that_exclude_each_other() -> None:
    merged = merge_options(
        "Crohn's disease",
        [
            ("discussion", ["A. Ulcerative colitis.", "regional enteritis", "None of the above", ""]),
            ("model", ["ulcerative colitis", "Intestinal tuberculosis", "2) Lymphoma", "Celiac disease"]),
        ],
        maximum=4,
        vocabularies=_vocabularies(),
    )
    assert merged.texts == ("Crohn's disease", "Ulcerative colitis", "Intestinal tuberculosis", "Lymphoma")
    assert [option.origin for option in merged.options] == [CORRECT, "discussion", "model", "model"]
    assert [(text, origin, why.partition(":")[0]) for text, origin, why in merged.dropped] == [
        ("regional enteritis", "discussion", "means the same as the right answer"),
        ("None of the above", "discussion", "names no condition"),
        ("", "discussion", "empty"),
        ("ulcerative colitis", "model", "means the same as Ulcerative colitis"),
        ("Celiac disease", "model", "enough options without it"),
    ]


def test_ten_options_are_cut_to_what_is_wanted_and_all_are_accounted_for() -> None:
    ten = ["Gout", "Measles", "Rabies", "Asthma", "Anthrax", "Leprosy", "Cholera", "Scurvy", "Rickets", "Typhus"]
    merged = merge_options("Sarcoidosis", [("model", ten)], maximum=4)
    assert len(merged.options) == 4
    assert len(merged.options) + len(merged.dropped) == 11


def test_an_option_is_one_plain_line() -> None:
    assert plain_option(" - **B)  Takayasu\narteritis.** ") == "Takayasu arteritis"
    assert unfit("word " * 30)
    assert unfit("unknown")
    assert not unfit("Unknown primary carcinoma")


@pytest.mark.parametrize(
    "organism", ["M. canis sepsis", "C. difficile colitis", "E. coli bacteremia", "E. Coli sepsis"]
)
def test_the_letter_of_a_genus_is_no_option_letter(organism: str) -> None:
    assert plain_option(organism) == organism
    assert plain_option(f"B. {organism}.") == organism
    assert plain_option("C. Difference in leg length") == "Difference in leg length"
    merged = merge_options("Gout", [("discussion", [organism])], maximum=4)
    assert merged.texts == ("Gout", organism)


def test_the_order_depends_on_the_seed_alone() -> None:
    options = ["d", "a", "c", "b"]
    orders = {shuffled(options, random.Random(seed)) for seed in range(40)}
    assert len(orders) > 10
    assert all(sorted(order) == ["a", "b", "c", "d"] for order in orders)
    assert shuffled(options, random.Random(3)) == shuffled(options[::-1], random.Random(3))


MRSA = "Necrotizing pneumonia due to community-acquired methicillin-resistant Staphylococcus aureus"
GATTII = "Disseminated cryptococcosis with cryptococcal meningitis due to Cryptococcus gattii"


@pytest.mark.parametrize(
    ("text", "diagnosis", "synonyms", "alike"),
    [
        ("Necrotizing pneumonia due to Klebsiella pneumoniae", MRSA, ["necrotizing pneumonia"], False),
        (
            "Necrotizing pneumonia due to methicillin-susceptible Staphylococcus aureus",
            MRSA,
            ["necrotizing pneumonia", "MRSA"],
            False,
        ),
        (
            "Disseminated cryptococcosis with meningitis due to Cryptococcus neoformans",
            GATTII,
            ["cryptococcosis", "cryptococcal meningitis"],
            False,
        ),
        ("Cryptococcal meningitis", GATTII, ["cryptococcal meningitis"], True),
        ("Necrotizing pneumonia", MRSA, ["necrotizing pneumonia"], True),
        ("C. gattii meningitis", GATTII, ["C. gattii meningitis"], True),
    ],
)
def test_another_organism_is_another_disease(text: str, diagnosis: str, synonyms: list[str], alike: bool) -> None:
    assert bool(same_as_answer(text, diagnosis, synonyms, [load_vocabulary("icd10cm")])) == alike
