"""Specialty schemes: the labels a paper sorts its cases into, and what speaks for each, as data.

Words are tied to fields of medicine once (`specialties.toml`), and each scheme says which fields speak for which of its
labels, so that the four schemes agree wherever they mean the same.
"""

from __future__ import annotations

import math
import tomllib
from functools import cache
from importlib import resources
from pathlib import Path

import msgspec
from msgspec import Struct, field

from hoofbeat.errors import UsageError

__all__ = ["SCHEMES", "UNKNOWN", "MedicalField", "Scheme", "SchemeLabel", "load_scheme", "medical_fields"]

UNKNOWN = "unknown"
SCHEMES = {
    "ogcare": "specialties-ogcare.toml",
    "cupcase": "specialties-cupcase.toml",
    "clinbench": "specialties-clinbench.toml",
    "body-systems": "body_systems.toml",
}


class MedicalField(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A field of medicine: its words, journals and ICD-10-CM ranges."""

    words: tuple[str, ...] = ()
    strong: tuple[str, ...] = ()
    journals: tuple[str, ...] = ()
    icd10: tuple[str, ...] = ()
    weight: float = 1.0


class SchemeLabel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One label and the fields that speak for it; `printed` where the paper's text has its name, `share` in percent."""

    name: str
    fields: dict[str, float]
    short: str = ""
    printed: bool = False
    share: float | None = None


class Calibration(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How lead and evidence become a confidence: a logistic curve fitted on labelled reports."""

    offset: float = 0.0
    lead: float = 3.0
    cases: int = 0

    def confidence(self, lead: float) -> float:
        """The probability that a label with this lead over the next is right."""
        return 1.0 / (1.0 + math.exp(-(self.offset + self.lead * lead)))


class Scheme(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A scheme of labels; `fallback` is what a reader would say where nothing else fits."""

    name: str
    title: str
    source: str
    label: tuple[SchemeLabel, ...]
    fallback: str = ""
    calibration: Calibration = field(default_factory=Calibration)

    @property
    def names(self) -> tuple[str, ...]:
        """The labels' names, in the paper's order."""
        return tuple(label.name for label in self.label)


class _Fields(Struct, frozen=True, forbid_unknown_fields=True):
    field: dict[str, MedicalField]


@cache
def medical_fields() -> dict[str, MedicalField]:
    """The fields of medicine by name."""
    text = (resources.files("hoofbeat.corpus") / "data" / "specialties.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), _Fields).field


@cache
def load_scheme(name: str) -> Scheme:
    """A scheme by its name, or from a TOML file of the same form."""
    if name in SCHEMES:
        text = (resources.files("hoofbeat.corpus") / "data" / SCHEMES[name]).read_text(encoding="utf-8")
    elif name.endswith(".toml") and Path(name).is_file():
        text = Path(name).read_text(encoding="utf-8")
    else:
        raise UsageError(f"there is no scheme {name!r}", fix=f"use one of: {', '.join(SCHEMES)}, or a TOML file")
    try:
        scheme = msgspec.convert(tomllib.loads(text), Scheme)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as err:
        raise UsageError(f"the scheme {name} is wrong: {err}", fix="see the schemes that ship with Hoofbeat") from err
    unknown = {known for label in scheme.label for known in label.fields} - set(medical_fields())
    if unknown or len(set(scheme.names)) != len(scheme.names) or not scheme.label:
        wrong = f"no such fields: {', '.join(sorted(unknown))}" if unknown else "it needs labels with different names"
        raise UsageError(f"the scheme {name} is wrong: {wrong}", fix="see specialties.toml for the fields")
    return scheme
