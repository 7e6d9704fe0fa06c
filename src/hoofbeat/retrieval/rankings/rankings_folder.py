"""Rankings folders: one retriever line over a test collection, measured, with everything that explains it.

Rankings of other software come as TREC runs and are measured on the same questions as the lines beside them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from hoofbeat.errors import InputError
from hoofbeat.findings.breakdown import by_facet
from hoofbeat.findings.intervals import bootstrap_mean, cluster_labels, clusters_of
from hoofbeat.findings.ranking_measures import (
    RANKINGS,
    TREC_RUN,
    Evaluation,
    Measure,
    evaluate,
    in_trec_order,
    read_trec_run,
    trec_run_lines,
)
from hoofbeat.models import Model
from hoofbeat.models.encoders.encoder_base import EncoderSpec
from hoofbeat.models.model import model_facts
from hoofbeat.models.model_loading import UsedModels
from hoofbeat.records import Hit, Question
from hoofbeat.retrieval import IndexSet, Retriever, SearchResult
from hoofbeat.retrieval.line import every_stage
from hoofbeat.retrieval.rankings.test_collection import TestCollection
from hoofbeat.retrieval.search_agents import AgentWriter
from hoofbeat.retrieval.stage_roles import SearchQuery
from hoofbeat.store import Artefact, InputRef, Manifest, check_target, create, open_artefact
from hoofbeat.store.artefact import Cost, count_outcomes, file_reference
from hoofbeat.store.files import atomic_write
from hoofbeat.store.tables import read_jsonl, write_jsonl, write_tsv
from hoofbeat.text import caseless

_SAME_TEXT = 40  # characters: shorter texts are the same by chance

Scores = dict[str, dict[str, float]]


class TrecRun(Struct, frozen=True, kw_only=True):
    """What a run file ranks for the questions there are, best first, and what a reader of its measures must know."""

    name: str
    hits: dict[str, list[Hit]]
    source: InputRef
    notes: tuple[str, ...] = ()


def read_trec_runs(paths: Sequence[Path], collection: TestCollection, top: int) -> list[TrecRun]:
    """Read run files; the same name twice gets a number."""
    runs = [_read(path, collection, top) for path in paths]
    seen: dict[str, int] = {}
    named = []
    for run in runs:
        seen[run.name] = seen.get(run.name, 0) + 1
        name = run.name if seen[run.name] == 1 else f"{run.name} {seen[run.name]}"
        named.append(TrecRun(name=name, hits=run.hits, source=run.source, notes=run.notes))
    return named


def _read(path: Path, collection: TestCollection, top: int) -> TrecRun:
    scores = _scores(path)
    asked = {question.id for question in collection.questions}
    kept = {question: found for question, found in scores.items() if question in asked}
    if not kept:
        some = f"; its first question is {next(iter(scores))!r}" if scores else ""
        raise InputError(
            f"the run ranks nothing for these questions{some}",
            where=str(path),
            fix=f"check that its question ids match those of {collection.name}",
        )
    ranked = {document for found in kept.values() for document in found}
    unknown = len(ranked - collection.ids)
    if unknown == len(ranked):
        raise InputError(
            f"no document of the run is in {collection.name}; one of its documents is {min(ranked)!r}",
            where=str(path),
            fix="check that it uses the ids of these documents",
        )
    deepest = max(map(len, kept.values()))
    told = (
        (len(scores) - len(kept), "questions of the run are not in the collection; they are ignored"),
        (len((asked & collection.qrels.keys()) - kept.keys()), "questions are missing in the run; they count as 0"),
        (unknown, "documents of the run are not in the collection; they count as not relevant"),
    )
    notes = [f"{count} {words}" for count, words in told if count]
    if deepest > top:
        notes.append(f"the run ranks up to {deepest} documents; only the first {top} count, as for the lines")
    return TrecRun(
        name=f"run:{path.name.removesuffix('.gz').rpartition('.')[0] or path.name}",
        hits={question: _hits(question, found, top) for question, found in kept.items()},
        source=file_reference(path, TREC_RUN),
        notes=tuple(notes),
    )


def _scores(path: Path) -> Scores:
    scores: Scores = {}
    for hit in read_trec_run(path):
        found = scores.setdefault(hit.question, {})
        if hit.document in found:
            raise InputError(
                f"the run ranks {hit.document!r} twice for question {hit.question!r}",
                where=str(path),
                fix="keep only the best passage of each document: one line per document",
            )
        found[hit.document] = hit.score
    return scores


def _hits(question: str, found: dict[str, float], top: int) -> list[Hit]:
    """In the order in which trec_eval reads a run: by score, not by the ranks that are written there."""
    hits = [Hit(question=question, document=document, rank=0, score=score) for document, score in found.items()]
    return in_trec_order(hits)[:top]


MEASURES = ("nDCG@10", "R@1", "R@10", "RR")
_MAX_VALUES = 40
_NAMED, _MAX_NAMED = "unanswerable_questions", 5
_UNMEASURED = {
    "unanswerable": ("question", "without a relevant document among those ranked, counted as 0"),
    "without_relevant": ("question", "without a relevant document, counted as 0"),
    "unasked": ("judged question", "left out: not asked by this benchmark"),
}


def rank_line(
    collection: TestCollection,
    indexes: IndexSet,
    line: str,
    target: Path,
    *,
    top: int = 100,
    measures: Sequence[str] = MEASURES,
    documents: Collection[str] | None = None,
    seed: int = 0,
    models: UsedModels | None = None,
    encoders: UsedModels | None = None,
    settings: dict[str, object] | None = None,
    command: Sequence[str] = (),
) -> Artefact:
    """Rank the documents for every question that names some, measure the rankings, and write their folder.

    `models` are those that the line asks, `encoders` the endpoints behind its encoders.
    """
    check_target(target, RANKINGS)
    asked, missing = _asked(collection, documents)
    retriever = Retriever(indexes, line, model=models)
    searched = retriever.run([(question.id, question.full_text) for question in asked], top, documents)
    retriever.notes += target_notes(retriever, searched, collection)
    made = Manifest(
        kind=RANKINGS,
        title=retriever.line,
        command=list(command),
        inputs=collection.inputs,
        settings={**retriever.describe(), "top": top, **(settings or {}), **line_facts(models)},
        models=asked_models(retriever, models, encoders),
        prompts=retriever.prompts,
        cost=models.cost if models else Cost(),
    )
    return _write(collection, target, asked, missing, searched, made, measures=measures, documents=documents, seed=seed)


def measure_run(
    collection: TestCollection,
    run: TrecRun,
    target: Path,
    *,
    top: int = 100,
    measures: Sequence[str] = MEASURES,
    seed: int = 0,
    settings: dict[str, object] | None = None,
    command: Sequence[str] = (),
) -> Artefact:
    """Measure what other software ranked, and write its folder as if a line had ranked it."""
    check_target(target, RANKINGS)
    asked, missing = _asked(collection, None)
    searched = SearchResult(
        [SearchQuery(id=question.id, text=question.full_text) for question in asked],
        [run.hits.get(question.id, []) for question in asked],
    )
    told = {"line": run.name, "top": top, **({"notes": list(run.notes)} if run.notes else {}), **(settings or {})}
    made = Manifest(
        kind=RANKINGS, title=run.name, command=list(command), inputs=[*collection.inputs, run.source], settings=told
    )
    return _write(collection, target, asked, missing, searched, made, measures=measures, documents=None, seed=seed)


def _write(
    collection: TestCollection,
    target: Path,
    asked: Sequence[Question],
    missing: Sequence[str],
    searched: SearchResult,
    made: Manifest,
    *,
    measures: Sequence[str],
    documents: Collection[str] | None,
    seed: int,
) -> Artefact:
    """Measure rankings and write their folder; `made` says how they came about, and is completed here."""
    parsed = [Measure.parse(text) for text in measures]
    failed = searched.failures
    hits = [hit for row in searched.hits for hit in in_trec_order(row)]
    came = [question for question in asked if question.id not in failed]
    qrels = {question.id: collection.qrels[question.id] for question in came if question.id in collection.qrels}
    result = evaluate(hits, qrels, parsed)
    names = {hit.question for hit in hits} | {hit.document for hit in hits}
    spaced = sorted(name for name in names if len(name.split()) != 1)
    with create(target, replace_kind=RANKINGS) as draft:
        write_jsonl(draft.path / "questions.jsonl", asked)
        _write_hits(draft.path, searched, hits, as_trec=not spaced)
        if qrels:
            _write_measures(draft.path, came, result, list(map(str, parsed)), seed)
        draft.finish(
            replace(
                made,
                settings={
                    **made.settings,
                    **_limits(collection, qrels, missing, documents),
                    **({"no_trec_run": f"ids with spaces, such as {spaced[0]!r}"} if spaced else {}),
                },
                seeds={"bootstrap": seed},
                counts=count_outcomes(
                    failed[question.id].kind if question.id in failed else None for question in asked
                ),
                metrics=_metrics(came, result, list(map(str, parsed)), seed) if qrels else {},
            )
        )
    return open_artefact(target, RANKINGS)


def _write_hits(folder: Path, searched: SearchResult, hits: Sequence[Hit], *, as_trec: bool) -> None:
    """The hits as records and as a TREC run, and the queries' traces where stages left any."""
    write_jsonl(folder / "hits.jsonl", hits)
    if as_trec:
        with atomic_write(folder / "run.trec") as stream:
            stream.writelines(f"{row}\n".encode() for row in trec_run_lines(hits, "hoofbeat"))
    if any(query.steps or query.failure for query in searched.queries):
        write_jsonl(folder / "traces.jsonl", searched.queries)


