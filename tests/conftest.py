"""Tests keep indexes and vectors in a folder of the run, never in the cache of whoever runs them.

Workers that run tests side by side multiply matrices, and run the embedded model, on one thread each: more threads than
cores wait for each other by spinning, which took a dozen times as long. It has to be said before numpy is imported;
whoever has set it knows better. They keep compiled bytecode, as under make: without it every worker compiles all tests,
and every process that a test starts the whole package.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import os
import signal
import sys
from asyncio import AbstractEventLoop
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from hoofbeat.registry import PLUGINS_VARIABLE, Registry
from tests.encoders_once import load_once
from tests.helpers import made_once, run_folder, shared_data
from tests.one_reader import read_in_one_process
from tests.syncing import taken

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# Machines that run the tests are shared: how long an example takes there says nothing of the code.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")

if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("HOOFBEAT_THREADS", "1")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background: commands of tests would ignore it too
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """In a fresh copy each worker compiles a share of the tests first, by importing it, and finds the others compiled.

    Without it every worker compiles all tests, in the same order as the others: 17 seconds of CPU time for each.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if not worker or session.config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    share = slice(int(worker.removeprefix("gw")), None, int(os.environ["PYTEST_XDIST_WORKER_COUNT"]))
    for path in sorted(Path(__file__).parent.rglob("test_*.py"))[share]:
        with suppress(Exception, pytest.skip.Exception):  # collecting the module says what is wrong with it
            importlib.import_module(".".join(path.relative_to(session.config.rootpath).with_suffix("").parts))


def pytest_collection_finish() -> None:
    """What was imported stays until the end: looking through it again and again took a thirtieth of a run."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    before = os.environ.get("HOOFBEAT_CACHE")
    os.environ["HOOFBEAT_CACHE"] = str(run_folder(tmp_path_factory) / "hoofbeat-cache")
    yield
    if before is None:
        del os.environ["HOOFBEAT_CACHE"]
    else:
        os.environ["HOOFBEAT_CACHE"] = before


@pytest.fixture(autouse=True, scope="session")
def no_waiting_for_the_disk() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", taken)
        yield


@pytest.fixture(autouse=True, scope="session")
def encoders_are_loaded_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        load_once(patch)
        yield


@pytest.fixture(autouse=True, scope="session")
def files_are_read_in_one_process() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        read_in_one_process(patch)
        yield


@pytest.fixture
def recipes_only(monkeypatch: pytest.MonkeyPatch) -> Registry:
    """A registry of recipes for one test: plugin files that it loads are forgotten afterwards."""
    monkeypatch.setenv(PLUGINS_VARIABLE, "")
    found = Registry()
    monkeypatch.setattr("hoofbeat.recipes.recipe.registry", found)
    return found


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds `cases`, `handbooks`, `bench`, `run`, `judged`, `ranked`,
    `ranked-2`, `audit`, `audit-2` and `report`: one of every kind, for reviews and pages."""
    from tests.web.folders import web_folders  # noqa: PLC0415 - few tests need all that this imports

    return web_folders(tmp_path_factory.mktemp("web") / "study")


@pytest.fixture(scope="session")
def real_reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus of the 1,500 real case reports: every test that reads all of them reads this one."""
    from hoofbeat.corpus import import_corpus  # noqa: PLC0415 - few tests need it

    source = shared_data("case_reports.jsonl.gz")
    return made_once(tmp_path_factory, "real-reports", lambda target: import_corpus([source], target, workers=1))


@pytest.fixture(scope="session")
def launched_browser() -> Iterator[tuple[Browser, AbstractEventLoop]]:
    """The browser of this run, and the loop in which it is driven."""
    from tests.web.support import CHROMIUM, NO_BROWSER, browsing  # noqa: PLC0415 - few tests need it

    if CHROMIUM is None:
        pytest.skip(NO_BROWSER)
    with browsing() as opened:
        loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)
        yield opened, loop
        asyncio._set_running_loop(loop)


@contextmanager
def driven(launched: tuple[Browser, AbstractEventLoop]) -> Iterator[Browser]:
    """The browser of this run, while its loop counts as running: no other loop could run then, so the time is short."""
    opened, loop = launched
    assert opened.is_connected(), "the browser has ended in a test before this one"
    asyncio._set_running_loop(loop)
    try:
        yield opened
    finally:
        asyncio._set_running_loop(None)


@pytest.fixture(scope="module")
def browser(launched_browser: tuple[Browser, AbstractEventLoop]) -> Iterator[Browser]:
    """The browser of this run, which tests visit in tabs that they open and close.

    Tests of other modules must not see its loop. Each start took two seconds, and there are fifteen modules.
    """
    with driven(launched_browser) as opened:
        yield opened
