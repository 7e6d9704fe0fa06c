"""Exams in a real browser, at desktop and tablet size: the whole way, the clock, stages, images, and the result."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from hoofbeat.benchmarks import Benchmark, write_benchmark
from hoofbeat.records import Question
from hoofbeat.review.exam_items import exam_study
from hoofbeat.review.exam_results import exam_answers
from hoofbeat.review.exam_sitting import load_sitting
from hoofbeat.review.review_records import Person, Study
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.store import Counts
from hoofbeat.web import create_app
from hoofbeat.web.page_rendering import picture
from hoofbeat.web.review.exam_pages import CLOCK
from tests.web.review_site import join, signed_in_tab, store_site
from tests.web.support import DESKTOP, TABLET, fits, needs_browser, serious_faults, serving

pytestmark = needs_browser


class Moved:
    """A clock that a test can move on."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


class Hall:
    """A server with a review store, where exams are sat."""

    def __init__(self, store: ReviewStore, clock: Moved, address: str, folders: Path) -> None:
        self.store, self.clock, self.address, self.folders = store, clock, address, folders

    def exam(self, name: str, **rules: object) -> tuple[Study, Person, str]:
        """An exam of that title, and somebody new who may sit it. The earlier ones are closed: open, they'd hide it."""
        for each in self.store.studies():
            self.store.close_study(each.id, "test")
        study, items = exam_study(self.folders / "bench", title=name, **rules)  # type: ignore[arg-type]
        self.store.create_study(study, items, by="test")
        person, token = self.store.invite(f"Dr {name}", "reviewer", by="test", groups=("endocrinology",))
        return study, person, token


@pytest.fixture(scope="module")
def hall(folders: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hall]:
    clock = Moved()
    with ReviewStore.open(str(tmp_path_factory.mktemp("hall") / "exam.db")) as store:
        site = store_site(store, [folders / "bench", folders / "run"])
        site.shared[CLOCK] = clock
        with serving(create_app(site)) as address:
            yield Hall(store, clock, address, folders)


def begin(page: Page, hall: Hall, study: Study) -> None:
    page.goto(f"{hall.address}/exam/{study.id}")
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("heading", name="Question 1 of")).to_be_visible()


def go_to(page: Page, place: int) -> None:
    """Open question number `place` from the list of all, where the page does not show it already."""
    page.wait_for_load_state()
    if place > 1:
        page.get_by_text("All questions").click()
        page.locator(".places").get_by_role("button", name=re.compile(rf"^{place} ")).click()
        expect(page.get_by_role("heading", name=f"Question {place} of")).to_be_visible()
        page.wait_for_load_state()


def answer(page: Page, letter: str = "A") -> None:
    """Choose by key where there are options, else write; then answer."""
    page.wait_for_load_state()
    if page.locator("input[type=radio]").count():
        page.keyboard.press(letter.lower())
        expect(page.locator(f"input[value={letter}]")).to_be_checked()
    else:
        page.locator("#text").fill("An invented answer.")
    page.get_by_role("button", name="Save answer and").click()


