"""What commands say of trials: the figures as small tables, and whether an audit's judge was tried."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import msgspec

from hoofbeat.audit.findings.relations import RelationLabels
from hoofbeat.audit.findings.trial_figures import SIDES, Trial, trial_figures
from hoofbeat.audit.judge_trial import KIND, TrialFolder
from hoofbeat.cli.console import Screen
from hoofbeat.errors import ArtefactError, InputError
from hoofbeat.findings.intervals import Interval
from hoofbeat.models import Model
from hoofbeat.prompts import Pack
from hoofbeat.store import InputRef
from hoofbeat.teaching import example_names

__all__ = ["figures_of", "say_untried", "show_trial", "trial_of"]

_INVENTED = "These pairs are invented. How the judge does on pairs of your own, people have to say: audit validate."


def figures_of(folder: TrialFolder, pack: Pack) -> Trial:
    """The figures of a trial's pairs, with the seed it was made with."""
    seed = folder.artefact.manifest.seeds.get("bootstrap", 0)
    return trial_figures(folder.pairs, RelationLabels.of(pack.labels), seed=seed)


def trial_of(path: Path, judge: Model, pack: Pack) -> tuple[dict[str, object], InputRef]:
    """The figures of a trial for the manifest of an audit, and the trial; one of another judge or pack is refused."""
    folder = TrialFolder.open(path)
    if not folder.is_of(judge, pack):
        raise InputError(
            "another judge, another pack or another prompt was tried there",
            where=str(path),
            fix=f"try this one: {_trial_command(judge, pack.name)}",
        )
    figures: dict[str, object] = msgspec.to_builtins(figures_of(folder, pack))
    return figures, folder.artefact.reference()


def say_untried(screen: Screen, judge: Model, pack: Pack, spec: str, output: Path) -> None:
    """Say that an audit goes on without a trial of its judge, and how to have one."""
    beside = next(_trials_beside(output, judge, pack), None)
    if beside is not None:
        screen.say(
            f"note: {beside} is a trial of this judge; with --trial {shlex.quote(str(beside))} the audit keeps it"
        )
    elif pack.name in example_names():
        screen.say(f"note: this judge was not tried on known pairs; to do so: {_trial_command(judge, spec)}")
    else:
        screen.say(f"note: this judge was not tried on known pairs; the pack {pack.name} has no teaching example")


def _trials_beside(output: Path, judge: Model, pack: Pack) -> Iterator[Path]:
    """Trials of this judge and pack in the folder in which the audit will stand."""
    for manifest in sorted(output.resolve().parent.glob("*/manifest.json")):
        try:
            folder = TrialFolder.open(manifest.parent)
        except ArtefactError:
            continue
        if folder.is_of(judge, pack):
            yield output.parent / manifest.parent.name


def _trial_command(judge: Model, pack: str) -> str:
    return shlex.join(["hoofbeat", "audit", KIND, "--judge", judge.spec, "--pack", pack, "-o", KIND])


def show_trial(screen: Screen, found: Trial) -> None:
    """Print a trial."""
    told, two_way = found.agreement, found.two_way
    screen.title("The judge beside planted relations")
    screen.table(
        (f"n = {found.n} pairs", "right", "share", "commonest label", "chance", "κ"),
        [
            ["all labels", f"{found.right}", _figure(told.accuracy, told.accuracy_interval),
             f"{found.commonest_share:.2f}", f"{found.chance:.2f}", _figure(told.kappa, told.kappa_interval)],
            [f"{SIDES[1]} or not", f"{found.two_way_right}", _figure(two_way.accuracy, two_way.accuracy_interval),
             f"{found.two_way_share:.2f}", "0.50", _figure(two_way.kappa, two_way.kappa_interval)],
            ["all labels, answers exchanged", f"{found.exchanged}", f"{found.exchanged / found.n:.2f}", "", "", ""],
            ["all labels, right in both orders", f"{found.both}", f"{found.both / found.n:.2f}", "", "", ""],
        ],
    )  # fmt: skip
    screen.title("By label")
    screen.table(
        ("planted", "pairs", *(f"said {label}" for label in told.labels), "no label", "precision", "recall"),
        [
            [score.label, f"{score.n:.0f}", *(f"{count}" for count in row), f"{score.n - sum(row):.0f}",
             _plain(score.precision), _plain(score.recall)]
            for score, row in zip(found.labels, told.confusion, strict=True)
        ],
    )  # fmt: skip
    flips = found.flips
    screen.say(
        f"with the answers exchanged, {flips.flips} of {flips.n} labels changed, {flips.crossing} of them between "
        f"diverging and not (95% interval of changes {flips.interval.low:.2f} to {flips.interval.high:.2f})"
    )
    if told.unscored or flips.unscored:
        screen.say(f"no label: {told.unscored} pairs, {flips.unscored} in one of the orders; they count as not right")
    screen.say(found.verdict)
    screen.say(_INVENTED)


def _figure(value: float | None, span: Interval | None) -> str:
    if value is None:
        return "-"
    return f"{value:.2f} ({span.low:.2f} to {span.high:.2f})" if span else f"{value:.2f}"


def _plain(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
