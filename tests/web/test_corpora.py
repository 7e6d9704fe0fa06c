from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from hoofbeat.errors import UsageError
from hoofbeat.models import Model
from hoofbeat.models.requests import Trouble
from hoofbeat.records import Document, DocumentTable, Figure
from hoofbeat.store import Ledger, table_listing
from hoofbeat.web.browse import corpus_search, open_folders
from hoofbeat.web.browse.corpus_search import (
    CorpusSearch,
    RecentCache,
    begin_search,
    checked_line,
    kept_searches,
    offered_stages,
)
from hoofbeat.web.site import Site, SiteSettings
from tests.recipes.support import Script
from tests.web.browse_support import PIXEL, Visitor, a_corpus, a_site


@pytest.fixture(scope="module")
def site(folders: Path) -> Site:
    return a_site(folders)


@pytest.fixture(scope="module")
def visitor(site: Site) -> Visitor:
    return Visitor(site)


def searched(visitor: Visitor, **fields: str) -> str:
    """The address of a search's results, when they are there."""
    answer = visitor.post("/corpora/cases/search", **fields)
    assert answer.status_code == 303, answer.text
    place: str = answer.headers["location"]
    deadline = time.monotonic() + 120
    while "Searching: " in visitor.get(place).text and time.monotonic() < deadline:
        time.sleep(0.05)
    return place


def test_a_corpus_shows_what_it_holds_and_its_documents(visitor: Visitor) -> None:
    page = visitor.get("/corpora/cases")
    assert page.status_code == 200
    assert "Cases (invented)" in page.text
    assert 'href="/corpora/cases/documents/24"' in page.text
    assert page.text.count("<h1") == 1
    assert visitor.get("/corpora/none").status_code == 404
    assert visitor.get("/corpora/bench").status_code == 404


def test_documents_are_chosen_by_facet(visitor: Visitor) -> None:
    page = visitor.get("/corpora/cases?facet.year=2023").text
    shown = page.count('href="/corpora/cases/documents/')
    assert 0 < shown < 24
    assert f"{shown} documents with" in page
    assert "No document matches the filters" in visitor.get("/corpora/cases?facet.year=1900").text


def test_facets_with_quotes_and_signs_in_their_names_work(tmp_path: Path) -> None:
    name, value = 'a "quoted" <b>&=name', "x'\"<i>&?#%;="
    documents = [
        Document(
            id=f"d{number}", title=f"Title {number}", text="words", facets={name: value if number < 3 else "other"}
        )
        for number in range(6)
    ]
    a_corpus(tmp_path / "odd", documents)
    visitor = Visitor(a_site(tmp_path))
    plain = visitor.get("/corpora/odd").text
    assert "<b>&" not in plain
    page = visitor.get("/corpora/odd?" + urlencode({f"facet.{name}": value})).text
    assert page.count('href="/corpora/odd/documents/') == 3
    rows = visitor.get("/api/corpora/odd/documents?" + urlencode({"facet": "nothing"})).json()
    assert rows["total"] == 6


def test_a_search_brings_passages_marked_and_says_which_stage_brought_them(visitor: Visitor) -> None:
    place = searched(visitor, text="chest pain with ventricular tachycardia and a sarcoid heart", line="bm25")
    page = visitor.get(place).text
    assert "tachycardia" not in place
    assert "<mark>" in page
    assert "Found by" in page
    assert "bm25: rank 1" in page
    first = page.index("/corpora/cases/documents/2?search=")
    assert first < page.index('id="hit-2"'), "the report on radioablation comes first"


def test_two_rankers_both_say_where_they_placed_a_hit(visitor: Visitor) -> None:
    page = visitor.get(searched(visitor, text="kidney transplant worms", line="bm25 + bm25[k1=2]")).text
    assert "bm25: rank 1" in page
    assert "bm25[k1=2]: rank 1" in page


