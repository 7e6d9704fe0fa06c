"""Run a paper's protocol: plan its steps, say where they differ from the paper, estimate or do them, write one report.

The output folder holds a folder for each step, `protocol` with the differences, and `report`. The differences that are
known beforehand are told before anything is spent. What shows only in the answers (an endpoint without
log-probabilities, documents that did not fit the window) is added before the report is written.
"""

from __future__ import annotations

import csv
import re
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from hoofbeat.errors import BatchPending, OutputError, UsageError
from hoofbeat.models import Estimate, load_encoder
from hoofbeat.models.model_loading import Session
from hoofbeat.presets.preset import EMBEDDED_ENCODER, PaperInputs, Preset
from hoofbeat.presets.protocol_steps import JudgeStep, ProtocolStep, StepTools
from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import Answer
from hoofbeat.registry import registry
from hoofbeat.reports.report_build import build_report
from hoofbeat.reports.section import ReportOptions
from hoofbeat.reports.sections.protocol_section import KIND, PaperDifference, write_differences
from hoofbeat.reports.tables import count_of
from hoofbeat.store import Artefact, Counts, Manifest, create, open_artefact
from hoofbeat.store.artefact import folder_entries, refuse_foreign
from hoofbeat.store.tables import read_jsonl
from hoofbeat.text import some_of
from hoofbeat.window import windows_of

PROTOCOL = "protocol"
REPORT = "report"
_NAMED = 4
_AVERAGE = ", average"
_NDCG = "nDCG@10"
_SHARES = ("accuracy", "mean")
_RANKED = re.compile(
    r"tables/[\w-]+-(?:leaderboard(?:-\d+)?|measured)\.csv|tables/sets-[\w.@-]+\.csv|tables/rankings-1-measures\.csv"
)
_PARTS = ("bertscore-p", "bertscore-r")  # F1 is what the papers report


class PaperRun(Struct, frozen=True, kw_only=True):
    """A protocol that is planned and checked; `differences` are those that are known before it is run."""

    preset: Preset
    inputs: PaperInputs
    steps: tuple[ProtocolStep, ...]
    differences: tuple[PaperDifference, ...]

    def estimates(self, *, progress: Progress = SILENT) -> dict[str, Estimate]:
        """What each part of each step would spend at most."""
        tools = StepTools(session=self.inputs.session, output=Path(), progress=progress)
        return {name: each for step in self.steps for name, each in step.estimates(tools).items()}

    def write(self, output: Path, *, command: Sequence[str] = (), progress: Progress = SILENT) -> Artefact:
        """Do every step, then write the report; what an earlier run left in the folder is replaced."""
        self._tidy(output)
        self._write_protocol(output, self.differences, command)
        tools = StepTools(session=self.inputs.session, output=output, command=tuple(command), progress=progress)
        made = self._do_steps(tools)
        found = [*self.differences, *observed_differences(made)]
        protocol = self._write_protocol(output, found, command)
        shown = [path for path in self.inputs.paths if (path / "manifest.json").is_file()]
        preset = self.preset
        return build_report(
            [protocol.path, *shown, *(artefact.path for artefact in made)],
            output / REPORT,
            title=f"{preset.title}, run by Hoofbeat",
            options=ReportOptions(
                published=(preset.published,) if preset.published else (), draws=preset.draws, size=preset.size
            ),
            command=command,
            progress=progress,
        )

    def _do_steps(self, tools: StepTools) -> list[Artefact]:
        """Do the steps in order; one that a batch folder stops does not stop those that can do without it.

        So the requests of all these steps are answered in one round.
        """
        made: list[Artefact] = []
        pending: list[BatchPending] = []
        unfinished: set[str] = set()
        for step in self.steps:
            if unfinished.isdisjoint(step.needs):
                try:
                    made += step.write(tools)
                    continue
                except BatchPending as err:
                    pending.append(err)
            unfinished.add(step.folder)
        if pending:
            raise BatchPending.together(pending)
        return made

    def _write_protocol(self, output: Path, differences: Sequence[PaperDifference], command: Sequence[str]) -> Artefact:
        preset = self.preset
        with create(output / PROTOCOL, replace_kind=KIND) as draft:
            write_differences(draft.path, list(differences))
            draft.finish(
                Manifest(
                    kind=KIND,
                    title=f"the protocol of {preset.title}",
                    command=list(command),
                    settings={
                        "paper": preset.name,
                        "title": preset.title,
                        "protocol": preset.protocol,
                        "folders": [step.folder for step in self.steps],
                        "limit": self.inputs.limit,
                    },
                    seeds={PROTOCOL: self.inputs.seed},
                    counts=Counts(kept=len(self.steps)),
                )
            )
        return open_artefact(output / PROTOCOL, KIND)

    def _tidy(self, output: Path) -> None:
        """Remove the steps of an earlier protocol that this one does not have; refuse a folder of anything else.

        Files that somebody added to a step are found here, before the first call, and not when that step is replaced.
        """
        if not output.exists() or (output.is_dir() and not folder_entries(output)):
            return
        if not (output / PROTOCOL / "manifest.json").is_file():
            raise OutputError(
                "this folder is not empty and is not an earlier run of a paper's protocol",
                where=str(output),
                fix="choose another folder with -o",
            )
        before = open_artefact(output / PROTOCOL, KIND).manifest.settings.get("folders")
        now = {step.folder for step in self.steps}
        earlier = [output / Path(str(name)).name for name in (before if isinstance(before, list) else ())]
        for folder in dict.fromkeys((*earlier, *(output / name for name in (*now, REPORT)))):
            if folder.is_dir():
                refuse_foreign(folder, known=("lines.tsv",))
        for folder in earlier:
            if folder.name not in now and any((folder / file).is_file() for file in ("manifest.json", "lines.tsv")):
                shutil.rmtree(folder)


