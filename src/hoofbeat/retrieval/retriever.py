"""A retriever: a retriever line at work over documents.

Query writers write what is searched for, rankers order documents by their passages (or, for showing evidence to a
model, the passages themselves), fusion joins rankings, rerankers read the best again. Every hit tells how it came
about: its rank and score in each stage. A query whose model call failed is not searched; it comes back with its
failure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec
import numpy as np

from hoofbeat.errors import UsageError
from hoofbeat.progress import Progress
from hoofbeat.records import Failure, Hit, Passage
from hoofbeat.retrieval.index.topk import Floats, Indices, Ranking, check_k, rrf_shares, score_shares, summed_shares
from hoofbeat.retrieval.index_set import IndexSet
from hoofbeat.retrieval.line import Fusion, Node, Pipeline, Stage, every_stage, parse, stages
from hoofbeat.retrieval.stage_roles import (
    EvidenceRanker,
    FoundPassage,
    QueryWriter,
    RankedUnits,
    Ranker,
    Reranker,
    SearchQuery,
    SearchScope,
)

if TYPE_CHECKING:
    from hoofbeat.models.encoder import Encoder
    from hoofbeat.models.model import Model
    from hoofbeat.retrieval.corpus_index import OtherCorpus
    from hoofbeat.retrieval.hero.hero_evidence import HeroEvidence, SourceEvidence

_BATCH = 256

S = TypeVar("S", bound=Stage)


class SearchResult(NamedTuple):
    """What came of each query: its hits, and the query as the line's stages left it, with their traces and failures."""

    queries: list[SearchQuery]
    hits: list[list[Hit]]

    @property
    def failures(self) -> dict[str, Failure]:
        """The queries that could not be searched, and why."""
        return {query.id: query.failure for query in self.queries if query.failure is not None}


