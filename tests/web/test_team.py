"""The team's pages in a real browser: assigning, watching, settling; and who may see what."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import Browser, expect

from hoofbeat.review.exam_items import exam_study
from hoofbeat.review.label_export import export_labels
from hoofbeat.review.review_records import Assignment, Person
from hoofbeat.review.review_rounds import rounds_of
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.web.app import create_app
from hoofbeat.web.review.team_pages import AgreementOut, LabelsOut, ProgressOut
from tests.review.labelled import rated, team_of
from tests.web.review_site import signed_in_tab, store_site
from tests.web.support import DESKTOP, TABLET, fits, needs_browser, serving

EVIL = '<img src=x onerror="document.title=1">'
YES = dict.fromkeys(("diagnosis is right", "diagnosis is not mentioned", "nothing after the diagnosis"), "yes")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ReviewStore]:
    with ReviewStore.open(str(tmp_path / "review.db")) as opened:
        yield opened


def client_of(store: ReviewStore, person: Person, folders: Path) -> TestClient:
    """A client that has come in as this person."""
    here = "http://127.0.0.1:8350"
    client = TestClient(create_app(store_site(store, [folders])), base_url=here, headers={"Origin": here})
    token = store.renew(person.id, "test")
    page = client.get(f"/join/{token}").text
    came = client.post(f"/join/{token}", data={"csrf": csrf_of(page)})
    assert came.status_code == 200
    return client


def csrf_of(page: str) -> str:
    found = re.search(r'name="csrf" (?:content|value)="([0-9a-f]+)"', page)
    assert found is not None
    return found[1]


# What the server says, on both databases


def test_progress_agreement_and_decisions_on_both_databases(store_urls: str, folders: Path) -> None:
    with ReviewStore.open(store_urls) as store:
        team = team_of(store, folders, "leak")
        anna, bert, adjudicator, admin = team.people
        for item in team.items:
            team.say(anna, item, YES, seconds=40)
        for item in team.items[:4]:
            team.say(bert, item, YES if item.place else {**YES, "diagnosis is right": "no", "note": EVIL}, seconds=80)
        base = f"/team/{team.study.id}"
        boss, judge = client_of(store, admin, folders), client_of(store, adjudicator, folders)
        told = boss.get(f"/api{base}/progress").json()
        assert (told["items"], told["assigned"], told["done"], told["share"]) == (6, 12, 10, pytest.approx(10 / 12))
        assert [(row["name"], row["done"], row["median_seconds"]) for row in told["people"]] == [
            (anna.name, 6, 40.0),
            (bert.name, 4, 80.0),
        ]
        assert sum(row["complete"] for row in told["strata"]) == 4
        blind = judge.get(f"/api{base}/progress").json()
        assert {row["name"] for row in blind["people"]} == {"Reviewer 1", "Reviewer 2"}
        assert anna.id not in judge.get(f"/api{base}/progress").text
        for model, name in ((ProgressOut, "progress"), (AgreementOut, "agreement"), (LabelsOut, "labels")):
            answer = boss.get(f"/api{base}/{name}").json()
            assert model.model_validate(answer).model_dump() == answer, "what the schema says, and nothing else"
        field = judge.get(f"/api{base}/agreement").json()["fields"][0]
        assert (field["items"], field["agree"], field["compared"]) == (4, 3, 4)
        [row] = [each for each in [judge.get(f"{base}/queue/{team.items[0].id}")] if each.status_code == 200]
        assert EVIL not in row.text
        assert "onerror=&#34;" in row.text
        assert anna.name not in row.text
        settled = judge.post(
            f"{base}/queue/{team.items[0].id}",
            data={
                "csrf": csrf_of(row.text),
                "v:diagnosis is right": "yes",
                "note": "It is.",
                "request": "r1",
                "base": "0",
            },
            follow_redirects=False,
        )
        assert settled.status_code == 303
        [decision] = store.decisions(team.study.id)
        assert (decision.values, decision.note) == ({"diagnosis is right": "yes"}, "It is.")
        stale = judge.post(
            f"{base}/queue/{team.items[0].id}",
            data={"csrf": csrf_of(row.text), "v:diagnosis is right": "no", "request": "r2", "base": "0"},
        )
        assert stale.status_code == 409
        assert "settled this item meanwhile" in stale.text
        labels = boss.get(f"/api{base}/labels").json()
        assert labels["rows"] == export_labels(store, team.study).rows
        assert {row["reviewer"] for row in labels["rows"]} == {anna.name, bert.name, "adjudicated"}
        assert boss.get(f"{base}/labels.csv").text.startswith("item,criterion,value,reviewer,note\n")
        assert len(boss.get(f"{base}/labels.jsonl").text.splitlines()) == len(labels["rows"])


def test_who_may_see_what(store: ReviewStore, folders: Path) -> None:
    team = team_of(store, folders, "leak")
    other = team_of(store, folders, "likert", roles=())
    reviewer, _, adjudicator, admin = team.people
    narrow, _ = store.invite("Invented narrow", "adjudicator", by="test", studies=[other.study.id])
    base = f"/team/{team.study.id}"
    pages = ("/team", base, f"{base}/agreement", f"{base}/queue", f"/api{base}/progress", f"/api{base}/agreement")
    for_admins = (f"/api{base}/labels", f"{base}/labels.csv", f"{base}/labels.jsonl")
    client = client_of(store, reviewer, folders)
    assert [client.get(page).status_code for page in (*pages, *for_admins)] == [403] * 9
    client = client_of(store, adjudicator, folders)
    assert [client.get(page).status_code for page in pages] == [200] * 6
    assert [client.get(page).status_code for page in for_admins] == [403] * 3
    token = csrf_of(client.get(base).text)
    for act in ("assign", "close", "round"):
        assert client.post(f"{base}/{act}", data={"csrf": token, "sure": "yes"}).status_code == 403
    client = client_of(store, narrow, folders)
    assert [client.get(page).status_code for page in pages[1:]] == [404] * 5
    assert team.study.title not in client.get("/team").text
    client = client_of(store, admin, folders)
    assert [client.get(page).status_code for page in (*pages, *for_admins)] == [200] * 9
    assert client.post(f"{base}/close", data={"sure": "yes"}).status_code == 403, "without the page's token nothing"
    assert client.get("/team/none").status_code == 404
    assert client.get("/api/team/none/progress").json()["error"] == "this study does not exist"


@pytest.mark.parametrize("own", ["skip", "save"])
def test_whoever_has_seen_the_labels_of_others_labels_no_more(store: ReviewStore, folders: Path, own: str) -> None:
    team = team_of(store, folders, "leak")
    anna, bert, judge, _ = team.people
    item, base = team.items[0], f"/team/{team.study.id}"
    team.say(anna, item, YES)
    team.say(bert, item, {**YES, "diagnosis is right": "no", "note": "Secret words."})
    store.assign(team.study.id, [Assignment(study=team.study.id, item=item.id, person=judge.id, place=0)], by="test")
    client = client_of(store, judge, folders)
    mine, queued = f"/review/{team.study.id}/items/{item.id}", f"{base}/queue/{item.id}"
    fields = {f"v:{name}": "yes" for name in YES}
    page = client.get(queued)
    assert "Label this item yourself first" in page.text
    sent = {"csrf": csrf_of(page.text), **fields}
    client.post(f"{queued}/open", data=sent)
    assert "Label this item yourself first" in client.get(queued).text
    client.post(mine, data={**sent, "do": own, "reason": "not my field", "base": "0"})
    before = store.label(team.study.id, item.id, judge.id)
    for gate in (client.get(queued), client.post(queued, data=sent)):
        assert "you can no longer" in gate.text
        assert "Secret" not in gate.text
        assert "diagnosis is right" not in client.get(f"{base}/queue").text
    assert store.decisions(team.study.id) == []
    assert "Secret words." in client.post(f"{queued}/open", data=sent).text
    for doing, version in (("save", 1), ("draft", 1), ("undo", 1), ("save", 0)):
        again = client.post(mine, data={**sent, "v:diagnosis is right": "no", "do": doing, "base": str(version)})
        assert (again.status_code, "seen the labels of others" in again.text) == (409, True), doing
    headers = {"X-CSRF-Token": sent["csrf"]}
    body = {"values": {**YES, "diagnosis is right": "no"}, "state": "done", "base": 1, "request": "r-1"}
    assert client.post(f"/api{mine}", json=body, headers=headers).status_code == 409
    assert client.post(f"/api{mine}/undo", json={"request": "r-2"}, headers=headers).status_code == 409
    assert store.label(team.study.id, item.id, judge.id) == before
    assert "Yours is final." in client.get(mine).text
    client.post(queued, data={**sent, "v:diagnosis is right": "no", "base": "0"})
    assert [each.values for each in store.decisions(team.study.id)] == [{"diagnosis is right": "no"}]


def test_an_item_that_was_seen_in_the_queue_can_only_be_skipped(store: ReviewStore, folders: Path) -> None:
    team = team_of(store, folders, "leak")
    anna, bert, judge, _ = team.people
    item = team.items[0]
    team.say(anna, item, YES)
    team.say(bert, item, {**YES, "diagnosis is right": "no"})
    client = client_of(store, judge, folders)
    sent = {"csrf": csrf_of(client.get(f"/team/{team.study.id}/queue/{item.id}").text)}
    store.assign(team.study.id, [Assignment(study=team.study.id, item=item.id, person=judge.id, place=0)], by="test")
    mine = f"/review/{team.study.id}/items/{item.id}"
    assert "You can only skip it." in client.get(mine).text
    assert client.post(mine, data={**sent, **{f"v:{name}": "yes" for name in YES}, "base": "0"}).status_code == 409
    assert client.post(mine, data={**sent, "do": "skip", "reason": "not my field", "base": "0"}).status_code == 200
    assert [label.state for label in store.labels(team.study.id, person=judge.id)] == ["skipped"]


def test_an_adjudicator_sees_an_item_s_images(store: ReviewStore, folders: Path) -> None:
    team = team_of(store, folders, "leak")
    anna, bert, adjudicator, _ = team.people
    item = next(item for item in team.items if item.key["images"])
    team.say(anna, item, YES)
    team.say(bert, item, {**YES, "diagnosis is right": "no"})
    client = client_of(store, adjudicator, folders)
    link = f"/team/{team.study.id}/queue/{item.id}"
    assert f'src="{link}/images/1"' in client.get(link).text
    image = client.get(f"{link}/images/1")
    assert image.headers["content-type"] == "image/png"
    assert image.content.startswith(b"\x89PNG")
    assert client.get(f"{link}/images/99").status_code == 404
    assert client_of(store, anna, folders).get(f"{link}/images/1").status_code == 403


def test_an_admin_sees_which_names_were_replaced(store: ReviewStore, folders: Path) -> None:
    team = team_of(store, folders, "pair", sample=12)
    *_, adjudicator, admin = team.people
    page = client_of(store, admin, folders).get(f"/team/{team.study.id}").text
    assert "Names replaced in the texts (" in page
    assert all(name in page for name, _, _ in team.study.settings["names_replaced"])
    assert "Names replaced" not in client_of(store, adjudicator, folders).get(f"/team/{team.study.id}").text


def test_closing_needs_a_word_and_ends_it(store: ReviewStore, folders: Path) -> None:
    team = team_of(store, folders, "leak")
    client = client_of(store, team.people[3], folders)
    base = f"/team/{team.study.id}"
    token = csrf_of(client.get(base).text)
    assert client.post(f"{base}/close", data={"csrf": token}).status_code == 400
    closed = client.post(f"{base}/close", data={"csrf": token, "sure": "yes"})
    assert "The study is closed" in closed.text
    found = store.study(team.study.id)
    assert found is not None
    assert found.closed
    assert "/assign" not in closed.text


def test_an_exam_is_given_out_by_its_own_rules(store: ReviewStore, folders: Path) -> None:
    study, items = exam_study(folders / "bench", per_person=3, seed=1)
    store.create_study(study, items, by="test")
    admin, _ = store.invite("Invented admin", "admin", by="test")
    sitter, _ = store.invite("Invented sitter", "reviewer", by="test")
    client = client_of(store, admin, folders)
    page = client.get(f"/team/{study.id}")
    assert page.status_code == 200
    assert "Reviewers per item" not in page.text
    data = {"csrf": csrf_of(page.text), "person": sitter.id}
    assert "The items are assigned." in client.post(f"/team/{study.id}/assign", data=data).text
    assert len(store.assignments(study.id, sitter.id)) == 3
    assert "Nothing to assign" in client.post(f"/team/{study.id}/assign", data=data).text
    assert client.get(f"/api/team/{study.id}/labels").status_code == 400
    assert client.get(f"/team/{study.id}/queue").status_code == 200
    assert study.title in client.get("/team").text


# In the browser


@needs_browser
@pytest.mark.parametrize("size", [DESKTOP, TABLET])
def test_an_admin_assigns_and_watches(
    store: ReviewStore, folders: Path, browser: Browser, size: tuple[int, int]
) -> None:
    team = team_of(store, folders, "leak", roles=())
    invited = [store.invite(name, "reviewer", by="test")[0] for name in ("Anna Invented", f"Bert {EVIL}")]
    _, token = store.invite("Admin Invented", "admin", by="test")
    team.people = invited
    with (
        serving(create_app(store_site(store, [folders]))) as address,
        signed_in_tab(browser, address, token, size) as page,
    ):
        page.get_by_role("link", name=re.compile(r"^Does the case give")).click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("Does the case give the diagnosis away?")
        expect(page.get_by_text("6 of 6 items are not assigned to anybody.")).to_be_visible()
        assert fits(page)
        page.get_by_label("Reviewers per item", exact=True).fill("1")
        page.get_by_label("Overlap, in percent").fill("50")
        page.get_by_role("button", name="Assign").click()
        expect(page.get_by_text("The items are assigned.")).to_be_visible()
        rows = store.assignments(team.study.id)
        assert len(rows) == 9
        assert sum(row.why == "overlap" for row in rows) == 6
        expect(page.get_by_role("rowheader", name=f"Bert {EVIL}")).to_be_visible()
        row = page.get_by_role("row", name=re.compile("Anna Invented"))
        mine = store.assignments(team.study.id, invited[0].id)
        expect(row.get_by_role("cell").nth(0)).to_have_text(str(len(mine)))
        page.evaluate("window.kept = true")
        item = next(item for item in team.items if item.id == mine[0].item)
        team.say(invited[0], item, YES)
        expect(row.get_by_role("cell").nth(1)).to_have_text("1", timeout=60_000)
        assert page.evaluate("window.kept"), "the page was not loaded anew"
        assert fits(page)


@needs_browser
@pytest.mark.parametrize("size", [DESKTOP, TABLET])
def test_an_adjudicator_settles_what_differs(
    store: ReviewStore, folders: Path, browser: Browser, size: tuple[int, int]
) -> None:
    team = team_of(store, folders, "pair", sample=12)
    anna = team.reviewers()[0]

    def says(person: Person, item: Any, _rng: object) -> dict[str, str]:
        label = item.stratum if person.id == anna.id or item.place > 1 else "Contradictory"
        level = "low" if person.id == anna.id else "high"  # what both say is filled in already
        return {"label": label, **({"significance": level} if label in ("Divergent", "Contradictory") else {})}

    rated(team, says)
    with (
        serving(create_app(store_site(store, [folders]))) as address,
        signed_in_tab(browser, address, team.token("adjudicator"), size) as page,
    ):
        page.goto(f"{address}/team/{team.study.id}/queue")
        before = page.get_by_text(re.compile(r"items? needs? a decision")).inner_text()
        page.get_by_role("link", name="Resolve the first").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Resolve a disagreement")
        assert not any(person.name in page.content() for person in team.reviewers())
        assert fits(page)
        significance = page.get_by_role("group", name=re.compile("How much does the difference matter"))
        page.get_by_role("radio", name=re.compile("^Consistent")).check()
        expect(significance).to_be_hidden()
        page.get_by_role("radio", name=re.compile("^Divergent")).check()
        expect(significance).to_be_visible()
        page.get_by_role("button", name="Save and next").click()
        expect(page.get_by_role("alert")).to_contain_text("not filled in")
        expect(page.get_by_role("radio", name=re.compile("^Divergent"))).to_be_checked()
        page.get_by_role("radio", name="medium").check()
        page.get_by_label("Reason").fill("One is stricter.")
        page.get_by_role("button", name="Save and next").click()
        page.wait_for_load_state()
        [decision] = store.decisions(team.study.id)
        assert decision.values == {"label": "Divergent", "significance": "medium"}
        page.goto(f"{address}/team/{team.study.id}/queue")
        assert page.get_by_text(re.compile(r"needs? a decision")).inner_text() != before
        page.get_by_role("link", name=decision.item).click()
        expect(page.get_by_label("Reason")).to_have_value("One is stricter.")
        page.goto(f"{address}/team/{team.study.id}/agreement")
        expect(page.get_by_text("Reviewer 1 and 2").first).to_be_visible()
        expect(page.locator(".meaning").first).to_contain_text("This rests on 12 items only")
        assert fits(page)


@needs_browser
def test_an_admin_sends_findings_back(store: ReviewStore, folders: Path, browser: Browser) -> None:
    team = team_of(store, folders, "two-level-2", roles=("reviewer", "adjudicator", "admin"))
    passes = dict.fromkeys(("clarity", "clinical rationality", "factual accuracy", "options appropriate"), "pass")
    for item in team.items:
        found = {"clarity": "finding", "what is unclear": "How long?"} if item.place == 2 else {}
        team.say(team.people[0], item, {**passes, **found})
    with (
        serving(create_app(store_site(store, [folders]))) as address,
        signed_in_tab(browser, address, team.token("admin")) as page,
    ):
        page.goto(f"{address}/team/{team.study.id}")
        expect(page.get_by_text("5 of 6 items passed (83%)")).to_be_visible()
        expect(page.get_by_text("1 to be revised")).to_be_visible()
        page.get_by_role("button", name="Create these items").click()
        expect(page.get_by_text("The next items are created and assigned.")).to_be_visible()
        expect(page.get_by_text("There is nothing to do yet.")).to_be_visible()
        made = [item for item in store.items(team.study.id) if item.stage == "revision"]
        assert [row.item for row in store.assignments(team.study.id, team.people[1].id)] == [made[0].id]
        study, items = team.study, store.items(team.study.id)
        assert rounds_of(study, items, store.labels(study.id), ()).rounds[0].in_revision == 1
