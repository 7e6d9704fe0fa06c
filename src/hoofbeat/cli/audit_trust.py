"""`hoofbeat audit trial`, `validate` and `ablate`: how far an audit's judge can be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import msgspec
from msgspec import Struct

from hoofbeat.audit import Audit
from hoofbeat.audit.findings.validation_folder import ABLATION, VALIDATION
from hoofbeat.audit.judge_trial import KIND as TRIAL
from hoofbeat.audit.judge_trial import estimate_trial, put_to_judge, trial_pairs, write_trial
from hoofbeat.audit.validation.label_only import ablate_judge, ablation_sample, estimate_both
from hoofbeat.audit.validation.packets import KIND as PACKETS
from hoofbeat.audit.validation.packets import Packets, write_packets
from hoofbeat.audit.validation.people_validation import human_labels, validate_audit
from hoofbeat.cli.audit_output import show_protocols, show_trial, show_validation
from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import (
    Calling,
    calling_options,
    calling_options_of_judge,
    command_words,
    json_option,
    output_option,
)
from hoofbeat.errors import UsageError
from hoofbeat.prompts import load_pack
from hoofbeat.store import check_target, open_artefact


@click.command("trial")
@click.option("--pack", "pack_spec", default="transplant", show_default=True,
              help="Domain pack whose teaching example is used, or the path of a .toml file of its name.")  # fmt: skip
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True,
              help="At most so many pairs, as many of each label as there are.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the draw and of intervals.")
@output_option(TRIAL)
@calling_options_of_judge
def trial_command(pack_spec: str, limit: int, seed: int, output: Path, calling: Calling) -> None:
    """Put pairs of answers whose relation is known to a judge, in both orders.

    They are invented: the teaching example of a domain pack.
    """
    screen = calling.screen()
    pack = load_pack(pack_spec)
    check_target(output.resolve(), TRIAL)
    drawn = trial_pairs(pack, limit=limit, seed=seed)
    with calling.open() as session:
        model = session.model(calling.model_spec)
        if calling.only_estimate:
            screen.estimate(estimate_trial(model, drawn, pack))
            return
        pairs = put_to_judge(model, drawn, pack, progress=screen)
        artefact, figures = write_trial(pairs, pack, model, output, limit=limit, seed=seed, command=command_words())
        screen.calls(model)
        if not screen.as_json:
            show_trial(screen, figures)
        step = ("hoofbeat", "audit", "SOURCES", "QUESTIONS", "--pack", pack_spec, "--judge", model.spec)
        more: dict[str, Any] = {"verdict": figures.verdict} if screen.as_json else {}
        screen.finish(artefact, next_step=(*step, "--trial", output), **more)


class _ValidateOptions(Struct, frozen=True, kw_only=True):
    """The options, as given."""

    packets: Path | None
    annotators: int
    per_label: int
    of_label: tuple[str, ...]
    seed: int
    files: tuple[Path, ...]
    adjudicated: Path | None
    partial: bool
    output: Path


@click.command("validate")
@click.argument("audit", type=click.Path(path_type=Path))
@click.option("--packets", type=click.Path(path_type=Path), metavar="FOLDER",
              help="Folder for the packets; with --labels, the packets that the labels are of.")  # fmt: skip
@click.option("--annotators", type=click.IntRange(1, 50), default=2, show_default=True, help="Packets to write.")
@click.option("--per-label", type=click.IntRange(0), default=40, show_default=True, help="Pairs drawn of every label.")
@click.option("--label", "of_label", multiple=True, metavar="LABEL=N",
              help="Draw N of this label instead; several may be given.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the draw and of intervals.")
@click.option("--labels", "files", multiple=True, type=click.Path(path_type=Path), metavar="FILE",
              help="What an annotator gave back, CSV or JSONL; once for each.")  # fmt: skip
@click.option("--adjudicated", type=click.Path(path_type=Path), metavar="FILE",
              help="Labels settled between annotators; they count before the majority.")  # fmt: skip
@click.option("--partial", is_flag=True, help="Take in files in which items have no label.")
@click.option("-o", "--output", type=click.Path(path_type=Path), default=Path("validation"), show_default=True,
              help="Folder for the result.")  # fmt: skip
@json_option
def validate_command(audit: Path, as_json: bool, **options: object) -> None:
    """Measure the judge of AUDIT by people.

    Without --labels, draw a stratified sample and write blinded packets for annotators; with --labels, take in what
    they gave back.
    """
    wanted = _ValidateOptions(**options)  # type: ignore[arg-type]
    screen = Screen(as_json=as_json)
    opened = Audit.open(audit)
    if wanted.files:
        _take_in(screen, opened, wanted)
        return
    if wanted.adjudicated is not None:
        raise UsageError("--adjudicated goes with the annotators' files", fix="give those, too: --labels")
    if wanted.packets is None:
        raise UsageError(
            "there is nothing to do", fix="name a folder for packets (--packets), or the annotators' files (--labels)"
        )
    _write_packets(screen, opened, wanted, wanted.packets)


def _write_packets(screen: Screen, audit: Audit, wanted: _ValidateOptions, target: Path) -> None:
    check_target(target.resolve(), PACKETS)
    _refuse_filled(target)
    artefact = write_packets(
        audit,
        target,
        annotators=wanted.annotators,
        per_label=wanted.per_label,
        of_label=_numbers(wanted.of_label),
        seed=wanted.seed,
        command=command_words(),
        progress=screen,
    )
    design = Packets(artefact).design
    if not screen.as_json:
        rows = [
            [row.label, f"{row.pairs:,}", f"{row.drawn:,}", f"{row.weight:,.1f}" if row.weight else "-"]
            for row in design.strata
        ]
        screen.table(("label", "pairs", "drawn", "each stands for"), rows)
        if design.unlabelled:
            screen.say(f"note: {design.unlabelled:,} pairs have no label and are not drawn from")
        screen.say(f"give each annotator their folder in {target}, and keep {target / 'key'} to yourself")
    labels = [word for name in design.annotators for word in ("--labels", f"{name}.csv")]
    step = ("hoofbeat", "audit", "validate", audit.artefact.path, "--packets", target, *labels)
    screen.finish(artefact, next_step=step)


def _refuse_filled(target: Path) -> None:
    """Packets that somebody has filled in are never written over."""
    if not (target / "manifest.json").exists():
        return
    changed = open_artefact(target, PACKETS).verify()
    if changed:
        raise UsageError(
            f"packets stand there, and they may hold labels: {changed[0]}",
            where=str(target),
            fix="name another folder",
        )


def _numbers(given: tuple[str, ...]) -> Mapping[str, int]:
    found = {}
    for text in given:
        name, separator, number = text.rpartition("=")
        if not separator or not number.strip().isdecimal():
            raise UsageError(f"--label takes LABEL=N, not {text!r}", fix="for example --label Contradictory=80")
        found[name.strip()] = int(number)
    return found


def _take_in(screen: Screen, audit: Audit, wanted: _ValidateOptions) -> None:
    check_target(wanted.output.resolve(), VALIDATION)
    packets = Packets.open(wanted.packets) if wanted.packets is not None else None
    given = human_labels(
        audit,
        wanted.files,
        adjudicated=wanted.adjudicated,
        packets=packets,
        partial=wanted.partial,
        progress=screen,
    )
    artefact, figures = validate_audit(
        audit,
        given,
        wanted.output,
        files=[*wanted.files, *([wanted.adjudicated] if wanted.adjudicated else [])],
        packets=packets,
        partial=wanted.partial,
        seed=wanted.seed,
        command=command_words(),
    )
    for note in given.notes:
        screen.say(f"note: {note}")
    if not screen.as_json:
        show_validation(screen, figures)
    screen.finish(
        artefact,
        next_step=("hoofbeat", "report", audit.artefact.path, wanted.output, "-o", "report"),
        **({"figures": msgspec.to_builtins(figures), "notes": list(given.notes)} if screen.as_json else {}),
    )


@click.command("ablate")
@click.argument("audit", type=click.Path(path_type=Path))
@click.option("--per-label", type=click.IntRange(1), default=40, show_default=True, help="Pairs drawn of every label.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the draw and of intervals.")
@click.option("--order", is_flag=True, help="Judge every pair with its answers exchanged, too.")
@click.option("--validation", "validated", type=click.Path(path_type=Path), metavar="FOLDER",
              help="Judge the pairs that people labelled there instead, and set both ways against people.")  # fmt: skip
@output_option("ablation")
@calling_options
def ablate_command(
    audit: Path, per_label: int, seed: int, order: bool, validated: Path | None, output: Path, calling: Calling
) -> None:
    """Judge a sample of AUDIT's pairs in one structured call and with the label alone, and compare."""
    screen = calling.screen()
    opened = Audit.open(audit)
    check_target(output.resolve(), ABLATION)
    items, counts, inputs = ablation_sample(opened, per_label, seed, validated, screen)
    with calling.open() as session:
        model = session.model(calling.model_spec)
        if calling.only_estimate:
            screen.estimate(estimate_both(model, items, opened.pack, order=order))
            return
        artefact, figures = ablate_judge(
            opened,
            items,
            counts,
            model,
            output,
            seed=seed,
            settings={"per_label": None if validated else per_label, "order": order},
            inputs=inputs,
            command=command_words(),
            progress=screen,
        )
        screen.calls(model)
        if not screen.as_json:
            show_protocols(screen, figures)
        screen.finish(
            artefact,
            next_step=("hoofbeat", "report", opened.artefact.path, output, "-o", "report"),
            **({"figures": msgspec.to_builtins(figures)} if screen.as_json else {}),
        )
