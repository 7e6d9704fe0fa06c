"""`hoofbeat audit trial`: pairs whose relation is known are put to a judge before it is trusted with an audit."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import click
import msgspec

from hoofbeat.audit.findings.relations import RelationLabels
from hoofbeat.audit.findings.trial_figures import trial_figures
from hoofbeat.audit.judge_trial import KIND, PAIRS, PROMPT, estimate_trial, pack_label, put_to_judge, trial_pairs
from hoofbeat.cli.session import Calling, calling_options_of_judge, command_words, output_option
from hoofbeat.cli.trying import show_trial
from hoofbeat.prompts import load_pack, load_prompt
from hoofbeat.store import Counts, Manifest, check_target, create, open_artefact
from hoofbeat.store.tables import write_jsonl

__all__ = ["command"]


@click.command("trial")
@click.option("--pack", "pack_spec", default="transplant", show_default=True,
              help="Domain pack whose teaching example is used, or the path of a .toml file of its name.")  # fmt: skip
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True,
              help="At most so many pairs, as many of each label as there are.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the draw and of intervals.")
@output_option(KIND)
@calling_options_of_judge
def command(pack_spec: str, limit: int, seed: int, output: Path, calling: Calling) -> None:
    """Put pairs of answers whose relation is known to a judge, in both orders.

    They are invented: the teaching example of a domain pack.
    """
    screen = calling.screen()
    pack = load_pack(pack_spec)
    check_target(output.resolve(), KIND)
    drawn = trial_pairs(pack, limit=limit, seed=seed)
    with calling.open() as session:
        model = session.model(calling.model_spec)
        if calling.only_estimate:
            screen.estimate(estimate_trial(model, drawn, pack))
            return
        pairs = put_to_judge(model, drawn, pack, progress=screen)
        figures = trial_figures(pairs, RelationLabels.of(pack.labels), seed=seed)
        failures = Counter(pair.said.failure.kind for pair in pairs if pair.said and pair.said.failure)
        with create(output, replace_kind=KIND) as draft:
            write_jsonl(draft.path / PAIRS, pairs)
            draft.finish(
                Manifest(
                    kind=KIND,
                    title=f"{len(pairs)} pairs of known relation",
                    command=command_words(),
                    inputs=[],
                    settings={"pack": pack_label(pack), "limit": limit},
                    seeds={"draw": seed, "bootstrap": seed},
                    models={"judge": model.identity},
                    prompts={PROMPT: load_prompt(PROMPT).label},
                    counts=Counts(
                        kept=len(pairs) - failures.total(),
                        failed=failures.total(),
                        failures=dict(sorted(failures.items())),
                    ),
                    cost=model.cost,
                    metrics=msgspec.to_builtins(figures),
                )
            )
        screen.calls(model)
        if not screen.as_json:
            show_trial(screen, figures)
        step = ("hoofbeat", "audit", "SOURCES", "QUESTIONS", "--pack", pack_spec, "--judge", model.spec)
        more: dict[str, Any] = {"verdict": figures.verdict} if screen.as_json else {}
        screen.finish(open_artefact(output, KIND), next_step=(*step, "--trial", output), **more)
