"""Names of what is done to a patient, which are neither diagnoses nor options beside one.

A name is told by its last word of weight: a hernia repair is a deed, a complication of a repair is not. The words and
endings are data (`procedures.toml`).
"""

from __future__ import annotations

import re
from functools import cache

from hoofbeat.recipes.wordlists import word_data

__all__ = ["names_deed", "names_measure"]

_WORD = re.compile(r"[^\W\d_]+")
_BRACKET = re.compile(r"[(\[][^()\[\]]*[)\]]")
_BEHIND = re.compile(r"\s(?:of|for|with|under|using|via|by|in|on|at|from|due to|after)\s", re.IGNORECASE)
_MEASURE = re.compile(r"\d\s*(?:%|percent\b|mm\s?Hg\b|m[gl]/|g/d?l\b|/min\b|bpm\b|°)", re.IGNORECASE)


@cache
def _data() -> tuple[frozenset[str], tuple[str, ...]]:
    data = word_data("procedures")
    return frozenset(data["deeds"]), (*data["operations"], *data["deed_endings"])


def names_deed(text: str) -> bool:
    """Whether a name is that of an operation, a treatment or a specialty: pediatric surgery, splenectomy."""
    words, endings = _data()
    head = _BEHIND.split(_BRACKET.sub(" ", text), maxsplit=1)[0]
    named = _WORD.findall(head.lower())
    return bool(named) and (named[-1] in words or named[-1].endswith(endings))


def names_measure(text: str) -> bool:
    """Whether a name is a measured value: an ejection fraction of 30%."""
    return bool(_MEASURE.search(text))
