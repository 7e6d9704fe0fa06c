from __future__ import annotations

import threading
from pathlib import Path

import pytest

from hoofbeat.errors import InputError
from hoofbeat.reports.answer_index import index_answers
from hoofbeat.store.folder_library import Folder
from hoofbeat.web.browse import open_folders, run_pages
from hoofbeat.web.browse.open_folders import BackgroundResult, prepare_in_background
from tests.web.answered import a_judged, verdicts
from tests.web.browse_support import Visitor, a_site
from tests.web.test_runs import ASKED, answered


def test_whoever_waits_gets_the_thing_or_its_error() -> None:
    assert BackgroundResult(lambda: 7).within(10) == 7
    begun = threading.Event()
    slow = BackgroundResult(begun.wait)
    assert slow.within(0.01) is None
    begun.set()
    assert slow.within(10) is True

    def fails() -> None:
        raise InputError("no good", fix="another")

    with pytest.raises(InputError, match="no good"):
        BackgroundResult(fails).within(10)


def test_a_thing_is_made_once_however_many_ask(folders: Path) -> None:
    site = a_site(folders)
    folder = site.library.folder("judged")
    assert folder is not None
    made: list[str] = []
    gate = threading.Event()

    def make(each: Folder) -> str:
        made.append(each.slug)
        gate.wait(120)
        return "made"

    found: list[str | None] = []
    asking = [
        threading.Thread(target=lambda: found.append(prepare_in_background(site, folder, "test", make, patience=120)))
        for _ in range(8)
    ]
    for each in asking:
        each.start()
    gate.set()
    for each in asking:
        each.join()
    assert found == ["made"] * 8
    assert made == ["judged"]


def test_a_large_folder_is_prepared_while_a_page_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_judged(tmp_path / "judged", ASKED, answered(), verdicts(answered(), "+++"))
    gate = threading.Event()
    monkeypatch.setattr(run_pages, "index_answers", lambda *parts: (gate.wait(120), index_answers(*parts))[1])
    monkeypatch.setattr(open_folders, "PATIENCE", 0.05)
    visitor = Visitor(a_site(tmp_path))
    waiting = visitor.get_now("/runs/judged/questions?state=right")
    assert waiting.status_code == 202
    assert waiting.headers["refresh"]
    assert "/runs/judged/questions?state=right" in waiting.text
    busy = visitor.get_now("/api/runs/judged/answers")
    assert (busy.status_code, busy.headers["retry-after"]) == (503, "3")
    gate.set()
    assert "3 of 3 questions" in visitor.get("/runs/judged/questions?state=right").text
