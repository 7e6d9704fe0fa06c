"""What the stages of a retriever line exchange: queries on their way, what was found, and the tools at hand.

A query writer turns queries into queries, a reranker scores what a ranker found. Both may ask a language model; a call
that fails becomes the query's `failure`: it is then not searched, kept in the trace, and counted apart, never scored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from msgspec import Struct

from hoofbeat.progress import Progress
from hoofbeat.records import Failure, Passage, TraceStep

if TYPE_CHECKING:
    from hoofbeat.models.model import Model

__all__ = ["Found", "Reranker", "SearchQuery", "Tools", "Writer"]


class SearchQuery(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A query on its way through a line.

    `text` is the question as asked: rerankers and agents read it. `lexical` is what lexical rankers search for and
    `dense` the texts whose vectors are averaged for dense ones; None for both means `text`.
    """

    id: str
    text: str
    lexical: str | None = None
    dense: tuple[str, ...] | None = None
    steps: tuple[TraceStep, ...] = ()
    failure: Failure | None = None

    @property
    def for_lexical(self) -> str:
        """What a lexical ranker searches for."""
        return self.text if self.lexical is None else self.lexical

    @property
    def for_dense(self) -> tuple[str, ...]:
        """The texts whose vectors a dense ranker averages."""
        return (self.text,) if self.dense is None else self.dense


class Found(NamedTuple):
    """A passage that a search brought, with its document and its score there."""

    document: str
    passage: Passage
    score: float


class Tools(Protocol):
    """What a stage may use: language models, and search over the collection it works on."""

    @property
    def progress(self) -> Progress:
        """Where long work is shown."""
        ...

    def model(self, spec: str) -> Model:
        """The language model of that name; an empty name is the one the command was given."""
        ...

    def search(self, line: str, queries: Sequence[SearchQuery], k: int) -> list[list[Found]]:
        """The `k` best documents for each query, each with its best passage, by a retriever line.

        An empty line means what follows the stage in its own line.
        """
        ...


class Writer(Protocol):
    """A stage before the ranker: it writes what is searched for."""

    def write(self, queries: Sequence[SearchQuery], tools: Tools) -> list[SearchQuery]:
        """The queries rewritten, in order."""
        ...


class Reranker(Protocol):
    """A stage after the ranker: it reads query and text together."""

    def rerank(
        self, queries: Sequence[SearchQuery], texts: Sequence[Sequence[str]], tools: Tools
    ) -> list[list[float] | Failure]:
        """For each query a score for each of its texts, higher is better; or why there are none."""
        ...
