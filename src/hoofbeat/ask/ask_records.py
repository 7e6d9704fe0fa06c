"""What is asked on the ask page or by `hoofbeat ask`, and what comes of it."""

from __future__ import annotations

from msgspec import Struct, field

from hoofbeat.records import Answer, Comparison, Passage, TraceStep

MAX_CHARACTERS = 200_000
"""A longer case is refused: no search gets better by it, and no model reads it."""

BY_DOCUMENT = "document"
"""Every document is a source of its own."""

NOTICE = (
    "Research software, not for clinical use. Nobody has checked what is found or written here: read the reports "
    "themselves, and do not use any of it to care for a patient."
)


class AskRequest(Struct, frozen=True, kw_only=True):
    """A free-text case, how reports are searched for it, and who answers.

    `model` is empty where nothing but a search is wanted. `by` names what tells sources apart: a facet of documents, or
    `document`; empty where sources are not asked one by one. `k` is how many reports are shown.
    """

    text: str
    line: str = "bm25 + dense"
    model: str = ""
    by: str = ""
    k: int = 5
    pack: str = "guidelines"
    max_sources: int = 8


class MatchedPassage(Struct, frozen=True, kw_only=True):
    """A passage that matched, under the number by which an answer may cite it; `marks` are its words of the case."""

    number: int
    passage: Passage
    score: float
    marks: tuple[tuple[int, int], ...] = ()


class SimilarReport(Struct, frozen=True, kw_only=True):
    """A document that was found: in which corpus, at which place of it, by which stages, and its best passages."""

    corpus: str
    document: str
    place: int
    title: str
    rank: int
    score: float
    via: dict[str, tuple[int, float]] = field(default_factory=dict)
    kind: str = ""
    about: str = ""
    passages: tuple[MatchedPassage, ...] = ()


class AnswerPart(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A stretch of an answer. `cites` is the passage it cites; `doubt` says why that can't be relied on."""

    text: str
    cites: int = 0
    doubt: str = ""


class Doubt(Struct, frozen=True, kw_only=True):
    """Something about an answer that does not stand up when it is checked."""

    what: str
    text: str = ""


class CitedAnswer(Struct, frozen=True, kw_only=True):
    """An answer with its citations checked: `parts` are its text, `checks` what was looked for, `doubts` what failed.

    `shown` are the numbers of the passages the model was shown.
    """

    answer: Answer
    parts: tuple[AnswerPart, ...] = ()
    shown: tuple[int, ...] = ()
    checks: tuple[TraceStep, ...] = ()
    doubts: tuple[Doubt, ...] = ()


class SourceReply(Struct, frozen=True, kw_only=True):
    """What one source answers, by itself: its documents, and the answer with its citations checked."""

    name: str
    documents: tuple[str, ...]
    answer: Answer


class SourceAgreement(Struct, frozen=True, kw_only=True):
    """What several sources answer, and how every two of them relate.

    `labels` are those of the pack in their order, from absent to contradictory; `left_out` counts sources that were
    found and not asked.
    """

    by: str
    labels: tuple[str, ...]
    diverging: tuple[str, ...]
    sources: tuple[SourceReply, ...]
    comparisons: tuple[Comparison, ...] = ()
    left_out: int = 0
    why_not: str = ""


class AskResult(Struct, frozen=True, kw_only=True):
    """All that came of an ask so far; what is None was not wanted or is not there yet.

    `line` is the retriever line as it was read, `model` the model's full identity, `notes` what a reader should know.
    """

    line: str = ""
    model: str = ""
    reports: tuple[SimilarReport, ...] = ()
    cited: CitedAnswer | None = None
    agreement: SourceAgreement | None = None
    notes: tuple[str, ...] = ()
    calls: int = 0
    tokens: int = 0
