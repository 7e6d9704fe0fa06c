"""Passages longer than an encoder's window: a vector for each part, so that no text is in no vector.

An encoder cuts what it is given at its window without a word: of a passage of 512 tokens, one that reads 256 leaves
half unread. So a passage that is longer is encoded in parts, a quarter shared between neighbours (as 128 of 512 in
OGCaReBench), each under the passage's heading. A passage is as similar to a query as its nearest part; what is ranked
and shown stays the passage.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from hoofbeat.engine import current_engine
from hoofbeat.models.encoders.encoder_base import Encoder
from hoofbeat.records import Passage
from hoofbeat.retrieval.index.chunking import Spans, indexed_text, token_windows
from hoofbeat.retrieval.index.dense_search import DenseSearcher, Vectors
from hoofbeat.retrieval.index.topk import Indices, Ranking, Rankings, check_k
from hoofbeat.window import size

_MIN_ROOM = 8
_DEEPER = 4
_AT_ONCE = 256


class WindowTally(Struct, frozen=True, kw_only=True):
    """How many passages are longer than an encoder's window, and how many of all tokens are behind it.

    `unread` says whether those are in no vector.
    """

    window: int
    passages: int
    longer: int
    tokens: int
    behind: int
    unread: bool

    @property
    def share(self) -> float:
        """The share of all tokens that are behind the window."""
        return self.behind / max(1, self.tokens)

    @classmethod
    def added(cls, tallies: Sequence[WindowTally]) -> WindowTally:
        """The tally of all passages from those of their shards."""
        first = tallies[0]
        sums = {
            name: sum(getattr(each, name) for each in tallies) for name in ("passages", "longer", "tokens", "behind")
        }
        return cls(window=first.window, unread=first.unread, **sums)

    def in_words(self, name: str) -> str:
        """The tally as a sentence; empty where every passage fits."""
        if not self.longer:
            return ""
        long = (
            f"{self.longer:,} of {self.passages:,} passages are longer than the {self.window} tokens that {name} reads"
        )
        if self.unread:
            return f"{long}; no vector covers {self.share:.1%} of the text (truncate=yes)"
        return f"{long} ({self.share:.1%} of the text is behind them): they have a vector for each part"


class PassageTexts(NamedTuple):
    """What is encoded: the texts, the place of the passage that each belongs to, and how much did not fit."""

    texts: list[str]
    owners: Indices
    tally: WindowTally | None


def texts_to_encode(passages: Sequence[Passage], encoder: Encoder, before: str, *, truncate: bool) -> PassageTexts:
    """The passages as the encoder reads them; `before` is what is put in front of each.

    With `truncate` each stays one text, which the encoder cuts. An encoder that does not say how much it reads gets
    them whole, and there is no tally.
    """
    if not encoder.window:
        return PassageTexts(list(map(indexed_text, passages)), np.arange(len(passages)), None)
    room = max(_MIN_ROOM, encoder.window - len(encoder.token_spans(before)))
    texts: list[str] = []
    owners: list[int] = []
    longer = tokens = behind = 0
    blocks = (
        [passages[place] for place in range(start, min(start + _AT_ONCE, len(passages)))]
        for start in range(0, len(passages), _AT_ONCE)
    )
    cut = current_engine().map(_CutToWindow(encoder.token_spans, room, truncate), blocks)
    for place, (parts, count) in enumerate(chain.from_iterable(cut)):
        tokens += count
        longer += count > room
        behind += max(0, count - room)
        texts += parts
        owners += [place] * len(parts)
    tally = WindowTally(
        window=room, passages=len(passages), longer=longer, tokens=tokens, behind=behind, unread=truncate
    )
    return PassageTexts(texts, np.array(owners, np.int64), tally)


class _CutToWindow:
    """The work of a worker that counts tokens (1.6 ms per passage): the texts of each passage, and its tokens."""

    def __init__(self, spans: Spans, room: int, truncate: bool) -> None:
        self._spans = spans
        self._room = room
        self._truncate = truncate

    def __call__(self, passages: Sequence[Passage]) -> list[tuple[list[str], int]]:
        found = []
        for passage in passages:
            text = indexed_text(passage)
            count = len(self._spans(text))
            whole = self._truncate or count <= self._room
            found.append(([text] if whole else _parts(passage, self._spans, self._room), count))
        return found


def _parts(passage: Passage, spans: Spans, room: int) -> list[str]:
    """The parts of a passage that is longer than the room, each under its heading unless that takes too much of it."""
    heading = f"{passage.heading}\n" if passage.heading else ""
    taken = len(spans(heading)) if heading else 0
    text = passage.text
    if 2 * taken > room:
        heading, taken, text = "", 0, indexed_text(passage)
    length = room - taken
    while True:
        windows = token_windows(text, length, length // 4, spans)
        parts = [heading + text[start:end] for start, end in windows]
        over = max((len(spans(part)) for part in parts), default=0) - room
        if over <= 0 or length - over < _MIN_ROOM:  # a text cut anew may have a token more
            return parts or [indexed_text(passage)]
        length -= over


def is_any_cut(texts: Sequence[str], encoder: Encoder, before: str = "") -> bool:
    """Whether the encoder cuts one of these texts, as far as it says how much it reads."""
    if not encoder.window:
        return False
    room = encoder.window - len(encoder.token_spans(before))
    return any(size(text) > room and len(encoder.token_spans(text)) > room for text in texts)


class PieceSearcher:
    """Search over passages of which some have several rows; `owners` (ascending) is the passage of each row."""

    def __init__(self, rows: DenseSearcher, owners: Indices) -> None:
        self.rows = rows
        self.owners = owners
        self._passages = int(owners[-1]) + 1 if len(owners) else 0

    def __len__(self) -> int:
        return self._passages

    def describe(self) -> dict[str, object]:
        """How vectors are stored and searched, as a manifest records it."""
        return {**self.rows.describe(), "rows": len(self.owners)}

    def search(self, queries: Vectors, k: int, allowed: Indices | None = None) -> list[Ranking]:
        """The `k` passages nearest to each query; `allowed` (ascending) restricts the search."""
        check_k(k)
        rows = None if allowed is None else np.flatnonzero(np.isin(self.owners, allowed))
        total = len(self.owners) if rows is None else len(rows)
        found: list[Ranking | None] = [None] * len(queries)
        waiting, depth = list(range(len(queries))), min(total, 2 * k)
        while waiting:
            still = []
            for number, ranking in zip(waiting, self.rows.search(queries[waiting], max(1, depth), rows), strict=True):
                best = self._by_passage(ranking, k)
                found[number] = best
                if len(best.indices) < k and len(ranking.indices) == depth < total:
                    still.append(number)
            waiting, depth = still, min(total, _DEEPER * depth)
        return [each for each in found if each is not None]

    def _by_passage(self, ranking: Ranking, k: int) -> Ranking:
        owners = self.owners[ranking.indices]
        first = np.sort(np.unique(owners, return_index=True)[1])[:k]
        return Ranking(owners[first], ranking.scores[first])

    def search_parts(
        self, queries: Vectors, k: int, bounds: Indices, parts: Sequence[int] | None = None
    ) -> list[Rankings]:
        """The `k` nearest passages of each partition of the passages to each query, as `DenseSearcher` has them.

        Among k rows and as many more as a partition has beyond one per passage, there are k passages.
        """
        bounds = np.asarray(bounds, np.int64)
        rows = np.searchsorted(self.owners, bounds)
        more = int((np.diff(rows) - np.diff(bounds)).max(initial=0))
        return [self._parts_by_passage(each, k) for each in self.rows.search_parts(queries, k + more, rows, parts)]

    def _parts_by_passage(self, found: Rankings, k: int) -> Rankings:
        owners = self.owners[found.indices]
        part = np.repeat(np.arange(len(found.edges) - 1), np.diff(found.edges))
        first = np.sort(np.unique(owners, return_index=True)[1])  # a passage is in one partition only
        begins = np.searchsorted(part[first], np.arange(len(found.edges) - 1))
        kept = first[np.arange(len(first)) - begins[part[first]] < k]
        edges = np.searchsorted(part[kept], np.arange(len(found.edges)))
        return Rankings(owners[kept], found.scores[kept], edges.astype(np.int64))
