"""What a real browser makes of the page: nothing foreign runs, nothing is fetched, nothing overflows."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Literal

import pypdfium2
import pytest
from playwright.sync_api import Browser, expect

from hoofbeat import teaching
from hoofbeat.findings.outcomes import Outcome
from hoofbeat.records import Answer, Judgment, Question
from hoofbeat.reports.comparison.answers import compare_answers
from hoofbeat.reports.comparison.answers_page import write_answers
from hoofbeat.reports.item_views import answer_key, answers_viewer
from hoofbeat.reports.model import Report, Text
from hoofbeat.reports.page import to_html, write_html
from hoofbeat.reports.report_build import build_report
from hoofbeat.reports.sections.audits import audit_chapter
from hoofbeat.store import Artefact
from tests.reports.answer_runs import chosen, questions, run_of
from tests.reports.audits import made_audit, teaching_audit, wide_audit
from tests.reports.examples import HOSTILE
from tests.reports.test_page import page_of
from tests.web.support import needs_browser

Scheme = Literal["light", "dark"]

pytestmark = needs_browser


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


@pytest.mark.parametrize("width", [1100, 1280])
def test_a_short_page_without_contents_uses_the_whole_width(browser: Browser, tmp_path: Path, width: int) -> None:
    report = Report(title="Gate", notice="", version="", blocks=(Text("A sentence."),), compact=True)
    write_html(report, tmp_path / "report.html")
    opened = Opened(browser, tmp_path / "report.html", width=width)
    assert opened.page.locator("nav.contents").count() == 0
    assert opened.page.evaluate("document.querySelector('main').getBoundingClientRect().width") > 900
    opened.context.close()


def test_filter_and_anchors(browser: Browser, report: Artefact) -> None:
    opened = Opened(browser, report.path.resolve() / "report.html")
    viewer = opened.page.locator("#judgments-1-viewer")
    entries = viewer.locator(".list > details")
    assert entries.count() == 20
    viewer.locator("input").fill("caplacizumab")  # what is typed is looked for a moment later
    expect(viewer.locator("output")).to_have_text("1 of 20 shown")
    expect(viewer.locator(".list > details:not([hidden])")).to_have_count(1)
    viewer.locator("input").fill("")
    expect(viewer.locator("output")).to_have_text("20 of 20 shown")
    viewer.locator("select[data-filter=state]").select_option("right")
    viewer.locator("select[data-filter=system]").select_option("oracle")
    assert 0 < viewer.locator(".list > details:not([hidden])").count() < 20
    pair = opened.page.locator("#audit-1-p300 .pair")
    assert not pair.is_visible()
    opened.page.evaluate("location.hash = '#audit-1-p300'")
    pair.wait_for()
    assert opened.said == []
    opened.context.close()


MANY = 2310


@pytest.fixture(scope="module")
def long_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of more than two thousand questions with two answers each; the last one's texts are hostile."""
    asked, answers = [], []
    for number in range(MANY):
        text = HOSTILE if number == MANY - 1 else f"Invented question {number}: what comes next?"
        specialty = ("renal", "cardiac", "skin")[number % 3]
        asked.append(Question(id=f"q{number:05}", text=text, answer="rest", facets={"specialty": specialty}))
        for model in ("one", "two"):
            said = HOSTILE if number == MANY - 1 else f"Answer {number} of {model}. zebra{number}{model}"
            answers.append(Answer(question=f"q{number:05}", model=model, condition="closed", text=said))
    results = {
        answer_key(a): Outcome(
            question=a.question, model=a.model, condition=a.condition, sample=0,
            correct=None if n % 97 == 0 else n % 7 != 1, unscored="unjudged" if n % 97 == 0 else "",
        )
        for n, a in enumerate(answers)
    }  # fmt: skip
    judgments = [
        Judgment(question=a.question, model=a.model, condition=a.condition, judge="j", label="equivalent")
        for a in answers
    ]
    viewer = answers_viewer("p", asked, answers, results, judgments)
    path = tmp_path_factory.mktemp("long") / "report.html"
    write_html(Report(title="Long", notice="n", version="1", blocks=(viewer,)), path)
    return path


def shown(opened: Opened) -> str:
    told = opened.page.locator("output")
    expect(told).to_have_text(re.compile("shown$"))
    return told.inner_text()


