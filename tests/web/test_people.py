"""The admins' pages in a real browser: people, their links, the trail; and coming in and leaving.

Each walk is on one kind of database: what a store answers is tested on both without a browser.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Dialog, Page, Route, expect

from hoofbeat.review.review_records import Event
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.web import create_app
from hoofbeat.web.review.people_pages import changes_of
from tests.review.stores import make_study
from tests.web.review_site import join, signed_in_tab, store_site
from tests.web.support import DESKTOP, TABLET, needs_browser, serving, tab
from tests.web.visitors import Visitor

HOSTILE = '<img src=x onerror=alert(1)> & "Ada"'


@pytest.fixture
def store(store_urls: str) -> Iterator[ReviewStore]:
    with ReviewStore.open(store_urls) as opened:
        yield opened


def link_on(page: Page) -> str:
    return page.get_by_label("Invitation link").input_value()


@needs_browser
@pytest.mark.parametrize(
    ("store_urls", "size"), [("postgresql", DESKTOP), ("sqlite", TABLET)], indirect=["store_urls"],
    ids=["postgresql-desktop", "sqlite-tablet"],
)  # fmt: skip
def test_an_admin_invites_renews_and_revokes(browser: Browser, store: ReviewStore, size: tuple[int, int]) -> None:
    make_study(store)
    _, admin = store.invite("Invented admin", "admin", by="test")
    site = store_site(store)
    with serving(create_app(site)) as address, signed_in_tab(browser, address, admin, size) as page:
        page.goto(f"{address}/team/people")
        page.get_by_label("Name").fill(HOSTILE)
        page.get_by_label("Groups").fill("cardiology, neurology ,")
        page.get_by_label("Invented cases").check()
        page.get_by_role("button", name="Create an invitation").click()
        first = link_on(page)
        assert HOSTILE in page.get_by_role("heading", level=1).inner_text()
        person = next(one for one in store.people() if one.name == HOSTILE)
        assert (person.groups, person.studies) == (("cardiology", "neurology"), ("study",))
        page.get_by_role("link", name="Back to people").click()
        expect(page.get_by_role("row", name=person.id)).to_be_visible()
        page.wait_for_load_state()
        assert first.rpartition("/")[2] not in page.content()  # shown once
        row = page.get_by_role("row", name=person.id)
        row.get_by_text("New link…").click()
        row.get_by_role("button", name="Make a new link").click()
        second = link_on(page)
        assert second != first
        page.goto(f"{address}/team/people")
        page.get_by_label("Name").fill("invented  ADMIN")
        page.get_by_role("button", name="Create an invitation").click()
        expect(page.get_by_role("alert")).to_contain_text("'Invented admin' was invited before")
        expect(page.get_by_role("alert")).to_contain_text("make a new link for them in the table")
        page.goto(f"{address}/team/people")
        with tab(browser, size) as other:
            other.goto(f"{address}/join/{first.rpartition('/')[2]}")
            expect(other.get_by_role("heading", level=1)).to_have_text("Page not found")
            join(other, address, second.rpartition("/")[2])
            expect(other).to_have_url(f"{address}/review")
            row = page.get_by_role("row", name=person.id)
            row.get_by_text("Revoke…").click()
            row.get_by_role("button", name="Revoke").click()
            expect(page.get_by_role("row", name=person.id)).to_contain_text("revoked")
            other.reload()
            expect(other.get_by_role("heading", level=1)).to_have_text("Please sign in")
        expect(page.get_by_role("row", name="Invented admin").get_by_role("button", name="Revoke")).to_have_count(0)


def slowly(route: Route) -> None:
    """Let a request wait before it goes."""
    time.sleep(0.3)
    route.continue_()


@needs_browser
@pytest.mark.parametrize("store_urls", ["postgresql"], indirect=True)
def test_a_form_that_is_sent_twice_at_once_is_sent_once(browser: Browser, store: ReviewStore) -> None:
    _, admin = store.invite("Invented admin", "admin", by="test")
    with serving(create_app(store_site(store))) as address, signed_in_tab(browser, address, admin) as page:
        page.goto(f"{address}/team/people")
        page.get_by_label("Name").fill("Invented twin")
        sent: list[str] = []
        page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
        page.route(f"{address}/team/people", slowly)
        page.evaluate(
            "(() => { const form = document.querySelector('form.invite');"
            " form.requestSubmit(); setTimeout(() => form.requestSubmit(), 50); })()"
        )
        link_on(page)
        assert sent == [f"{address}/team/people"]
    assert sum(person.name == "Invented twin" for person in store.people()) == 1


@needs_browser
@pytest.mark.parametrize("store_urls", ["sqlite"], indirect=True)
def test_leaving_ends_the_session_and_keeps_what_was_said(browser: Browser, store: ReviewStore) -> None:
    _, _, (token, _) = make_study(store)
    with serving(create_app(store_site(store))) as address, signed_in_tab(browser, address, token) as page:
        asked: list[str] = []

        def stay(dialog: Dialog) -> None:
            asked.append(dialog.message)
            dialog.dismiss()

        page.once("dialog", stay)
        page.get_by_role("button", name="Sign out").click()
        page.goto(f"{address}/review")
        expect(page.get_by_role("heading", level=1)).not_to_have_text("Please sign in")
        page.once("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("You are signed out")
        expect(page.get_by_text("An invitation link works once. To come back, ask the person")).to_be_visible()
        assert len(asked) == 1
        assert "you need a new link" in asked[0]
        page.goto(f"{address}/join/{token}")
        expect(page.get_by_role("heading", level=1)).to_have_text("This link no longer works")
        page.goto(f"{address}/review")
        expect(page.get_by_role("heading", level=1)).to_have_text("Please sign in")


@needs_browser
@pytest.mark.parametrize("store_urls", ["sqlite"], indirect=True)
def test_a_link_followed_from_another_site_finds_the_session_again(browser: Browser, store: ReviewStore) -> None:
    _, _, (token, _) = make_study(store)
    with serving(create_app(store_site(store))) as address, signed_in_tab(browser, address, token) as page:
        page.goto(address.replace("127.0.0.1", "localhost"))  # another site, to the browser
        page.set_content(f'<a href="{address}/review">to the reviews</a>')
        page.get_by_role("link").click()
        page.get_by_role("link", name="Open this page again").click()
        expect(page.get_by_role("button", name="Sign out")).to_be_visible()


@needs_browser
@pytest.mark.parametrize("store_urls", ["postgresql"], indirect=True)
def test_the_trail_is_read_by_person_and_page(browser: Browser, store: ReviewStore) -> None:
    _, (ada, _), _ = make_study(store)
    for n in range(60):
        values: dict[str, Any] = {"quality": n, "note": HOSTILE}
        store.save("study", "item-0", ada.id, values=values, state="draft", seconds=n, base=n, request=f"r{n}")
    _, admin = store.invite("Invented admin", "admin", by="test")
    with serving(create_app(store_site(store))) as address, signed_in_tab(browser, address, admin) as page:
        page.goto(f"{address}/team/study/trail")
        rows = page.locator("tbody tr")
        expect(rows).to_have_count(50)
        expect(rows.first).to_contain_text("was 58")
        expect(rows.first).to_contain_text("now 59")
        page.get_by_role("link", name="Older").click()
        expect(rows).to_have_count(13)  # ten saves, two assignments, the study
        expect(page.get_by_text("study created", exact=True).last).to_be_visible()
        assert page.locator("img").count() == 0
        page.goto(f"{address}/team/people/trail")
        page.get_by_label("What").select_option("invited")
        page.get_by_role("button", name="Show").click()
        expect(rows).to_have_count(3)
        expect(rows.first).to_contain_text("Invented admin")


def test_only_admins_see_people_and_trail(store: ReviewStore) -> None:
    _, people, tokens = make_study(store, people=["reviewer", "adjudicator", "admin"])
    with serving(create_app(store_site(store))) as address:
        for token, expected in zip(tokens, (403, 403, 200), strict=True):
            visitor = Visitor(address)
            visitor.join(token)
            for path in ("/team/people", "/team/people/trail", "/team/study/trail"):
                assert visitor.get(path).status == expected
            act = visitor.post(f"/team/people/{people[0].id}/renew")
            assert act.status == expected
        assert visitor.get("/team/none/trail").status == 404
        assert visitor.get("/team/people/trail?before=x").status == 400
        assert visitor.post(f"/team/people/{people[2].id}/revoke").status == 400  # not oneself
        assert visitor.post("/team/people/p-none/revoke").status == 404
        seen = visitor.post("/team/people", {"name": "  ", "role": "reviewer"})
        assert seen.status == 400
        assert "a name has" in seen.text
        assert visitor.post("/team/people", {"name": "Ada", "role": "owner"}).status == 400
    assert len(store.people()) == 3


def test_signing_in_again_ends_the_session_before(store: ReviewStore) -> None:
    _, _, tokens = make_study(store)
    with serving(create_app(store_site(store))) as address:
        visitor = Visitor(address)
        visitor.join(tokens[0])
        old = dict(visitor.cookies)
        visitor.join(tokens[1])
        assert visitor.get("/review").status == 200
        visitor.cookies = old
        assert visitor.get("/review").status == 401


def test_changes_are_told_value_by_value() -> None:
    event = Event(
        id=1,
        at=0.0,
        person="p-1",
        what="saved",
        before={"values": {"a": 1, "gone": True}, "state": "draft", "version": 1, "seconds": 1.25, "reason": ""},
        after={"values": {"a": 2, "list": ["x", "y"]}, "state": "draft", "version": 2, "seconds": 2.0, "by": "p-2"},
    )
    told = [(each.name, each.before, each.after) for each in changes_of(event, {"p-2": "Ben"})]
    assert told == [
        ("a", "1", "2"),
        ("gone", "yes", ""),
        ("seconds", "1.2", "2.0"),
        ("list", "", "2: x, y"),
        ("by", "", "Ben"),
    ]
