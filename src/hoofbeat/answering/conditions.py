"""Under which condition a question is asked: one string, the same in the command, the tables and in Python.

`closed` gives the model nothing but the question, `oracle` its source document, and a retriever line with a number
behind an @ (`bm25 + dense @3`) the best passages found by that line.
"""

from __future__ import annotations

import re

from msgspec import Struct

from hoofbeat.errors import UsageError

__all__ = ["Condition", "parse_condition"]

_RETRIEVED = re.compile(r"(?P<line>.+?)\s*@\s*(?P<top>\d{1,3})\s*")


class Condition(Struct, frozen=True, kw_only=True):
    """A parsed condition; `line` and `top` are set for retrieval."""

    name: str
    line: str = ""
    top: int = 0

    @property
    def needs_corpus(self) -> bool:
        """Whether documents are shown to the model."""
        return self.name != "closed"


def parse_condition(text: str) -> Condition:
    """Read a condition; its retriever line is checked when the retriever is made."""
    words = text.strip()
    if words in ("closed", "oracle"):
        return Condition(name=words)
    match = _RETRIEVED.fullmatch(words)
    if not match or not 1 <= int(match["top"]) <= 100:
        raise UsageError(
            f"{text!r} is no condition",
            fix="write closed, oracle, or a retriever line with how many: 'bm25 + dense @3'",
        )
    return Condition(name=f"{match['line']} @{int(match['top'])}", line=match["line"], top=int(match["top"]))
