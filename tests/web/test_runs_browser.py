"""Runs, side by side and audits in a real browser, at a review store and on a tablet."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from playwright.sync_api import Browser, expect

from hoofbeat.audit import AuditSource
from hoofbeat.judging import JudgmentFolder
from hoofbeat.records import Answer, Comparison, Failure, Judgment, Passage, Question, Vote
from hoofbeat.web import create_app
from tests.web.answered import a_judged, an_audit
from tests.web.browse_support import HOSTILE, a_site
from tests.web.support import DESKTOP, TABLET, boxes, fits, needs_browser, serious_faults, serving, tab

pytestmark = needs_browser
SIZES = pytest.mark.parametrize("size", [DESKTOP, TABLET], ids=["desktop", "tablet"])


@pytest.fixture(scope="module")
def url(folders: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The teaching folders, and the run judged a second time with every third verdict turned."""
    judged = JudgmentFolder.open(folders / "judged")
    turned = {"equivalent": "mismatch", "mismatch": "equivalent"}
    again = [
        replace(each, label=turned.get(each.label, each.label)) if place % 3 == 0 else each
        for place, each in enumerate(judged.judgments)
    ]
    more = tmp_path_factory.mktemp("more")
    a_judged(more / "again", judged.questions, judged.answers, again)
    with serving(create_app(a_site(folders, more))) as address:
        yield address


@SIZES
def test_a_runs_answers_are_found_by_filters(url: str, browser: Browser, size: tuple[int, int]) -> None:
    with tab(browser, size) as page:
        page.goto(f"{url}/runs/judged")
        expect(page.locator("h1")).to_contain_text("Answers of openai:alpha-1, openai:beta-2")
        assert fits(page)
        page.get_by_role("link", name="✗ wrong").click()
        page.get_by_label("Model").select_option("openai:beta-2")
        page.get_by_label("Form").select_option("open")
        page.get_by_role("button", name="Show").click()
        expect(page.get_by_role("status").first).to_contain_text("match the filters")
        listed = page.locator("table.questions tbody tr")
        assert 0 < listed.count() < 38
        assert fits(page)
        first = page.locator("table.questions .id").first.inner_text()
        page.locator("table.questions a").first.click()
        expect(page.locator("h1 .id")).to_have_text(first)
        wrong = page.locator(".answer.wrong")
        expect(wrong.first).to_contain_text("openai:beta-2")
        expect(wrong.first.locator(".judge")).to_contain_text("mismatch")
        expect(page.locator(".prose.gold")).to_be_visible()
        page.wait_for_load_state()
        page.keyboard.press("ArrowRight")
        expect(page.locator("h1 .id")).not_to_have_text(first)
        assert "form=open" in page.url
        page.get_by_role("link", name="Back to the list").first.click()
        expect(page.get_by_label("Model")).to_have_value("openai:beta-2")


@SIZES
def test_two_runs_are_read_side_by_side(url: str, browser: Browser, size: tuple[int, int]) -> None:
    with tab(browser, size) as page:
        page.goto(f"{url}/runs/judged")
        page.get_by_label("Compare with").select_option("again")
        page.get_by_role("button", name="Compare").click()
        expect(page.locator("h1")).to_have_text("Two runs compared")
        assert fits(page)
        page.locator("table.linked a").nth(1).click()
        chosen = page.locator("tr.here a").inner_text()
        expect(page.locator("h2#pair")).to_have_text(chosen)
        change = page.get_by_label("Change", exact=True)
        change.select_option(label=change.locator("option").nth(1).inner_text())
        page.get_by_role("button", name="Show").click()
        expect(page).to_have_url(re.compile("change="))
        told = page.locator("table.questions .mark").first.inner_text()
        question = page.locator("table.questions .id").first.inner_text()
        page.locator("table.questions a").first.click()
        expect(page.locator("h1 .id")).to_have_text(question)
        expect(page.locator(".counts")).to_contain_text(told)
        sides = page.locator(".beside section")
        left, right = boxes(sides)
        assert left.top == right.top
        assert left.right <= right.left
        expect(sides.nth(0).locator(".answer")).to_have_count(1)
        expect(sides.nth(1).locator(".answer")).to_have_count(1)
        assert fits(page)


