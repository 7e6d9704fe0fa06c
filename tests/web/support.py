"""A real server on loopback and a real browser for the tests of the pages."""

from __future__ import annotations

import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import uvicorn
from fastapi import FastAPI
from msgspec import Struct, convert
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

__all__ = ["CHROMIUM", "DESKTOP", "TABLET", "Box", "boxes", "browsing", "fits", "needs_browser", "serving", "tab"]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-pings",
]
expect.set_options(timeout=30_000)  # a busy machine may need longer than the usual five seconds
DESKTOP = (1280, 900)
TABLET = (820, 1180)

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium, which is not installed here")


@contextmanager
def serving(app: FastAPI) -> Iterator[str]:
    """The application behind a real server on a free port of loopback; its address."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        server = uvicorn.Server(
            uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off", proxy_headers=False)
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        deadline = time.monotonic() + 60
        while not server.started and time.monotonic() < deadline:
            time.sleep(0.01)
        assert server.started, "the server did not start"
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True
            thread.join(10)


@contextmanager
def browsing() -> Iterator[Browser]:
    """A browser for some tests; open it once in a module's fixture."""
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        try:
            yield launched
        finally:
            launched.close()


@contextmanager
def tab(browser: Browser, size: tuple[int, int] = DESKTOP, *, dark: bool = False) -> Iterator[Page]:
    """A tab with cookies of its own. An error of a script, or a break of the page's policy, fails the test."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if dark else "light",
        has_touch=size[0] < 1000,
    )
    context.set_default_timeout(60_000)
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda line: problems.append(line.text) if "Content Security Policy" in line.text else None)
    try:
        yield page
    finally:
        context.close()
    assert not problems, problems


def fits(page: Page) -> bool:
    """Whether nothing makes the page wider than the screen."""
    page.wait_for_load_state()  # until then there may be no style
    wide: int = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return wide <= 0


class Box(Struct, frozen=True):
    """Where an element stands on the screen."""

    left: float
    top: float
    right: float
    bottom: float


def boxes(found: Locator) -> list[Box]:
    """Where all these elements stand at one moment: between two questions the page may move."""
    found.page.wait_for_load_state()
    return convert(
        found.evaluate_all(
            """elements => elements.map((each) => each.getBoundingClientRect())
            .map(({ left, top, right, bottom }) => ({ left, top, right, bottom }))"""
        ),
        list[Box],
    )
