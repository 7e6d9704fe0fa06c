"""What readers stumbled over on the browse pages: questions of the same words, ways back, and what was never asked."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from hoofbeat.records import Answer, Question
from tests.web.answered import a_judged, verdicts
from tests.web.browse_support import Visitor, a_site

ASKED = [
    Question(id="q1", text="What is the diagnosis?", context="A man with a cough that does not end.", answer="A"),
    Question(id="q2", text="What is the diagnosis?", context="A woman with a rash on both hands.", answer="B"),
    Question(id="q3", text="What is the diagnosis?", answer="C"),
]


def plain(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


@pytest.fixture
def visitor(tmp_path: Path) -> Visitor:
    answers = [Answer(question=each.id, model="m", condition="closed", text="Said.") for each in ASKED[:2]]
    a_judged(tmp_path / "first", ASKED, answers, verdicts(answers, "++"))
    a_judged(tmp_path / "second", ASKED, answers, verdicts(answers, "-+"))
    return Visitor(a_site(tmp_path))


def test_questions_of_the_same_words_are_told_apart_by_their_cases(visitor: Visitor) -> None:
    listed = plain(visitor.get("/runs/first/questions").text)
    assert "What is the diagnosis? q1 A man with a cough that does not end." in listed
    assert "What is the diagnosis? q2 A woman with a rash on both hands." in listed
    assert "What is the diagnosis? q3" in listed
    beside = plain(visitor.get("/side-by-side?a=first&b=second").text)
    assert "What is the diagnosis? q1 A man with a cough that does not end." in beside


def test_a_question_that_no_system_was_asked_did_not_stay_the_same(visitor: Visitor) -> None:
    pages = [plain(visitor.get(f"/side-by-side/questions/{number}?a=first&b=second").text) for number in (1, 2, 3)]
    assert "right → wrong" in pages[0]
    assert ": no change" in pages[1]
    assert "neither was asked" in pages[2]
    assert "no change" not in pages[2]


def test_one_that_only_one_system_was_asked_is_told(tmp_path: Path) -> None:
    answers = [Answer(question=each.id, model="m", condition="closed", text="Said.") for each in ASKED]
    a_judged(tmp_path / "first", ASKED, answers, verdicts(answers, "+-+"))
    fewer = [replace(each) for each in answers[:2]]
    a_judged(tmp_path / "second", ASKED, fewer, verdicts(fewer, "++"))
    page = plain(Visitor(a_site(tmp_path)).get("/side-by-side/questions/3?a=first&b=second").text)
    assert "only one was asked" in page


def test_a_report_has_no_way_back_so_it_opens_in_a_tab_of_its_own(folders: Path) -> None:
    visitor = Visitor(a_site(folders))
    for path in ("/", "/folders/report"):
        page = visitor.get(path).text
        link = re.search(r'<a [^>]*href="/reports/report"[^>]*>', page)
        assert link
        assert 'target="_blank" rel="noopener"' in link[0]
        assert "new tab" in page


@pytest.mark.parametrize("path", ["/runs/judged", "/audits/audit", "/rankings/ranked"])
def test_every_overview_leads_to_how_it_was_made(folders: Path, path: str) -> None:
    slug = path.rpartition("/")[2]
    assert f'<a href="/folders/{slug}">How it was made</a>' in Visitor(a_site(folders)).get(path).text
