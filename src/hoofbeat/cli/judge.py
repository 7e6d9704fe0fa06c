"""`hoofbeat judge`: judgments of a run's answers by models, by measures and by people."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from hoofbeat.cli.console import Screen, note_target
from hoofbeat.cli.injections import show_injections
from hoofbeat.cli.session import (
    Calling,
    calling_options_of_several,
    check_file,
    command_words,
    output_option,
    refuse_other_inputs,
)
from hoofbeat.errors import OutputError, UsageError
from hoofbeat.findings.injection_figures import InjectionFigures
from hoofbeat.judging import PROBES, AnswerFolder, Aspect, all_criteria, design_path, write_sheet
from hoofbeat.judging.aspects.equivalence import EQUIVALENCE
from hoofbeat.judging.catalogue import human_aspects
from hoofbeat.judging.judge_plan import plan_judging, vote_notes
from hoofbeat.judging.judgments_folder import KIND
from hoofbeat.judging.probes import INJECTION
from hoofbeat.models import Estimate
from hoofbeat.store import Artefact, check_target


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
    help="What to judge, see below. Repeat it for several. [default: choice for answers that choose an option, "
    "equivalence for the others]",
)  # fmt: skip
@click.option(
    "--condition", "conditions", multiple=True,
    help="Only answers under this condition. Repeat it for several. [default: all; failure-mode: oracle only]",
)  # fmt: skip
@click.option(
    "--benchmark", type=click.Path(path_type=Path),
    help="Use the right answers of this later version of the benchmark, with answers accepted since.",
)  # fmt: skip
@click.option(
    "--probe",
    "probes",
    multiple=True,
    type=click.Choice(PROBES),
    help="Test the judges for bias on a sample; injection: whether they obey instructions inside answers.",
)
@click.option(
    "--probe-size", type=click.IntRange(1), default=50, show_default=True, help="Number of answers in that sample."
)
@click.option(
    "--canary", is_flag=True,
    help="Put a code into every prompt, and count a reply only if it repeats the code. A judge that obeys the text of "
    "an answer instead of the prompt does not.",
)  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed for all random draws.")
@click.option("--encoder", default="minilm", show_default=True, help="Encoder for bertscore.")
@click.option("--idf", is_flag=True, help="bertscore: weight tokens by how rare they are in the gold answers.")
@click.option("--layer", default="auto", show_default=True,
              help="bertscore: layer to compare; a number, last, or auto (as bert_score chooses).")  # fmt: skip
@click.option("--baseline", type=click.Path(path_type=Path, dir_okay=False),
              help="bertscore: rescale by this baseline file of bert_score (LAYER,P,R,F).")  # fmt: skip
@click.option(
    "--human", "humans", multiple=True, type=click.Path(path_type=Path),
    help="Add people's labels from this CSV or JSONL file. Repeat it for several. Without --by nothing else is judged.",
)  # fmt: skip
@click.option(
    "--aspect", type=click.Choice(tuple(human_aspects())), default=EQUIVALENCE.name, show_default=True,
    help="Which aspect people labelled.",
)  # fmt: skip
@click.option("--annotator", default="", help="Who labelled, if the file has no such column.")
@click.option(
    "--sample-for-humans", "sample", type=click.IntRange(1), metavar="N",
    help="Write a blinded CSV sheet of N answers for people to label, and stop.",
)  # fmt: skip
@output_option(
    None, help="Folder for the result [default: judged]; with --sample-for-humans the sheet [default: labels.csv]."
)
@calling_options_of_several
def command(answers: Path, sample: int | None, output: Path | None, calling: Calling, **options: Any) -> None:
    """Judge the answers of a run and print a leaderboard; or add judgments to a folder of judgments.

    For rankings whose queries a model wrote, Hoofbeat judges the hypothetical answers that were searched for.

    With several --model the majority decides, and every vote is kept. Scorers that need no model load none.
    """
    screen = calling.screen()
    from hoofbeat.cli.results import show_leaderboard
    from hoofbeat.judging.query_answers import open_answers

    folder = open_answers(answers)
    if sample is not None:
        criteria = options["by"] or (options["aspect"],)
        _write_sheet(screen, folder, criteria, sample, output or Path("labels.csv"), options["seed"])
        return
    target = output or Path("judged")
    note_target(click.get_current_context(), target)
    check_target(target.resolve(), KIND)
    with calling.open() as session:
        plan = plan_judging(folder, session, models=calling.model_specs, **options)
        for note in plan.notes:
            screen.say(note)
        if plan.job.judges and not calling.only_estimate:
            calling.warn_if_tiny(screen, "judge answers")
        if calling.only_estimate:
            parts = plan.estimates()
            screen.estimate(sum(parts.values(), start=Estimate()), parts=parts)
            return
        if output is None:
            refuse_other_inputs(click.get_current_context(), target)
        artefact = plan.write(target, command=command_words(), progress=screen)
        screen.calls(*plan.job.judges)
        _show(screen, artefact)
        show_leaderboard(screen, artefact)
        screen.finish(artefact, next_step=("hoofbeat", "report", target, "-o", "report"))


def _write_sheet(
    screen: Screen, folder: AnswerFolder, criteria: Sequence[str], count: int, path: Path, seed: int
) -> None:
    check_file(path, ".csv")
    for each in (path, design_path(path)):
        if each.exists():
            raise OutputError(
                "Not overwritten: this file may hold labels", where=str(each), fix="name another file with -o"
            )
    if len(criteria) > 1:
        raise UsageError("a sheet can ask for one aspect only", fix="give --by once")
    design = write_sheet(folder, criteria[0], count, path, seed=seed)
    warnings = design.warnings()
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
    click.echo(f"Drew {design.drawn:,} answers to label → {path} (how they were drawn: {design_path(path).name})")
    screen.line(f"next: fill in label and annotator, then hoofbeat judge {folder.artefact.path} --human {path}")


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
    for note in vote_notes(artefact.manifest):
        screen.say(note)
    probes = artefact.manifest.metrics.get("probes")
    if isinstance(probes, list):
        screen.title("Does the verdict depend on things that should not matter?")
        screen.table(
            ("probe of judge", "flipped", "95% interval", "to equivalent", "to mismatch", "not scored"),
            [_probe_row(row) for row in probes],
        )
        for row in probes:
            if row["probe"] == "length" and row["n_short"] and row["n_long"]:
                screen.say(
                    f"{row['judge']}: judged equivalent {row['equivalent_short']:.0%} of the shorter half of "
                    "the answers "
                    f"and {row['equivalent_long']:.0%} of the longer half"
                )
            if row["probe"] == INJECTION:
                show_injections(screen, [msgspec.convert(row["injections"], InjectionFigures)])


def _probe_row(row: dict[str, float]) -> list[str]:
    return [
        f"{row['probe']}: {row['judge']}",
        f"{row['flips']} of {row['n']}",
        f"{row['flip_rate_low']:.1%} to {row['flip_rate_high']:.1%}" if row["n"] else "-",
        str(row["to_equivalent"]),
        str(row["to_mismatch"]),
        str(row["unscored"]),
    ]
