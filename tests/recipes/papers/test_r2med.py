"""R2MED's recipe from end to end over real texts, its three tasks, with a model that answers by simple rules."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hoofbeat.benchmarks import Benchmark
from hoofbeat.benchmarks.benchmark import read_passages
from hoofbeat.errors import UsageError
from hoofbeat.models import ChatRequest
from hoofbeat.recipes.context import CUT_MARK
from hoofbeat.recipes.papers.r2med import RECIPE, R2medSettings, _whole_sentences
from hoofbeat.recipes.recipe_items import RecipeItem, RejectedItem
from hoofbeat.recipes.review_tasks import ReviewTask
from hoofbeat.store.tables import read_jsonl, read_tsv
from tests.recipes.papers.r2med_case import (
    Words,
    adds_up,
    built_task,
    by_rule,
    cited_pages,
    holds_together,
    imported,
    parts,
    searchable,
    shared_lines,
)
from tests.recipes.support import Script, a_corpus, build


def test_similar_cases(tmp_path: Path) -> None:
    artefact, corpus = built_task(tmp_path, "clinical-case", queries_per_group=1)
    adds_up(artefact)
    holds_together(artefact, corpus)
    bench = Benchmark(artefact)
    assert len(bench.questions) >= 3
    searched = {piece.id for piece in read_passages(artefact)}
    items = {item.id: item for item in read_jsonl(artefact.file("items.jsonl"), RecipeItem)}
    for question in bench.questions:
        assert question.id not in searched  # who asks is not found
        assert question.answer.lower() not in question.text.lower()
        assert len(question.text.split()) >= 50
        assert question.facets["scenario"] == "similar case"
        assert question.facets["body_system"] == "Respiratory"
        assert items[question.id]["known"] == [
            each for each in items[question.id]["fellows"] if each not in {q.id for q in bench.questions}
        ]
    reasons = artefact.manifest.counts.reasons
    assert reasons["it is a document to find, not a question"] > 0
    assert reasons["a quote for the diagnosis is not in the source"] > 0
    assert searchable(artefact, corpus, tmp_path) > 0.1
    assert artefact.manifest.metrics["review"] == {"three-criteria": len(bench.questions)}


def test_references_of_posts(tmp_path: Path) -> None:
    artefact, corpus = built_task(tmp_path, "qa-reference", keep=6, reject=2, label_posts=True)
    adds_up(artefact)
    bench = Benchmark(artefact)
    assert bench.questions
    assert artefact.manifest.counts.reasons["the answer has too few votes"] == 1
    assert artefact.manifest.counts.reasons["the corpus holds none of the pages it cites"] == 1
    pool = list(read_tsv(artefact.file("pool.tsv")))
    assert {row["known"] for row in pool} == {"yes", "no"}
    pieces = read_passages(artefact)
    words = [len(corpus.get(piece.document).text[piece.start : piece.end].split()) for piece in pieces]
    assert sum(words) / len(words) < 128
    assert {question.facets["scenario"] for question in bench.questions} == {"question and answer"}
    assert searchable(artefact, corpus, tmp_path) > 0.1


def test_evidence_for_exam_questions(tmp_path: Path) -> None:
    scripts = {"model": Script(by_rule), "committee-1": Script(by_rule, "one"), "committee-2": Script(by_rule, "two")}
    artefact, corpus = built_task(tmp_path, "clinical-evidence", scripts)
    adds_up(artefact)
    holds_together(artefact, corpus)
    bench = Benchmark(artefact)
    assert bench.questions
    reasons = artefact.manifest.counts.reasons
    assert reasons["it asks for another kind of decision"] > 0
    assert reasons["too many models of the committee answer it"] > 0
    for question in bench.questions:
        assert "of the following" not in question.text.rsplit(".", 1)[-1]
        assert not question.options
        assert question.facets["scenario"] in {"examination", "diagnosis", "treatment"}
    assert artefact.manifest.metrics["difficulty"] == {"members": 2, "max_correct": 1}
    assert searchable(artefact, corpus, tmp_path) > 0.1


@pytest.mark.parametrize("task", ["invented", "qa-reference"])
def test_same_seed_same_bytes(tmp_path: Path, task: str) -> None:
    first = dict(built_task(tmp_path, task)[0].manifest.files)
    again, _ = built_task(tmp_path, task)
    assert dict(again.manifest.files) == first


def test_without_a_committee_the_manifest_says_so(tmp_path: Path) -> None:
    artefact, _ = built_task(tmp_path, "clinical-evidence", draw=2)
    assert "skipped" in str(artefact.manifest.metrics["difficulty"])


def test_grades_are_cut_where_the_parameters_say(tmp_path: Path) -> None:
    """The same pool at 7/8 and 4/5: a step of one grade moves documents over the border, and nothing else."""
    for grades, verdict in (((8, 8), "positive"), ((8, 7), "discarded"), ((5, 4), "discarded"), ((4, 4), "negative")):

        def says(name: str, request: ChatRequest, grades: tuple[int, int] = grades) -> object:
            if name.startswith("r2med-grade"):
                return {"reason": "fixed", "relevance": grades[0], "support": grades[1]}
            return by_rule(name, request)

        folder = tmp_path / "-".join(map(str, grades))
        folder.mkdir()
        artefact, _ = built_task(folder, "invented", says)
        pool = list(read_tsv(artefact.file("pool.tsv")))
        assert {row["verdict"] for row in pool} == {verdict}
        turned_away = artefact.manifest.counts.reasons.get("no document was graded as answering it", 0)
        assert (turned_away == 0) == (verdict == "positive")


def test_reviews_are_applied(tmp_path: Path) -> None:
    artefact, _ = built_task(tmp_path, "invented", queries_per_group=2)
    first, second, third = [task.item for task in read_jsonl(artefact.file("review.jsonl"), ReviewTask)][:3]
    labels = tmp_path / "labels.jsonl"
    rows = [(first, each, "ok") for each in ("query", "reasoning", "support")]
    rows += [(second, "support", "flag"), (second, "support", "exclude"), (third, "query", "flag")]
    labels.write_text("".join(json.dumps({"item": i, "criterion": c, "value": v}) + "\n" for i, c, v in rows))
    again, _ = built_task(tmp_path, "invented", queries_per_group=2, reviews=str(labels))
    tasks = {task.item: task.why for task in read_jsonl(again.file("review.jsonl"), ReviewTask)}
    assert first not in tasks
    assert tasks[third] == "waiting for the expert"
    assert again.manifest.counts.reasons["an expert excluded it in review"] == 1
    assert second not in {question.id for question in Benchmark(again).questions}


def test_overlap_with_other_corpora_is_measured(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    corpus = imported(other, [row for row, _ in zip(shared_lines("guidelines.jsonl.gz"), range(20), strict=False)])
    artefact, _ = built_task(tmp_path, "invented", compare_with=(str(corpus.path),), overlap_by="words")
    (row,) = read_tsv(artefact.file("overlap.tsv"))
    assert (row["a"], row["b"]) == ("this", "source")
    assert 0 < float(row["overlap"]) < 0.5


def test_a_task_needs_its_file(tmp_path: Path) -> None:
    corpus = a_corpus(tmp_path, [])
    for task, file in (("qa-reference", "posts"), ("clinical-evidence", "questions")):
        with pytest.raises(UsageError, match=f"a file of {file}"):
            build(tmp_path, RECIPE, corpus, R2medSettings(task=task), by_rule)  # type: ignore[arg-type]


def test_the_invented_reports_make_two_questions(tmp_path: Path) -> None:
    artefact, corpus = built_task(tmp_path, "invented", queries_per_group=1)
    adds_up(artefact)
    holds_together(artefact, corpus)
    questions = Benchmark(artefact).questions
    assert sorted(question.answer for question in questions) == ["Sarcoidosis", "Tuberculosis"]
    assert all(question.text.endswith("large hilar nodes.") for question in questions)
    assert all(len(question.documents) == 2 for question in questions)


def test_the_models_cut_wins_over_word_lists_and_one_like_fellow_is_enough(tmp_path: Path) -> None:
    """Findings told with words of diagnosis and treatment stay, and of three fellows one shows the same condition."""
    told = (
        "A {age}-year-old man was diagnosed with hypertension ten years ago and underwent an appendectomy as a child. "
        "He came with fever, myalgia and jaundice after a flood, and was given fluids for hypotension. "
        "A chest film was consistent with pulmonary edema and the bilirubin was 29 mg/dL. "
        "He was treated with leptospiral doses of penicillin. Serology proved {disease}. He was discharged well."
    )
    names = ("leptospirosis", "severe leptospirosis", "leptospirosis of the lung", "leptospirosis")
    rows = [
        {"pmcid": f"PMC{n}", "text": f"Case presentation\n\n{told.format(age=40 + n, disease=name)}"}
        for n, name in enumerate(names)
    ]

    def says(name: str, request: ChatRequest) -> object:
        shown = parts(request)
        if name == "case-diagnosis":
            found = re.search(r"Serology proved ([a-z ]+)", shown["report"])
            assert found
            return {"kind": "diagnosis", "quote": found[0], "diagnosis": found[1], "synonyms": []}
        if name == "case-shown":
            return {"last": 3, "hide": [], "trim": [], "reworded": []}
        if name == "r2med-quality":
            letters = re.findall(r"^Case ([A-Z])$", shown["other cases"], re.MULTILINE)
            assert len(letters) == 3  # of the same diagnosis, then kinds of it
            return {
                "reason": "r",
                "focus": 8,
                "completeness": 8,
                "similarity": dict(zip(letters, (9, 4, 3), strict=True)),
            }
        if name == "r2med-grade-case":
            assert shown["the other case"].startswith("Diagnosis that its report comes to: ")
        return by_rule(name, request)

    settings = R2medSettings(retrievers=("bm25",), min_words=30)
    artefact = build(tmp_path, RECIPE, imported(tmp_path, rows), settings, says, encoder=Words)
    questions = Benchmark(artefact).questions
    assert questions
    for question in questions:
        assert question.text.endswith("consistent with pulmonary edema and the bilirubin was 29 mg/dL.")
        assert "diagnosed with hypertension" in question.text
    cuts = [row["words"] for row in read_tsv(artefact.file("cuts.tsv"))]
    assert any("leptospiral doses" in words for words in cuts)  # what is cut is listed


def test_another_case_is_cut_at_the_end_of_a_sentence_and_says_so() -> None:
    text = "He had a fever. Multilocus sequence typing was done. He went home."
    assert _whole_sentences(text, 40) == f"He had a fever.{CUT_MARK}"
    assert _whole_sentences(text, 12) == f"He had a{CUT_MARK}"
    assert _whole_sentences(text, len(text)) == text


def test_an_empty_corpus_gives_an_empty_benchmark(tmp_path: Path) -> None:
    artefact = build(tmp_path, RECIPE, a_corpus(tmp_path, []), R2medSettings(), by_rule)
    assert artefact.manifest.counts.kept == 0


def test_two_rows_of_one_id_do_not_stop_the_rest(tmp_path: Path) -> None:
    corpus, posts = cited_pages(tmp_path)
    rows = posts.read_text().splitlines(keepends=True)
    posts.write_text("".join([*rows, rows[0]]))
    settings = R2medSettings(task="qa-reference", posts=str(posts), retrievers=("bm25",), keep=6, reject=2)
    artefact = build(tmp_path, RECIPE, corpus, settings, by_rule, encoder=Words)
    adds_up(artefact)
    (again,) = [
        r for r in read_jsonl(artefact.file("rejected.jsonl"), RejectedItem) if "is that of line 1" in r.details
    ]
    assert again.reason == "the row can't be used"
    assert again.details == f"posts.jsonl, line {len(rows) + 1}: the id post-0 is that of line 1"


# Adversarial output, a step at a time
