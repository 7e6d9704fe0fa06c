"""`hoofbeat judge`: judgments of a run's answers by models, by measures and by people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec
from msgspec import Struct

from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import Calling, calling_options_of_several, check_file, command_words
from hoofbeat.errors import OutputError, UsageError
from hoofbeat.findings.intervals import wilson
from hoofbeat.judging import (
    PROBES,
    AnswerFolder,
    Aspect,
    Job,
    Judging,
    LabelFile,
    Probe,
    SheetDesign,
    all_criteria,
    choose_aspects,
    design_of,
    design_path,
    flips,
    human_judgments,
    judge_folder,
    own_judges,
    read_labels,
    write_sheet,
)
from hoofbeat.judging.aspects.equivalence import EQUIVALENCE
from hoofbeat.judging.catalogue import criteria_named
from hoofbeat.judging.designs import ENOUGH
from hoofbeat.judging.humans import HUMAN_ASPECTS
from hoofbeat.judging.judgments_folder import KIND
from hoofbeat.models import Estimate, Model, load_encoder
from hoofbeat.models.session import Session
from hoofbeat.records import Judgment
from hoofbeat.store import Artefact, InputRef, check_target
from hoofbeat.store.artefact import file_reference

__all__ = ["command", "probe_figures"]


class _Wanted(Struct, frozen=True, kw_only=True):
    """The options, as given."""

    by: tuple[str, ...]
    conditions: tuple[str, ...]
    probes: tuple[str, ...]
    probe_size: int
    seed: int
    encoder: str
    idf: bool
    humans: tuple[Path, ...]
    aspect: str
    annotator: str


class _JudgeCommand(click.Command):
    """The verb; its help lists what can be judged, plugins included."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("What to judge (--by)"):
            asks = " (asks a model)"
            formatter.write_dl([(each.name, each.summary + asks * isinstance(each, Aspect)) for each in all_criteria()])


@click.command("judge", cls=_JudgeCommand)
@click.argument("answers", type=click.Path(path_type=Path), metavar="RUN_OR_JUDGED")
@click.option(
    "--by", multiple=True, metavar="ASPECT",
    help="What to judge, see below; several may be given. Without: choice for answers that choose an option, "
    "equivalence for the others.",
)  # fmt: skip
@click.option(
    "--condition", "conditions", multiple=True,
    help="Only answers under this condition; several may be given. Without: all, but failure-mode takes oracle only.",
)  # fmt: skip
@click.option(
    "--probe", "probes", multiple=True, type=click.Choice(PROBES), help="Probe the judges for bias on a sample."
)
@click.option("--probe-size", type=click.IntRange(1), default=50, show_default=True, help="Answers a probe is made on.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of what is drawn.")
@click.option("--encoder", default="minilm", show_default=True, help="Encoder of scorers that use one (bertscore).")
@click.option("--idf", is_flag=True, help="Weigh bertscore's tokens by how rare they are in the gold answers.")
@click.option(
    "--human", "humans", multiple=True, type=click.Path(path_type=Path),
    help="Take in people's labels from this CSV or JSONL file; several may be given. Without --by nothing is judged.",
)  # fmt: skip
@click.option(
    "--aspect", type=click.Choice(HUMAN_ASPECTS), default=EQUIVALENCE.name, show_default=True,
    help="What people's labels are about.",
)  # fmt: skip
@click.option("--annotator", default="", help="Who labelled, for files without that column.")
@click.option(
    "--sample-for-humans", "sample", type=click.IntRange(1), metavar="N",
    help="Write a blinded CSV sheet of N answers for people to label, and stop.",
)  # fmt: skip
@click.option(
    "-o", "--output", type=click.Path(path_type=Path),
    help="Folder for the result [default: judged]; with --sample-for-humans the sheet [default: labels.csv].",
)  # fmt: skip
@calling_options_of_several
def command(answers: Path, sample: int | None, output: Path | None, calling: Calling, **options: object) -> None:
    """Judge the answers of a run, or add judgments to those of a folder.

    With several --model the majority decides, and every vote is kept. A model is loaded only for what asks one, and
    for probes.
    """
    wanted = _Wanted(**options)  # type: ignore[arg-type]
    screen = calling.screen()
    folder = AnswerFolder.open(answers)
    if sample is not None:
        _write_sheet(screen, folder, wanted, sample, output or Path("labels.csv"))
        return
    target = output or Path("judged")
    check_target(target.resolve(), KIND)
    aspects = _aspects(folder, wanted)
    people = _humans(screen, folder, wanted)
    asking = bool(wanted.probes) or any(isinstance(each, Aspect) for each in criteria_named(aspects))
    with calling.open() as session:
        judges = _judges(session, calling.model_specs) if asking else ()
        job = Job(
            aspects=aspects,
            judges=judges,
            conditions=wanted.conditions,
            encoder=lambda: load_encoder(wanted.encoder, model=session.model),
            idf=wanted.idf,
            probes=wanted.probes,
            probe_size=wanted.probe_size,
            seed=wanted.seed,
            humans=people.judgments,
            files=people.files,
        )
        _say_what(screen, folder, job)
        if calling.only_estimate:
            parts = Judging(folder, job).estimates()
            screen.estimate(sum(parts.values(), start=Estimate()), parts=parts)
            return
        artefact = judge_folder(
            folder, job, target, inputs=people.inputs, command=command_words(), summarise=probe_figures, progress=screen
        )
        screen.calls(*judges)
        _show(screen, artefact)
        screen.finish(artefact, next_step=("hoofbeat", "report", target, "-o", "report"))


