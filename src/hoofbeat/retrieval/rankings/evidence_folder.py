"""Evidence folders: what every source by itself has to say to every question, with how it was found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from hoofbeat.models.session import UsedModels
from hoofbeat.retrieval import IndexSet, Retriever
from hoofbeat.retrieval.hero import HeroEvidence, SourceEvidence
from hoofbeat.retrieval.rankings.rankings_folder import asked_models, line_cost
from hoofbeat.retrieval.rankings.test_collection import TestCollection
from hoofbeat.store import Artefact, Manifest, create, open_artefact
from hoofbeat.store.manifest import count_outcomes
from hoofbeat.store.tables import write_jsonl

EVIDENCE = "evidence"


def find_evidence(
    collection: TestCollection,
    indexes: IndexSet,
    line: str,
    target: Path,
    *,
    sources: Sequence[str] | None = None,
    passages: int = 5,
    models: UsedModels | None = None,
    encoders: UsedModels | None = None,
    command: Sequence[str] = (),
) -> Artefact:
    """Find the evidence of every source for every question and write its folder."""
    retriever = Retriever(indexes, line, model=models)
    queries = [(question.id, question.full_text) for question in collection.questions]
    names = list(indexes.documents) if sources is None else list(sources)
    outcomes: list[str | None] = []
    routes: dict[str, int] = {}

    def found() -> Iterator[SourceEvidence]:
        for each in retriever.evidence(queries, names, passages):
            outcomes.append(each.failure.kind if each.failure else None)
            routes[each.route] = routes.get(each.route, 0) + 1
            yield each.record() if isinstance(each, HeroEvidence) else each

    with create(target, replace_kind=EVIDENCE) as draft:
        write_jsonl(draft.path / "evidence.jsonl", found())
        draft.finish(
            Manifest(
                kind=EVIDENCE,
                title=f"{retriever.line}, source by source",
                command=list(command),
                inputs=collection.inputs,
                settings={**retriever.describe(), "bed": collection.name, "sources": len(names), "passages": passages},
                models=asked_models(retriever, models, encoders),
                prompts=retriever.prompts,
                counts=count_outcomes(outcomes),
                metrics={"routes": dict(sorted(routes.items()))},
                cost=line_cost(retriever, models, encoders),
            )
        )
    return open_artefact(target, EVIDENCE)
