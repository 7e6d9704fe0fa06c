"""A reranker in one file: documents with a facet come first, otherwise in the order they had."""

from __future__ import annotations

from collections.abc import Sequence

from hoofbeat.retrieval.stages import FoundPassage, Reranker, SearchQuery, StageOption, StageTools


class FacetFirst(Reranker):
    """Looks at the documents' facets; it asks no model."""

    name = "facet-first"
    summary = "puts documents with a facet first"
    options = (StageOption("facet", "organ", "the facet"), StageOption("value", "liver", "its value"))

    def score(self, query: SearchQuery, found: Sequence[FoundPassage], tools: StageTools) -> list[float]:
        """1 for documents with the facet, 0 for others; equal scores keep their order."""
        facets = [tools.indexes.document(each.document).facets.get(self.word("facet"), "") for each in found]
        return [float(self.word("value") in facet) for facet in facets]


STAGE = FacetFirst()
