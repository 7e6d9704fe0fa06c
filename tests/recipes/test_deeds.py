"""What is done to a patient is no diagnosis, and no option beside one."""

from __future__ import annotations

import pytest

from hoofbeat.recipes.guards.deeds import names_deed, names_measure
from hoofbeat.recipes.guards.organisms import names_organism

DEEDS = [
    "Pediatric surgery",
    "Hysterectomy",
    "wound debridement",
    "implant removal",
    "antibiotic coated spacer",
    "coronary artery bypass graft",
    "laparoscopic anterior left adrenalectomy",
    "Hernia repair under general anesthesia",
    "resection of an ischaemic ileal segment",
    "chemotherapy",
]
DISEASES = [
    "bilateral thigh liposuction complications",
    "Post-splenectomy sepsis",
    "graft-versus-host disease",
    "Lemierre's syndrome",
    "Diabetic ketoacidosis",
    "rhabdomyolysis",
    "Transfusion-related acute lung injury",
    "dialysis disequilibrium syndrome",
    "anastomotic leak after gastrectomy",
    "T-cell lymphoma",
]


@pytest.mark.parametrize("name", DEEDS)
def test_a_deed_is_known(name: str) -> None:
    assert names_deed(name)


@pytest.mark.parametrize("name", DISEASES)
def test_a_disease_is_no_deed(name: str) -> None:
    assert not names_deed(name)
    assert not names_measure(name)
    assert not names_organism(name)


@pytest.mark.parametrize("name", ["ejection fraction of 30%", "blood pressure of 90/60 mmHg", "lactate 4 mg/dL"])
def test_a_measured_value_is_known(name: str) -> None:
    assert names_measure(name)


@pytest.mark.parametrize("name", ["K pneumoniae", "K. pneumoniae", "MRSA", "S aureus"])
def test_short_forms_of_organisms_are_known(name: str) -> None:
    assert names_organism(name)


def test_nothing_is_no_deed() -> None:
    assert not names_deed("")
    assert not names_deed("(surgery)")
