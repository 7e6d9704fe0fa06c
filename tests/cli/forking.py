"""A process that has the whole command imported and forks once for every command that a test runs.

Importing the command takes most of the time of a short one; a fork has it already and is still a process of its own,
with its own folder, environment, exit code and end. One request a line comes on standard input, one answer goes back.

A fork leaves as an interpreter does, except that it does not take its modules apart: with everything imported that took
twenty times as long as a short command. Commands that are started (`start` of support) still end in full.

Recipes look names up in vocabularies, whose tables take five seconds to make: the first recipe makes them here, before
the fork, and later ones find them made. The default encoder is loaded as well. What is there is frozen for the
collector, which would else copy all of it.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import sys
import threading
from contextlib import suppress
from functools import cache
from typing import Any, NoReturn
from unittest import mock

import pytest

import hoofbeat
from hoofbeat.cli import main
from hoofbeat.errors import HoofbeatError
from tests.encoders_once import load_now
from tests.one_reader import read_in_one_process
from tests.syncing import taken


def serve() -> None:
    """Answer requests until there are no more."""
    import_all()
    load_now(pytest.MonkeyPatch())
    read_in_one_process(pytest.MonkeyPatch())
    mock.patch.object(os, "fsync", taken).start()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    gc.freeze()
    for line in sys.stdin:
        request = json.loads(line)
        if request["module"] or (request["words"][:1] == ["build"] and "--help" not in request["words"]):
            vocabularies()
        child = os.fork()
        if child == 0:
            answers.close()
            run(request)
        print(json.dumps({"pid": child}), file=answers, flush=True)
        _, status = os.waitpid(child, 0)
        print(json.dumps({"code": os.waitstatus_to_exitcode(status)}), file=answers, flush=True)


_LATE = ("numpy.ma", "numpy.random", "rich._emoji_codes")
"""What other packages import when they are first used."""


def import_all() -> None:
    """Import every module of the package: verbs import most of what they need only when they run."""
    for module in pkgutil.walk_packages(hoofbeat.__path__, f"{hoofbeat.__name__}."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in _LATE:
        importlib.import_module(name)


@cache
def vocabularies() -> None:
    """Make the tables of both vocabularies that recipes read, where they are installed."""
    from hoofbeat.corpus.vocabulary import load_vocabulary, vocabulary_names  # noqa: PLC0415 - only recipes need them
    from hoofbeat.recipes.cases import rare_diseases  # noqa: PLC0415
    from hoofbeat.recipes.guards import diagnosis_names, leaks  # noqa: PLC0415

    with suppress(HoofbeatError):
        for each in map(load_vocabulary, vocabulary_names()):
            each.lookup("asthma")
            each.find_in("asthma")
            each.search("asthma", 1)
            leaks._vocabulary_words(each)
            diagnosis_names._words_of(each)
        rare_diseases._phenotype_names()
    gc.freeze()


def run(request: dict[str, Any]) -> NoReturn:
    """Be the command, or the `main` of a module: never comes back."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    for number, name in ((1, "out"), (2, "err")):  # each at the end of its file, for both may be one
        os.dup2(os.open(request[name], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), number)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = [request["module"] or "hoofbeat", *request["words"]]
    try:
        if request["module"]:
            leave(importlib.import_module(request["module"]).main())
        main(request["words"])
    except SystemExit as left:
        leave(left.code)
    raise AssertionError("the command came back")


def leave(code: object) -> NoReturn:
    """End with this exit code, once threads have ended and what was put off until the end is done."""
    assert isinstance(code, int), code
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    serve()
