"""Every review task walked in a real browser, on a desk and on a tablet, by hand, by keys and without script."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from hoofbeat.review.forms import form_for
from hoofbeat.review.review_store import ReviewStore
from tests.review.review_studies import ANSWERS, FORMS
from tests.web.review_site import join, signed_in_tab
from tests.web.review_work import BadLine, Work, address, by_hand, by_keys, chosen, store, too_wide, undo_all
from tests.web.support import DESKTOP, TABLET, needs_browser, serious_faults

__all__ = ["address", "store"]

pytestmark = needs_browser

SIZES = {"desktop": DESKTOP, "tablet": TABLET}
WHOLE_WALKS = ("likert", "two-level-1", "pair")
"""A lost connection and a skip are the same on every form: these forms are walked to the end, by keys and by touch."""


@pytest.fixture(scope="module", params=list(SIZES))
def walker(
    request: pytest.FixtureRequest, browser: Browser, store: ReviewStore, address: str, folders: Path
) -> Iterator[tuple[str, Page, dict[str, Work]]]:
    """Somebody who came in through the link and has a study of every form on the list, at one size of the screen."""
    size = str(request.param)
    seed = 100 + list(SIZES).index(size)
    works = {"likert": Work(store, folders, "likert", seed)}
    person, token = works["likert"].person, works["likert"].token
    works |= {form: Work(store, folders, form, seed, person=person) for form in FORMS[1:]}
    with signed_in_tab(browser, address, token, SIZES[size]) as page:
        yield size, page, works


@pytest.mark.parametrize("form", FORMS)
def test_walk(walker: tuple[str, Page, dict[str, Work]], store: ReviewStore, address: str, form: str) -> None:
    size, page, works = walker
    work, answers, touch = works[form], ANSWERS[form], size == "tablet"
    page.goto(f"{address}/review")
    begin = page.get_by_role("link", name=f"Start {work.study.title}", exact=True)
    begin.tap() if touch else begin.click()
    expect(page.locator("h1")).to_have_text(form_for(work.study, work.items[0]).title)
    expect(page.locator("details.told")).to_have_attribute("open", "")
    assert too_wide(page) == []

    # By hand; the draft is there after a reload, and gone after an undo.
    by_hand(page, work.fields(), answers, touch)
    page.reload()
    expect(page.locator("#saved")).to_contain_text("Draft saved")
    assert chosen(page) == answers
    undo_all(page, work)
    assert "done" not in work.saves()
    by_hand(page, work.fields(), answers, touch)
    save = page.get_by_role("button", name="Save and next")
    save.tap() if touch else save.click()
    page.wait_for_url(work.link("**", 1))
    assert work.values() == answers
    whole = form in WHOLE_WALKS
    if touch and not whole:
        return

    # By keys where there are some; and the connection breaks in the middle of the save.
    if touch:
        by_hand(page, work.fields(1), answers, touch)
    else:
        by_keys(page, work.fields(1), answers)
    if not whole:
        page.keyboard.press("Control+Enter")
        page.wait_for_url(work.link("**", 2))
        assert work.values(1) == answers
        return
    line = BadLine(page)
    page.keyboard.press("Control+Enter")
    expect(page.locator("#saved")).to_contain_text("Not saved")
    line.mend()
    page.wait_for_url(work.link("**", 2))
    page.unroute_all(behavior="wait")
    assert len(set(line.lost)) == 1
    assert work.values(1) == answers
    assert work.saves(1).count("done") == 1

    # Skipped, with a reason; and that was the last.
    page.get_by_role("button", name="Skip…").click()
    page.get_by_role("button", name="Skip and next").click()
    expect(page.locator("#saved")).to_contain_text("Choose a reason")
    page.get_by_label("Why?", exact=True).select_option("not my field")
    page.get_by_role("button", name="Skip and next").click()
    expect(page.locator("h1")).to_have_text("All done")
    expect(page.locator("main")).to_contain_text("2 of 3 done, 1 skipped, 0 left")
    expect(page.locator("main")).to_contain_text("Until the study is closed, you can open any item")
    label = store.label(work.study.id, work.items[2].id, work.person.id)
    assert label is not None
    assert (label.state, label.reason) == ("skipped", "not my field")


def test_keys_move_about_and_can_be_turned_off(
    browser: Browser, store: ReviewStore, address: str, folders: Path
) -> None:
    work = Work(store, folders, "leak", seed=7)
    with signed_in_tab(browser, address, work.token) as page:
        page.goto(work.link(address))
        page.keyboard.press("?")
        expect(page.get_by_role("dialog")).to_be_visible()
        page.get_by_role("button", name="Close").click()
        for key in "yny":
            page.keyboard.press(key)
        assert chosen(page) == ANSWERS["leak"]
        page.keyboard.press("k")
        page.keyboard.press("ArrowUp")
        page.keyboard.press("2")
        assert chosen(page)["diagnosis is right"] == "no"
        page.keyboard.press("l")
        page.wait_for_url(work.link("**", 1))
        page.keyboard.press("ArrowLeft")
        page.wait_for_url(work.link("**", 0))
        expect(page.locator("#saved")).to_contain_text("Draft saved")
        undo_all(page, work, by_key=True)
        page.keyboard.press("s")
        expect(page.locator("#skip")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator("#skip")).to_be_hidden()
        page.goto(work.link(address, 2))
        page.keyboard.press("g")
        page.wait_for_url(work.link("**", 0))
        page.keyboard.press("?")
        page.get_by_label("Use keyboard shortcuts").uncheck()
        page.get_by_role("button", name="Close").click()
        page.keyboard.press("y")
        assert chosen(page) == {}


def test_what_depends_on_another_answer(browser: Browser, store: ReviewStore, address: str, folders: Path) -> None:
    work = Work(store, folders, "two-level-1", seed=8)
    with signed_in_tab(browser, address, work.token) as page:
        page.goto(work.link(address))
        overlaps = page.locator('[data-field="what overlaps"]')
        expect(overlaps).to_be_hidden()
        page.locator('[data-field="options overlap"] label.choice').nth(1).click()
        expect(overlaps).to_be_visible()
        gold = next(shown.text for shown in work.items[0].shown if shown.kind == "gold")
        dropped = page.locator('[data-field="drop option"] .name').all_inner_texts()
        assert gold not in dropped
        page.get_by_role("button", name="Save and next").click()
        expect(page.locator('[data-field="missing information"] .missing')).to_have_text("Still to be answered")
        page.locator('[data-field="missing information"] label.choice').nth(1).click()
        page.get_by_label("What is missing?").fill("The fever.")
        page.get_by_label("What overlaps?").fill("Two of them.")
        add = page.get_by_label("Add to the stem")
        add.fill("These words stand nowhere.")
        page.get_by_role("button", name="Save and next").click()
        expect(page.locator("#saved")).to_contain_text("not in the source")
        add.fill("")
        page.locator("details.part-source summary").click()
        page.evaluate(
            """() => { const text = document.querySelector('.part-source .text').firstChild;
            getSelection().setBaseAndExtent(text, 0, text, 24); }"""
        )
        page.wait_for_timeout(100)
        page.locator('[data-field="add to stem"] .take').click()
        source = next(shown.text for shown in work.items[0].shown if shown.kind == "source")
        expect(add).to_have_value(" ".join(source[:24].split()))
        page.locator('[data-field="drop option"] label.choice').first.click()
        page.get_by_role("button", name="Save and next").click()
        page.wait_for_url(work.link("**", 1))
        assert work.values()["drop option"] == dropped[:1]


def test_significance_is_asked_of_the_labels_that_take_one(
    browser: Browser, store: ReviewStore, address: str, folders: Path
) -> None:
    work = Work(store, folders, "pair", seed=9)
    with signed_in_tab(browser, address, work.token) as page:
        page.goto(work.link(address))
        significance = page.locator('[data-field="significance"]')
        for key, seen in (("1", False), ("2", False), ("3", False), ("4", True), ("5", True), ("2", False)):
            page.locator('[data-field="label"] label.choice').nth(int(key) - 1).click()
            expect(significance).to_be_visible(visible=seen)


def test_without_script_the_form_works(browser: Browser, store: ReviewStore, address: str, folders: Path) -> None:
    work = Work(store, folders, "three-criteria", seed=10)
    context = browser.new_context(java_script_enabled=False)
    try:
        page = context.new_page()
        join(page, address, work.token)
        page.goto(work.link(address))
        by_hand(page, work.fields(), ANSWERS["three-criteria"], touch=False)
        page.get_by_role("button", name="Save and next").click()
        assert page.url == work.link(address, 1)
        page.get_by_label("Why?", exact=True).select_option("not my field")
        page.get_by_role("button", name="Skip and next").click()
        assert page.url == work.link(address, 2)
        page.get_by_role("button", name="Save and next").click()
        expect(page.locator("#problem")).to_contain_text("not filled in")
    finally:
        context.close()
    assert work.values() == ANSWERS["three-criteria"]
    assert work.saves() == ["done"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_fault_of_accessibility(
    browser: Browser, store: ReviewStore, address: str, folders: Path, scheme: Literal["light", "dark"]
) -> None:
    first = Work(store, folders, "two-level-1", seed=12 if scheme == "light" else 13)
    second = Work(store, folders, "pair", seed=12 if scheme == "light" else 13, person=first.person)
    context = browser.new_context(bypass_csp=True, color_scheme=scheme)  # the checker is a script of its own
    try:
        page = context.new_page()
        join(page, address, first.token)
        for link in (
            f"{address}/review",
            f"{address}/review/{first.study.id}",
            first.link(address),
            second.link(address),
        ):
            page.goto(link)
            if "/items/" in link:
                for _ in range(2):
                    page.keyboard.press("2")
                for summary in page.locator("details:not([open]) summary").all():
                    summary.click()
                page.get_by_role("button", name="Skip…").click()
            assert serious_faults(page) == [], link
    finally:
        context.close()
