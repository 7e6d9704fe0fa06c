"""A real server on loopback and a real browser for the tests of the pages."""

from __future__ import annotations

import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from fastapi import FastAPI
from msgspec import Struct, convert
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from hoofbeat.web.connections import ListeningServer, server_config

__all__ = [
    "CHROMIUM",
    "DESKTOP",
    "NAME",
    "NO_BROWSER",
    "TABLET",
    "Box",
    "boxes",
    "browsing",
    "fits",
    "needs_browser",
    "serious_faults",
    "serving",
    "tab",
]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# The browser keeps pages of its own ready for its address bar, in each window, which took more time than the pages of
# the tests. Only the last list of features counts: Playwright's, as far as it matters here, is repeated.
_PAGES_OF_THE_BROWSER = "WebUIOmniboxPopup,WebUIOmniboxFullPopup,WebUIOmniboxAimPopup,PreloadTopChromeWebUI"
_OFF_IN_PLAYWRIGHT = (
    "AvoidUnnecessaryBeforeUnloadCheckSync,DestroyProfileOnBrowserClose,HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,"
    "LensOverlay,MediaRouter,PaintHolding,ThirdPartyStoragePartitioning,AvoidCorsURLLoaderRestartOnRedirect,"
    "OptimizationHints,NetworkTimeServiceQuerying,AimEnabled,PreconnectToSearch"
)
NAME = "review.example.org"
"""A name of this machine, for the browser."""
_ARGUMENTS = [
    "--no-sandbox",
    "--in-process-gpu",  # nothing is drawn on a screen: a process for it costs a sixth of every page
    "--renderer-process-limit=1",  # per person signed in: none is kept ready for the next page, a sixth of every tab
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-pings",
    f"--host-resolver-rules=MAP {NAME} 127.0.0.1",
    f"--disable-features={_OFF_IN_PLAYWRIGHT},{_PAGES_OF_THE_BROWSER}",
]
_MARK_TWINS = """() => {
  const numbers = new Map(), under = new Map([[document.documentElement, 0]]), seen = new Map();
  const numbered = (...parts) => {
    const key = JSON.stringify(parts);
    return numbers.get(key) ?? (numbers.set(key, numbers.size + 1), numbers.size);
  };
  for (const each of document.body.querySelectorAll("*")) {
    const style = getComputedStyle(each);
    const chain = numbered(
      under.get(each.parentElement) ?? 0, each.tagName, each.getAttribute("class"), each.matches(":disabled"),
      each.getAttribute("aria-disabled"), style.backgroundColor, style.backgroundImage, style.opacity, style.filter,
      style.mixBlendMode, style.position);
    under.set(each, chain);
    const look = numbered(
      chain, style.color, style.fontSize, style.fontWeight, style.textShadow, each.closest("label")?.control?.disabled,
      each.checkVisibility({ opacityProperty: true, visibilityProperty: true }), each.getClientRects().length,
      [...each.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim()));
    seen.set(look, (seen.get(look) ?? 0) + 1);
    if (seen.get(look) > 2) each.setAttribute("data-twin", "");
  }
  axe.configure({ rules: [{ id: "color-contrast", selector: "*:not([data-twin])" }] });
}"""
"""Elements that look like two before them, as do all the elements around them, have the contrast of those two."""
_SERIOUS = """async () => {
  const serious = ({ impact }) => impact === "serious" || impact === "critical";
  const others = axe._audit.rules.filter((rule) => rule.impact && !serious(rule));
  axe.configure({ rules: others.map(({ id }) => ({ id, enabled: false })) });
  const { violations } = await axe.run({ resultTypes: ["violations"], preload: false });
  return violations.filter(serious).map(({ id, help, nodes }) => `${id}: ${help}: ${nodes[0].html.slice(0, 200)}`);
}"""
"""A rule's impact, where it has one, is that of all it finds: rules of small impact need not run.

Style sheets are loaded (`preload`) for two rules only: one is experimental and does not run, one has a small impact.
"""
_AXE = Axe()
expect.set_options(timeout=30_000)  # a busy machine may need longer than the usual five seconds
DESKTOP = (1280, 900)
TABLET = (820, 1180)

NO_BROWSER = "needs Chromium on the PATH, which is not here: apt-get install chromium, or see CONTRIBUTING.md"
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason=NO_BROWSER)


@contextmanager
def serving(app: FastAPI) -> Iterator[str]:
    """The application behind a real server on a free port of loopback; its address."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        server = ListeningServer(server_config(app))
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
    """A browser: the fixture `browser` gives each module the one of this run."""
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=_ARGUMENTS)
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


def serious_faults(page: Page) -> list[str]:
    """What axe-core calls a serious or critical fault of accessibility.

    Telling what is right took it as long again. Most of its time is for contrast, above all in the rows of tables:
    there it looks at two elements of each look.
    """
    page.evaluate(_AXE.axe_script)
    page.evaluate(_MARK_TWINS)
    found: list[str] = page.evaluate(_SERIOUS)
    return found


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
