"""How alike two texts are after normalising: pure functions from 0 (nothing shared) to 1 (the same)."""

from __future__ import annotations

import re
import unicodedata

from rapidfuzz import fuzz

_TOKEN = re.compile(r"(?<!\w)[-−]?\d+(?:[.,]\d+)*|[^\W_]+|[^\w\s]")
_SIGNS = {"%", "‰"}
_ARTICLES = {"a", "an", "the"}


def for_exact_match(text: str) -> str:
    """The words, numbers and signs of a text: case, punctuation, articles and the width of characters left out.

    Unlike the other normal forms it follows SQuAD's exact match; accents and spelling count.

    A number keeps its sign and decimals and stands apart from its unit; signs that carry meaning (%, <, ±) stay.
    """
    folded = unicodedata.normalize("NFKC", text).casefold().replace("−", "-")
    tokens = [token for token in _TOKEN.findall(folded) if token not in _ARTICLES and _means_something(token)]
    return " ".join(tokens)


def _means_something(token: str) -> bool:
    return len(token) > 1 or token.isalnum() or token in _SIGNS or unicodedata.category(token).startswith("S")


def exact_match(text: str, reference: str) -> float:
    """1 where the normalised texts are the same, else 0; two texts without a word are not the same."""
    one = for_exact_match(text)
    return 1.0 if one and one == for_exact_match(reference) else 0.0


def fuzzy_match(text: str, reference: str) -> float:
    """rapidfuzz's `token_sort_ratio` of the normalised texts, over 100.

    The words are sorted, and the characters compared: 2M / (length + length), where M is the length of the longest
    common subsequence of characters.
    """
    one, two = for_exact_match(text), for_exact_match(reference)
    return fuzz.token_sort_ratio(one, two) / 100 if one and two else 0.0
