"""Tables in a real browser: sorted by a click or by keys, and cards where a phone is too narrow for them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from hoofbeat.store.folder_library import FolderLibrary
from hoofbeat.web import Site, create_app
from tests.web.support import needs_browser, serious_faults, serving, tab

pytestmark = needs_browser

PHONE = (390, 844)


@pytest.fixture(scope="module")
def address(folders: Path) -> Iterator[str]:
    with serving(create_app(Site(library=FolderLibrary([folders])))) as url:
        yield url


def calculated(page: Page) -> None:
    """Wait until the page has its figures."""
    for _ in range(60):
        if not page.get_by_text("Hoofbeat is calculating").count():
            break
        page.wait_for_timeout(500)
        page.reload()


def column(page: Page, name: str) -> list[str]:
    """The cells of one column of the list of queries, as they are shown."""
    found: list[str] = page.evaluate(
        """(name) => { const table = document.querySelector('table.questions');
        const place = [...table.tHead.rows[0].cells].findIndex((cell) => cell.textContent === name);
        return [...table.tBodies[0].rows].map((row) => row.cells[place].firstChild.textContent.trim()); }""",
        name,
    )
    return found


def test_a_column_is_sorted_by_a_click_and_by_keys(browser: Browser, address: str) -> None:
    with tab(browser) as page:
        page.goto(f"{address}/rankings/ranked")
        before = column(page, "Query")
        measure = page.locator("table.questions thead th").last
        name = measure.inner_text()
        measure.get_by_role("button").click()
        expect(measure).to_have_attribute("aria-sort", "descending")
        values = [float(each) for each in column(page, name) if each != "–"]
        assert values == sorted(values, reverse=True)
        page.keyboard.press("Enter")
        expect(measure).to_have_attribute("aria-sort", "ascending")
        assert [float(each) for each in column(page, name) if each != "–"] == values[::-1]
        expect(page.locator("#status")).to_contain_text("ascending")
        page.keyboard.press("Space")
        expect(measure).not_to_have_attribute("aria-sort", "ascending")
        assert column(page, "Query") == before, "the first order again"
        assert serious_faults(page) == []


def test_a_list_of_several_pages_is_not_sorted_page_by_page(browser: Browser, address: str, tmp_path: Path) -> None:
    with tab(browser) as page:
        page.goto(f"{address}/audits/audit/pairs")
        assert page.locator("nav.pages").count(), "there are more pairs than a page shows"
        assert page.locator("button.sort").count() == 0


@pytest.mark.parametrize(
    "path",
    ["/runs/judged", "/audits/audit", "/audits/audit/questions/1", "/rankings/ranked/queries", "/audits/audit/sources"],
)
def test_wide_tables_are_cards_on_a_phone(browser: Browser, address: str, path: str) -> None:
    with tab(browser, PHONE) as page:
        page.goto(address + path)
        calculated(page)
        expect(page.locator("table.carded").first).to_be_visible()
        wide = page.evaluate(
            """[...document.querySelectorAll('main *')].filter((each) => each.scrollWidth > each.clientWidth + 1
            && getComputedStyle(each).overflowX === 'auto').map((each) => each.className)"""
        )
        assert wide == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        first = page.locator("table.carded td[data-label]").first
        label = first.evaluate("cell => getComputedStyle(cell, '::before').content")
        assert label.strip('"') == first.get_attribute("data-label")
        assert serious_faults(page) == []
        page.set_viewport_size({"width": 1280, "height": 900})
        expect(page.locator("table.carded")).to_have_count(0)


def test_without_script_a_table_scrolls_in_its_box(browser: Browser, address: str) -> None:
    context = browser.new_context(java_script_enabled=False, viewport={"width": PHONE[0], "height": PHONE[1]})
    page = context.new_page()
    page.goto(f"{address}/rankings/ranked/queries")
    expect(page.locator("table.questions thead")).to_be_visible()
    expect(page.locator("button.sort")).to_have_count(0)
    context.close()


def test_a_card_names_an_institution_apart_from_its_document(browser: Browser, address: str) -> None:
    with tab(browser, PHONE) as page:
        page.goto(f"{address}/audits/audit")
        calculated(page)
        heads: list[list[str]] = page.evaluate(
            """() => [...document.querySelectorAll('.synthesis table thead th')]
            .filter((th) => th.querySelector('small'))
            .map((th) => [th.firstChild.textContent.trim(), th.querySelector('small').textContent.trim()])"""
        )
        assert heads
        for name, small in heads:
            assert page.locator(f'.synthesis td[data-label="{name}, {small}"]').count() > 0
        wraps = page.locator(".bar nav a").evaluate_all("all => all.map((a) => getComputedStyle(a).whiteSpace)")
        assert set(wraps) == {"nowrap"}


def test_rows_are_found_by_words_and_copied_for_a_spreadsheet(browser: Browser, address: str) -> None:
    with tab(browser) as page:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=address)
        page.goto(f"{address}/rankings/ranked/queries?size=all")
        table = page.locator("table.questions")
        shown = table.locator("tbody tr:visible")
        total = shown.count()
        assert total >= 12, "a list short enough for one page, and long enough to filter"
        first = table.locator("tbody tr").first.locator(".id").inner_text()
        page.get_by_label("Rows with").fill(first.upper())
        expect(shown).to_have_count(1)
        tools = page.locator(".table-tools")
        expect(tools.get_by_role("status")).to_have_text(f"1 of {total} rows")
        page.get_by_role("button", name="Copy table").click()
        expect(tools.get_by_role("status")).to_have_text("1 row copied")
        lines = page.evaluate("navigator.clipboard.readText()").splitlines()
        assert len(lines) == 2, "the heads and the row that is shown"
        assert first in lines[1]
        assert len(lines[0].split("\t")) == len(lines[1].split("\t")) == table.locator("thead th").count()
        page.get_by_label("Rows with").fill("")
        expect(shown).to_have_count(total)
        assert serious_faults(page) == []


def test_a_short_table_has_no_tools(browser: Browser, address: str) -> None:
    with tab(browser) as page:
        page.goto(f"{address}/rankings/ranked")
        calculated(page)
        assert page.locator(".table > table").count()
        assert page.locator(".table-tools").count() == page.locator(".table > table tbody tr:nth-child(12)").count()


@pytest.mark.parametrize("path", ["/benchmarks/bench/questions/", "/corpora/cases/documents/"])
def test_arrow_keys_lead_to_the_neighbours(browser: Browser, address: str, path: str) -> None:
    with tab(browser) as page:
        page.goto(f"{address}{path}1")
        page.keyboard.press("ArrowRight")
        page.wait_for_url(f"**{path}2")
        page.wait_for_load_state()
        page.keyboard.press("ArrowLeft")
        page.wait_for_url(f"**{path}1")