def _limits(
    collection: TestCollection,
    qrels: Mapping[str, Mapping[str, int]],
    missing: Sequence[str],
    documents: Collection[str] | None,
) -> dict[str, object]:
    """What was ranked for, and how many questions no ranking can answer."""
    return {
        "bed": collection.name,
        "unanswerable": len(missing),
        **({_NAMED: list(missing[:_MAX_NAMED])} if missing else {}),
        "without_relevant": sum(not any(grade > 0 for grade in grades.values()) for grades in qrels.values()),
        "unasked": collection.unasked,
        **collection.part,
        **({"documents": len(documents)} if documents is not None else {}),
    }


def target_notes(retriever: Retriever, searched: SearchResult, collection: TestCollection) -> list[str]:
    """For how many questions an agent's searches brought a document that is to be found, before it wrote the query.

    In its own corpus that is told even where it did not happen: it could have. In another corpus a passage counts that
    holds the text of a relevant document, or is part of it.
    """
    notes = []
    wanted = {
        name: {document for document, grade in grades.items() if grade > 0 and document in collection.ids}
        for name, grades in collection.qrels.items()
    }
    judged = [query for query in searched.queries if wanted.get(query.id)]
    agents = dict.fromkeys(stage for stage in every_stage(retriever.tree) if isinstance(stage, AgentWriter))
    for agent in agents if judged else ():
        corpus = agent.word("in")
        count = 0
        for query in judged:
            found = [name for step in query.steps if step.stage == str(agent) for name in step.found]
            count += _brought(retriever, corpus, dict.fromkeys(found), wanted[query.id])
        if not corpus:
            notes.append(
                f"{agent} searches the documents that it is measured on: its searches found a relevant document for "
                f"{count} of {len(judged)} questions before the query was written; in=CORPUS searches another corpus"
            )
        elif count:
            notes.append(
                f"{agent}: for {count} of {len(judged)} questions its searches found the text of a relevant "
                f"document, which {corpus} also holds, before the query was written"
            )
    return notes


