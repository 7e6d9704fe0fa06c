"""The command `hoofbeat`: one thin file per verb, loaded when it is called."""

from __future__ import annotations

import importlib
import io
import os
import signal
import sys
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec

from hoofbeat.errors import BatchPending, HoofbeatError, TrustNeeded, UsageError, did_you_mean
from hoofbeat.registry import registry
from hoofbeat.text import line_for_terminal
from hoofbeat.version import __version__

__all__ = ["cli", "main"]

_VERBS = {
    "demo": "take the teaching set from documents to a report, in about a minute",
    "corpus": "import, filter, count and export documents",
    "build": "make a benchmark from a corpus",
    "benchmark": "import published questions as a benchmark",
    "export": "write a benchmark in formats that other software reads",
    "show": "show any folder, or one question or document with its evidence",
    "retrieve": "rank a corpus for a benchmark's questions and measure it",
    "compare": "compare rankings, or answers, of the same questions",
    "answer": "let a model answer a benchmark",
    "predictions": "import answers that other software gave",
    "judge": "judge a run's answers against the gold answers",
    "check": "check a benchmark for leaks, second right answers, giveaways and bias",
    "leakage": "look for signs that models have seen a benchmark",
    "plan": "estimate a study: calls, money, hours, memory and disk, here and on clusters",
    "run": "run a paper's protocol on a benchmark, and report its tables",
    "audit": "ask every source the same questions and compare the answers",
    "report": "write one self-contained report on folders",
    "serve": "show folders as pages in the browser",
    "review": "let people review a benchmark, an audit or answers, in the browser",
    "ask": "describe a case: find similar reports, and an answer with citations",
    "sign": "sign folders with your OpenSSH key, so that others can check who published them",
    "verify": "check that folders are unchanged since they were written, and who signed them",
    "weights": "download, list and check the weights of the embedded models",
    "ledger": "inspect, export, copy and prune the ledger of model calls",
    "completion": "print the script that completes commands in bash, zsh or fish",
}
_PLUGIN = "--plugin"
_CONFIG = "--config"
_YES = "--yes"
_TRUST_CHANGED = "--trust-changed"
_FLAGS = {_YES: "HOOFBEAT_TRUST", _TRUST_CHANGED: "HOOFBEAT_TRUST_CHANGED"}
"""Flags that may be written anywhere, with the environment variables that they set for this run."""
_EPILOG = "Research software. Not for clinical use. Start with: hoofbeat demo"


class _Verbs(click.Group):
    """Verbs are modules of this package; only the one that is called is imported."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(_VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _VERBS:
            return None
        module = importlib.import_module(f"hoofbeat.cli.{cmd_name}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb that is named; an unknown one is an error that names the closest."""
        if args and args[0] not in _VERBS and not args[0].startswith("-"):
            guess = did_you_mean(args[0], _VERBS)
            raise UsageError(f"there is no command {args[0]!r}", fix=f"{guess}see all commands: hoofbeat --help")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(_VERBS.items()))


@click.group(cls=_Verbs, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--plugin", multiple=True, metavar="FILE", help="Load extensions from this file; also allowed after the command."
)
@click.option(
    "--yes",
    is_flag=True,
    help="Trust the hoofbeat.toml of this folder (keys, plugins); also allowed after the command.",
)
@click.option(
    _TRUST_CHANGED, is_flag=True,
    help="Read folders whose files have changed since Hoofbeat wrote them; the result's manifest names the files. May "
    "be written after the verb.",
)  # fmt: skip
@click.version_option(__version__, "-V", "--version", prog_name="hoofbeat")
def cli(plugin: tuple[str, ...], yes: bool, trust_changed: bool) -> None:
    """Build, run, judge and audit clinical question answering."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command and exit with its code; errors are printed in words, without a traceback."""
    words = sys.argv[1:] if arguments is None else arguments
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that can't show a character shows another
    as_json = "--json" in words
    try:
        with _SIGNALS.as_ctrl_c():
            code = _run(words, as_json)
        sys.stdout.flush()
    except BrokenPipeError:
        _silence_output()
        code = 1
    except OSError as err:
        code = _tell(False, 1, f"operating system: {err.strerror or err}", err.filename, None)
        _silence_output()
    except BaseException as err:
        if not isinstance(err, Exception) and not _is_panic(err):
            raise
        code = _bug(as_json, err)
    sys.exit(code)