@SIZES
def test_an_audit_is_followed_from_the_matrix_to_the_evidence(
    url: str, browser: Browser, size: tuple[int, int]
) -> None:
    with tab(browser, size) as page:
        page.goto(f"{url}/audits/audit")
        assert fits(page)
        page.locator('.matrix a[title^="Alder Bay Transplant Centre, kidney and Dunehaven Regional Hospital"]').click()
        expect(page.get_by_label("Source", exact=True)).to_have_value("1")
        expect(page.get_by_label("and source")).to_have_value("7")
        rows = page.locator("table.pairs tbody tr")
        assert rows.count() > 1
        expect(rows.first).to_contain_text("Alder Bay Transplant Centre, kidney and Dunehaven Regional Hospital")
        assert fits(page)
        page.get_by_role("row").filter(has_text="tq-03").get_by_role("link").click()
        expect(page.locator("h1")).to_have_text("Alder Bay Transplant Centre, kidney and Dunehaven Regional Hospital")
        expect(page.locator(".pair .mark").first).to_have_text("Divergent")
        expect(page.locator(".pair")).to_contain_text("call at 37.8 °C or higher")
        cited = page.locator("blockquote.cited")
        expect(cited).to_have_count(2)
        expect(cited.nth(0).locator("mark")).to_contain_text("38.0 °C")
        expect(cited.nth(1).locator("mark")).to_contain_text("37.8 °C")
        left, right = boxes(cited)
        assert left.right <= right.left
        assert fits(page)
        page.locator(".asked-line a").click()
        page.locator('.matrix a[title^="Brookfen University Hospital, liver and Cairnmoor Liver Unit"]').first.click()
        expect(page.locator("h1")).to_have_text("Brookfen University Hospital, liver and Cairnmoor Liver Unit")


def test_a_matrix_is_walked_by_keyboard(url: str, browser: Browser) -> None:
    with tab(browser) as page:
        page.goto(f"{url}/audits/audit/questions/3")
        page.wait_for_load_state()
        stops = page.locator('.matrix a.cell[tabindex="0"]')
        expect(stops).to_have_count(1)
        stops.focus()
        start = page.evaluate("document.activeElement.title")
        page.keyboard.press("ArrowDown")
        below = page.evaluate("document.activeElement.title")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowLeft")
        assert page.evaluate("document.activeElement.title") == below != start
        page.keyboard.press("End")
        last = page.evaluate("document.activeElement.title")
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_contain_text(last.partition(" and ")[0])


