"""The review pages without a browser: whose items are shown, what a plain form does, and what the API keeps."""

from __future__ import annotations

import html
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hoofbeat.review.exam_items import exam_study
from hoofbeat.review.forms import next_undone, progress_of_person, sides_exchanged
from hoofbeat.review.review_records import Assignment, ItemMaterial, ReviewItem, Study
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.store import open_artefact
from hoofbeat.web import create_app
from tests.review.review_studies import ANSWERS, assigned, study_of
from tests.review.stores import store_urls
from tests.web.review_site import store_site
from tests.web.support import serving
from tests.web.visitors import Visitor

__all__ = ["store_urls"]

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\u202e"


def body(values: dict[str, Any], *, base: int = 0, state: str = "done", **more: Any) -> dict[str, Any]:
    return {"values": values, "state": state, "base": base, "request": uuid.uuid4().hex, **more}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ReviewStore]:
    with ReviewStore.open(str(tmp_path / "review.db")) as opened:
        yield opened


@pytest.fixture
def address(store: ReviewStore, folders: Path) -> Iterator[str]:
    with serving(create_app(store_site(store, [folders]))) as url:
        yield url


def form_fields(form: str) -> dict[str, Any]:
    return {f"v:{name}": value for name, value in ANSWERS[form].items()}


def test_a_person_sees_their_own_list_only(store: ReviewStore, address: str, folders: Path) -> None:
    study, items = study_of(folders, "likert")
    ((_, first),) = assigned(store, study, items)
    other, second = store.invite("Somebody else", "admin", by="test")
    store.assign(study.id, [Assignment(study=study.id, item=items[0].id, person=other.id, place=0)], by="test")
    page = f"/review/{study.id}/items/{items[1].id}"
    assert Visitor(address).get(page).status == 401
    assert Visitor(address).get(f"/api{page}").status == 401
    stranger = Visitor(address, second)
    for path in (page, f"/api{page}", f"/review/{study.id}/items/x", "/review/x", f"{page}/images/1"):
        assert stranger.get(path).status == 404, path
    assert stranger.post_json(f"/api{page}", body(ANSWERS["likert"])).status == 404
    assert store.labels(study.id) == []
    mine = Visitor(address, first)
    assert mine.get(page).status == 200
    assert f"0 of {len(items)} done" in mine.get("/review").text
    assert "0 of 1 done" in stranger.get("/review").text


def test_a_list_says_how_each_item_begins(store: ReviewStore, address: str, folders: Path) -> None:
    study, items = study_of(folders, "pair", sample=2)
    ((_, token),) = assigned(store, study, items)
    page = html.unescape(Visitor(address, token).get(f"/review/{study.id}").text)
    for item in items:
        (question,) = (part.text for part in item.shown if part.kind == "question")
        assert question[:60] in page
    assert not any(part.text[:60] in page for item in items for part in item.shown if part.kind == "answer")


def test_nobody_gets_what_others_said(store: ReviewStore, address: str, folders: Path) -> None:
    study, items = study_of(folders, "likert", sample=2)
    (one, first), (_, second) = assigned(store, study, items, people=2)
    item = items[0].id
    store.save(
        study.id, item, one.id, values={**ANSWERS["likert"], "note": "the secret of reviewer one"}, state="done",
        seconds=1, base=0, request="r",
    )  # fmt: skip
    visitor = Visitor(address, second)
    for path in (
        "/review",
        f"/review/{study.id}",
        f"/review/{study.id}/items/{item}",
        f"/api/review/{study.id}/items/{item}",
    ):
        answer = visitor.get(path)
        assert answer.status == 200
        assert "secret" not in answer.text
        assert "checked" not in answer.text.split("<dialog")[0]
        assert one.id not in answer.text
        assert items[0].stratum not in answer.text or items[0].stratum in items[0].shown[0].text
    assert "the secret of reviewer one" in Visitor(address, first).get(f"/review/{study.id}/items/{item}").text


