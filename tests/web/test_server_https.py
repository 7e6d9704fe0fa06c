"""`hoofbeat review` behind a real proxy that ends TLS: links, cookies, redirects, forms, an exam, who is counted."""

from __future__ import annotations

import http.client
import json
import re
import ssl
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from msgspec import Struct
from playwright.sync_api import Browser, BrowserContext, Page, expect

from hoofbeat.review.assignments import AssignmentPlan, assign_items
from hoofbeat.review.review_store import ReviewStore
from tests.cli.support import hoofbeat, start
from tests.review.certificates import Certificate, make_authority, make_certificate
from tests.web.support import NAME, needs_browser
from tests.web.tls_proxy import TlsProxy, tls_proxy

TRIES = 20


class Clinic(Struct, frozen=True, kw_only=True):
    """A server behind HTTPS: where people reach it, what it said when it started, and its parts."""

    address: str
    come_in: str
    warning: str
    proxy: TlsProxy
    authority: Certificate
    database: Path

    def get(self, path: str, *, client: str = "127.0.0.1", **headers: str) -> http.client.HTTPResponse:
        """A page, asked for from another address of loopback."""
        context = ssl.create_default_context(cafile=str(self.authority.certificate))
        line = http.client.HTTPSConnection(
            "127.0.0.1", self.proxy.port, source_address=(client, 0), context=context, timeout=120
        )
        name = f"{NAME}:{self.proxy.port}"
        line.request("GET", path, headers={"Host": name, **{key.replace("_", "-"): headers[key] for key in headers}})
        answer = line.getresponse()
        answer.read()
        line.close()
        return answer


@pytest.fixture(scope="module")
def clinic(folders: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    place = tmp_path_factory.mktemp("clinic")
    authority = make_authority(place)
    certificate = make_certificate(place, f"DNS:{NAME},IP:127.0.0.1", authority)
    database = place / "review.db"
    there = ("--db", str(database))
    hoofbeat(
        "review", str(folders / "bench"), "--exam", "--questions", "2", "--title", "Exam", "--no-serve", *there,
        folder=place,
    )  # fmt: skip
    with tls_proxy(certificate) as proxy:
        url = f"https://{NAME}:{proxy.port}"
        words = ["review", str(folders / "bench"), "--form", "likert", "--per-item", "0", *there, "--port", "0"]
        process = start([*words, "--url", url, "--proxy", "127.0.0.1", "--json"], place)
        try:
            assert process.stdout is not None
            told = json.loads(process.stdout.readline())
            proxy.backend = int(urlsplit(told["listens"]).port or 0)
            yield Clinic(
                address=told["address"],
                come_in=told["come_in"],
                warning=told["warning"],
                proxy=proxy,
                authority=authority,
                database=database,
            )
        finally:
            process.terminate()
            said = process.communicate(timeout=120)
    assert "Traceback" not in said[1], said[1]


def new_tab(browser: Browser, asked: list[str]) -> tuple[BrowserContext, Page]:
    context = browser.new_context(ignore_https_errors=True)
    page = context.new_page()
    page.on("request", lambda request: asked.append(request.url))
    return context, page


def come_in(page: Page, link: str) -> None:
    page.goto(link)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(lambda url: "/join/" not in url)


@needs_browser
@pytest.mark.parametrize("keeps_host", [True, False])
def test_people_are_invited_label_and_sit_an_exam_over_https(
    clinic: Clinic, browser: Browser, keeps_host: bool
) -> None:
    clinic.proxy.keeps_host = keeps_host
    asked: list[str] = []
    if not keeps_host:  # the admin's link is shown once; a new one is made as people do who lost it
        again = hoofbeat(
            "review", "invite", "Admin", "--again", "--url", clinic.address, "--db", str(clinic.database), "--json",
            folder=clinic.database.parent,
        )  # fmt: skip
    link = clinic.come_in if keeps_host else json.loads(again.stdout)["link"]
    assert link.startswith(f"{clinic.address}/join/")
    assert "put it behind HTTPS" not in clinic.warning
    context, page = new_tab(browser, asked)
    come_in(page, link)
    page.goto(f"{clinic.address}/team/people")
    name = f"Dr. Invented {'A' if keeps_host else 'B'}"
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Create an invitation").click()
    invitation = page.get_by_label("Invitation link").input_value()
    assert re.fullmatch(re.escape(clinic.address) + r"/join/[\w-]{40,}", invitation)
    context.close()
    context, page = new_tab(browser, asked)
    come_in(page, invitation)
    label(clinic, page, name)
    sit(clinic, page)
    page.goto(f"{clinic.address}/review/")
    assert page.url == f"{clinic.address}/review"
    cookies = context.cookies()
    assert {"__Host-hoofbeat-session", "__Host-hoofbeat-visit"} == {each.get("name") for each in cookies}
    assert all(each.get("secure") and each.get("httpOnly") for each in cookies)
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="You are signed out")).to_be_visible()
    context.close()
    assert {url.partition("/join/")[0][: len(clinic.address)] for url in asked} == {clinic.address}