def _open_closed_streams() -> None:
    """A command may be started with closed streams (`>&-`). The next file that is opened would take their place."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - until the process ends


class _Signals:
    """Signals that end a command, taken as Ctrl-C is: calls in flight are kept, drafts are removed."""

    def __init__(self) -> None:
        self.number: int = signal.SIGINT

    @contextmanager
    def as_ctrl_c(self) -> Iterator[None]:
        """Meanwhile end as by Ctrl-C; a signal that is ignored (`nohup`) stays so."""
        self.number = signal.SIGINT
        ours = os.getpid()

        def stop(number: int, _: object) -> None:
            if os.getpid() != ours:  # a child that was forked meanwhile
                signal.signal(number, signal.SIG_DFL)
                os.kill(os.getpid(), number)
            self.number = number
            if callable(signal.getsignal(signal.SIGINT)):
                signal.raise_signal(signal.SIGINT)  # an event loop has its own handler
            else:  # in the background of a shell Ctrl-C is ignored
                raise KeyboardInterrupt

        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in _STOPS}
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, stop)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


_STOPS = {int(each): each.name for name in ("SIGTERM", "SIGHUP") if (each := getattr(signal, name, None)) is not None}
_SIGNALS = _Signals()


def _silence_output() -> None:
    """Standard output can't take more: leave quietly instead of failing once more at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(words: list[str], as_json: bool) -> int:
    try:
        result: Any = cli.main(args=_load_plugins(words), prog_name="hoofbeat", standalone_mode=False)
    except BatchPending as pending:
        return _tell_pending(as_json, pending)
    except TrustNeeded as err:
        if _is_confirmed(err):
            return _run(words, as_json)
        return _tell(as_json, err.exit_code, err.what, err.where, err.fix)
    except HoofbeatError as err:
        return _tell(as_json, err.exit_code, err.what, err.where, err.fix, err.details)
    except click.exceptions.NoArgsIsHelpError as err:
        click.echo(err.format_message(), err=True)
        return 2
    except click.UsageError as err:
        hint = f"see {err.ctx.command_path} --help" if err.ctx else "see hoofbeat --help"
        return _tell(as_json, 2, err.format_message(), None, hint)
    except click.ClickException as err:
        return _tell(as_json, err.exit_code, err.format_message(), None, None)
    except (KeyboardInterrupt, click.Abort):
        fix = "run the same command again to continue: calls that were answered are in the ledger and are not repeated"
        number = _SIGNALS.number
        return _tell(as_json, 128 + number, f"stopped by {_STOPS.get(number, 'Ctrl-C')}", None, fix)
    except MemoryError:
        return _tell(as_json, 1, "not enough memory", None, "use fewer documents at a time")
    return result if isinstance(result, int) else 0


def _is_confirmed(needed: TrustNeeded) -> bool:
    """Ask the user for the word that a folder's configuration needs, and keep it; False where nobody is there."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    click.echo(f"{_indented(needed.what)}.", err=True)
    is_yes = click.confirm("Do you trust this file? Hoofbeat remembers a yes until the file changes", err=True)
    if is_yes:
        needed.config.remember()
    return is_yes


def _load_plugins(words: list[str]) -> list[str]:
    """Load every plugin that is asked for, say so, and return the words without them.

    `--plugin FILE` may stand anywhere; `hoofbeat.toml` may have `plugins = [...]`. They are loaded before the verb is
    looked at, because a plugin may bring a recipe, and with it options of a verb.
    """
    rest, files = _taken(words, _PLUGIN)
    for flag, variable in _FLAGS.items():
        if flag in rest[: rest.index("--") if "--" in rest else None]:
            rest.remove(flag)
            os.environ[variable] = "1"
    for path in [*_of_config(words), *(Path(file) for file in files)]:
        plugin = registry.load_file(path)
        click.echo(f"Plugin {plugin.name}: {', '.join(plugin.extensions)}", err=True)
    return rest


def _taken(words: list[str], option: str) -> tuple[list[str], list[str]]:
    """The words without an option and its values, and the values."""
    rest: list[str] = []
    values: list[str] = []
    following = iter(words)
    for word in following:
        if word == "--":
            return [*rest, word, *following], values
        if word == option:
            value = next(following, None)
            if value is None:
                raise UsageError(f"{option} needs a file", fix=f"write {option} my_stage.py")
            values.append(value)
        elif word.startswith(f"{option}="):
            values.append(word.removeprefix(f"{option}="))
        else:
            rest.append(word)
    return rest, values


def _of_config(words: list[str]) -> list[Path]:
    """The plugins that the configuration names; a file that can't be read is left to whoever needs it."""
    named = _taken([word for word in words if word != "--"], _CONFIG)[1] if _CONFIG in " ".join(words) else []
    file = Path(named[-1] if named else os.environ.get("HOOFBEAT_CONFIG") or "hoofbeat.toml")
    if not file.is_file():
        return []
    from hoofbeat.trust import found_config, parse_toml

    try:
        plugins = parse_toml(file.read_text(encoding="utf-8")).get("plugins", [])
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        return []
    if not isinstance(plugins, list) or not all(isinstance(each, str) for each in plugins):
        raise UsageError("plugins must be a list of files", where=str(file), fix='write plugins = ["my_stage.py"]')
    if plugins:
        found = found_config(Path(named[-1]) if named else None)[1]
        if found is not None:
            found.need(f"run {', '.join(plugins)} as plugins")
    return [file.parent / each for each in plugins]