def test_keys_and_strata_of_items_stay_on_the_server(store: ReviewStore, address: str, folders: Path) -> None:
    study, items = study_of(folders, "pair", sample=5)
    ((_, token),) = assigned(store, study, items)
    visitor = Visitor(address, token)
    of_the_codes = open_artefact(folders / "audit").manifest.files["answers.jsonl"]
    hidden = (study.source_sha256, of_the_codes)
    for page in ("/review", f"/review/{study.id}", f"/api/review/{study.id}", "/"):
        assert not [secret for secret in hidden if secret[:12] in visitor.get(page).text]
    for item in items:
        page = visitor.get(f"/review/{study.id}/items/{item.id}").text
        for secret in (item.key["question"], item.key["a"], item.key["b"], *hidden):
            assert secret not in page


def test_sides_stand_as_the_seed_says(store: ReviewStore, address: str, folders: Path) -> None:
    study, items = study_of(folders, "pair", sample=8)
    (one, first), (two, second) = assigned(store, study, items, people=2)
    item = next(each for each in items if sides_exchanged(study, each, one.id) != sides_exchanged(study, each, two.id))
    pages = [Visitor(address, token).get(f"/review/{study.id}/items/{item.id}").text for token in (first, second)]
    texts = [re.findall(r'part-answer.*?<div class="text">(.*?)</div>', page, re.S) for page in pages]
    assert texts[0] == texts[1][::-1]
    assert len(texts[0]) == 2


def test_the_plain_form_saves_and_goes_on(store: ReviewStore, address: str, folders: Path) -> None:
    study, items = study_of(folders, "two-level-1", sample=3)
    ((person, token),) = assigned(store, study, items)
    visitor = Visitor(address, token)
    first = visitor.get(f"/review/{study.id}/next").headers["location"]
    assert first == f"/review/{study.id}/items/{items[0].id}"
    page = visitor.get(first).text
    assert '<details class="told" open' in page
    answer = visitor.post(first, {"do": "save", "base": "0", "v:missing information": "pass", "v:add to stem": "kept"})
    assert answer.status == 400
    assert "not filled in: Is exactly one option right?" in answer.text
    assert re.search(r'value="pass" checked', answer.text)
    assert store.labels(study.id) == []
    sent = {"do": "save", "base": "0", "request": "once", **form_fields("two-level-1")}
    for _ in range(2):  # a second click sends the same
        answer = visitor.post(first, sent)
        assert (answer.status, answer.headers["location"]) == (303, f"/review/{study.id}/items/{items[1].id}")
    label = store.label(study.id, items[0].id, person.id)
    assert label is not None
    assert (label.values, label.state, label.version) == (ANSWERS["two-level-1"], "done", 1)
    second = f"/review/{study.id}/items/{items[1].id}"
    assert '<details class="told">' in visitor.get(second).text
    assert visitor.post(second, {"do": "skip", "base": "0"}).status == 400
    assert visitor.post(second, {"do": "skip", "base": "0", "reason": "something else"}).status == 400
    answer = visitor.post(second, {"do": "skip", "base": "0", "reason": "not my field", "more": "paediatrics"})
    third = answer.headers["location"]
    skipped = store.label(study.id, items[1].id, person.id)
    assert skipped is not None
    assert (skipped.state, skipped.reason) == ("skipped", "not my field: paediatrics")
    assert visitor.post(third, {"do": "draft", "base": "0"}).headers["location"] == third
    answer = visitor.post(third, {"do": "save", "base": "1", **form_fields("two-level-1")})
    assert answer.headers["location"] == f"/review/{study.id}"
    done = visitor.get(f"/review/{study.id}").text
    assert "Thank you" in done
    assert "skipped 1 item with a reason" in done
    assert "not my field: paediatrics" in done
    assert visitor.post(first, {"do": "undo", "base": "1"}).headers["location"] == first
    assert "kept as a draft" in visitor.get(first).text
    assert "2 of 3" not in visitor.get(f"/review/{study.id}").text


