from __future__ import annotations

from pathlib import Path

from hoofbeat.records import Document
from hoofbeat.store import Manifest, create
from hoofbeat.store.files import write_bytes
from hoofbeat.web.library import Library
from hoofbeat.web.site import Site
from tests.web.browse_support import HOSTILE, Visitor, a_corpus, a_site


def test_every_folder_has_a_card_with_counts_and_what_it_was_made_from(folders: Path) -> None:
    page = Visitor(a_site(folders)).get("/").text
    for href in (
        "/corpora/cases", "/corpora/handbooks", "/benchmarks/bench", "/runs/run", "/runs/judged", "/audits/audit",
        "/audits/audit-2", "/reports/report",
    ):  # fmt: skip
        assert f'href="{href}"' in page, href
    assert "24 documents" in page
    assert "38 questions, 4 candidates rejected, 1 failed" in page
    assert 'from <a href="/corpora/cases">cases</a>' in page
    assert page.count("<h1") == 1


def test_the_library_as_json_says_the_same(folders: Path) -> None:
    found = {each["slug"]: each for each in Visitor(a_site(folders)).get("/api/library").json()["folders"]}
    assert found["bench"]["kind"] == "benchmark"
    assert found["bench"]["page"] == "/benchmarks/bench"
    assert found["bench"]["rejected"] == 4
    assert [each["slug"] for each in found["run"]["inputs"]] == ["bench", "cases"]
    assert found["judged"]["inputs"][0]["name"] == "run"


def test_a_folder_made_while_the_server_runs_appears(tmp_path: Path) -> None:
    document = Document(id="d", title="t", text="words")
    a_corpus(tmp_path / "one", [document])
    visitor = Visitor(a_site(tmp_path))
    assert "/corpora/two" not in visitor.get("/").text
    a_corpus(tmp_path / "two", [document])
    assert "/corpora/two" in visitor.get("/").text


def test_without_folders_the_page_says_what_to_do() -> None:
    page = Visitor(Site(library=Library(()))).get("/")
    assert page.status_code == 200
    assert "hoofbeat demo" in page.text
    assert "hoofbeat serve FOLDER" in page.text


def test_a_kind_without_a_page_is_listed_without_a_link(tmp_path: Path) -> None:
    with create(tmp_path / "rank") as draft:
        write_bytes(draft.path / "hits.jsonl", b"")
        draft.finish(Manifest(kind="rankings", title=HOSTILE))
    page = Visitor(a_site(tmp_path)).get("/").text
    assert "Other folders" in page
    assert "rankings" in page
    assert "<script>window" not in page
    assert "\u202e" not in page
