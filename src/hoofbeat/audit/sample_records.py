"""Pairs of answers that were sampled: for people, for a second way of judging, or for a trial; read without a model."""

from __future__ import annotations

from msgspec import Struct

from hoofbeat.records import Failure

PROTOCOLS = ("structured", "label-only")
"""The ways a pair is judged: all in one call, or the label alone and the rest by a later call."""

Row = tuple[str, str, str, str, str | None, str | None]
"""A row of the audit's table: question, both sources, label, significance, basis."""


class SampledPair(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One pair of the audit that was drawn, with what the audit says of it."""

    question: str
    a: str
    b: str
    label: str
    significance: str | None = None
    basis: str = ""

    @staticmethod
    def of(row: Row) -> SampledPair:
        """The pair of a row of the audit's table."""
        question, a, b, label, significance, basis = row
        return SampledPair(question=question, a=a, b=b, label=label, significance=significance, basis=basis or "")

    @property
    def key(self) -> tuple[str, str, str]:
        """What identifies the pair."""
        return (self.question, self.a, self.b)


class PairLabel(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one way of judging says of a pair; where the later call alone failed, `details` says why."""

    label: str = ""
    topic: str | None = None
    significance: str | None = None
    failure: Failure | None = None
    details: Failure | None = None
    calls: tuple[str, ...] = ()


class PairJudgedTwice(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A pair judged both ways; the exchanged ones are there where the order was probed."""

    pair: SampledPair
    structured: PairLabel
    label_only: PairLabel
    structured_exchanged: PairLabel | None = None
    label_only_exchanged: PairLabel | None = None
    reference: str = ""


class TrialVerdict(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the judge said of a pair in one order, or why nothing."""

    label: str = ""
    reasoning: str = ""
    failure: Failure | None = None
    calls: tuple[str, ...] = ()
    votes: tuple[str, ...] = ()


class TrialInjection(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A pair judged as it is and with an instruction in one of its answers (`side`), which asks for another label.

    `flagged` says whether the rules find the instruction, `check_before` and `check_after` what became of check codes.
    """

    question: str
    a: str
    b: str
    judge: str
    injection: str
    kind: str
    side: str
    target: str = ""
    before: str = ""
    after: str = ""
    flagged: bool = False
    check_before: str = ""
    check_after: str = ""
    failure: str = ""


class TrialPair(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A pair with its planted label, the texts in the order in which an audit would show them, and what was said.

    `said` is of that order, `exchanged` of the other one; both are None until the judge was asked. A hard pair has a
    `kind`, and what is planted is whether care differs.
    """

    question: str
    a: str
    b: str
    text: str
    answer_a: str
    answer_b: str
    planted: str
    kind: str = ""
    said: TrialVerdict | None = None
    exchanged: TrialVerdict | None = None
