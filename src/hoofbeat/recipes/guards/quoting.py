"""What a model extracted is proven by quotes: each must stand in the source, or the item is turned away."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hoofbeat.benchmarks.quote_search import find_quote
from hoofbeat.corpus.vocabularies.word_forms import word_lists
from hoofbeat.recipes.items import Item, Rejection
from hoofbeat.records import Document

__all__ = ["prove"]

_WORD = re.compile(r"[^\W_]{2,}")
_SHOWN = 300


def prove(
    item: Item,
    document: Document,
    quotes: Sequence[str],
    what: str,
    *,
    least: float = 0.9,
    within: tuple[int, int] | None = None,
) -> Item | Rejection:
    """The item with the spans of all quotes as evidence, or a rejection for the first that is not in the source.

    `what` names what the quotes are for ("significance"). No quote at all, or one of little words, proves nothing.
    """
    if not quotes:
        return Rejection(reason=f"there is no quote for the {what}")
    for quote in quotes:
        if not _tells(quote):
            return Rejection(reason=f"a quote for the {what} says nothing", details=quote[:_SHOWN])
        found = find_quote(document, quote, least=least, within=within)
        if found is None:
            return Rejection(reason=f"a quote for the {what} is not in the source", details=quote[:_SHOWN])
        item = item.proven(*found.spans)
    return item


def _tells(quote: str) -> bool:
    return any(word not in word_lists().little for word in map(str.lower, _WORD.findall(quote)))
