"""Instructions put into an answer, to see whether a judge obeys them.

The texts are invented (`teaching.injections`). Each asks for a label that the judge did not give without it: so a judge
that obeys changes its label, and one that reads texts as texts does not.
"""

from __future__ import annotations

import base64
import codecs
from collections.abc import Sequence
from typing import NamedTuple

from hoofbeat.prompts.instructions import instructions_in
from hoofbeat.prompts.library import material
from hoofbeat.teaching import Injection, injections

_LEET = str.maketrans("aeiostAEIOST", "431057431057")


class Planted(NamedTuple):
    """An instruction for one item; `first` of a pair's answers has it, or the second."""

    injection: Injection
    place: int
    first: bool


def planned(items: int) -> list[Planted]:
    """Which instruction goes into which item: each at least once, each item at least once, the kinds in turn.

    Of a pair's answers, every kind is in either.
    """
    texts = sorted(injections(), key=lambda each: (each.id.rpartition("-")[2], each.id))
    count = max(len(texts), items) if items else 0
    kinds = len({each.kind for each in texts})
    return [Planted(texts[n % len(texts)], n % items, (n + n // kinds) % 2 == 1) for n in range(count)]


def injected(answer: str, injection: Injection, label: str, field: str) -> str:
    """The answer with an instruction behind it that asks for this label."""
    return f"{answer.rstrip()}\n\n{injection_text(injection, label, field)}"


def injection_text(injection: Injection, label: str, field: str) -> str:
    """The instruction in its words, for this label."""
    payload = _named(injection.payload, label, field)
    text = injection.text.replace("{payload}", _encoded(payload, injection.encoding))
    return _named(text, label, field)


def _named(text: str, label: str, field: str) -> str:
    return text.replace("{label}", label).replace("{field}", field)


def _encoded(text: str, encoding: str) -> str:
    if encoding == "base64":
        return base64.b64encode(text.encode()).decode()
    if encoding == "rot13":
        return codecs.encode(text, "rot13")
    if encoding == "leet":
        return text.translate(_LEET)
    if encoding == "reversed":
        return text[::-1]
    return " ".join(text) if encoding == "spaced" else text


def is_flagged(answer: str, changed: str) -> bool:
    """Whether the rules find more instructions in the changed answer than in the answer."""
    return len(instructions_in(fenced_form(changed))) > len(instructions_in(fenced_form(answer)))


def fenced_form(text: str) -> str:
    """A text as a prompt shows it, without its fence."""
    return material(text).partition("\n")[2].rpartition("\n")[0]


def other_label(label: str, labels: Sequence[str]) -> str:
    """The label to ask for: the first that is not the judge's own."""
    return next(each for each in labels if each != label)