def test_a_document_reached_from_a_search_has_the_passage_marked(visitor: Visitor) -> None:
    place = searched(visitor, text="single fraction of 25 Gy basal septal target", line="bm25")
    name = place.rpartition("/")[2]
    page = visitor.get(f"/corpora/cases/documents/2?search={name}&hit=1").text
    assert 'id="mark-1"' in page
    assert "25 Gy" in page[page.index('id="mark-1"') :]
    assert f"/corpora/cases/searches/{name}#hit-1" in page
    plain = visitor.get("/corpora/cases/documents/2").text
    assert "<mark" not in plain


def test_a_marked_passage_may_begin_before_a_table_and_end_in_it(tmp_path: Path) -> None:
    text = "The creatinine rose.\n\nDay 1 120\nDay 2 240"
    table = DocumentTable(
        id="t", label="DocumentTable 1", rows=(("Day 1", "120"), ("Day 2", "240")), start=22, end=len(text)
    )
    a_corpus(tmp_path / "cases", [Document(id="d", title="Invented", text=text, tables=(table,))])
    visitor = Visitor(a_site(tmp_path))
    name = searched(visitor, text="creatinine", line="bm25").rpartition("/")[2]
    page = visitor.get(f"/corpora/cases/documents/1?search={name}&hit=1")
    assert page.status_code == 200
    assert page.text.count('id="mark-1"') == 1
    assert "<mark>In this table</mark>" in page.text


def test_a_search_stays_within_the_chosen_facets(visitor: Visitor) -> None:
    answer = visitor.post("/corpora/cases/search?facet.year=2023", text="treatment of a patient", line="bm25")
    page = visitor.get(answer.headers["location"]).text
    allowed = visitor.get("/api/corpora/cases/documents?facet=year=2023").json()["documents"]
    found = {int(part.partition("?")[0]) for part in page.split('href="/corpora/cases/documents/')[1:]}
    assert found
    assert found <= {each["number"] for each in allowed}


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("bm52", "did you mean bm25?"),
        ("bm25 > dense", "can&#39;t follow another ranker"),
        ("bm25[k1=x]", "k1 can&#39;t be"),
        ("hyde > bm25", "this server has none"),
        ("bm25 > rerank@5", "this server has none"),
        ("dense[encoder=/etc]", "is not available here"),
        ("dense[encoder=http://127.0.0.1:1/v1#x]", "is not available here"),
        ("hero[encoder=../x]", "is not available here"),
        ("hero[rerank=/tmp]", "is not available here"),
        ("bm25 > rerank[with=/tmp]@5", "is not available here"),
        ("lamer[with=dense[encoder=/etc]] > bm25", "retriever line"),
        ("bm25[k1=1." + "0" * 3000 + "]", "too long"),
    ],
)
def test_a_wrong_line_says_what_is_wrong_and_what_to_do(visitor: Visitor, line: str, told: str) -> None:
    answer = visitor.post("/corpora/cases/search", text="fever", line=line)
    assert answer.status_code == 400
    assert told in answer.text
    assert "What to do" in answer.text
    assert ">fever</textarea>" in answer.text, "what was written is still in the form"


@pytest.mark.parametrize(
    "fields", [{"text": "  "}, {"text": "x" * 60_000}, {"text": "a", "count": "0"}, {"text": "a", "count": "999"}]
)
def test_a_search_that_makes_no_sense_is_refused(visitor: Visitor, fields: dict[str, str]) -> None:
    assert visitor.post("/corpora/cases/search", line="bm25", **fields).status_code == 400


def test_lines_may_ask_the_models_of_the_site_and_no_others(folders: Path) -> None:
    def load(_: str) -> Any:
        raise AssertionError("no model is loaded to check a line")

    offering = Site(
        library=a_site(folders).library, settings=SiteSettings(models=("openai:one",)), load_model=load
    )  # fmt: skip
    assert str(checked_line(offering, "hyde > bm25")) == "hyde > bm25"
    assert checked_line(offering, "bm25 > rerank[model=openai:one]@5")
    with pytest.raises(UsageError, match="openai:two is not available"):
        checked_line(offering, "bm25 > rerank[model=openai:two]@5")


