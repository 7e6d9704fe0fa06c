"""The pages of rankings: which queries are found in which order, and what is told of each hit."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from playwright.sync_api import Browser, expect

from hoofbeat.benchmarks.benchmark import COLLECTION, COLLECTION_HEADER, CollectionPassage
from hoofbeat.corpus.qrels import write_qrels
from hoofbeat.records import Document, Failure, Hit, Question, Section, TraceStep
from hoofbeat.reports.marked_document import passage_marks
from hoofbeat.retrieval.index.chunking import Chunking, cut
from hoofbeat.retrieval.rankings.ranking_index import OUTCOMES, QueryFilter, RankingIndex, index_ranking
from hoofbeat.retrieval.stage_roles import SearchQuery
from hoofbeat.store import Artefact, Counts, Manifest, create, open_artefact
from hoofbeat.store.tables import read_jsonl, write_jsonl, write_tsv
from hoofbeat.web import create_app
from tests.web.browse_support import HOSTILE, Visitor, a_corpus, a_site
from tests.web.folder_rankings import a_ranking
from tests.web.support import DESKTOP, TABLET, fits, needs_browser, serving, tab

ASKED = [
    Question(id="q1", text="Which?", context="A first case.", documents=("d1",), facets={"ward": "north"}),
    Question(id="q2", text="Which?", context="A second case.", documents=("d2",), facets={"ward": "south"}),
    Question(id="q3", text="Which?", documents=("d3", "d9"), facets={"ward": "south"}),
    Question(id="q4", text="Which?", documents=("d4",), facets={"ward": "north"}),
]
ORDERS = {"q1": ["d1", "d2"], "q2": ["d1", "d2", "d3"], "q3": [*(f"e{n}" for n in range(11)), "d3"], "q4": ["d1"]}
GRADES = {each.id: dict.fromkeys(each.documents, 1) for each in ASKED}


def hits_of(orders: dict[str, list[str]]) -> list[Hit]:
    return [
        Hit(question=name, document=document, rank=rank, score=1 / rank, via={"bm25": (rank + 1, 10 / rank)})
        for name, order in orders.items()
        for rank, document in enumerate(order, start=1)
    ]


def plain(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def listed(page: str) -> list[str]:
    """The ids of the queries in a list, in order."""
    return re.findall(r'</a> <span class="id">([^<]+)</span>', page)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    a_ranking(tmp_path / "rank", ASKED, hits_of(ORDERS), GRADES)
    return tmp_path


def a_graded_bench(
    target: Path, grades: dict[str, dict[str, int]], pieces: list[CollectionPassage] | None = None
) -> Artefact:
    with create(target) as draft:
        write_jsonl(draft.path / "questions.jsonl", ASKED)
        write_qrels(draft.path / "qrels.tsv", grades, "beir")
        if pieces:
            write_tsv(draft.path / COLLECTION, COLLECTION_HEADER, [piece.row for piece in pieces])
        draft.finish(Manifest(kind="benchmark", title="Graded", counts=Counts(kept=len(ASKED))))
    return open_artefact(target)


def test_the_index_counts_what_the_hits_say(folders: Path) -> None:
    artefact = open_artefact(folders / "ranked")
    index = index_ranking(artefact)
    hits = list(read_jsonl(artefact.file("hits.jsonl"), Hit))
    questions = list(read_jsonl(artefact.file("questions.jsonl"), Question))
    assert index.total == len(hits)
    seen = set()
    for number, question in enumerate(questions, start=1):
        mine = [hit for hit in hits if hit.question == question.id]
        ranks = [hit.rank for hit in mine if hit.document in question.documents]
        fared = index.fared(number)
        assert (fared.id, fared.hits, fared.found) == (question.id, len(mine), len(ranks))
        assert (fared.first, fared.relevant) == (min(ranks, default=0), len(question.documents))
        first = min(ranks, default=0)
        assert fared.outcome == (
            "missed" if not first else "first" if first == 1 else "later" if first < 11 else "deep"
        )
        assert fared.values[index.measures.index("RR")] == (1 / first if first else 0)
        assert index.hits(number) == mine
        seen.add(fared.outcome)
    assert seen == {"first", "later", "deep", "missed"}, "the example holds every outcome"
    assert sum(index.tally().values()) == len(questions)
    assert {name: len(index.numbers(QueryFilter(outcome=name))) for name in OUTCOMES if name in seen} == index.tally()


def test_queries_come_worst_first_and_by_facet_and_outcome(folder: Path) -> None:
    visitor = Visitor(a_site(folder))
    assert listed(visitor.get("/rankings/rank/queries").text) == ["q3", "q4", "q2", "q1"]
    assert listed(visitor.get("/rankings/rank/queries?order=best").text) == ["q1", "q2", "q3", "q4"]
    assert listed(visitor.get("/rankings/rank/queries?order=asked").text) == ["q1", "q2", "q3", "q4"]
    assert listed(visitor.get("/rankings/rank/queries?measure=RR").text) == ["q4", "q3", "q2", "q1"]
    assert listed(visitor.get("/rankings/rank/queries?facet.ward=south").text) == ["q3", "q2"]
    assert listed(visitor.get("/rankings/rank/queries?outcome=missed").text) == ["q4"]
    nothing = visitor.get("/rankings/rank/queries?outcome=odd&facet.ward=nowhere")
    assert nothing.status_code == 200
    assert "No query matches the filters" in nothing.text
    words = plain(visitor.get("/rankings/rank/queries").text)
    assert "A second case." in words, "questions of the same words are told apart by their cases"
    overview = visitor.get("/rankings/rank").text
    assert listed(overview) == ["q3", "q4", "q2"], "q1 could not be better"
    assert 'href="/rankings/rank/queries?outcome=missed"' in overview


def test_a_query_shows_its_hits_and_what_was_missed(folder: Path) -> None:
    a_corpus(folder / "cases", [Document(id="d3", title="The third report", text="Words.")])
    page = Visitor(a_site(folder)).get("/rankings/rank/queries/3?facet.ward=south").text
    words = plain(page)
    ranks = re.findall(r'<li id="hit-(\d+)"', page)
    assert ranks == [str(rank) for rank in range(1, 13)]
    assert "Rank 12 The third report d3 ✓ relevant score 0.08333 bm25: rank 13, 0.8333" in words
    assert "Rank 1 e0 not judged score 1 bm25: rank 2, 10" in words
    assert page.count('href="/corpora/cases/documents/1"') == 2, "among the hits, and among what was sought"
    assert "rank 12 The third report d3" in words
    assert "✗ not found d9" in words
    assert "1 of 2 is not among the 12 ranked documents" in words
    assert 'rel="prev"' not in page
    assert 'rel="next" href="/rankings/rank/queries/2?facet.ward=south"' in page


def test_grades_come_from_the_benchmark_where_it_is_shown(tmp_path: Path) -> None:
    bench = a_graded_bench(tmp_path / "bench", {"q1": {"d1": 0, "d2": 2, "d7": 1}, "q2": {"d2": 1}})
    a_ranking(tmp_path / "rank", ASKED, hits_of(ORDERS), GRADES, inputs=[bench.reference()])
    visitor = Visitor(a_site(tmp_path))
    page = visitor.get("/rankings/rank/queries/1").text
    words = plain(page)
    assert "Rank 1 d1 ✗ judged not relevant" in words
    assert "Rank 2 d2 ✓ relevant, grade 2" in words
    assert "✗ not found d7 grade 1" in words
    assert 'href="/benchmarks/bench/questions/1"' in page
    assert "Nobody has said which documents are relevant" in visitor.get("/rankings/rank/queries/4").text


def test_a_passage_of_a_collection_leads_to_its_document(tmp_path: Path) -> None:
    a_corpus(tmp_path / "cases", [Document(id="whole", title="A whole report", text="Some words here.")])
    pieces = [CollectionPassage(id="d1", document="whole", start=0, end=4, heading="Course")]
    bench = a_graded_bench(tmp_path / "bench", GRADES, pieces)
    a_ranking(tmp_path / "rank", ASKED, hits_of(ORDERS), GRADES, inputs=[bench.reference()])
    page = Visitor(a_site(tmp_path)).get("/rankings/rank/queries/1").text
    assert '<a href="/corpora/cases/documents/1"><bdi>A whole report · Course</bdi></a>' in page


@pytest.mark.parametrize("way", ["words:160/32", "words:40/10", "sections"])
def test_a_document_opens_at_the_passage_it_was_ranked_for(tmp_path: Path, way: str) -> None:
    words = [f"word{number}" for number in range(400)]
    text = " ".join(words)
    half = text.index("word200")
    sections = (
        Section(heading="", level=1, start=0, body=0, end=half - 1),
        Section(heading="", level=1, start=half, body=half, end=len(text)),
    )
    document = Document(id="d1", title="A report", text=text, sections=sections)
    passage = cut(document, Chunking.parse(way))[1]
    a_corpus(tmp_path / "cases", [document])
    hit = Hit(question="q1", document="d1", rank=1, score=1.0, passage=passage.id)
    a_ranking(tmp_path / "rank", ASKED[:1], [hit], {"q1": {"d1": 1}})
    visitor = Visitor(a_site(tmp_path))
    link = "/corpora/cases/documents/1?ranking=rank.1&amp;hit=1#mark-1"
    assert f'href="{link}"' in visitor.get("/rankings/rank/queries/1").text
    page = visitor.get(html.unescape(link)).text
    assert "".join(re.findall(r"<mark[^>]*>([^<]*)</mark>", page)) == passage.text
    assert 'href="/rankings/rank/queries/1#hit-1"' in page
    for other in ("ranking=rank.9&hit=1", "ranking=rank.1&hit=2", "ranking=none.1&hit=1", "ranking=rank.x&hit=1"):
        seen = visitor.get(f"/corpora/cases/documents/1?{other}")
        assert seen.status_code == 200
        assert "<mark" not in seen.text


@pytest.mark.parametrize("name", ["d1#tokens:512#0", "d1#whole#0", "d1#odd#0", "d1#99", "d2#0", "d1", "d1#²", ""])
def test_a_passage_that_cant_be_found_is_not_marked(name: str) -> None:
    assert passage_marks(Document(id="d1", title="A report", text="Some words."), name) == []


def test_two_rankings_stand_side_by_side(folder: Path) -> None:
    bench = a_graded_bench(folder / "bench", GRADES)
    other = {**ORDERS, "q1": ["d2", "d1"], "q4": ["d4"]}
    a_ranking(folder / "rank", ASKED, hits_of(ORDERS), GRADES, inputs=[bench.reference()])
    fewer = [replace(ASKED[0]), replace(ASKED[1], text="Another question of the same name?"), *ASKED[2:]]
    a_ranking(folder / "other", fewer, hits_of(other), GRADES, inputs=[bench.reference()])
    a_ranking(folder / "stranger", ASKED, hits_of(ORDERS), GRADES)
    visitor = Visitor(a_site(folder))
    behind = visitor.get("/rankings/rank/queries?beside=other&order=behind").text
    assert listed(behind) == ["q4", "q3", "q1", "q2"]
    assert "1 of 1 first at rank 1 1.000 0.631 +0.369" in plain(behind)
    assert "0.000 1.000 −1.000" in plain(behind)
    assert listed(visitor.get("/rankings/rank/queries?beside=other&order=ahead").text) == ["q1", "q3", "q4", "q2"]
    assert "stranger" not in behind
    page = plain(visitor.get("/rankings/rank/queries/1?beside=other").text)
    assert "Rank 1 d1 ✓ relevant score 1 · rank 2 in the other" in page
    assert "Rank 1 d2 not judged score 1 · rank 2 in the other" in page
    assert "The other ranking does not have this query" in visitor.get("/rankings/rank/queries/2?beside=other").text


def test_a_query_that_could_not_be_searched_says_why(tmp_path: Path) -> None:
    step = TraceStep(stage="hyde", what="generated", text="An invented passage.")
    traces = [
        SearchQuery(id="q1", text="Which?", steps=(step,)),
        SearchQuery(id="q4", text="Which?", failure=Failure(kind="timeout", message="gave up")),
    ]
    orders = {name: order for name, order in ORDERS.items() if name != "q4"}
    a_ranking(tmp_path / "rank", ASKED, hits_of(orders), GRADES, traces=traces)
    visitor = Visitor(a_site(tmp_path))
    assert "– search failed 1" in plain(visitor.get("/rankings/rank").text)
    assert listed(visitor.get("/rankings/rank/queries").text)[-1] == "q4", "what has no measure comes last"
    lost = plain(visitor.get("/rankings/rank/queries/4").text)
    assert "The search failed for this query: gave up (timeout)." in lost
    assert "The search found nothing." in lost
    assert "hyde: generated An invented passage." in plain(visitor.get("/rankings/rank/queries/1").text)


def test_searches_of_a_corpus_have_hits_and_no_measures(tmp_path: Path) -> None:
    a_ranking(tmp_path / "rank", [Question(id="query-1", text="fever")], hits_of({"query-1": ["d1", "d2"]}))
    visitor = Visitor(a_site(tmp_path))
    overview = plain(visitor.get("/rankings/rank").text)
    assert "1 query, 2 hits." in overview
    assert "Worst queries" not in overview
    assert "– no relevant document known" in plain(visitor.get("/rankings/rank/queries").text)
    page = plain(visitor.get("/rankings/rank/queries/1").text)
    assert "Rank 1 d1 score 1 bm25: rank 2, 10" in page
    assert "not judged" not in page


def test_many_hits_come_in_pages(tmp_path: Path) -> None:
    order = [f"e{number}" for number in range(249)] + ["d1"]
    a_ranking(tmp_path / "rank", ASKED[:1], hits_of({"q1": order}), {"q1": {"d1": 1}})
    visitor = Visitor(a_site(tmp_path))
    first = visitor.get("/rankings/rank/queries/1").text
    assert first.count('<li id="hit-') == 100
    assert 'href="/rankings/rank/queries/1?page=3#hit-250"' in first
    last = visitor.get("/rankings/rank/queries/1?page=3").text
    assert re.findall(r'<li id="hit-(\d+)"', last)[-1] == "250"
    assert 'href="#hit-250"' in last


def test_hits_of_a_query_need_not_stand_together(tmp_path: Path) -> None:
    mixed = sorted(hits_of(ORDERS), key=lambda hit: hit.rank)
    index: RankingIndex = index_ranking(a_ranking(tmp_path / "rank", ASKED, mixed, GRADES))
    assert [hit.document for hit in index.hits(3)] == ORDERS["q3"]
    assert index.fared(3).first == 12


@pytest.mark.parametrize(
    "path",
    ["/rankings/none", "/rankings/judged", "/rankings/none/queries", "/rankings/ranked/queries/0",
     "/rankings/ranked/queries/39", f"/rankings/ranked/queries/{10**20}", "/api/rankings/none/queries",
     "/api/rankings/ranked/queries/39/hits"],
)  # fmt: skip
def test_what_is_not_here_is_told(folders: Path, path: str) -> None:
    assert Visitor(a_site(folders)).get(path).status_code == 404


def test_a_hit_for_an_unknown_query_is_a_readable_error(tmp_path: Path) -> None:
    a_ranking(tmp_path / "rank", ASKED[:1], hits_of({"q1": ["d1"], "nobody": ["d1"]}), {"q1": {"d1": 1}})
    visitor = Visitor(a_site(tmp_path))
    assert "hit refers to a missing query" in html.unescape(visitor.get("/rankings/rank/queries").text)
    assert visitor.get("/rankings/rank").status_code == 200
    assert visitor.get("/api/rankings/rank/queries").status_code == 400


def test_the_api_holds_every_query_and_hit_once(folders: Path) -> None:
    visitor = Visitor(a_site(folders))
    pages = [visitor.get(f"/api/rankings/ranked/queries?size=10&page={page}").json() for page in range(1, 5)]
    rows = [row for page in pages for row in page["queries"]]
    assert [row["number"] for row in rows] == list(range(1, 39))
    worst = visitor.get("/api/rankings/ranked/queries?order=worst&measure=RR&size=200").json()["queries"]
    values = [row["measures"]["RR"] for row in worst]
    assert values == sorted(values)
    number = next(row["number"] for row in rows if row["outcome"] == "missed")
    found = visitor.get(f"/api/rankings/ranked/queries/{number}/hits?size=5&page=2").json()
    assert [hit["rank"] for hit in found["hits"]] == [6, 7, 8, 9, 10]
    assert (found["total"], found["pages"]) == (12, 3)
    assert {stage["stage"] for hit in found["hits"] for stage in hit["via"]} == {"bm25", "dense"}
    assert found["query"]["first"] is None
    assert found["missed"] == [{"document": found["missed"][0]["document"], "grade": 1}]


@needs_browser
@pytest.mark.parametrize("size", [DESKTOP, TABLET], ids=["desktop", "tablet"])
def test_reading_from_the_worst_query_to_a_document(folders: Path, browser: Browser, size: tuple[int, int]) -> None:
    with serving(create_app(a_site(folders))) as url, tab(browser, size) as page:
        page.goto(url)
        page.get_by_role("link", name="Ranking by bm25 + dense", exact=True).click()
        page.get_by_role("link", name="All queries, worst first").click()
        assert fits(page)
        names = page.locator("tbody th .id").all_inner_texts()
        page.locator("tbody th a").first.click()
        expect(page.locator("h1 .id")).to_have_text(names[0])
        page.wait_for_load_state()  # until then there is no script
        page.keyboard.press("ArrowRight")
        expect(page.locator("h1 .id")).to_have_text(names[1])
        page.get_by_label("Compare with").select_option("ranked-2")
        page.get_by_role("button", name="Show").click()
        expect(page.locator(".ranked")).to_have_count(2)
        expect(page.locator("h1 .id")).to_have_text(names[1])
        assert fits(page)
        page.locator(".ranked .what a").first.click()
        expect(page).to_have_url(re.compile("/corpora/cases/documents/"))


@needs_browser
def test_hostile_names_and_texts_stay_text(tmp_path: Path, browser: Browser) -> None:
    bad = HOSTILE
    questions = [
        Question(id=f"q{bad}{n}", text=bad, context=bad, documents=(bad,), facets={bad: f"{bad}{n}"}) for n in (1, 2)
    ]
    hits = [Hit(question=each.id, document=bad, rank=1, score=1.0, via={bad: (1, 1.0)}) for each in questions]
    traces = [
        SearchQuery(id=each.id, text=bad, steps=(TraceStep(stage=bad, what=bad, text=bad),)) for each in questions
    ]
    grades = {each.id: {bad: 1, f"{bad} missed": 1} for each in questions}
    a_ranking(tmp_path / "rank", questions, hits, grades, line=bad, traces=traces)
    a_corpus(tmp_path / "cases", [Document(id=bad, title=bad, text="Words.")])
    with serving(create_app(a_site(tmp_path))) as url, tab(browser) as page:
        page.on("dialog", lambda _: pytest.fail("a dialog opened"))
        for path in ("/rankings/rank", "/rankings/rank/queries", "/rankings/rank/queries/1", "/folders/rank"):
            answer = page.goto(url + path)
            assert answer
            assert answer.status == 200, path
            assert page.evaluate("window.owned === undefined"), path
            assert page.locator("main img, main svg:not(.hb), main script, main style, main iframe").count() == 0, path
            assert page.evaluate("getComputedStyle(document.body).display") != "none", path
        page.goto(f"{url}/rankings/rank/queries")
        expect(page.get_by_role("status").first).to_contain_text("2 of 2 queries")