def test_a_long_list_is_paged_filtered_and_opened(browser: Browser, long_page: Path) -> None:
    opened = Opened(browser, long_page)
    page = opened.page
    entries = page.locator(".list > details")
    assert shown(opened) == "2,310 of 2,310 shown"
    assert entries.count() == 25
    assert not page.locator(".first").is_visible()
    page.locator("select[data-filter=state]").select_option("wrong")
    page.locator("select[data-filter=system]").select_option("two · closed")
    wrong = [n for n in range(MANY) if (2 * n + 1) % 7 == 1 and (2 * n + 1) % 97]
    assert shown(opened) == f"{len(wrong)} of 2,310 shown"
    page.get_by_role("button", name="Last").click()
    assert page.locator(".at").inner_text() == f"Page {-(-len(wrong) // 25)} of {-(-len(wrong) // 25)}"
    last = entries.last
    assert last.locator(".id").inner_text() == f"q{wrong[-1]:05}"
    last.locator("summary").first.click()
    last.get_by_text(f"zebra{wrong[-1]}two").wait_for()
    assert not last.get_by_text(f"zebra{wrong[-1]}one").is_visible()
    assert "1 other answer is hidden" in last.inner_text()
    page.locator("select[data-filter=system]").select_option("")
    page.locator("select[data-filter=state]").select_option("")
    page.locator("select[data-filter=facet]").select_option("skin")
    assert shown(opened) == "770 of 2,310 shown"
    assert opened.said == []
    assert opened.asked == [long_page.as_uri()]
    opened.context.close()


def test_everything_in_a_long_list_is_searched(browser: Browser, long_page: Path) -> None:
    opened = Opened(browser, long_page)
    shown(opened)
    opened.page.locator("input").fill("zebra2222two")
    expect(opened.page.locator("output")).to_have_text("1 of 2,310 shown")
    assert opened.page.locator(".list > details .id").inner_text() == "q02222"
    opened.page.locator("input").fill("no such word")
    expect(opened.page.locator("output")).to_have_text("0 of 2,310 shown")
    opened.context.close()


def test_an_address_leads_to_an_item_on_a_later_page(browser: Browser, long_page: Path) -> None:
    opened = Opened(browser, long_page)
    shown(opened)
    opened.page.locator("input").fill("nothing at all")
    opened.page.evaluate("location.hash = '#p-q2001'")
    opened.page.get_by_text("zebra2000two").wait_for()
    assert opened.page.locator(".at").inner_text() == "Page 81 of 93"
    opened.context.close()


@pytest.mark.parametrize("width", [1280, 390])
def test_hostile_text_in_a_long_list_stays_text(browser: Browser, long_page: Path, width: int) -> None:
    opened = Opened(browser, long_page, width=width)
    shown(opened)
    assert not opened.overflows()
    opened.page.get_by_role("button", name="Last").click()
    last = opened.page.locator(".list > details").last
    last.locator("summary").first.click()
    last.locator(".question").wait_for()
    text = last.inner_text()
    assert "<script>window.owned=1</script>" in text
    assert "⟨U+202E⟩gnp.exe" in text
    assert "\u202e" not in text
    assert last.locator("script, img, svg, style").count() == 0
    assert opened.page.evaluate("window.owned") is None
    assert not opened.overflows()
    assert opened.said == []
    assert opened.asked == [long_page.as_uri()]
    opened.context.close()