def test_a_cross_encoder_that_the_server_was_started_with_is_offered_without_a_language_model(folders: Path) -> None:
    line = "bm25 > rerank[with=models/cross-encoder]@5"
    own = Site(library=a_site(folders).library, settings=SiteSettings(line=line))
    assert str(checked_line(own, line)) == line
    assert "rerank" in [stage.name for stage in offered_stages(own)]
    assert "rerank" not in [stage.name for stage in offered_stages(a_site(folders))]
    with pytest.raises(UsageError, match="models/other, which rerank names, is not available"):
        checked_line(own, "bm25 > rerank[with=models/other]@5")
    with pytest.raises(UsageError, match="this server has none"):
        checked_line(own, "bm25 > rerank@5")


def with_model(folders: Path, ledger: Path, script: Script, asked: list[str]) -> Visitor:
    """A visitor of a site that offers two models; a ledger is opened by the thread that uses it."""

    def load(name: str) -> Model:
        asked.append(name)
        return Model(spec=name, backend=script, ledger=Ledger(ledger))

    settings = SiteSettings(models=("one", "two"))
    return Visitor(Site(library=a_site(folders).library, settings=settings, load_model=load))


def test_a_line_asks_the_model_of_the_site_and_what_it_wrote_is_shown(folders: Path, tmp_path: Path) -> None:
    asked: list[str] = []
    script = Script(lambda _prompt, _request: "Invented: stereotactic radioablation ended the <b>storm</b>.")
    visitor = with_model(folders, tmp_path / "ledger.sqlite", script, asked)
    page = visitor.get(searched(visitor, text="a storm in the heart", line="hyde > bm25")).text
    assert asked == ["one"]
    assert len(script.requests) == 1
    assert "radioablation ended the &lt;b&gt;storm" in page
    assert "/corpora/cases/documents/2?" in page
    visitor.get(searched(visitor, text="a storm in the heart", line="hyde[model=two] > bm25"))
    assert asked == ["one", "two"]


def test_a_model_that_fails_is_told_and_nothing_is_shown_as_found(folders: Path, tmp_path: Path) -> None:
    script = Script(lambda _prompt, _request: Trouble(kind="refusal", message="declined"))
    visitor = with_model(folders, tmp_path / "ledger.sqlite", script, [])
    page = visitor.get(searched(visitor, text="a storm in the heart", line="hyde > bm25")).text
    assert "(refusal)" in page
    assert 'class="hit"' not in page