def test_the_plain_form_shows_both_versions(store: ReviewStore, address: str, folders: Path) -> None:
    study, items = study_of(folders, "equivalence", sample=1)
    ((person, token),) = assigned(store, study, items)
    visitor = Visitor(address, token)
    page = f"/review/{study.id}/items/{items[0].id}"
    visitor.get(page)
    store.save(
        study.id, items[0].id, person.id, values={"label": "equivalent"}, state="done", seconds=0, base=0, request="a"
    )
    answer = visitor.post(page, {"do": "save", "base": "0", "v:label": "mismatch"})
    assert answer.status == 409
    assert re.search(r"<th scope=\"row\">The answer is</th><td>Mismatch</td><td>Equivalent</td>", answer.text)
    assert 'name="base" value="1"' in answer.text
    undo = visitor.post(page, {"do": "undo", "base": "0", "v:label": "mismatch"})
    assert undo.status == 409, "what another tab saved is not undone unseen"
    assert "<td>Mismatch</td><td>Equivalent</td>" in undo.text
    assert visitor.post(page, {"do": "save", "base": "1", "v:label": "mismatch"}).status == 303
    kept = store.label(study.id, items[0].id, person.id)
    assert kept is not None
    assert (kept.values, kept.version) == ({"label": "mismatch"}, 2)


def test_the_api_on_both_databases(store_urls: str, folders: Path) -> None:
    study, items = study_of(folders, "pair", sample=2)
    with ReviewStore.open(store_urls) as store, serving(create_app(store_site(store))) as address:
        ((person, token),) = assigned(store, study, items)
        visitor = Visitor(address, token)
        path = f"/review/{study.id}/items/{items[0].id}"
        visitor.get(path)
        empty = visitor.get(f"/api{path}").json()
        assert (empty["label"]["version"], empty["conflict"]) == (0, False)
        draft = body({"label": "Divergent"}, state="draft", seconds=2.5)
        first = visitor.post_json(f"/api{path}", draft).json()
        again = visitor.post_json(f"/api{path}", draft).json()  # the answer was lost, and the page sent it again
        assert first["label"] == again["label"]
        assert first["label"]["version"] == 1
        assert (
            visitor.post_json(f"/api{path}", body({"label": "Divergent"}, base=1)).status == 400
        )  # significance is missing
        done = visitor.post_json(f"/api{path}", body(ANSWERS["pair"], base=1, seconds=4)).json()
        assert done["label"]["state"] == "done"
        assert done["progress"]["words"] == "1 of 2 done, 0 skipped, 1 left"
        assert done["next"] == f"/review/{study.id}/items/{items[1].id}"
        stale = visitor.post_json(f"/api{path}", body({"label": "Absent"}, base=1))
        assert (stale.status, stale.json()["conflict"]) == (409, True)
        assert stale.json()["label"]["values"] == ANSWERS["pair"]
        unseen = visitor.post_json(f"/api{path}/undo", {"request": uuid.uuid4().hex, "base": 1})
        assert (unseen.status, unseen.json()["conflict"], unseen.json()["label"]["version"]) == (409, True, 2)
        undone = visitor.post_json(f"/api{path}/undo", {"request": uuid.uuid4().hex, "base": 2}).json()
        assert (undone["label"]["values"], undone["label"]["state"]) == ({"label": "Divergent"}, "draft")
        skipped = visitor.post_json(f"/api{path}", body({}, base=3, state="skipped"))
        assert skipped.status == 400
        what = [event.what for event in store.trail(study=study.id, item=items[0].id, person=person.id)]
        assert what == ["saved", "saved", "undone"]
        store.close_study(study.id, "test")
        closed = visitor.post_json(f"/api{path}", body(ANSWERS["pair"], base=3))
        assert (closed.status, "closed" in closed.json()["error"]) == (409, True)


WRONG: tuple[Any, ...] = (
    {"values": {"label": "x"}, "state": "done", "base": 0, "request": "a"},
    {"values": {"label": ["mismatch"]}, "state": "done", "base": 0, "request": "a"},
    {"values": {"other": "x"}, "state": "draft", "base": 0, "request": "a"},
    {"values": {}, "state": "gone", "base": 0, "request": "a"},
    {"values": {}, "state": "draft", "base": -1, "request": "a"},
    {"values": {}, "state": "draft", "base": 0, "request": "a b"},
    {"values": {}, "state": "draft", "base": 0, "request": "a", "seconds": -1},
    {"values": {}, "state": "draft", "base": 0, "request": "a", "person": "somebody"},
    {"values": {}, "state": "skipped", "base": 0, "request": "a", "reason": " "},
    {"values": [], "state": "draft", "base": 0, "request": "a"},
    [],
    None,
)


