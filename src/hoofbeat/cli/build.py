"""`hoofbeat build RECIPE CORPUS`: a benchmark from a corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import Calling, calling_options, command_words, json_option, output_option
from hoofbeat.errors import BatchPending
from hoofbeat.recipes.recipe import Parameter, Recipe, find_recipe, parameters
from hoofbeat.registry import registry
from hoofbeat.store import Manifest
from hoofbeat.window import windows_of


class _Recipes(click.Group):
    """The recipes as commands: each has its own parameters as options. A path to a Python file is one more."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *registry.names(Recipe)])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        own = super().get_command(ctx, cmd_name)
        return own if own is not None else _command(find_recipe(cmd_name), cmd_name)


@click.group("build", cls=_Recipes)
def command() -> None:
    """Make a benchmark from a corpus, by the recipe of a paper or by one of your own (the path of a Python file)."""


@command.command("teaching")
@click.argument("corpus", type=click.Path(path_type=Path))
@output_option("benchmark")
@json_option
def teaching_command(corpus: Path, output: Path, as_json: bool) -> None:
    """The questions planted in the teaching cases that CORPUS holds."""
    from hoofbeat.corpus import Corpus
    from hoofbeat.recipes import build_teaching

    screen = Screen(as_json=as_json)
    artefact = build_teaching(Corpus.open(corpus), output, command=command_words())
    for reason, count in artefact.manifest.counts.reasons.items():
        screen.say(f"rejected: {count} × {reason}")
    screen.finish(artefact, next_step=("hoofbeat", "retrieve", output, "--with", "bm25 + dense"))


def _command(recipe: Recipe, name: str) -> click.Command:
    """The command of one recipe."""

    @click.command(name, help=f"{recipe.title}.\n\n{recipe.about}")
    @click.argument("corpus", type=click.Path(path_type=Path))
    @click.option("--second-model", "second", help="A second model, for the steps that want another one.")
    @click.option("--committee", multiple=True, help="A model that steps ask in turn; give several.")
    @click.option("--encoder", default="minilm", show_default=True, help="The sentence encoder.")
    @click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of everything random.")
    @output_option("benchmark")
    @calling_options
    def build(
        corpus: Path,
        second: str | None,
        committee: tuple[str, ...],
        encoder: str,
        seed: int,
        output: Path,
        calling: Calling,
        **given: str | None,
    ) -> None:
        from hoofbeat.corpus import Corpus
        from hoofbeat.recipes.build_plan import plan_build

        screen = calling.screen()
        opened = Corpus.open(corpus)
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
                parameters={key: value for key, value in given.items() if value is not None},
                estimating=calling.only_estimate,
                progress=screen,
            )
            if calling.only_estimate:
                found = plan.estimate()
                screen.estimate(found.estimate)
                screen.say(found.note)
                return
            try:
                artefact = plan.write(output, command=command_words())
            except BatchPending as pending:
                _tell_funnel(screen, pending.details.get("funnel"), more=("waiting",))
                raise
            screen.calls(*plan.models)
            _tell_funnel(screen, artefact.manifest.metrics.get("funnel"))
            _tell_cuts(screen, artefact.manifest)
            screen.finish(artefact, next_step=("hoofbeat", "report", output, "-o", f"{output}-report"))

    build.params += [_option(parameter) for parameter in parameters(recipe)]
    return build


def _tell_cuts(screen: Screen, manifest: Manifest) -> None:
    """Say how many texts models saw only in part, and by which windows."""
    cuts = manifest.metrics.get("cut to fit")
    entries = cuts.values() if isinstance(cuts, dict) else ()
    if texts := sum(entry["texts"] for entry in entries):
        windows = "; ".join(f"{role}: {window}" for role, window in windows_of(manifest.settings).items())
        screen.say(
            f"warning: {texts} texts were cut to fit a model's window ({windows}); if a window is larger, set context "
            "in hoofbeat.toml"
        )


def _option(parameter: Parameter) -> click.Option:
    default = parameter.default
    told = f"{parameter.about} [default: {default}]" if default not in ("", None, (), []) else parameter.about
    flag = "--" + parameter.name.replace("_", "-")
    metavar = "|".join(parameter.choices) if parameter.choices else "VALUE"
    return click.Option([flag, parameter.name], default=None, metavar=metavar, help=told)


def _tell_funnel(screen: Screen, funnel: object, *, more: Sequence[str] = ()) -> None:
    from hoofbeat.recipes.benchmark_output import FUNNEL_HEADER

    header = (*FUNNEL_HEADER, *more)
    if isinstance(funnel, list):
        rows = [[_cell(stage, name) for name in header] for stage in funnel if isinstance(stage, dict)]
        screen.title("From candidates to questions")
        screen.table(header, rows)


def _cell(stage: Mapping[str, object], name: str) -> str:
    value = stage[name]
    return "; ".join(f"{n} {reason}" for reason, n in value.items()) if isinstance(value, dict) else str(value)
