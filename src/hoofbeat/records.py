"""What the stages exchange: one page of frozen records, and nothing else crosses a border between stages.

Characters are counted in Python code points. A `Document` holds one `text`; sections, tables, figures and evidence
point into it with half-open offsets, so that any claim can be traced to the exact characters it came from.

A failure is a record, never a score: an `Answer`, `Judgment` or `Comparison` whose call failed carries a `Failure`
and no content, stays in its table, and is counted as unscored.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

Facets = dict[str, str | list[str]]

FailureKind = Literal[
    "bad-request",  # the endpoint says the request itself is wrong
    "connection",  # connection refused, cut or broken off
    "context-overflow",  # the prompt does not fit the model's window
    "garbled",  # an answer came that is not the protocol's JSON
    "rate-limited",  # still 429 after all retries
    "refusal",  # the model or its content filter declined
    "schema",  # readable JSON that breaks the output contract, after one repair
    "server-error",  # 5xx after all retries
    "timeout",  # no complete answer in time
    "truncated",  # the output limit cut the answer off
    "unreadable",  # output that can't be read as what was asked for, after one repair
    "unsupported",  # the model can't do this (images, log-probabilities, ...)
    "quarantined",  # the texts tell a model what to do, and --quarantine makes no such call
    "canary",  # the reply does not repeat its check code (--canary)
    "input",  # nothing to call the model with: the stage before failed
    "no-majority",  # several judges were asked, and no label has the votes of more than half of them
]


class Failure(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why there is no result. `attempts` counts the calls made for it."""

    kind: FailureKind
    message: str
    attempts: int = 1


class Usage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one call used, as the endpoint reported it."""

    tokens_in: int = 0
    tokens_out: int = 0


class Provenance(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a document came from: file name (never a machine's path), content hash, and the reader that read it."""

    source: str
    sha256: str
    reader: str
    member: str = ""


