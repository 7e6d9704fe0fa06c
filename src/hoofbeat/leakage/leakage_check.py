"""A leakage check from opened artefacts to its folder: what is probed, what the models showed, what it adds up to.

`plan_leakage_check` is the whole verb, as the command and the Python face call it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from hoofbeat.answering import Run
from hoofbeat.benchmarks import Benchmark, corpus_beside
from hoofbeat.corpus import Corpus
from hoofbeat.errors import InputError, UsageError
from hoofbeat.facets import facet_value
from hoofbeat.findings.intervals import clusters_of
from hoofbeat.findings.outcomes import Outcome, choice_outcomes, scored_outcomes
from hoofbeat.judging import JudgmentFolder
from hoofbeat.leakage.canaries import (
    Canary,
    FoundCanary,
    canaries_in_file,
    canaries_in_text,
    known_canaries,
    make_canary,
    split_canary,
)
from hoofbeat.leakage.leakage_figures import (
    PROBES,
    CanaryProbe,
    LeakageSummary,
    LikelihoodRow,
    OverlapRow,
    book_gaps,
    likelihood_summaries,
    mean_figure,
    overlap_summaries,
)
from hoofbeat.leakage.leakage_text import LeakageItem, plan_leakage, stem_of
from hoofbeat.leakage.memory_probes import (
    ORIGINAL,
    estimate_leakage,
    likelihood_texts,
    measure_likelihoods,
    probe_canaries,
    probe_overlaps,
)
from hoofbeat.leakage.near_duplicates import THRESHOLD, NearDuplicate, NearSearch, OwnSource
from hoofbeat.leakage.training_cutoffs import (
    Cutoff,
    PublicationDate,
    accuracy_by_date,
    cutoff_of,
    date_counts,
    parse_cutoff,
    position,
    publication,
    publication_period,
)
from hoofbeat.models import Estimate, Model
from hoofbeat.models.model_loading import Session
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import load_prompt
from hoofbeat.records import Document, Failure, Question
from hoofbeat.store import Artefact, Cost, InputRef, Manifest, create, open_artefact
from hoofbeat.store.artefact import count_outcomes
from hoofbeat.store.files import write_bytes
from hoofbeat.store.tables import write_jsonl, write_tsv

PARTS = ("likelihood", *PROBES, "canary", "near")
"""What a check consists of; each part can be left out. Dates and gaps cost nothing and are always told."""

MAIN = "main"
"""How the edition without a name is called where an edition is named."""

_SCANNED = (".jsonl", ".json", ".tsv", ".csv", ".txt", ".md")


class LeakagePlan(Struct, frozen=True, kw_only=True):
    """What a check looks at, before any model is asked."""

    questions: list[Question]
    items: list[LeakageItem]
    edition: str
    dates: dict[str, PublicationDate | None]
    clusters: dict[str, str]
    near: list[NearDuplicate]
    own: list[OwnSource]
    too_short: int
    threshold: float
    found: list[FoundCanary]
    canaries: list[Canary]
    documents: int


class EarlierAnswers(Struct, frozen=True, kw_only=True):
    """Answers that were given earlier, scored, and which model answered them."""

    outcomes: list[Outcome]
    identities: dict[str, str]
    inputs: list[InputRef]


class ModelProbes(Struct, frozen=True, kw_only=True):
    """What one model showed."""

    likelihoods: list[LikelihoodRow]
    overlaps: list[OverlapRow]
    canaries: list[CanaryProbe]


class LeakageCheck(Struct, frozen=True, kw_only=True):
    """A check that is planned: what it looks at, the models it asks, and what it was given."""

    plan: LeakagePlan
    models: tuple[Model, ...]
    parts: tuple[str, ...]
    earlier: EarlierAnswers
    cutoffs: Mapping[str, Cutoff]
    inputs: tuple[InputRef, ...]
    settings: dict[str, object]
    seed: int

    def estimate(self) -> Estimate:
        """What asking the models would spend."""
        texts = likelihood_texts(self.plan.items, self.plan.edition) if "likelihood" in self.parts else []
        canaries = self.plan.canaries if "canary" in self.parts else []
        return sum(
            (estimate_leakage(model, self.plan.items, canaries, texts, self.parts) for model in self.models), Estimate()
        )

    def write(
        self, output: Path, *, command: Sequence[str] = (), progress: Progress = SILENT
    ) -> tuple[Artefact, LeakageSummary]:
        """Ask the models, sum up and write the folder."""
        probed = {model.spec: probe(model, self.plan, self.parts, progress) for model in self.models}
        identities = {model.spec: model.identity for model in self.models}
        summary = summarise(self.plan, probed, identities, self.earlier, self.cutoffs)
        made = write_leakage(
            output,
            self.plan,
            probed,
            summary,
            models=self.models,
            inputs=self.inputs,
            settings=self.settings,
            parts=self.parts,
            seed=self.seed,
            command=command,
        )
        return made, summary


def plan_leakage_check(
    bench: Benchmark,
    session: Session,
    *,
    models: Sequence[str] = ("embedded",),
    corpus: Path | None = None,
    runs: Sequence[Path] = (),
    judged: Sequence[Path] = (),
    cutoffs: Sequence[str] = (),
    against: Sequence[Path] = (),
    threshold: float = THRESHOLD,
    characters: int = 600,
    share: float = 0.5,
    left_out: Sequence[str] = (),
    control_edition: str = "",
    limit: int | None = None,
    seed: int = 0,
    progress: Progress = SILENT,
) -> LeakageCheck:
    """Read what a check of `bench` needs, look for its questions elsewhere, and load the models.

    `cutoffs` are written `MODEL=2024-06`; `against` are other benchmarks to look for the questions in; `left_out` are
    the PARTS to leave out.
    """
    names = tuple(dict.fromkeys(models))
    parts = tuple(part for part in PARTS if part not in left_out)
    given = dict(parse_cutoff(text) for text in cutoffs)
    documents = Corpus.open(corpus) if corpus else corpus_beside(bench.artefact)
    others = [Benchmark.open(path) for path in against]
    questions = bench.first(limit)
    earlier = gather_outcomes(runs, judged, questions)
    _check_cutoffs(given, (*names, *sorted(earlier.identities)))
    plan = plan_check(
        bench,
        questions,
        documents,
        against=others,
        edition=_control_edition(bench, control_edition),
        share=share,
        characters=characters,
        threshold=threshold,
        parts=parts,
        seed=seed,
        progress=progress,
    )
    settings: dict[str, object] = {
        "models": list(names),
        "parts": list(parts),
        "share": share,
        "characters": characters,
        "near": threshold,
        "limit": limit,
        "cutoffs": list(cutoffs),
        **({"edition": bench.edition} if bench.edition else {}),
        "control_edition": plan.edition,
    }
    read = [each.artefact.reference() for each in (bench, *([documents] if documents else []))]
    return LeakageCheck(
        plan=plan,
        models=tuple(session.model(name) for name in names),
        parts=parts,
        earlier=earlier,
        cutoffs=given,
        inputs=(*read, *earlier.inputs, *(other.artefact.reference() for other in others)),
        settings=settings,
        seed=seed,
    )


def _check_cutoffs(given: Mapping[str, Cutoff], known: Sequence[str]) -> None:
    bare = {name.partition("[")[0] for name in known}
    if unknown := sorted(given.keys() - set(known) - bare):
        raise UsageError(
            f"--cutoff names {', '.join(unknown)}, but this model is neither probed nor in a run",
            fix=f"write the model's name as in the command: {', '.join(dict.fromkeys(known))}",
        )


def _control_edition(bench: Benchmark, named: str) -> str:
    """The edition that is measured beside this one: the one named, else the original, or the main one beside that."""
    editions = [MAIN, *bench.editions()]
    if named and named not in editions:
        raise UsageError(
            f"this benchmark has no edition {named!r}",
            where=str(bench.artefact.path),
            fix=f"its editions are {', '.join(editions)}",
        )
    asked = bench.edition or MAIN
    if named:
        return named if named != asked else ""
    if ORIGINAL not in editions:
        return ""
    return ORIGINAL if asked != ORIGINAL else MAIN


def plan_check(
    bench: Benchmark,
    questions: Sequence[Question],
    corpus: Corpus | None,
    *,
    against: Sequence[Benchmark] = (),
    edition: str = "",
    share: float = 0.5,
    characters: int = 600,
    threshold: float,
    parts: Sequence[str] = PARTS,
    seed: int = 0,
    progress: Progress,
) -> LeakagePlan:
    """Cut the questions, date them, and look for them elsewhere."""
    documents = _sources(questions, corpus)
    named = "" if edition == MAIN else edition
    others = {q.id: q for q in Benchmark(bench.artefact, named).questions} if edition else {}
    items = plan_leakage(questions, editions=others, documents=documents, share=share, characters=characters, seed=seed)
    search = NearSearch({q.id: stem_of(q) for q in questions}, threshold=threshold)
    found = [each for name in sorted(bench.artefact.manifest.files) for each in _scan(bench.artefact, name)]
    near: list[NearDuplicate] = []
    own: list[OwnSource] = []
    seen = 0
    if corpus is not None:
        watched = _Watched(corpus.documents())
        if "near" in parts:
            near, own = search.in_documents(watched, {q.id: q.documents for q in questions}, progress=progress)
        else:
            for _ in watched:
                pass
        found += watched.canaries
        seen = watched.count
    if "near" in parts:
        near += search.among_themselves()
        for other in against:
            near += search.in_benchmark({q.id: stem_of(q) for q in other.questions}, other.artefact.path.name)
    return LeakagePlan(
        questions=list(questions),
        items=items,
        edition=edition,
        dates={question.id: publication(question, documents) for question in questions},
        clusters=clusters_of(questions),
        near=near,
        own=own,
        too_short=search.too_short,
        threshold=threshold,
        found=found,
        canaries=_to_probe(bench.artefact, found),
        documents=seen,
    )


class _Watched:
    """Documents as they pass: counted, and their canaries kept."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._documents = documents
        self.canaries: list[FoundCanary] = []
        self.count = 0

    def __iter__(self) -> Iterator[Document]:
        for document in self._documents:
            self.count += 1
            self.canaries += canaries_in_text(document.text, f"document {document.id}")
            yield document


