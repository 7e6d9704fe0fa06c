"""What the verbs share: options, the ledger, configuration, budget, the words of the command, and kinds of commands.

A verb can have others under its name. Options and help can list extensions, whose names are looked up when a command
runs or prints its help, because plugins bring more of them.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem
from msgspec import Struct

from hoofbeat.cli.console import Screen, note_target
from hoofbeat.errors import HoofbeatError, OutputError, UsageError
from hoofbeat.registry import Extension, registry

if TYPE_CHECKING:
    from hoofbeat.models import Model
    from hoofbeat.models.model import TextCheck
    from hoofbeat.models.model_loading import Session

F = TypeVar("F", bound=Callable[..., object])
T = TypeVar("T", str, int)
plot_option = click.option("--plot", type=click.Path(path_type=Path), help="Also draw it to this SVG file.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on standard output.")
edition_option = click.option(
    "--edition", default="", help="Another edition of the questions, such as original, free or image."
)
ledger_option = click.option(
    "--ledger",
    "ledger_path",
    metavar="FILE",
    help="Ledger file, or postgresql://USER@HOST/DATABASE [default: .hoofbeat/ledger.sqlite].",
)


def _choose_engine(context: click.Context, parameter: click.Parameter, value: str | None) -> None:  # noqa: ARG001
    """Run the command where `--on` says, or else `on` in the configuration, until it ends."""
    where = value or _configured(context.params.get("config_path"), "on", "")
    if where and where != "local":
        from hoofbeat.engine import running_on

        context.with_resource(running_on(where))


def _configured(named: Path | None, key: str, default: T) -> T:
    """What the configuration says; a file that can't be read is left to whoever needs more of it."""
    file = named or Path(os.environ.get("HOOFBEAT_CONFIG") or "hoofbeat.toml")
    if not file.is_file():
        return default
    from hoofbeat.trust import found_config, is_loopback, parse_toml

    try:
        found = parse_toml(file.read_text(encoding="utf-8")).get(key, default)
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        return default
    if type(found) is not type(default):
        what = "a text" if isinstance(default, str) else "a number"
        raise UsageError(f"{key} must be {what}", where=str(file), fix=f"write {key} = {_EXAMPLES[key]}")
    if isinstance(found, str) and found != default:
        config = found_config(named)[1]
        if config is not None and key == "index":
            config.need_place("keep indexes in", found)
        elif config is not None and "://" in found and not is_loopback(found):
            config.need(f"use {found} ({key})")
    return found


_EXAMPLES = {"on": '"ray"', "index": '"s3://bucket/indexes"', "shards": "8"}


on_option = click.option(
    "--on",
    metavar="WHERE",
    expose_value=False,
    callback=_choose_engine,
    help="Where to run: local, ray, or ray://HEAD:10001 [default: `on` in hoofbeat.toml, else local].",
)

_KEEPING = (
    click.option(
        "--index",
        "index_place",
        metavar="PLACE",
        help="Where to keep indexes: a folder or s3://BUCKET/FOLDER [default: `index` in hoofbeat.toml, or the cache].",
    ),
    click.option(
        "--shards",
        type=click.IntRange(1, 10_000),
        help="Number of shards per index; rankings stay the same [default: `shards` in hoofbeat.toml, else 1].",
    ),
)


def index_options(function: Callable[..., None]) -> Callable[..., None]:
    """`--index` and `--shards`, for a verb that has the options of `Calling` as well."""
    for option in reversed(_KEEPING):
        function = option(function)
    return function


def _index_home(place: str | None, shards: int | None, config: Path | None) -> AbstractContextManager[object]:
    """Keep indexes where the options say, or else the configuration."""
    place = place or _configured(config, "index", "")
    shards = shards or _configured(config, "shards", 1)
    if not place and shards == 1:
        return nullcontext()
    from hoofbeat.retrieval.index.kept_parts import keeping_indexes

    return keeping_indexes(place, shards=shards)


reasoning_option = click.option(
    "--reasoning",
    type=click.IntRange(0),
    metavar="TOKENS",
    help="Tokens allowed for hidden reasoning, added to every output limit [default: by the model's name].",
)


