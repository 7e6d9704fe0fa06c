from __future__ import annotations

import html
import re
from itertools import product
from pathlib import Path

import pytest
from msgspec.structs import replace

from hoofbeat.findings.accuracy import leaderboard
from hoofbeat.findings.intervals import clusters_of
from hoofbeat.findings.outcomes import scored_outcomes
from hoofbeat.judging import JudgmentFolder
from hoofbeat.records import Answer, Failure, Judgment, OptionLikelihood, Passage, Question, TraceStep, Vote
from hoofbeat.reports.answer_index import AnswerFilter, AnswersIndex
from hoofbeat.reports.tables import written
from hoofbeat.web.browse.run_pages import open_run
from hoofbeat.web.site import Site
from tests.web.answered import a_judged, a_run, verdicts
from tests.web.browse_support import Visitor, a_site

ASKED = [
    Question(id="q1", text="What first?", answer="Rest", facets={"ward": "north"}),
    Question(id="q2", text="What second?", answer="Walk", facets={"ward": ["south", "north"]}),
    Question(id="q3", text="What third?", answer="Run", facets={"ward": "south"}),
]


def answered(model: str = "m", condition: str = "closed", **more: object) -> list[Answer]:
    return [Answer(question=each.id, model=model, condition=condition, text="Said.", **more) for each in ASKED]  # type: ignore[arg-type]