def _aspects(folder: AnswerFolder, wanted: _Wanted) -> tuple[str, ...]:
    """What is judged now: nothing where only people's labels come in, or a judge is only probed."""
    if wanted.probes and not folder.survey.texts:
        raise UsageError("judges are probed on free-text answers, and there are none", fix="leave --probe out")
    probing = bool(wanted.probes) and EQUIVALENCE.name in folder.aspects
    if not wanted.by and (wanted.humans or probing):
        return ()
    return choose_aspects(folder, wanted.by)


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


class _People(Struct, frozen=True, kw_only=True):
    """What people said: their labels as judgments, the files these came from, and those that were read for it."""

    judgments: tuple[Judgment, ...] = ()
    files: tuple[LabelFile, ...] = ()
    inputs: tuple[InputRef, ...] = ()


def _humans(screen: Screen, folder: AnswerFolder, wanted: _Wanted) -> _People:
    if not wanted.humans:
        return _People()
    found, files = {}, []
    read: dict[Path, str] = {}
    for path in wanted.humans:
        labels, empty = read_labels(path, annotator=wanted.annotator)
        found[path] = labels
        read[path] = "labels"
        if empty:
            screen.say(f"note: {empty} lines of {path.name} have no label yet and are left out")
        drawn = design_of(path, (label.item for label in labels))
        if drawn is None:
            screen.say(
                f"note: how the answers of {path.name} were chosen is not known (no design lies beside it); scores "
                "corrected by them are right only if they were drawn at random"
            )
        else:
            read.setdefault(drawn[0].resolve(), "design")
        design = drawn[1] if drawn else None
        files.append(LabelFile(file=path.name, aspect=wanted.aspect, labels=len(labels), design=design))
    made = human_judgments(folder, found, wanted.aspect)
    people = sorted({each.judge for each in made})
    screen.say(f"{len(made)} labels of {wanted.aspect} by {', '.join(people)}")
    inputs = [file_reference(path, kind) for path, kind in read.items()]
    return _People(judgments=tuple(made), files=tuple(files), inputs=tuple(inputs))


def _say_what(screen: Screen, folder: AnswerFolder, job: Job) -> None:
    """What a reader should know before the figures: who judges, and which answers are left out."""
    for spec in own_judges(folder, job.judges):
        screen.say(f"note: the judge {spec} is a model that answered; a model tends to agree with itself")
    if job.judges and len(job.judges) % 2 == 0:
        screen.say(f"note: {len(job.judges)} judges can tie; answers on which they do are unscored")
    for each in criteria_named(job.aspects):
        if isinstance(each, Aspect) and each.conditions and not job.conditions:
            which = f"{'wrong ' if each.explains else ''}answers under {', '.join(each.conditions)}"
            screen.say(f"note: {each.name} is asked of {which} only; --condition names others")


