"""TransplantQA: the same patient questions to every handbook, and every pair of answers compared."""

from __future__ import annotations

from hoofbeat.audit.audit_plan import DEFAULT_LINE, narrowed_plan, plan_audit, uncompared_note
from hoofbeat.benchmarks.benchmark import find_corpus
from hoofbeat.errors import UsageError
from hoofbeat.models.model_loading import UsedModels
from hoofbeat.presets.preset import PaperInputs, Preset, ProtocolPlan
from hoofbeat.presets.protocol_steps import AuditStep
from hoofbeat.reports.sections.protocol_section import PaperDifference
from hoofbeat.reports.tables import count_of
from hoofbeat.retrieval.corpus_index import index_corpus

_HANDBOOKS = 102


def _plan(inputs: PaperInputs) -> ProtocolPlan:
    """The audit: answers from each source through HERO, absence, five labels."""
    if len(inputs.models) > 1 or len(inputs.retrievers) > 1:
        raise UsageError("an audit takes one model and one retriever", fix="run each separately, each with its own -o")
    bench, model = inputs.bench(), inputs.specs[0]
    corpus = find_corpus(inputs.corpus, bench.artefact)
    lines = UsedModels(lambda spec: inputs.session.model(spec or model))
    line = inputs.retrievers[0] if inputs.retrievers else DEFAULT_LINE
    plan = narrowed_plan(
        plan_audit(corpus, bench.questions, lambda each: index_corpus(each, models=lines), line=line, model=lines),
        limit=inputs.limit,
        seed=inputs.seed,
    )
    step = AuditStep(
        folder="audit",
        plan=plan,
        model=model,
        judge=inputs.judge,
        lines=lines,
        inputs=(corpus.artefact.reference(), bench.artefact.reference()),
    )
    found = [PaperDifference("encoders", "bge-large-en-v1.5 and a MiniLM cross-encoder", f"those of the line {line}")]
    if (sources := len(plan.sources)) != _HANDBOOKS:
        ours = f"{count_of(sources, 'source')} of {corpus.path.name}"
        found.append(PaperDifference("sources", f"{_HANDBOOKS} handbooks of 23 centres", ours))
    if note := uncompared_note(plan):
        found.append(PaperDifference("questions", "each to at least two handbooks", note.removeprefix("note: ")))
    found += [
        PaperDifference("trust", "200 pairs labelled by two people", "none: see hoofbeat audit validate"),
        PaperDifference("themes", "991 themes of disagreement", "not grouped: see hoofbeat audit themes"),
    ]
    return ProtocolPlan(steps=(step,), differences=tuple(found))


PRESET = Preset(
    name="transplantqa",
    title="TransplantQA",
    protocol="Every question is put to every handbook of its group, one at a time, at temperature 0. Short handbooks "
    "are read whole, long ones through HERO-QA. Absence is decided once per answer. Every pair of answers gets "
    "one of five labels, with "
    "a topic and a clinical significance. Rates by group, coverage by source, the most serious pairs.",
    plan=_plan,
    questions=1115,
    data_format="table",
    models=("Qwen3-32B",),
    judge="Qwen3-32B",
    published="transplantqa",
)