@pytest.mark.parametrize(("name", "size"), [("ReviewStore", DESKTOP), ("Tablet", TABLET)])
def test_a_whole_exam_from_invitation_to_result(browser: Browser, hall: Hall, name: str, size: tuple[int, int]) -> None:
    study, person, token = hall.exam(name, per_person=5, inside=0.4, minutes=30, seed=2)
    with signed_in_tab(browser, hall.address, token, size) as page:
        page.goto(f"{hall.address}/exam")
        page.get_by_role("link", name=name, exact=True).click()
        expect(page.get_by_text("You have 30 minutes")).to_be_visible()
        expect(page.get_by_text("You may use the literature")).to_be_visible()
        assert serious_faults(page) == []
        page.get_by_role("button", name="Start").click()
        expect(page.get_by_role("timer")).to_contain_text(re.compile(r"Time left: (30:00|29:\d\d)"))
        for number in range(1, 6):
            expect(page.get_by_role("heading", name=f"Question {number} of 5")).to_be_visible()
            assert page.locator(".tag.gold, .right, .wrong").count() == 0, "no feedback before the end"
            assert fits(page)
            if number == 5:
                assert serious_faults(page) == []
            answer(page, "B")
        expect(page.get_by_role("link", name="See your result")).to_be_visible()
        page.get_by_role("link", name="See your result").click()
        sitting = load_sitting(hall.store, study, person, time.time())
        chosen = [entry for entry in sitting.entries if entry.options]
        good = sum(entry.kept.answer == entry.question.answer for entry in chosen)
        if chosen:
            expect(page.locator("main")).to_contain_text(f"You answered {good} of {len(chosen)} questions right")
            expect(page.get_by_role("heading", name="Models on the same questions")).to_be_visible()
            expect(page.get_by_role("row", name=re.compile("openai:alpha-1 closed, letter"))).to_have_count(1)
        expect(page.locator(".entry")).to_have_count(5)
        page.locator(".entry summary").first.click()
        assert serious_faults(page) == []
    answers = [each for each in exam_answers(hall.store, study) if each.model == f"human:Dr {name}"]
    assert [each.choice for each in answers if each.protocol] == [entry.options[1] for entry in chosen]


def test_options_differ_from_person_to_person_and_stay_after_a_reload(browser: Browser, hall: Hall) -> None:
    study, one, token = hall.exam("Shuffled", per_person=0, seed=4)
    two, other = hall.store.invite("Dr Shuffled too", "reviewer", by="test")
    orders = []
    for person, secret in ((one, token), (two, other)):
        with signed_in_tab(browser, hall.address, secret) as page:
            begin(page, hall, study)
            sitting = load_sitting(hall.store, study, person, time.time())
            orders.append({entry.question.id: entry.options for entry in sitting.entries if entry.options})
            place = next(entry.place for entry in sitting.entries if entry.options)
            go_to(page, place)
            shown = page.locator(".choice > span:last-child").all_inner_texts()
            assert shown == list(sitting.entries[place - 1].options)
            page.keyboard.press("c")
            expect(page.locator("[data-kept]")).to_contain_text("Draft kept")
            page.reload()
            assert page.locator(".choice > span:last-child").all_inner_texts() == shown
            expect(page.locator("input[value=C]")).to_be_checked()
    assert orders[0] != orders[1]
    assert {name: sorted(order) for name, order in orders[0].items()} == {
        name: sorted(order) for name, order in orders[1].items()
    }


@pytest.mark.parametrize("size", [DESKTOP, TABLET])
def test_images_can_be_looked_at_closely(browser: Browser, hall: Hall, size: tuple[int, int]) -> None:
    study, person, token = hall.exam(f"Pictures {size[0]}", per_person=0, seed=1)
    with signed_in_tab(browser, hall.address, token, size) as page:
        begin(page, hall, study)
        sitting = load_sitting(hall.store, study, person, time.time())
        place = next(entry.place for entry in sitting.entries if entry.question.images)
        hidden = page.request.get(f"{hall.address}/exam/{study.id}/questions/{place}/images/1")
        if not sitting.entries[place - 1].opened:
            assert hidden.status == 404, "not before the question is open"
        go_to(page, place)
        link = page.locator("[data-zoom]")
        assert page.locator(".zoom img").evaluate("image => image.complete && image.naturalWidth > 0")
        (link.tap if size == TABLET else link.click)()
        dialog = page.get_by_role("dialog", name="Image 1 of 1")
        expect(dialog).to_be_visible()
        expect(dialog.locator(".level")).to_have_text("100%")
        dialog.get_by_role("button", name="Larger").click()
        expect(dialog.locator(".level")).to_have_text("150%")
        page.keyboard.press("+")
        expect(dialog.locator(".level")).to_have_text("225%")
        page.keyboard.press("ArrowRight")
        assert "translate(-60px" in (dialog.locator("img").get_attribute("style") or "")
        page.keyboard.press("0")
        dialog.locator(".view").hover()
        page.mouse.wheel(0, -100)
        expect(dialog.locator(".level")).to_have_text("115%")
        page.evaluate(PINCH)
        expect(dialog.locator(".level")).to_have_text("230%")
        page.keyboard.press("a")
        page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
        expect(link).to_be_focused()
        assert page.locator("input:checked").count() == 0, "keys in the image choose nothing"
        refused = page.request.get(f"{hall.address}/exam/{study.id}/questions/{place}/images/2")
        assert refused.status == 404


