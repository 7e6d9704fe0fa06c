"""CUPCase: the diagnosis of a published case, as one of four options and in free text."""

from __future__ import annotations

from collections.abc import Sequence

from hoofbeat.benchmarks import Benchmark
from hoofbeat.presets.preset import EMBEDDED_ENCODER, PaperInputs, Preset, ProtocolPlan, names_model, require_options
from hoofbeat.presets.protocol_steps import AnswerStep, JudgeStep
from hoofbeat.reports.sections.protocol_section import PaperDifference

_CONDITIONS = ("closed", "first 20%", "first 40%", "first 60%", "first 80%")  # the closed book shows all of the case
_BY_LETTER = ("GPT-4o", "MedLM-Large")
_ENCODER = "microsoft/deberta-xlarge-mnli"


def _plan(inputs: PaperInputs) -> ProtocolPlan:
    """Letters and free text for every model, likelihoods for those that give them; BERTScore of the free text."""
    bench = inputs.bench()
    require_options(bench, "CUPCase asks for one of four")
    scored, unscored = inputs.able("likelihoods")
    free = _asked("free", inputs, bench, inputs.models, ("free",))
    choices = [
        _asked(folder, inputs, bench, models, protocols)
        for folder, models, protocols in (
            ("choices", scored, ("letter", "likelihood")),
            ("letters", unscored, ("letter",)),
        )
        if models
    ]
    judge = JudgeStep(folder="bertscore", answers=free, judge="", by=("bertscore",), encoder=inputs.encoder)
    return ProtocolPlan(steps=(*choices, free, judge), differences=tuple(_differences(inputs, unscored)))


def _asked(
    folder: str, inputs: PaperInputs, bench: Benchmark, models: Sequence[str], protocols: Sequence[str]
) -> AnswerStep:
    plan = inputs.plan_run(bench, models=models, conditions=_CONDITIONS, protocols=protocols)
    return AnswerStep(folder=folder, plan=plan)


def _differences(inputs: PaperInputs, unscored: list[str]) -> list[PaperDifference]:
    found = []
    if other := [each for each in unscored if not names_model(each, _BY_LETTER)]:
        theirs = f"all models but {' and '.join(_BY_LETTER)}"
        found.append(PaperDifference("likelihood", theirs, f"by letter, without log-probabilities: {', '.join(other)}"))
    if unscored:
        theirs = "4 samples of 250 for models behind an API"
        found.append(PaperDifference("bootstrap", theirs, "8 samples of 500 for all models"))
    if not inputs.encoder.rstrip("/").endswith(_ENCODER.partition("/")[2]):
        ours = "the embedded MiniLM" if inputs.encoder == EMBEDDED_ENCODER else inputs.encoder
        found.append(
            PaperDifference("encoder", f"BERTScore by {_ENCODER}", f"by {ours}: other values, on another scale")
        )
    tokens = "words, numbers and marks count as tokens, the same for every model"
    found.append(PaperDifference("tokens", "the first 20 to 100% of Llama3.1-8B tokens", tokens))
    return found


PRESET = Preset(
    name="cupcase",
    title="CUPCase",
    protocol="Zero-shot, temperature 0. One of four options: by letter, or by the likelihood of each option where a "
    "model gives log-probabilities. Free text scored by BERTScore F1. Mean and standard deviation of 8 bootstrap "
    "samples of 500 (4 of 250 for models behind an API). The first 20, 40, 60, 80 and 100% of the case.",
    plan=_plan,
    questions=3562,
    data_format="cupcase",
    models=(
        "GPT-4o", "Llama3-70B Instruct", "Llama3.1-70B Instruct", "Llama3.1-8B Instruct", "Llama3-8B Instruct",
        "Meditron-70B", "MedLM-Large", "Llama3 OpenBioLLM 70B", "Meditron-7B", "BioMistral", "BioMedGPT",
        "Llama3 OpenBioLLM 8B", "Meerkat",
    ),
    published="cupcase",
)  # fmt: skip
