"""The folder of judgments: judged block by block, with a manifest that says by whom, of what, and at which cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct, field

from hoofbeat.judging.aspect import Aspect
from hoofbeat.judging.aspects.equivalence import SWAPPED_PROMPT
from hoofbeat.judging.catalogue import verdict_labels
from hoofbeat.judging.designs import SheetDesign
from hoofbeat.judging.judging_pass import JudgingJob, JudgingPass
from hoofbeat.judging.judgments_folder import HUMAN, KIND, AnswerFolder
from hoofbeat.judging.probes import probe_figures
from hoofbeat.judging.scorers import Scorer
from hoofbeat.models import Model
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import load_prompt
from hoofbeat.store import Artefact, Cost, Counts, InputRef, Manifest, create, open_artefact
from hoofbeat.store.manifest import count_outcomes


class _Earlier(Struct, frozen=True):
    """What the settings of a folder of judgments say that new judgments add to."""

    aspect: str = ""
    aspects: tuple[str, ...] = ()
    judges: dict[str, list[str]] = field(default_factory=dict)
    annotators: tuple[str, ...] = ()


def own_judges(folder: AnswerFolder, judges: Sequence[Model]) -> list[str]:
    """The judges that answered some of the questions themselves: the same model, under whatever name."""
    manifest = folder.artefact.manifest
    answering = {identity for role, identity in manifest.models.items() if role.partition(":")[0] == "answer"}
    named = {model.partition("[")[0] for model in folder.survey.models}
    return [judge.spec for judge in judges if judge.identity in answering or judge.spec in named]


def judge_folder(
    folder: AnswerFolder,
    job: JudgingJob,
    target: Path,
    *,
    inputs: Sequence[InputRef] = (),
    command: Sequence[str] = (),
    progress: Progress = SILENT,
) -> Artefact:
    """Judge the answers of a folder and write the folder of judgments.

    `inputs` are further inputs (files of human labels).
    """
    with create(target, replace_kind=KIND) as draft:
        judging = JudgingPass(folder, job)
        judging.write(draft.path, progress=progress)
        draft.finish(_manifest(judging, inputs, command))
    return open_artefact(target, KIND)


def _manifest(judging: JudgingPass, inputs: Sequence[InputRef], command: Sequence[str]) -> Manifest:
    folder, job = judging.folder, judging.job
    before = folder.artefact.manifest
    costs = {judge.spec: judge.cost for judge in job.judges}
    kept = before.costs if folder.judged else {}
    together = {name: kept.get(name, Cost()) + costs.get(name, Cost()) for name in {**kept, **costs}}
    cost = sum(costs.values(), start=before.cost if folder.judged else Cost())
    counts = count_outcomes(judging.tally.failures.elements())
    return Manifest(
        kind=KIND,
        title=_title(job),
        command=list(command),
        inputs=[folder.artefact.reference(), *inputs],
        settings=_settings(judging),
        seeds={
            **(before.seeds if folder.judged else {}),
            **({"probes": job.seed} if job.probes else {}),
            **_drawing(job),
        },
        models={**before.models, **_judge_roles(judging)},
        prompts={**before.prompts, **_prompts(judging)},
        counts=_sum(before.counts, counts) if folder.judged else counts,
        cost=cost,
        costs=together,
        metrics=_metrics(judging),
    )


def _title(job: JudgingJob) -> str:
    judges = [judge.spec for judge in job.judges]
    people = sorted({each.judge.removeprefix(HUMAN) for each in job.humans})
    parts = [f"judged by {', '.join(judges)}"] if judges else []
    parts += ["scored without a model"] if job.aspects and not judges else []
    parts += [f"labelled by {', '.join(people)}"] if people else []
    return "; ".join(parts)


def _settings(judging: JudgingPass) -> dict[str, object]:
    """The settings of what was judged before, with what was judged now; `aspect` is the one that scores."""
    folder, job = judging.folder, judging.job
    run = folder.artefact.manifest
    before = run.settings if folder.judged else {"asked": {**run.settings, "seeds": run.seeds}}
    earlier = msgspec.convert(before, _Earlier, strict=False)
    aspects = [*(earlier.aspects or ([earlier.aspect] if earlier.aspect else [])), *job.aspects]
    judges = earlier.judges | {
        each.name: [judge.spec for judge in job.judges] for each in judging.criteria if isinstance(each, Aspect)
    }
    verdicts = verdict_labels()
    scoring = next((name for name in verdicts if name in {*aspects, *(each.aspect for each in job.humans)}), None)
    people = {*earlier.annotators, *(each.judge.removeprefix(HUMAN) for each in job.humans)}
    own = own_judges(folder, job.judges)
    new: dict[str, object] = {
        **({"aspect": scoring, "positive": verdicts[scoring]} if scoring else {}),
        "aspects": aspects,
        **({"judges": judges} if judges else {}),
        **({"conditions": list(job.conditions)} if job.conditions else {}),
        **({"probes": list(job.probes), "probe_size": job.probe_size} if job.probes else {}),
        **_scorer_settings(judging),
        **({"annotators": sorted(people)} if people else {}),
        **_labelled(job, before),
        **_asked(folder),
        **({"judges_that_answered": own} if own else {}),
    }
    return {**before, **new}


def _scorer_settings(judging: JudgingPass) -> dict[str, object]:
    found: dict[str, object] = {}
    for each in judging.criteria:
        if isinstance(each, Scorer):
            found |= each.settings(judging.scoring)
    return found


def _labelled(job: JudgingJob, before: Mapping[str, object]) -> dict[str, object]:
    """The files of labels, and how the answers in them had been drawn; a sheet that several labelled stands once."""
    if not job.files:
        return {}
    files, sheets = before.get("label_files"), before.get("sheets")
    told = [
        {"file": each.file, "aspect": each.aspect, "labels": each.labels, "sheet": each.design and each.design.sheet}
        for each in job.files
    ]
    designs = {each.design.sheet: _design(each.design) for each in job.files if each.design}
    return {
        "label_files": [*(files if isinstance(files, list) else []), *told],
        **({"sheets": {**(sheets if isinstance(sheets, dict) else {}), **designs}} if designs or sheets else {}),
    }


def _design(design: SheetDesign) -> dict[str, object]:
    """A design without the list of its codes."""
    plain: dict[str, object] = msgspec.to_builtins(design)
    return {name: value for name, value in plain.items() if name not in ("sheet", "items")}


def _drawing(job: JudgingJob) -> dict[str, int]:
    """The seed that each sheet was drawn with."""
    return {f"sheet: {each.design.sheet}": each.design.seed for each in job.files if each.design}


def _asked(folder: AnswerFolder) -> dict[str, object]:
    """How the answers came about, from the run's manifest, so that whoever compares judgments can see it."""
    manifest = folder.artefact.manifest
    if folder.judged:
        return {}
    documents = sorted(ref.sha256 for ref in manifest.inputs if ref.kind == "corpus")
    told = {
        **manifest.settings,
        **({"seeds": manifest.seeds} if manifest.seeds else {}),
        **({"documents": documents} if documents else {}),
    }
    return {"asked": told} if told else {}