PINCH = """() => {
  const view = document.querySelector(".zoomer .view");
  view.setPointerCapture = () => {};
  const send = (name, id, x) => view.dispatchEvent(new PointerEvent(name, {pointerId: id, clientX: x, clientY: 300}));
  send("pointerdown", 1, 100);
  send("pointerdown", 2, 200);
  send("pointermove", 2, 300);
  send("pointerup", 1, 100);
  send("pointerup", 2, 300);
}"""


def test_time_runs_out_on_the_server_and_what_was_marked_counts(browser: Browser, hall: Hall) -> None:
    study, person, token = hall.exam("Late", per_person=6, inside=1.0, minutes=5, seed=6)
    try:
        with signed_in_tab(browser, hall.address, token) as page:
            begin(page, hall, study)
            sitting = load_sitting(hall.store, study, person, hall.clock())
            place = next(entry.place for entry in sitting.entries if entry.options)
            go_to(page, place)
            page.keyboard.press("b")
            expect(page.locator("[data-kept]")).to_contain_text("Draft kept")
            hall.clock.ahead += 235
            page.reload()
            expect(page.get_by_role("timer")).to_contain_text(re.compile(r"Time left: (1:0\d|0:5\d)"))
            expect(page.locator("#status")).to_have_text("1 minute left", timeout=60_000)
            hall.clock.ahead += 30
            page.reload()
            expect(page.get_by_role("timer")).to_contain_text(re.compile(r"Time left: 0:\d\d"))
            hall.clock.ahead += 60
            page.locator("input[value=A]").check()
            expect(page.locator("[data-kept]")).to_contain_text("time is up")
            page.get_by_role("button", name="Save answer and").click()
            expect(page.get_by_text("The time is up.")).to_be_visible()
            expect(page.get_by_role("button", name="Continue")).to_have_count(0)
            page.goto(f"{hall.address}/exam/{study.id}/questions/{place}")
            assert page.url.endswith(study.id), "no question can be opened any more"
            page.get_by_role("link", name="See your result").click()
            expect(page.get_by_text("draft, counted when the exam ended")).to_have_count(1)
        answers = [each for each in exam_answers(hall.store, study) if each.failure is None]
        assert [each.choice for each in answers] == [sitting.entries[place - 1].options[1]]
    finally:
        hall.clock.ahead = 0.0


def test_the_page_leaves_by_itself_when_the_time_is_up(browser: Browser, hall: Hall) -> None:
    study, _, token = hall.exam("Short", per_person=3, minutes=0.06, seed=1)
    with signed_in_tab(browser, hall.address, token, TABLET) as page:
        begin(page, hall, study)
        expect(page.get_by_text("The time is up.").first).to_be_visible(timeout=60_000)
        expect(page.get_by_role("link", name="See your result")).to_be_visible(timeout=60_000)


@pytest.mark.parametrize(("name", "size"), [("Stages", DESKTOP), ("Stages on a tablet", TABLET)])
def test_a_case_is_disclosed_in_parts(browser: Browser, hall: Hall, name: str, size: tuple[int, int]) -> None:
    study, person, token = hall.exam(name, per_person=1, inside=1.0, stages=(20, 60, 100), seed=3)
    with signed_in_tab(browser, hall.address, token, size) as page:
        begin(page, hall, study)
        lengths = []
        for number, share in enumerate((20, 60, 100), 1):
            note = page.get_by_text(f"The first {share}% of the case")
            expect(note).to_be_visible()
            expect(note).to_contain_text(f"Answer {number} of 3")
            lengths.append(len(page.locator(".case, legend, .field label").first.inner_text()))
            if number > 1:
                page.get_by_text("Your earlier answers").click()
                expect(page.get_by_text("At 20%:")).to_be_visible()
            page.reload()
            expect(note).to_be_visible()
            answer(page, "ABC"[number - 1])
        assert lengths == sorted(lengths)
        assert lengths[0] < lengths[2]
        page.get_by_role("link", name="See your result").click()
        page.locator(".entry summary").first.click()
        expect(page.locator(".entry .facts")).to_contain_text("At 20%:")
    sitting = load_sitting(hall.store, study, person, time.time())
    assert [each.share for each in sitting.entries[0].kept.given] == [20, 60, 100]


