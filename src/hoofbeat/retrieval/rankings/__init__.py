"""Rankings: test collections, rankings folders with their measures, runs of other software, and published figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hoofbeat.lazy import lazy_names

if TYPE_CHECKING:
    from hoofbeat.retrieval.rankings.ranking_plan import (
        RankedLine,
        RankingPlan,
        find_evidence,
        plan_rankings,
        rank,
        read_lines,
    )
    from hoofbeat.retrieval.rankings.rankings_folder import (
        MEASURES,
        measure_run,
        rank_line,
        read_result,
        remarks,
    )
    from hoofbeat.retrieval.rankings.test_collection import TestCollection, collection_of, index_corpus, open_collection

__all__ = [
    "MEASURES",
    "RankedLine",
    "RankingPlan",
    "TestCollection",
    "collection_of",
    "find_evidence",
    "index_corpus",
    "measure_run",
    "open_collection",
    "plan_rankings",
    "rank",
    "rank_line",
    "read_lines",
    "read_result",
    "remarks",
]

__getattr__ = lazy_names(
    __name__,
    {
        "ranking_plan": "RankedLine RankingPlan find_evidence plan_rankings rank read_lines",
        "rankings_folder": "MEASURES measure_run rank_line read_result remarks",
        "test_collection": "TestCollection collection_of index_corpus open_collection",
    },
)