def _brought(retriever: Retriever, corpus: str, found: Iterable[str], targets: Collection[str]) -> bool:
    """Whether passages by these ids are of the documents that are to be found, or have their text."""
    if not corpus:
        return any(retriever.indexes.passage(name).document in targets for name in found)
    texts = [caseless(retriever.other(corpus).passage(name).text) for name in found]
    wanted = [caseless(retriever.indexes.document(name).text) for name in targets]
    return any(
        min(len(text), len(target)) >= _SAME_TEXT and (text in target or target in text)
        for text in texts
        for target in wanted
    )


def _endpoints(retriever: Retriever, encoders: UsedModels | None) -> dict[str, Model]:
    """The endpoints behind the encoders that a line names."""
    named = {EncoderSpec.parse(name).name.removeprefix("model:") for name in retriever.encoders}
    return {spec: model for spec, model in (encoders.used if encoders else {}).items() if spec in named}


def asked_models(retriever: Retriever, models: UsedModels | None, encoders: UsedModels | None) -> dict[str, str]:
    """The models that a line asked and those behind its encoders, by their roles."""
    asked = {f"encoder {spec}": model.identity for spec, model in _endpoints(retriever, encoders).items()}
    return asked | {f"line {spec}".strip(): model.identity for spec, model in (models.used if models else {}).items()}


def line_facts(models: UsedModels | None) -> dict[str, object]:
    """The windows and prices of the models that a line asked."""
    return model_facts({f"line {spec}".strip(): model for spec, model in (models.used if models else {}).items()})


