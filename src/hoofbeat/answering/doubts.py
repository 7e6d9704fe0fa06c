"""What takes the force from a statement: a condition, another's mouth, a word that it is a decoy, or a withdrawal.

Such a statement is not read as the output's choice, however plainly it is worded. A condition or a withdrawal leaves
open what is chosen (ambiguous); what somebody else answers says nothing of it (none).
"""

from __future__ import annotations

from collections.abc import Sequence

from hoofbeat.answering.naming import Options, Text
from hoofbeat.answering.statements import Claim
from hoofbeat.answering.wording import load_wording

__all__ = ["doubts", "weighed"]

_SAYS = load_wording()
_BEFORE, _AFTER = 120, 160

CONDITION = ("ambiguous", "the answer is made to depend on something")
WITHDRAWN = ("ambiguous", "the choice is taken back")
REPORTED = ("none", "what somebody else answers is told")
DECOY = ("none", "the option is called a decoy")


def doubts(output: Text, claims: Sequence[Claim]) -> list[tuple[str, str] | None]:
    """For each statement, in the order they stand: None, or how the output is unread if it has no other, and why."""
    return [_doubt(output.text, claim) for claim in claims]


def _doubt(text: str, claim: Claim) -> tuple[str, str] | None:
    before = text[max(0, claim.at - _BEFORE) : claim.at]
    after = text[claim.named.end : claim.named.end + _AFTER]
    if _SAYS.reported.search(before):
        return REPORTED
    if _SAYS.decoy.match(after):
        return DECOY
    if _SAYS.conditional.match(after):
        return CONDITION
    return WITHDRAWN if _SAYS.withdrawn.match(after) else None


def weighed(output: Text, names: Options) -> set[int]:
    """The options that are said to be possible and among which none is chosen: "It could be A or B"."""
    found: set[int] = set()
    for match in _SAYS.weighed.finditer(output.text):
        named = names.at(output, match.end())
        if named is not None:
            found.update(named.options)
    return found
