"""Rankings folders: one retriever line over a test bed, measured, with everything that explains it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from hoofbeat.answering.run_folder import count_outcomes
from hoofbeat.cli.bed import Bed, content_of, holds_passages
from hoofbeat.cli.console import Screen
from hoofbeat.cli.other_runs import OtherRun
from hoofbeat.corpus import Corpus
from hoofbeat.errors import InputError
from hoofbeat.findings.breakdown import by_facet
from hoofbeat.findings.clusters import cluster_labels, clusters_of
from hoofbeat.findings.intervals import bootstrap_mean
from hoofbeat.findings.ranking import RANKINGS, Evaluation, Measure, evaluate
from hoofbeat.findings.trec import in_trec_order, trec_run_lines
from hoofbeat.models import Model, load_encoder
from hoofbeat.models.vectors import cached_encoder, vectors_folder
from hoofbeat.progress import Progress
from hoofbeat.records import Document, Hit, Question
from hoofbeat.retrieval import IndexSet, Retriever, SearchResult
from hoofbeat.retrieval.chunking import DEFAULT_CHUNKING, Chunking
from hoofbeat.retrieval.index.index_set import index_folder
from hoofbeat.retrieval.stage_roles import SearchQuery
from hoofbeat.store import Artefact, Manifest, check_target, create, open_artefact
from hoofbeat.store.files import atomic_write
from hoofbeat.store.manifest import Cost
from hoofbeat.store.tables import write_jsonl, write_tsv

__all__ = [
    "MEASURES",
    "Models",
    "asked_models",
    "index_bed",
    "index_corpus",
    "line_cost",
    "measure_run",
    "rank_bed",
    "say_notes",
    "say_what_is_odd",
    "show_measures",
]

MEASURES = ("nDCG@10", "R@1", "R@10", "RR")
_MOST_VALUES = 40


class Models:
    """Language models by name, loaded when a line first asks for one; remembers which were asked."""

    def __init__(self, load: Callable[[str], Model]) -> None:
        self._load = load
        self.used: dict[str, Model] = {}

    def __call__(self, spec: str) -> Model:
        """The model of that name; an empty name is the command's."""
        if spec not in self.used:
            self.used[spec] = self._load(spec)
        return self.used[spec]

    @property
    def cost(self) -> Cost:
        """What all of them cost together."""
        return sum((model.cost for model in dict.fromkeys(self.used.values())), start=Cost())


def index_corpus(corpus: Corpus, progress: Progress, *, models: Callable[[str], Model] | None = None) -> IndexSet:
    """The indexes over a corpus, kept in the user's cache."""
    return _indexes(corpus, content_of(corpus), progress, models, passages=holds_passages(corpus))


def index_bed(bed: Bed, progress: Progress, *, models: Callable[[str], Model] | None = None) -> IndexSet:
    """The indexes over a test bed's documents, kept in the user's cache."""
    return _indexes(bed.documents, bed.content, progress, models, passages=bed.passages)


def rank_bed(
    bed: Bed,
    indexes: IndexSet,
    line: str,
    target: Path,
    *,
    top: int = 100,
    measures: Sequence[str] = MEASURES,
    documents: Collection[str] | None = None,
    seed: int = 0,
    models: Models | None = None,
    encoders: Models | None = None,
    settings: dict[str, object] | None = None,
    command: Sequence[str] = (),
) -> Artefact:
    """Rank the documents for every question that names some, measure the rankings, and write their folder.

    `models` are those that the line asks, `encoders` the endpoints behind its encoders.
    """
    check_target(target, RANKINGS)
    asked, missing = _asked(bed, documents)
    retriever = Retriever(indexes, line, model=models)
    searched = retriever.run([(question.id, question.full_text) for question in asked], top, documents)
    made = Manifest(
        kind=RANKINGS,
        title=retriever.line,
        command=list(command),
        inputs=bed.inputs,
        settings={**retriever.describe(), "top": top, **(settings or {})},
        models=asked_models(retriever, models, encoders),
        prompts=retriever.prompts,
        cost=line_cost(retriever, models, encoders),
    )
    return _write(bed, target, asked, missing, searched, made, measures=measures, documents=documents, seed=seed)


