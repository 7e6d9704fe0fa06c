"""A process that has the whole command imported and forks once for every command that a test runs.

Importing the command takes most of the time of a short one; a fork has it already and is still a process of its own,
with its own folder, environment, exit code and end. One request a line comes on standard input, one answer goes back.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any, NoReturn

import hoofbeat.cli
from hoofbeat.cli import cli, main


def serve() -> None:
    """Answer requests until there are no more."""
    for name in cli.list_commands(None):  # type: ignore[arg-type]
        importlib.import_module(f"{hoofbeat.cli.__name__}.{name}")
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            answers.close()
            run(request)
        print(json.dumps({"pid": child}), file=answers, flush=True)
        _, status = os.waitpid(child, 0)
        print(json.dumps({"code": os.waitstatus_to_exitcode(status)}), file=answers, flush=True)


def run(request: dict[str, Any]) -> NoReturn:
    """Be the command: never comes back."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(request[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = ["hoofbeat", *request["words"]]
    main(request["words"])
    raise AssertionError("the command came back")


if __name__ == "__main__":
    serve()
