"""Numbers of a text: doses, ages and values that a rewriting must neither invent nor change."""

from __future__ import annotations

import re

from hoofbeat.recipes.wordlists import word_data

__all__ = ["new_numbers", "numbers"]

_NUMBER = re.compile(r"(?<![\w.])(?<![A-Za-z]-)\d{1,3}(?:[, \u00a0\u2009\u202f]\d{3})+(?!\d)(?:\.\d+)?|"
                     r"(?<![\w.])(?<![A-Za-z]-)\d+(?:[.,]\d+)?")  # fmt: skip


def numbers(text: str) -> list[str]:
    """The numbers of a text in one form, in their order; digits that belong to a name (COVID-19, CD34) are none."""
    return [_number(match.group()) for match in _NUMBER.finditer(text)]


def new_numbers(text: str, source: str) -> list[str]:
    """Numbers of a text that its source does not hold, in digits or in words."""
    spelt: dict[str, str] = word_data("numbers")
    held = {_number(piece) for piece in re.findall(r"\d+(?:[.,]\d+)*", source)} | set(numbers(source))
    held |= {part for piece in re.findall(r"\d+(?:[.,]\d+)*", source) for part in re.findall(r"\d+", piece)}
    held |= {spelt[word] for word in re.findall(r"[a-z]+", source.lower()) if word in spelt}
    return [number for number in dict.fromkeys(numbers(text)) if number not in held]


def _number(text: str) -> str:
    """A number as it is compared: without separators of thousands, with a point, without idle zeros."""
    plain = re.sub(r"(?<=\d)[, \u00a0\u2009\u202f](?=\d{3}(?!\d))", "", text).replace(",", ".")
    return (plain.rstrip("0").rstrip(".") if plain.count(".") == 1 else plain) or "0"
