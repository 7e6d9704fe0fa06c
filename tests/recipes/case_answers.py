"""Answers to the prompts that recipes over cases share: what is shown of a case, and which options it gets."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from hoofbeat.models import ChatRequest
from tests.recipes.support import user_text

__all__ = ["CLEAN", "first_options", "material", "show"]

CLEAN: dict[str, object] = {
    "lost": [],
    "left": [],
    "reworded": [],
    "derivable": "",
    "reason": "nothing",
    "usable": "yes",
}
"""What the call that sees a case before and after its cuts says where it finds nothing."""

_MATERIAL = re.compile(r'<material name="([^"]*)">\n(.*?)\n</material>', re.DOTALL)


def material(request: ChatRequest) -> dict[str, str]:
    """What a request shows, by name."""
    return dict(_MATERIAL.findall(user_text(request)))


def _number(lines: Sequence[str], words: str) -> int:
    return next(number for number, line in enumerate(lines, 1) if words in line)


def show(
    request: ChatRequest,
    last: str = "",
    hide: Mapping[str, str] | None = None,
    trim: Mapping[str, str] | None = None,
    reword: Mapping[str, str] | None = None,
) -> dict[str, object]:
    """Show the case up to the sentence with these words; hide, trim and reword others, each found by words of it."""
    lines = material(request)["case"].split("\n")
    return {
        "last": _number(lines, last) if last else len(lines),
        "hide": [{"number": _number(lines, words), "why": why} for words, why in (hide or {}).items()],
        "trim": [{"number": _number(lines, words), "words": cut} for words, cut in (trim or {}).items()],
        "reworded": [{"sentence": _number(lines, words), "text": new} for words, new in (reword or {}).items()],
    }


def first_options(request: ChatRequest, count: int = 3) -> dict[str, object]:
    """The first candidates, as they are."""
    lines = [line.partition(". ") for line in material(request)["candidates"].split("\n") if ". " in line]
    return {
        "options": [{"candidate": int(n), "wording": text} for n, _, text in lines[:count]],
        "unfit": [],
        "answer_wording": "",
    }
