"""What is done to a patient is no diagnosis, and no option beside one."""

from __future__ import annotations

import pytest

from hoofbeat.recipes.guards.diagnosis_names import names_measure, names_organism, names_procedure

PROCEDURES = [
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
    "Subcapsular renal hematoma following ureteroscopic lithotripsy",
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


@pytest.mark.parametrize("name", PROCEDURES)
def test_a_procedure_is_known(name: str) -> None:
    assert names_procedure(name)


@pytest.mark.parametrize("name", DISEASES)
def test_a_disease_is_not_a_procedure(name: str) -> None:
    assert not names_procedure(name)
    assert not names_measure(name)
    assert not names_organism(name)


@pytest.mark.parametrize("name", ["ejection fraction of 30%", "blood pressure of 90/60 mmHg", "lactate 4 mg/dL"])
def test_a_measured_value_is_known(name: str) -> None:
    assert names_measure(name)


@pytest.mark.parametrize("name", ["K pneumoniae", "K. pneumoniae", "MRSA", "S aureus"])
def test_short_forms_of_organisms_are_known(name: str) -> None:
    assert names_organism(name)


def test_nothing_is_not_a_procedure() -> None:
    assert not names_procedure("")
    assert not names_procedure("(surgery)")
