"""What a real browser makes of the page: nothing foreign runs, nothing is fetched, nothing overflows."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from hoofbeat.reports import to_html
from hoofbeat.store import Artefact
from tests.reports.examples import HOSTILE
from tests.reports.test_page import page_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")

Scheme = Literal["light", "dark"]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium, which is not installed here")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield launched
        launched.close()


class Opened:
    """A page with what it said and asked for."""

    def __init__(self, browser: Browser, path: Path, *, width: int = 1280, scheme: Scheme = "light") -> None:
        self.context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: self.said.append(f"dialog {dialog.message}"))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())

    def overflows(self) -> bool:
        return bool(self.page.evaluate("document.documentElement.scrollWidth > window.innerWidth"))


@pytest.mark.parametrize("width", [1280, 390])
def test_hostile_text_does_nothing(browser: Browser, tmp_path: Path, width: int) -> None:
    path = tmp_path / "report.html"
    path.write_text(to_html(page_of(HOSTILE)), "utf-8")
    opened = Opened(browser, path, width=width)
    opened.page.evaluate("document.querySelectorAll('details').forEach((item) => { item.open = true })")
    opened.page.wait_for_timeout(100)
    assert opened.page.evaluate("window.owned") is None
    assert opened.asked == [path.as_uri()]
    assert opened.said == []
    assert opened.page.locator("h1").is_visible()
    assert "<script>window.owned=1</script>" in opened.page.locator("h1").inner_text()
    assert not opened.overflows()
    opened.context.close()


def test_policy_stops_what_is_smuggled_in(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    page = to_html(page_of("plain"))
    path.write_text(page.replace("<main", '<script>window.owned=1</script><img src="x" onerror="window.owned=2"><main'))
    opened = Opened(browser, path)
    opened.page.wait_for_timeout(100)
    assert opened.page.evaluate("window.owned") is None
    assert any("Content Security Policy" in line for line in opened.said)
    opened.context.close()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light"), (320, "dark")])
def test_report_opens_quietly_and_fits(browser: Browser, report: Artefact, width: int, scheme: Scheme) -> None:
    path = report.path.resolve() / "report.html"
    opened = Opened(browser, path, width=width, scheme=scheme)
    assert opened.said == []
    assert opened.asked == [path.as_uri()]
    assert not opened.overflows()
    back = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert back == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 24, 29)")
    opened.context.close()


def test_filter_and_anchors(browser: Browser, report: Artefact) -> None:
    opened = Opened(browser, report.path.resolve() / "report.html")
    viewer = opened.page.locator("#judgments-1-viewer")
    entries = viewer.locator(":scope > details")
    assert entries.count() == 20
    viewer.locator("input").fill("caplacizumab")
    assert viewer.locator(":scope > details:not([hidden])").count() == 1
    assert viewer.locator("output").inner_text() == "1 of 20 shown"
    viewer.locator("input").fill("")
    viewer.locator("select").select_option("right: oracle")
    assert 0 < viewer.locator(":scope > details:not([hidden])").count() < 20
    pair = opened.page.locator("#audit-1-q3-p2")
    assert not pair.is_visible()
    opened.page.evaluate("location.hash = '#audit-1-q3-p2'")
    opened.page.wait_for_timeout(100)
    assert pair.is_visible()
    assert opened.said == []
    opened.context.close()


def test_chart_labels_stay_inside(browser: Browser, report: Artefact) -> None:
    opened = Opened(browser, report.path.resolve() / "report.html")
    outside = opened.page.evaluate(
        """() => [...document.querySelectorAll('main > figure .wide svg')].flatMap((svg) => {
             const box = svg.getBoundingClientRect();
             return [...svg.querySelectorAll('text')].filter((text) => {
               const mine = text.getBoundingClientRect();
               return mine.left < box.left - 1 || mine.right > box.right + 1 || mine.bottom > box.bottom + 1;
             }).map((text) => text.textContent);
           })"""
    )
    assert opened.page.locator("main > figure .wide svg").count() > 5
    assert outside == []
    opened.context.close()


def test_it_prints(browser: Browser, report: Artefact, tmp_path: Path) -> None:
    opened = Opened(browser, report.path.resolve() / "report.html", scheme="dark")
    opened.page.pdf(path=str(tmp_path / "report.pdf"), format="A4")
    assert (tmp_path / "report.pdf").stat().st_size > 50_000
    opened.context.close()