class Retriever:
    """One retriever line over one set of documents."""

    def __init__(self, indexes: IndexSet, line: str, *, model: Callable[[str], Model] | None = None) -> None:
        self.indexes = indexes
        self.tree = parse(line)
        self._model = model
        self.notes: list[str] = []
        self._others: dict[str, OtherCorpus] = {}
        self._elsewhere: dict[tuple[str, str], Retriever] = {}
        # Prepared now, so that a stage that can't work is said before anything is asked or indexed; equal ones once.
        self._prepared: dict[Stage, Stage] = {}
        for stage in stages(self.tree):
            self._at_work(stage)

    @classmethod
    def over(cls, passages: Sequence[Passage], line: str, *, encoder: Callable[[str], Encoder]) -> Retriever:
        """A retriever over passages that are cut already."""
        return cls(IndexSet.of_passages(passages, encoder=encoder), line)

    @property
    def line(self) -> str:
        """The canonical form of the line."""
        return str(self.tree)

    def describe(self) -> dict[str, object]:
        """The settings as a manifest records them."""
        used = dict.fromkeys(self._at_work(stage) for stage in stages(self.tree))
        notes = list(dict.fromkeys(self.notes + [f"{stage}: {note}" for stage in used for note in stage.notes]))
        told: dict[str, object] = {}
        for stage in used:
            for key, value in stage.describe().items():
                known = told.get(key)
                told[key] = {**known, **value} if isinstance(known, dict) and isinstance(value, dict) else value
        return {
            "line": self.line,
            **self.indexes.describe(self.tree),
            **told,
            **({"other corpora": self._described_others()} if self._others else {}),
            **({"notes": notes} if notes else {}),
        }

    def _described_others(self) -> dict[str, object]:
        """The other corpora that stages searched: their content, by which lines, and how they were indexed."""
        return {
            corpus: {
                "content": other.content,
                "lines": {
                    line: other.indexes.describe(retriever.tree)
                    for (where, line), retriever in self._elsewhere.items()
                    if where == corpus
                },
            }
            for corpus, other in self._others.items()
        }

    @property
    def prompts(self) -> dict[str, str]:
        """The prompts its stages use, with their fingerprints."""
        return {name: label for stage in every_stage(self.tree) for name, label in stage.prompts().items()}

    @property
    def encoders(self) -> set[str]:
        """The sentence encoders its stages use, by name."""
        return {name for stage in every_stage(self.tree) for name in stage.encoders()}

    def prepare(self) -> None:
        """Load every encoder and language model that the line names: one that can't be had is said before any work."""
        for name in sorted(self.encoders):
            self.indexes.encoder(name)
        for name in sorted({name for stage in every_stage(self.tree) for name in stage.models()}):
            self.model(name)

    def search(
        self, queries: Sequence[tuple[str, str]], k: int, documents: Collection[str] | None = None
    ) -> list[list[Hit]]:
        """The `k` best documents for each (id, text), by their passages; `documents` restricts the search.

        A query without text has no hits.
        """
        return self.run(queries, k, documents).hits

    def search_passages(
        self, queries: Sequence[tuple[str, str]], k: int, documents: Collection[str] | None = None
    ) -> list[list[Hit]]:
        """The `k` best passages for each (id, text): a hit for each, so a document may come more than once."""
        return self.run(queries, k, documents, by_document=False).hits

    def run(
        self,
        queries: Sequence[tuple[str, str]],
        k: int,
        documents: Collection[str] | None = None,
        *,
        by_document: bool = True,
    ) -> SearchResult:
        """Search, and say also what became of each query on the way."""
        check_k(k)
        scope = SearchScope(by_document, None if documents is None else tuple(documents))
        asked = [SearchQuery(id=name, text=text) for name, text in queries]
        searched = SearchResult(list(asked), [[] for _ in asked])
        places = [place for place, query in enumerate(asked) if query.text.strip()]
        asks = any(stage.role != "ranker" for stage in stages(self.tree))  # then nothing is asked in vain
        if (documents is not None and not documents) or (asks and self.indexes.empty):
            return searched
        batch_size = max(1, len(places)) if asks else _BATCH
        with self.indexes.progress.task(f"Search: {self.line}", len(places)) as task:
            for first in range(0, len(places), batch_size):
                batch = places[first : first + batch_size]
                for place, found in zip(
                    batch, self.rank(self.tree, [asked[each] for each in batch], k, scope), strict=True
                ):
                    searched.queries[place] = found.query
                    searched.hits[place] = self._hits(found)
                task.advance(len(batch))
        return searched

    def evidence(
        self,
        queries: Sequence[tuple[str, str]],
        sources: Sequence[str],
        passages: int = 5,
        *,
        room: int | None = None,
    ) -> Iterator[HeroEvidence | SourceEvidence]:
        """What each source by itself says to each query: by HERO's layers, or a line's best passages.

        HERO brings query after query, another line source after source. `room` is how many characters the model that
        reads the evidence can be shown.
        """
        from hoofbeat.retrieval.hero.hero_evidence import SourceEvidence  # noqa: PLC0415 (ranking does without HERO)

        steps = self.tree.steps if isinstance(self.tree, Pipeline) else (self.tree,)
        last = steps[-1]
        if isinstance(last, EvidenceRanker):
            scope = SearchScope(True, None)
            asked = self._write(steps, [SearchQuery(id=name, text=text) for name, text in queries], scope)
            yield from self._at_work(last).evidence(asked, sources, _Tools(self, last, scope), room)
            return
        for source in sources:
            searched = self.run(queries, passages, [source], by_document=False)
            for query, hits in zip(searched.queries, searched.hits, strict=True):
                found = tuple(self.indexes.passage(hit.passage) for hit in hits)
                yield SourceEvidence(question=query.id, document=source, passages=found, failure=query.failure)

    def elsewhere(self, corpus: str, line: str) -> Retriever:
        """A line over another corpus, by its folder; encoders and models are those of this retriever."""
        if (corpus, line) not in self._elsewhere:
            self._elsewhere[corpus, line] = Retriever(self.other(corpus), line, model=self._model)
        return self._elsewhere[corpus, line]

    def other(self, corpus: str) -> IndexSet:
        """The indexes over another corpus that a stage searches, by its folder."""
        from hoofbeat.retrieval.corpus_index import OtherCorpus  # noqa: PLC0415 (few lines search another corpus)

        if corpus not in self._others:
            self._others[corpus] = OtherCorpus(corpus, encoder=self.indexes.encoder, progress=self.indexes.progress)
        return self._others[corpus].indexes

    def rank(self, node: Node, queries: Sequence[SearchQuery], k: int, scope: SearchScope) -> list[RankedUnits]:
        """Rank by a part of a line; a query that has failed already comes back as it is."""
        match node:
            case Stage():
                return self._rank_stage(node, queries, k, scope)
            case Fusion():
                return self._rank_fusion(node, queries, k, scope)
            case Pipeline():
                return self._rank_pipeline(node, queries, k, scope)

    def model(self, spec: str) -> Model:
        """The language model of that name, for stages that ask one."""
        if self._model is None:
            raise UsageError(f"the line {self.line} needs a language model", fix="name one: --model embedded")
        return self._model(spec)

    def _hits(self, found: RankedUnits) -> list[Hit]:
        placed = {
            stage: {int(unit): rank for rank, unit in enumerate(ranking.indices)}
            for stage, ranking in found.via.items()
        }
        hits = []
        for place, (unit, score) in enumerate(zip(*found.ranking, strict=True)):
            passage = self.indexes.decode(int(found.passages[place]))
            via = {
                stage: (ranks[int(unit)] + 1, float(found.via[stage].scores[ranks[int(unit)]]))
                for stage, ranks in placed.items()
                if int(unit) in ranks
            }
            hits.append(
                Hit(
                    question=found.query.id,
                    document=passage.document,
                    rank=place + 1,
                    score=float(score),
                    passage=passage.id,
                    via=via,
                )
            )
        return hits

    def _at_work(self, stage: S) -> S:
        """The stage, prepared; an equal stage that was prepared before serves in its place."""
        if stage not in self._prepared:
            stage.prepare()
            self._prepared[stage] = stage
        return self._prepared[stage]  # type: ignore[return-value]  # equal stages have one class

    def _rank_stage(
        self, stage: Stage, queries: Sequence[SearchQuery], k: int, scope: SearchScope
    ) -> list[RankedUnits]:
        """Rank by one stage; queries that have failed, or that have no text, find nothing."""
        assert isinstance(stage, Ranker)
        alive = [query.failure is None and bool(query.text.strip()) for query in queries]
        asked = [query for query, lives in zip(queries, alive, strict=True) if lives]
        ranker = self._at_work(stage)
        found = iter(ranker.rank(asked, k, scope, _Tools(self, stage, scope)))
        self._note(ranker)
        return [next(found) if lives else RankedUnits.empty(query) for query, lives in zip(queries, alive, strict=True)]

    def _note(self, stage: Stage) -> None:
        """Keep what a stage noted, as often as it changes."""
        noted = [f"{stage}: {note}" for note in stage.notes]
        self.notes += [note for note in noted if note not in self.notes]

    def _rank_fusion(
        self, node: Fusion, queries: Sequence[SearchQuery], k: int, scope: SearchScope
    ) -> list[RankedUnits]:
        weights = [part.weight for part in node.parts]
        parts = [self.rank(part.node, queries, max(k, node.depth), scope) for part in node.parts]
        fused = []
        for query, *ranked in zip(queries, *parts, strict=True):
            after = _joined(query, [part.query for part in ranked])
            if after.failure is not None:
                fused.append(RankedUnits.empty(after))
                continue
            rankings = [part.ranking for part in ranked]
            shares = [_shares(node, ranking, weight) for ranking, weight in zip(rankings, weights, strict=True)]
            ranking = summed_shares(rankings, shares, k)
            via = _joined_via([str(part.node) for part in node.parts], ranked)
            speakers = _best_passages(ranking.indices, ranked, shares)
            fused.append(RankedUnits(after, ranking, speakers, via))
        return fused

    def _rank_pipeline(
        self, node: Pipeline, queries: Sequence[SearchQuery], k: int, scope: SearchScope
    ) -> list[RankedUnits]:
        queries = self._write(node.steps, queries, scope)
        at = next(number for number, step in enumerate(node.steps) if step.role == "ranker")
        rerankers = [step for step in node.steps[at + 1 :] if isinstance(step, Reranker)]
        depth = max([k, *(step.depth or step.default_depth for step in rerankers)])
        ranked = self.rank(node.steps[at], queries, depth, scope)
        for step in rerankers:
            ranked = self._rerank(step, ranked, scope)
        return [found.first(k) for found in ranked]

    def _write(self, steps: Sequence[Node], queries: Sequence[SearchQuery], scope: SearchScope) -> list[SearchQuery]:
        """The queries after the writers that stand before the ranker."""
        for number, step in enumerate(steps):
            if not isinstance(step, QueryWriter):
                break
            rest = tuple(steps[number + 1 :])
            follows = rest[0] if len(rest) == 1 else Pipeline(rest)
            writer = self._at_work(step)
            queries = _written(writer, queries, _Tools(self, follows, scope))
            self._note(writer)
        return list(queries)

    def _rerank(self, stage: Reranker, ranked: list[RankedUnits], scope: SearchScope) -> list[RankedUnits]:
        depth = stage.depth or stage.default_depth
        alive = [found for found in ranked if found.query.failure is None and len(found.passages)]
        best = [self._passages(found.first(depth)) for found in alive]
        reranker = self._at_work(stage)
        tools = _Tools(self, stage, scope)
        scores = reranker.rerank([found.query for found in alive], best, tools) if alive else []
        self._note(reranker)
        for found, given in zip(best, scores, strict=True):
            if not isinstance(given, Failure) and len(given) != len(found):
                raise UsageError(f"{stage} gave {len(given)} scores for {len(found)} results", fix="correct the stage")
        new = iter(scores)
        return [
            found.reordered(str(stage), next(new)) if found.query.failure is None and len(found.passages) else found
            for found in ranked
        ]

    def _passages(self, ranked: RankedUnits) -> list[FoundPassage]:
        passages = [self.indexes.decode(int(code)) for code in ranked.passages]
        scores = ranked.ranking.scores.tolist()
        return [FoundPassage(each.document, each, score) for each, score in zip(passages, scores, strict=True)]


