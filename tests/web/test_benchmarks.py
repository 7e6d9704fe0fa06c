from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from hoofbeat.corpus import Corpus
from hoofbeat.recipes import build_teaching
from hoofbeat.records import Document, Question, Span
from hoofbeat.review.review_records import ItemMaterial, ReviewItem, Study
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.store import open_artefact
from hoofbeat.web.site import Site
from tests.web.browse_support import Visitor, a_benchmark, a_corpus, a_site


@pytest.fixture(scope="module")
def site(folders: Path) -> Site:
    return a_site(folders)


@pytest.fixture(scope="module")
def visitor(site: Site) -> Visitor:
    return Visitor(site)


def test_a_benchmark_shows_counts_funnel_editions_cost_lineage_and_review(visitor: Visitor) -> None:
    page = visitor.get("/benchmarks/bench").text
    for told in (
        "Teaching questions (invented)", "Candidates rejected", "Failed model calls", "From candidates to questions",
        "the report is retracted", "the question without its case", "81,220 tokens in", "openai:writer-1",
        "ogcare-write@4f1c0b7d2a91", "seed: recipe", "Tasks waiting for reviewers", "hoofbeat review bench",
    ):  # fmt: skip
        assert told in page, told
    assert 'href="/corpora/cases"' in page
    assert visitor.get("/benchmarks/none").status_code == 404
    assert visitor.get("/benchmarks/cases").status_code == 404
    assert visitor.get("/benchmarks/bench?edition=none").status_code == 404


def test_questions_are_chosen_by_facet_and_their_links_keep_the_choice(visitor: Visitor) -> None:
    page = visitor.get("/benchmarks/bench?facet.form=choice").text
    links = re.findall(r'href="/benchmarks/bench/questions/(\d+)([^"]*)"', page)
    assert len(links) == 19
    assert all("facet.form=choice" in rest for _, rest in links)
    question = visitor.get(f"/benchmarks/bench/questions/{links[1][0]}?facet.form=choice").text
    assert f"/benchmarks/bench/questions/{links[0][0]}?facet.form=choice" in question
    assert f"/benchmarks/bench/questions/{links[2][0]}?facet.form=choice" in question


def test_words_are_searched_without_standing_in_the_address(visitor: Visitor) -> None:
    answer = visitor.post("/benchmarks/bench/search", text="MECHANICAL valves")
    place = answer.headers["location"]
    assert "valves" not in place.lower()
    page = visitor.get(place).text
    assert "2 questions with these words" in page
    name = place.partition("search=")[2]
    both = visitor.get(f"{place}&facet.form=open").text
    assert "1 question with these words" in both
    question = visitor.get(f"/benchmarks/bench/questions/3?search={name}").text
    assert f"/benchmarks/bench/questions/4?search={name}" in question
    assert 'rel="prev"' not in question, "the search found nothing before it"
    assert visitor.get("/benchmarks/bench?search=nothing").status_code == 404


@pytest.mark.parametrize("text", ["  ", "word " * 30])
def test_a_search_of_nothing_or_too_much_is_refused(visitor: Visitor, text: str) -> None:
    answer = visitor.post("/benchmarks/bench/search", text=text)
    assert answer.status_code == 400
    assert "What to do" in answer.text


def test_words_in_other_letters_are_found(tmp_path: Path) -> None:
    asked = [
        Question(id="a", text="Was ist die ÜBLICHE Dosis?", answer="5 µg", options=("5 µg", "Straße")),
        Question(id="b", text="Dose?"),
    ]
    a_benchmark(tmp_path / "b", asked)
    visitor = Visitor(a_site(tmp_path))
    for text, count in (("übliche", "1 question"), ("STRASSE", "1 question"), ("dos", "2 questions"), ("x y", "0")):
        place = visitor.post("/benchmarks/b/search", text=text).headers["location"]
        assert f"{count}" in visitor.get(place).text.partition('class="counts"')[2][:60], text


