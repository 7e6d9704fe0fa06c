"""One line for many: alternatives in braces, written out as every line they stand for.

    bm25[k1={0.9|1.2},b={0.4|0.75}]           four lines
    dense[chunk={whole|tokens:512/128}]       two lines
    bm25 + dense {|> rerank@100}              without and with reranking

Each line comes with the choice made at each brace, under the name of the option it is the value of: the settings that
an ablation table lays out.
"""

from __future__ import annotations

import itertools
import re
from typing import NamedTuple

from hoofbeat.errors import UsageError

__all__ = ["Variant", "variants"]

_BRACES = re.compile(r"\{([^{}]*)\}")
_OPTION_BEFORE = re.compile(r"(\w+)\s*=\s*$")
_MOST = 500


class Variant(NamedTuple):
    """A line, and what was chosen for it at each brace."""

    line: str
    settings: dict[str, str]


def variants(text: str) -> list[Variant]:
    """Every line that a text with braces stands for, in the order they are written; a text without gives itself."""
    pieces = _BRACES.split(text)
    outside, inside = pieces[::2], [piece.split("|") for piece in pieces[1::2]]
    if any("{" in piece or "}" in piece for piece in outside):
        raise UsageError("a brace is not closed, or stands in another", where=text, fix="write {one|other}")
    if any(len(choices) < 2 for choices in inside):
        raise UsageError("braces hold at least two alternatives", where=text, fix="write {one|other}")
    count = 1
    for choices in inside:
        count *= len(choices)
    if count > _MOST:
        raise UsageError(f"the braces stand for {count} lines", where=text, fix=f"at most {_MOST} are run at once")
    names = _names(outside[:-1])
    made = []
    for chosen in itertools.product(*inside):
        line = "".join(part for pair in itertools.zip_longest(outside, chosen, fillvalue="") for part in pair)
        settings = {name: choice.strip() or "without" for name, choice in zip(names, chosen, strict=True)}
        made.append(Variant(" ".join(line.split()), settings))
    return made


def _names(before: list[str]) -> list[str]:
    """A name for each brace: the option whose value it is, else its number; a name that comes twice is numbered."""
    names: list[str] = []
    for number, text in enumerate(before, start=1):
        match = _OPTION_BEFORE.search(text)
        name = match[1] if match else f"choice {number}"
        names.append(f"{name} ({number})" if name in names else name)
    return names
