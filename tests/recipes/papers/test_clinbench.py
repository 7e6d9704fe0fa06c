"""ClinBench end to end, on the invented teaching cases and on real reports, with a model that follows simple rules."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hoofbeat import teaching
from hoofbeat.benchmarks import Benchmark
from hoofbeat.corpus import Corpus, import_corpus
from hoofbeat.recipes.cases.answer_options import same
from hoofbeat.recipes.cases.residue import without_call_outs
from hoofbeat.recipes.cases.stems import spans_of, stem_text
from hoofbeat.recipes.cases.two_level_review import LEVEL_1, LEVEL_2
from hoofbeat.recipes.papers.clinbench import RECIPE, ClinbenchSettings
from hoofbeat.recipes.recipe import find_recipe
from hoofbeat.recipes.recipe_items import RecipeItem
from hoofbeat.recipes.review_tasks import ReviewTask
from hoofbeat.store import Artefact
from hoofbeat.store.tables import read_jsonl, read_tsv
from tests.helpers import shared_data
from tests.recipes.papers.clinbench_model import GOLD, TEACHING, adds_up, by_gold, by_rules
from tests.recipes.support import Script, build


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return Corpus(import_corpus([teaching.cases_folder()], tmp_path_factory.mktemp("teaching") / "cases", workers=1))


@pytest.fixture(scope="module")
def built(cases: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Artefact:
    return build(tmp_path_factory.mktemp("built"), RECIPE, cases, TEACHING, by_gold)


def _is_fair(artefact: Artefact, corpus: Corpus) -> None:
    """Every question has one right option among six or more, and a stem that is its source's text to the letter."""
    items = {item.id: item for item in read_jsonl(artefact.file("items.jsonl"), RecipeItem)}
    for question in Benchmark(artefact).questions:
        item = items[question.id]
        document = corpus.get(question.documents[0])
        assert len(question.options) >= 6
        assert question.options.count(question.answer) == 1
        assert [each["text"] for each in item["options"]] == list(question.options)
        assert [each["origin"] for each in item["options"]].count("correct") == 1
        for place, option in enumerate(question.options):
            assert not any(same(option, other) for other in question.options[place + 1 :])
        assert question.context == stem_text(document, spans_of(item))
        stem = {(start, end) for start, end in spans_of(item)}
        assert stem <= {(span.start, span.end) for span in question.evidence}
        assert all(document.text[span.start : span.end] == span.quote for span in question.evidence)
        assert question.answer.lower() not in question.context.lower()
        assert question.facets["rare"] in ("yes", "no", "unknown")
        assert question.facets["specialty"]


def test_the_teaching_cases_become_questions(built: Artefact, cases: Corpus) -> None:
    adds_up(built, 24)
    _is_fair(built, cases)
    questions = Benchmark(built).questions
    assert len(questions) >= 15
    assert {question.text for question in questions} == {TEACHING.question}
    for question in questions:
        assert question.answer == GOLD[question.id].diagnosis
    rare = {question.id for question in questions if question.facets["rare"] == "yes"}
    assert "hbt-case-19" in rare  # Whipple disease
    assert "hbt-case-10" not in rare  # Fusarium keratitis
    options: Any = built.manifest.metrics["options"]
    assert options["origins"]["discussion"] > len(questions)


def test_the_image_edition_has_the_figures_in_place_of_their_description(built: Artefact, cases: Corpus) -> None:
    main = {question.id: question for question in Benchmark(built).questions}
    edition = Benchmark.open(built.path, "image").questions
    account: Any = built.manifest.metrics["image edition"]
    assert account["questions"] == len(edition) > 8
    assert len(edition) + sum(account["left out"].values()) == len(main)
    removed = list(read_tsv(built.file("removed.tsv")))
    assert {row["item"] for row in removed} <= {question.id for question in edition}
    for row in removed:
        assert cases.get(row["item"]).text[int(row["start"]) : int(row["end"])] == row["text"]
    for question in edition:
        before = main[question.id]
        assert (question.options, question.answer, question.text) == (before.options, before.answer, before.text)
        assert question.images
        assert all((built.path / name).is_file() for name in question.images)
        assert "[Figure" in question.context
        for row in removed:
            if row["item"] == question.id:
                assert without_call_outs(row["text"]) in before.context
                assert row["text"] not in question.context
    assert not any(question.images for question in main.values())


def test_the_same_seed_gives_the_same_bytes_and_another_another_order(cases: Corpus, tmp_path: Path) -> None:
    script = Script(by_gold)
    few = [document for _, document in zip(range(6), cases, strict=False)]
    first = build(tmp_path, RECIPE, few, TEACHING, {"model": script})
    files, calls = dict(first.manifest.files), len(script.requests)
    again = build(tmp_path, RECIPE, few, TEACHING, {"model": script})
    assert again.manifest.files == files
    assert len(script.requests) == calls
    orders = [question.options for question in Benchmark(again).questions]
    other = Benchmark(build(tmp_path, RECIPE, few, TEACHING, {"model": script}, seed=1)).questions
    assert [question.options for question in other] != orders
    assert [set(question.options) for question in other] == [set(order) for order in orders]


