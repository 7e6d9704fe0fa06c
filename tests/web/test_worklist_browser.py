"""From the first audit to the third in a browser: the gate, the worklist, and decisions that are carried over."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pypdfium2
import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Page, expect

from hoofbeat.records import Answer, Question, TraceStep
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.web import create_app
from tests.cli.audit_folders import invented_pairs, write_audit
from tests.cli.support import hoofbeat
from tests.web.review_site import signed_in_tab, store_site
from tests.web.support import browsing, fits, needs_browser, serving

pytestmark = needs_browser
PHONE = (390, 844)
SOURCES = ("alder", "brook", "cairn")
QUESTIONS = [
    Question(id="q1", text="How long after surgery may I drive?", facets={"topic": "travel"}),
    Question(id="q2", text="May I eat raw fish?", facets={"topic": "diet"}),
]
WORDS = {
    ("q1", "alder"): "Wait six weeks before you drive.", ("q1", "brook"): "Wait four weeks before you drive.",
    ("q1", "cairn"): "Wait six weeks, then ask your surgeon.", ("q2", "alder"): "No raw fish in the first year.",
    ("q2", "brook"): "Raw fish is fine after three months.", ("q2", "cairn"): "Never eat raw fish.",
}  # fmt: skip


def an_audit(path: Path, labels: dict[str, str], **changed: str) -> Path:
    """An audit of two questions; `q1_brook="…"` is what a source says instead."""
    said = {key: changed.get("_".join(key), text) for key, text in WORDS.items()}
    answers = [
        Answer(question=q, model="m", condition="source", source=s, text=text, absent=False,
               trace=(TraceStep(stage="citations", what="quoted", text=text.rstrip(".")),))
        for (q, s), text in said.items()
    ]  # fmt: skip
    return write_audit(path, invented_pairs(labels), questions=QUESTIONS, answers=answers)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as launched:
        yield launched


def open_case(page: Page, address: str, audit: str, sources: str, question: str, state: str = "") -> None:
    page.goto(f"{address}/worklist/{audit}{f'?state={state}' if state else ''}")
    row = page.get_by_role("row").filter(has_text=question).filter(has_text=sources)
    row.get_by_role("link").click()
    expect(page.locator("h1")).to_have_text(sources)


def states(page: Page) -> list[str]:
    return page.locator(".cases .state").all_inner_texts()


def test_from_the_first_audit_to_the_third(tmp_path: Path, browser: Browser) -> None:
    first = an_audit(tmp_path / "first", {"q1": "dcd", "q2": "xcd"})
    second = an_audit(tmp_path / "second", {"q1": "ddd", "q2": "xcc"}, q2_brook="Raw fish is fine after one month.")
    third = an_audit(tmp_path / "third", {"q1": "ddd", "q2": "ccc"}, q2_brook="No raw fish in the first year.")
    with ReviewStore.open(str(tmp_path / "review.db")) as store:
        _, token = store.invite("Dr. Ada", "adjudicator", by="test")
        site = store_site(store, [first, second, third])
        with serving(create_app(site)) as address, signed_in_tab(browser, address, token) as page:
            page.goto(address)
            page.get_by_role("link", name="Worklist").click()
            page.get_by_role("link", name="first").click()
            expect(page.locator("h1")).to_have_text("Worklist of first")
            assert states(page) == ["new"] * 4
            assert page.locator(".cases th[scope=row] a").first.inner_text() == "alder and brook"

            # By keyboard alone: the first case (the contradiction on fish) is decided and signed.
            page.locator(".cases th[scope=row] a").first.focus()
            page.keyboard.press("Enter")
            expect(page.locator(".material")).to_contain_text("Raw fish is fine after three months.")
            page.get_by_role("radio", name="Follow").focus()
            page.keyboard.press("Space")
            page.get_by_role("button", name="Save", exact=True).focus()
            page.keyboard.press("Enter")
            expect(page.get_by_role("alert")).to_contain_text("Not saved: whom do you follow?")
            page.get_by_label("Source to follow").select_option("alder")
            page.get_by_label("Owner").fill("Diet team")
            page.get_by_label("Local position").fill("No raw fish for a year.")
            page.get_by_label("Note").fill("=HYPERLINK(1)")
            page.get_by_role("button", name="Save", exact=True).press("Enter")
            expect(page.get_by_role("status").first).to_contain_text("The decision is saved.")
            assert len(states(page)) == 3

            open_case(page, address, "first", "alder and brook", "How long")
            page.get_by_role("radio", name="Accepted").check()
            page.get_by_role("button", name="Save and next").click()
            expect(page.locator("h1")).to_have_text("brook and cairn")
            page.get_by_role("radio", name="Escalated").check()
            page.get_by_role("button", name="Save", exact=True).click()

            # The second audit: closed, open again, new; the gate fails by it.
            gate = ("audit", "gate", "first", "second", "--decisions", "review.db", "--fail-if", "reopened > 0")
            hoofbeat(*gate, "--fail-if", "new_disagreements > 0", folder=tmp_path, code=5)
            told = json.loads((tmp_path / "gate" / "gate.json").read_text())
            assert {name: told["figures"][name] for name in ("closed", "reopened", "new_disagreements")} == {
                "closed": 1, "reopened": 1, "new_disagreements": 1,
            }  # fmt: skip
            page.goto(f"{address}/worklist/second")
            assert states(page) == ["open again", "new", "escalated"]
            page.get_by_label("State").select_option("all")
            page.get_by_role("button", name="Show").click()
            assert sorted(states(page)) == ["closed", "escalated", "new", "open again"]
            open_case(page, address, "second", "alder and brook", "raw fish")
            expect(page.locator("main")).to_contain_text("The answer and the quote of brook changed.")
            marked = ["three months", "three months", "one month", "one month"]
            assert page.locator(".blocks mark").all_inner_texts() == marked
            expect(page.locator(".history")).to_contain_text("Signed by Dr. Ada")
            page.get_by_role("radio", name="Accepted").check()
            page.get_by_role("button", name="Save", exact=True).click()

            # The summary fits one printed page, and the server shows what changed, old and new words side by side.
            page.goto((tmp_path / "gate" / "report.html").as_uri())
            expect(page.locator("h1")).to_have_text("Audit gate fails: first → second")
            with pypdfium2.PdfDocument(page.pdf(format="A4")) as printed:
                assert len(printed) == 1
            page.goto(f"{address}/audits/second/since/first")
            expect(page.locator("main")).to_contain_text("1 answer changed")

            # The third audit: sources agree on fish now, the rest is as it was decided.
            hoofbeat("audit", "gate", "second", "third", "--decisions", "review.db", "--fail-if", "reopened > 0",
                     folder=tmp_path)  # fmt: skip
            page.goto(f"{address}/worklist/third?state=all")
            assert sorted(states(page)) == ["closed", "escalated", "new", "no longer disagree"]
            page.get_by_label("Our protocol").select_option("cairn")
            page.get_by_role("button", name="Show").click()
            expect(page.locator("h2#reference")).to_have_text("Who disagrees with cairn")
            with page.expect_download() as got:
                page.get_by_role("link", name="CSV").click()
            rows = list(csv.DictReader(io.StringIO(got.value.path().read_text(encoding="utf-8"))))
            assert {row["note"] for row in rows} == {"", "'=HYPERLINK(1)"}
            with page.expect_download() as got:
                page.get_by_role("link", name="JSON").click()
            assert len(json.loads(got.value.path().read_text(encoding="utf-8"))["decisions"]) == 4
        with serving(create_app(site)) as address, signed_in_tab(browser, address, token, PHONE) as page:
            for place in ("/worklist", "/worklist/second", f"/worklist/second/{told['reopened'][0]['case']['id']}"):
                page.goto(f"{address}{place}")
                assert fits(page), place
                found = Axe().run(page).response["violations"]
                assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []
