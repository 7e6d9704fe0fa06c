"""What happens on the review page when something goes wrong: no connection, a reload, two tabs, a lost session."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.sync_api import Browser, Route, expect

from hoofbeat.review.review_store import ReviewStore
from tests.review.review_studies import ANSWERS
from tests.web.review_site import join, signed_in_tab
from tests.web.review_work import BadLine, Work, address, by_hand, chosen, store
from tests.web.support import needs_browser, tab

__all__ = ["address", "store"]

pytestmark = needs_browser

SAYINGS = """() => { window.said = []; const line = document.getElementById("saved");
    new MutationObserver(() => window.said.push(line.textContent)).observe(line,
    { childList: true, characterData: true, subtree: true }); }"""
"""Keeps what the line says of saving: it says "not yet" for less than a second."""


def test_a_draft_saves_itself_and_time_is_counted(
    browser: Browser, store: ReviewStore, address: str, folders: Path
) -> None:
    work = Work(store, folders, "likert", seed=1)
    with signed_in_tab(browser, address, work.token) as page:
        page.goto(work.link(address))
        page.get_by_label("Note").fill("half a thou")
        expect(page.locator("#saved")).to_contain_text("Draft saved")
        assert work.values() == {"note": "half a thou"}
        page.wait_for_timeout(1200)
        page.locator("details.told summary").click()
        page.evaluate(SAYINGS)
        page.keyboard.press("k")
        page.keyboard.press("1")
        page.wait_for_function("window.said.some((text) => text.includes('Not saved yet'))")
        expect(page.locator("#saved")).to_contain_text("Draft saved")
        label = store.label(work.study.id, work.items[0].id, work.person.id)
        assert label is not None
        assert 1 <= label.seconds < 30


def test_hidden_and_idle_time_is_not_counted(browser: Browser, store: ReviewStore, address: str, folders: Path) -> None:
    work = Work(store, folders, "likert", seed=2)
    with signed_in_tab(browser, address, work.token) as page:
        page.clock.install()
        page.goto(work.link(address))
        page.mouse.move(5, 5)
        page.clock.run_for(300_000)  # five minutes in which nobody moves: one of them counts
        page.get_by_label("Note").fill("back")
        page.clock.run_for(2_000)
        expect(page.locator("#saved")).to_contain_text("Draft saved")
        label = store.label(work.study.id, work.items[0].id, work.person.id)
        assert label is not None
        assert 55 <= label.seconds <= 66
        page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
        page.keyboard.press("Shift")
        page.clock.run_for(30_000)
        page.evaluate("Object.defineProperty(document, 'hidden', {value: false, configurable: true})")
        page.get_by_label("Note").fill("back again")
        page.clock.run_for(2_000)
        expect(page.locator("#saved")).to_contain_text("Draft saved")
        later = store.label(work.study.id, work.items[0].id, work.person.id)
        assert later is not None
        assert later.seconds - label.seconds < 10


def test_nothing_is_lost_without_a_connection(
    browser: Browser, store: ReviewStore, address: str, folders: Path
) -> None:
    work = Work(store, folders, "likert", seed=3)
    with signed_in_tab(browser, address, work.token) as page:
        page.goto(work.link(address))
        page.context.set_offline(True)
        by_hand(page, work.fields(), ANSWERS["likert"], touch=False)
        page.get_by_role("button", name="Save and next").click()
        expect(page.locator("#saved")).to_contain_text("Trying again")
        page.get_by_label("Note").fill("written without a connection")
        assert work.saves() == []
        page.context.set_offline(False)
        expect(page.locator("#saved")).to_contain_text("Changed and kept as a draft. Save it to make it count again")
        assert work.values() == {**ANSWERS["likert"], "note": "written without a connection"}
        assert page.url == work.link(address), "who goes on writing is not taken away"
        page.keyboard.press("Control+Enter")
        page.wait_for_url(work.link("**", 1))
        assert work.saves()[-1] == "done"


def test_backoff_tries_again_by_itself(browser: Browser, store: ReviewStore, address: str, folders: Path) -> None:
    work = Work(store, folders, "equivalence", seed=4)
    with signed_in_tab(browser, address, work.token) as page:
        page.goto(work.link(address))
        tries: list[str] = []

        def handle(route: Route) -> None:
            tries.append(json.loads(route.request.post_data or "")["request"])
            if len(tries) == 2:
                route.fulfill(status=503, json={"error": "the database is busy"})
            elif len(tries) == 1:
                route.abort()
            else:
                route.continue_()

        page.route("**/api/review/**", handle)
        page.keyboard.press("e")
        page.keyboard.press("Control+Enter")
        page.wait_for_url(work.link("**", 1))
        assert len(tries) >= 3
        assert len(set(tries[:3])) == 1, "the same save keeps its id"
        assert work.values() == {"label": "equivalent"}


def test_a_reload_in_the_middle_of_a_save_doubles_nothing(
    browser: Browser, store: ReviewStore, address: str, folders: Path
) -> None:
    work = Work(store, folders, "equivalence", seed=5)
    with signed_in_tab(browser, address, work.token) as page:
        page.goto(work.link(address))
        line = BadLine(page, "draft")
        page.keyboard.press("m")
        expect(page.locator("#saved")).to_contain_text("Not saved: no connection")
        line.broken = False
        page.reload()
        expect(page.locator("#saved")).to_contain_text("Draft saved")
        page.wait_for_load_state("networkidle")
        assert page.evaluate("sessionStorage.length") == 0
        assert chosen(page) == {"label": "mismatch"}
        assert len(set(line.lost)) == 1
        assert work.saves() == ["draft"]


def test_what_was_written_while_a_draft_was_on_its_way_survives_a_reload(
    browser: Browser, store: ReviewStore, address: str, folders: Path
) -> None:
    work = Work(store, folders, "likert", seed=15)
    with signed_in_tab(browser, address, work.token) as page:
        page.goto(work.link(address))
        waiting: list[Route] = []

        def arrives_without_an_answer(route: Route) -> None:
            route.fetch()
            waiting.append(route)

        page.route("**/api/review/**", arrives_without_an_answer, times=1)
        with page.expect_request("**/api/review/**"):
            page.get_by_label("Note").fill("half a")
        page.get_by_label("Note").fill("half a thought")
        page.wait_for_function("JSON.parse(Object.values(sessionStorage)[0] ?? '{}').latest?.note === 'half a thought'")
        for _ in range(600):
            if waiting:
                break
            page.wait_for_timeout(50)  # lets the route's handler run
        assert work.values() == {"note": "half a"}, "the draft has arrived before the page is loaded again"
        page.reload()
        expect(page.get_by_label("Note")).to_have_value("half a thought")
        expect(page.locator("#saved")).to_contain_text("Draft saved")
        assert work.values() == {"note": "half a thought"}


def test_two_versions_are_shown_and_one_is_chosen(
    browser: Browser, store: ReviewStore, address: str, folders: Path
) -> None:
    work = Work(store, folders, "pair", seed=6)
    with signed_in_tab(browser, address, work.token) as page, page.context.new_page() as other:
        for place, keep in enumerate(("Keep this version", "Take the other version")):
            page.goto(work.link(address, place))
            other.goto(work.link(address, place))
            other.keyboard.press("2")
            expect(other.locator("#saved")).to_contain_text("Draft saved")
            page.keyboard.press("5")
            expect(page.locator("#conflict")).to_be_visible()
            row = page.locator("#conflict-rows tr").first
            expect(row).to_have_text("RelationContradictoryConsistent")
            page.get_by_text(keep, exact=True).click()
            expect(page.locator("#conflict")).to_be_hidden()
            expect(page.locator("#saved")).to_contain_text("Draft saved")
            wanted = "Consistent" if place else "Contradictory"
            assert chosen(page) == {"label": wanted}
            assert work.values(place) == {"label": wanted}


def test_somebody_signed_out_is_told_and_keeps_what_was_written(
    browser: Browser, store: ReviewStore, address: str, folders: Path
) -> None:
    work = Work(store, folders, "likert", seed=11)
    with tab(browser) as page:
        join(page, address, work.token)
        page.goto(work.link(address))
        cookies = page.context.cookies()
        page.context.clear_cookies()
        page.get_by_label("Note").fill("still here")
        expect(page.locator("#saved")).to_contain_text("for a new link")
        page.context.add_cookies([{key: each[key] for key in ("name", "value", "domain", "path")} for each in cookies])  # type: ignore[misc]
        page.reload()
        expect(page.get_by_label("Note")).to_have_value("still here")
        expect(page.locator("#saved")).to_contain_text("Draft saved")
    assert work.values() == {"note": "still here"}


def test_whoever_comes_in_again_in_another_tab_goes_on_where_they_were(
    browser: Browser, store: ReviewStore, address: str, folders: Path
) -> None:
    work = Work(store, folders, "likert", seed=12)
    with tab(browser) as page:
        join(page, address, work.token)
        page.goto(work.link(address))
        page.context.clear_cookies()
        page.get_by_label("Note").fill("still here")
        expect(page.locator("#saved")).to_contain_text("for a new link, open it in another tab")
        other = page.context.new_page()
        join(other, address, work.token)
        page.bring_to_front()
        page.get_by_label("Note").fill("still here, and on")
        expect(page.locator("#saved")).to_contain_text("Draft saved")
        assert work.values() == {"note": "still here, and on"}
        stranger, token = store.invite("Invented stranger", "reviewer", by="test")
        join(other, address, token)  # somebody else on the same tablet
        page.get_by_label("Note").fill("whose words are these?")
        expect(page.locator("#saved")).to_contain_text("Not saved")
        assert work.values() == {"note": "still here, and on"}
        assert store.labels(work.study.id) == [store.label(work.study.id, work.items[0].id, work.person.id)]
        assert store.assignments(work.study.id, stranger.id) == []


def test_somebody_revoked_in_the_middle_is_told_so(
    browser: Browser, store: ReviewStore, address: str, folders: Path
) -> None:
    work = Work(store, folders, "likert", seed=13)
    with signed_in_tab(browser, address, work.token) as page:
        page.goto(work.link(address))
        store.revoke(work.person.id, "test")
        page.get_by_label("Note").fill("too late")
        expect(page.locator("#saved")).to_contain_text("Not saved: you are no longer signed in")
    assert store.labels(work.study.id) == []


def test_a_clock_that_is_set_back_takes_no_time_away(
    browser: Browser, store: ReviewStore, address: str, folders: Path
) -> None:
    work = Work(store, folders, "likert", seed=14)
    with signed_in_tab(browser, address, work.token) as page:
        page.goto(work.link(address))
        page.evaluate("(() => { const now = Date.now; Date.now = () => now() - 3600_000; })()")
        page.wait_for_timeout(1200)
        page.get_by_label("Note").fill("an hour ago")
        expect(page.locator("#saved")).to_contain_text("Draft saved")
    (label,) = store.labels(work.study.id)
    assert 0.5 < label.seconds < 60


def test_what_another_tab_saved_is_not_undone_unseen(
    browser: Browser, store: ReviewStore, address: str, folders: Path
) -> None:
    work = Work(store, folders, "equivalence", seed=11)
    with signed_in_tab(browser, address, work.token) as page:
        page.goto(work.link(address))
        page.keyboard.press("e")
        expect(page.locator("#saved")).to_contain_text("Draft saved")
        elsewhere = {"values": {"label": "mismatch"}, "state": "done", "seconds": 1, "base": 1, "request": "elsewhere"}
        store.save(work.study.id, work.items[0].id, work.person.id, **elsewhere)  # type: ignore[arg-type]
        page.keyboard.press("u")
        expect(page.get_by_role("heading", name="Changed somewhere else")).to_be_visible()
        assert work.values() == {"label": "mismatch"}
        page.get_by_role("link", name="Take the other version").click()
        page.keyboard.press("u")
        expect(page.locator("#saved")).to_contain_text("Changed and kept as a draft. Save it to make it count again")
        assert work.values() == {"label": "equivalent"}


def test_a_finished_item_that_is_changed_says_that_it_no_longer_counts(
    browser: Browser, store: ReviewStore, address: str, folders: Path
) -> None:
    work = Work(store, folders, "likert", seed=31)
    with signed_in_tab(browser, address, work.token) as page:
        page.goto(work.link(address))
        by_hand(page, work.fields(), ANSWERS["likert"], touch=False)
        expect(page.locator("#saved")).to_contain_text("Draft saved")
        page.get_by_role("button", name="Save and next").click()
        page.wait_for_url(work.link("**", 1))
        page.goto(work.link(address))
        expect(page.locator("#saved")).to_contain_text("Done. Saved")
        page.get_by_label("Note").fill("on second thoughts")
        counts = "Changed and kept as a draft. Save it to make it count again"
        expect(page.locator("#saved")).to_contain_text(counts)
        page.reload()
        expect(page.locator("#saved")).to_contain_text(counts)
        page.get_by_role("button", name="Undo").click()
        expect(page.locator("#saved")).to_contain_text("Done. Saved")
    label = store.label(work.study.id, work.items[0].id, work.person.id)
    assert label is not None
    assert label.state == "done"
