"""`lamer`: adds a document that is written after a look at what a first search found (Shen and others 2024)."""

from __future__ import annotations

from collections.abc import Sequence

from hoofbeat.models import Model
from hoofbeat.records import TraceStep
from hoofbeat.retrieval.document_writers import (
    PASSAGE_TOKENS,
    DocumentWriter,
    FusedQuery,
    PromptDraft,
    generation_options,
    room_beside,
)
from hoofbeat.retrieval.line import CostBound, Node, StageOption, parse
from hoofbeat.retrieval.stage_roles import FoundPassage, SearchQuery, StageTools
from hoofbeat.window import fit_beginnings


class LamerStage(DocumentWriter):
    """The model sees what a first search found, and writes what it should have found."""

    name = "lamer"
    summary = "adds to the question a document that the model writes after seeing a first search"
    options = generation_options(
        512,
        StageOption("top", 10, "how many passages of the first search the model sees", min_=1, max_=100),
        StageOption("with", "bm25", "the line of the first search", check=parse),
        StageOption("reads", 1200, "how many characters of a passage the model sees", min_=50, max_=20000),
    )

    def inner(self) -> tuple[Node, ...]:
        """The first search."""
        return (parse(self.word("with")),)

    def cost(self) -> CostBound:
        """The passages are read once for each document."""
        return super().cost() + CostBound(tokens_in=self.count("n") * self.count("top") * PASSAGE_TOKENS)

    def fuse(self, question: str, documents: Sequence[str]) -> FusedQuery:
        """The question before each document."""
        return lamer_fusion(question, documents)

    def drafts(self, queries: Sequence[SearchQuery], tools: StageTools, model: Model) -> list[PromptDraft]:
        """The question and the passages of a first search that fit the model's window."""
        plain = [SearchQuery(id=query.id, text=query.text) for query in queries]
        found = tools.search(str(parse(self.word("with"))), plain, self.count("top"))
        return [self._draft(query, each, model) for query, each in zip(queries, found, strict=True)]

    def _draft(self, query: SearchQuery, found: Sequence[FoundPassage], model: Model) -> PromptDraft:
        room = room_beside(model.context, self.count("tokens"), [query.text])
        passages = fit_beginnings((one.passage for one in found), self.count("reads"), room)
        searched = TraceStep(
            stage=str(self), what="searched", text=query.text, found=tuple(one.passage.id for one in found)
        )
        read = TraceStep(stage=str(self), what="read", found=tuple(passage.id for passage in passages))
        return PromptDraft({"question": query.text, "passages": passages}, (searched, read))


def lamer_fusion(question: str, documents: Sequence[str]) -> FusedQuery:
    """The question before each document for lexical rankers, averaged with them for dense ones."""
    return "\n".join(f"{question} {document}" for document in documents), (question, *documents)


STAGE = LamerStage()
