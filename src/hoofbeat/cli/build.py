"""`hoofbeat build RECIPE CORPUS`: a benchmark from a corpus."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import Calling, calling_options, command_words, json_option, output_option
from hoofbeat.corpus import Corpus
from hoofbeat.errors import InputError, UsageError
from hoofbeat.models import Estimate, Model, load_encoder
from hoofbeat.recipes import build_teaching
from hoofbeat.recipes.benchmark_output import FUNNEL_HEADER, build_benchmark, estimate_calls
from hoofbeat.recipes.context import RecipeContext, RecipeSettings
from hoofbeat.recipes.recipe import Parameter, Recipe, find_recipe, parameters, read_settings
from hoofbeat.recipes.steps import UNLIMITED, StepEstimate
from hoofbeat.registry import registry
from hoofbeat.store import Artefact

__all__ = ["command"]


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
        screen = calling.screen()
        settings = read_settings(recipe, {key: value for key, value in given.items() if value is not None})
        opened = Corpus.open(corpus)
        with calling.open() as session:
            specs = {"model": calling.model_spec, **({"second": second} if second else {})}
            if len(set(committee)) < len(committee):
                raise UsageError("a model can't sit in the committee twice", fix="name each --committee model once")
            specs |= {f"committee-{number}": spec for number, spec in enumerate(committee, start=1)}
            loaded: dict[str, Model] = {spec: session.model(spec) for spec in dict.fromkeys(specs.values())}
            context = RecipeContext(
                opened,
                settings,
                models={role: loaded[spec] for role, spec in specs.items()},
                encoder=lambda: load_encoder(encoder),
                seed=seed,
                progress=screen,
                estimating=calling.only_estimate,
            )
            if calling.only_estimate:
                _tell_estimate(screen, recipe, settings, estimate_calls(recipe, context))
                return
            artefact = build_benchmark(recipe, context, output, command=command_words(), files=_files(settings))
            for model in loaded.values():
                screen.calls(model)
            _tell_funnel(screen, artefact)
            screen.finish(artefact, next_step=("hoofbeat", "report", output, "-o", f"{output}-report"))

    build.params += [_option(parameter) for parameter in parameters(recipe)]
    return build


def _option(parameter: Parameter) -> click.Option:
    default = parameter.default
    told = f"{parameter.about} [default: {default}]" if default not in ("", None, (), []) else parameter.about
    flag = "--" + parameter.name.replace("_", "-")
    metavar = "|".join(parameter.choices) if parameter.choices else "VALUE"
    return click.Option([flag, parameter.name], default=None, metavar=metavar, help=told)


def _files(settings: RecipeSettings) -> list[Path]:
    """The files that parameters name; one that is missing is said before anything is done."""
    names: tuple[str, ...] = getattr(settings, "FILES", ())
    given = [getattr(settings, name) for name in names]
    listed = [value for each in given for value in ([each] if isinstance(each, str) else each)]
    paths = [Path(value) for value in listed if value]
    for path in paths:
        if not path.is_file():
            raise InputError("there is no such file", where=str(path), fix="check the path")
    return paths


def _tell_estimate(screen: Screen, recipe: Recipe, settings: RecipeSettings, found: StepEstimate | None) -> None:
    if found is None:
        screen.estimate(Estimate(calls=0, cached=0, tokens_in=0, max_tokens_out=0, max_money=None))
        screen.say("every call this recipe needs is in the ledger already")
        return
    screen.estimate(found.estimate)
    later = list(recipe.steps(settings))
    place = next(number for number, step in enumerate(later) if step.name == found.step)
    calls = [step.calls for step in later[place + 1 :]]
    bound = f"at most {sum(calls) * found.items}" if max(calls, default=0) < UNLIMITED else "no set number of"
    screen.say(
        f"this is for the step “{found.step}” ({found.items} items); the steps after it make {bound} more calls, "
        "besides repairs"
    )


def _tell_funnel(screen: Screen, artefact: Artefact) -> None:
    funnel = artefact.manifest.metrics.get("funnel")
    if isinstance(funnel, list):
        rows = [[_cell(stage, name) for name in FUNNEL_HEADER] for stage in funnel if isinstance(stage, dict)]
        screen.title("From candidates to questions")
        screen.table(FUNNEL_HEADER, rows)


def _cell(stage: Mapping[str, object], name: str) -> str:
    value = stage[name]
    return "; ".join(f"{n} {reason}" for reason, n in value.items()) if isinstance(value, dict) else str(value)
