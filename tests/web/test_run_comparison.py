from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from hoofbeat.findings.accuracy import SystemDifference
from hoofbeat.records import Answer, Failure, Question
from hoofbeat.reports.comparison.answers import compare_answers
from hoofbeat.reports.comparison.answers_page import flips_of
from hoofbeat.reports.tables import written
from hoofbeat.web.browse.run_comparison import open_beside
from tests.web.answered import a_judged, a_run, verdicts
from tests.web.browse_support import Visitor, a_site
from tests.web.test_runs import plain

ASKED = [Question(id=f"q{n:02}", text=f"What {n}?", answer="Rest", facets={"ward": "ab"[n % 2]}) for n in range(20)]


def answers(model: str = "m") -> list[Answer]:
    return [Answer(question=each.id, model=model, condition="closed", text=f"Said {each.id}.") for each in ASKED]


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two folders: of 20 questions 6 go from right to wrong, 1 back, 1 loses its answer."""
    folder = tmp_path_factory.mktemp("compared")
    first = answers()
    a_judged(folder / "before", ASKED, first, verdicts(first, "+" * 10 + "-" * 10))
    second = [replace(each, text=f"Now {each.question}.") for each in first]
    second[19] = replace(second[19], text="", failure=Failure(kind="timeout", message="gave up"))
    a_judged(folder / "after", ASKED, second, verdicts(second, "------++++" + "+" + "-" * 9))
    return folder


def test_the_page_has_the_figures_of_the_comparison(two: Path) -> None:
    compared = compare_answers([two / "before", two / "after"])
    row: SystemDifference = compared.differences[0]
    words = plain(Visitor(a_site(two)).get("/side-by-side?a=before&b=after").text)
    span = row.paired.interval
    assert written((row.paired.difference, span.low, span.high), "points") in words
    assert f"McNemar, exact p = {written(row.p, 'p')}" in words
    assert (row.only_b, row.only_a) == (6, 1)
    assert "Right → wrong 6 questions" in words
    assert "Wrong → right 1 questions" in words
    assert "wrong → unscored (1)" in words


def test_the_changes_are_those_of_the_comparison(folders: Path, tmp_path: Path) -> None:
    site = a_site(folders)
    first, second = site.library.folder("run"), site.library.folder("judged")
    assert first is not None
    assert second is not None
    beside = open_beside(site, first, second, patience=30)
    compared = compare_answers([folders / "run", folders / "judged"])
    assert beside is not None
    assert [each.title for each in beside.pairs] == [compared.title(pair) for pair in compared.pairs]
    assert [each.flips for each in beside.pairs] == [dict(flips_of(compared, pair)) for pair in compared.pairs]
    assert all(sum(each.flips.values()) == len(beside.changed(each.number)) for each in beside.pairs)


def test_flips_are_found_by_change_and_facet(two: Path) -> None:
    visitor = Visitor(a_site(two))

    def listed(query: str) -> list[str]:
        page = visitor.get(f"/side-by-side?a=before&b=after&{query}").text
        return re.findall(r'<span class="id">(\w+)</span>', page)

    assert listed("") == ["q00", "q01", "q02", "q03", "q04", "q05", "q10", "q19"]
    assert listed("change=0") == ["q00", "q01", "q02", "q03", "q04", "q05"]
    assert listed("change=1") == ["q10"]
    assert listed("change=3") == ["q19"]
    assert listed("change=0&facet.ward=b") == ["q01", "q03", "q05"]
    assert listed("change=99") == listed("")
    assert listed("change=9") == []


def test_both_answers_stand_beside_each_other(two: Path) -> None:
    visitor = Visitor(a_site(two))
    page = visitor.get("/side-by-side/questions/2?a=before&b=after&pair=0&change=0").text
    words = plain(page)
    assert words.index("First: ") < words.index("Said q01.") < words.index("Second: ") < words.index("Now q01.")
    assert "closed: after against before : right → wrong" in words
    assert 'rel="prev" href="/side-by-side/questions/1?a=before&amp;b=after&amp;pair=0&amp;change=0"' in page
    assert 'rel="next" href="/side-by-side/questions/3?' in page
    same = plain(visitor.get("/side-by-side/questions/7?a=before&b=after").text)
    assert "no change" in same


def test_folders_are_chosen_where_none_are_named(two: Path) -> None:
    visitor = Visitor(a_site(two))
    page = visitor.get("/side-by-side").text
    assert page.count("<option") == 4
    assert "can't be compared with itself" in visitor.get("/side-by-side?a=before&b=before").text
    assert visitor.get("/side-by-side?a=before&b=nothing").status_code == 404
    assert visitor.get("/side-by-side/questions/99?a=before&b=after").status_code == 404


def test_what_cant_be_compared_is_refused_in_words(two: Path, tmp_path: Path) -> None:
    a_run(tmp_path / "free", ASKED, answers())
    other = [replace(each, text="Something else?") for each in ASKED]
    a_judged(tmp_path / "other", other, answers(), verdicts(answers(), "+" * 20))
    visitor = Visitor(a_site(two, tmp_path))
    refused = visitor.get("/side-by-side?a=before&b=free")
    assert refused.status_code == 400
    assert "these answers are free text and have not been judged" in refused.text
    assert '<option value="free" selected>' in refused.text
    assert "not the same in these folders" in visitor.get("/side-by-side?a=before&b=other").text


def test_another_judge_is_said_to_be_no_same_measurement(two: Path, tmp_path: Path) -> None:
    judgments = [replace(each, judge="k") for each in verdicts(answers(), "+" * 20)]
    a_judged(tmp_path / "k", ASKED, answers(), judgments, judge="k")
    words = plain(Visitor(a_site(two, tmp_path)).get("/side-by-side?a=before&b=k").text)
    assert "judged by other judges" in words
    assert "not the same measurement" in words