def label(clinic: Clinic, page: Page, name: str) -> None:
    """Give the person their list and let them answer its first item."""
    with ReviewStore.open(str(clinic.database)) as store:
        reviewers = [each for each in store.people() if each.role == "reviewer"]
        person = next(each for each in reviewers if each.name == name)
        for study in store.studies():
            assign_items(store, study, reviewers, AssignmentPlan(per_item=0), by="")
        study = next(each for each in store.studies() if each.form == "likert")
        page.goto(f"{clinic.address}/review/{study.id}")
        page.wait_for_load_state()
        if "/items/" not in page.url:
            page.get_by_role("link", name=re.compile("Start|Continue|first", re.IGNORECASE)).first.click()
        page.wait_for_url("**/items/**")
        for group in page.get_by_role("group").filter(has=page.get_by_role("radio")).all():
            group.get_by_role("radio").nth(3).check()
        item = page.url
        page.get_by_role("button", name="Save and next").click()
        page.wait_for_url(lambda url: url != item)
        (saved,) = [each for each in store.labels(study.id, states=["done"]) if each.person == person.id]
        assert saved.values == {"medical alignment": "4", "need for expertise": "4"}


def sit(clinic: Clinic, page: Page) -> None:
    """The exam, to its end."""
    page.goto(f"{clinic.address}/exam")
    page.get_by_role("link", name="Exam", exact=True).last.click()
    page.get_by_role("button", name="Start").click()
    for number in (1, 2):
        expect(page.get_by_role("heading", name=f"Question {number} of 2")).to_be_visible()
        if page.locator("input[type=radio]").count():
            page.locator("input[type=radio]").first.check()
        else:
            page.locator("#text").fill("An invented answer.")
        page.get_by_role("button", name="Save answer and").click()
    page.get_by_role("link", name="See your result").click()
    expect(page.locator(".entry")).to_have_count(2)


def test_redirects_and_pages_name_no_http(clinic: Clinic) -> None:
    for keeps_host in (True, False):
        clinic.proxy.keeps_host = keeps_host
        seen = clinic.get("/static/app.css/")
        assert (seen.status, seen.getheader("location")) == (307, "/static/app.css")
        seen = clinic.get("/review")
        assert seen.status == 401
        assert seen.getheader("strict-transport-security")
    clinic.proxy.keeps_host = True
    assert clinic.get("/", Host="evil.example").status == 421


def test_wrong_links_are_counted_by_who_asks_the_proxy(clinic: Clinic) -> None:
    clinic.proxy.keeps_host = True
    bad = [clinic.get(f"/join/guess{n}", client="127.0.0.2").status for n in range(TRIES + 1)]
    assert bad == [404] * TRIES + [429]
    for spoofed in ("203.0.113.9", "127.0.0.1", "203.0.113.9, 127.0.0.1", "rubbish"):
        assert clinic.get("/join/more", client="127.0.0.2", X_Forwarded_For=spoofed).status == 429, spoofed
    assert clinic.get("/join/guess", client="127.0.0.3").status == 404, "others are not held up"
