"""Telling a refusal from an answer.

Endpoints say so in the protocol; where a model refuses in plain words, only a short text that opens with an
unmistakable refusal counts. "The handbook does not say" is an answer, not a refusal.
"""

from __future__ import annotations

import re

__all__ = ["is_refusal"]

_LONGEST = 400
_OPENING = re.compile(
    r"^\W*(?:(?:i['’]?m|i am) (?:very |so )?sorry|sorry|i apologi[sz]e|unfortunately|as an ai\b[^.]{0,60})?"
    r"[\s,;:.]*(?:but )?(?:i (?:can(?:no|['’])t|am unable to|am not able to|won['’]?t|will not|must decline to)|"
    r"i['’]?m (?:unable|not able) to)\s+"
    r"(?:assist|help|comply|provide (?:medical|clinical|that|this|any)|answer (?:that|this|medical)|fulfil|discuss|"
    r"give (?:medical|clinical)|offer (?:medical|clinical)|engage|continue with)\b",
    re.IGNORECASE,
)


def is_refusal(text: str) -> bool:
    """Whether a short text opens with a refusal."""
    return len(text) <= _LONGEST and bool(_OPENING.match(text))
