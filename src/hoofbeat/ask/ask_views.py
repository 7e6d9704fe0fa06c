"""What the ask page draws: a passage in marked and plain pieces, and the small matrix of sources."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from hoofbeat.ask.ask_records import MatchedPassage, SourceAgreement, SourceReply
from hoofbeat.records import Comparison


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
    pairs = tuple(enumerate(told, 1))
    numbers = {(each.a, each.b): number for number, each in pairs}
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


def _sentence(agreement: SourceAgreement) -> str:
    """How many sources answer, and what the pairs of those that do are."""
    if agreement.why_not:
        return f"Sources were not compared: {agreement.why_not}."
    failed = sum(source.answer.failure is not None for source in agreement.sources)
    silent = sum(bool(source.answer.absent) for source in agreement.sources)
    speaking = len(agreement.sources) - failed - silent
    parts = [f"{speaking} of {len(agreement.sources)} sources answer"]
    parts += [f"{silent} do not address it" if silent != 1 else "1 does not address it"] if silent else []
    parts += [f"{failed} could not be asked"] if failed else []
    counts = Counter(each.label for each in agreement.comparisons if each.label and each.label != agreement.labels[0])
    broken = sum(each.failure is not None for each in agreement.comparisons) if speaking > 1 else 0
    told = [f"{counts[label]} {label}" for label in agreement.labels if counts[label]]
    told += [f"{broken} could not be compared"] if broken and not failed else []
    pairs = f" Of the pairs that both answer: {', '.join(told)}." if told else ""
    left = f" {agreement.left_out} more sources were found and not asked." if agreement.left_out else ""
    verdict = ""
    if counts:
        verdict = " They do not all agree." if any(counts[name] for name in agreement.diverging) else " They agree."
    return f"{', '.join(parts)}.{pairs}{verdict}{left}"
