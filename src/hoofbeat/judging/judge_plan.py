"""What `hoofbeat judge` does: who judges what, people's labels, notes for the reader, then one folder written."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import msgspec
from msgspec import Struct, field

from hoofbeat.errors import UsageError
from hoofbeat.findings.caveats import CUT_OFF
from hoofbeat.judging.aspect import Aspect
from hoofbeat.judging.aspects.equivalence import EQUIVALENCE, SWAPPED_PROMPT
from hoofbeat.judging.canary import PROMPT as CANARY_PROMPT
from hoofbeat.judging.catalogue import criteria_named, verdict_labels
from hoofbeat.judging.humans import LabelFile, SheetDesign, design_of, human_judgments, read_labels
from hoofbeat.judging.judging_pass import JudgingJob, JudgingPass, choose_aspects
from hoofbeat.judging.judgments_folder import HUMAN, KIND, AnswerFolder
from hoofbeat.judging.probes import INJECTION, probe_figures
from hoofbeat.judging.scorers import Scorer
from hoofbeat.models import Estimate, Model, load_encoder
from hoofbeat.models.model import model_facts
from hoofbeat.models.model_loading import Session
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import load_prompt
from hoofbeat.records import Judgment
from hoofbeat.store import Artefact, Cost, Counts, InputRef, Manifest, create, open_artefact
from hoofbeat.store.artefact import count_outcomes, file_reference

_ANSWERING = re.compile(r"answer(:|$)|line( |$)")  # the roles of models that answered, or wrote queries of a line


class _Earlier(Struct, frozen=True):
    """What the settings of a folder of judgments say that new judgments add to."""

    aspect: str = ""
    aspects: tuple[str, ...] = ()
    judges: dict[str, list[str]] = field(default_factory=dict)
    annotators: tuple[str, ...] = ()


def own_judges(folder: AnswerFolder, judges: Sequence[Model]) -> list[str]:
    """The judges that answered some of the questions themselves: the same model, under whatever name."""
    manifest = folder.artefact.manifest
    answering = {identity for role, identity in manifest.models.items() if _ANSWERING.match(role)}
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
        **({"canary": True} if job.canary else {}),
        **_scorer_settings(judging),
        **({"annotators": sorted(people)} if people else {}),
        **_labelled(job, before),
        **_asked(folder),
        **_judge_facts(job, before),
        **({"judges_that_answered": own} if own else {}),
    }
    return {**before, **new}


def _judge_facts(job: JudgingJob, before: Mapping[str, object]) -> dict[str, object]:
    """The windows and prices of judges, with those of judges before."""
    found = model_facts({f"judge: {judge.spec}": judge for judge in job.judges})
    for name, value in found.items():
        earlier = before.get(name)
        found[name] = {**(earlier if isinstance(earlier, dict) else {}), **cast("dict[str, object]", value)}
    return found


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
    if judging.job.canary or INJECTION in judging.job.probes:
        roles["check code"] = load_prompt(CANARY_PROMPT).label
    return roles


def _metrics(judging: JudgingPass) -> dict[str, object]:
    metrics = judging.folder.artefact.manifest.metrics
    before = dict(metrics) if judging.folder.judged else {name: metrics[name] for name in (CUT_OFF,) if name in metrics}
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


class JudgePlan(Struct, frozen=True, kw_only=True):
    """What is to be judged and by whom, checked; `notes` are what a reader of the judgments should know."""

    folder: AnswerFolder
    job: JudgingJob
    inputs: tuple[InputRef, ...] = ()
    notes: tuple[str, ...] = ()

    def estimates(self) -> dict[str, Estimate]:
        """What each aspect, and the probes, would spend."""
        return JudgingPass(self.folder, self.job).estimates()

    def write(self, output: Path, *, command: Sequence[str] = (), progress: Progress = SILENT) -> Artefact:
        """Judge, and write the folder of judgments."""
        return judge_folder(self.folder, self.job, output, inputs=self.inputs, command=command, progress=progress)


class _People(Struct, frozen=True, kw_only=True):
    """People's labels as judgments, the files they are from, and what was read for it."""

    judgments: tuple[Judgment, ...] = ()
    files: tuple[LabelFile, ...] = ()
    inputs: tuple[InputRef, ...] = ()
    notes: tuple[str, ...] = ()


