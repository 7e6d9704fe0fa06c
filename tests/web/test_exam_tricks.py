"""What somebody at an exam might try: other ways to its questions, looking ahead, taking back, and the clock."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from msgspec import Struct

from hoofbeat.review.exam_items import exam_study
from hoofbeat.review.exam_results import exam_rows
from hoofbeat.review.exam_sitting import (
    ExamSitting,
    begin_exam,
    end_exam,
    load_sitting,
    open_question,
    save_draft,
    submit_answer,
)
from hoofbeat.review.review_records import Person, ReviewItem, SaveResult, Study
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.review.study_items import study_from
from hoofbeat.web import create_app
from tests.web.review_site import store_site
from tests.web.support import serving
from tests.web.visitors import Visitor

DAY = 24 * 3600.0


class Hall(Struct, frozen=True):
    """An exam in stages with one person at it, on a server."""

    address: str
    store: ReviewStore
    study: Study
    person: Person
    token: str

    def sitting(self) -> ExamSitting:
        return load_sitting(self.store, self.study, self.person, time.time())

    def items(self) -> list[ReviewItem]:
        return [entry.item for entry in self.sitting().entries]


@pytest.fixture
def hall(tmp_path: Path, folders: Path) -> Iterator[Hall]:
    with ReviewStore.open(str(tmp_path / "exam.db")) as store:
        study, items = exam_study(folders / "bench", seed=5, stages=(50, 100), minutes=30)
        store.create_study(study, items, by="test")
        person, token = store.invite("Dr Invented", "reviewer", by="test")
        with serving(create_app(store_site(store, [folders / "bench"]))) as address:
            yield Hall(address, store, study, person, token)


def test_no_review_page_leads_to_an_exam_s_questions(hall: Hall) -> None:
    visitor = Visitor(hall.address, hall.token)
    exam = f"/exam/{hall.study.id}"
    visitor.get(exam)
    visitor.post(f"{exam}/begin")
    assert visitor.post(f"{exam}/questions/1", {"choice": "A", "text": "Words.", "stage": "0"}).status == 303
    before = hall.store.labels(hall.study.id)
    going = visitor.get(f"/review/{hall.study.id}/next")
    assert going.headers["location"] == f"/review/{hall.study.id}"
    assert visitor.get(f"/review/{hall.study.id}").headers["location"] == exam
    for item in hall.items():
        page = f"/review/{hall.study.id}/items/{item.id}"
        assert visitor.get(page).status == 404
        assert visitor.get(f"/api{page}").status == 404
        assert visitor.get(f"{page}/images/1").status == 404
        for doing in ("undo", "draft", "save", "skip"):
            fields = {"do": doing, "base": "2", "reason": "not my field"}
            assert visitor.post(page, fields).status == 404, doing
        assert visitor.post_json(f"/api{page}/undo", {"request": f"u-{item.id}"}).status == 404
    assert hall.store.labels(hall.study.id) == before


def test_a_question_is_not_shown_before_it_is_opened(hall: Hall) -> None:
    visitor = Visitor(hall.address, hall.token)
    exam = f"/exam/{hall.study.id}"
    visitor.get(exam)
    assert visitor.get(f"{exam}/questions/1").status == 404
    visitor.post(f"{exam}/begin")
    assert visitor.get(f"{exam}/questions/1").status == 200
    second = visitor.get(f"{exam}/questions/2")
    assert (second.status, second.headers["location"]) == (303, exam)
    assert hall.sitting().entries[1].question.text not in second.text
    assert not hall.sitting().entries[1].opened
    assert visitor.post(f"{exam}/questions/2/open").status == 303
    assert visitor.get(f"{exam}/questions/2").status == 200


def test_images_wait_for_the_whole_case(hall: Hall) -> None:
    visitor = Visitor(hall.address, hall.token)
    exam = f"/exam/{hall.study.id}"
    visitor.get(exam)
    visitor.post(f"{exam}/begin")
    place = next(entry.place for entry in hall.sitting().entries if entry.question.images)
    image = f"{exam}/questions/{place}/images/1"
    assert visitor.get(image).status == 404
    visitor.post(f"{exam}/questions/{place}/open")
    assert "/images/1" not in visitor.get(f"{exam}/questions/{place}").text
    assert visitor.get(image).status == 404
    visitor.post(f"{exam}/questions/{place}", {"choice": "A", "text": "Words.", "stage": "0"})
    assert visitor.get(image).status == 200


@pytest.mark.parametrize("other", ["exam", "equivalence"])
def test_no_result_tells_answers_that_another_open_study_hides(hall: Hall, folders: Path, other: str) -> None:
    study, items = exam_study(folders / "bench", seed=6, literature=False)
    hall.store.create_study(study, items, by="test")
    if other == "equivalence":
        hall.store.close_study(hall.study.id, "test")
        hall.store.create_study(*study_from(folders / "run", form=other))
    visitor = Visitor(hall.address, hall.token)
    visitor.get(f"/exam/{study.id}")
    visitor.post(f"/exam/{study.id}/begin")
    visitor.post(f"/exam/{study.id}/questions/1", {"choice": "A", "text": "Words.", "stage": "0"})
    visitor.post(f"/exam/{study.id}/end")
    entries = load_sitting(hall.store, study, hall.person, time.time()).entries
    free = [entry.question.answer for entry in entries if not entry.options]
    signs = ("mark right", 'mark wrong">wrong', "right answer</span>", "questions right", "Reference answer", *free)
    page = visitor.get(f"/exam/{study.id}/result").text
    assert "Another open study uses these questions." in page
    assert [sign for sign in signs if sign in unescape(page)] == []
    for each in hall.store.studies():
        if each.id != study.id:
            hall.store.close_study(each.id, "test")
    page = unescape(visitor.get(f"/exam/{study.id}/result").text)
    assert "Another open study" not in page
    assert "right answer</span>" in page
    assert all(answer in page for answer in free)


@pytest.mark.parametrize("stage", ["-1", "x", "1", "99", "1e3"])
def test_a_stage_that_is_not_open_takes_nothing(hall: Hall, stage: str) -> None:
    visitor = Visitor(hall.address, hall.token)
    exam = f"/exam/{hall.study.id}"
    visitor.get(exam)
    visitor.post(f"{exam}/begin")
    seen = visitor.post(f"{exam}/questions/1", {"choice": "A", "text": "Words.", "stage": stage})
    assert seen.status == 409
    assert hall.sitting().entries[0].kept.given == ()


def test_an_earlier_answer_stays_as_it_was_given(hall: Hall) -> None:
    visitor = Visitor(hall.address, hall.token)
    exam = f"/exam/{hall.study.id}"
    visitor.get(exam)
    visitor.post(f"{exam}/begin")
    place = next(entry.place for entry in hall.sitting().entries if entry.options)
    visitor.post(f"{exam}/questions/{place}/open")
    for choice, status in (("A", 303), ("B", 409), ("A", 303)):
        assert visitor.post(f"{exam}/questions/{place}", {"choice": choice, "stage": "0"}).status == status
    draft = f"/api{exam}/questions/{place}/draft"
    assert visitor.post_json(draft, {"answer": "B", "stage": 0}).status == 409
    entry = hall.sitting().entries[place - 1]
    assert [each.answer for each in entry.kept.given] == [entry.options[0]]
    page = visitor.get(f"{exam}/questions/{place}").text
    assert "Answer 2 of 2" in page
    assert re.search(r'name="stage" value="1"', page)


def test_coming_back_long_after_the_end_counts_no_time(hall: Hall) -> None:
    start = time.time()
    sitting = begin_exam(hall.store, hall.study, hall.person, start)
    place = next(entry.place for entry in sitting.entries if entry.options)
    open_question(hall.store, sitting, sitting.entries[place - 1])
    sitting = load_sitting(hall.store, hall.study, hall.person, start + 50)
    sitting = submit_answer(hall.store, sitting, sitting.entries[place - 1], "A", 40.0, 0)
    sitting = load_sitting(hall.store, hall.study, hall.person, start + 100)
    save_draft(hall.store, sitting, sitting.entries[place - 1], "B", 65.0, 1)
    late = load_sitting(hall.store, hall.study, hall.person, start + 60 * DAY)
    assert late.over
    ended = end_exam(hall.store, late).entries[place - 1]
    assert ended.label is not None
    assert (ended.label.state, ended.label.seconds) == ("done", 65.0)
    rows = [row for row in exam_rows(hall.store, hall.study) if row.question == ended.question.id]
    assert [(row.seconds, row.marked) for row in rows] == [(40.0, False), (25.0, True)]


def test_what_another_tab_marks_while_the_exam_ends_counts(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    start = time.time()
    sitting = begin_exam(hall.store, hall.study, hall.person, start)
    entry = sitting.entries[0]
    said = "A" if entry.options else "Words."
    save = hall.store.save
    meddled: list[bool] = []

    def slow(*given: str, **more: object) -> SaveResult:
        if given[1] == entry.item.id and not meddled:
            meddled.append(True)
            save_draft(hall.store, sitting, entry, said, 5.0, 0)
        return save(*given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(hall.store, "save", slow)
    ended = end_exam(hall.store, sitting)
    assert meddled
    assert ended.over
    assert [each.how for each in ended.entries[0].kept.given] == ["marked"]
