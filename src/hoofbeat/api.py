"""Every verb of the command as a Python function: the same stages, options and bytes.

Functions take paths or the objects that other functions returned, and write one folder each. Those that call models
take `ledger`, `config` and `budget` as the command does, and with `estimate=True` return what they would spend instead
of spending it. Notes about a result are Python warnings. Each function loads what it needs
when it is called.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

from hoofbeat.calls import command_words, telling, verb, warn
from hoofbeat.folders import CheckFolder, LeakageFolder, PathLike, RankingsFolder, ReportFolder, folder_path, folders_in
from hoofbeat.progress import Progress, default_progress
from hoofbeat.store.artefact import ArtefactFolder

if TYPE_CHECKING:
    import polars

    from hoofbeat.answering import Run
    from hoofbeat.ask.ask_records import AskResult
    from hoofbeat.audit import Audit, AuditPlan
    from hoofbeat.audit.economy.economy_audit import Economy
    from hoofbeat.benchmarks import Benchmark
    from hoofbeat.corpus import Corpus
    from hoofbeat.judging import JudgmentFolder
    from hoofbeat.models import Estimate, Model
    from hoofbeat.models.model_loading import Session, UsedModels
    from hoofbeat.records import Question
    from hoofbeat.registry import Plugin
    from hoofbeat.retrieval.rankings.test_collection import TestCollection
    from hoofbeat.review.new_study import StudyCreation
    from hoofbeat.store import InputRef

__all__ = [
    "answer", "apply_reviews", "ask_corpora", "audit_answers", "audit_sources", "build", "check", "check_leakage",
    "compare", "create_study", "export", "export_exam", "export_labels", "filter_corpus", "find_evidence",
    "import_benchmark", "import_corpus", "import_predictions", "judge", "leaderboard", "load_plugin", "report",
    "retrieve", "run_paper", "verify",
]  # fmt: skip

Names = str | Sequence[str]
"""One name or several."""

Paths = PathLike | Sequence[PathLike]
"""One file or folder, or several."""

FieldNames = str | Mapping[str, str | Sequence[str]]
"""Which field holds what: `id=pmcid,text=body`, or a dictionary."""


@verb
def import_corpus(
    paths: Paths,
    output: PathLike = "corpus",
    *,
    facets: Mapping[str, str] | None = None,
    facets_from: PathLike | None = None,
    mapping: FieldNames | None = None,
    keep_hidden: bool = False,
    limit: int | None = None,
    workers: int | None = None,
    title: str = "",
    progress: Progress | None = None,
) -> Corpus:
    """Read files and folders of documents into a corpus.

    Every document gets the `facets`; `facets_from` is a table that gives them per file: a column `file` and one for
    each facet. A warning lists files that no row names. `mapping` names the fields of JSONL and CSV files
    (`id=pmcid,text=body`). A file that can't be read does not stop the import: the table `rejected` lists it with the
    reason. Text that a person can't see is left out unless `keep_hidden`; the table `hidden` lists it. With
    `limit`, reading ends after that many documents.
    """
    from hoofbeat import corpus
    from hoofbeat.corpus.file_facets import file_facets_note

    made = corpus.import_corpus(
        _paths(paths),
        folder_path(output),
        facets=facets,
        facets_from=_path(facets_from),
        title=title,
        mapping=_fields(mapping),
        keep_hidden=keep_hidden,
        limit=limit,
        workers=workers,
        command=command_words(),
        progress=progress or default_progress(),
    )
    warn([file_facets_note(made.manifest)])
    return corpus.Corpus(made)


@verb
def filter_corpus(
    corpus: PathLike,
    keep: Names,
    output: PathLike = "filtered",
    *,
    title: str = "",
    progress: Progress | None = None,
) -> Corpus:
    """Keep the documents that pass every filter (`keep="year>=2023"`), as a new corpus with counts per step."""
    from hoofbeat.corpus import Corpus
    from hoofbeat.corpus.filter import parse_filters
    from hoofbeat.corpus.funnel import filter_corpus

    made = filter_corpus(
        Corpus.open(folder_path(corpus)),
        [step for line in _names(keep) for step in parse_filters(line)],
        folder_path(output),
        title=title,
        command=command_words(),
        progress=progress or default_progress(),
    )
    return Corpus(made)


@overload
def build(
    recipe: str | Path, corpus: PathLike, output: PathLike = ..., *, estimate: Literal[False] = ..., **parameters: Any
) -> Benchmark: ...
@overload
def build(
    recipe: str | Path, corpus: PathLike, output: PathLike = ..., *, estimate: Literal[True], **parameters: Any
) -> Estimate: ...
@verb
def build(
    recipe: str | Path,
    corpus: PathLike,
    output: PathLike = "benchmark",
    *,
    model: str = "embedded",
    second: str | None = None,
    committee: Names = (),
    encoder: str = "minilm",
    seed: int = 0,
    limit: int | None = None,
    ledger: PathLike | None = None,
    config: PathLike | None = None,
    budget: str | float | None = None,
    reasoning: int | None = None,
    estimate: bool = False,
    progress: Progress | None = None,
    **parameters: object,
) -> Benchmark | Estimate:
    """Make a benchmark from a corpus by a recipe: its name, or the path of a Python file that defines one.

    `parameters` are those of the recipe (`hoofbeat build RECIPE --help` lists them). `second` is a second model for the
    steps that need another one, `committee` the models that some steps ask in turn. `limit` takes only the first
    documents. The recipe `teaching` takes none of these. An estimate covers the first step that needs calls; a warning
    says what follows it.
    """
    from hoofbeat.benchmarks import Benchmark
    from hoofbeat.corpus import Corpus
    from hoofbeat.models import Estimate
    from hoofbeat.recipes import build_teaching
    from hoofbeat.recipes.build_plan import plan_build
    from hoofbeat.recipes.recipe import find_recipe

    documents = Corpus.open(folder_path(corpus))
    if recipe == "teaching":
        _refuse_for_teaching(limit=limit, second=second, committee=_names(committee), **parameters)
        if estimate:
            return Estimate(max_money=0.0)
        return Benchmark(build_teaching(documents, folder_path(output), command=command_words()))
    with _session(ledger, config, budget, reasoning) as session:
        plan = plan_build(
            find_recipe(str(recipe)),
            documents,
            session,
            model=model,
            second=second,
            committee=_names(committee),
            encoder=encoder,
            seed=seed,
            limit=limit,
            parameters=parameters,
            estimating=estimate,
            progress=progress or default_progress(),
        )
        if estimate:
            found = plan.estimate()
            warn([each for each in (found.headline, found.note) if each])
            return found.estimate
        _warn_if_small("build questions", model)
        return Benchmark(plan.write(folder_path(output), command=command_words()))


@overload
def retrieve(
    target: PathLike,
    lines: Names = ...,
    output: PathLike = ...,
    *,
    model: str = ...,
    corpus: PathLike | None = ...,
    queries: Names = ...,
    runs: Paths = ...,
    split: str = ...,
    edition: str = ...,
    where: Names = ...,
    top: int = ...,
    measures: Names = ...,
    limit: int | None = ...,
    seed: int = ...,
    ledger: PathLike | None = ...,
    config: PathLike | None = ...,
    budget: str | float | None = ...,
    reasoning: int | None = ...,
    estimate: Literal[False] = ...,
    progress: Progress | None = ...,
) -> list[RankingsFolder]: ...
@overload
def retrieve(
    target: PathLike,
    lines: Names = ...,
    output: PathLike = ...,
    *,
    estimate: Literal[True],
    **options: Any,
) -> Estimate: ...
@verb  # type: ignore[misc]  # options of an estimate are those of the work
def retrieve(
    target: PathLike,
    lines: Names = "bm25 + dense",
    output: PathLike = "rankings",
    *,
    model: str = "embedded",
    corpus: PathLike | None = None,
    queries: Names = (),
    runs: Paths = (),
    split: str = "test",
    edition: str = "",
    where: Names = (),
    top: int = 100,
    measures: Names = (),
    limit: int | None = None,
    seed: int = 0,
    ledger: PathLike | None = None,
    config: PathLike | None = None,
    budget: str | float | None = None,
    reasoning: int | None = None,
    estimate: bool = False,
    progress: Progress | None = None,
) -> list[RankingsFolder] | Estimate:
    """Rank documents for the questions of a benchmark with one retriever line or several, and measure the rankings.

    `target` is a benchmark, a corpus to search for `queries`, or a folder in BEIR's or R2MED's layout. With several
    lines (or `runs`, TREC runs of other software), `output` holds one folder for each and a comparison. Questions that
    name no relevant document can't be measured: a warning says so, and with `measures` it is an error.
    """
    from hoofbeat.models.model_loading import UsedModels, late_models
    from hoofbeat.reports.comparison.rankings import compare_rankings
    from hoofbeat.reports.comparison.rankings_page import write_rankings
    from hoofbeat.retrieval.rankings.ranking_plan import plan_rankings, rank, read_lines
    from hoofbeat.retrieval.rankings.rankings_folder import MEASURES, remarks
    from hoofbeat.retrieval.rankings.test_collection import open_collection

    collection = open_collection(
        folder_path(target), corpus=_path(corpus), queries=_names(queries), split=split, edition=edition
    ).first(limit)
    if not queries or measures:
        warn(_unmeasured(collection, asked=bool(measures)))
    plan = plan_rankings(
        collection,
        read_lines(_names(lines)),
        runs=_paths(runs),
        where=_names(where),
        top=top,
        measures=_names(measures) or MEASURES,
        seed=seed,
        edition=edition,
        command=command_words(),
    )
    place, made = folder_path(output), []
    with late_models(model, lambda: _session(ledger, config, budget, reasoning), budget) as load:
        if estimate:
            return plan.estimate(load, progress or default_progress())
        _warn_if_small("rerank or rewrite searches", *(name or model for name in plan.language_models()))
        encoders = UsedModels(load)
        indexes = plan.collection.indexes(progress or default_progress(), models=encoders)
        warn([indexes.trouble])
        for artefact, _ in rank(plan, indexes, place, load=load, encoders=encoders):
            warn(remarks(artefact))
            made.append(RankingsFolder(artefact))
    measured = [each.path for each in made if each.manifest.metrics]
    if len(measured) > 1:
        write_rankings(place / "comparison", compare_rankings(measured, seed=seed), command=command_words())
    return made


@verb
def find_evidence(
    target: PathLike,
    line: str = "bm25 + dense",
    output: PathLike = "evidence",
    *,
    model: str = "embedded",
    corpus: PathLike | None = None,
    queries: Names = (),
    split: str = "test",
    edition: str = "",
    where: Names = (),
    limit: int | None = None,
    ledger: PathLike | None = None,
    config: PathLike | None = None,
    budget: str | float | None = None,
    reasoning: int | None = None,
    progress: Progress | None = None,
) -> ArtefactFolder:
    """Search inside every document separately for evidence on every question, instead of ranking documents.

    `target` is what `retrieve` takes. The table `evidence` has the passages of each document and how they were found.
    """
    from hoofbeat.models.model_loading import UsedModels, late_models
    from hoofbeat.retrieval.rankings.ranking_plan import find_evidence, plan_rankings, read_lines
    from hoofbeat.retrieval.rankings.rankings_folder import stage_notes
    from hoofbeat.retrieval.rankings.test_collection import open_collection

    collection = open_collection(
        folder_path(target), corpus=_path(corpus), queries=_names(queries), split=split, edition=edition
    ).first(limit)
    plan = plan_rankings(collection, read_lines([line]), where=_names(where), measures=(), command=command_words())
    with late_models(model, lambda: _session(ledger, config, budget, reasoning), budget) as load:
        _warn_if_small("rerank or rewrite searches", *(name or model for name in plan.language_models()))
        encoders = UsedModels(load)
        indexes = collection.indexes(progress or default_progress(), models=encoders)
        warn([indexes.trouble])
        made = find_evidence(plan, indexes, folder_path(output), models=UsedModels(load), encoders=encoders)
    warn(stage_notes(made))
    return ArtefactFolder(made)


@overload
def answer(
    benchmark: PathLike,
    output: PathLike = ...,
    *,
    model: Names = ...,
    conditions: Names = ...,
    protocols: Names = ...,
    instruction: str = ...,
    corpus: PathLike | None = ...,
    edition: str = ...,
    limit: int | None = ...,
    samples: int = ...,
    temperature: float = ...,
    seed: int = ...,
    option_seed: int = ...,
    ledger: PathLike | None = ...,
    config: PathLike | None = ...,
    budget: str | float | None = ...,
    reasoning: int | None = ...,
    estimate: Literal[False] = ...,
    progress: Progress | None = ...,
) -> Run: ...
@overload
def answer(
    benchmark: PathLike,
    output: PathLike = ...,
    *,
    estimate: Literal[True],
    **options: Any,
) -> Estimate: ...
@verb  # type: ignore[misc]  # options of an estimate are those of the work
def answer(
    benchmark: PathLike,
    output: PathLike = "run",
    *,
    model: Names = "embedded",
    conditions: Names = "closed",
    protocols: Names = (),
    instruction: str = "best",
    corpus: PathLike | None = None,
    edition: str = "",
    limit: int | None = None,
    samples: int = 1,
    temperature: float = 0.0,
    seed: int = 0,
    option_seed: int = 0,
    ledger: PathLike | None = None,
    config: PathLike | None = None,
    budget: str | float | None = None,
    reasoning: int | None = None,
    estimate: bool = False,
    progress: Progress | None = None,
) -> Run | Estimate:
    """Let one model or several answer a benchmark under one condition or several.

    Conditions are `closed`, `images`, `first 20%`, `oracle`, a retriever line with the number of passages
    (`bm25 + dense @3`), or `agent over bm25 + dense`. Without `protocols`, a question with options is answered by
    letter, any other in free text.
    """
    from hoofbeat.answering import Run
    from hoofbeat.answering.run_plan import plan_run
    from hoofbeat.benchmarks import Benchmark
    from hoofbeat.models import Estimate

    plan = plan_run(
        Benchmark.open(folder_path(benchmark), edition),
        models=_names(model),
        conditions=_names(conditions),
        protocols=_names(protocols),
        instruction=instruction,
        corpus=_path(corpus),
        limit=limit,
        samples=samples,
        temperature=temperature,
        seed=seed,
        option_seed=option_seed,
    )
    shown = progress or default_progress()
    with _session(ledger, config, budget, reasoning) as session:
        if estimate:
            parts = plan.estimate(session, progress=shown)
            return sum((each for _, each in parts), Estimate(max_money=0.0))
        return Run(plan.write(session, folder_path(output), command=command_words(), progress=shown).artefact)


@verb
def import_predictions(
    file: PathLike,
    output: PathLike = "run",
    *,
    benchmark: PathLike | None = None,
    edition: str = "",
    model: str = "given",
    condition: str = "given",
    count_from: int | None = None,
    fields: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Run:
    """Import answers of other software (JSONL, CSV or Parquet) as a run.

    `fields` names fields that are not detected: `{"id": "pmid", "predicted": "choice"}`.
    `model` and `condition` are the names for files without such a field.
    """
    from hoofbeat.answering import Run
    from hoofbeat.answering import prediction_import as predictions
    from hoofbeat.benchmarks import Benchmark

    bench = Benchmark.open(folder_path(benchmark), edition) if benchmark is not None else None
    wanted = predictions.PredictionImport(
        fields=dict(fields or {}),
        model=model,
        condition=condition,
        benchmark=tuple(bench.questions) if bench else None,
        count_from=count_from,
    )
    made = predictions.import_predictions(
        folder_path(file),
        folder_path(output),
        wanted,
        inputs=[bench.artefact.reference()] if bench else [],
        command=command_words(),
        progress=progress or default_progress(),
    )
    warn([predictions.gold_note(made)])
    return Run(made)


@overload
def judge(
    answers: PathLike,
    output: PathLike = ...,
    *,
    judge: Names = ...,
    by: Names = ...,
    conditions: Names = ...,
    probes: Names = ...,
    probe_size: int = ...,
    canary: bool = ...,
    encoder: str = ...,
    idf: bool = ...,
    layer: str = ...,
    baseline: PathLike | None = ...,
    humans: Paths = ...,
    aspect: str = ...,
    annotator: str = ...,
    benchmark: PathLike | None = ...,
    seed: int = ...,
    ledger: PathLike | None = ...,
    config: PathLike | None = ...,
    budget: str | float | None = ...,
    reasoning: int | None = ...,
    estimate: Literal[False] = ...,
    progress: Progress | None = ...,
) -> JudgmentFolder: ...
@overload
def judge(
    answers: PathLike,
    output: PathLike = ...,
    *,
    estimate: Literal[True],
    **options: Any,
) -> Estimate: ...
@verb  # type: ignore[misc]  # options of an estimate are those of the work
def judge(
    answers: PathLike,
    output: PathLike = "judged",
    *,
    judge: Names = "embedded",
    by: Names = (),
    conditions: Names = (),
    probes: Names = (),
    probe_size: int = 50,
    canary: bool = False,
    encoder: str = "minilm",
    idf: bool = False,
    layer: str = "auto",
    baseline: PathLike | None = None,
    humans: Paths = (),
    aspect: str = "equivalence",
    annotator: str = "",
    benchmark: PathLike | None = None,
    seed: int = 0,
    ledger: PathLike | None = None,
    config: PathLike | None = None,
    budget: str | float | None = None,
    reasoning: int | None = None,
    estimate: bool = False,
    progress: Progress | None = None,
) -> JudgmentFolder | Estimate:
    """Judge the answers of a run, or add judgments to a folder of judgments.

    `judge` is the model that judges; with several, the majority decides. `by` are aspects and scorers; the default is
    `choice` for answers that choose an option and `equivalence` for the others. `humans` are files of people's labels.
    `encoder`, `idf`, `layer` and `baseline` are for BERTScore. `benchmark` is a later version of the questions, whose
    right answers are used. With `canary`, a reply counts only if it repeats a code from the prompt. Scorers that need
    no model load none.
    """
    from hoofbeat.judging import JudgmentFolder
    from hoofbeat.judging.judge_plan import plan_judging, vote_notes
    from hoofbeat.judging.query_answers import open_answers
    from hoofbeat.models import Estimate

    folder = open_answers(folder_path(answers))
    with _session(ledger, config, budget, reasoning) as session:
        plan = plan_judging(
            folder,
            session,
            models=_names(judge),
            by=_names(by),
            conditions=_names(conditions),
            probes=_names(probes),
            probe_size=probe_size,
            canary=canary,
            encoder=encoder,
            idf=idf,
            layer=layer,
            baseline=folder_path(baseline) if baseline is not None else None,
            humans=_paths(humans),
            aspect=aspect,
            annotator=annotator,
            benchmark=_path(benchmark),
            seed=seed,
        )
        if estimate:
            return sum(plan.estimates().values(), Estimate())
        warn(plan.notes)
        if plan.job.judges:
            _warn_if_small("judge answers", *_names(judge))
        made = plan.write(folder_path(output), command=command_words(), progress=progress or default_progress())
        warn(vote_notes(made.manifest))
        return JudgmentFolder(made)


@overload
def audit_sources(
    corpus: PathLike,
    questions: PathLike,
    output: PathLike = ...,
    *,
    model: str = ...,
    judge: Names = ...,
    sources: Names = ...,
    by: str = ...,
    pack: str = ...,
    line: str = ...,
    passages: int | None = ...,
    whole_up_to: int | None = ...,
    max_tokens: int | None = ...,
    words: PathLike | None = ...,
    question_ids: Names = ...,
    limit: int | None = ...,
    shard: str | None = ...,
    probe_order: int = ...,
    canary: bool = ...,
    economy: float | None = ...,
    economy_model: str | None = ...,
    economy_check: int | None = ...,
    trial: PathLike | None = ...,
    seed: int = ...,
    ledger: PathLike | None = ...,
    config: PathLike | None = ...,
    budget: str | float | None = ...,
    reasoning: int | None = ...,
    estimate: Literal[False] = ...,
    progress: Progress | None = ...,
) -> Audit: ...
@overload
def audit_sources(
    corpus: PathLike,
    questions: PathLike,
    output: PathLike = ...,
    *,
    estimate: Literal[True],
    **options: Any,
) -> Estimate: ...
@verb  # type: ignore[misc]  # options of an estimate are those of the work
def audit_sources(
    corpus: PathLike,
    questions: PathLike,
    output: PathLike = "audit",
    *,
    model: str = "embedded",
    judge: Names = (),
    sources: Names = (),
    by: str = "document",
    pack: str = "transplant",
    line: str = "hero",
    passages: int | None = None,
    whole_up_to: int | None = None,
    max_tokens: int | None = None,
    words: PathLike | None = None,
    question_ids: Names = (),
    limit: int | None = None,
    shard: str | None = None,
    probe_order: int = 0,
    canary: bool = False,
    economy: float | None = None,
    economy_model: str | None = None,
    economy_check: int | None = None,
    trial: PathLike | None = None,
    seed: int = 0,
    ledger: PathLike | None = None,
    config: PathLike | None = None,
    budget: str | float | None = None,
    reasoning: int | None = None,
    estimate: bool = False,
    progress: Progress | None = None,
) -> Audit | Estimate:
    """Ask every source of a corpus the same questions, one source at a time, and compare the answers.

    `questions` is a benchmark, `teaching`, or `teaching:PACK`. `judge` is the model that compares the answers, if it is
    not the one that answers; with several, the majority decides. `sources` and `question_ids` select some. A source is
    a document; with `by="institution"`, all documents of an institution are one source. `trial` is a trial of the
    judge, which the audit records. `words` is a table of synonyms, added to those of the pack. `economy` saves calls:
    `economy_model` (by default the first judge) groups the answers by position, pairs are judged between positions, and
    the labels are copied to the other pairs. At most this share of the copied labels may be wrong; `economy_check` of
    them are checked. With `canary`, a comparison counts only if it repeats a code from the prompt.
    """
    from hoofbeat.audit.audit_plan import plan_audit
    from hoofbeat.models.model_loading import UsedModels
    from hoofbeat.retrieval.corpus_index import index_corpus

    economies = _EconomyChoice(economy, economy_model, economy_check)
    choices = _AuditChoices(
        _names(question_ids), limit, shard, probe_order, canary, economies, seed, pack, _path(trial),
        (model, *_names(judge)),
    )  # fmt: skip
    shown = progress or default_progress()
    documents, asked, inputs = _audit_inputs(folder_path(corpus), folder_path(questions))
    with _session(ledger, config, budget, reasoning) as session:
        models = _audit_models(session, model, _names(judge))
        in_lines = UsedModels(lambda spec: session.model(spec or model))
        plan = plan_audit(
            documents, asked, lambda each: index_corpus(each, shown, models=in_lines), sources=_names(sources), by=by,
            pack=pack, line=line, passages=passages, whole_up_to=whole_up_to, max_tokens=max_tokens,
            words=_path(words), model=in_lines,
        )  # fmt: skip
        plan = choices.narrowed(plan, session, models)
        if estimate:
            return _estimated(plan, models)
        return _audited(plan, models, in_lines, folder_path(output), inputs, choices, shown)


@overload
def audit_answers(
    file: PathLike, output: PathLike = ..., *, estimate: Literal[False] = ..., **options: Any
) -> Audit: ...
@overload
def audit_answers(file: PathLike, output: PathLike = ..., *, estimate: Literal[True], **options: Any) -> Estimate: ...
@verb  # type: ignore[misc]  # options of an estimate are those of the work
def audit_answers(
    file: PathLike,
    output: PathLike = "audit",
    *,
    fields: FieldNames = "",
    model: str = "embedded",
    judge: Names = (),
    sources: Names = (),
    pack: str = "transplant",
    question_ids: Names = (),
    limit: int | None = None,
    shard: str | None = None,
    probe_order: int = 0,
    canary: bool = False,
    economy: float | None = None,
    economy_model: str | None = None,
    economy_check: int | None = None,
    trial: PathLike | None = None,
    seed: int = 0,
    ledger: PathLike | None = None,
    config: PathLike | None = None,
    budget: str | float | None = None,
    reasoning: int | None = None,
    estimate: bool = False,
    progress: Progress | None = None,
) -> Audit | Estimate:
    """Compare the answers of other software or of people, source by source, from a JSONL, CSV or Parquet file.

    The file has the fields `question`, `source`, `answer` and, if known, `absent`; `fields` gives their names there
    (`"id=focus+qtype,source=site"`). The other options are those of `audit_sources`.
    """
    from hoofbeat.audit.audit_plan import plan_audit_of_answers
    from hoofbeat.models.model_loading import UsedModels
    from hoofbeat.store.artefact import file_reference

    economies = _EconomyChoice(economy, economy_model, economy_check)
    choices = _AuditChoices(
        _names(question_ids), limit, shard, probe_order, canary, economies, seed, pack, _path(trial),
        (model, *_names(judge)),
    )  # fmt: skip
    path = folder_path(file)
    with _session(ledger, config, budget, reasoning) as session:
        models = _audit_models(session, model, _names(judge))
        plan = choices.narrowed(plan_audit_of_answers(path, _fields(fields), pack, _names(sources)), session, models)
        if estimate:
            return _estimated(plan, models)
        inputs, no_line = [file_reference(path, "answers")], UsedModels(lambda spec: session.model(spec or model))
        shown = progress or default_progress()
        return _audited(plan, models, no_line, folder_path(output), inputs, choices, shown)


@overload
def check(
    benchmark: PathLike, output: PathLike = ..., *, estimate: Literal[False] = ..., **options: Any
) -> CheckFolder: ...
@overload
def check(benchmark: PathLike, output: PathLike = ..., *, estimate: Literal[True], **options: Any) -> Estimate: ...
@verb  # type: ignore[misc]  # options of an estimate are those of the work
def check(
    benchmark: PathLike,
    output: PathLike = "check",
    *,
    model: str = "embedded",
    second_model: str | None = None,
    corpus: PathLike | None = None,
    answers: Paths = (),
    left_out: Names = (),
    rules_only: bool = False,
    edition: str = "",
    limit: int | None = None,
    seed: int = 0,
    ledger: PathLike | None = None,
    config: PathLike | None = None,
    budget: str | float | None = None,
    reasoning: int | None = None,
    estimate: bool = False,
    progress: Progress | None = None,
) -> CheckFolder | Estimate:
    """Check a benchmark for leaks, second right answers, giveaways, unanswerable questions and bias.

    `left_out` are parts to skip (`leaks`, `options`, `place`, `answer`, `guess`, `compare`); `rules_only` skips the
    last three, which call a model. `second_model` answers and guesses instead of `model`. `answers` are runs
    and judgments of its questions, for the analysis of items, baselines, calibration and power.
    """
    from hoofbeat.benchmarks import Benchmark
    from hoofbeat.recipes.benchmark_check import CALLS, plan_benchmark_check

    bench = Benchmark.open(folder_path(benchmark), edition)
    with _session(ledger, config, budget, reasoning) as session:
        planned = plan_benchmark_check(
            bench,
            session,
            model=model,
            second=second_model,
            corpus=_path(corpus),
            answered=_paths(answers),
            left_out=(*_names(left_out), *(CALLS if rules_only else ())),
            limit=limit,
            seed=seed,
            estimating=estimate,
            progress=progress or default_progress(),
        )
        if estimate:
            return planned.estimate()
        if planned.models:
            _warn_if_small("check questions", model)
        return CheckFolder(planned.write(folder_path(output), command=command_words())[0])


@overload
def check_leakage(
    benchmark: PathLike,
    output: PathLike = ...,
    *,
    model: Names = ...,
    corpus: PathLike | None = ...,
    runs: Paths = ...,
    judged: Paths = ...,
    cutoffs: Names = ...,
    against: Paths = ...,
    threshold: float = ...,
    characters: int = ...,
    share: float = ...,
    left_out: Names = ...,
    edition: str = ...,
    control_edition: str = ...,
    limit: int | None = ...,
    seed: int = ...,
    ledger: PathLike | None = ...,
    config: PathLike | None = ...,
    budget: str | float | None = ...,
    reasoning: int | None = ...,
    estimate: Literal[False] = ...,
    progress: Progress | None = ...,
) -> LeakageFolder: ...
@overload
def check_leakage(
    benchmark: PathLike,
    output: PathLike = ...,
    *,
    estimate: Literal[True],
    **options: Any,
) -> Estimate: ...
@verb  # type: ignore[misc]  # options of an estimate are those of the work
def check_leakage(
    benchmark: PathLike,
    output: PathLike = "leakage",
    *,
    model: Names = "embedded",
    corpus: PathLike | None = None,
    runs: Paths = (),
    judged: Paths = (),
    cutoffs: Names = (),
    against: Paths = (),
    threshold: float = 0.3,
    characters: int = 600,
    share: float = 0.5,
    left_out: Names = (),
    edition: str = "",
    control_edition: str = "",
    limit: int | None = None,
    seed: int = 0,
    ledger: PathLike | None = None,
    config: PathLike | None = None,
    budget: str | float | None = None,
    reasoning: int | None = None,
    estimate: bool = False,
    progress: Progress | None = None,
) -> LeakageFolder | Estimate:
    """Look for signs that models have seen a benchmark's questions, each with its control and interval.

    `judged` and `runs` are earlier answers, for accuracy by date and the gap between closed and open book; `cutoffs`
    are the ends of models' training data (`"openai:NAME=2024-06"`); `against` are other benchmarks that are
    searched for the questions; `left_out` are parts to skip (`likelihood`, `continuation`, `rationale`, `canary`,
    `near`).
    """
    from hoofbeat.benchmarks import Benchmark
    from hoofbeat.leakage.leakage_check import plan_leakage_check

    shown = progress or default_progress()
    bench = Benchmark.open(folder_path(benchmark), edition)
    with _session(ledger, config, budget, reasoning) as session:
        check = plan_leakage_check(
            bench,
            session,
            models=_names(model),
            corpus=_path(corpus),
            runs=_paths(runs),
            judged=_paths(judged),
            cutoffs=_names(cutoffs),
            against=_paths(against),
            threshold=threshold,
            characters=characters,
            share=share,
            left_out=_names(left_out),
            control_edition=control_edition,
            limit=limit,
            seed=seed,
            progress=shown,
        )
        if estimate:
            return check.estimate()
        return LeakageFolder(check.write(folder_path(output), command=command_words(), progress=shown)[0])


@verb
def compare(
    folders: Paths,
    output: PathLike = "comparison",
    *,
    baseline: str = "",
    systems: Names = (),
    judged: Paths = (),
    condition: str = "",
    seed: int = 0,
    progress: Progress | None = None,
) -> ReportFolder:
    """Compare rankings, or answers, of the same questions: intervals, paired tests, and changed verdicts.

    `systems` selects among answers; `judged` and `condition` are judgments of answers made with the rankings.
    """
    from hoofbeat.reports.comparison import compare_folders

    compared = compare_folders(
        _paths(folders),
        baseline=baseline,
        systems=_names(systems),
        judged=_paths(judged),
        condition=condition,
        seed=seed,
        progress=progress or default_progress(),
    )
    return ReportFolder(compared.write(folder_path(output), command=command_words()))


@verb
def report(
    folders: Paths,
    output: PathLike = "report",
    *,
    title: str = "",
    published: Names = (),
    errors: Paths = (),
    formats: Names = (),
    draws: int = 8,
    size: int = 500,
    progress: Progress | None = None,
) -> ReportFolder:
    """Write one self-contained report on folders: HTML, Markdown, CSV and LaTeX.

    A folder of folders (the demo, a grid) means the folders in it. `published` are papers whose figures are shown
    beside yours; `errors` are people's labels of wrong answers.
    """
    from hoofbeat.reports.report_build import build_report
    from hoofbeat.reports.report_writer import FORMATS
    from hoofbeat.reports.section import ReportOptions, report_kinds

    made = build_report(
        folders_in(_paths(folders), report_kinds()),
        folder_path(output),
        title=title,
        options=ReportOptions(published=_names(published), errors=tuple(_paths(errors)), draws=draws, size=size),
        formats=_names(formats) or FORMATS,
        command=command_words(),
        progress=progress or default_progress(),
    )
    return ReportFolder(made)


@overload
def run_paper(
    paper: str,
    benchmark: Paths,
    output: PathLike = ...,
    *,
    estimate: Literal[False] = ...,
    **options: Any,
) -> ReportFolder: ...
@overload
def run_paper(
    paper: str,
    benchmark: Paths,
    output: PathLike = ...,
    *,
    estimate: Literal[True],
    **options: Any,
) -> Estimate: ...
@verb  # type: ignore[misc]  # options of an estimate are those of the work
def run_paper(
    paper: str,
    benchmark: Paths,
    output: PathLike = "paper",
    *,
    model: Names = "embedded",
    judge: str = "",
    retrievers: Names = (),
    corpus: PathLike | None = None,
    encoder: str = "minilm",
    limit: int | None = None,
    seed: int = 0,
    ledger: PathLike | None = None,
    config: PathLike | None = None,
    budget: str | float | None = None,
    reasoning: int | None = None,
    estimate: bool = False,
    progress: Progress | None = None,
) -> ReportFolder | Estimate:
    """Run a paper's protocol on a benchmark (R2MED: on several), and write one folder with one report.

    `paper` is the name of a preset (`hoofbeat run --help` lists them). Warnings and the report say where
    the run differs from the paper. `judge` is by default the first model; `retrievers` replace the preset's lines;
    `encoder` is for BERTScore.
    """
    from hoofbeat.models import Estimate
    from hoofbeat.presets.paper_run import plan_paper

    shown = progress or default_progress()
    with _session(ledger, config, budget, reasoning) as session:
        planned = plan_paper(
            paper,
            _paths(benchmark),
            session,
            models=_names(model),
            judge=judge,
            retrievers=_names(retrievers),
            corpus=_path(corpus),
            encoder=encoder,
            limit=limit,
            seed=seed,
        )
        if estimate:
            return sum(planned.estimates(progress=shown).values(), Estimate(max_money=0.0))
        _warn_if_small("reproduce a paper", *_names(model))
        warn([f"{each.what}: in the paper {each.paper}; here {each.here}" for each in planned.differences])
        return ReportFolder(planned.write(folder_path(output), command=command_words(), progress=shown))


@verb
def ask_corpora(
    corpora: Paths,
    text: str,
    *,
    model: str = "",
    line: str = "bm25 + dense",
    by: str = "auto",
    k: int = 5,
    pack: str = "guidelines",
    ledger: PathLike | None = None,
    config: PathLike | None = None,
    budget: str | float | None = None,
    reasoning: int | None = None,
    progress: Progress | None = None,
) -> AskResult:
    """Search corpora for reports like the case in `text`, and with a `model` answer it from them, with citations.

    `by` says how to distinguish sources: a facet, `document`, `none`, or `auto`.
    """
    from hoofbeat.ask.ask_flow import prepare_ask, run_ask
    from hoofbeat.ask.ask_records import AskRequest

    request, shelves = prepare_ask(
        AskRequest(text=text, line=line, model=model, by=by, k=k, pack=pack), _paths(corpora)
    )
    shown = progress or default_progress()
    if not model:
        return run_ask(request, shelves, progress=shown)
    with _session(ledger, config, budget, reasoning) as session:
        return run_ask(request, shelves, model=session.model(model), progress=shown)


@verb
def import_benchmark(
    source: PathLike,
    output: PathLike = "benchmark",
    *,
    form: str = "",
    mapping: FieldNames = "",
    split: str = "",
    count_from: int | None = None,
    seed: int = 0,
    title: str = "",
    progress: Progress | None = None,
) -> Benchmark:
    """Import published questions, a file or folder in a known format, as a benchmark.

    `form` names the format if it is not detected (`hoofbeat benchmark import --help` lists them), `mapping` the fields
    of a table, `count_from` the number of the first option if answers are numbers. A warning names the fields
    that were not used. The table `rejected` lists rows that can't be read.
    """
    from hoofbeat.benchmarks import Benchmark
    from hoofbeat.benchmarks.benchmark_import import import_benchmark, import_notes

    made = import_benchmark(
        folder_path(source),
        folder_path(output),
        form=form,
        mapping=_fields(mapping),
        split=split,
        count_from=count_from,
        seed=seed,
        title=title,
        command=command_words(),
        progress=progress or default_progress(),
    )
    warn(import_notes(made))
    return Benchmark(made)


@verb
def export(
    folder: PathLike,
    output: PathLike = "export",
    *,
    form: str,
    corpus: PathLike | None = None,
    edition: str = "",
    questions: PathLike | None = None,
    progress: Progress | None = None,
) -> ArtefactFolder:
    """Write a benchmark or a corpus in a format that other software reads (`form="beir"`).

    For a benchmark, `corpus` holds its documents, if they are not beside it. For a corpus, `questions` is a benchmark
    to export with it.
    """
    from hoofbeat.benchmarks import Benchmark
    from hoofbeat.benchmarks.export import corpus_of_export, export_benchmark
    from hoofbeat.corpus import Corpus
    from hoofbeat.corpus.corpus import export_corpus
    from hoofbeat.store import open_artefact

    path = folder_path(folder)
    artefact = open_artefact(path, ("benchmark", "corpus"))
    if artefact.manifest.kind == "benchmark":
        bench = Benchmark(artefact, edition)
        documents = corpus_of_export(bench, form, _path(corpus))
        made = export_benchmark(bench, folder_path(output), form, corpus=documents, command=command_words())
        return ArtefactFolder(made)
    asked = Benchmark.open(folder_path(questions)) if questions is not None else None
    made = export_corpus(
        Corpus(artefact),
        folder_path(output),
        form,
        questions=asked.questions if asked else (),
        inputs=[asked.artefact.reference()] if asked else (),
        command=command_words(),
        progress=progress or default_progress(),
    )
    return ArtefactFolder(made)


@verb
def create_study(folder: PathLike, *, database: str = "review.db", **options: Any) -> StudyCreation:
    """Let people review a folder: create a study of it in the review store, unless it exists.

    The folder is a benchmark with review tasks, an audit, packets, a run or judgments; `options` are those of
    `hoofbeat review` (`form`, `sample`, `per_item`, `overlap`, `assign`, `exam`, ...). `hoofbeat review` without a
    folder serves the pages.
    """
    from hoofbeat.review.new_study import StudyOptions, create_study, plan_study
    from hoofbeat.review.review_store import ReviewStore

    wanted = StudyOptions(**options)
    study, items = plan_study(folder_path(folder), wanted)
    with ReviewStore.open(database) as store:
        return create_study(store, study, items, wanted.plan, assign=wanted.assign)


@verb
def export_labels(
    studies: Names,
    output: PathLike = "labels.jsonl",
    *,
    database: str = "review.db",
    each: bool = False,
    blind: bool = False,
) -> list[Path]:
    """Write the labels of studies for `judge`, `audit validate` and `build`; returns the files.

    With `each`: every person's own labels of every round, without settled conflicts. With `blind`: Reviewer 1, 2, …
    instead of names. Several studies of the same folder can go into one file.
    """
    from hoofbeat.review.label_export import export_labels, join_exports, write_export
    from hoofbeat.review.review_store import ReviewStore

    with ReviewStore.open(database) as store:
        exports = [export_labels(store, store.find_study(name), each=each, blind=blind) for name in _names(studies)]
    return write_export(join_exports(exports), folder_path(output))


@verb
def export_exam(study: str, output: PathLike = "exam", *, database: str = "review.db", blind: bool = False) -> Run:
    """Write people's answers in an exam as a run, which can be judged and reported like a model's."""
    from hoofbeat.answering import Run
    from hoofbeat.review.exam_results import write_exam_run
    from hoofbeat.review.review_store import ReviewStore

    with ReviewStore.open(database) as store:
        found = store.find_study(study)
        return Run(write_exam_run(store, found, folder_path(output), blind=blind, command=command_words()))


@verb
def apply_reviews(
    benchmark: PathLike,
    output: PathLike = "reviewed",
    *,
    studies: Names = (),
    labels: PathLike | None = None,
    judged: Paths = (),
    corpus: PathLike | None = None,
    database: str = "review.db",
) -> Benchmark:
    """Apply reviewers' decisions to a benchmark: writes its next version, and a list of changes.

    The decisions are those of `studies`, or of a file of `labels`; `judged` are judgments of relevance, which grade
    documents that support an answer. `corpus` holds the documents, if they are not beside the benchmark: words from a
    source are added from it.
    """
    from hoofbeat.benchmarks import Benchmark
    from hoofbeat.review.apply_reviews import NO_ORIGIN, apply_labels, corpus_source, labels_to_apply, write_applied

    old = Benchmark.open(folder_path(benchmark)).artefact
    said, origin = labels_to_apply(
        old,
        database=database,
        studies=_names(studies),
        file=_path(labels),
        judged=_paths(judged),
    )
    applied = apply_labels(
        old, said, where=str(labels or ""), source=corpus_source(_path(corpus)), study=origin.study if origin else ""
    )
    warn([*applied.notes, "" if origin else NO_ORIGIN])
    return Benchmark(write_applied(old, applied, said, folder_path(output), command=command_words(), origin=origin))


def _audit_inputs(corpus: Path, questions: Path) -> tuple[Corpus, list[Question], list[InputRef]]:
    """The sources, the questions, and the references to both."""
    from hoofbeat.corpus import Corpus
    from hoofbeat.recipes import named_questions

    documents = Corpus.open(corpus)
    asked, inputs = named_questions(str(questions))
    return documents, asked, [documents.artefact.reference(), *inputs]


class _AuditModels(NamedTuple):
    """The model that answers, and the judges that compare."""

    answers: Model
    compares: tuple[Model, ...]


def _audit_models(session: Session, model: str, judges: tuple[str, ...]) -> _AuditModels:
    answers = session.model(model)
    specs = dict.fromkeys(judges or (model,))
    return _AuditModels(answers, tuple(answers if spec == model else session.model(spec) for spec in specs))


class _EconomyChoice(NamedTuple):
    """Whether pairs are judged between positions only: the risk that is allowed, who groups, how many are checked."""

    risk: float | None
    sorter: str | None
    check: int | None

    def opened(self, session: Session, models: _AuditModels) -> Economy | None:
        from hoofbeat.audit.economy.economy_audit import Economy
        from hoofbeat.errors import UsageError

        if self.risk is not None:
            sorter = session.model(self.sorter) if self.sorter else models.compares[0]
            return Economy(sorter=sorter, risk=self.risk, check=self.check)
        if self.sorter is not None or self.check is not None:
            raise UsageError("economy_model and economy_check have no effect without economy", fix="add economy=0.05")
        return None


class _AuditChoices(NamedTuple):
    """What both verbs of audits take beside their answers: which questions, and how pairs are judged."""

    ids: tuple[str, ...]
    limit: int | None
    shard: str | None
    probe_order: int
    canary: bool
    economy: _EconomyChoice
    seed: int
    pack: str
    trial: Path | None
    specs: tuple[str, ...]

    def narrowed(self, plan: AuditPlan, session: Session, models: _AuditModels) -> AuditPlan:
        from hoofbeat.audit.audit_plan import narrowed_plan

        return narrowed_plan(
            plan,
            ids=self.ids,
            limit=self.limit,
            shard=self.shard,
            probe_order=self.probe_order,
            canary=self.canary,
            economy=self.economy.opened(session, models),
            seed=self.seed,
        )


def _estimated(plan: AuditPlan, models: _AuditModels) -> Estimate:
    from hoofbeat.audit.audit_estimate import estimate_audit

    return estimate_audit(plan, models.answers, models.compares)


def _audited(
    plan: AuditPlan,
    models: _AuditModels,
    in_lines: UsedModels,
    output: Path,
    inputs: list[InputRef],
    choices: _AuditChoices,
    progress: Progress,
) -> Audit:
    """Write the folder of an audit that is planned."""
    from hoofbeat import audit
    from hoofbeat.audit.audit_plan import pack_note, uncompared_note
    from hoofbeat.audit.validation.judge_trial import trial_of, untried_note
    from hoofbeat.prompts.packs import DEFAULT_PACK

    _warn_if_small("compare answers", *choices.specs)
    tried = trial_of(choices.trial, models.compares, plan.pack) if choices.trial is not None else None
    pack = pack_note(plan.pack, plan.questions, plan.sources) if choices.pack == DEFAULT_PACK else ""
    warn([pack if pack.startswith("warning") else ""])
    warn([uncompared_note(plan), "" if tried else untried_note(models.compares, plan.pack, choices.pack, output)])
    made = audit.audit_sources(
        plan,
        models.answers,
        models.compares,
        output,
        inputs=[*inputs, tried[1]] if tried else inputs,
        command=command_words(),
        line_cost=lambda: in_lines.cost,
        trial=tried[0] if tried else None,
        progress=progress,
    )
    return audit.Audit(made)


@verb
def leaderboard(folder: PathLike) -> polars.DataFrame:
    """The accuracy of every model and condition in a run or in judgments, with its 95% interval, as a data frame.

    Best first, each protocol by itself. Answers without a score count as `unscored` and stay in `planned`; `clusters`
    are groups of questions from the same documents, which the interval keeps together.
    """
    from hoofbeat.reports.sections.scores.score_frame import leaderboard_frame
    from hoofbeat.store import open_artefact

    return leaderboard_frame(open_artefact(folder_path(folder), ("run", "judgments")))


@verb
def verify(folders: Paths) -> dict[str, list[str]]:
    """For each folder, the files that are missing, changed or added since it was written.

    An empty list: unchanged. A folder of folders means the folders in it.
    """
    from hoofbeat.store.artefact import folder_problems

    return {str(path): folder_problems(path) for path in folders_in(_paths(folders))}


def load_plugin(path: PathLike) -> Plugin:
    """Load extensions (a stage, aspect, scorer, recipe, section, ...) from a file, for all later calls.

    After you change the file, load it again: what it brought before is replaced.
    """
    from hoofbeat.registry import registry

    return registry.load_file(folder_path(path))


def _unmeasured(collection: TestCollection, *, asked: bool) -> list[str]:
    """A note where no ranking can be measured; an error where someone asked for measures."""
    from hoofbeat.errors import InputError

    if collection.qrels or any(question.documents for question in collection.questions):
        return []
    what = "no question names a relevant document, so the rankings can't be measured"
    if asked:
        fix = 'import the questions with their documents (mapping="...,documents=FIELD"), or leave out measures'
        raise InputError(what, where=collection.name, fix=fix)
    return [what]


def _names(given: Names) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _paths(given: Paths) -> list[Path]:
    several = [given] if isinstance(given, str | os.PathLike | ArtefactFolder) else given
    return [folder_path(each) for each in several]


def _path(given: PathLike | None) -> Path | None:
    return None if given is None else folder_path(given)


def _warn_if_small(task: str, *specs: str) -> None:
    """Warn where a model that is to do this is the default one, which is too small for it."""
    from hoofbeat.models.model_loading import USEFUL, too_small_note

    if note := too_small_note(specs, task):
        warn([f'{note}: "openai:NAME", "http://HOST:PORT/v1#NAME" or "{USEFUL}"'])


def _refuse_for_teaching(**given: object) -> None:
    """Refuse what would have no effect: the questions are written, and all documents of the corpus are used."""
    from hoofbeat.errors import UsageError

    if idle := [name for name, value in given.items() if value]:
        raise UsageError(f"the recipe teaching does not use {', '.join(idle)}", fix=f"leave out {', '.join(idle)}")


def _fields(given: FieldNames | None) -> str:
    """The line of a mapping; `verb` has made it of a dictionary."""
    return given if isinstance(given, str) else ""


def _ledger(given: PathLike | None) -> Path | str | None:
    """A file, or the address of a database as it was given: a path would change it."""
    return given if isinstance(given, str) else _path(given)


def _session(
    ledger: PathLike | None, config: PathLike | None, budget: str | float | None, reasoning: int | None
) -> AbstractContextManager[Session]:
    from hoofbeat.models.model_loading import open_session

    return open_session(
        ledger_path=_ledger(ledger), config_path=_path(config), budget=budget, reasoning=reasoning, tell=telling()
    )
