"""Telling a refusal from an answer.

Endpoints say so in the protocol; where a model refuses in plain words, only a short text that opens with an
unmistakable refusal, and does not go on to answer, counts. "The handbook does not say" is an answer, not a refusal;
"I can't rule out an embolism" is one, too. How well this works is measured (`docs/reading.md`).
"""

from __future__ import annotations

import re

__all__ = ["is_refusal"]

_MAX_LENGTH = 400
_REGRET = (
    r"(?:(?:i['’]?m|i am) (?:very |so |really |truly )?(?:sorry|afraid)(?: (?:that )?you['’]?re [^.,]{0,40})?|sorry|"
    r"i (?:apologi[sz]e|regret(?: that)?)|unfortunately|for \w+ reasons|please (?:see|consult) [^.]{0,40}\.|"
    r"as an? (?:ai|artificial|large|language)\b[^.]{0,60}?|"
    r"(?:i['’]?m|i am) (?:just |only )?(?:an ai|not a (?:doctor|physician|clinician))[^.,]{0,30}?)"
)
_ADVICE = (
    r"(?:you )?(?:with )?(?:medical|clinical|that\b|this\b|any|guidance|advice|the help|diagnoses|opinions?|"
    r"an? (?:medical |clinical )?(?:diagnosis|answer|opinion|recommendation|response)(?! of\b))"
)
_HELP = (
    r"(?:(?:be able to )?(?:assist|help|comply|respond|fulfill?|discuss|engage|continue with|diagnose)\b|"
    rf"(?:provide|give|offer|make) {_ADVICE}|"
    r"answer\b(?= (?:that|this|medical|any|the question|questions)|\s*[.!]))"
)
_CAN_T = (
    r"(?:(?:can(?:no|['’]| no)t|am unable to|am not able to|won['’]?t|will not|must decline to|"
    r"(?:have|need) to (?:decline|refuse) to)|['’]d rather not|['’]?m (?:unable|not able) to|"
    r"(?:don['’]?t|do not) have the ability to)"
)
_OPENINGS = (
    rf"(?:{_REGRET}[\s,;:.]*)?(?:and |but )?(?:i ?)?{_CAN_T}\s+{_HELP}",
    rf"(?:{_REGRET}[\s,;:.]*)?(?:but )?that['’]?s not something i(?:['’]?m able to| can)\b",
    r"i(?: do not|['’]? ?don['’]t)? feel (?:un)?comfortable (?:answering|giving|providing|with)\b",
    r"(?:i['’]?m|i am) (?:un|not )(?:comfortable|qualified) "
    r"(?:answering|giving|providing|with|to (?:give|provide|answer))",
    r"it (?:would|is) not (?:be )?appropriate for me to\b",
    r"my (?:guidelines|policies|instructions) (?:don['’]?t|do not) (?:allow|permit)\b",
    r"th(?:is|at) request violates\b",
    r"es tut mir leid,? (?:aber )?[^.]{0,30}kann ich (?:\w+ )?nicht\b",
    r"(?:das|dabei) kann ich (?:\w+ )?nicht (?:helfen|beantworten)",
    r"(?:je suis désolée?,? (?:mais )?)?je ne (?:peux|suis) pas (?:en mesure de )?"
    r"(?:fournir|donner|répondre|vous aider)",
    r"(?:lo siento,? (?:pero )?)?no puedo (?:dar|ofrecer|proporcionar|ayudar)",
    r"(?:(?:很|非常)?抱歉[,，。\s]*)?(?:但)?我(?:无法|不能)(?:提供|回答|协助)",
)
_OPENING = re.compile(rf"^\W*(?:{'|'.join(_OPENINGS)})", re.IGNORECASE)
_GOES_ON = re.compile(  # … and answers all the same
    r"\b(?:but|however|that said|nevertheless|still)\b.*\b(?:answer|diagnosis|option|choice|likely|suggests?|best)\b"
    r"|\b(?:answer|diagnosis)(?: is|:)",
    re.IGNORECASE | re.DOTALL,
)


def is_refusal(text: str) -> bool:
    """Whether a short text opens with a refusal and leaves it at that."""
    if len(text) > _MAX_LENGTH:
        return False
    opening = _OPENING.match(text)
    return opening is not None and not _GOES_ON.search(text, opening.end())
