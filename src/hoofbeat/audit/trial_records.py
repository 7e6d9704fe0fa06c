"""The pairs of a trial and what a judge said of them; no model is needed to read these."""

from __future__ import annotations

from msgspec import Struct

from hoofbeat.records import Failure

__all__ = ["Heard", "TrialPair"]


class Heard(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the judge said of a pair in one order, or why nothing."""

    label: str = ""
    reasoning: str = ""
    failure: Failure | None = None
    calls: tuple[str, ...] = ()


class TrialPair(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A pair with its planted label, the texts in the order in which an audit would show them, and what was said.

    `said` is of that order, `exchanged` of the other one; both are None until the judge was asked.
    """

    question: str
    a: str
    b: str
    text: str
    answer_a: str
    answer_b: str
    planted: str
    said: Heard | None = None
    exchanged: Heard | None = None
