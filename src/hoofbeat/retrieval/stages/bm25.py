"""`bm25`: ranks by shared words, with Lucene's BM25."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hoofbeat.retrieval.index.chunking import Chunking, pieces
from hoofbeat.retrieval.index.topk import Indices
from hoofbeat.retrieval.line import StageOption
from hoofbeat.retrieval.passage_ranking import CUTTING, PassageRanker, PieceSearch
from hoofbeat.retrieval.stage_roles import IndexUse, SearchQuery, StageTools

if TYPE_CHECKING:
    from hoofbeat.retrieval.index_set import PassageCollection


class Bm25Stage(PassageRanker):
    """BM25 over the passages' words."""

    name = "bm25"
    summary = "ranks by shared words, with Lucene's BM25"
    options = (
        StageOption("k1", 0.9, "how quickly repeated words stop counting", min_=0),
        StageOption("b", 0.4, "how much long passages are penalised", min_=0, max_=1),
        StageOption("query", "plain", "whether repeated words of a query count more", choices=("plain", "weighted")),
        *CUTTING,
    )

    def search(
        self, collection: PassageCollection, queries: Sequence[SearchQuery], allowed: Indices | None, tools: StageTools
    ) -> tuple[PieceSearch, list[int]]:
        """Search for the words of every piece."""
        cutting = self.query_pieces(tools)
        cut = [pieces(query.for_lexical, *cutting) for query in queries]
        texts = [text for each in cut for text in each]
        weighted = self.word("query") == "weighted"
        bm25 = collection.bm25(self.number("k1"), self.number("b"))
        return (
            lambda numbers, k: bm25.search([texts[number] for number in numbers], k, allowed, weighted=weighted),
            [owner for owner, each in enumerate(cut) for _ in each],
        )

    def index_uses(self) -> tuple[IndexUse, ...]:
        """The words of its passages."""
        return (IndexUse(Chunking.parse(self.word("chunk")), lexical=True),)


STAGE = Bm25Stage()