def test_lists_work_without_a_script(url: str, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{url}/audits/audit/questions?label=Contradictory")
    assert page.locator("table.questions tbody tr").count() > 1
    page.get_by_label("Significance").select_option("high")
    page.get_by_role("button", name="Show").click()
    page.locator("table.questions a").first.click()
    expect(page.locator(".matrix a.cell").nth(2)).to_be_visible()
    context.close()


PAGES = (
    "/runs/judged", "/runs/judged/questions", "/runs/judged/questions/3",
    "/side-by-side?a=judged&b=again", "/side-by-side/questions/3?a=judged&b=again", "/audits/audit",
    "/audits/audit/sources", "/audits/audit/questions", "/audits/audit/questions/3", "/audits/audit/pairs",
    "/audits/audit/questions/3/pairs/1/7", "/audits/audit/themes", "/audits/audit-2/since/audit", "/side-by-side",
)  # fmt: skip


def test_no_page_has_a_serious_fault_of_accessibility(url: str, browser: Browser) -> None:
    """In light colours; `test_accessible` looks at the dark ones."""
    faults = []
    with tab(browser) as page:
        for path in PAGES:
            page.goto(url + path)
            assert fits(page), path
            faults += [(path, each) for each in serious_faults(page)]
    assert not faults


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Folders in which every name and every text is hostile."""
    folder = tmp_path_factory.mktemp("hostile")
    bad = HOSTILE
    questions = [
        Question(id=f"{n} {bad}", text=bad, context=bad, answer=bad, facets={bad: [f"{n}{bad}"]}) for n in range(2)
    ]
    shown = Passage(id=bad, document=bad, text=bad, heading=bad)
    answers = [
        Answer(
            question=question.id, model=f"{model}{bad}", condition=bad, text=bad, reasoning=bad, evidence=(shown,),
            citations=(bad,), warnings=(bad,),
        )
        for model in "ab"
        for question in questions
    ]  # fmt: skip
    answers[0] = replace(answers[0], failure=Failure(kind="timeout", message=bad))
    judgments = [
        Judgment(
            question=each.question, model=each.model, condition=bad, judge=bad, reasoning=bad,
            label="equivalent" if place % 2 else "mismatch", votes=(Vote(judge=bad, label=bad, reasoning=bad),),
        )
        for place, each in enumerate(answers)
        if not each.failure
    ]  # fmt: skip
    turned = [replace(each, label="equivalent") for each in judgments]
    a_judged(folder / "judged", questions, answers, judgments, title=bad, judge=bad)
    a_judged(folder / "other", questions, answers, turned, title=bad, judge=bad)
    names = [f"a{bad}", f"b{bad}", f"c{bad}"]
    told = [
        Answer(
            question=question.id, model=bad, condition="source", source=name, text=bad, absent=False, citations=(bad,),
            evidence=(shown,),
        )
        for question in questions
        for name in names
    ]  # fmt: skip
    pairs = [
        Comparison(
            question=question.id, a=a, b=b, label="Contradictory", reasoning=bad, topic=bad, significance="high",
            judge=bad, basis="judged",
        )
        for question in questions
        for a, b in ((names[0], names[1]), (names[0], names[2]), (names[1], names[2]))
    ]  # fmt: skip
    sources = [AuditSource(id=name, title=bad, facets={}) for name in names]
    an_audit(folder / "audit", questions, told, pairs, sources=sources)
    an_audit(folder / "later", questions, told, pairs, sources=sources)
    with serving(create_app(a_site(folder))) as address:
        yield address


def test_hostile_text_stays_text_on_every_page(hostile: str, browser: Browser) -> None:
    with tab(browser) as page:
        page.on("dialog", lambda _: pytest.fail("a dialog opened"))
        seen: set[str] = set()
        waiting = ["/runs/judged", "/audits/audit", "/side-by-side?a=judged&b=other", "/audits/later/since/audit"]
        kinds: Counter[str] = Counter()
        while waiting:
            path = waiting.pop(0)
            kind = "/".join("*" if part.isdigit() else part for part in path.partition("?")[0].split("/"))
            if path in seen or kinds[kind] > 1:
                continue
            seen.add(path)
            kinds[kind] += 1
            answer = page.goto(hostile + path)
            assert answer
            assert answer.status == 200, path
            assert page.evaluate("window.owned === undefined"), path
            assert page.locator("main img, main svg:not(.hb), main script, main style, main iframe").count() == 0, path
            assert page.evaluate("getComputedStyle(document.body).display") != "none", path
            assert "49" not in page.title()
            hrefs: list[str] = page.eval_on_selector_all("main a", "links => links.map(a => a.getAttribute('href'))")
            assert all(href.startswith(("/", "#")) for href in hrefs), path
            mine = [href.partition("#")[0] for href in hrefs if href.startswith(("/runs", "/audits", "/side-by-side"))]
            waiting += [href for href in dict.fromkeys(mine) if href not in seen]
        assert {
            "/runs/judged", "/runs/judged/facets", "/runs/judged/questions", "/runs/judged/questions/*",
            "/audits/audit", "/audits/audit/sources", "/audits/audit/questions", "/audits/audit/questions/*",
            "/audits/audit/pairs", "/audits/audit/questions/*/pairs/*/*", "/audits/audit/themes",
            "/audits/later/since/audit", "/side-by-side", "/side-by-side/questions/*",
        } <= set(kinds)  # fmt: skip


def test_a_hostile_name_can_be_filtered_by(hostile: str, browser: Browser) -> None:
    with tab(browser) as page:
        page.goto(f"{hostile}/runs/judged/questions")
        page.get_by_label("Model").select_option(index=2)
        page.get_by_role("button", name="Show").click()
        expect(page.get_by_role("status").first).to_contain_text("2 of 2 questions")
        page.get_by_label("Model").select_option(index=1)
        page.get_by_label("State").select_option("right")
        page.get_by_role("button", name="Show").click()
        expect(page.get_by_role("status").first).to_contain_text("1 of 2 questions")
        page.goto(f"{hostile}/audits/audit/questions")
        page.locator("form.picks select[name^=facet]").select_option(index=1)
        page.get_by_role("button", name="Show").click()
        expect(page.get_by_role("status").first).to_contain_text("1 of 2 questions")