def plan_paper(
    paper: str,
    paths: Sequence[Path],
    session: Session,
    *,
    models: Sequence[str] = ("embedded",),
    judge: str = "",
    retrievers: Sequence[str] = (),
    corpus: Path | None = None,
    encoder: str = EMBEDDED_ENCODER,
    limit: int | None = None,
    seed: int = 0,
) -> PaperRun:
    """Plan a paper's protocol for a benchmark; a benchmark that it can't be run on is refused.

    `judge` is the first of the models where none is named; `retrievers` and `encoder` take the place of the preset's.
    """
    preset = registry.get(Preset, paper)
    if not paths:
        raise UsageError(
            f"{preset.title} needs a benchmark", fix="name the folder that hoofbeat benchmark import wrote"
        )
    inputs = PaperInputs(
        paths=tuple(paths),
        session=session,
        models=tuple(dict.fromkeys(models)),
        judge=judge or models[0].partition("[")[0],
        retrievers=tuple(retrievers),
        corpus=corpus,
        encoder=encoder,
        limit=limit,
        seed=seed,
    )
    plan = preset.plan(inputs)
    if any(isinstance(step, JudgeStep) and step.uses_encoder for step in plan.steps):
        load_encoder(encoder, model=session.model)  # a missing encoder is found before any answer is paid
    return PaperRun(
        preset=preset,
        inputs=inputs,
        steps=plan.steps,
        differences=(*preset.differences(inputs, asks_model=plan.asks_model), *plan.differences),
    )


def observed_differences(artefacts: Sequence[Artefact]) -> list[PaperDifference]:
    """What only finished steps show: windows that were assumed, systems that failed, documents that did not fit."""
    assumed: dict[str, dict[str, None]] = {}
    for artefact in artefacts:
        for window in windows_of(artefact.manifest.settings).values():
            if window.source in ("assumed", "unchecked"):
                assumed.setdefault(str(window), {})[artefact.path.name] = None
    found = [
        PaperDifference("window", "the model's own", f"{window}, in {some_of(list(folders), _NAMED)}")
        for window, folders in assumed.items()
    ]
    runs = [artefact for artefact in artefacts if artefact.manifest.kind == "run"]
    return found + [each for run in runs for each in _unanswered(run)]


def _unanswered(artefact: Artefact) -> list[PaperDifference]:
    """The systems of a run that could not be asked, and those that were not shown all documents."""
    planned: Counter[tuple[str, str]] = Counter()
    failed: dict[tuple[str, str], Counter[str]] = {}
    dropped: Counter[tuple[str, str]] = Counter()
    for answer in read_jsonl(artefact.file("answers.jsonl"), Answer):
        system = answer.model, answer.condition
        planned[system] += 1
        dropped[system] += bool(answer.dropped)
        if answer.failure is not None:
            why = f"{answer.failure.kind}: {answer.failure.message}"
            failed.setdefault(system, Counter())[why] += 1
    found = []
    for (model, condition), count in planned.items():
        name, reasons = f"{model} · {condition}", failed.get((model, condition), Counter())
        if reasons.total() == count:
            why = reasons.most_common(1)[0][0]
            found.append(
                PaperDifference("not answered", condition, f"{name}: all {count_of(count, 'call')} failed ({why})")
            )
        elif dropped[model, condition]:
            some = f"{dropped[model, condition]:,} of {count_of(count, 'answer')}"
            found.append(
                PaperDifference(
                    "window", "whole documents", f"{name}: {some} without a document that did not fit into the window"
                )
            )
    return found


def plain_findings(report: Artefact) -> list[str]:
    """What a report found, in plain words: for each condition the systems, best first; else its key figures."""
    lines: dict[str, list[tuple[float, str]]] = {}
    names = sorted(filter(_RANKED.fullmatch, report.manifest.files), key=lambda name: Path(name).stem)
    averaged = any(Path(name).stem.startswith("sets-") for name in names)  # over several sets, only averages are told
    for name in names:
        with report.file(name).open(encoding="utf-8", newline="") as stream:
            for row in csv.DictReader(stream):
                if row.get("score") in _PARTS:
                    continue
                column = next((key for key in row if key.startswith(_SHARES) or key.endswith(_AVERAGE)), "")
                column = column or ("" if averaged else _NDCG)
                if row.get(column):
                    told = f"{row['condition']}, {row.get('score', 'accuracy')}" if "condition" in row else column
                    lines.setdefault(told, []).append(_told(row, column))
    found = [
        f"{name}: {'; '.join(told for _, told in sorted(rows, key=lambda row: -row[0]))}"
        for name, rows in lines.items()
    ]
    return found or [f"{label}: {figure}" for label, figure in report.manifest.metrics.items()]


def _told(row: dict[str, str], column: str) -> tuple[float, str]:
    """The value of a row, and the row in words: shares as percentages, averages of measures as numbers."""
    form = ".1%" if column.startswith(_SHARES) else ".3f"
    value, low, high = float(row[column]), row.get(f"{column} low"), row.get(f"{column} high")
    spread = f" ({float(low):{form}} to {float(high):{form}})" if low and high else ""
    unscored = f", {row['unscored']} unscored" if row.get("unscored", "0") != "0" else ""
    return value, f"{row.get('model') or row.get('line') or row['retriever']} {value:{form}}{spread}{unscored}"