def decisions_option(function: Callable[..., None]) -> Callable[..., None]:
    """`--decisions`: what the team decided on cases."""
    return click.option(
        "--decisions", metavar="FILE|STORE",
        help="Your team's decisions on disagreements: the review store (review.db, postgresql://…), or a .json file "
        "that `audit cases` wrote.",
    )(function)  # fmt: skip


def _note_target(
    context: click.Context, parameter: click.Parameter, value: Path | None, *, renewed: bool = False
) -> Path | None:
    note_target(context, value)
    if (
        not renewed
        and value is not None
        and context.get_parameter_source(parameter.name or "") is ParameterSource.DEFAULT
    ):
        refuse_other_inputs(context, value)
    return value


def refuse_other_inputs(context: click.Context, target: Path) -> None:
    """Refuse to replace a folder that nobody named and that was made from something else: it would be lost unseen.

    What was given on the command line is known by now; click looks at defaults last.
    """
    if context.params.get("only_estimate") or not (target / "manifest.json").is_file():
        return
    from hoofbeat.store import open_artefact

    try:
        made_from = [each.name for each in open_artefact(target).manifest.inputs if each.kind]
    except HoofbeatError:  # not one of ours: the command itself says so
        return
    given: set[str] = set()
    for value in context.params.values():
        values = value if isinstance(value, tuple) else (value,)
        given |= {each.resolve().name for each in values if isinstance(each, Path)}
    if made_from and given and made_from[0] not in given:
        raise OutputError(
            f"Not overwritten: it was made from {made_from[0]}, which this command does not use",
            where=str(target),
            fix=f"name another folder with -o, or replace it with -o {target}",
        )


def output_option(
    default: str | None,
    *,
    help: str = "Folder for the result; a folder of the same kind is replaced.",
    renewed: bool = False,
) -> Callable[[F], F]:
    """`-o FOLDER`. A result that is `renewed` is replaced under its default name, also where its inputs are others."""
    return click.option(
        "-o",
        "--output",
        type=click.Path(path_type=Path),
        default=Path(default) if default else None,
        show_default=default is not None,
        callback=functools.partial(_note_target, renewed=renewed),
        help=help,
    )


def _output() -> Path | None:
    """The folder for the result of the command that runs now, if it takes one."""
    context = click.get_current_context(silent=True)
    found = context.params.get("output") if context is not None else None
    return found if isinstance(found, Path) else None


class Calling(Struct, frozen=True, kw_only=True):
    """The options of every verb that calls a model, as given; `model_specs` are all where a verb takes several."""

    model_spec: str
    ledger_path: str | None
    config_path: Path | None
    budget: str | None
    reasoning: int | None
    quarantine: bool
    checker: str
    only_estimate: bool
    as_json: bool
    model_specs: tuple[str, ...] = ()

    def screen(self) -> Screen:
        """The screen these options ask for."""
        return Screen(as_json=self.as_json)

    def open(self) -> AbstractContextManager[Session]:
        """The session these options ask for."""
        from hoofbeat.models.model_loading import open_session

        return open_session(
            ledger_path=self.ledger_path,
            config_path=self.config_path,
            budget=self.budget,
            reasoning=self.reasoning,
            quarantine=self.quarantine,
            check=_instruction_check if self.checker else None,
            checker=self.checker,
            tell=self.screen().say,
            output=_output(),
        )

    def warn_if_tiny(self, screen: Screen, task: str, *, specs: Sequence[str] = (), option: str = "--model") -> None:
        """Say before the work starts that the default model is too small for the task, and what to use instead."""
        from hoofbeat.models.model_loading import USEFUL, too_small_note

        note = too_small_note(specs or self.model_specs or (self.model_spec,), task)
        if not note:
            return
        screen.say(f"warning: {note}:")
        screen.line(f"  {option} openai:NAME, or {option} http://HOST:PORT/v1#NAME")
        weak = "; it still misses and invents differences" if task == "compare answers" else ""
        screen.line(f"  {option} {USEFUL}   (first: hoofbeat weights pull {USEFUL.partition(':')[2]}{weak})")

    def late_models(self) -> AbstractContextManager[Callable[[str], Model]]:
        """What loads models by name, with a session that is opened for the first one."""
        from hoofbeat.models.model_loading import late_models

        return late_models(self.model_spec, self.open, self.budget)


