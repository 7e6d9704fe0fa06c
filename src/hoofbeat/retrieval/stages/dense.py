"""`dense`: ranks by the similarity of an encoder's vectors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from hoofbeat.models.encoders.encoder_base import DEFAULT_ENCODER
from hoofbeat.retrieval.index.chunking import Chunking, pieces
from hoofbeat.retrieval.index.dense_search import ApproximateSearcher, check_search
from hoofbeat.retrieval.index.query_vectors import instructions, mean_vectors
from hoofbeat.retrieval.index.topk import Indices
from hoofbeat.retrieval.line import StageOption
from hoofbeat.retrieval.passage_ranking import CUTTING, PassageRanker, PieceSearch
from hoofbeat.retrieval.stage_roles import IndexUse, SearchQuery, StageTools

if TYPE_CHECKING:
    from hoofbeat.retrieval.index_set import PassageCollection


class DenseStage(PassageRanker):
    """The nearest passages to a query's vector."""

    name = "dense"
    summary = "ranks by the similarity of an encoder's vectors"
    options = (
        StageOption("encoder", DEFAULT_ENCODER, "minilm, potion, a folder, or the model of an endpoint"),
        StageOption("search", "exact", "exact, ivf or hnsw", check=check_search),
        StageOption("store", "float32", "how vectors are kept", choices=("float32", "float16", "int8")),
        StageOption("instruct", "none", "the instruction before queries, by dataset", check=instructions),
        *CUTTING,
    )

    def encoders(self) -> tuple[str, ...]:
        """The one encoder."""
        return (self.word("encoder"),)

    def tokenizer(self) -> str:
        """Its own tokens."""
        return self.word("encoder")

    def index_uses(self) -> tuple[IndexUse, ...]:
        """The vectors of its passages."""
        vectors = tuple(self.word(name) for name in ("encoder", "search", "store", "instruct"))
        return (IndexUse(Chunking.parse(self.word("chunk")), self.word("encoder"), vectors=vectors),)

    def search(
        self, collection: PassageCollection, queries: Sequence[SearchQuery], allowed: Indices | None, tools: StageTools
    ) -> tuple[PieceSearch, list[int]]:
        """Search by the vector of every piece."""
        encoder, dense = collection.dense(
            self.word("encoder"),
            search=self.word("search"),
            store=self.word("store"),
            instruct=self.word("instruct"),
        )
        cutting = self.query_pieces(tools)
        # Several texts of one query are averaged, so only a single one is cut into pieces that are searched apart.
        groups: list[tuple[int, tuple[str, ...]]] = []
        for owner, query in enumerate(queries):
            alone = query.for_dense[0] if len(query.for_dense) == 1 else None
            parts = [query.for_dense] if alone is None else [(piece,) for piece in pieces(alone, *cutting)]
            groups += [(owner, part) for part in parts]
        words = instructions(self.word("instruct"))
        vectors = mean_vectors(
            [(queries[owner].text, part) for owner, part in groups],
            partial(encoder.encode_queries, instructions=words),
            partial(encoder.encode_documents, instructions=words),
        )
        if isinstance(dense, ApproximateSearcher) and "queries" not in dense.measured_on:
            dense.measure(vectors)
        return lambda numbers, k: dense.search(vectors[numbers], k, allowed), [owner for owner, _ in groups]


STAGE = DenseStage()
