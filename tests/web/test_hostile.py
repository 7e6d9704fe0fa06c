"""Attacks planted in documents, questions, answers, labels and names: no page of the site runs them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urldefrag, urlsplit

import pytest
from playwright.sync_api import Browser, Page

from tests.web.review_site import join
from tests.web.support import needs_browser, tab
from tests.web.whole import Whole, poisoned, whole_site

pytestmark = needs_browser

_MOST_PAGES = 70
_NO_PAGE = re.compile(r"/(files|images)/|\.(csv|jsonl?)$")
_FOREIGN = """() => {
  const own = new Set([...document.scripts].filter(s => s.src && new URL(s.src).origin === location.origin));
  const bad = [...document.scripts].filter(s => !own.has(s) && s.type !== "application/json").map(s => s.outerHTML);
  for (const node of document.querySelectorAll("*")) {
    for (const name of node.getAttributeNames()) if (/^(on.*|srcdoc|style)$/.test(name)) bad.push(name);
    const link = node.getAttribute("href") || node.getAttribute("action") || "";
    if (/^\\s*(javascript|data|vbscript):/i.test(link) || link.startsWith("//")) bad.push(link);
  }
  if (document.querySelector("iframe, base, object, embed, meta[http-equiv]")) bad.push("a foreign element");
  if (window.pwned !== undefined) bad.push("script ran: " + window.pwned);
  return bad;
}"""


@pytest.fixture(scope="module")
def attacked(folders: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    place = tmp_path_factory.mktemp("attacked")
    with whole_site(poisoned(folders, place / "study"), str(place / "review.db"), hostile=True) as site:
        yield site


def shape(path: str) -> str:
    """A path without its numbers and the name of its folder: pages of one shape are made by one template."""
    parts = urlsplit(path)
    words = [
        word if place != 2 and not any(c.isdigit() for c in word) else "#"
        for place, word in enumerate(parts.path.split("/"))
    ]
    return "/".join(words) + "?" + "&".join(sorted(each.partition("=")[0] for each in parts.query.split("&")))


def crawl(page: Page, address: str, *starts: str, under: tuple[str, ...] = ("/",)) -> list[str]:
    """Follow links to pages under these, one of each shape; nothing may be wrong on any. The pages seen."""
    waiting, known, shapes, bad = list(starts), set(starts), set[str](), list[str]()
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    seen: list[str] = []
    while waiting and len(seen) < _MOST_PAGES:
        path = waiting.pop(0)
        answer = page.goto(address + path, wait_until="domcontentloaded")
        seen.append(path)
        kind = answer.headers.get("content-type", "") if answer else ""
        assert answer is not None
        assert answer.status < 500, path
        if not kind.startswith("text/html") or path.startswith("/reports/"):
            continue
        bad += [f"{path}: {each}" for each in page.evaluate(_FOREIGN)]
        assert str(7 * 191) not in page.content().replace(",", ""), f"a template ran what it shows: {path}"
        for link in page.eval_on_selector_all("a[href]", "links => links.map(link => link.href)"):
            parts = urlsplit(urldefrag(link)[0])
            target = parts.path + (f"?{parts.query}" if parts.query else "")
            if f"{parts.scheme}://{parts.netloc}" != address:
                bad.append(f"{path}: a way out to {link}")
            elif target not in known and target.startswith(under) and not _NO_PAGE.search(parts.path):
                known.add(target)
                if shape(target) not in shapes:
                    waiting.append(target)
                shapes.add(shape(target))
    assert not waiting, "some kinds of pages were not looked at"
    assert not dialogs, dialogs
    assert not bad, bad[:10]
    return seen


@pytest.mark.slow
def test_browsing_runs_nothing_of_what_it_shows(attacked: Whole, browser: Browser) -> None:
    with tab(browser) as page:
        join(page, attacked.address, attacked.admin)
        seen = crawl(page, attacked.address, "/")
    assert {path.split("/")[1].partition("?")[0] for path in seen} >= {
        "corpora",
        "benchmarks",
        "runs",
        "audits",
        "worklist",
    }
    assert any("/pairs/" in path for path in seen)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("who", "start", "kinds"),
    [
        ("reviewer", "/review/{}/next", ["/review/#?", "/review/#/items/#?", "/exam/#?"]),
        ("admin", "/team/{}/queue", ["/team/#?", "/team/#/queue/#?", "/team/#/agreement?", "/team/#/trail?"]),
    ],
)
def test_review_and_team_run_nothing_of_what_they_show(
    attacked: Whole, browser: Browser, who: str, start: str, kinds: list[str]
) -> None:
    with tab(browser) as page:
        join(page, attacked.address, getattr(attacked, who))
        starts = [start.format(study.id) for study in attacked.studies if study.form != "exam"]
        seen = crawl(
            page, attacked.address, *starts, "/exam", "/" + start.split("/")[1], under=("/review", "/exam", "/team")
        )
    assert {*kinds} <= {*map(shape, seen)}