def _instruction_check(model: Model) -> TextCheck:
    from hoofbeat.prompts.instruction_check import InstructionCheck

    return InstructionCheck(model)


def _model_specs() -> str:
    """How a model is named; loaded with verbs that call one."""
    from hoofbeat.models import SPEC_HELP

    return SPEC_HELP


def calling_options(function: Callable[..., None]) -> Callable[..., None]:
    """Give a verb the options of `Calling`; it takes them as one argument, `calling`."""
    option = click.option(
        "--model", "model_spec", default="embedded", show_default=True, help=f"Model: {_model_specs()}."
    )
    return _with_calling(function, option)


def calling_options_of_several(function: Callable[..., None]) -> Callable[..., None]:
    """The same where `--model` may be given several times; the first is also the one model."""
    option = click.option(
        "--model", "model_specs", multiple=True, default=("embedded",), show_default=True,
        help=f"Model: {_model_specs()}. Repeat it for several models.",
    )  # fmt: skip
    return _with_calling(function, option)


def calling_options_of_judges(function: Callable[..., None]) -> Callable[..., None]:
    """The same where the models are judges, of whom at least one must be named: `--judge`."""
    option = click.option(
        "--judge", "model_specs", required=True, multiple=True,
        help=f"Model that judges: {_model_specs()}. Repeat it for several judges: the majority decides.",
    )  # fmt: skip
    return _with_calling(function, option)


def _with_calling(function: Callable[..., None], model_option: Callable[[Any], Any]) -> Callable[..., None]:
    @functools.wraps(function)
    def wrapped(**options: Any) -> None:
        given = {name: options.pop(name) for name in Calling.__struct_fields__ if name in options}
        given.setdefault("model_spec", given.get("model_specs", ("",))[0])
        calling = Calling(**given)
        with _index_home(options.pop("index_place", None), options.pop("shards", None), calling.config_path):
            function(calling=calling, **options)

    for option in (
        model_option,
        ledger_option,
        click.option("--config", "config_path", type=click.Path(path_type=Path), help="Configuration file."),
        click.option("--budget", help="Hard limit in dollars (2.50) or calls (200calls)."),
        reasoning_option,
        click.option(
            "--quarantine",
            is_flag=True,
            help="Make no call whose documents, questions or answers tell a model what to do; each is counted as a "
            "failure.",
        ),
        click.option(
            "--check-texts",
            "checker",
            default="",
            metavar="MODEL",
            help="Have this model look at each text first: does it tell a model what to do? Rules find plain wordings "
            "only. One more call for each text.",
        ),
        click.option(
            "--estimate",
            "only_estimate",
            is_flag=True,
            help="Estimate calls, tokens and cost, and stop: nothing is called.",
        ),
        on_option,
        json_option,
    ):
        wrapped = option(wrapped)
    return wrapped


_OURS = {".html": b"Hoofbeat", ".svg": b'class="hb"'}
_HEAD = 4000


def check_file(path: Path | None, suffix: str, *, ours: bytes = b"") -> None:
    """Refuse a file to write that could be something else: the wrong suffix, a folder, a file inside an artefact.

    A file that is there must begin as those that Hoofbeat writes do: `ours` is a pattern of what they have.
    """
    if path is None:
        return
    if path.suffix != suffix or path.is_dir():
        raise UsageError(f"the name of this file must end in {suffix}", where=str(path), fix=f"name a {suffix} file")
    if not path.resolve().parent.is_dir():
        raise OutputError("this folder does not exist", where=str(path.parent), fix="create it, or name another file")
    if not _may_replace(path, ours or _OURS.get(suffix, b"")):
        raise OutputError(
            "Not overwritten: not a file that Hoofbeat wrote",
            where=str(path),
            fix="name another file, or move this one",
        )
    if (path.resolve().parent / "manifest.json").exists():
        raise OutputError(
            "this file would be inside a Hoofbeat folder, which must not change",
            where=str(path),
            fix="choose a place outside that folder",
        )


