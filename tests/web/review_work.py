"""Somebody at work on a review page in a real browser: forms filled in by hand and by keys, on a good or a bad line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from hoofbeat.review.forms import FormField, asked_fields, form_for
from hoofbeat.review.review_records import Assignment, Person, ReviewItem, Study
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.web import create_app
from tests.review.review_studies import assigned, study_of
from tests.web.review_site import store_site
from tests.web.support import serving

__all__ = ["BadLine", "Work", "address", "by_hand", "by_keys", "chosen", "store", "too_wide", "undo_all"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReviewStore]:
    with ReviewStore.open(str(tmp_path_factory.mktemp("store") / "review.db")) as opened:
        yield opened


@pytest.fixture(scope="module")
def address(store: ReviewStore, folders: Path) -> Iterator[str]:
    with serving(create_app(store_site(store, [folders], tries_per_minute=10_000))) as url:
        yield url


class Work:
    """A study with one person on it, and the page of an item."""

    def __init__(self, store: ReviewStore, folders: Path, form: str, seed: int, person: Person | None = None) -> None:
        self.store = store
        self.study: Study
        self.items: list[ReviewItem]
        self.study, self.items = study_of(folders, form, sample=3, seed=seed)
        self.person: Person
        self.token = ""
        if person is None:
            ((self.person, self.token),) = assigned(store, self.study, self.items)
            return
        self.person = person
        assigned(store, self.study, self.items, people=0)
        rows = [Assignment(study=self.study.id, item=i.id, person=person.id, place=i.place) for i in self.items]
        store.assign(self.study.id, rows, by="test")

    def link(self, address: str, place: int = 0) -> str:
        return f"{address}/review/{self.study.id}/items/{self.items[place].id}"

    def values(self, place: int = 0) -> dict[str, Any]:
        label = self.store.label(self.study.id, self.items[place].id, self.person.id)
        return label.values if label else {}

    def fields(self, place: int = 0) -> tuple[FormField, ...]:
        item = self.items[place]
        return asked_fields(form_for(self.study, item), item)

    def saves(self, place: int = 0) -> list[str]:
        events = self.store.trail(study=self.study.id, item=self.items[place].id, person=self.person.id)
        return [str((event.after or {}).get("state")) for event in events if event.what == "saved"]


def by_hand(page: Page, fields: tuple[FormField, ...], answers: dict[str, Any], touch: bool) -> None:
    """Fill the form in with the mouse or a finger, and the keyboard where words are asked for."""
    for field in fields:
        if field.name not in answers:
            continue
        place = page.locator(f'[data-field="{field.name}"]')
        if field.kind == "text":
            place.locator("textarea").fill(answers[field.name])
            continue
        choice = place.locator("label.choice").filter(has=page.locator(f'input[value="{answers[field.name]}"]'))
        choice.tap() if touch else choice.click()


def by_keys(page: Page, fields: tuple[FormField, ...], answers: dict[str, Any]) -> None:
    """Fill the form in by keys alone."""
    for field in fields:
        if field.name not in answers:
            continue
        for _ in range(12):
            if page.locator(".question.current").get_attribute("data-field") == field.name:
                break
            page.keyboard.press("j")
        else:
            raise AssertionError(f"the keys do not come to {field.name}")
        if field.kind == "text":
            page.locator(".question.current textarea").focus()
            page.keyboard.type(answers[field.name])
            page.keyboard.press("Escape")
        else:
            choices = [choice.value for choice in field.choices]
            page.keyboard.press(str(choices.index(answers[field.name]) + 1))


def undo_all(page: Page, work: Work, *, by_key: bool = False) -> None:
    """Undo every draft of the first item. There may be several: on a busy machine one is saved amid the filling in."""
    for _ in work.saves():
        with page.expect_response("**/undo"):
            page.keyboard.press("u") if by_key else page.get_by_role("button", name="Undo").click()
    expect(page.locator(".question input:checked")).to_have_count(0)


def chosen(page: Page) -> dict[str, Any]:
    """What the form holds."""
    found: dict[str, Any] = page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll('.question')].filter((f) => !f.hidden).map((f) =>
        [f.dataset.field, f.querySelector('textarea')?.value ?? f.querySelector('input:checked')?.value ?? ''])
        .filter(([, value]) => value))"""
    )
    return found


def too_wide(page: Page) -> list[str]:
    """The elements that reach beyond the right edge of the screen, if the page can be moved sideways."""
    page.wait_for_load_state("load")
    found: list[str] = page.evaluate(
        """() => document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll('body *')]
        .filter((each) => each.getBoundingClientRect().right > innerWidth).map((each) => each.outerHTML.slice(0, 80))"""
    )
    return found


class BadLine:
    """The next finished save reaches the server, but no answer comes back, and nothing gets through until `mend`."""

    def __init__(self, page: Page, state: str = "done") -> None:
        self.page, self.state = page, state
        self.lost: list[str] = []
        self.broken = True
        page.route("**/api/review/**", self._handle)

    def _handle(self, route: Route) -> None:
        body = json.loads(route.request.post_data or "{}")
        if not self.broken or body.get("state") != self.state:
            return route.continue_()
        if not self.lost:
            route.fetch()
        self.lost.append(body["request"])
        return route.abort("connectionreset")

    def mend(self) -> None:
        """The line is good again, and the browser notices."""
        self.broken = False
        self.page.evaluate("dispatchEvent(new Event('online'))")
