"""What `hoofbeat judge` does: who judges what, people's labels, notes for the reader, then one folder written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from hoofbeat.errors import UsageError
from hoofbeat.judging.aspect import Aspect
from hoofbeat.judging.aspects.equivalence import EQUIVALENCE
from hoofbeat.judging.catalogue import criteria_named
from hoofbeat.judging.designs import LabelFile, design_of
from hoofbeat.judging.humans import human_judgments, read_labels
from hoofbeat.judging.judging_pass import JudgingJob, JudgingPass
from hoofbeat.judging.judgments_folder import AnswerFolder
from hoofbeat.judging.judgments_writer import judge_folder, own_judges
from hoofbeat.judging.selection import choose_aspects
from hoofbeat.models import Estimate, Model, load_encoder
from hoofbeat.models.session import Session
from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import Judgment
from hoofbeat.store import Artefact, InputRef
from hoofbeat.store.artefact import file_reference


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
    seed: int = 0,
    encoder: str = "minilm",
    idf: bool = False,
    humans: Sequence[Path] = (),
    aspect: str = EQUIVALENCE.name,
    annotator: str = "",
) -> JudgePlan:
    """Check what is to be judged, read people's labels and load the judges; models are loaded for what asks one.

    `by` are aspects and scorers; `humans` are files of people's labels about `aspect`, by `annotator` where a file does
    not say by whom.
    """
    aspects = _aspects(folder, by, probes, labelled=bool(humans))
    people = _people(folder, humans, aspect, annotator)
    asking = bool(probes) or any(isinstance(each, Aspect) for each in criteria_named(aspects))
    job = JudgingJob(
        aspects=aspects,
        judges=_judges(session, models) if asking else (),
        conditions=tuple(conditions),
        encoder=lambda: load_encoder(encoder, model=session.model),
        idf=idf,
        probes=tuple(probes),
        probe_size=probe_size,
        seed=seed,
        humans=people.judgments,
        files=people.files,
    )
    return JudgePlan(folder=folder, job=job, inputs=people.inputs, notes=(*people.notes, *_notes(folder, job)))


def _aspects(folder: AnswerFolder, by: Sequence[str], probes: Sequence[str], *, labelled: bool) -> tuple[str, ...]:
    """What is judged now: nothing where only people's labels are read, or a judge is only probed."""
    if probes and not folder.survey.texts:
        raise UsageError("judges are probed on free-text answers, and there are none", fix="leave --probe out")
    probing = bool(probes) and EQUIVALENCE.name in folder.aspects
    return () if not by and (labelled or probing) else choose_aspects(folder, tuple(by))


def _judges(session: Session, specs: Sequence[str]) -> tuple[Model, ...]:
    for spec in specs:
        if spec.endswith("]"):
            raise UsageError(f"a judge takes no options, and {spec!r} has some", fix="name the model alone")
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
            notes.append(f"note: {empty} lines of {path.name} have no label yet and are left out")
        drawn = design_of(path, (label.item for label in labels))
        if drawn is None:
            notes.append(
                f"note: how the answers of {path.name} were chosen is not known (no design lies beside it); scores "
                "corrected by them are right only if they were drawn at random"
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
        f"note: the judge {spec} is a model that answered; a model tends to agree with itself"
        for spec in own_judges(folder, job.judges)
    ]
    if job.judges and len(job.judges) % 2 == 0:
        notes.append(f"note: {len(job.judges)} judges can tie; answers on which they do are unscored")
    for each in criteria_named(job.aspects):
        if isinstance(each, Aspect) and each.conditions and not job.conditions:
            which = f"{'wrong ' if each.explains else ''}answers under {', '.join(each.conditions)}"
            notes.append(f"note: {each.name} is asked of {which} only; --condition names others")
    return notes