def remarks(artefact: Artefact) -> list[str]:
    """What a reader of the measures must know: failures, questions that can't be answered, and what stages noted."""
    counts, settings = artefact.manifest.counts, artefact.manifest.settings
    line = artefact.manifest.title
    told = []
    if counts.failed:
        told.append(
            f"{line}: {counts.failed} of {counts.failed + counts.kept} queries could not be searched; its "
            "measures ignore them (traces.jsonl says why)"
        )
    for name, (noun, words) in _UNMEASURED.items():
        if count := int(str(settings.get(name) or 0)):
            named = settings.get(_NAMED) if name == "unanswerable" else None
            ids = f" ({', '.join(map(str, named))}{', …' * (count > len(named))})" if isinstance(named, list) else ""
            told.append(f"{line}: {count:,} {noun}{'s' * (count != 1)} {words}{ids}")
    if "no_trec_run" in settings:
        told.append(f"{line}: no run.trec was written: {settings['no_trec_run']}")
    return told + stage_notes(artefact)


def stage_notes(artefact: Artefact) -> list[str]:
    """What the stages of a line noted."""
    notes = artefact.manifest.settings.get("notes", ())
    return [str(note) for note in notes] if isinstance(notes, list) else []


def read_result(artefact: Artefact) -> SearchResult:
    """The hits of a rankings folder with the queries that led to them."""
    hits: dict[str, list[Hit]] = {}
    for hit in read_jsonl(artefact.file("hits.jsonl"), Hit):
        hits.setdefault(hit.question, []).append(hit)
    traced = (
        list(read_jsonl(artefact.file("traces.jsonl"), SearchQuery))
        if artefact.has("traces.jsonl")
        else [
            SearchQuery(id=question.id, text=question.full_text)
            for question in read_jsonl(artefact.file("questions.jsonl"), Question)
        ]
    )
    return SearchResult(traced, [hits.get(query.id, []) for query in traced])


def _asked(collection: TestCollection, documents: Collection[str] | None) -> tuple[list[Question], list[str]]:
    """The questions to rank for, and those whose documents are not among those that are ranked."""
    if not collection.qrels and all(not question.documents for question in collection.questions):
        return list(collection.questions), []
    asked = [question for question in collection.questions if question.id in collection.qrels]
    if not asked:
        raise InputError(
            "no question of this benchmark names the documents that answer it, so retrieval can't be measured",
            where=collection.name,
            fix="use a benchmark with qrels",
        )
    here = collection.ids if documents is None else set(documents)
    missing = [
        question.id
        for question in asked
        if any(grade > 0 for grade in collection.qrels[question.id].values())
        and not any(grade > 0 and name in here for name, grade in collection.qrels[question.id].items())
    ]
    if len(missing) == len(asked):
        raise InputError(
            "this corpus holds none of the documents that answer the benchmark's questions",
            where=collection.name,
            fix="name the corpus the benchmark was made from (--corpus), and check that --where keeps enough documents",
        )
    return asked, missing


def _metrics(questions: Sequence[Question], result: Evaluation, names: Sequence[str], seed: int) -> dict[str, object]:
    metrics: dict[str, object] = {}
    measured = [question for question in questions if question.id in result.per_question]
    labels = cluster_labels([question.id for question in measured], clusters_of(measured))
    for name in names:
        values = [result.per_question[question.id][name] for question in measured]
        interval = bootstrap_mean(values, clusters=labels, seed=seed)
        metrics[name] = {
            "value": result.means[name],
            "low": interval.low,
            "high": interval.high,
            "n": len(values),
            "clusters": len(set(labels)) if labels else len(values),
            "interval": interval.by,
        }
    return metrics


def _write_measures(
    folder: Path, questions: Sequence[Question], result: Evaluation, names: Sequence[str], seed: int
) -> None:
    """Every question's measures, and their means by facet for facets with a readable number of values."""
    measured = [question for question in questions if question.id in result.per_question]
    rows = [(question.id, name, result.per_question[question.id][name]) for question in measured for name in names]
    write_tsv(folder / "queries.tsv", ("query", "measure", "value"), rows)
    facets = {question.id: question.facets for question in measured}
    kinds = sorted({facet for each in facets.values() for facet in each})
    table: list[tuple[object, ...]] = []
    for facet in kinds:
        for name in names:
            values = {question.id: result.per_question[question.id][name] for question in measured}
            groups = by_facet(values, facets, facet, clusters=clusters_of(measured), seed=seed).groups
            if 2 <= len(groups) <= _MAX_VALUES:
                table += [
                    (facet, group.value, name, group.n, group.mean, group.interval.low, group.interval.high)
                    for group in groups
                ]
    if table:
        write_tsv(folder / "facets.tsv", ("facet", "value", "measure", "n", "mean", "low", "high"), table)