class _Tools:
    """What a stage of a line may use: the command's models, and search by what follows it."""

    def __init__(self, retriever: Retriever, follows: Node, scope: SearchScope) -> None:
        self._retriever = retriever
        self._follows = follows
        self._scope = SearchScope(True, scope.documents)

    @property
    def progress(self) -> Progress:
        """Where long work is shown."""
        return self._retriever.indexes.progress

    @property
    def indexes(self) -> IndexSet:
        """The documents, and the indexes over their passages."""
        return self._retriever.indexes

    def model(self, spec: str) -> Model:
        """The language model of that name; an empty name is the command's."""
        return self._retriever.model(spec)

    def search(self, line: str, queries: Sequence[SearchQuery], k: int, corpus: str = "") -> list[list[FoundPassage]]:
        """The `k` best documents, each with its best passage, by a line or by what follows the stage."""
        node = parse(line) if line else self._follows
        searched, scope = self._retriever, self._scope
        if corpus:
            searched, scope = searched.elsewhere(corpus, str(node)), SearchScope(True, None)
        return [searched._passages(found) for found in searched.rank(node, queries, k, scope)]


def _written(writer: QueryWriter, queries: Sequence[SearchQuery], tools: _Tools) -> list[SearchQuery]:
    """Have the queries written that have not failed and have a text; the others stay as they are."""
    alive = [query.failure is None and bool(query.text.strip()) for query in queries]
    asked = [query for query, lives in zip(queries, alive, strict=True) if lives]
    written = writer.write(asked, tools)
    if len(written) != len(asked):
        raise UsageError(f"{writer} wrote {len(written)} queries for {len(asked)}", fix="correct the stage")
    done = iter(written)
    return [next(done) if lives else query for query, lives in zip(queries, alive, strict=True)]