def test_a_question_stands_beside_its_source_with_the_evidence_marked(visitor: Visitor) -> None:
    page = visitor.get("/benchmarks/bench/questions/3").text
    assert "What is the best next step to control the arrhythmia?" in page
    assert "Deliver stereotactic arrhythmia radioablation" in page
    marked = page.partition('<mark id="mark-1">')[2].partition("</mark>")[0]
    assert marked.startswith("With ethics board agreement")
    assert marked.endswith("(Figure 2).")
    assert "prompt <code>ogcare-write@4f1c0b7d2a91</code>" in page
    assert "openai:writer-1" in page
    assert 'href="/corpora/cases/documents/2?question=bench.3"' in page
    document = visitor.get("/corpora/cases/documents/2?question=bench.3").text
    assert '<mark id="mark-1">With ethics board' in document
    assert "/benchmarks/bench/questions/3" in document


def test_options_show_the_gold_answer_and_images_are_given(visitor: Visitor) -> None:
    page = visitor.get("/benchmarks/bench/questions/4").text
    assert '<li class="gold" dir="auto">Cardiac sarcoidosis <span class="tag gold">gold</span>' in page
    assert 'src="/benchmarks/bench/files/4/0"' in page
    assert visitor.get("/benchmarks/bench/files/4/0").headers["content-type"] == "image/png"
    assert visitor.get("/benchmarks/bench/files/4/1").status_code == 404
    assert visitor.get("/benchmarks/bench/files/3/0").status_code == 404


def test_a_question_links_to_the_runs_that_answered_it(visitor: Visitor, tmp_path: Path, folders: Path) -> None:
    page = visitor.get("/benchmarks/bench/questions/3").text
    assert 'href="/runs/run/questions/3"' in page
    assert 'href="/runs/judged/questions/3"' in page
    shutil.copytree(folders / "run", tmp_path / "run")
    a_benchmark(tmp_path / "other", [Question(id="q-hbt-case-02", text="Another question of that name?")])
    other = Visitor(a_site(tmp_path)).get("/benchmarks/other/questions/1").text
    assert "/runs/run/" not in other


def test_an_edition_has_its_own_numbers(visitor: Visitor) -> None:
    page = visitor.get("/benchmarks/bench?edition=plain").text
    assert 'href="/benchmarks/bench/questions/2?edition=plain"' in page
    question = visitor.get("/benchmarks/bench/questions/2?edition=plain").text
    assert "q-hbt-case-02" in question
    assert 'href="/corpora/cases/documents/2?question=bench.2&amp;edition=plain"' in question
    document = visitor.get("/corpora/cases/documents/2?question=bench.2&edition=plain").text
    assert '<mark id="mark-1">With ethics board' in document
    assert visitor.get("/benchmarks/bench/questions/30?edition=plain").status_code == 404


def test_rejected_and_failed_candidates_are_shown_with_why(visitor: Visitor) -> None:
    page = visitor.get("/benchmarks/bench/rejected").text
    assert "the report is promotional" in page
    assert page.count('href="/benchmarks/bench/rejected/') == 4
    some = visitor.get("/benchmarks/bench/rejected?facet.reason=the report is retracted").text
    assert some.count('href="/benchmarks/bench/rejected/') == 1
    candidate = visitor.get("/benchmarks/bench/rejected/1").text
    assert "Rejected at step" in candidate
    assert "Whipple disease" in candidate
    assert '<mark id="mark-1">' in candidate, "where the reason stands"
    lost = visitor.get("/benchmarks/bench/failed/1").text
    assert "schema: the model gave no question" in lost
    assert "After 2 calls." in lost
    assert visitor.get("/benchmarks/bench/rejected/5").status_code == 404
    assert visitor.get("/benchmarks/bench/items").status_code == 404


def test_what_was_counted_and_not_listed_is_no_link(tmp_path: Path, folders: Path) -> None:
    build_teaching(Corpus.open(folders / "cases"), tmp_path / "bench", command=())
    page = Visitor(a_site(tmp_path)).get("/benchmarks/bench").text
    assert "<dt>Candidates rejected</dt>" in page
    assert "/benchmarks/bench/rejected" not in page


