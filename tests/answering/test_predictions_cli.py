"""`hoofbeat predictions` as a command: what it prints, writes and refuses."""

from __future__ import annotations

import json
from pathlib import Path

from hoofbeat.answering import Run
from hoofbeat.benchmarks import write_benchmark
from hoofbeat.records import Question
from hoofbeat.store import Counts, open_artefact
from tests.cli.support import hoofbeat, json_of

OPTIONS = ["Gout", "Pseudogout", "Septic arthritis"]


def _file(folder: Path, *rows: dict[str, object]) -> None:
    folder.joinpath("given.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def test_a_file_becomes_a_run_that_is_whole(tmp_path: Path) -> None:
    _file(
        tmp_path,
        {"nr": 1, "who": "one", "q": "Why?", "options": OPTIONS, "answer": "A", "output": "The answer is **A**."},
        {"nr": 1, "who": "two", "q": "Why?", "options": OPTIONS, "answer": "A", "output": "A or B"},
    )
    words = ("predictions", "given.jsonl", "--id", "nr", "--model-field", "who", "--question", "q", "-o", "run")
    done = hoofbeat(*words, "--json", folder=tmp_path)
    assert json_of(done)["kind"] == "run"
    assert "two, given, letter" in done.stderr
    run = Run.open(tmp_path / "run")
    assert [(answer.model, answer.choice) for answer in run.answers] == [("one", "Gout"), ("two", None)]
    assert open_artefact(tmp_path / "run", "run").verify() == []
    again = hoofbeat(*words, folder=tmp_path)  # replaced by the same
    assert "run" in again.stdout


def test_the_benchmark_says_what_was_due(tmp_path: Path) -> None:
    questions = [Question(id=f"q{n}", text="Why?", answer="Gout", options=tuple(OPTIONS)) for n in (1, 2)]
    write_benchmark(tmp_path / "bench", questions, title="invented", inputs=[], counts=Counts(kept=2))
    _file(tmp_path, {"id": "q1", "predicted": "A"})
    hoofbeat("predictions", "given.jsonl", "--benchmark", "bench", "--model", "theirs", "-o", "run", folder=tmp_path)
    run = Run.open(tmp_path / "run")
    assert [(answer.model, answer.choice) for answer in run.answers] == [("theirs", "Gout"), ("theirs", None)]
    assert {reference.kind for reference in run.artefact.manifest.inputs} == {"benchmark", "predictions"}


def test_a_bad_line_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    _file(tmp_path, {"id": "q1", "model": "m", "predicted": "A", "answer": "A"})
    with tmp_path.joinpath("given.jsonl").open("a") as stream:
        stream.write("{oops\n")
    done = hoofbeat("predictions", "given.jsonl", "-o", "run", "--json", folder=tmp_path, code=1)
    assert "line 2" in json_of(done)["where"]
    assert not (tmp_path / "run").exists()


def test_a_file_can_not_name_people_as_an_exam_does(tmp_path: Path) -> None:
    row: dict[str, object] = {"id": "q1", "predicted": "A", "answer": "A"}
    for named, words in (({"model": "human:Dr. House"}, ()), ({}, ("--model", "human:Dr. House"))):
        _file(tmp_path, row | named)
        done = hoofbeat("predictions", "given.jsonl", *words, "-o", "run", folder=tmp_path, code=1)
        assert "'human:', which only people who took an exam get" in done.stderr
        assert "line 1" in done.stderr
        assert not (tmp_path / "run").exists()


def test_free_text_is_to_be_judged_next_and_missing_gold_answers_are_said(tmp_path: Path) -> None:
    row = {"id": "q1", "question": "What treats scurvy?", "model": "invented", "predicted": "Vitamin C, by mouth."}
    (tmp_path / "bare.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "gold.jsonl").write_text(json.dumps({**row, "answer": "vitamin C"}) + "\n")
    bare = hoofbeat("predictions", "bare.jsonl", "-o", "bare", folder=tmp_path).stderr
    assert "no question has a gold answer, so nothing can be judged" in bare
    gold = hoofbeat("predictions", "gold.jsonl", "-o", "gold", folder=tmp_path).stderr
    assert "no question has a gold answer" not in gold
    assert "next: hoofbeat judge gold --model JUDGE" in gold
