"""axe-core finds no serious violation on the main pages, light and dark, wide and on a tablet.

Pages of runs and audits on a wide, light screen are looked at by `test_runs_browser`, others here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.web.review_site import join
from tests.web.support import DESKTOP, TABLET, needs_browser, serious_faults, tab
from tests.web.whole import Whole, whole_site

pytestmark = needs_browser

PAGES = (
    "/", "/corpora/cases", "/corpora/cases/documents/1", "/benchmarks/bench", "/benchmarks/bench/questions/1",
    "/runs/judged", "/runs/judged/questions/1", "/audits/audit", "/audits/audit/questions/1",
    "/audits/audit/questions/1/pairs/1/2", "/audits/audit/pairs", "/audits/audit/themes",
    "/side-by-side?a=judged&b=judged-2", "/ask", "/folders/judged",
    "/rankings/ranked", "/rankings/ranked/queries?beside=ranked-2&order=behind", "/rankings/ranked/queries/3",
    "/rankings/ranked/queries/3?beside=ranked-2",
)  # fmt: skip
ELSEWHERE = ("/runs/", "/audits/", "/side-by-side")


@pytest.fixture(scope="module")
def site(folders: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    with whole_site(folders, str(tmp_path_factory.mktemp("accessible") / "review.db")) as opened:
        yield opened


@pytest.mark.parametrize(("size", "dark"), [(DESKTOP, False), (TABLET, True)], ids=["desktop", "tablet-dark"])
def test_browse_pages(site: Whole, browser: Browser, size: tuple[int, int], dark: bool) -> None:
    check(site, browser, site.admin, [path for path in PAGES if dark or not path.startswith(ELSEWHERE)], size, dark)


@pytest.mark.parametrize(("size", "dark"), [(DESKTOP, True), (TABLET, False)], ids=["desktop-dark", "tablet"])
def test_pages_of_reviewers(site: Whole, browser: Browser, size: tuple[int, int], dark: bool) -> None:
    ids = [study.id for study in site.studies]
    pages = ["/review", *(f"/review/{each}/next" for each in ids[:-1]), "/exam", f"/exam/{ids[-1]}"]
    check(site, browser, site.reviewer, pages, size, dark)


@pytest.mark.parametrize(("size", "dark"), [(DESKTOP, False), (TABLET, True)], ids=["desktop", "tablet-dark"])
def test_pages_of_the_team(site: Whole, browser: Browser, size: tuple[int, int], dark: bool) -> None:
    id = site.studies[0].id
    pages = ["/team", f"/team/{id}", f"/team/{id}/agreement", f"/team/{id}/queue", f"/team/{id}/trail", "/team/people"]
    check(site, browser, site.admin, pages, size, dark)


@pytest.mark.parametrize(
    "fault", ["<td style='color: #ccc'>row 6", "<td><b style='background: #333'>row 6</b>", "<td><input>"]
)
def test_a_fault_among_elements_that_look_alike_is_found(browser: Browser, fault: str) -> None:
    rows = "".join(f"<tr><td>row {row}<td>of 20" for row in range(20))
    page_of = "<!doctype html><html lang=en><title>Rows</title><main><h1>Rows</h1><table>{}</table></main>".format
    with tab(browser) as page:
        page.set_content(page_of(rows))
        assert serious_faults(page) == []
        page.set_content(page_of(rows.replace("<td>row 6", fault)))
        assert len(serious_faults(page)) == 1


def check(site: Whole, browser: Browser, token: str, pages: list[str], size: tuple[int, int], dark: bool) -> None:
    found: list[str] = []
    with tab(browser, size, dark=dark) as page:
        join(page, site.address, token)
        for path in pages:
            answer = page.goto(site.address + path)
            assert answer is not None
            assert answer.status == 200, f"{answer.status} at {path}"
            if page.evaluate("document.documentElement.scrollWidth > window.innerWidth"):
                found.append(f"{path}: wider than the screen")
            found += [f"{path}: {each}" for each in serious_faults(page)]
    assert not found, "\n".join(found)
