"""A leakage check from opened artefacts to its folder: what is probed, what the model showed, what it adds up to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from hoofbeat.answering import Run
from hoofbeat.benchmarks import Benchmark
from hoofbeat.corpus import Corpus
from hoofbeat.errors import InputError, UsageError
from hoofbeat.facets import facet_value
from hoofbeat.findings.clusters import clusters_of
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
    LeakageSummary,
    book_gaps,
    likelihood_summaries,
    mean_figure,
    overlap_summaries,
)
from hoofbeat.leakage.leakage_records import PROBES, CanaryProbe, LikelihoodRow, OverlapRow
from hoofbeat.leakage.leakage_text import LeakageItem, plan_leakage, stem_of
from hoofbeat.leakage.memory_probes import likelihood_texts, measure_likelihoods, probe_canaries, probe_overlaps
from hoofbeat.leakage.near_duplicates import NearDuplicate, NearSearch, OwnSource
from hoofbeat.leakage.training_cutoffs import (
    Cutoff,
    PublicationDate,
    accuracy_by_date,
    cutoff_of,
    date_counts,
    position,
    publication,
    publication_period,
)
from hoofbeat.models import Model
from hoofbeat.progress import Progress
from hoofbeat.records import Document, Question
from hoofbeat.store import Artefact, InputRef, Manifest

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
            "nothing in this folder scores a question of the benchmark",
            where=str(path),
            fix="give judgments of runs on this benchmark; runs by themselves only where options were chosen",
        )
    for row in mine:
        key = (row.question, row.model, row.condition, row.sample)
        if key in found:
            raise InputError(
                f"the answer of {row.model} to {row.question!r} ({row.condition}) is scored twice",
                where=str(path),
                fix="give each run or its judgments once",
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