def measure_run(
    bed: Bed,
    run: OtherRun,
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
    asked, missing = _asked(bed, None)
    searched = SearchResult(
        [SearchQuery(id=question.id, text=question.full_text) for question in asked],
        [run.hits.get(question.id, []) for question in asked],
    )
    told = {"line": run.name, "top": top, **({"notes": list(run.notes)} if run.notes else {}), **(settings or {})}
    made = Manifest(
        kind=RANKINGS, title=run.name, command=list(command), inputs=[*bed.inputs, run.source], settings=told
    )
    return _write(bed, target, asked, missing, searched, made, measures=measures, documents=None, seed=seed)


def _write(
    bed: Bed,
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
    qrels = {question.id: bed.qrels[question.id] for question in came if question.id in bed.qrels}
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
                    **_limits(bed, qrels, missing, documents),
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
    bed: Bed,
    qrels: Mapping[str, Mapping[str, int]],
    missing: Sequence[str],
    documents: Collection[str] | None,
) -> dict[str, object]:
    """What was ranked for, and how many questions no ranking can answer."""
    return {
        "bed": bed.name,
        "unanswerable": len(missing),
        "without_relevant": sum(not any(grade > 0 for grade in grades.values()) for grades in qrels.values()),
        "unasked": bed.unasked,
        **({"documents": len(documents)} if documents is not None else {}),
    }


def _endpoints(retriever: Retriever, encoders: Models | None) -> dict[str, Model]:
    """The endpoints behind the encoders that a line names."""
    named = {name.removeprefix("model:") for name in retriever.encoders}
    return {spec: model for spec, model in (encoders.used if encoders else {}).items() if spec in named}


def asked_models(retriever: Retriever, models: Models | None, encoders: Models | None) -> dict[str, str]:
    """The models that a line asked and those behind its encoders, by their roles."""
    asked = {f"encoder {spec}": model.identity for spec, model in _endpoints(retriever, encoders).items()}
    return asked | {f"line {spec}".strip(): model.identity for spec, model in (models.used if models else {}).items()}


def line_cost(retriever: Retriever, models: Models | None, encoders: Models | None) -> Cost:
    """What a line cost, with the endpoints behind its encoders."""
    behind = encoders.cost if encoders and _endpoints(retriever, encoders) else Cost()
    return (models.cost if models else Cost()) + behind


def show_measures(screen: Screen, artefacts: Sequence[Artefact]) -> None:
    """A table of rankings, a row each; the first measure with its 95% interval, all others' are in the manifest."""
    names = list(artefacts[0].manifest.metrics)
    rows = []
    for artefact in artefacts:
        cells = [str(artefact.manifest.settings["line"])]
        for place, name in enumerate(names):
            metric = artefact.manifest.metrics.get(name)
            if not isinstance(metric, dict):
                cells.append("none")
                continue
            interval = f" [{metric['low']:.2f}, {metric['high']:.2f}]" if place == 0 else ""
            cells.append(f"{metric['value']:.3f}{interval}")
        rows.append(cells)
    screen.table(["retriever", *names], rows)


def say_what_is_odd(screen: Screen, artefact: Artefact) -> None:
    """What a reader of the measures must know: failures, questions that can't be answered, and what stages noted."""
    counts, settings = artefact.manifest.counts, artefact.manifest.settings
    line = artefact.manifest.title
    if counts.failed:
        screen.say(
            f"{line}: {counts.failed} of {counts.failed + counts.kept} queries could not be searched; they are left "
            "out of its measures (traces.jsonl says why)"
        )
    told = {
        "unanswerable": "questions have no relevant document among those ranked; they count 0",
        "without_relevant": "questions have no relevant document at all; they count 0",
        "unasked": "judged questions are not among the questions; they are left out",
    }
    for name, words in told.items():
        if settings.get(name):
            screen.say(f"{line}: {settings[name]} {words}")
    if "no_trec_run" in settings:
        screen.say(f"{line}: no run.trec was written: {settings['no_trec_run']}")
    say_notes(screen, artefact)


def say_notes(screen: Screen, artefact: Artefact) -> None:
    """What the stages of a line noted."""
    notes = artefact.manifest.settings.get("notes", ())
    for note in notes if isinstance(notes, list) else ():
        screen.say(str(note))


def explain(screen: Screen, searched: SearchResult, indexes: IndexSet, count: int) -> None:
    """Show for each query what was written and which stage brought each of the first hits."""
    for query, hits in zip(searched.queries, searched.hits, strict=True):
        screen.title(f"{query.id}: {' '.join(query.text.split())[:160]}")
        for step in query.steps:
            screen.say(f"  {step.stage} {step.what}: {' '.join(step.text.split())[:300]}")
        if query.failure is not None:
            screen.say(f"  failed: {query.failure.kind}: {query.failure.message}")
        for hit in hits[:count]:
            ways = "; ".join(f"{stage}: rank {rank}, {score:.4f}" for stage, (rank, score) in hit.via.items())
            ways = ways or f"{hit.score:.4f}"
            screen.say(f"  {hit.rank}. {hit.document}  ({ways})")
            if hit.passage:
                passage = indexes.passage(hit.passage)
                screen.say(f"     {passage.heading}: {' '.join(passage.text.split())[:200]}")


def _indexes(
    documents: Iterable[Document],
    content: str,
    progress: Progress,
    models: Callable[[str], Model] | None,
    *,
    passages: bool,
) -> IndexSet:
    return IndexSet(
        documents,
        encoder=lambda spec: cached_encoder(load_encoder(spec, model=models), vectors_folder()),
        progress=progress,
        folder=index_folder(),
        content=content,
        auto=Chunking("whole") if passages else DEFAULT_CHUNKING,
    )


def _asked(bed: Bed, documents: Collection[str] | None) -> tuple[list[Question], list[str]]:
    """The questions to rank for, and those whose documents are not among those that are ranked."""
    if not bed.qrels and all(not question.documents for question in bed.questions):
        return list(bed.questions), []
    asked = [question for question in bed.questions if question.id in bed.qrels]
    if not asked:
        raise InputError(
            "no question of this benchmark names the documents that answer it, so nothing can be measured",
            where=bed.name,
            fix="use a benchmark with qrels",
        )
    here = bed.ids if documents is None else set(documents)
    missing = [
        question.id
        for question in asked
        if any(grade > 0 for grade in bed.qrels[question.id].values())
        and not any(grade > 0 and name in here for name, grade in bed.qrels[question.id].items())
    ]
    if len(missing) == len(asked):
        raise InputError(
            "this corpus holds none of the documents that answer the benchmark's questions",
            where=bed.name,
            fix="name the corpus the benchmark was made from: --corpus; and see what --where leaves",
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
            if 2 <= len(groups) <= _MOST_VALUES:
                table += [
                    (facet, group.value, name, group.n, group.mean, group.interval.low, group.interval.high)
                    for group in groups
                ]
    if table:
        write_tsv(folder / "facets.tsv", ("facet", "value", "measure", "n", "mean", "low", "high"), table)
