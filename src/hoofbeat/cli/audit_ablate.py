"""`hoofbeat audit ablate`: a sample of pairs judged in one structured call, and with the label alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from hoofbeat.audit import Audit
from hoofbeat.audit.findings.protocol_comparison import compare_protocols
from hoofbeat.audit.findings.relations import RelationLabels
from hoofbeat.audit.findings.validation_folder import ABLATION, ValidationFolder, write_tables
from hoofbeat.audit.sample_records import Drawn
from hoofbeat.audit.validation.label_only import PROMPTS, TwoWays, estimate_both, judge_both_ways, pairs_to_judge
from hoofbeat.audit.validation.packets import draw_pairs
from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import Calling, calling_options, command_words, output_option
from hoofbeat.cli.validating import protocol_summary, show_protocols
from hoofbeat.errors import InputError, UsageError
from hoofbeat.models import Model
from hoofbeat.progress import Progress
from hoofbeat.prompts import load_prompt
from hoofbeat.store import Counts, InputRef, Manifest, check_target, create, open_artefact

__all__ = ["command"]


@click.command("ablate")
@click.argument("audit", type=click.Path(path_type=Path))
@click.option("--per-label", type=click.IntRange(1), default=40, show_default=True, help="Pairs drawn of every label.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the draw and of intervals.")
@click.option("--order", is_flag=True, help="Judge every pair with its answers exchanged, too.")
@click.option("--validation", "validated", type=click.Path(path_type=Path), metavar="FOLDER",
              help="Judge the pairs that people labelled there instead, and set both ways against people.")  # fmt: skip
@output_option("ablation")
@calling_options
def command(
    audit: Path, per_label: int, seed: int, order: bool, validated: Path | None, output: Path, calling: Calling
) -> None:
    """Judge a sample of AUDIT's pairs in one structured call and with the label alone, and compare."""
    screen = calling.screen()
    opened = Audit.open(audit)
    check_target(output.resolve(), ABLATION)
    items, counts, inputs = _items(opened, per_label, seed, validated, screen)
    with calling.open() as session:
        model = session.model(calling.model_spec)
        if calling.only_estimate:
            screen.estimate(estimate_both(model, items, opened.pack, order=order))
            return
        settings: dict[str, object] = {
            "pack": opened.artefact.manifest.settings.get("pack", ""),
            "audit": opened.artefact.path.name,
            "per_label": None if validated else per_label,
            "order": order,
        }
        _judge(screen, opened, (items, counts), model, output, seed=seed, settings=settings, inputs=inputs)


def _items(
    audit: Audit, per_label: int, seed: int, validated: Path | None, progress: Progress
) -> tuple[list[TwoWays], dict[str, int], list[InputRef]]:
    """The pairs to judge, all judged pairs by label, and the inputs."""
    labels = {label.name: per_label for label in audit.pack.judged}
    drawn, counts = draw_pairs(audit, labels, seed=seed, judged=True, progress=progress)
    inputs = [audit.artefact.reference()]
    references: dict[tuple[str, str, str], str] = {}
    if validated is not None:
        folder = ValidationFolder.open(validated)
        if folder.artefact.manifest.inputs[0].sha256 != inputs[0].sha256:
            raise InputError(
                "people labelled pairs of another audit there",
                where=str(validated),
                fix="name a validation of this one",
            )
        inputs.append(folder.artefact.reference())
        drawn, references = _labelled(folder, audit.pack.absent)
    if not drawn:
        raise UsageError(
            "there are no judged pairs to judge again", where=str(audit.artefact.path), fix="name another audit"
        )
    return pairs_to_judge(audit, drawn, references), counts, inputs


def _labelled(folder: ValidationFolder, absent: str) -> tuple[list[Drawn], dict[tuple[str, str, str], str]]:
    """The judged pairs that people have a reference for; absent ones and same texts never go to a judge."""
    pairs, references = [], {}
    for each in folder.pairs:
        rated = each.rated
        if each.reference.label is None or rated.judge == absent or rated.basis in {"absent", "same"}:
            continue
        pair = Drawn(
            question=rated.question,
            a=rated.a,
            b=rated.b,
            label=rated.judge,
            significance=rated.judge_significance,
            basis=rated.basis,
        )
        pairs.append(pair)
        references[pair.key] = each.reference.label
    return pairs, references


def _judge(
    screen: Screen,
    audit: Audit,
    sample: tuple[Sequence[TwoWays], dict[str, int]],
    model: Model,
    output: Path,
    *,
    seed: int,
    settings: dict[str, object],
    inputs: list[InputRef],
) -> None:
    items, counts = sample
    rows, costs = judge_both_ways(model, items, audit.pack, order=bool(settings["order"]), progress=screen)
    domain, levels = RelationLabels.of(audit.pack.labels), audit.pack.significance_levels
    figures = compare_protocols(rows, counts, domain, levels, costs, seed=seed)
    failures: dict[str, int] = {}
    for row in rows:
        failure = row.structured.failure or row.label_only.failure
        if failure:
            failures[failure.kind] = failures.get(failure.kind, 0) + 1
    failed = sum(failures.values())
    with create(output, replace_kind=ABLATION) as draft:
        write_tables(draft.path, rows, figures)
        draft.finish(
            Manifest(
                kind=ABLATION,
                title=f"{len(rows)} pairs judged both ways",
                command=command_words(),
                inputs=inputs,
                settings=settings,
                seeds={"draw": seed, "bootstrap": seed},
                models={"judge": model.identity},
                prompts={name: load_prompt(name).label for name in PROMPTS},
                counts=Counts(kept=len(rows) - failed, failed=failed, failures=dict(sorted(failures.items()))),
                cost=model.cost,
                costs=dict(costs),
                metrics=protocol_summary(figures),
            )
        )
    screen.calls(model)
    if not screen.as_json:
        show_protocols(screen, figures)
    screen.finish(
        open_artefact(output, ABLATION),
        next_step=("hoofbeat", "report", audit.artefact.path, output, "-o", "report"),
        **({"figures": msgspec.to_builtins(figures)} if screen.as_json else {}),
    )
