"""The stages of retriever lines, one file each, named after the stage; and what one needs to write another.

A stage is a class with a name, a summary, options and one method, and an object of it at the top level of its file. The
same file works here, as a plugin (`hoofbeat --plugin my_stage.py`), and in an installed package.
"""

from __future__ import annotations

from hoofbeat.retrieval.line import CostBound, Stage, StageOption
from hoofbeat.retrieval.passage_ranking import PassageRanker
from hoofbeat.retrieval.stage_roles import (
    DocumentRanker,
    FoundPassage,
    QueryWriter,
    RankedUnits,
    Ranker,
    Reranker,
    SearchQuery,
    SearchScope,
    StageTools,
)

__all__ = [
    "CostBound",
    "DocumentRanker",
    "FoundPassage",
    "PassageRanker",
    "QueryWriter",
    "RankedUnits",
    "Ranker",
    "Reranker",
    "SearchQuery",
    "SearchScope",
    "Stage",
    "StageOption",
    "StageTools",
]