class Section(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One section of a document.

    `start` is where the heading begins, `body` where its own text begins, `end` where that ends: subsections follow
    it as separate sections with a higher `level`. `role` says what the section is for (case, discussion, ...).
    """

    heading: str
    level: int
    start: int
    body: int
    end: int
    role: str = ""
    page: int | None = None


class Figure(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A figure: label, caption, image files relative to the corpus folder, and where its caption is in the text."""

    id: str
    label: str = ""
    caption: str = ""
    files: tuple[str, ...] = ()
    start: int = 0
    end: int = 0
    page: int | None = None


class DocumentTable(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A table: label, caption, cells row by row, and where its text is in the document."""

    id: str
    label: str = ""
    caption: str = ""
    rows: tuple[tuple[str, ...], ...] = ()
    start: int = 0
    end: int = 0
    page: int | None = None


class Document(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A published or institutional document as one text with structure laid over it."""

    id: str
    title: str
    text: str
    kind: str = ""
    sections: tuple[Section, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[DocumentTable, ...] = ()
    facets: Facets = field(default_factory=dict)
    licence: str = ""
    notices: tuple[str, ...] = ()
    provenance: Provenance | None = None

    def section_text(self, section: Section) -> str:
        """The section's own text, without heading and subsections."""
        return self.text[section.body : section.end]


class Passage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A piece of a document that is retrieved or shown to a model; `start`/`end` point into the document's text."""

    id: str
    document: str
    text: str
    start: int = 0
    end: int = 0
    heading: str = ""
    page: int | None = None


class Span(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Evidence: these characters of that document."""

    document: str
    start: int
    end: int
    quote: str


class Step(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One step of a question's lineage: what was done, with which prompt (fingerprint), model and ledger entry."""

    name: str
    prompt: str = ""
    model: str = ""
    call: str = ""
    note: str = ""


class AcceptedAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Another correct answer: who accepted it (people or models by name), in which study, and why."""

    text: str
    by: tuple[str, ...] = ()
    study: str = ""
    note: str = ""


class Question(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One benchmark item. `documents` are the sources that answer it; `options` make it multiple choice.

    `accepted` are other answers that count as right.
    """

    id: str
    text: str
    context: str = ""
    answer: str = ""
    accepted: tuple[AcceptedAnswer, ...] = ()
    options: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    evidence: tuple[Span, ...] = ()
    facets: Facets = field(default_factory=dict)
    lineage: tuple[Step, ...] = ()

    @property
    def right_answers(self) -> tuple[str, ...]:
        """The answer and those accepted beside it, each once; none where there is no answer."""
        return tuple(dict.fromkeys((self.answer, *(each.text for each in self.accepted)))) if self.answer else ()

    @property
    def reference(self) -> str:
        """What an answer is compared with, as one text: the answer, or a list where several are right, with notes."""
        notes = {each.text: each.note for each in self.accepted if each.note}
        right = [f"{text} ({notes[text]})" if text in notes else text for text in self.right_answers]
        if len(right) < 2:
            return "".join(right)
        return "Any one of these answers is right:\n" + "\n".join(f"{n}. {text}" for n, text in enumerate(right, 1))

    @property
    def full_text(self) -> str:
        """Context and question as one text: what a retriever and a model are given."""
        return f"{self.context}\n\n{self.text}" if self.context else self.text


class Hit(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One retrieved document for one question. `via` explains it: stage name to rank and score there."""

    question: str
    document: str
    rank: int
    score: float
    passage: str = ""
    via: dict[str, tuple[int, float]] = field(default_factory=dict)


class TraceStep(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing a stage did for a query: what (`generated`, `searched`, `read`, …), its text, and the calls behind it.

    `found` are the ids of passages that came back from a search, `reasoning` what a reasoning model wrote before its
    answer and is not searched for.
    """

    stage: str
    what: str
    text: str = ""
    reasoning: str = ""
    found: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()


class OptionLikelihood(Struct, frozen=True, kw_only=True):
    """How likely a model finds one option after the question: its log-probability, and over how many tokens, bytes."""

    option: str
    total: float
    tokens: int
    bytes: int


class Answer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One planned answer. `condition` is how it was asked (closed-book, a retriever line with top k, oracle, source).

    `protocol` is how a choice is made (`letter`, `likelihood`, `likelihood/token`, `likelihood/byte`; empty: free
    text); it is also the end of `condition`'s name, so that results of two protocols never share a column.
    `options` are the options in the order shown, `choice` the one chosen, in the words of the question (None when no
    option could be read for sure), `reading` how it was read or why not, `likelihoods` what was measured of each.
    `confidence` is the answer's own confidence, from 0 to 1, where a file of predictions gives one.
    `absent` says whether the source does not address the question (per-source answers only), `statement` is such an
    answer in one line, `strength` that of its recommendation as the source writes it, `evidence` are the
    passages that were shown, `dropped` the documents that did not fit, `trace` what an agent did, `warnings` what makes
    the answer doubtful though nothing failed, `calls` the ledger entries behind the answer, `usage` their tokens.
    """

    question: str
    model: str
    condition: str
    sample: int = 0
    protocol: str = ""
    source: str = ""
    text: str = ""
    statement: str = ""
    strength: str = ""
    reasoning: str = ""
    options: tuple[str, ...] = ()
    choice: str | None = None
    reading: str = ""
    likelihoods: tuple[OptionLikelihood, ...] = ()
    confidence: float | None = None
    absent: bool | None = None
    citations: tuple[str, ...] = ()
    evidence: tuple[Passage, ...] = ()
    dropped: tuple[str, ...] = ()
    trace: tuple[TraceStep, ...] = ()
    warnings: tuple[str, ...] = ()
    failure: Failure | None = None
    calls: tuple[str, ...] = ()
    usage: Usage | None = None


class Vote(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one of several judges said of an answer."""

    judge: str
    label: str = ""
    secondary: str = ""
    score: float | None = None
    reasoning: str = ""
    failure: Failure | None = None
    calls: tuple[str, ...] = ()


class Judgment(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One label or score of one aspect of an answer; identifies the answer by question, model, condition, sample.

    `secondary` is a second label where the aspect allows one, `score` the value of a scorer that measures instead of
    labelling, `passage` the passage that is judged where it is not the answer itself. Where several judges voted, the
    label is the majority's and `votes` holds what each of them said.
    """

    question: str
    model: str
    condition: str
    sample: int = 0
    judge: str
    aspect: str = "equivalence"
    passage: str = ""
    label: str = ""
    secondary: str = ""
    score: float | None = None
    reasoning: str = ""
    votes: tuple[Vote, ...] = ()
    failure: Failure | None = None
    calls: tuple[str, ...] = ()


class Comparison(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the answers of two sources to one question relate; `a` < `b`, each pair is listed once.

    `basis` is how the label came about: `judged` by a call for this pair, `absent` because a side is silent,
    `same` because the two answers are the same text, `shared` from the call for a pair with the same two texts, or
    `group` from the call for other answers that make the same claims. Where several judges voted, `votes` are their
    labels in the order in which the manifest names them, empty for a judge that failed.
    """

    question: str
    a: str
    b: str
    label: str = ""
    reasoning: str = ""
    topic: str | None = None
    significance: str | None = None
    judge: str = ""
    basis: str = ""
    failure: Failure | None = None
    calls: tuple[str, ...] = ()
    votes: tuple[str, ...] = ()