def test_a_large_corpus_says_that_it_is_being_read(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    read = table_listing.read_listing

    def slowly(*args: Any, told: Any, **named: Any) -> Any:
        told(1000)
        assert go_on.wait(120)
        return read(*args, told=told, **named)

    monkeypatch.setattr(open_folders, "read_listing", slowly)
    visitor = Visitor(a_site(folders))
    page = visitor.get_now("/corpora/cases?facet.year=2023")
    assert page.status_code == 202
    assert page.headers["refresh"] == "1"
    assert "<progress" in page.text
    go_on.set()
    assert "24 documents" in visitor.get("/corpora/cases").text


def test_a_search_that_is_not_kept_any_more_says_so(visitor: Visitor) -> None:
    assert visitor.get("/corpora/cases/searches/nothing").status_code == 404
    place = searched(visitor, text="fever", line="bm25")
    assert visitor.get(place.replace("cases", "handbooks")).status_code == 404
    assert "<mark" not in visitor.get("/corpora/cases/documents/1?search=nothing&hit=1").text


def test_kept_things_are_few_and_do_not_stay_for_ever() -> None:
    kept: RecentCache[int] = RecentCache(max_kept=3)
    names = [kept.put(number) for number in range(5)]
    assert [kept.get(name) for name in names] == [None, None, 2, 3, 4]
    assert len(set(names)) == 5
    short: RecentCache[int] = RecentCache(seconds=-1)
    assert short.get(short.put(1)) is None


def test_a_long_search_is_told_while_it_goes_on_and_too_many_are_refused(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = a_site(folders)
    go_on = threading.Event()
    monkeypatch.setattr(corpus_search, "_PATIENCE", 0.05)

    class SlowShelf:
        def searching(self, *_: object, **__: object) -> object:
            assert go_on.wait(20)
            raise UsageError("invented trouble", fix="nothing")

    slow: Any = SlowShelf()
    names = [begin_search(site, slow, CorpusSearch("cases", "bm25", "fever", 5, {})) for _ in range(4)]
    visitor = Visitor(site)
    page = visitor.get(f"/corpora/cases/searches/{names[0]}")
    assert "Searching: " in page.text
    assert page.headers["refresh"] == "1"
    with pytest.raises(UsageError, match="already running on this server"):
        begin_search(site, slow, CorpusSearch("cases", "bm25", "fever", 5, {}))
    go_on.set()
    found = kept_searches(site).get(names[0])
    assert isinstance(found, CorpusSearch)
    assert found.over.wait(20)
    page = visitor.get(f"/corpora/cases/searches/{names[0]}")
    assert "invented trouble" in page.text
    assert "refresh" not in page.headers


def test_a_document_has_contents_figures_tables_licence_and_origin(visitor: Visitor) -> None:
    page = visitor.get("/corpora/cases/documents/2").text
    assert 'href="#section-2"' in page
    assert 'id="section-2"' in page
    assert 'src="/corpora/cases/files/2/0/0"' in page
    assert "Figure 1" in page
    assert "hbt-case-02.xml" in page
    assert "apache.org/licenses" in page
    assert 'href="/corpora/cases/documents/3"' in page
    with_table = next(n for n in range(1, 25) if 'class="tabled' in visitor.get(f"/corpora/cases/documents/{n}").text)
    assert "<th scope" in visitor.get(f"/corpora/cases/documents/{with_table}").text
    for number in (0, 25, -1, 10**12):
        assert visitor.get(f"/corpora/cases/documents/{number}").status_code == 404


def test_only_listed_images_inside_the_folder_are_given(tmp_path: Path) -> None:
    (tmp_path / "secret.png").write_bytes(b"secret")
    names = (
        "images/ok.png",
        "../secret.png",
        "images/none.png",
        "images/link.png",
        "/etc/passwd",
        "images/x.svg",
        "documents.jsonl",
        "images/x.tif",
    )
    document = Document(id="d", title="t", text="words", figures=tuple(Figure(id="f", files=(name,)) for name in names))
    files = {"images/ok.png": PIXEL, "images/link.png": PIXEL, "images/x.svg": b"<svg/>", "images/x.tif": b"II"}
    a_corpus(tmp_path / "c", [document], files=files)
    visitor = Visitor(a_site(tmp_path / "c"))
    assert visitor.get("/corpora/c/files/1/3/0").content == PIXEL
    (tmp_path / "c" / "images" / "link.png").unlink()
    (tmp_path / "c" / "images" / "link.png").symlink_to(tmp_path / "secret.png")
    given = [visitor.get(f"/corpora/c/files/1/{figure}/0") for figure in range(len(names))]
    assert [answer.status_code for answer in given] == [200, 404, 404, 404, 404, 404, 404, 200]
    assert given[0].headers["content-type"] == "image/png"
    assert given[0].content == PIXEL
    assert given[-1].headers["content-type"] == "application/octet-stream"
    assert given[-1].headers["content-disposition"].startswith("attachment")
    assert all(b"secret" not in answer.content for answer in given)
    assert "sandbox" in given[0].headers["content-security-policy"]
    for odd in ("1/0/5", "1/99/0", "2/0/0", "1/-1/0", "0/0/0"):
        assert visitor.get(f"/corpora/c/files/{odd}").status_code == 404


def test_documents_as_json_are_paged_and_say_where_to_read_them(visitor: Visitor) -> None:
    found = visitor.get("/api/corpora/cases/documents?page=1").json()
    assert (found["page"], found["pages"], found["total"]) == (1, 1, 24)
    assert found["documents"][1]["id"] == "hbt-case-02"
    assert found["documents"][1]["page"] == "/corpora/cases/documents/2"
    assert visitor.get("/api/corpora/cases/documents?page=99").json()["page"] == 1
    assert visitor.get("/api/corpora/cases/documents?page=0").status_code == 422
    assert visitor.get("/api/corpora/none/documents").status_code == 404
    assert "ApiDocuments" in visitor.get("/openapi.json").text
