"""From the first audit to the third in a browser: the gate, the worklist, and decisions that are carried over."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pypdfium2
from playwright.sync_api import Browser, Page, expect

from hoofbeat.records import Answer, Question, TraceStep
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.web import create_app
from tests.cli.audit_folders import invented_pairs, write_audit
from tests.cli.support import hoofbeat
from tests.web.review_site import signed_in_tab, store_site
from tests.web.support import fits, needs_browser, serious_faults, serving

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
        with serving(create_app(store_site(store, [first, second, third]))) as address:
            with signed_in_tab(browser, address, token) as page:
                the_worklist_of_the_first_audit_is_opened(page, address)
                the_first_case_is_decided_by_keyboard_alone(page)
                two_more_cases_are_decided(page, address)
                reopened = the_gate_fails_by_the_second_audit(tmp_path)
                the_second_worklist_says_what_is_closed_open_again_and_new(page, address)
                the_case_that_is_open_again_shows_what_changed(page, address)
                the_summary_of_the_gate_fits_one_printed_page(page, tmp_path)
                the_server_shows_what_changed(page, address)
                the_third_worklist_keeps_what_was_decided(page, address, tmp_path)
                one_source_may_be_the_protocol(page)
                decisions_are_downloaded(page)
            with signed_in_tab(browser, address, token, PHONE) as page:
                pages_fit_a_phone_and_can_be_read_by_everybody(page, address, reopened)


def the_worklist_of_the_first_audit_is_opened(page: Page, address: str) -> None:
    page.goto(address)
    page.get_by_role("link", name="Worklist").click()
    page.get_by_role("link", name="first").click()
    expect(page.locator("h1")).to_have_text("Worklist")
    assert states(page) == ["new"] * 4
    assert page.locator(".cases th[scope=row] a").first.inner_text() == "alder and brook"


def the_first_case_is_decided_by_keyboard_alone(page: Page) -> None:
    """It is the contradiction on fish."""
    page.locator(".cases th[scope=row] a").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".material")).to_contain_text("Raw fish is fine after three months.")
    page.get_by_role("radio", name="Follow").focus()
    page.keyboard.press("Space")
    page.get_by_role("button", name="Save", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("Not saved: no source to follow is chosen")
    page.get_by_label("Source to follow").select_option("alder")
    page.get_by_label("Owner").fill("Diet team")
    page.get_by_label("Local position").fill("No raw fish for a year.")
    page.get_by_label("Note").fill("=HYPERLINK(1)")
    page.get_by_role("button", name="Save", exact=True).press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("Your decision is saved.")
    assert len(states(page)) == 3


def two_more_cases_are_decided(page: Page, address: str) -> None:
    open_case(page, address, "first", "alder and brook", "How long")
    page.get_by_role("radio", name="Accepted").check()
    page.get_by_role("button", name="Save and next").click()
    expect(page.locator("h1")).to_have_text("brook and cairn")
    page.get_by_role("radio", name="Escalated").check()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("status").first).to_contain_text("Your decision is saved.")


def the_gate_fails_by_the_second_audit(folder: Path) -> str:
    """The id of the case that is open again."""
    gate = ("audit", "gate", "first", "second", "--decisions", "review.db", "--fail-if", "reopened > 0")
    hoofbeat(*gate, "--fail-if", "new_disagreements > 0", folder=folder, code=5)
    told = json.loads((folder / "gate" / "gate.json").read_text())
    assert {name: told["figures"][name] for name in ("closed", "reopened", "new_disagreements")} == {
        "closed": 1, "reopened": 1, "new_disagreements": 1,
    }  # fmt: skip
    return str(told["reopened"][0]["case"]["id"])


def the_second_worklist_says_what_is_closed_open_again_and_new(page: Page, address: str) -> None:
    page.goto(f"{address}/worklist/second")
    assert states(page) == ["open again", "new", "escalated"]
    page.get_by_label("State").select_option("all")
    page.get_by_role("button", name="Show").click()
    expect(page.locator(".cases .state")).to_have_count(4)
    assert sorted(states(page)) == ["closed", "escalated", "new", "open again"]


def the_case_that_is_open_again_shows_what_changed(page: Page, address: str) -> None:
    open_case(page, address, "second", "alder and brook", "raw fish")
    expect(page.locator("main")).to_contain_text("The answer and the quote of brook changed.")
    marked = ["three months", "three months", "one month", "one month"]
    assert page.locator(".blocks mark").all_inner_texts() == marked
    expect(page.locator(".history")).to_contain_text("Signed by Dr. Ada")
    page.get_by_role("radio", name="Accepted").check()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("status").first).to_contain_text("Your decision is saved.")


def the_summary_of_the_gate_fits_one_printed_page(page: Page, folder: Path) -> None:
    page.goto((folder / "gate" / "report.html").as_uri())
    expect(page.locator("h1")).to_have_text("Audit gate fails: first → second")
    with pypdfium2.PdfDocument(page.pdf(format="A4")) as printed:
        assert len(printed) == 1


def the_server_shows_what_changed(page: Page, address: str) -> None:
    page.goto(f"{address}/audits/second/since/first")
    expect(page.locator("main")).to_contain_text("1 answer changed")


def the_third_worklist_keeps_what_was_decided(page: Page, address: str, folder: Path) -> None:
    """The sources agree on fish now; the gate passes."""
    hoofbeat("audit", "gate", "second", "third", "--decisions", "review.db", "--fail-if", "reopened > 0", folder=folder)
    page.goto(f"{address}/worklist/third?state=all")
    assert sorted(states(page)) == ["closed", "escalated", "new", "no longer disagree"]


def one_source_may_be_the_protocol(page: Page) -> None:
    page.get_by_label("Our protocol").select_option("cairn")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("h2#reference")).to_have_text("Who disagrees with cairn")


def decisions_are_downloaded(page: Page) -> None:
    with page.expect_download() as got:
        page.get_by_role("link", name="CSV").click()
    rows = list(csv.DictReader(io.StringIO(got.value.path().read_text(encoding="utf-8"))))
    assert {row["note"] for row in rows} == {"", "'=HYPERLINK(1)"}
    with page.expect_download() as got:
        page.get_by_role("link", name="JSON").click()
    assert len(json.loads(got.value.path().read_text(encoding="utf-8"))["decisions"]) == 4


def pages_fit_a_phone_and_can_be_read_by_everybody(page: Page, address: str, reopened: str) -> None:
    for place in ("/worklist", "/worklist/second", f"/worklist/second/{reopened}"):
        page.goto(f"{address}{place}")
        assert fits(page), place
        assert serious_faults(page) == [], place