def _sources(questions: Sequence[Question], corpus: Corpus | None) -> dict[str, Document]:
    if corpus is None:
        return {}
    names = dict.fromkeys(name for question in questions for name in question.documents)
    return {name: corpus.get(name) for name in names if name in corpus}


def _scan(artefact: Artefact, name: str) -> list[FoundCanary]:
    return canaries_in_file(artefact.file(name), f"file {name}") if name.endswith(_SCANNED) else []


def _to_probe(artefact: Artefact, found: Sequence[FoundCanary]) -> list[Canary]:
    """This benchmark's own canary, the known ones, and those that were found; each once."""
    own = make_canary(artefact.reference().sha256)
    chosen = {each.guid: each for each in (own, *known_canaries())}
    for each in found:
        chosen.setdefault(each.guid, split_canary(f"found in {each.place}", each.guid))
    return list(chosen.values())


def gather_outcomes(runs: Sequence[Path], judged: Sequence[Path], questions: Sequence[Question]) -> EarlierAnswers:
    """Scored answers to these questions: choices of runs by themselves, free text by its judgments."""
    asked = {question.id for question in questions}
    found: dict[tuple[str, str, str, int], Outcome] = {}
    identities: dict[str, str] = {}
    inputs: list[InputRef] = []
    for path in runs:
        run = Run.open(path)
        _take(found, choice_outcomes(run.questions, run.answers), asked, path)
        identities |= _identities(run.artefact.manifest, {answer.model for answer in run.answers})
        inputs.append(run.artefact.reference())
    for path in judged:
        opened = JudgmentFolder.open(path)
        _take(found, scored_outcomes(opened.questions, opened.answers, opened.judgments), asked, path)
        identities |= _identities(opened.artefact.manifest, {answer.model for answer in opened.answers})
        inputs.append(opened.artefact.reference())
    return EarlierAnswers(outcomes=list(found.values()), identities=identities, inputs=inputs)