def plan_judging(
    folder: AnswerFolder,
    session: Session,
    *,
    models: Sequence[str] = ("embedded",),
    by: Sequence[str] = (),
    conditions: Sequence[str] = (),
    probes: Sequence[str] = (),
    probe_size: int = 50,
    canary: bool = False,
    seed: int = 0,
    encoder: str = "minilm",
    idf: bool = False,
    layer: str = "auto",
    baseline: Path | None = None,
    humans: Sequence[Path] = (),
    aspect: str = EQUIVALENCE.name,
    annotator: str = "",
    benchmark: Path | None = None,
) -> JudgePlan:
    """Check what is to be judged, read people's labels and load the judges; models are loaded for what asks one.

    `by` are aspects and scorers; `humans` are files of people's labels about `aspect`, by `annotator` where a file does
    not say by whom. `canary` puts a check code into every call. `benchmark` is a later version of the questions, by
    whose right answers is judged.
    """
    later = _take_answers(folder, benchmark) if benchmark else None
    aspects = _aspects(folder, by, probes, labelled=bool(humans))
    people = _people(folder, humans, aspect, annotator)
    asking = bool(probes) or any(isinstance(each, Aspect) for each in criteria_named(aspects))
    if any(isinstance(each, Scorer) and each.uses_encoder for each in criteria_named(aspects)):
        load_encoder(encoder, model=session.model)  # a missing encoder is found before a judge is paid
    job = JudgingJob(
        aspects=aspects,
        judges=_judges(session, models) if asking else (),
        conditions=tuple(conditions),
        encoder=lambda: load_encoder(encoder, model=session.model),
        idf=idf,
        layer=layer,
        baseline=baseline,
        probes=tuple(probes),
        probe_size=probe_size,
        canary=canary,
        seed=seed,
        humans=people.judgments,
        files=people.files,
    )
    inputs = (
        *people.inputs,
        *((file_reference(baseline, "baseline"),) if baseline else ()),
        *((later.reference(),) if later else ()),
    )
    told = (f"{folder.renewed} questions have a new right answer in {later.path.name}, which is used",) if later else ()
    return JudgePlan(folder=folder, job=job, inputs=inputs, notes=(*told, *people.notes, *_notes(folder, job)))


def vote_notes(manifest: Manifest) -> list[str]:
    """For each aspect on which some of the judges failed, how many votes are left."""
    short = manifest.metrics.get("missing_votes")
    notes = []
    for aspect, counts in short.items() if isinstance(short, dict) else ():
        told = ", ".join(f"{times} with {voted}" for voted, times in counts.items())
        notes.append(f"note: some judges failed on {sum(counts.values())} judgments of {aspect}. Votes left: {told}")
    return notes


def _take_answers(folder: AnswerFolder, path: Path) -> Artefact:
    """Let a later version of the questions say which answers are right."""
    from hoofbeat.benchmarks import Benchmark  # noqa: PLC0415 - only where one is named

    later = Benchmark.open(path)
    folder.take_answers(later.questions)
    return later.artefact


def _aspects(folder: AnswerFolder, by: Sequence[str], probes: Sequence[str], *, labelled: bool) -> tuple[str, ...]:
    """What is judged now: nothing where only people's labels are read, or a judge is only probed."""
    if probes and not folder.survey.texts:
        raise UsageError("judges are probed on free-text answers, but there are none", fix="leave out --probe")
    probing = bool(probes) and EQUIVALENCE.name in folder.aspects
    return () if not by and (labelled or probing) else choose_aspects(folder, tuple(by))


def _judges(session: Session, specs: Sequence[str]) -> tuple[Model, ...]:
    for spec in specs:
        if spec.endswith("]"):
            raise UsageError(f"a judge takes no options, but {spec!r} has some", fix="name only the model")
    judges = [session.model(spec) for spec in specs]
    for place, judge in enumerate(judges):
        same = next((other for other in judges[:place] if other.identity == judge.identity), None)
        if same is not None:
            raise UsageError(
                f"{same.spec} and {judge.spec} are the same model: its vote would count twice",
                fix="name each judge once",
            )
    return tuple(judges)


def _people(folder: AnswerFolder, humans: Sequence[Path], aspect: str, annotator: str) -> _People:
    if not humans:
        return _People()
    found, files = {}, []
    read: dict[Path, str] = {}
    notes: list[str] = []
    for path in humans:
        labels, empty = read_labels(path, annotator=annotator)
        found[path] = labels
        read[path] = "labels"
        if empty:
            notes.append(f"note: {empty} lines of {path.name} have no label yet and are skipped")
        drawn = design_of(path, (label.item for label in labels))
        if drawn is None:
            notes.append(
                f"note: {path.name} has no design file beside it, so it is not known how its answers were chosen; "
                "scores corrected with these labels are right only if the answers were drawn at random"
            )
        else:
            read.setdefault(drawn[0].resolve(), "design")
        design = drawn[1] if drawn else None
        files.append(LabelFile(file=path.name, aspect=aspect, labels=len(labels), design=design))
    made = human_judgments(folder, found, aspect)
    people = sorted({each.judge for each in made})
    notes.append(f"{len(made)} labels of {aspect} by {', '.join(people)}")
    inputs = [file_reference(path, kind) for path, kind in read.items()]
    return _People(judgments=tuple(made), files=tuple(files), inputs=tuple(inputs), notes=tuple(notes))


def _notes(folder: AnswerFolder, job: JudgingJob) -> list[str]:
    """What a reader should know before the figures: who judges, and which answers are left out."""
    notes = [
        f"note: the judge {spec} also wrote answers here; models tend to agree with themselves"
        for spec in own_judges(folder, job.judges)
    ]
    if job.judges and len(job.judges) % 2 == 0:
        notes.append(f"note: {len(job.judges)} judges can tie; answers with a tie stay unscored")
    for each in criteria_named(job.aspects):
        if isinstance(each, Aspect) and each.conditions and not job.conditions:
            which = f"{'wrong ' if each.explains else ''}answers under {', '.join(each.conditions)}"
            notes.append(f"note: {each.name} is judged only for {which}; choose others with --condition")
    return notes