def _may_replace(path: Path, ours: bytes) -> bool:
    """Whether nothing of somebody else's is there: no file, an empty one, or one that begins as ours do."""
    if not path.is_file():
        return True
    with path.open("rb") as stream:
        head = stream.read(_HEAD)
    return not head or re.search(ours, head) is not None


_UNRECORDED = {"--on", "--index", "--shards"}
_PASSWORD = re.compile(r"(postgres\w*://[^\s/@:]*):\S*@")  # endpoints with one are refused before


def command_words() -> list[str]:
    """The command as it was typed, for manifests; how its result is printed and where it ran are no part of it.

    Neither is where indexes lie, and in how many shards. A password in an address is left out.
    """
    words: list[str] = []
    for before, word in zip(["", *sys.argv[1:]], sys.argv[1:], strict=False):
        if word != "--json" and not {before, word.partition("=")[0]} & _UNRECORDED:
            words.append(_PASSWORD.sub(r"\1:***@", word))
    return ["hoofbeat", *words]


class Under:
    """The commands under a verb, loaded when they are called.

    `commands` says for each in which file of this package it is, as `NAME_command`, and what it does; `argument` is
    what the verb itself takes first, in words.
    """

    def __init__(self, verb: str, commands: Mapping[str, tuple[str, str]], argument: str) -> None:
        self.verb = verb
        self.names = {name: what for name, (_, what) in commands.items()}
        self.argument = argument
        self._files = {name: file for name, (file, _) in commands.items()}

    def command(self, name: str) -> click.Command:
        """The command of this name."""
        module = f"hoofbeat.cli.{self._files[name]}"
        try:
            found: click.Command = getattr(importlib.import_module(module), f"{name}_command")
        except ModuleNotFoundError as err:
            if err.name != module:
                raise
            raise UsageError(
                f"hoofbeat {self.verb} {name} is not part of this installation", fix="install Hoofbeat again"
            ) from err
        return found

    def complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        """What a shell offers for the first word: the commands under the verb, and paths."""
        named = [CompletionItem(name, help=what) for name, what in self.names.items() if name.startswith(incomplete)]
        return [*named, CompletionItem(incomplete, type="file")]

    def epilog(self) -> str:
        """The commands under the verb, for its help."""
        lines = "\n".join(f"  {self.verb} {name:10}{what}" for name, what in self.names.items())
        return f"\b\nCommands under this name (write {self.argument} of the same name as ./NAME):\n{lines}"


class VerbWithOthers(click.Command):
    """The verb itself, unless its first word names one of the commands under it."""

    under: Under

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """The context of the verb, or of the command that is named."""
        if args and args[0] in self.under.names:
            name = args[0]
            return self.under.command(name).make_context(f"{info_name} {name}", args[1:], parent, **extra)
        if args and args[0].isalpha() and not Path(args[0]).exists():
            close = get_close_matches(args[0], self.under.names, n=1, cutoff=0.7)
            if close:
                what = f"there is no folder and no command {args[0]!r}"
                raise UsageError(what, fix=f"did you mean hoofbeat {self.under.verb} {close[0]}?")
        return super().make_context(info_name, args, parent, **extra)


class ExtensionName(click.ParamType[Extension]):
    """The name of an extension of one kind; the command gets the extension itself."""

    name = "name"

    def __init__(self, kind: type[Extension]) -> None:
        self._kind = kind

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002
        """All names, as `click.Choice` shows them."""
        return f"[{'|'.join(registry.names(self._kind))}]"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        """The names that begin like this."""
        return [CompletionItem(name) for name in registry.names(self._kind) if name.startswith(incomplete)]

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Extension:  # noqa: ARG002
        """The extension; an unknown name is a `UsageError` that lists those there are."""
        return registry.get(self._kind, value) if isinstance(value, str) else value


class CommandWithList(click.Command):
    """A command whose help ends with a list, made when the help is printed."""

    listing: Callable[[], str]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list, as it is laid out."""
        self.epilog = f"\b\n{self.listing()}"
        super().format_epilog(ctx, formatter)
