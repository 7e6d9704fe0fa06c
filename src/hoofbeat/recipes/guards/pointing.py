"""A document as numbered sentences, and what a model means by their numbers.

A model that points at sentences copies nothing, so nothing is miscopied: what it points at is the quote, to the letter.
Each sentence stands on a line of its own; no text within a document can begin a line, nor take another's number.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hoofbeat.prompts import Prompt
from hoofbeat.recipes.context import RecipeContext
from hoofbeat.recipes.guards.checks import sound
from hoofbeat.recipes.items import Rejection
from hoofbeat.records import Document, Span
from hoofbeat.retrieval.chunking import sentence_spans

__all__ = ["numbered", "pointed"]

_LEAST_WORDS = 3  # fewer are a heading or a name, and state nothing


def numbered(
    document: Document, context: RecipeContext, prompt: Prompt, *, hidden: Collection[str] = (), beside: int = 0
) -> tuple[list[Span], str]:
    """The sentences of a document and the numbered lines that show them, as far as the model's window holds them.

    Sections of the `hidden` roles are left out, unless nothing else is there; captions of figures and tables always:
    they stand anywhere and tell of any time. `beside` are characters to keep free.
    """
    text = document.text
    captions = [(figure.start, figure.end) for figure in document.figures]
    captions += [(table.start, table.end) for table in document.tables]
    parts = [(each.body, each.end) for each in document.sections if each.role not in hidden] or [(0, len(text))]
    places = [place for part in parts for place in sentence_spans(text, *part)]
    spans = [
        Span(document=document.id, start=start, end=end, quote=text[start:end])
        for start, end in places
        if len(text[start:end].split()) >= _LEAST_WORDS and not any(first <= start < last for first, last in captions)
    ]
    lines = "\n".join(f"{number}. {' '.join(span.quote.split())}" for number, span in enumerate(spans, 1))
    shown = context.fit(lines, prompt, beside=beside)
    if shown != lines:
        shown = shown.rpartition("\n")[0]
    return spans[: shown.count("\n") + 1 if shown else 0], shown


def pointed(numbers: Sequence[int], spans: Sequence[Span], what: str, *, tolerated: int = 0) -> list[Span] | Rejection:
    """The sentences of these numbers, each once, or why not: more wrong ones than are tolerated, or none at all.

    A sentence that talks to a model is a wrong one. `what` names what the sentences are to prove.
    """
    faults: list[Rejection] = []
    found: dict[int, Span] = {}
    for number in map(int, numbers):
        if not 1 <= number <= len(spans):
            details = f"number {number} of {len(spans)} sentences"
            faults.append(Rejection(reason=f"a sentence for the {what} is not in the source", details=details))
        elif fault := sound(spans[number - 1].quote, what=f"quote for the {what}"):
            faults.append(fault)
        else:
            found[number] = spans[number - 1]
    if len(faults) > tolerated:
        return faults[0]
    return list(found.values()) or Rejection(reason=f"there is no quote for the {what}")
