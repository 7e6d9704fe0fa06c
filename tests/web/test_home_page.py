from __future__ import annotations

import re
from pathlib import Path

import hoofbeat
from hoofbeat.records import Document
from hoofbeat.store import Manifest, create
from hoofbeat.store.files import write_bytes
from hoofbeat.store.folder_library import FolderLibrary
from hoofbeat.web.browse.links import KINDS
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
    page = Visitor(Site(library=FolderLibrary(()))).get("/")
    assert page.status_code == 200
    assert "hoofbeat demo" in page.text
    assert "hoofbeat serve FOLDER" in page.text


def a_folder(target: Path, kind: str, **parts: object) -> None:
    """A folder of any kind with hardly anything in it."""
    with create(target) as draft:
        write_bytes(draft.path / "notes.txt", b"words")
        draft.finish(Manifest(kind=kind, **parts))  # type: ignore[arg-type]


def test_no_kind_of_folder_is_a_dead_end(tmp_path: Path) -> None:
    made = [kind for kind in KINDS if not KINDS[kind].pages]
    for kind in (*made, "something-new"):
        a_folder(tmp_path / kind, kind, title=HOSTILE)
    visitor = Visitor(a_site(tmp_path))
    home = visitor.get("/").text
    assert "<script>window" not in home
    assert "\u202e" not in home
    for kind in (*made, "something-new"):
        assert f'href="/folders/{kind}"' in home, kind
        page = visitor.get(f"/folders/{kind}")
        assert page.status_code == 200, kind
        assert "How it was made" in page.text
        assert "notes.txt" in page.text
        assert "<script>window" not in page.text


def test_every_kind_that_the_code_makes_has_words() -> None:
    source = Path(hoofbeat.__file__).parent
    named = re.compile(r'^(?:KIND|INDEX_KIND|VALIDATION|ABLATION) = "([a-z-]+)"$', re.MULTILINE)
    kinds = {kind for path in source.rglob("*.py") for kind in named.findall(path.read_text())}
    assert len(kinds) > 15
    assert kinds <= set(KINDS)


def test_a_damaged_folder_is_named_and_takes_nothing_with_it(tmp_path: Path) -> None:
    a_corpus(tmp_path / "whole", [Document(id="d", title="t", text="words")])
    a_folder(tmp_path / "other", "rankings")
    visitor = Visitor(a_site(tmp_path))
    assert "can't be shown" not in visitor.get("/").text
    (tmp_path / "other" / "manifest.json").write_text("{")
    home = visitor.get("/")
    assert home.status_code == 200
    assert "/corpora/whole" in home.text
    assert "Folders that can't be shown" in home.text
    assert "<code>other</code>: the manifest can&#39;t be read" in home.text
    assert visitor.get("/folders/other").status_code == 404


def test_folders_of_one_name_are_told_apart(tmp_path: Path) -> None:
    for name in ("first/cases", "second/cases", "other"):
        a_corpus(tmp_path / name, [Document(id="d", title="t", text="words")], title="Cases")
    home = Visitor(a_site(tmp_path)).get("/").text
    assert "<code>cases</code> · in <code>first/cases</code>" in home
    assert "<code>cases-2</code> · in <code>second/cases</code>" in home
    assert "<code>other</code></p>" in home
    assert str(tmp_path) not in home


def test_what_is_not_here_is_told_in_a_sentence(folders: Path) -> None:
    page = Visitor(a_site(folders)).get("/corpora/none")
    assert page.status_code == 404
    assert "This server has no such corpus.</p>" in page.text