def _write_sheet(screen: Screen, folder: AnswerFolder, wanted: _Wanted, count: int, path: Path) -> None:
    check_file(path, ".csv")
    for each in (path, design_path(path)):
        if each.exists():
            raise OutputError(
                "a file stands there, and it may belong to labels", where=str(each), fix="name another file with -o"
            )
    if len(wanted.by) > 1:
        raise UsageError("a sheet asks for one aspect", fix="give --by once")
    aspect = wanted.by[0] if wanted.by else wanted.aspect
    design = write_sheet(folder, aspect, count, path, seed=wanted.seed)
    warnings = _thin(design)
    if screen.as_json:
        told = {"sheet": str(path), "design": str(design_path(path)), "rows": design.drawn, "seed": design.seed}
        strata = [msgspec.to_builtins(each) for each in design.strata]
        screen.emit({**told, "inclusion": design.inclusion, "strata": strata, "warnings": warnings})
        return
    rows = [
        [f"{each.model} / {each.condition} / {each.judged}", str(each.answers), str(each.drawn)]
        for each in design.strata
    ]
    screen.table(("model / condition / judged", "answers", "drawn"), rows)
    for warning in warnings:
        screen.say(f"note: {warning}")
    click.echo(f"sheet: {path} ({design.drawn} answers to label); how they were drawn: {design_path(path).name}")
    screen.say(f"next: fill in label and annotator, then hoofbeat judge {folder.artefact.path} --human {path}")


def _thin(design: SheetDesign) -> list[str]:
    """What to say of systems that get too few labels to be corrected one by one."""
    if not design.thin:
        return []
    smallest = min(answers for answers, _ in design.systems.values())
    enough = min(design.answers, math.ceil(ENOUGH * design.answers / smallest))
    return [
        f"{len(design.thin)} of {len(design.systems)} systems get fewer than {ENOUGH} answers, which says little of "
        f"their corrected scores; a sheet of {enough} has {ENOUGH} of each"
    ]


def probe_figures(probes: Sequence[Probe]) -> list[dict[str, object]]:
    """What the probes show, a row for each probe and judge: the flip rate and shares, each with Wilson's interval."""
    rows: list[dict[str, object]] = []
    for each in flips(probes):
        row: dict[str, object] = {
            "probe": each.probe,
            "judge": each.judge,
            "n": each.n,
            "flips": each.flips,
            **_share("flip_rate", each.flips, each.n),
            "to_equivalent": each.to_equivalent,
            "to_mismatch": each.to_mismatch,
            "unscored": each.unscored,
        }
        if each.probe == "length":
            row |= {**_share("equivalent_short", *each.short), "n_short": each.short[1]}
            row |= {**_share("equivalent_long", *each.long), "n_long": each.long[1]}
        rows.append(row)
    return rows


def _share(name: str, count: int, n: int) -> dict[str, object]:
    interval = wilson(count, n)
    return {name: count / n if n else None, f"{name}_low": interval.low, f"{name}_high": interval.high}


def _show(screen: Screen, artefact: Artefact) -> None:
    """The labels of every aspect, and what the probes show."""
    if screen.as_json:
        return
    labels = artefact.manifest.metrics.get("labels")
    if isinstance(labels, dict):
        rows = [
            [str(aspect), ", ".join(f"{count} {label}" for label, count in counts.items())]
            for aspect, counts in labels.items()
        ]
        screen.table(("aspect", "judgments"), rows)
    short = artefact.manifest.metrics.get("missing_votes")
    for aspect, counts in short.items() if isinstance(short, dict) else ():
        told = ", ".join(f"{times} on {voted}" for voted, times in counts.items())
        screen.say(f"note: judges failed on {sum(counts.values())} judgments of {aspect}; these rest on votes: {told}")
    probes = artefact.manifest.metrics.get("probes")
    if isinstance(probes, list):
        screen.title("Does the verdict hang on what should not matter?")
        screen.table(
            ("probe of judge", "flipped", "95% interval", "to equivalent", "to mismatch", "unscored"),
            [_probe_row(row) for row in probes],
        )
        for row in probes:
            if row["probe"] == "length" and row["n_short"] and row["n_long"]:
                screen.say(
                    f"{row['judge']}: equivalent are {row['equivalent_short']:.0%} of the shorter and "
                    f"{row['equivalent_long']:.0%} of the longer half of the answers"
                )


def _probe_row(row: dict[str, float]) -> list[str]:
    return [
        f"{row['probe']}: {row['judge']}",
        f"{row['flips']} of {row['n']}",
        f"{row['flip_rate_low']:.1%} to {row['flip_rate_high']:.1%}" if row["n"] else "-",
        str(row["to_equivalent"]),
        str(row["to_mismatch"]),
        str(row["unscored"]),
    ]
