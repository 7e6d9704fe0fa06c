"""Vocabularies: codes and names of conditions, found in texts with their places, and labels made from them.

`load_vocabulary("icd10cm")` gives a `Vocabulary`; `lookup` asks what a wording means, `find_in` what a text mentions.
`label_specialty` sorts a document into a paper's specialties by rule, `label_with_model` asks a model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hoofbeat.lazy import lazy_names

if TYPE_CHECKING:
    from hoofbeat.corpus.vocabularies.abbreviations import find_abbreviations
    from hoofbeat.corpus.vocabularies.specialties import SCHEMES, Scheme, load_scheme
    from hoofbeat.corpus.vocabularies.specialty_labels import (
        ModelLabel,
        SpecialtyLabel,
        label_specialty,
        label_with_model,
    )
    from hoofbeat.corpus.vocabularies.terms import Match, Term
    from hoofbeat.corpus.vocabularies.vocabulary import Vocabulary, find_words
    from hoofbeat.corpus.vocabularies.vocabulary_files import load_vocabulary, vocabulary_names

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
        "abbreviations": "find_abbreviations",
        "specialties": "SCHEMES Scheme load_scheme",
        "specialty_labels": "ModelLabel SpecialtyLabel label_specialty label_with_model",
        "terms": "Match Term",
        "vocabulary": "Vocabulary find_words",
        "vocabulary_files": "load_vocabulary vocabulary_names",
    },
)
