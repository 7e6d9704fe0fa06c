"""Vocabularies: codes and names of conditions, found in texts with their places, and labels made from them.

`load_vocabulary("icd10cm")` gives a `Vocabulary`; `lookup` asks what a wording means, `find_in` what a text mentions.
`label_specialty` sorts a document into a paper's specialties by rule, `label_with_model` asks a model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hoofbeat.lazy import lazy_names

if TYPE_CHECKING:
    from hoofbeat.corpus.vocabularies.specialties import (
        SCHEMES,
        ModelLabel,
        Scheme,
        SpecialtyLabel,
        label_specialty,
        label_with_model,
        load_scheme,
    )
    from hoofbeat.corpus.vocabularies.terms import Match, Term, find_abbreviations
    from hoofbeat.corpus.vocabularies.vocabulary import Vocabulary, find_words, load_vocabulary, vocabulary_names

__all__ = [
    "SCHEMES",
    "Match",
    "ModelLabel",
    "Scheme",
    "SpecialtyLabel",
    "Term",
    "Vocabulary",
    "find_abbreviations",
    "find_words",
    "label_specialty",
    "label_with_model",
    "load_scheme",
    "load_vocabulary",
    "vocabulary_names",
]

__getattr__ = lazy_names(
    __name__,
    {
        "specialties": "SCHEMES ModelLabel Scheme SpecialtyLabel label_specialty label_with_model load_scheme",
        "terms": "Match Term find_abbreviations",
        "vocabulary": "Vocabulary find_words load_vocabulary vocabulary_names",
    },
)
