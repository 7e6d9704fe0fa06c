"""How much of one text's wording stands in another: ROUGE-L and edit similarity, the same for every part that asks.

Both read a text as its words in lower case: letters and digits run together, everything else parts them, nothing is
stemmed and no word is left out. So punctuation, line breaks and capitals never make two texts differ.

- ROUGE-L is the longest common subsequence of the two word lists: precision is its share of the candidate, recall its
  share of the reference, F their harmonic mean (as `rouge_score` computes it, without stemming, for plain English).
- Edit similarity is 1 - Levenshtein distance / length of the longer text, in characters of the words joined by one
  space. Unrelated English prose of like length has about 0.25 by it, so it is read against a control, not against 0.

- The longest run is the longest stretch of words that stands in both texts without a gap. Runs of a dozen words and
  more hardly ever come about by chance, which is why contamination checks look for them (GPT-3's: 13 words).

Memory grows with the length of the texts, not with its square.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import NamedTuple

from rapidfuzz.distance import LCSseq, Levenshtein

_WORD = re.compile(r"[^\W_]+")


class RougeL(NamedTuple):
    """ROUGE-L of a candidate against a reference."""

    precision: float
    recall: float
    f: float


class CommonRun(NamedTuple):
    """The longest run of words that two texts share: how many, and where it stands in each (characters)."""

    words: int
    a: tuple[int, int]
    b: tuple[int, int]


def overlap_words(text: str) -> list[str]:
    """The words that both measures see: letters and digits in lower case."""
    return _WORD.findall(text.lower())


def rouge_l(candidate: str, reference: str) -> RougeL:
    """ROUGE-L of a text against a reference; a text without words shares nothing."""
    mine, theirs = overlap_words(candidate), overlap_words(reference)
    common = LCSseq.similarity(mine, theirs) if mine and theirs else 0
    if not common:
        return RougeL(0.0, 0.0, 0.0)
    precision, recall = common / len(mine), common / len(theirs)
    return RougeL(precision, recall, 2 * precision * recall / (precision + recall))


def edit_similarity(a: str, b: str) -> float:
    """1 - edit distance / length of the longer, over both texts' words; 1 for equal words, 0 where one has none."""
    one, other = " ".join(overlap_words(a)), " ".join(overlap_words(b))
    if not one or not other:
        return 0.0
    return 1.0 - Levenshtein.distance(one, other) / max(len(one), len(other))


def longest_run(a: str, b: str) -> CommonRun:
    """The longest run of words that stands in both texts; of equally long ones the first."""
    places = [[match.span() for match in _WORD.finditer(text)] for text in (a, b)]
    words = [[text[start:end].lower() for start, end in spans] for text, spans in zip((a, b), places, strict=True)]
    found = SequenceMatcher(None, words[0], words[1], autojunk=False).find_longest_match()
    if not found.size:
        return CommonRun(0, (0, 0), (0, 0))
    spans = [
        (mine[start][0], mine[start + found.size - 1][1])
        for mine, start in zip(places, (found.a, found.b), strict=True)
    ]
    return CommonRun(found.size, spans[0], spans[1])