def test_a_benchmark_without_steps_still_says_what_became_of_its_candidates(tmp_path: Path, folders: Path) -> None:
    made = build_teaching(
        Corpus.open(folders / "cases"), tmp_path / "bench", command=("hoofbeat", "build", "my cases; x")
    )
    page = Visitor(a_site(tmp_path)).get("/benchmarks/bench").text
    assert "hoofbeat build &#39;my cases; x&#39;" in page, "a command is shown so that it can be typed"
    assert made.manifest.counts.reasons
    for reason, count in made.manifest.counts.reasons.items():
        assert re.search(rf">{reason}</td>\n<td[^>]*>{count}</td>", page), reason
    assert '<a href="#benchmark-fates">From candidates to questions</a>' in page


def test_a_question_of_several_sources_shows_one_at_a_time(tmp_path: Path) -> None:
    documents = [Document(id=f"d{n}", title=f"Title {n}", text=f"Words of number {n}.") for n in range(3)]
    corpus = a_corpus(tmp_path / "c", documents)
    spans = tuple(Span(document=f"d{n}", start=9, end=17, quote=f"number {n}") for n in (2, 0))
    question = Question(id="q", text="What?", documents=("d0", "d1", "d2", "gone"), evidence=spans)
    a_benchmark(tmp_path / "b", [question], inputs=[corpus.reference()])
    visitor = Visitor(a_site(tmp_path))
    first = visitor.get("/benchmarks/b/questions/1").text
    assert '<mark id="mark-1">number 2</mark>' in first
    assert 'href="/benchmarks/b/questions/1?source=4"' in first
    second = visitor.get("/benchmarks/b/questions/1?source=2").text
    assert '<mark id="mark-1">number 0</mark>' in second
    assert "it is not in the corpus" in visitor.get("/benchmarks/b/questions/1?source=4").text


def test_a_corpus_that_is_not_served_is_told(tmp_path: Path, folders: Path) -> None:
    shutil.copytree(folders / "bench", tmp_path / "bench")
    page = Visitor(a_site(tmp_path / "bench")).get("/benchmarks/bench/questions/3").text
    assert "its corpus (cases) is not on this server" in page


def test_questions_as_json_are_paged_and_chosen(visitor: Visitor) -> None:
    found = visitor.get("/api/benchmarks/bench/questions?facet=form=choice").json()
    assert found["total"] == 19
    assert found["questions"][1]["answer"] == "Cardiac sarcoidosis"
    assert found["questions"][1]["page"] == "/benchmarks/bench/questions/4"
    plain = visitor.get("/api/benchmarks/bench/questions?edition=plain").json()
    assert plain["total"] == 19
    assert visitor.get("/api/benchmarks/bench/questions?edition=x").status_code == 404
    assert visitor.get("/api/benchmarks/none/questions").status_code == 404
    assert visitor.get("/api/benchmarks/bench/questions?page=x").status_code == 422


def test_studies_of_people_on_a_benchmark_are_told_with_how_far_they_are(folders: Path, tmp_path: Path) -> None:
    source = open_artefact(folders / "bench").reference().sha256
    with ReviewStore.open(str(tmp_path / "review.db")) as store:
        study = Study(id="s1", title="First reading <b>", form="likert", source="bench", source_sha256=source)
        other = Study(id="s2", title="Of another", form="likert", source="x", source_sha256="0" * 64)
        items = [
            ReviewItem(id=f"i{n}", study="s1", place=n, shown=(ItemMaterial(title="Question", text="What?"),))
            for n in range(3)
        ]
        store.create_study(study, items)
        store.create_study(other, [])
        page = Visitor(a_site(folders, store=store)).get("/benchmarks/bench").text
    assert "First reading &lt;b&gt;" in page
    assert '<td class="num">3</td><td class="num">0</td><td>open</td>' in page
    assert "Of another" not in page
