"""Evidence folders: what every source by itself has to say to every question, with how it was found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from hoofbeat.answering.run_folder import count_outcomes
from hoofbeat.cli.bed import Bed
from hoofbeat.cli.console import Screen
from hoofbeat.cli.ranking import Models, asked_models, line_cost
from hoofbeat.records import Failure, Passage
from hoofbeat.retrieval import IndexSet, Retriever
from hoofbeat.retrieval.hero.hero_evidence import HeroTrace, explain_trace
from hoofbeat.store import Artefact, Manifest, create, open_artefact
from hoofbeat.store.tables import read_jsonl, write_jsonl

__all__ = ["KIND", "SourceEvidence", "find_evidence", "show_evidence"]

KIND = "evidence"
_SHOWN = 5


class SourceEvidence(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one source has to say to one question, and how it was found (`trace`, for HERO)."""

    question: str
    document: str
    route: str = "retrieved"
    sufficient: bool = True
    passages: tuple[Passage, ...] = ()
    trace: HeroTrace | None = None
    failure: Failure | None = None


def find_evidence(
    bed: Bed,
    indexes: IndexSet,
    line: str,
    target: Path,
    *,
    sources: Sequence[str] | None = None,
    passages: int = 5,
    models: Models | None = None,
    encoders: Models | None = None,
    command: Sequence[str] = (),
) -> Artefact:
    """Find the evidence of every source for every question and write its folder."""
    retriever = Retriever(indexes, line, model=models)
    queries = [(question.id, question.full_text) for question in bed.questions]
    names = list(indexes.documents) if sources is None else list(sources)
    outcomes: list[str | None] = []
    routes: dict[str, int] = {}

    def found() -> Iterator[SourceEvidence]:
        for each in retriever.evidence(queries, names, passages):
            outcomes.append(each.failure.kind if each.failure else None)
            routes[each.route] = routes.get(each.route, 0) + 1
            yield SourceEvidence(
                question=each.question,
                document=each.document,
                route=each.route,
                sufficient=each.sufficient,
                passages=each.passages,
                trace=each.trace,
                failure=each.failure,
            )

    with create(target, replace_kind=KIND) as draft:
        write_jsonl(draft.path / "evidence.jsonl", found())
        draft.finish(
            Manifest(
                kind=KIND,
                title=f"{retriever.line}, source by source",
                command=list(command),
                inputs=bed.inputs,
                settings={**retriever.describe(), "bed": bed.name, "sources": len(names), "passages": passages},
                models=asked_models(retriever, models, encoders),
                prompts=retriever.prompts,
                counts=count_outcomes(outcomes),
                metrics={"routes": dict(sorted(routes.items()))},
                cost=line_cost(retriever, models, encoders),
            )
        )
    return open_artefact(target, KIND)


def show_evidence(screen: Screen, artefact: Artefact, count: int) -> None:
    """Show how the evidence was found, for each question and the first sources."""
    shown: dict[str, int] = {}
    for each in read_jsonl(artefact.file("evidence.jsonl"), SourceEvidence):
        shown[each.question] = shown.get(each.question, 0) + 1
        if shown[each.question] > count:
            continue
        screen.title(f"{each.question} in {each.document}")
        if each.failure is not None:
            screen.say(f"  failed: {each.failure.kind}: {each.failure.message}")
        if each.trace is not None:
            screen.say(explain_trace(each.trace))
        for passage in each.passages[:_SHOWN]:
            screen.say(f"  {passage.heading}: {' '.join(passage.text.split())[:160]}")
        if len(each.passages) > _SHOWN:
            screen.say(f"  and {len(each.passages) - _SHOWN} more passages")
