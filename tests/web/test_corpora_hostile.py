"""Documents and questions as an enemy would write them."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from hoofbeat.records import Document, DocumentTable, Figure, Provenance, Question, Section, Span, Step
from tests.web.browse_support import HOSTILE, PIXEL, Visitor, a_benchmark, a_corpus, a_site

LONG = "long " * 1_000_000


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Visitor:
    folder = tmp_path_factory.mktemp("hostile")
    text = f"{HOSTILE}\n\nWords of the case. {HOSTILE}\n\n{HOSTILE}"
    start = text.index("Words")
    bad = Document(
        id=HOSTILE,
        title=HOSTILE,
        text=text,
        kind=HOSTILE,
        licence="javascript:alert(1)",
        notices=(HOSTILE,),
        sections=(
            Section(heading=HOSTILE, level=77, start=0, body=5, end=10**9, role=HOSTILE),
            Section(heading="", level=-3, start=-5, body=-9, end=-1),
        ),
        figures=(Figure(id=HOSTILE, label=HOSTILE, caption=HOSTILE, files=("images/p.png", HOSTILE)),),
        tables=(DocumentTable(id="t", label=HOSTILE, caption=HOSTILE, rows=((HOSTILE, HOSTILE), (HOSTILE,))),),
        facets={HOSTILE: HOSTILE, "list": [HOSTILE, "x"]},
        provenance=Provenance(source=HOSTILE, sha256="0" * 64, reader=HOSTILE, member=HOSTILE),
    )
    plain = Document(id="plain", title="Plain", text="Words of the case.", facets={HOSTILE: "other", "list": ["x"]})
    large = Document(id="large", title="L" * 100_000, text=LONG, facets={HOSTILE: "other"})
    corpus = a_corpus(folder / "bad", [bad, plain, large], files={"images/p.png": PIXEL}, title=HOSTILE)
    evidence = Span(document=HOSTILE, start=start, end=start + 5, quote="Words")
    asked = Question(
        id=HOSTILE,
        text=HOSTILE,
        context=HOSTILE,
        answer=HOSTILE,
        options=(HOSTILE, "other"),
        images=("images/p.png", "../../etc/passwd"),
        documents=(HOSTILE,),
        evidence=(evidence, Span(document=HOSTILE, start=-1, end=10**9, quote=HOSTILE)),
        facets={HOSTILE: HOSTILE},
        lineage=(Step(name=HOSTILE, prompt=HOSTILE, model=HOSTILE, call=HOSTILE, note=HOSTILE),),
    )
    many = Question(id="many", text="What?", context=LONG, documents=("large",), facets={HOSTILE: "other"})
    a_benchmark(
        folder / "asked", [asked, many, Question(id="none", text="")], inputs=[corpus.reference()], title=HOSTILE
    )
    return Visitor(a_site(folder))


PAGES = (
    "/",
    "/corpora/bad",
    "/corpora/bad/documents/1",
    "/corpora/bad/documents/1?question=asked.1",
    "/corpora/bad/documents/3",
    "/corpora/bad/documents/3?part=25",
    "/benchmarks/asked",
    "/benchmarks/asked/questions/1",
    "/benchmarks/asked/questions/2",
    "/benchmarks/asked/questions/3",
)


class _Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.odd: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name.startswith("on") or name == "style":
                self.odd.append(f"{tag} {name}")
            if name == "id" and value:
                self.ids.append(value)
            if name in ("href", "src", "action") and value and not value.startswith(("/", "#", "?")):
                self.odd.append(f"{tag} {name}={value[:40]}")


@pytest.mark.parametrize("path", PAGES)
def test_nothing_of_a_hostile_text_becomes_markup(hostile: Visitor, path: str) -> None:
    page = hostile.get(path)
    assert page.status_code == 200
    seen = _Seen()
    seen.feed(page.text)
    assert not seen.odd
    assert "svg" not in seen.tags or path.startswith("/benchmarks/asked")
    assert [tag for tag in seen.tags if tag == "style"] == []
    assert len(seen.ids) == len(set(seen.ids)), "ids stand once"
    assert seen.tags.count("h1") == 1
    assert "window.owned=1</script>" not in page.text
    for sign in "\u202e\u2066\x07":
        assert sign not in page.text
    assert " 49 " not in page.text


@pytest.mark.parametrize("path", PAGES)
def test_no_page_is_larger_than_a_browser_likes(hostile: Visitor, path: str) -> None:
    assert len(hostile.get(path).content) < 700_000


def test_evidence_is_marked_in_a_hostile_source_and_a_wrong_quote_is_told(hostile: Visitor) -> None:
    page = hostile.get("/benchmarks/asked/questions/1").text
    assert '<mark id="mark-1">Words</mark>' in page
    assert "is not at its place" in page


def test_images_of_questions_are_listed_files_only(hostile: Visitor) -> None:
    assert hostile.get("/benchmarks/asked/files/1/1").status_code == 404
    assert hostile.get("/benchmarks/asked/files/1/0").status_code == 404, "the benchmark does not hold it"
    assert hostile.get("/corpora/bad/files/1/0/0").status_code == 200
    assert hostile.get("/corpora/bad/files/1/0/1").status_code == 404


def test_hostile_words_can_be_searched_for(hostile: Visitor) -> None:
    answer = hostile.post("/benchmarks/asked/search", text='"><img src=x')
    assert answer.status_code == 303
    page = hostile.get(answer.headers["location"]).text
    assert "1 question with these words" in page
    assert "<img" not in page
    found = hostile.post("/corpora/bad/search", text=HOSTILE, line="bm25")
    assert found.status_code == 303
    shown = hostile.get(found.headers["location"]).text
    assert "<img src=x" not in shown
    wrong = hostile.post("/corpora/bad/search", text="x", line=HOSTILE)
    assert wrong.status_code == 400
    assert "<script>window" not in wrong.text


@pytest.mark.parametrize(
    "path",
    [
        "/corpora/..%2f..%2fetc/documents/1",
        "/corpora/bad/documents/1?part=-7",
        "/corpora/bad/documents/1?part=999999999999999999999",
        "/corpora/bad/documents/abc",
        "/corpora/bad/documents/1?question=asked.99999999999999999999",
        "/corpora/bad/documents/1?question=asked.1&edition=../../x",
        "/corpora/bad/documents/1?question=.",
        "/corpora/bad?page=99999999999999999999",
        "/corpora/bad?page=-1",
        "/benchmarks/asked?edition=..%2f..%2fmanifest",
        "/benchmarks/asked/questions/1?source=99999999&part=7",
        "/benchmarks/asked/questions/1?source=-4",
        "/benchmarks/asked/manifest.json",
        "/benchmarks/asked/rejected",
        "/benchmarks/asked/failed/1",
        "/corpora/bad/files/1/0/..%2f..%2fmanifest.json",
    ],
)
def test_odd_addresses_never_break_the_server(hostile: Visitor, path: str) -> None:
    assert hostile.get(path).status_code in (200, 400, 404)