def _take(
    found: dict[tuple[str, str, str, int], Outcome], more: Sequence[Outcome], asked: set[str], path: Path
) -> None:
    mine = [row for row in more if row.question in asked and row.unscored != "unjudged"]
    if not mine:
        raise UsageError(
            "this folder has no scored answer to a question of the benchmark",
            where=str(path),
            fix="give judged runs on this benchmark; an unjudged run works only for multiple choice",
        )
    for row in mine:
        key = (row.question, row.model, row.condition, row.sample)
        if key in found:
            raise InputError(
                f"the answer by {row.model} to {row.question!r} ({row.condition}) is scored twice",
                where=str(path),
                fix="give each run once: either the run or its judgments",
            )
        found[key] = row


def _identities(manifest: Manifest, models: set[str]) -> dict[str, str]:
    named = manifest.models
    return {model: named.get(f"answer: {model}", named.get("answer", "")) for model in models}


def probe(model: Model, plan: LeakagePlan, parts: Sequence[str], progress: Progress) -> ModelProbes:
    """Ask one model; what generates text comes first, so that an endpoint without likelihoods is known to be there."""
    overlaps = [
        row for each in PROBES if each in parts for row in probe_overlaps(model, plan.items, each, progress=progress)
    ]
    canaries = probe_canaries(model, plan.canaries, progress=progress) if "canary" in parts else []
    texts = likelihood_texts(plan.items, plan.edition) if "likelihood" in parts else []
    return ModelProbes(
        overlaps=overlaps, canaries=canaries, likelihoods=measure_likelihoods(model, texts, progress=progress)
    )