def test_without_scripts_the_first_items_can_be_read(browser: Browser, long_page: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(long_page.as_uri())
    assert page.locator(".list > details").count() == 25
    assert "the first 25 of 2,310 questions" in page.locator(".first").inner_text()
    assert not page.locator(".filter").is_visible()
    context.close()


@pytest.mark.parametrize("width", [1280, 390])
def test_flipped_questions_are_filtered_by_pair_and_change(browser: Browser, tmp_path: Path, width: int) -> None:
    run_of(tmp_path / "before", [*chosen("rrrrww", "m1"), *chosen("wwwwww", "m2")], questions(6))
    run_of(tmp_path / "after", [*chosen("rrwwrr", "m1"), *chosen("rwwwww", "m2")], questions(6))
    made = write_answers(tmp_path / "out", compare_answers([tmp_path / "before", tmp_path / "after"]))
    opened = Opened(browser, made.path.resolve() / "report.html", width=width)
    assert shown(opened) == "5 of 5 shown"
    opened.page.locator("select[data-filter=state]").select_option("wrong → right")
    assert shown(opened) == "3 of 5 shown"
    opened.page.locator("select[data-filter=system]").select_option("m2 · closed, letter: after against before")
    assert shown(opened) == "1 of 5 shown"
    entry = opened.page.locator(".list > details:not([hidden])")
    entry.locator("summary").first.click()
    expect(entry.locator(".answer")).to_have_count(2)
    assert [tag.inner_text() for tag in entry.locator(".answer .tag").all()] == ["chosen", "gold", "chosen", "gold"]
    assert not opened.overflows()
    assert opened.said == []
    opened.context.close()


@pytest.fixture(scope="module")
def audit_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report on the teaching handbooks, whose answers and relations are planted."""
    folder = tmp_path_factory.mktemp("audit")
    made = build_report([teaching_audit(folder / "handbooks").path], folder / "report", title="Audit")
    return made.path.resolve() / "report.html"


def called(source: str) -> str:
    """What people call a handbook of the teaching audit."""
    return f"{source.removeprefix('hb-').replace('-', ' ').title()} handbook (invented)"


@pytest.mark.parametrize("width", [1280, 390])
def test_pairs_are_filtered_by_severity_and_source(browser: Browser, audit_page: Path, width: int) -> None:
    known = Counter((item.significance, item.a, item.b) for item in teaching.relations() if item.significance)
    opened = Opened(browser, audit_page, width=width)
    viewer = opened.page.locator("#audit-1-pairs")
    told = viewer.locator("output")
    expect(told).to_have_text("320 of 320 shown")
    viewer.locator("select[data-name=severity]").select_option("high")
    high = sum(count for (level, _, _), count in known.items() if level == "high")
    expect(told).to_have_text(f"{high} of 320 shown")
    one, other = next((a, b) for (level, a, b), count in sorted(known.items()) if level == "high" and count > 1)
    viewer.locator("select[data-name=source]").select_option(called(one))
    viewer.locator("select[data-name='and source']").select_option(called(other))
    expect(told).to_have_text(f"{known['high', one, other]} of 320 shown")
    viewer.locator("[data-clear]").click()
    expect(told).to_have_text("320 of 320 shown")
    assert not viewer.locator("[data-clear]").is_visible()
    opened.page.locator("#audit-1-matrix ~ figure .draw:visible a").first.click()
    expect(told).not_to_have_text("320 of 320 shown")
    assert viewer.locator("select[data-name='and source']").input_value() != ""
    assert not opened.overflows()
    assert opened.said == []
    assert opened.asked == [audit_page.as_uri()]
    opened.context.close()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_a_cell_of_a_grid_opens_both_answers_and_passages(
    browser: Browser, audit_page: Path, width: int, scheme: Scheme
) -> None:
    gold = {(item.question, item.source): item for item in teaching.patient_gold()}
    opened = Opened(browser, audit_page, width=width, scheme=scheme)
    entry = opened.page.locator("#audit-1-viewer .entry").filter(has_text="tq-04").first
    entry.locator("summary").first.click()
    cell = entry.locator(
        ".grid .cell[title='Alder Kidney handbook (invented) and Brook Liver handbook (invented): Contradictory']"
    )
    cell.click()
    panel = entry.locator(".panel")
    panel.locator(".pair").wait_for()
    for source in ("hb-alder-kidney", "hb-brook-liver"):
        known = gold["tq-04", source]
        assert known.answer in panel.inner_text()
        assert panel.locator("blockquote.cited mark").filter(has_text=known.evidence[0].quote[:40]).count() == 1
    assert panel.locator(".tag.cited").count() == 2
    opened.page.keyboard.press("Escape")
    assert cell.evaluate("(node) => node === document.activeElement")
    opened.page.keyboard.press("ArrowRight")
    opened.page.keyboard.press("Enter")
    expect(panel.locator(".names")).to_contain_text(
        "Alder Kidney handbook (invented) and Cairn Kidney handbook (invented)"
    )
    assert entry.locator(".grid .cell[tabindex='0']").count() == 1
    assert not opened.overflows()
    assert opened.said == []
    opened.context.close()


def test_many_sources_are_drawn_on_demand_and_unkept_pairs_say_so(browser: Browser, tmp_path: Path) -> None:
    part = audit_chapter(made_audit(tmp_path / "large", 45, 12), "audit-1", None, most=20)
    path = tmp_path / "report.html"
    write_html(Report(title="Large", notice="n", version="1", blocks=part.all_blocks()), path)
    opened = Opened(browser, path, width=390)
    page = opened.page
    expect(page.locator("#audit-1-pairs output")).to_have_text("20 of 20 shown")
    assert page.locator(".grid").count() == 0
    entry = page.locator("#audit-1-viewer .list > details").filter(has=page.get_by_text("Divergent")).first
    entry.locator("summary").first.click()
    entry.locator(".grid").wait_for()
    count = entry.locator(".grid tr").count() - 1
    assert entry.locator(".grid .cell").count() == count * (count - 1)
    entry.locator(".grid span.cell").first.click()
    expect(entry.locator(".panel")).to_contain_text("not kept in this page")
    assert entry.locator(".panel .side").count() == 2
    assert not opened.overflows()
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


def test_tables_are_folded_on_screen_and_on_paper_unless_they_are_open(browser: Browser, report: Artefact) -> None:
    opened = Opened(browser, report.path.resolve() / "report.html")
    page = opened.page
    folded, shown = page.locator("main > details.more > .inside > .table"), page.locator("main > .table")
    assert folded.count() > 20
    assert not any(folded.nth(place).is_visible() for place in range(folded.count()))
    assert [shown.nth(place).is_visible() for place in range(shown.count())] == [True] * shown.count() != []
    assert page.locator("#origin ~ details.more").count() == 1
    page.emulate_media(media="print")
    assert not page.locator("main > details.more").first.is_visible()
    page.locator("main > details.more").first.evaluate("details => { details.open = true }")
    assert folded.first.is_visible(), "what a reader opened is printed"
    opened.context.close()


def test_ten_questions_and_eight_institutions_fit_one_printed_page(browser: Browser, tmp_path: Path) -> None:
    made = build_report([wide_audit(tmp_path / "audit").path], tmp_path / "report", title="Pressure")
    page = browser.new_page()
    page.goto((made.path / "report.html").as_uri())
    pdf = pypdfium2.PdfDocument(page.pdf(prefer_css_page_size=True))
    texts = [pdf[place].get_textpage().get_text_range() for place in range(len(pdf))]
    (place,) = [number for number, text in enumerate(texts) if "Who says what: Blood pressure" in text]
    assert place == 0, "title, notice and table are on the first page"
    width, height = pdf[place].get_size()
    assert (round(width), round(height)) == (842, 595)
    for words in (
        "Pressure",
        "group 0?",
        "group 9?",
        "Institution 1",
        "Institution 8",
        "DIFFERS",
        "silent",
        "Not for clinical use",
    ):
        assert words in texts[place]
    assert "Passages behind this table" in texts[place + 1]
    page.close()


def test_who_says_what_is_cards_on_a_phone(browser: Browser, tmp_path: Path) -> None:
    audit = teaching_audit(tmp_path / "audit")
    path = build_report([audit.path], tmp_path / "report").file("report.html")
    phone = Opened(browser, path, width=390).page
    cells = phone.locator(".synthesis:not(.many) tbody td")
    assert cells.count()
    boxes = [box for box in (each.bounding_box() for each in cells.all()) if box is not None]
    assert len(boxes) == cells.count()
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= 390 for box in boxes)
    label = "(cell) => getComputedStyle(cell, '::before').content"
    wide = Opened(browser, path).page
    heads = wide.locator(".synthesis:not(.many) table").first.locator("thead th")
    for place in range(1, heads.count()):
        name = heads.nth(place).evaluate("(cell) => cell.firstChild.textContent.trim()")
        cell = phone.locator(".synthesis:not(.many) tbody tr").first.locator("td").nth(place - 1)
        assert str(cell.evaluate(label)).strip('"').startswith(name)
    assert (
        wide.locator(".synthesis tbody td").first.evaluate("(cell) => getComputedStyle(cell).display") == "table-cell"
    )
    assert wide.locator(".synthesis tbody td").first.evaluate(label) == "none"