def test_real_reports_become_questions(tmp_path: Path) -> None:
    with gzip.open(shared_data("case_reports.jsonl.gz"), "rt", encoding="utf-8") as stream:
        lines = [line for _, line in zip(range(20), stream, strict=False)]
    (tmp_path / "reports.jsonl").write_text("".join(lines), encoding="utf-8")
    corpus = Corpus(import_corpus([tmp_path / "reports.jsonl"], tmp_path / "reports", workers=1))
    assert len(corpus) == 20
    artefact = build(tmp_path, RECIPE, corpus, ClinbenchSettings(stem_words=40), by_rules)
    adds_up(artefact, 20)
    _is_fair(artefact, corpus)
    kept = len(Benchmark(artefact).questions)
    assert kept >= 2
    assert not artefact.has("questions-image.jsonl")  # an empty edition is not offered
    left_out: Any = artefact.manifest.metrics["image edition"]
    assert sum(left_out["left out"].values()) == kept
    assert set(left_out["left out"]) <= {
        "the report has no figures",
        "the corpus has no image files of the report",
    }


def test_jats_articles_without_image_files_are_turned_away_where_images_are_wanted(tmp_path: Path) -> None:
    corpus = Corpus(import_corpus([shared_data("jats")], tmp_path / "jats", workers=1))
    settings = ClinbenchSettings(select="", images="files")
    artefact = build(tmp_path, RECIPE, corpus, settings, by_rules)
    adds_up(artefact, len(corpus))
    assert artefact.manifest.counts.kept == 0
    assert artefact.manifest.counts.reasons["no image in patient information or test results"] >= 5
    captions = build(tmp_path, RECIPE, corpus, ClinbenchSettings(select="", images="captions"), by_rules)
    assert "no image in patient information or test results" not in captions.manifest.counts.reasons


# Review


def test_every_item_waits_for_a_reader_and_a_sample_for_physicians(built: Artefact) -> None:
    tasks = list(read_jsonl(built.file("review.jsonl"), ReviewTask))
    kept = len(Benchmark(built).questions)
    first = [task for task in tasks if task.step == "level-1"]
    second = [task for task in tasks if task.step == "level-2"]
    assert len(first) == kept
    assert 0 < len(second) < kept
    assert {task.kind for task in tasks} == {"two-level"}
    check: Any = built.manifest.metrics["two-level check"]
    assert check["verdict"] == "waiting"


def test_findings_come_back_as_revisions_until_the_sample_passes(cases: Corpus, tmp_path: Path) -> None:
    reviews = tmp_path / "reviews.jsonl"
    settings = msgspec.structs.replace(TEACHING, reviews=str(reviews))
    labels: list[dict[str, str]] = []
    few = [document for _, document in zip(range(8), cases, strict=False)]

    def round_of(*more: dict[str, str]) -> tuple[Artefact, Any]:
        labels.extend(more)
        reviews.write_text("".join(json.dumps(each) + "\n" for each in labels))
        artefact = build(tmp_path, RECIPE, few, settings, by_gold)
        adds_up(artefact, 8)
        return artefact, artefact.manifest.metrics["two-level check"]

    artefact, _ = round_of()
    drawn = [task.item for task in read_jsonl(artefact.file("review.jsonl"), ReviewTask) if task.step == "level-2"]
    bad, *good = drawn
    wrong = next(each for each in Benchmark(artefact).questions if each.id == bad)
    option = next(each for each in wrong.options if each != wrong.answer)
    artefact, verdict = round_of(
        *(
            {"item": each, "criterion": criterion, "value": "pass", "reviewer": "p"}
            for each in drawn
            for criterion in (*LEVEL_1, *LEVEL_2)
        ),
        {"item": bad, "criterion": "options appropriate", "value": "fail", "reviewer": "p", "note": f"drop {option}"},
    )
    assert verdict["verdict"] == "not passed"
    assert verdict["level 2"] == {"findings": 1, "passed": len(good)}
    assert bad not in {question.id for question in Benchmark(artefact).questions}
    (row,) = read_tsv(artefact.file("revisions.tsv"))
    assert (row["item"], row["state"], row["what must change"]) == (bad, "to be revised", f"drop {option}")
    artefact, verdict = round_of({"item": bad, "criterion": "drop option", "value": option, "reviewer": "s"})
    assert verdict["verdict"] == "passed"
    assert verdict["share of the sample passed"] == 1
    revised = next(each for each in Benchmark(artefact).questions if each.id == bad)
    assert set(revised.options) == set(wrong.options) - {option}
    (row,) = read_tsv(artefact.file("revisions.tsv"))
    assert row["state"] == "revised"
    assert not set(drawn) & {task.item for task in read_jsonl(artefact.file("review.jsonl"), ReviewTask)}


def test_the_recipe_is_found_by_its_name() -> None:
    assert find_recipe("clinbench") is RECIPE