def _is_panic(err: BaseException) -> bool:
    from hoofbeat.store.tables import is_panic

    return is_panic(err)


def _bug(as_json: bool, err: BaseException) -> int:
    """An error nobody foresaw: say so in one line; the traceback is for those who ask for it."""
    if os.environ.get("HOOFBEAT_DEBUG"):
        raise err
    from hoofbeat.store.tables import table_trouble

    if (damaged := table_trouble(err)) is not None:
        return _tell(as_json, damaged.exit_code, damaged.what, damaged.where, damaged.fix)
    what = f"unexpected error ({type(err).__name__}: {err})"
    if (plugin := registry.plugin_at_fault(err)) is not None:
        fix = "correct the plugin; HOOFBEAT_DEBUG=1 shows the whole traceback"
        return _tell(
            as_json, 1, f"the plugin failed ({type(err).__name__}: {err})", f"{plugin[0]}, line {plugin[1]}", fix
        )
    return _tell(
        as_json,
        70,
        what,
        None,
        "this is a bug: please report it, with the output of the same command after HOOFBEAT_DEBUG=1",
    )


def _tell_pending(as_json: bool, pending: BatchPending) -> int:
    """Requests wait in a batch folder: this is not an error, so it is printed like a result."""
    if as_json:
        told = {"batch": pending.details, "next": pending.fix, "exit": pending.exit_code}
        sys.stdout.write(msgspec.json.encode(told).decode() + "\n")
    else:
        click.echo(f"Waiting for a batch: {line_for_terminal(pending.what)} → {line_for_terminal(pending.folder)}")
    for note in pending.notes:
        click.echo(line_for_terminal(note), err=True)
    if "so_far" in pending.details:
        click.echo(
            f"so far: {line_for_terminal(str(pending.details['so_far']))} (funnel, rejections, failures)", err=True
        )
    click.echo(f"next: {line_for_terminal(pending.fix or '')}", err=True)
    return pending.exit_code


def _indented(text: str) -> str:
    """Further lines can't look like lines of ours: names of files may hold line breaks."""
    return line_for_terminal(text, "\n       ")


def _tell(
    as_json: bool,
    code: int,
    what: str,
    where: str | None,
    fix: str | None,
    details: dict[str, object] | None = None,
) -> int:
    from hoofbeat.redaction import redact_message

    what, where, fix = redact_message(what), where and redact_message(str(where)), fix and redact_message(fix)
    if as_json:
        error = {"error": what, "where": where, "fix": fix, "exit": code, **(details or {})}
        sys.stdout.write(redact_message(msgspec.json.encode(error).decode()) + "\n")
    lines = [click.style("error: ", fg="red", bold=True) + _indented(what)]
    lines += [f"   at: {line_for_terminal(str(where))}"] if where else []
    lines += [f"   do: {_indented(fix)}"] if fix else []
    click.echo("\n".join(lines), err=True)
    return code
