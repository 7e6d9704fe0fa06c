"""The stages that can be named in a retriever line: what each is for, its options and their defaults."""

from __future__ import annotations

from hoofbeat.retrieval import agents, reranking, writing
from hoofbeat.retrieval.ann import check_search
from hoofbeat.retrieval.chunking import Chunking
from hoofbeat.retrieval.hero.settings import SPEC as HERO
from hoofbeat.retrieval.instructions import instructions
from hoofbeat.retrieval.line import Option, StageSpec
from hoofbeat.retrieval.pooling import check_pool

__all__ = ["STAGES"]

_CUTTING = (
    Option("chunk", "auto", check=Chunking.parse),
    Option("qchunk", "whole", check=Chunking.parse),
    Option("pool", "max", check=check_pool),
)

_BM25 = StageSpec(
    "bm25",
    "ranker",
    (
        Option("k1", 0.9, 0.0),
        Option("b", 0.4, 0.0, 1.0),
        Option("query", "plain", choices=("plain", "weighted")),
        *_CUTTING,
    ),
    summary="ranks by words in common, in Lucene's form of BM25",
)
_DENSE = StageSpec(
    "dense",
    "ranker",
    (
        Option("encoder", "minilm"),
        Option("search", "exact", check=check_search),
        Option("store", "float32", choices=("float32", "float16", "int8")),
        Option("instruct", "none", check=instructions),
        *_CUTTING,
    ),
    summary="ranks by the similarity of an encoder's vectors",
)

STAGES: dict[str, StageSpec] = {
    spec.name: spec for spec in (_BM25, _DENSE, HERO, *writing.SPECS, *agents.SPECS, *reranking.SPECS)
}
"""Every stage by its name."""
