"""`hoofbeat audit validate`: packets for annotators out, their labels in, and how far the judge agrees with them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click
import msgspec
from msgspec import Struct

from hoofbeat.audit import Audit
from hoofbeat.audit.findings.relations import RelationLabels
from hoofbeat.audit.findings.validation_figures import validation
from hoofbeat.audit.findings.validation_folder import VALIDATION, write_tables
from hoofbeat.audit.validation.packet_labels import human_labels
from hoofbeat.audit.validation.packets import KIND as PACKETS
from hoofbeat.audit.validation.packets import Packets, label_counts, write_packets
from hoofbeat.audit.validation.validated_pairs import validated_pairs
from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import command_words, json_option
from hoofbeat.cli.validating import show_validation, summary
from hoofbeat.errors import UsageError
from hoofbeat.store import Counts, InputRef, Manifest, check_target, create, open_artefact
from hoofbeat.store.artefact import file_reference

__all__ = ["command"]


class _Wanted(Struct, frozen=True, kw_only=True):
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
def command(audit: Path, as_json: bool, **options: object) -> None:
    """Measure the judge of AUDIT by people.

    Without --labels, draw a stratified sample and write blinded packets for annotators; with --labels, take in what
    they gave back.
    """
    wanted = _Wanted(**options)  # type: ignore[arg-type]
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
    _write(screen, opened, wanted, wanted.packets)


def _write(screen: Screen, audit: Audit, wanted: _Wanted, target: Path) -> None:
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


def _take_in(screen: Screen, audit: Audit, wanted: _Wanted) -> None:
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
    counts, unlabelled = label_counts(audit)
    pairs = validated_pairs(audit, given, counts)
    figures = validation(
        [pair.rated for pair in pairs],
        counts,
        RelationLabels.of(audit.pack.labels),
        audit.pack.significance_levels,
        unlabelled=unlabelled,
        seed=wanted.seed,
    )
    inputs = _inputs(audit, wanted, packets)
    split = len([pair for pair in pairs if pair.reference.label is None])
    with create(wanted.output, replace_kind=VALIDATION) as draft:
        write_tables(draft.path, pairs, figures)
        draft.finish(
            Manifest(
                kind=VALIDATION,
                title=f"{len(given.annotators)} annotators, {len(pairs)} pairs",
                command=command_words(),
                inputs=inputs,
                settings={
                    "pack": audit.artefact.manifest.settings.get("pack", ""),
                    "audit": audit.artefact.path.name,
                    "mode": audit.mode,
                    "partial": wanted.partial,
                    "notes": list(given.notes),
                },
                seeds={"bootstrap": wanted.seed},
                models={
                    role: name
                    for role, name in audit.artefact.manifest.models.items()
                    if role.partition(":")[0] == "judge"
                },
                counts=Counts(
                    kept=len(pairs) - split, rejected=split, reasons={"no reference": split} if split else {}
                ),
                metrics=summary(figures),
            )
        )
    for note in given.notes:
        screen.say(f"note: {note}")
    artefact = open_artefact(wanted.output, VALIDATION)
    if not screen.as_json:
        show_validation(screen, figures)
    screen.finish(
        artefact,
        next_step=("hoofbeat", "report", audit.artefact.path, wanted.output, "-o", "report"),
        **({"figures": msgspec.to_builtins(figures), "notes": list(given.notes)} if screen.as_json else {}),
    )


def _inputs(audit: Audit, wanted: _Wanted, packets: Packets | None) -> list[InputRef]:
    """The audit, the packets where they were named, and every file of labels."""
    files = [*wanted.files, *([wanted.adjudicated] if wanted.adjudicated else [])]
    inputs = [audit.artefact.reference(), *([packets.artefact.reference()] if packets else [])]
    inputs += [file_reference(path, "labels") for path in files]
    return inputs