def plain(page: str) -> str:
    """A page's words, without its tags."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def index_of(site: Site, slug: str) -> AnswersIndex:
    folder = site.library.folder(slug)
    assert folder is not None
    opened = open_run(site, folder, patience=30)
    assert opened is not None
    return opened.index


@pytest.fixture(scope="module")
def site(folders: Path) -> Site:
    return a_site(folders)


def test_every_filter_finds_what_the_records_say(folders: Path, site: Site) -> None:
    judged = JudgmentFolder.open(folders / "judged")
    index = index_of(site, "judged")
    outcomes = scored_outcomes(judged.questions, judged.answers, judged.judgments)
    facets = {question.id: question.facets for question in judged.questions}
    order = [question.id for question in judged.questions]
    states = {None: "unscored", True: "right", False: "wrong"}
    rows = [(row.question, row.model, row.condition, states[row.correct]) for row in outcomes]
    assert index.total == len(rows)
    models = ["", *dict.fromkeys(row[1] for row in rows)]
    conditions = ["", "closed", "bm25 @3, letter"]
    for model, condition, state, ward in product(models, conditions, ["", *states.values()], ["", "yes", "no"]):
        chosen = [
            row
            for row in rows
            if model in ("", row[1])
            and condition in ("", row[2])
            and state in ("", row[3])
            and ward in ("", facets[row[0]]["rare"])
        ]
        wanted = AnswerFilter(model=model, condition=condition, state=state, facets=(("rare", ward),) if ward else ())
        found = [(order[row.question], *row.system, row.state) for row in index.found(wanted)]
        assert found == chosen
        assert index.matching(wanted) == len(chosen)
        if any((model, condition, state, ward)):
            assert [order[place] for place in index.places(wanted)] == [
                name for name in order if name in {row[0] for row in chosen}
            ]


def test_what_is_not_there_is_not_found(site: Site) -> None:
    index = index_of(site, "judged")
    for wanted in (
        AnswerFilter(model="nobody"),
        AnswerFilter(state="odd"),
        AnswerFilter(facets=(("no facet", "x"),)),
        AnswerFilter(question=""),
    ):
        assert bool(index.found(wanted)) == wanted.everything
    assert index.found(AnswerFilter(question="nothing of the kind")) == []


def test_the_leaderboard_has_the_figures_of_the_findings(folders: Path, site: Site) -> None:
    judged = JudgmentFolder.open(folders / "judged")
    words = plain(Visitor(site).get("/runs/judged").text)
    rows = scored_outcomes(judged.questions, judged.answers, judged.judgments)
    for protocol in ("letter", ""):
        mine = [row for row in rows if row.condition.endswith(", letter") == bool(protocol)]
        for place in leaderboard(mine, clusters=clusters_of(judged.questions)):
            row = place.accuracy
            value, span = written(row.accuracy, "share"), written((row.bootstrap.low, row.bootstrap.high), "share")
            missing = sum(row.unscored.values())
            system = re.escape(f"{row.model} {row.condition} {value} {span} ") + rf"\D*{missing} "
            assert re.search(rf"{place.rank} \S+ {place.tied} {system}", words), system
    assert "38 questions, 152 planned answers from 8 systems (a model under a condition)." in words
    assert "Judge of free text: openai:judge-1" in words


def test_a_question_shows_all_that_is_known_of_its_answers(tmp_path: Path) -> None:
    passage = Passage(id="p", document="d1", text="Rest helps. Walking does not.", heading="Care")
    answers = [
        *answered(warnings=("cut short",)),
        Answer(
            question="q1", model="n", condition="agent", text="I rest.", reasoning="Thinking aloud.",
            evidence=(passage,), citations=("Care",),
            trace=(TraceStep(stage="agent", what="searched", text="rest", found=("p",)),),
        ),
        Answer(question="q1", model="o", condition="closed", failure=Failure(kind="timeout", message="gave up")),
        Answer(
            question="q1", model="n", condition="pick, likelihood", protocol="likelihood", options=("Rest", "Run"),
            choice="Rest",
            likelihoods=(
                OptionLikelihood(option="Rest", total=-1.0, tokens=1, bytes=4),
                OptionLikelihood(option="Run", total=-2.0, tokens=1, bytes=3),
            ),
        ),
    ]  # fmt: skip
    votes = (
        Vote(judge="j1", label="equivalent", reasoning="Alike."),
        Vote(judge="j2", label="mismatch", reasoning="Not alike."),
    )
    judgments = verdicts(answers, "++-+-+")[:4]
    judgments[3] = replace(judgments[3], votes=votes, reasoning="By majority.")
    questions = [replace(ASKED[0], options=("Rest", "Run")), *ASKED[1:]]
    a_judged(tmp_path / "judged", questions, answers, judgments)
    page = Visitor(a_site(tmp_path)).get("/runs/judged/questions/1").text
    words = plain(page)
    for said in (
        "m · closed ✓ right", "cut short", "equivalence, j: equivalent Invented reason 0.", "Thinking aloud.",
        "2 votes: 1 equivalent, 1 mismatch", "j2: mismatch. Not alike.", "Cites: Care", "d1 · Care cited",
        "agent: searched", "timeout: gave up", "– unscored (timeout)", "73.1%", "✓ right 3", "– unscored 1",
    ):  # fmt: skip
        assert said in words, said
    assert words.count("Rest chosen gold") == 1


def test_lists_and_neighbours_keep_to_the_filter(tmp_path: Path) -> None:
    answers = [*answered(), *answered("n")]
    a_judged(tmp_path / "judged", ASKED, answers, verdicts(answers, "+-+--+"))
    visitor = Visitor(a_site(tmp_path))
    listed = visitor.get("/runs/judged/questions?state=wrong&model=n").text
    assert re.findall(r'<span class="id">(\w+)</span>', listed) == ["q1", "q2"]
    assert "2 of 3 questions match the filters" in plain(listed)
    first = visitor.get("/runs/judged/questions/1?state=wrong&model=n").text
    assert 'rel="next" href="/runs/judged/questions/2?model=n&amp;state=wrong"' in first
    assert 'rel="prev"' not in first
    other = visitor.get("/runs/judged/questions/3?state=wrong&model=n").text
    assert 'rel="prev" href="/runs/judged/questions/2?' in other
    assert 'rel="next"' not in other
    ward = visitor.get("/runs/judged/questions?facet.ward=south").text
    assert re.findall(r'<span class="id">(\w+)</span>', ward) == ["q2", "q3"]
    nothing = visitor.get("/runs/judged/questions?model=nobody")
    assert nothing.status_code == 200
    assert "No question matches the filters" in nothing.text


def test_words_of_questions_and_answers_are_found(tmp_path: Path) -> None:
    said = ["Take ASPIRIN daily.", "Nothing.", "Walk; 5 µg of aspirin."]
    answers = [replace(each, text=text) for each, text in zip(answered(), said, strict=True)]
    a_run(tmp_path / "run", ASKED, answers)
    visitor = Visitor(a_site(tmp_path))
    place = visitor.post("/runs/run/search", text="aspirin").headers["location"]
    assert "aspirin" not in place
    page = plain(visitor.get(place).text)
    assert "2 of 3 questions have these words." in page
    assert "What second?" not in page
    first = visitor.get(place.replace("/questions?", "/questions/1?")).text
    assert "/runs/run/questions/3?search=" in first, "the search has nothing between"
    narrowed = plain(visitor.get(f"{place}&facet.ward=north").text)
    assert "1 of 3 questions have these words and match the filters." in narrowed
    for text, count in (("walk", 2), ("µG", 1), ("what SECOND", 1), ("rest", 1), ("never said", 0)):
        found = visitor.post("/runs/run/search?facet.ward=", text=text).headers["location"]
        assert f"{count} of 3 questions have these words." in plain(visitor.get(found).text), text
    assert "No question matches these words." in plain(visitor.get(found).text)
    assert visitor.post("/runs/run/search", text=" ").status_code == 400
    assert visitor.get("/runs/run/questions?search=gone").status_code == 404
    assert visitor.get("/runs/run/questions/2?search=gone").status_code == 200


def test_several_samples_and_many_systems_are_counted(tmp_path: Path) -> None:
    several = [each for sample in range(3) for each in answered(sample=sample)]
    a_judged(tmp_path / "samples", ASKED, several, verdicts(several, "++-+-++-+"))
    many = [each for number in range(9) for each in answered(f"m{number}")]
    a_judged(tmp_path / "many", ASKED, many, verdicts(many, "+-+" * 9))
    visitor = Visitor(a_site(tmp_path))
    assert "3 of 3 right" in (words := plain(visitor.get("/runs/samples/questions").text))
    assert "1 of 3 right" in words
    assert "2 of 3 right" in words
    listed = plain(visitor.get("/runs/many/questions").text)
    assert "✓ right 9" in listed
    assert "✗ wrong 9" in listed


def test_answers_that_nobody_judged_are_answered_or_failed(tmp_path: Path) -> None:
    lost = Answer(question="q3", model="m", condition="closed", failure=Failure(kind="refusal", message="no"))
    run = a_run(tmp_path / "run", ASKED, [*answered()[:2], lost])
    people = [
        Judgment(question="q1", model="m", condition="closed", judge="human:ann", label="equivalent"),
        Judgment(question="q2", model="m", condition="closed", judge="human:ann", label="mismatch"),
    ]
    a_judged(tmp_path / "by-people", ASKED, [*answered()[:2], lost], people, inputs=[run.reference()])
    visitor = Visitor(a_site(tmp_path))
    words = plain(visitor.get("/runs/run").text)
    assert "answered 2" in words
    assert "– unscored 1" in words
    assert "This folder has no judgments" in words
    assert "Nobody has judged" not in words
    assert "These answers were judged: " in words
    assert "Labelled by people only: 2 of 3 planned answers" in plain(visitor.get("/runs/by-people").text)
    found = visitor.get("/api/runs/by-people/answers").json()["answers"]
    assert [(each["label"], each["why"]) for each in found] == [
        ("right", ""), ("wrong", ""), ("unscored", "answer:refusal")
    ]  # fmt: skip


def test_a_run_leads_to_its_benchmark_and_documents(site: Site) -> None:
    page = Visitor(site).get("/runs/judged/questions/3").text
    question = re.search(r'<a href="(/benchmarks/bench/questions/\d+)">', page)
    document = re.search(
        r'<a href="(/corpora/cases/documents/\d+)" dir="auto">([^<]+)</a> <span class="id">hbt-case-02</span>', page
    )
    assert question
    assert document
    assert document[2] in plain(Visitor(site).get(document[1]).text), "a link is called by the document's title"
    assert "q-hbt-case-02" in Visitor(site).get(question[1]).text


def test_an_empty_run_says_so(tmp_path: Path) -> None:
    a_run(tmp_path / "run", [], [])
    visitor = Visitor(a_site(tmp_path))
    assert "This folder has no answers" in visitor.get("/runs/run").text
    assert visitor.get("/runs/run/questions").status_code == 200
    assert visitor.get("/api/runs/run/answers").json() == {"page": 1, "pages": 1, "total": 0, "answers": []}


@pytest.mark.parametrize(
    "path",
    [
        "/runs/nothing", "/runs/audit", "/runs/bench/questions", "/runs/judged/questions/0",
        "/runs/judged/questions/39", f"/runs/judged/questions/{10**30}", "/runs/judged/questions/-1",
        "/runs/nothing/facets", "/runs/nothing/questions/1", "/reports/judged", "/reports/nothing",
    ],
)  # fmt: skip
def test_what_is_not_here_is_a_page_that_says_so(site: Site, path: str) -> None:
    found = Visitor(site).get(path)
    assert found.status_code == 404
    assert "<h1>" in found.text


def test_the_pages_of_the_api_hold_every_answer_once(folders: Path, site: Site) -> None:
    visitor = Visitor(site)
    first = visitor.get("/api/runs/judged/answers?size=50").json()
    assert (first["total"], first["pages"]) == (152, 4)
    pages = [visitor.get(f"/api/runs/judged/answers?size=50&page={page}").json() for page in range(1, 5)]
    found = [
        (row["question"], row["model"], row["condition"], row["text"]) for page in pages for row in page["answers"]
    ]
    answers = JudgmentFolder.open(folders / "judged").answers
    assert found == [(each.question, each.model, each.condition, each.text) for each in answers]
    assert visitor.get("/api/runs/judged/answers?page=99&size=50").json()["page"] == 4
    wrong = visitor.get("/api/runs/judged/answers?label=wrong&model=openai:alpha-1").json()
    assert wrong["total"] == sum(row["model"] == "openai:alpha-1" for row in _all(visitor, "label=wrong"))
    assert {row["label"] for row in wrong["answers"]} == {"wrong"}


def _all(visitor: Visitor, query: str) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = visitor.get(f"/api/runs/judged/answers?size=200&{query}").json()["answers"]
    return rows


@pytest.mark.parametrize(
    ("query", "status"), [("page=0", 422), ("size=201", 422), ("label=odd", 422), ("page=x", 422), ("doubt=odd", 422)]
)
def test_the_api_refuses_what_it_does_not_know(site: Site, query: str, status: int) -> None:
    assert Visitor(site).get(f"/api/runs/judged/answers?{query}").status_code == status


def test_the_api_stands_in_the_schema_with_its_errors(site: Site) -> None:
    schema = Visitor(site).get("/openapi.json").json()
    answers = schema["paths"]["/api/runs/{slug}/answers"]["get"]["responses"]
    pairs = schema["paths"]["/api/audits/{slug}/pairs"]["get"]["responses"]
    for responses in (answers, pairs):
        assert {"200", "400", "404", "422", "503"} <= set(responses)
    missing = Visitor(site).get("/api/runs/nothing/answers")
    assert missing.status_code == 404
    assert missing.json()["error"] == "this server has no run of this name"


def test_a_damaged_table_is_an_error_that_names_no_path(tmp_path: Path) -> None:
    artefact = a_run(tmp_path / "run", ASKED, answered())
    artefact.file("answers.jsonl").write_bytes(b"{broken\n")
    found = Visitor(a_site(tmp_path)).get("/runs/run")
    assert found.status_code == 400
    assert str(tmp_path) not in found.text


def test_a_folder_made_again_is_read_again(tmp_path: Path) -> None:
    a_judged(tmp_path / "judged", ASKED, answered(), verdicts(answered(), "+++"))
    visitor = Visitor(a_site(tmp_path))
    assert visitor.get("/api/runs/judged/answers?label=right").json()["total"] == 3
    a_judged(tmp_path / "judged", ASKED, answered(), verdicts(answered(), "+--"), title="Judged once more")
    assert visitor.get("/api/runs/judged/answers?label=right").json()["total"] == 1
