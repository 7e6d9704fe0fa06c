"""What a leakage check leaves for each question and model: records that hold no model and need none to be read."""

from __future__ import annotations

import math
from typing import Literal

from msgspec import Struct

from hoofbeat.records import Failure

OverlapProbe = Literal["continuation", "rationale"]
PROBES: tuple[OverlapProbe, ...] = ("continuation", "rationale")
MeasuredText = Literal["question", "reference", "explanation"]


class LikelihoodRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How likely a model finds one text: the log-probability of its tokens, and the mean of the least likely fifth.

    `zlib` is the text's compressed size in bytes, against which a log-probability can be held.
    """

    question: str
    model: str
    text: MeasuredText
    control: str = ""
    tokens: int = 0
    total: float = 0.0
    lowest: float = 0.0
    zlib: int = 0
    failure: Failure | None = None

    @property
    def loss(self) -> float:
        """The mean loss a token."""
        return -self.total / self.tokens

    @property
    def perplexity(self) -> float:
        """exp of the mean loss a token."""
        return math.exp(min(self.loss, 700.0))


class ContinuationOverlap(Struct, frozen=True, kw_only=True):
    """How much of a true text stands in a generated one: ROUGE-L, edit similarity, longest run of words."""

    rouge_p: float
    rouge_r: float
    rouge_f: float
    edit: float
    run: int


class OverlapRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A generated text against its reference, and against another question's as the control (`partner`).

    `shared` is the longest run of words both have. `against` says what the reference is: rest, evidence, discussion or
    answer.
    """

    question: str
    model: str
    probe: OverlapProbe
    against: str = ""
    text: str = ""
    reference: str = ""
    own: ContinuationOverlap | None = None
    control: ContinuationOverlap | None = None
    partner: str = ""
    shared: str = ""
    failure: Failure | None = None
    calls: tuple[str, ...] = ()


class CanaryProbe(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether a model completed a canary: how many of its hidden digits came, of how many."""

    model: str
    name: str
    first: str
    matched: int = 0
    hidden: int = 0
    text: str = ""
    failure: Failure | None = None
    calls: tuple[str, ...] = ()