def test_what_is_marked_without_a_connection_is_kept_when_it_is_back(browser: Browser, hall: Hall) -> None:
    study, person, token = hall.exam("Offline", per_person=0, seed=9)
    with signed_in_tab(browser, hall.address, token) as page:
        begin(page, hall, study)
        sitting = load_sitting(hall.store, study, person, hall.clock())
        place = next(entry.place for entry in sitting.entries if entry.options)
        go_to(page, place)
        page.context.set_offline(True)
        page.keyboard.press("a")
        expect(page.locator("[data-kept]")).to_contain_text("can't be reached")
        page.keyboard.press("b")
        page.context.set_offline(False)
        expect(page.locator("[data-kept]")).to_contain_text("Draft kept", timeout=60_000)
    entry = load_sitting(hall.store, study, person, hall.clock()).entries[place - 1]
    assert entry.kept.draft == entry.options[1]


def test_whoever_is_signed_out_in_the_middle_loses_no_answer(browser: Browser, hall: Hall) -> None:
    study, person, token = hall.exam("Signed out", per_person=0, seed=5)
    with signed_in_tab(browser, hall.address, token) as page:
        begin(page, hall, study)
        written = next(
            entry for entry in load_sitting(hall.store, study, person, time.time()).entries if not entry.options
        )
        go_to(page, written.place)
        page.context.clear_cookies()
        page.locator("#text").fill("An answer that took a while to write.")
        expect(page.locator("[data-kept]")).to_contain_text("for a new link, open it in another tab")
        page.get_by_role("button", name="Save answer and").click()
        expect(page.locator("#text")).to_have_value("An answer that took a while to write.")
        other = page.context.new_page()
        join(other, hall.address, token)
        page.get_by_role("button", name="Save answer and").click()
        expect(page.get_by_role("heading", name=f"Question {written.place} of")).to_have_count(0)
        page.go_back()
        expect(page.get_by_text("you can't change your answer")).to_be_visible()
    given = {entry.place: entry.kept.answer for entry in load_sitting(hall.store, study, person, time.time()).entries}
    assert given[written.place] == "An answer that took a while to write."


def test_nobody_sees_a_result_early_or_the_exam_of_somebody_else(browser: Browser, hall: Hall) -> None:
    study, _, token = hall.exam("Early", per_person=3, seed=8)
    elsewhere, other = hall.store.invite("Dr Elsewhere", "reviewer", by="test", studies=(study.id,))
    with signed_in_tab(browser, hall.address, token) as page:
        begin(page, hall, study)
        page.goto(f"{hall.address}/exam/{study.id}/result")
        assert page.url.endswith(f"/exam/{study.id}")
        source = page.request.get(f"{hall.address}/exam/{study.id}/questions/1").text()
        question = load_sitting(hall.store, study, elsewhere, time.time()).entries
        assert question == ()
        for item in hall.store.items(study.id):
            record = item.key["question"]
            assert record["id"] not in source
            if not record.get("options"):
                assert record["answer"] not in source
        token_there = page.locator("meta[name=csrf]").get_attribute("content") or ""
        forged = page.request.post(
            f"{hall.address}/api/exam/{study.id}/questions/1/draft",
            data={"answer": "A", "stage": 0},
            headers={"Origin": hall.address},
        )
        assert forged.status == 403
        kept = page.request.post(
            f"{hall.address}/api/exam/{study.id}/questions/2/draft",
            data={"answer": "A", "stage": 0},
            headers={"X-CSRF-Token": token_there, "Origin": hall.address},
        )
        assert kept.status == 409, "it is not open"
    hidden, _, _ = hall.exam("Hidden", per_person=2)
    with signed_in_tab(browser, hall.address, other) as page:
        page.goto(f"{hall.address}/exam")
        expect(page.get_by_role("link", name="Hidden")).to_have_count(0)
        assert page.request.get(f"{hall.address}/exam/{hidden.id}").status == 404


