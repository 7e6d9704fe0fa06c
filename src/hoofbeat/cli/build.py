"""`hoofbeat build RECIPE CORPUS`: a benchmark from a corpus."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hoofbeat.benchmarks.benchmark import KIND
from hoofbeat.cli.console import FunnelRow, Screen
from hoofbeat.cli.session import Calling, calling_options, command_words, json_option, output_option
from hoofbeat.errors import BatchPending, UsageError, did_you_mean
from hoofbeat.recipes.recipe import Parameter, Recipe, find_recipe, parameters
from hoofbeat.registry import registry
from hoofbeat.store import Manifest, check_target
from hoofbeat.window import windows_of

if TYPE_CHECKING:
    from hoofbeat.recipes.build_plan import BuildEstimate


class _Recipes(click.Group):
    """The recipes as commands: each has its own parameters as options. A path to a Python file is one more."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *registry.names(Recipe)])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        own = super().get_command(ctx, cmd_name)
        if own is None and not cmd_name.endswith(".py") and cmd_name not in (known := self.list_commands(ctx)):
            raise UsageError(
                f"there is no recipe {cmd_name!r}",
                fix=f"{did_you_mean(cmd_name, known)}use one of: {', '.join(known)}; or the path of a Python file",
            )
        return own if own is not None else _command(find_recipe(cmd_name), cmd_name)


@click.group("build", cls=_Recipes)
def command() -> None:
    """Make a benchmark from a corpus by a recipe: one of a paper, or your own (the path of a Python file)."""


@command.command("teaching")
@click.argument("corpus", type=click.Path(path_type=Path))
@output_option("benchmark")
@json_option
def teaching_command(corpus: Path, output: Path, as_json: bool) -> None:
    """Use the questions that were written with the teaching cases in CORPUS. No model is called."""
    from hoofbeat.corpus import Corpus
    from hoofbeat.recipes import build_teaching

    screen = Screen(as_json=as_json)
    artefact = build_teaching(Corpus.open(corpus), output, command=command_words())
    screen.reasons(artefact.manifest.counts)
    screen.finish(artefact, next_step=("hoofbeat", "retrieve", output, "--with", "bm25 + dense"))


def _command(recipe: Recipe, name: str) -> click.Command:
    """The command of one recipe."""

    @click.command(name, help=f"{recipe.title}.\n\n{recipe.about}")
    @click.argument("corpus", type=click.Path(path_type=Path))
    @click.option(
        "--second-model", "second", help="Second model, for the steps that need another one [default: --model]."
    )
    @click.option(
        "--committee",
        multiple=True,
        help="Model of the committee, which some steps ask in turn. Repeat it for several models.",
    )
    @click.option("--encoder", default="minilm", show_default=True, help="Sentence encoder.")
    @click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed for everything random.")
    @click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the first N documents of the corpus.")
    @output_option("benchmark")
    @calling_options
    def build(
        corpus: Path,
        second: str | None,
        committee: tuple[str, ...],
        encoder: str,
        seed: int,
        limit: int | None,
        output: Path,
        calling: Calling,
        **given: str | None,
    ) -> None:
        from hoofbeat.corpus import Corpus
        from hoofbeat.recipes.build_plan import plan_build

        screen = calling.screen()
        opened = Corpus.open(corpus)
        if not calling.only_estimate:
            check_target(output.resolve(), KIND)
            calling.warn_if_tiny(screen, "build questions")
        with calling.open() as session:
            plan = plan_build(
                recipe,
                opened,
                session,
                model=calling.model_spec,
                second=second,
                committee=committee,
                encoder=encoder,
                seed=seed,
                limit=limit,
                parameters={key: value for key, value in given.items() if value is not None},
                estimating=calling.only_estimate,
                progress=screen,
            )
            if calling.only_estimate:
                _tell_estimate(screen, plan.estimate())
                return
            try:
                artefact = plan.write(output, command=command_words())
            except BatchPending as pending:
                _tell_funnel(screen, pending.details.get("funnel"), waiting=True)
                raise
            screen.calls(*plan.models)
            _tell_funnel(screen, artefact.manifest.metrics.get("funnel"))
            _tell_cuts(screen, artefact.manifest)
            screen.finish(artefact, next_step=("hoofbeat", "show", output))

    build.params += [_option(parameter) for parameter in parameters(recipe)]
    return build


def _tell_estimate(screen: Screen, found: BuildEstimate) -> None:
    if found.headline:
        (screen if screen.as_json else Screen(as_json=False, on_stdout=True)).say(found.headline)
    screen.estimate(found.estimate)
    screen.say(found.note)


def _tell_cuts(screen: Screen, manifest: Manifest) -> None:
    """Say how many texts were cut, and by which context windows."""
    cuts = manifest.metrics.get("cut to fit")
    entries = cuts.values() if isinstance(cuts, dict) else ()
    if texts := sum(entry["texts"] for entry in entries):
        windows = "; ".join(f"{role}: {window}" for role, window in windows_of(manifest.settings).items())
        screen.say(
            f"warning: {texts:,} texts were cut to fit a model's context window ({windows}). If a window is larger, "
            "set context in hoofbeat.toml."
        )


def _option(parameter: Parameter) -> click.Option:
    default = parameter.default
    told = f"{parameter.about} [default: {default}]" if default not in ("", None, (), []) else parameter.about
    flag = "--" + parameter.name.replace("_", "-")
    metavar = "|".join(parameter.choices) if parameter.choices else "VALUE"
    return click.Option([flag, parameter.name], default=None, metavar=metavar, help=told)


def _tell_funnel(screen: Screen, funnel: object, *, waiting: bool = False) -> None:
    """The counts of every step, then the reasons below them."""
    if not isinstance(funnel, list):
        return
    screen.title("From candidates to questions")
    screen.funnel([_funnel_row(stage) for stage in funnel if isinstance(stage, dict)], waiting=waiting)


def _funnel_row(stage: Mapping[str, Any]) -> FunnelRow:
    return FunnelRow(
        step=stage["step"],
        came=stage["in"],
        kept=stage["kept"],
        rejected=stage["rejected"],
        failed=stage["failed"],
        waiting=stage.get("waiting", 0),
        reasons={**stage["reasons"], **{f"failed: {kind}": count for kind, count in stage["failures"].items()}},
    )
