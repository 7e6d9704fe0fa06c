"""The pictures of docs/images, taken of the demo in a browser that draws nothing on a screen.

`python -m tools.docs_refresh pictures` calls it. It needs Chromium, Playwright and Pillow (the extra `dev`).
"""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urljoin

from PIL import Image
from playwright.sync_api import Page, sync_playwright

_BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_ARGUMENTS = ["--no-sandbox", "--disable-background-networking"]
_SIZE = (1000, 720)
_REVIEWER, _ADJUDICATOR = "Dr. A (invented)", "Prof. B (invented)"


def take_pictures(folder: Path, target: Path) -> Iterator[Path]:
    """Run the demo in a folder, open its pages, and write the pictures; each is yielded when it is written."""
    _hoofbeat(folder, "demo")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_BROWSER, args=_ARGUMENTS)
        page = browser.new_page(viewport={"width": _SIZE[0], "height": _SIZE[1]})
        page.goto((folder / "demo" / "report" / "report.html").resolve().as_uri())
        yield _save(page, target / "report.png", height=1100)
        with _serving(folder, "serve", "demo") as address:
            page.goto(address)
            yield _save(page, target / "web-home.png")
            _open(page, address, "benchmarks", "/questions/")
            yield _save(page, target / "web-question.png")
            _open(page, address, "audits", None)
            yield _save(page, target / "web-audit.png", height=900)
        yield from _review_pictures(page, folder, target)
        browser.close()


def _review_pictures(page: Page, folder: Path, target: Path) -> Iterator[Path]:
    study = ["review", "demo/audit", "--sample", "20", "--no-serve"]
    _hoofbeat(folder, *study)
    reviewer = _hoofbeat(folder, "review", "invite", _REVIEWER)
    name = str(_hoofbeat(folder, *study, "--assign")["study"])
    shown = ["--show", "demo/audit", "--show", "demo/handbooks"]
    with _serving(folder, "review", *shown) as address:
        _join(page, address, _token(reviewer))
        page.goto(address)
        _follow(page, f"a[href*='{name}']")
        _follow(page, f"a[href*='{name}/']")
        yield _save(page, target / "review-pair.png", height=1250)
    page.context.clear_cookies()
    other = ["--db", "decisions.db"]  # an open study hides its audit from the worklist, so this one has none
    adjudicator = _hoofbeat(folder, "review", "invite", _ADJUDICATOR, "--role", "adjudicator", *other)
    with _serving(folder, "review", *shown, *other) as address:
        _join(page, address, _token(adjudicator))
        page.goto(f"{address}/worklist")
        _follow(page, "a[href^='/worklist/']")
        yield _save(page, target / "worklist.png", height=900)


def _token(invited: dict[str, object]) -> str:
    return str(invited["link"]).rpartition("/")[2]


def _open(page: Page, address: str, kind: str, inner: str | None) -> None:
    """Open the first folder of a kind, and in it the first page whose address has `inner`."""
    page.goto(address)
    _follow(page, f"a[href^='/{kind}/']")
    if inner is not None:
        _follow(page, f"a[href*='{inner}']")


def _follow(page: Page, link: str) -> None:
    """Open what the first such link leads to."""
    page.goto(urljoin(page.url, str(page.locator(link).first.get_attribute("href"))))


def _join(page: Page, address: str, token: str) -> None:
    page.goto(f"{address}/join/{token}")
    page.locator("main button, form button").first.click()
    page.wait_for_url(lambda url: "/join/" not in url)


def _save(page: Page, path: Path, height: int = _SIZE[1]) -> Path:
    """A picture of the top of the page, in few colours: a quarter of the size."""
    page.set_viewport_size({"width": _SIZE[0], "height": height})
    page.wait_for_load_state("networkidle")
    drawn = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    drawn.quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)
    return path


def _hoofbeat(folder: Path, *words: str) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-m", "hoofbeat", *words, "--json"], cwd=folder, stdout=subprocess.PIPE, check=True
    )
    found: dict[str, object] = json.loads(done.stdout)
    return found


@contextmanager
def _serving(folder: Path, *words: str) -> Iterator[str]:
    """A server of the pages while they are photographed; its address."""
    command = [sys.executable, "-m", "hoofbeat", *words, "--port", "0", "--json"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield str(json.loads(server.stdout.readline())["address"]).rstrip("/")
        finally:
            server.terminate()