def test_an_exam_ended_early_and_without_script(browser: Browser, hall: Hall) -> None:
    study, _, token = hall.exam("Plain", per_person=3, seed=8)
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{hall.address}/join/{token}")
    page.click("button:has-text('Sign in')")
    page.goto(f"{hall.address}/exam/{study.id}")
    page.click("button:has-text('Start')")
    expect(page.get_by_role("heading", name="Question 1 of 3")).to_be_visible()  # count() waits for nothing
    if page.locator("input[type=radio]").count():
        page.locator("input[type=radio]").first.check()
    else:
        page.fill("#text", "An invented answer.")
    page.click("button:has-text('Save answer and')")
    expect(page.get_by_role("heading", name="Question 2 of 3")).to_be_visible()
    page.goto(f"{hall.address}/exam/{study.id}")
    page.click("text=End the exam now")
    expect(page.get_by_text("Questions without an answer count as wrong.")).to_be_visible()
    page.click("button:has-text('End the exam and see the result')")
    expect(page.get_by_role("heading", name="Your result")).to_be_visible()
    expect(page.get_by_text("2 answers are missing")).to_be_visible()
    context.close()


@pytest.mark.parametrize("size", [DESKTOP, (390, 844)])
def test_free_text_has_its_own_words(browser: Browser, hall: Hall, tmp_path: Path, size: tuple[int, int]) -> None:
    asked = [
        Question(id=f"q{n}", text=f"Invented question {n}: what next?", context="An invented case.", answer="Wait.")
        for n in (1, 2)
    ]
    write_benchmark(tmp_path / "free", asked, title="invented", inputs=[], counts=Counts(kept=2))
    study, items = exam_study(tmp_path / "free", title=f"Own words {size[0]}", minutes=30)
    hall.store.create_study(study, items, by="test")
    _, token = hall.store.invite(f"Dr Words {size[0]}", "reviewer", by="test")
    with signed_in_tab(browser, hall.address, token, size) as page:
        page.goto(f"{hall.address}/exam/{study.id}")
        expect(page.get_by_text("Answer in your own words")).to_be_visible()
        expect(page.get_by_text("You see the reference answers after the exam.")).to_be_visible()
        expect(page.get_by_text("Choose one option")).to_have_count(0)
        page.get_by_role("button", name="Start").click()
        expect(page.get_by_text("Answer in your own words")).to_be_visible()
        page.wait_for_load_state()
        page.locator("#text").fill("A draft that is not saved.")
        expect(page.locator("[data-kept]")).to_contain_text("Draft kept")
        assert fits(page)
        page.goto(f"{hall.address}/exam/{study.id}")
        expect(page.locator(".place").first).to_contain_text("draft")
        page.get_by_text("End the exam now").click()
        page.get_by_role("button", name="End the exam and see the result").click()
        expect(page.get_by_text("1 answer in your own words has no score until someone judges it.")).to_be_visible()
        expect(page.get_by_text("draft, counted when the exam ended")).to_have_count(1)
        assert serious_faults(page) == []


def test_only_images_that_the_benchmark_lists_are_shown(folders: Path) -> None:
    artefact = Benchmark.open(folders / "bench").artefact
    question = next(q for q in Benchmark.open(folders / "bench").questions if q.images)
    found = picture(artefact, question.images, 1)
    assert found is not None
    assert found[0] == (artefact.path / question.images[0]).read_bytes()
    assert found[1] == "image/png"
    for name in ("../run/manifest.json", "/etc/passwd", "manifest.json", "questions.jsonl"):
        assert picture(artefact, [name], 1) is None
    assert picture(artefact, question.images, 0) is None
    assert picture(artefact, question.images, 2) is None
