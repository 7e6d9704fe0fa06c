"""Names that are an organism's and nothing else, and diseases that are called after one."""

from __future__ import annotations

import pytest

from hoofbeat.recipes.guards.diagnosis_names import names_organism, other_organism, place_of, same, same_infection

ORGANISMS = """Klebsiella pneumoniae; K. pneumoniae; hypervirulent Klebsiella pneumoniae; Listeria monocytogenes;
Coccidioides immitus; Mycobacterium tuberculosis; Mycobacterium avium complex; Group A streptococcus; Escherichia coli;
Streptococcus, group A; methicillin-resistant Staphylococcus aureus (MRSA); Clostridioides difficile; Plasmodium vivax;
Cytomegalovirus; Epstein-Barr virus (EBV); SARS-CoV-2; Neisseria gonorrhoeae; Streptococcus mitis; Leptospira"""
DISEASES = """Pneumocystis jirovecii pneumonia; Klebsiella pneumonia; Listeria rhombencephalitis; Candida sepsis;
Candida empyema; Nocardia brain abscess; Staphylococcus aureus bacteremia; Mycobacterium tuberculosis infection;
Cytomegalovirus colitis; Zika virus disease; Clostridium difficile colitis; Group A streptococcal infection;
Diabetes mellitus; Pemphigus vulgaris; Myasthenia gravis; Lichen planus; Proteus syndrome;
Strongyloides hyperinfection"""


@pytest.mark.parametrize("name", [name.strip() for name in ORGANISMS.split(";")])
def test_an_organism_alone(name: str) -> None:
    assert names_organism(name)


@pytest.mark.parametrize("name", [*(name.strip() for name in DISEASES.split(";")), "", "group A", "(EBV)"])
def test_what_an_organism_does_is_a_disease(name: str) -> None:
    assert not names_organism(name)


def test_one_organism_in_one_place() -> None:
    def why(one: str, other: str) -> str:
        return same_infection(one.split(), other.split(), frozenset(one.split()), frozenset(other.split()))

    assert why("aspergillus fumigatus pneumonia", "lung aspergillose")
    assert why("lung aspergillose", "aspergillus pneumonia")
    assert not why("aspergillus pneumonia", "brain aspergillose")
    assert not why("aspergillus pneumonia", "candida pneumonia")
    assert (place_of("pneumonia"), place_of("gout")) == ("lung", "gout")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Clostridium difficile colitis", "Clostridioides difficile colitis"),
        ("Enterobacter aerogenes pneumonia", "Klebsiella aerogenes pneumonia"),
    ],
)
def test_a_species_that_got_another_genus_is_the_same(one: str, other: str) -> None:
    """Both were among the options of one question."""
    assert same(one, other)
    assert not other_organism(one, other)
    assert other_organism("Clostridium perfringens colitis", "Clostridioides difficile colitis")