def test_what_the_api_does_not_take(store: ReviewStore, address: str, folders: Path) -> None:
    study, items = study_of(folders, "equivalence", sample=1)
    ((_, token),) = assigned(store, study, items)
    visitor = Visitor(address, token)
    for sent in WRONG:
        answer = visitor.post_json(f"/api/review/{study.id}/items/{items[0].id}", sent)
        assert answer.status in (400, 422), sent
    assert store.labels(study.id) == []


def test_hostile_text_is_shown_not_run(store: ReviewStore, address: str) -> None:
    study = Study(id="hostile", title=HOSTILE, form="equivalence", source="x", source_sha256="0")
    shown = tuple(
        ItemMaterial(title=HOSTILE, text=HOSTILE * 40, kind=kind, lines=(HOSTILE,), marks=((3, 9),))
        for kind in ("case", "question", "answer", "gold", "options", "quote", "source", "note", "image", "strange")
    )
    item = ReviewItem(id="i", study="hostile", place=0, shown=shown, key={"images": ["../../etc/passwd"]})
    ((_, token),) = assigned(store, study, [item])
    visitor = Visitor(address, token)
    visitor.get("/review/hostile/items/i")
    sent = visitor.post("/review/hostile/items/i", {"do": "save", "base": "0", "v:label": HOSTILE, "v:note": HOSTILE})
    assert sent.status == 400
    for page in (sent.text, visitor.get("/review/hostile/items/i").text, visitor.get("/review").text):
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert "\u202e" not in page
    assert visitor.get("/review/hostile/items/i/images/1").status == 404


def test_images_come_from_the_folder_the_study_is_about(store: ReviewStore, address: str, folders: Path) -> None:
    study, items = study_of(folders, "two-level-1")
    ((_, token),) = assigned(store, study, items)
    item = next(each for each in items if each.key["images"])
    visitor = Visitor(address, token)
    page = f"/review/{study.id}/items/{item.id}"
    assert f'src="{page}/images/1"' in visitor.get(page).text
    image = visitor.get(f"{page}/images/1")
    assert image.status == 200
    assert image.headers["content-type"].startswith("image/")
    assert image.content == (folders / "bench" / item.key["images"][0]).read_bytes()
    assert visitor.get(f"{page}/images/99").status == 404
    assert visitor.get(f"{page}/images/0").status == 404


def test_a_closed_study_can_be_looked_at(store: ReviewStore, address: str, folders: Path) -> None:
    study, items = study_of(folders, "likert", sample=2)
    ((_, token),) = assigned(store, study, items)
    store.close_study(study.id, "test")
    visitor = Visitor(address, token)
    assert "This study is closed" in visitor.get("/review").text
    page = f"/review/{study.id}/items/{items[0].id}"
    assert "you can no longer change your answers" in visitor.get(page).text
    answer = visitor.post(page, {"do": "save", "base": "0", **form_fields("likert")})
    assert answer.status == 409
    assert store.labels(study.id) == []


def test_the_next_item_is_the_first_open_one_behind() -> None:
    rows = [Assignment(study="s", item=name, person="p", place=place) for place, name in enumerate("abcd")]
    assert next_undone(rows, []) == "a"
    assert next_undone(rows, [], "b") == "c"
    assert next_undone(rows, [], "d") == "a"
    assert next_undone(rows[:1], [], "a") is None
    assert progress_of_person(rows, []).words == "0 of 4 done, 0 skipped, 4 left"


def test_an_exam_that_nobody_was_given_can_be_found(store: ReviewStore, folders: Path) -> None:
    study, items = exam_study(folders / "bench", title="Open exam (invented)")
    other, others = study_of(folders, "likert")
    store.create_study(study, items, by="test")
    store.create_study(other, others, by="test")
    _, invited = store.invite("Invented reviewer", "reviewer", by="test")
    _, elsewhere = store.invite("Invented other", "reviewer", by="test", studies=(other.id,))
    with serving(create_app(store_site(store))) as address:
        page = Visitor(address, invited).get("/review").text
        assert f'href="/exam/{study.id}"' in page
        assert "Nothing is assigned" not in page
        assert study.title not in Visitor(address, elsewhere).get("/review").text
