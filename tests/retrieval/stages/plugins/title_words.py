"""A ranker in one file: documents by the words that they share with the query, in the title and in the text."""

from __future__ import annotations

import re

from hoofbeat.records import Document
from hoofbeat.retrieval.stages import DocumentRanker, SearchQuery, StageOption


class TitleWords(DocumentRanker):
    """Counts shared words; it needs no index, no encoder and no model."""

    name = "title-words"
    summary = "ranks by shared words, those in the title first"
    options = (StageOption("title", 2.0, "how much a word in the title counts", min_=0),)

    def score(self, query: SearchQuery, document: Document) -> float | None:
        """The number of shared words; a document that shares none is not found."""
        wanted = _words(query.for_lexical)
        shared = self.number("title") * len(wanted & _words(document.title)) + len(wanted & _words(document.text))
        return shared or None


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


STAGE = TitleWords()
