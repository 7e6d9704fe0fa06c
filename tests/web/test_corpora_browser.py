"""From the start page to a marked passage and to a question beside its source, in a real browser of two sizes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from hoofbeat.records import Document, Question, Span
from hoofbeat.web.app import create_app
from tests.web.browse_support import HOSTILE, a_benchmark, a_corpus, a_site
from tests.web.support import DESKTOP, TABLET, boxes, fits, needs_browser, serious_faults, serving, tab

pytestmark = needs_browser
PAGES = (
    "/",
    "/corpora/cases",
    "/corpora/cases/documents/2",
    "/benchmarks/bench",
    "/benchmarks/bench/questions/4",
    "/benchmarks/bench/rejected/1",
)
HOSTILE_PAGES = (
    "/",
    "/corpora/bad",
    "/corpora/bad/documents/1",
    "/benchmarks/asked",
    "/benchmarks/asked/questions/1",
)
SIZES = pytest.mark.parametrize("size", [DESKTOP, TABLET], ids=["desktop", "tablet"])


@pytest.fixture(scope="module")
def address(folders: Path) -> Iterator[str]:
    with serving(create_app(a_site(folders))) as url:
        yield url


MARK_SEEN = """() => {
  const pane = document.querySelector(".source-pane").getBoundingClientRect();
  const mark = document.querySelector(".source-pane mark").getBoundingClientRect();
  return mark.top >= pane.top && mark.top < pane.bottom;
}"""
"""Whether the first mark is within the part of the source that can be seen."""


@SIZES
def test_from_the_start_page_to_a_passage_found_by_a_search(
    browser: Browser, address: str, size: tuple[int, int]
) -> None:
    with tab(browser, size) as page:
        page.goto(address)
        page.get_by_role("link", name="Cases (invented)").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Cases (invented)")
        assert fits(page)
        page.get_by_label("Search for").fill("one fraction of 25 Gy to the basal septum")
        page.get_by_label("Retriever line").fill("bm25")
        page.get_by_role("button", name="Search").click()
        first = page.locator(".hit").first
        expect(first.locator("mark").first).to_be_visible()
        expect(first).to_contain_text("bm25: rank 1")
        assert "septum" not in page.url
        results = page.url
        assert fits(page)
        first.get_by_role("link").first.click()
        mark = page.locator("#mark-1")
        expect(mark).to_be_in_viewport()
        assert fits(page)
        page.go_back()
        expect(page.locator(".hit").first).to_be_visible()
        assert page.url.partition("#")[0] == results.partition("#")[0]
        page.get_by_label("Retriever line").fill("bm52")
        page.get_by_role("button", name="Search").click()
        expect(page.get_by_role("alert")).to_contain_text("did you mean bm25?")
        expect(page.get_by_label("Search for")).to_have_value("one fraction of 25 Gy to the basal septum")


@SIZES
def test_from_a_benchmark_by_filter_and_words_to_a_question_beside_its_source(
    browser: Browser, address: str, size: tuple[int, int]
) -> None:
    with tab(browser, size) as page:
        page.goto(f"{address}/benchmarks/bench")
        assert fits(page)
        page.get_by_label("form", exact=True).select_option("open")
        page.get_by_role("button", name="Filter").click()
        expect(page.locator(".counts")).to_contain_text("19 questions")
        page.get_by_label("Search in questions").fill("mechanical valves")
        page.get_by_role("button", name="Search").click()
        expect(page.locator(".counts")).to_contain_text("1 question with these words and form: open")
        assert "valves" not in page.url
        page.locator(".rows a").first.click()
        expect(page.locator("h1")).to_contain_text("What is the best next step to control the arrhythmia?")
        expect(page.locator(".source-pane mark").first).to_contain_text("With ethics board agreement")
        page.wait_for_function(MARK_SEEN)
        assert fits(page)
        left, right = boxes(page.locator("#question, #source"))
        assert right.left > left.left + 300, "they stand side by side"
        expect(page.locator('a[href="/runs/judged/questions/3"]')).to_be_visible()
        page.goto(f"{address}/benchmarks/bench/questions/3")
        page.get_by_role("link", name="Next question").click()
        expect(page.locator(".options .tag.gold")).to_be_visible()


def test_what_stands_before_a_text_is_folded_where_space_is_short(browser: Browser, address: str) -> None:
    for size, is_open in ((TABLET, 0), (DESKTOP, 2)):
        with tab(browser, size) as page:
            page.goto(f"{address}/corpora/cases/documents/1")
            expect(page.get_by_text("Where it is used")).to_be_visible()
            expect(page.locator(".contents-box[open]")).to_have_count(is_open)


def test_the_page_on_any_folder_fits_and_leads_on(browser: Browser, address: str) -> None:
    with tab(browser, TABLET, dark=True) as page:
        page.goto(address)
        page.get_by_role("link", name="How run was made").click()
        expect(page.get_by_role("heading", name="How it was made")).to_be_visible()
        assert fits(page)
        page.get_by_text("Files in the folder").click()
        expect(page.get_by_text("answers.jsonl")).to_be_visible()
        page.locator('main a[href="/runs/judged"]').click()
        assert page.url.endswith("/runs/judged")


def test_pages_work_without_script_and_by_keyboard(browser: Browser, address: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}/benchmarks/bench/questions/3")
    page.get_by_role("link", name="Go to the first").click()
    expect(page.locator("#mark-1")).to_be_in_viewport()
    page.goto(f"{address}/corpora/cases")
    page.get_by_label("Search for").fill("hypercalcaemia")
    page.get_by_label("Search for").press("Tab")
    page.get_by_label("Retriever line").press("Enter")
    expect(page.locator(".hit").first).to_be_visible()
    context.close()


def test_nothing_serious_stands_in_the_way_of_assistive_technology(browser: Browser, address: str) -> None:
    """In light colours; `test_accessible` looks at the dark ones."""
    with tab(browser, TABLET) as page:
        for path in PAGES:
            page.goto(address + path)
            assert not serious_faults(page), path


def test_hostile_documents_and_questions_run_nothing(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("hostile")
    text = f"{HOSTILE}\n\nWords of the case."
    document = Document(id=HOSTILE, title=HOSTILE, text=text, facets={HOSTILE: [HOSTILE, "y"]})
    corpus = a_corpus(folder / "bad", [document, Document(id="d", title="t", text="w")], title=HOSTILE)
    start = text.index("Words")
    span = Span(document=HOSTILE, start=start, end=start + 5, quote="Words")
    question = Question(
        id=HOSTILE, text=HOSTILE, context=HOSTILE, options=(HOSTILE,), answer=HOSTILE, evidence=(span,),
        facets={HOSTILE: HOSTILE},
    )  # fmt: skip
    a_benchmark(folder / "asked", [question, Question(id="b", text="c")], inputs=[corpus.reference()])
    with serving(create_app(a_site(folder))) as url, tab(browser) as page:
        for path in HOSTILE_PAGES:
            page.goto(url + path)
            assert page.evaluate("window.owned") is None, path
            expect(page.locator("body")).to_be_visible()
        expect(page.locator(".source-pane mark")).to_have_text("Words")
        page.goto(f"{url}/corpora/bad")
        page.get_by_label("Search for").fill(HOSTILE)
        page.get_by_role("button", name="Search").click()
        expect(page.locator(".hits")).to_be_visible()
        assert page.evaluate("window.owned") is None