def _judge_roles(judging: JudgingPass) -> dict[str, str]:
    """The judges by role: `judge` for one, `judge: SPEC` for each of several, and by aspect for another judge."""
    judges = judging.job.judges
    taken = judging.folder.artefact.manifest.models if judging.folder.judged else {}
    earlier = {identity for role, identity in taken.items() if role.startswith("judge")}
    if not judges or {judge.identity for judge in judges} <= earlier:
        return {}
    role = f"judge of {', '.join(judging.job.aspects) or 'probes'}" if earlier else "judge"
    if len(judges) == 1:
        return {role: judges[0].identity}
    return {f"{role}: {judge.spec}": judge.identity for judge in judges}


def _prompts(judging: JudgingPass) -> dict[str, str]:
    roles = {each.role: each.template.label for each in judging.criteria if isinstance(each, Aspect)}
    if "order" in judging.job.probes:
        roles["probe of order"] = load_prompt(SWAPPED_PROMPT).label
    return roles


def _metrics(judging: JudgingPass) -> dict[str, object]:
    before = dict(judging.folder.artefact.manifest.metrics) if judging.folder.judged else {}
    labels = _added(before.get("labels"), judging.tally.labels)
    short = _added(before.get("missing_votes"), judging.tally.short)
    probes = before.get("probes")
    rows = [*(probes if isinstance(probes, list) else []), *probe_figures(judging.probes)]
    new = {"labels": labels, **({"missing_votes": short} if short else {}), **({"probes": rows} if rows else {})}
    return {**before, **new}


def _added(earlier: object, now: Mapping[str, Counter[str]]) -> dict[str, dict[str, int]]:
    """Counts by aspect, with those of an earlier manifest."""
    counts: dict[str, Counter[str]] = {
        str(name): Counter(before) for name, before in (earlier.items() if isinstance(earlier, dict) else ())
    }
    for name, more in now.items():
        counts.setdefault(name, Counter()).update(more)
    return {name: dict(sorted(each.items())) for name, each in counts.items()}


def _sum(one: Counts, two: Counts) -> Counts:
    failures = Counter(one.failures) + Counter(two.failures)
    return Counts(kept=one.kept + two.kept, failed=one.failed + two.failed, failures=dict(sorted(failures.items())))