def summarise(
    plan: LeakagePlan,
    probed: Mapping[str, ModelProbes],
    models: Mapping[str, str],
    gathered: EarlierAnswers,
    given: Mapping[str, Cutoff],
) -> LeakageSummary:
    """Everything found, with its intervals; `models` are the probed models' identities, `given` their cutoffs."""
    identities = {**gathered.identities, **models}
    cutoffs = {name: cutoff_of(name, identity, given) for name, identity in identities.items()}
    known = {name: cutoff for name, cutoff in cutoffs.items() if cutoff is not None}
    likelihoods, overlaps = [], []
    for name, mine in probed.items():
        groups = _groups(plan, known.get(name))
        likelihoods += likelihood_summaries(mine.likelihoods, groups, plan.clusters)
        overlaps += overlap_summaries(mine.overlaps, groups, plan.clusters)
    near = dict.fromkeys(("document", "question"), 0)
    for pair in plan.near:
        near[pair.where] = near.get(pair.where, 0) + 1
    return LeakageSummary(
        questions=len(plan.questions),
        models=dict(models),
        likelihoods=likelihoods,
        overlaps=overlaps,
        dates=[date_counts(name, cutoff, plan.dates) for name, cutoff in sorted(cutoffs.items())],
        date_accuracies=accuracy_by_date(gathered.outcomes, plan.dates, known, clusters=plan.clusters),
        gaps=book_gaps(gathered.outcomes, plan.clusters),
        canaries=[row for mine in probed.values() for row in mine.canaries],
        near=near,
        near_threshold=plan.threshold,
        near_too_short=plan.too_short,
        own_source=mean_figure({row.question: row.score for row in plan.own}, plan.clusters, 0),
        canaries_found=len(plan.found),
        documents=plan.documents,
        outcomes=len(gathered.outcomes),
    )


def _groups(plan: LeakagePlan, cutoff: Cutoff | None) -> dict[str, dict[str, str]]:
    groups = {
        "specialty": {q.id: facet_value(q.facets, "specialty") for q in plan.questions},
        "published": {q.id: publication_period(plan.dates[q.id]) for q in plan.questions},
    }
    if cutoff is not None:
        groups["cutoff"] = {q.id: position(plan.dates[q.id], cutoff) for q in plan.questions}
    return groups


KIND = "leakage"
_PROMPTS = {"continuation": "leakage-continue", "rationale": "leakage-rationale", "canary": "leakage-canary"}


