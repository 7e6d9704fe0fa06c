"""ClinBench: the most likely primary diagnosis among many options, as text and with images."""

from __future__ import annotations

from hoofbeat.answering.answerers import SamplingSettings, parse_answerer
from hoofbeat.answering.run_plan import RunPlan
from hoofbeat.benchmarks import Benchmark
from hoofbeat.errors import UsageError
from hoofbeat.presets.preset import PaperInputs, Preset, ProtocolPlan, require_options
from hoofbeat.presets.protocol_steps import AnswerStep, JudgeStep
from hoofbeat.reports.sections.protocol_section import PaperDifference

_RUNS = 3
_TEMPERATURE = 0.6
_WORST = 16
_IMAGE = "image"


def _plan(inputs: PaperInputs) -> ProtocolPlan:
    """Three runs of the text version and of the image version by letter; error types of wrong answers to the text."""
    bench = inputs.bench()
    require_options(bench, "ClinBench asks for one of several")
    shown = _with_images(bench)
    seeing, blind = inputs.able("images")
    differences = _differences(inputs)
    steps: list[AnswerStep | JudgeStep] = []
    if shown is not bench:
        text = AnswerStep(folder="text", plan=_asked(inputs, bench, "closed", inputs.models))
        errors = JudgeStep(
            folder="errors", answers=text, judge=inputs.judge, by=("error-type",), encoder=inputs.encoder
        )
        steps += [text, errors]
    else:
        differences.append(PaperDifference("text version", "all questions as text", "not in this benchmark"))
    if shown is None:
        differences.append(PaperDifference("image version", "questions with their images", "not in this benchmark"))
    elif blind:
        differences.append(PaperDifference("image version", "multimodal models", f"not asked: {', '.join(blind)}"))
    if shown is not None and seeing:
        steps.append(AnswerStep(folder="images", plan=_asked(inputs, shown, "images", seeing)))
    if not steps:
        raise UsageError(
            "this benchmark has only questions with images, and none of the models reads images",
            where=str(bench.path),
            fix="name a model that reads images, or import the text version",
        )
    return ProtocolPlan(steps=tuple(steps), differences=tuple(differences))


def _with_images(bench: Benchmark) -> Benchmark | None:
    """The image version: the edition of that name, or the benchmark itself where its questions have images."""
    if _IMAGE in bench.editions():
        return Benchmark.open(bench.path, _IMAGE)
    return bench if any(question.images for question in bench.questions) else None


def _asked(inputs: PaperInputs, bench: Benchmark, condition: str, models: list[str] | tuple[str, ...]) -> RunPlan:
    return inputs.plan_run(
        bench, conditions=[condition], models=models, protocols=["letter"], samples=_RUNS, temperature=_TEMPERATURE
    )


def _differences(inputs: PaperInputs) -> list[PaperDifference]:
    found = []
    sampling = SamplingSettings(temperature=_TEMPERATURE)
    asked = [parse_answerer(model, samples=_RUNS, sampling=sampling) for model in inputs.models]
    if other := [each.written for each in asked if each.samples != _RUNS or each.sampling.temperature != _TEMPERATURE]:
        found.append(PaperDifference("runs", f"{_RUNS} at temperature {_TEMPERATURE}", ", ".join(other)))
    fewest = min(each.samples for each in asked)
    if fewest < _WORST:
        ours = f"k = 1 to {fewest}; [samples={_WORST}] after a model's name gives all"
        found.append(PaperDifference("worst@k", f"k = 1 to {_WORST}, of GPT-5 and Qwen3-8B", ours))
    found.append(PaperDifference("human experts", "physicians sat the same exam", "none: see hoofbeat review --exam"))
    found.append(PaperDifference("leakage", "perplexity and overlap of rationales", "not run: see hoofbeat leakage"))
    return found


PRESET = Preset(
    name="clinbench",
    title="ClinBench",
    protocol="Zero-shot, one option chosen, temperature 0.6, mean of three runs; text version and image version; "
    "accuracy by specialty and on rare diseases, sensitivity and specificity, worst@k; the error type of every wrong "
    "answer to the text version.",
    plan=_plan,
    questions=2014,
    data_format="clinbench",
    models=(
        "GPT-4o-2024-11-20", "Deepseek-V3.1", "Claude-Opus-4-20250514", "Qwen3-8B", "GPT-5-0807",
        "Gemini-2.5-pro-Thinking", "Deepseek-R1", "o4-mini-2025-04-16", "MedGemma-27B-it", "Baichuan-M2-32B",
        "Lingshu-32B",
    ),
    judge="GPT-5",
    published="clinbench",
)  # fmt: skip
