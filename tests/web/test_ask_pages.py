"""The ask page in a real browser: a case from the form to the answer, stopping, the limit, and hostile text."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from hoofbeat.ask.ask_flow import run_ask
from hoofbeat.ask.ask_jobs import AskCancelledError, AskJob, AskQueue, ServerBusyError, cancellable_model
from hoofbeat.ask.ask_records import AskRequest, AskResult
from hoofbeat.ask.similar_reports import SearchableCorpus
from hoofbeat.corpus import Corpus
from hoofbeat.errors import HoofbeatError
from hoofbeat.models import Model, load_model
from hoofbeat.store import Ledger
from hoofbeat.web import FolderLibrary, Site, SiteSettings, ask_pages, create_app
from hoofbeat.web.ask_pages import asks_of
from tests.answering.support import ScriptedServer
from tests.ask.test_ask_flow import CASE, FEVER, script, states
from tests.web.support import DESKTOP, TABLET, fits, needs_browser, serious_faults, serving, tab

HOSTILE = '<img src=x onerror="alert(1)"> "><script>alert(2)</script> plasma exchange'


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    reply = states("Give caplacizumab [1], as <b>nobody</b> says [99].")
    lines = [reply._replace(words="plasma products"), *script()]
    with ScriptedServer(*lines) as opened:
        yield opened


@pytest.fixture(scope="module")
def site(folders: Path, server: ScriptedServer, tmp_path_factory: pytest.TempPathFactory) -> Site:
    ledger = tmp_path_factory.mktemp("ask") / "ledger.sqlite"

    def load(spec: str) -> Model:
        return load_model(spec, ledger=Ledger(ledger))

    settings = SiteSettings(models=(server.spec("answers"),), line="bm25")
    return Site(library=FolderLibrary([folders / "cases", folders / "handbooks"]), settings=settings, load_model=load)


@pytest.fixture(scope="module")
def address(site: Site) -> Iterator[str]:
    with serving(create_app(site)) as url:
        yield url


def ask(page: Page) -> None:
    """Send the form and wait for all of the answer: until then the page loads itself again."""
    page.get_by_role("button", name="Search and answer").click()
    page.wait_for_url("**/ask/*")
    last = page.locator("main:not(:has([data-ask]))").get_by_text("Change the case and ask again")
    expect(last).to_be_visible(timeout=60_000)


@needs_browser
@pytest.mark.parametrize("size", [DESKTOP, TABLET])
def test_a_case_is_answered_with_its_reports(browser: Browser, address: str, size: tuple[int, int]) -> None:
    with tab(browser, size) as page:
        page.goto(f"{address}/ask")
        expect(page.get_by_role("note").last).to_contain_text("not for clinical use")
        page.get_by_label("The case").fill(CASE)
        page.get_by_role("checkbox", name="handbooks").uncheck()
        ask(page)
        expect(page.get_by_role("heading", name="Answer")).to_be_visible()
        assert "purpura" not in page.url, "the case is no part of the address"
        reply = page.locator(".reply")
        expect(reply).to_contain_text("Give caplacizumab [1], as <b>nobody</b> says [99]")
        expect(reply.locator("b")).to_have_count(0)
        expect(reply.locator(".doubtful")).to_contain_text("unsupported")
        expect(page.locator(".problem")).to_contain_text("no passage has this number")
        reply.get_by_role("link", name="[1]").click()
        expect(page.locator("#passage-1")).to_be_in_viewport()
        first = page.locator(".reports > li").first
        expect(first.get_by_role("link").first).to_have_attribute("href", "/corpora/cases/documents/1")
        expect(first.locator("mark").first).to_be_visible()
        first.get_by_text("Why it was found").click()
        expect(first.locator(".via li")).to_contain_text("bm25: rank 1")
        assert fits(page)
        assert serious_faults(page) == []


@needs_browser
@pytest.mark.parametrize("size", [DESKTOP, TABLET])
def test_sources_are_compared_in_a_matrix(browser: Browser, address: str, size: tuple[int, int]) -> None:
    with tab(browser, size) as page:
        page.goto(f"{address}/ask")
        page.get_by_label("The case").fill(FEVER)
        page.get_by_role("checkbox", name="cases").uncheck()
        ask(page)
        expect(page.get_by_text("2 of 6 sources answer")).to_be_visible()
        cell = page.locator("table").get_by_role("link", name="Divergent")
        expect(cell).to_have_count(2)
        cell.first.click()
        expect(page.locator("#pair-1")).to_contain_text("One waits longer than the other.")
        expect(page.locator("#pair-1")).to_contain_text("high significance")
        assert "quote is not in the passages shown" in page.locator(".sources").inner_text()


@needs_browser
def test_hostile_text_stays_text_and_the_form_keeps_it(browser: Browser, address: str) -> None:
    with tab(browser) as page:
        page.goto(f"{address}/ask")
        page.get_by_label("The case").fill(HOSTILE)
        page.get_by_label("Answer by").select_option("")
        ask(page)
        expect(page.get_by_text("No model was chosen")).to_be_visible()
        expect(page.locator(".case")).to_contain_text(HOSTILE.partition(" plasma")[0])
        assert page.locator("main img").count() == 0
        page.get_by_text("Change the case and ask again").click()
        assert page.get_by_label("The case").input_value() == HOSTILE


@needs_browser
def test_without_script_the_page_looks_again_by_itself(browser: Browser, address: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}/ask")
    page.fill("#text", CASE)
    page.select_option("#model", "")
    page.click("button:has-text('Search and answer')")
    page.wait_for_selector("h2:has-text('Similar reports')", timeout=60_000)
    context.close()


def visiting(address: str, **settings: Any) -> httpx.Client:
    """A client that waits: an ask may have to wait for two others before its page is there."""
    return httpx.Client(base_url=address, headers={"Origin": address}, timeout=60, **settings)


def post(client: httpx.Client, **fields: str) -> httpx.Response:
    page = client.get("/ask")
    token = (
        page.text.partition('name="csrf" value="')[2].partition('"')[0]
        or (page.text.partition('name="csrf" content="')[2].partition('"')[0])
    )
    return client.post("/ask", data={"csrf": token, "corpus": "cases", "line": "bm25", **fields})


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"text": "   "}, "case to search for"),
        ({"text": CASE, "line": "bm26"}, "bm26"),
        ({"text": CASE, "line": "dense[encoder=/etc]"}, "is not available here"),
        ({"text": CASE, "line": "bm25 > rerank[with=/etc]@5"}, "is not available here"),
        ({"text": CASE, "model": "openai:somebody-elses"}, "does not offer that model"),
        ({"text": CASE, "corpus": "../../etc"}, "corpus is chosen"),
        ({"text": "x" * 200_500}, "characters"),
        ({"text": CASE, "by": "colour", "model": "MODEL"}, "can&#39;t be distinguished by"),
    ],
)
def test_what_cannot_be_asked_is_said_beside_the_form(
    address: str, server: ScriptedServer, fields: dict[str, str], says: str
) -> None:
    given = {name: value.replace("MODEL", server.spec("answers")) for name, value in fields.items()}
    with visiting(address) as client:
        answer = post(client, **given)
    assert answer.status_code == 400
    assert says in answer.text
    assert "Traceback" not in answer.text


def test_nothing_of_the_case_is_logged(address: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), visiting(address, follow_redirects=True) as client:
        answer = post(client, text="zzyzxsecretword plasma exchange")
        assert answer.status_code == 200
    told = [record.getMessage() for record in caplog.records]
    assert not [line for line in told if "zzyzxsecretword" in line]


def test_the_state_is_told_and_unknown_asks_are_not_here(address: str) -> None:
    with visiting(address) as client:
        place = post(client, text=CASE).headers["location"]
        state = client.get(f"/api{place}").json()
        assert state["state"] in ("waiting", "working", "done")
        assert client.get("/api/ask/nobody").status_code == 404
        assert client.get("/ask/nobody").status_code == 404


# Jobs


def test_an_ask_that_ends_while_its_page_is_made_is_looked_at_again(
    site: Site, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    job = asks_of(site).start(AskJob(AskRequest(text=CASE), ["cases"]), lambda _: (gate.wait(60), None)[1])
    choices = ask_pages._choices

    def ended(*given: Any) -> dict[str, Any]:
        gate.set()
        finished(job)
        return choices(*given)

    monkeypatch.setattr(ask_pages, "_choices", ended)
    page = httpx.get(f"{address}/ask/{job.id}", timeout=60).text
    assert job.over
    assert "/static/ask.js" in page, "it loads itself again and shows what came"


def finished(job: AskJob) -> None:
    deadline = threading.Event()
    for _ in range(6000):
        if job.over:
            return
        deadline.wait(0.01)
    raise AssertionError("the job did not end")


def test_so_many_work_at_a_time_others_wait_and_more_are_refused() -> None:
    asks = AskQueue(max_running=1, waiting=1)
    gate = threading.Event()
    first = asks.start(AskJob(AskRequest(text="a"), ["c"]), lambda _: (gate.wait(60), None)[1])
    second = asks.start(AskJob(AskRequest(text="b"), ["c"]), lambda _: None)
    with pytest.raises(ServerBusyError):
        asks.start(AskJob(AskRequest(text="c"), ["c"]), lambda _: None)
    assert second.state == "waiting"
    gate.set()
    finished(first)
    finished(second)
    assert (first.state, second.state) == ("done", "done")


def test_no_call_is_begun_after_a_stop(folders: Path, tmp_path: Path) -> None:
    job = AskJob(AskRequest(text=FEVER), ["handbooks"])

    def told(found: AskResult) -> None:
        if found.cited is not None:
            job.stopping.set()

    def run(spec: str) -> None:
        ask = AskRequest(text=FEVER, line="bm25", model="stub", by="institution", k=1)
        shelf = SearchableCorpus("handbooks", Corpus.open(folders / "handbooks"))
        with Ledger(tmp_path / "ledger.sqlite") as ledger:
            run_ask(ask, [shelf], model=cancellable_model(load_model(spec, ledger=ledger), job.check), told=told)

    with ScriptedServer(*script()) as server, ThreadPoolExecutor(1) as pool:  # the browser has a loop in this thread
        with pytest.raises(AskCancelledError):
            pool.submit(run, server.spec("stub")).result()
        assert len(server.seen) == 1, "the answer was asked for, no source was"


def test_an_ask_is_stopped_from_its_page(site: Site, address: str) -> None:
    asks = asks_of(site)
    reached, gate = threading.Event(), threading.Event()

    def work(job: AskJob) -> None:
        reached.set()
        gate.wait(60)
        job.check()
        raise AssertionError("it went on after it was stopped")

    job = asks.start(AskJob(AskRequest(text=CASE), ["cases"]), work)
    assert reached.wait(60)
    with visiting(address) as client:
        page = client.get(f"/ask/{job.id}")
        token = page.text.partition('name="csrf" value="')[2].partition('"')[0]
        assert client.post(f"/ask/{job.id}/stop", data={"csrf": token}).status_code == 303
        gate.set()
        finished(job)
        assert "You stopped this." in client.get(f"/ask/{job.id}").text
    assert job.state == "stopped"


def test_an_error_nobody_foresaw_is_told_by_its_kind_only() -> None:
    def work(_: AskJob) -> None:
        raise ValueError("the patient's own words")

    job = AskQueue().start(AskJob(AskRequest(text="a"), ["c"]), work)
    finished(job)
    assert job.state == "failed"
    assert "ValueError" in job.what
    assert "patient" not in job.what + job.fix


def test_an_error_of_ours_is_told_in_full_and_old_jobs_are_forgotten() -> None:
    def work(_: AskJob) -> None:
        raise HoofbeatError("the model is away", fix="try later")

    asks = AskQueue(seconds=0.0)
    job = asks.start(AskJob(AskRequest(text="a"), ["c"]), work)
    finished(job)
    assert (job.what, job.fix) == ("the model is away", "try later")
    assert asks.get(job.id) is None


def test_the_empty_form_offers_example_cases_and_says_what_the_model_cannot_do(address: str, folders: Path) -> None:
    with visiting(address) as client:
        page = client.get("/ask").text
        assert "Example cases" in page
        assert page.count('href="/ask?example=') == 4
        assert "It can&#39;t look anything up" in page
        chosen = client.get("/ask?example=1").text
        assert "Reports like this one: " in chosen.partition("<textarea")[2].partition("</textarea>")[0]
        assert client.get("/ask?example=77").status_code == 200
    site = Site(library=FolderLibrary([folders]))
    texts = [case.text for case in ask_pages.example_cases(site)]
    assert len(texts) == 4, "questions of audits and benchmarks, where there are some"
    assert not [text for text in texts if text.startswith("Reports like this one")]