def write_leakage(
    target: Path,
    plan: LeakagePlan,
    probed: Mapping[str, ModelProbes],
    summary: LeakageSummary,
    *,
    models: Sequence[Model],
    inputs: Sequence[InputRef],
    settings: dict[str, object],
    parts: Sequence[str],
    seed: int,
    command: Sequence[str] = (),
) -> Artefact:
    """Write the folder: the questions, a row for each thing measured, and the summary."""
    likelihoods = [row for mine in probed.values() for row in mine.likelihoods]
    overlaps = [row for mine in probed.values() for row in mine.overlaps]
    prompts = {part: load_prompt(name).label for part, name in _PROMPTS.items() if part in parts}
    failures: list[Failure | None] = [row.failure for row in likelihoods]
    failures += [row.failure for row in overlaps] + [row.failure for row in summary.canaries]
    counts = count_outcomes(failure.kind if failure else None for failure in failures)
    with create(target, replace_kind=KIND) as draft:
        write_jsonl(draft.path / "questions.jsonl", plan.questions)
        write_jsonl(draft.path / "likelihoods.jsonl", likelihoods)
        write_jsonl(draft.path / "overlaps.jsonl", overlaps)
        write_jsonl(draft.path / "near.jsonl", plan.near)
        write_jsonl(draft.path / "canaries.jsonl", plan.found)
        write_bytes(draft.path / "summary.json", msgspec.json.format(msgspec.json.encode(summary), indent=1) + b"\n")
        write_tsv(draft.path / "questions.tsv", _HEADER, _sheet(plan, probed))
        draft.finish(
            Manifest(
                kind=KIND,
                title="leakage check of " + inputs[0].name,
                command=list(command),
                inputs=list(inputs),
                settings=settings,
                seeds={"controls": seed, "bootstrap": 0},
                models={f"probed: {model.spec}": model.identity for model in models},
                prompts=prompts,
                counts=msgspec.structs.replace(counts, kept=counts.kept or len(plan.questions)),
                cost=sum((model.cost for model in models), Cost()),
                costs={model.spec: model.cost for model in models},
                metrics=_metrics(summary),
            )
        )
    return open_artefact(target, KIND)


def _metrics(summary: LeakageSummary) -> dict[str, object]:
    """The figures over all questions, by model: what a script reads."""
    metrics: dict[str, object] = {"questions": summary.questions, "near-duplicates": summary.near}
    for row in summary.likelihoods:
        if not row.by:
            name = f"{row.model}: perplexity of the {row.text}"
            metrics[name] = msgspec.to_builtins(row.perplexity)
            metrics[f"{name}, control over own"] = msgspec.to_builtins(row.ratio)
    for each in summary.overlaps:
        if not each.by:
            metrics[f"{each.model}: ROUGE-L of the {each.probe}"] = msgspec.to_builtins(each.rouge)
            metrics[f"{each.model}: edit similarity of the {each.probe}"] = msgspec.to_builtins(each.edit)
            metrics[f"{each.model}: {each.probe} reproduced"] = msgspec.to_builtins(each.share)
    return metrics


_HEADER = (
    "question", "model", "specialty", "published",
    "question_perplexity", "question_control", "question_lowest",
    "reference_perplexity", "reference_control", "explanation_perplexity", "explanation_control",
    "continuation_rouge_l", "continuation_rouge_l_control", "continuation_edit", "continuation_run",
    "rationale_rouge_l", "rationale_rouge_l_control", "rationale_edit", "rationale_run", "near_duplicates",
)  # fmt: skip


def _sheet(plan: LeakagePlan, probed: Mapping[str, ModelProbes]) -> Iterator[tuple[object, ...]]:
    """One line a question and model."""
    near: dict[str, int] = {}
    for pair in plan.near:
        near[pair.question] = near.get(pair.question, 0) + 1
    for model, mine in probed.items():
        scored = {(row.question, row.text, bool(row.control)): row for row in mine.likelihoods}
        given = {(row.question, row.probe): row for row in mine.overlaps}
        for question in plan.questions:
            date = plan.dates[question.id]
            line: list[object] = [question.id, model, facet_value(question.facets, "specialty")]
            line.append("" if date is None else f"{date.year}-{date.month:02d}" if date.month else str(date.year))
            for text in ("question", "reference", "explanation"):
                line += [_perplexity(scored.get((question.id, text, control))) for control in (False, True)]
                if text == "question":
                    own = scored.get((question.id, text, False))
                    line.append(round(own.lowest, 4) if own and own.failure is None else None)
            for probe_name in PROBES:
                row = given.get((question.id, probe_name))
                own_overlap, control = (row.own, row.control) if row else (None, None)
                line += [
                    round(own_overlap.rouge_f, 4) if own_overlap else None,
                    round(control.rouge_f, 4) if control else None,
                    round(own_overlap.edit, 4) if own_overlap else None,
                    own_overlap.run if own_overlap else None,
                ]
            yield (*line, near.get(question.id, 0))


def _perplexity(row: LikelihoodRow | None) -> float | None:
    return round(row.perplexity, 3) if row and row.failure is None else None
