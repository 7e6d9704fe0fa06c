"""`dense`: ranks by the similarity of an encoder's vectors.

Two-tower models have one encoder for documents and another for queries, trained together (MedCPT: Jin and others 2023).
The index depends on the encoder of documents alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from hoofbeat.errors import UsageError
from hoofbeat.models.encoders.encoder_base import DEFAULT_ENCODER, SPEC_OPTIONS, EncoderSpec
from hoofbeat.retrieval.index.chunking import Chunking, pieces
from hoofbeat.retrieval.index.dense_search import ApproximateSearcher, check_search
from hoofbeat.retrieval.index.postgres_vectors import check_store
from hoofbeat.retrieval.index.query_vectors import instructions, mean_vectors
from hoofbeat.retrieval.index.topk import Indices
from hoofbeat.retrieval.index.window_pieces import PieceSearcher, WindowTally, is_any_cut
from hoofbeat.retrieval.line import StageOption
from hoofbeat.retrieval.passage_ranking import CUTTING, PassageRanker, PieceSearch
from hoofbeat.retrieval.query_tasks import split_table
from hoofbeat.retrieval.stage_roles import IndexUse, SearchQuery, StageTools

if TYPE_CHECKING:
    from hoofbeat.models.encoders.encoder_base import Encoder
    from hoofbeat.retrieval.index_set import PassageCollection

_AUTO = "auto"


class DenseStage(PassageRanker):
    """The nearest passages to a query's vector."""

    name = "dense"
    summary = "ranks by the similarity of an encoder's vectors"
    options = (
        StageOption("encoder", DEFAULT_ENCODER, "minilm, potion, a folder, or the model of an endpoint"),
        StageOption("queries", "", "a separate encoder for queries, as MedCPT has; by default the same"),
        StageOption(
            "pooling",
            _AUTO,
            "from token states to one vector, if the folder does not say",
            choices=(_AUTO, *SPEC_OPTIONS["pooling"]),
        ),
        StageOption(
            "similarity",
            _AUTO,
            "dot uses the lengths of vectors, cosine does not",
            choices=(_AUTO, *SPEC_OPTIONS["similarity"]),
        ),
        StageOption("search", "exact", "exact, ivf or hnsw", check=check_search),
        StageOption(
            "store", "float32", "how vectors are kept: float32, float16, int8, or postgresql://...", check=check_store
        ),
        StageOption(
            "truncate", "no", "yes: encode only the beginning of texts longer than the window", choices=("no", "yes")
        ),
        StageOption(
            "instruct",
            "none",
            "the instruction before queries: a data set's name, or FILE.toml#NAME",
            check=instructions,
        ),
        *CUTTING,
    )

    def encoders(self) -> tuple[str, ...]:
        """The encoder of documents, and that of queries where it is another."""
        return tuple(dict.fromkeys((self.tokenizer(), self.query_tokenizer())))

    def tokenizer(self) -> str:
        """The encoder of documents, with what the line says of its vectors."""
        return self._spec(self.word("encoder"))

    def query_tokenizer(self) -> str:
        """The encoder of queries."""
        return self._spec(self.word("queries") or self.word("encoder"))

    def _spec(self, name: str) -> str:
        said = {option: self.word(option) for option in SPEC_OPTIONS if self.word(option) != _AUTO}
        return str(EncoderSpec.parse(name)._replace(**said))

    def folders(self) -> tuple[str, ...]:
        """The file of instructions, where it is the user's."""
        path, _ = split_table(self.word("instruct"))
        return (str(path),) if path else ()

    def describe(self) -> dict[str, object]:
        """The words that are put in front, which a file may change under the same name."""
        name, words = self.word("instruct"), instructions(self.word("instruct"))
        return {"instructions": {name: {"query": words.query, "document": words.document}}} if name != "none" else {}

    def index_uses(self) -> tuple[IndexUse, ...]:
        """The vectors of its passages."""
        vectors = (self.tokenizer(), *(self.word(name) for name in ("search", "store", "instruct")))
        vectors += ("truncate",) if self.word("truncate") == "yes" else ()
        queries = self.query_tokenizer() if self.word("queries") else ""
        return (IndexUse(Chunking.parse(self.word("chunk")), self.tokenizer(), vectors=vectors, queries=queries),)

    def search(
        self, collection: PassageCollection, queries: Sequence[SearchQuery], allowed: Indices | None, tools: StageTools
    ) -> tuple[PieceSearch, list[int]]:
        """Search by the vector of every piece."""
        encoder, dense, tally = collection.dense(
            self.tokenizer(),
            search=self.word("search"),
            store=self.word("store"),
            instruct=self.word("instruct"),
            truncate=self.word("truncate") == "yes",
        )
        asking = self._query_encoder(encoder, tools)
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
            partial(asking.encode_queries, instructions=words),
            partial(encoder.encode_documents, instructions=words),
        )
        self._note(encoder, tally, asking, [text for _, part in groups for text in part])
        rows = dense.rows if isinstance(dense, PieceSearcher) else dense
        if isinstance(rows, ApproximateSearcher) and "queries" not in rows.measured_on:
            rows.measure(vectors)
        return lambda numbers, k: dense.search(vectors[numbers], k, allowed), [owner for owner, _ in groups]

    def _note(self, encoder: Encoder, tally: WindowTally | None, asking: Encoder, texts: Sequence[str]) -> None:
        """Note what had to be assumed of the encoders, and what their windows keep out of vectors."""
        words = instructions(self.word("instruct"))
        if tally is None:
            told = f"the window of {encoder.name} is unknown: it may cut long texts"
        else:
            told = tally.in_words(encoder.name)
        self.notes = list(filter(None, dict.fromkeys((encoder.assumption, asking.assumption, told))))
        if is_any_cut(texts, asking, words.query or asking.prompts.query):
            self.notes.append(
                f"queries longer than the {asking.window} tokens that {asking.name} reads were cut; "
                f"qchunk=tokens:{asking.window} searches with the whole query, piece by piece"
            )

    def _query_encoder(self, encoder: Encoder, tools: StageTools) -> Encoder:
        """The encoder of queries, whose vectors must fit those of the documents."""
        asking = tools.indexes.encoder(self.query_tokenizer())
        if asking.dimension != encoder.dimension:
            raise UsageError(
                f"query vectors have {asking.dimension} numbers, but document vectors {encoder.dimension}",
                where=f"retriever line, {self}",
                fix="use two encoders that were trained together",
            )
        return asking


STAGE = DenseStage()