def _joined(query: SearchQuery, branches: Sequence[SearchQuery]) -> SearchQuery:
    """A query after a fusion: what every branch did with it, and the first failure of any."""
    steps = query.steps + tuple(step for branch in branches for step in branch.steps[len(query.steps) :])
    failure = query.failure or next((branch.failure for branch in branches if branch.failure is not None), None)
    return msgspec.structs.replace(query, steps=steps, failure=failure)


def _joined_via(names: Sequence[str], parts: Sequence[RankedUnits]) -> dict[str, Ranking]:
    """What every part of a fusion ranked, and the stages inside it.

    The same stage may stand in two parts and search for different texts, as in `bm25 + (hyde > bm25)`: then it is named
    by the part it stands in.
    """
    via = {name: part.ranking for name, part in zip(names, parts, strict=True)}
    for name, part in zip(names, parts, strict=True):
        for stage, ranking in part.via.items():
            same = via.setdefault(stage, ranking) is ranking or stage == name
            if not same and not np.array_equal(ranking.indices, part.ranking.indices):
                via[f"{stage} in {name}"] = ranking
    return via


def _shares(node: Fusion, ranking: Ranking, weight: float) -> Floats:
    """What each place of one ranking adds to a fusion."""
    if node.by == "scores":
        return score_shares(ranking.scores, weight, node.depth)
    return rrf_shares(len(ranking.indices), weight, node.constant)


def _best_passages(units: Indices, parts: Sequence[RankedUnits], shares: Sequence[Floats]) -> Indices:
    """For each unit the passage of the ranking that contributed most to its score; the earlier one on a tie."""
    best: dict[int, int] = {}
    most: dict[int, float] = {}
    for part, added in zip(parts, shares, strict=True):
        for unit, passage, share in zip(part.ranking.indices, part.passages, added, strict=True):
            if share > most.get(int(unit), -1.0):
                best[int(unit)], most[int(unit)] = int(passage), float(share)
    return np.array([best[int(unit)] for unit in units], np.int64)
