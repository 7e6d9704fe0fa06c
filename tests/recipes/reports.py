"""The real case reports beside the project, as plain texts."""

from __future__ import annotations

import gzip
import json
import re
from functools import cache
from pathlib import Path

__all__ = ["report_texts", "sentences"]

_SENTENCE = re.compile(r"(?<=[a-z)\]][.!?])\s+(?=[A-Z])")


@cache
def report_texts(path: Path) -> tuple[str, ...]:
    """The texts of all reports."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return tuple(json.loads(line)["text"].removeprefix("pmc") for line in lines)


@cache
def sentences(text: str) -> tuple[str, ...]:
    """The sentences of a text that are long enough to say something."""
    every = (part.strip() for paragraph in text.split("\n") for part in _SENTENCE.split(paragraph))
    return tuple(part for part in every if 8 <= len(part.split()) <= 60)
