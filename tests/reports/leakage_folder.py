"""A leakage check with everything in it, made by the real functions with scripted models: one knows, one does not."""

from __future__ import annotations

from pathlib import Path

from hoofbeat.benchmarks import Benchmark, write_benchmark
from hoofbeat.findings.outcomes import Outcome
from hoofbeat.leakage.leakage_check import PARTS, EarlierAnswers, plan_check, probe, summarise, write_leakage
from hoofbeat.leakage.training_cutoffs import parse_cutoff
from hoofbeat.progress import SILENT
from hoofbeat.records import Document
from hoofbeat.store import Artefact, Counts
from tests.leakage.leakage_model import Remembering, invented_questions, model_of
from tests.recipes.support import a_corpus

__all__ = ["KNOWN", "leakage_folder"]

KNOWN = ("q-01", "q-04", "q-05", "q-07")


def leakage_folder(folder: Path, *, hostile: str = "") -> Artefact:
    """The artefact of a check of twelve invented questions; `hostile` stands in a document and in the models' words."""
    questions = invented_questions()
    documents = [
        Document(id=q.documents[0], title="Invented", text=q.context, facets={"year": q.facets["year"]})
        for q in questions
    ]
    guid = "0f0e0d0c-0b0a-4908-8706-050403020100"
    documents.append(
        Document(id=f"copy {hostile}", title="Copy", text=f"{questions[2].context} {hostile} canary GUID {guid}")
    )
    corpus = a_corpus(folder, documents)
    write_benchmark(folder / "bench", questions, title="invented", inputs=[], counts=Counts(kept=len(questions)))
    bench = Benchmark.open(folder / "bench")
    plan = plan_check(bench, questions, corpus, threshold=0.3, progress=SILENT)
    scripts = [
        Remembering(questions, KNOWN, f"knowing{hostile}"),
        Remembering(questions, (), "blank"),
        Remembering(questions, (), "chats-only", likelihoods=False),
    ]
    models = [model_of(script, folder / f"ledger-{place}") for place, script in enumerate(scripts)]
    outcomes = [
        Outcome(question=q.id, model=model.spec, condition=condition, sample=0, correct=right)
        for model in models
        for q in questions
        for condition, right in (
            ("closed", model is models[0] and int(str(q.facets["year"])) < 2022),
            ("oracle", q.id != "q-03"),
        )
    ]
    probed = {model.spec: probe(model, plan, PARTS, SILENT) for model in models}
    identities = {model.spec: model.identity for model in models}
    gathered = EarlierAnswers(outcomes=outcomes, identities=identities, inputs=[])
    given = dict(parse_cutoff(f"{model.spec}={until}") for model, until in zip(models, ("2021", "2023"), strict=False))
    return write_leakage(
        folder / "leakage",
        plan,
        probed,
        summarise(plan, probed, identities, gathered, given),
        models=models,
        inputs=[bench.artefact.reference(), corpus.artefact.reference()],
        settings={},
        parts=PARTS,
        seed=0,
    )
