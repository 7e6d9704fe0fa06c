"""What is asked on the ask page or by `hoofbeat ask`, what comes of it, and how the page draws it."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct, field
from msgspec.structs import replace

from hoofbeat.audit.source_names import judged_order, name_sides
from hoofbeat.records import Answer, Comparison, Passage, TraceStep

MAX_CHARACTERS = 200_000
"""A longer case is refused: no search gets better by it, and no model reads it."""

BY_DOCUMENT = "document"
"""Every document is a source."""

AUTO = "auto"
"""Sources are institutions, where documents name theirs."""

NOTICE = (
    "Research software, not for clinical use. Nobody has checked these results. Read the reports themselves, and do "
    "not use any of this to care for a patient."
)
LIMITS = (
    "It sees only the case and the numbered passages. It can't look anything up, see images, remember earlier cases or "
    "notice that a report is out of date, and it does not say how sure it is."
)
"""What no model can do here."""


def model_limits(model: str) -> str:
    """What a reader should know of the model that answers."""
    name = model.partition("[")[0]
    if name == "embedded":
        return (
            f"{LIMITS} The embedded model is very small (135 million parameters): it shows that calls work, and its "
            "answers are mostly wrong."
        )
    if name.startswith("embedded:"):
        return f"{LIMITS} A small model on this machine makes many mistakes."
    if name.startswith("replay:"):
        return f"{LIMITS} It replays recorded replies, so it fails on a case that was not recorded."
    return LIMITS


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

    `labels` are those of the pack in their order, from absent to contradictory. `left_out` counts sources that were
    found and not asked; `corpora_left_out` have no facet `by`, so their documents belong to no source.
    """

    by: str
    labels: tuple[str, ...]
    diverging: tuple[str, ...]
    sources: tuple[SourceReply, ...]
    comparisons: tuple[Comparison, ...] = ()
    left_out: int = 0
    corpora_left_out: tuple[str, ...] = ()
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


class Cell(Struct, frozen=True, kw_only=True):
    """How two sources relate, as one field of the matrix; `number` is the pair's in the list below it, 0 for none."""

    label: str = ""
    tone: int = -1
    number: int = 0


class AgreementView(Struct, frozen=True, kw_only=True):
    """An agreement as it is drawn: the sources, the matrix row by row, the pairs worth reading, and one sentence."""

    sentence: str
    sources: tuple[SourceReply, ...]
    rows: tuple[tuple[Cell, ...], ...]
    pairs: tuple[tuple[int, Comparison], ...]


def passage_pieces(marked: MatchedPassage) -> list[tuple[str, bool]]:
    """A passage's text in pieces, each with whether it is marked."""
    text, pieces, at = marked.passage.text, [], 0
    for start, end in marked.marks:
        pieces += [(text[at:start], False), (text[start:end], True)]
        at = end
    return [piece for piece in (*pieces, (text[at:], False)) if piece[0]]


def agreement_view(agreement: SourceAgreement) -> AgreementView:
    """The matrix, and every pair that was compared and says more than silence; what diverges comes first."""
    place = {name: number for number, name in enumerate(agreement.labels)}
    told = sorted(
        (each for each in agreement.comparisons if each.failure or each.label != agreement.labels[0]),
        key=lambda each: -place.get(each.label, -1),
    )
    numbers = {(each.a, each.b): number for number, each in enumerate(told, 1)}
    pairs = tuple(enumerate(map(_as_judged, told), 1))
    cells: dict[tuple[str, str], Cell] = {}
    for each in agreement.comparisons:
        label = "failed" if each.failure else each.label
        cell = Cell(label=label, tone=place.get(each.label, -1), number=numbers.get((each.a, each.b), 0))
        cells[each.a, each.b] = cells[each.b, each.a] = cell
    names = [source.name for source in agreement.sources]
    return AgreementView(
        sentence=_sentence(agreement),
        sources=agreement.sources,
        rows=tuple(tuple(cells.get((one, other), Cell()) for other in names) for one in names),
        pairs=pairs,
    )


def _as_judged(pair: Comparison) -> Comparison:
    """A pair in the order in which the judge saw it, in which it says what differs; its letters have names."""
    a, b = judged_order(pair.reasoning, pair.a, pair.b)
    return replace(pair, a=a, b=b, reasoning=name_sides(pair.reasoning, pair.a, pair.b, str))


def _sentence(agreement: SourceAgreement) -> str:
    """Whether the sources agree, or why that can't be said; then how many answer, and how their pairs relate."""
    told = [_verdict(agreement)]
    asked = len(agreement.sources)
    if asked:
        failed, silent = _failed(agreement), _silent(agreement)
        parts = [f"{asked - failed - silent} of {asked} sources answer"]
        parts += [f"{silent} {'does' if silent == 1 else 'do'} not address the question"] if silent else []
        parts += [f"{failed} gave no usable answer"] if failed else []
        told.append(f"{', '.join(parts)}.")
    counts, broken = _pair_counts(agreement)
    pairs = [f"{counts[label]} {label}" for label in agreement.labels if counts[label]]
    pairs += [f"{broken} could not be compared"] if broken else []
    told += [f"Pairs of sources that both answer: {', '.join(pairs)}."] if pairs else []
    left = agreement.left_out
    told += [f"{left} more {'source was' if left == 1 else 'sources were'} found and not asked."] if left else []
    if agreement.corpora_left_out:
        names = ", ".join(agreement.corpora_left_out)
        told.append(f"Not compared, because their documents name no {agreement.by}: {names}.")
    return " ".join(told)


def _verdict(agreement: SourceAgreement) -> str:
    cannot = "Whether the sources agree can't be said:"
    if agreement.why_not:
        return f"{cannot} {agreement.why_not}."
    speaking = len(agreement.sources) - _failed(agreement) - _silent(agreement)
    counts, broken = _pair_counts(agreement)
    if any(counts[name] for name in agreement.diverging):
        return "The sources do not all agree."
    if speaking < 2:
        return f"{cannot} {'only one source answers' if speaking else 'no source answers'} the question."
    if not counts:
        return f"{cannot} their answers could not be compared."
    return "Those that could be compared agree." if broken else "The sources that answer agree."


def _failed(agreement: SourceAgreement) -> int:
    return sum(source.answer.failure is not None for source in agreement.sources)


def _silent(agreement: SourceAgreement) -> int:
    return sum(bool(source.answer.absent) for source in agreement.sources)


def _pair_counts(agreement: SourceAgreement) -> tuple[Counter[str], int]:
    """The labels of the pairs in which both sources answer, and how many of these pairs could not be compared."""
    speaking = {each.name for each in agreement.sources if not each.answer.failure and not each.answer.absent}
    pairs = [each for each in agreement.comparisons if {each.a, each.b} <= speaking]
    labels = Counter(each.label for each in pairs if each.label and each.label != agreement.labels[0])
    return labels, sum(each.failure is not None for each in pairs)
