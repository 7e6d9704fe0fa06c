"""Folders that were asked or judged in different ways are said to be, and never mixed under one name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from hoofbeat.cli import main
from hoofbeat.records import Judgment
from hoofbeat.reports.sections.scores.outcome_sets import FolderSettings, clashing, differing
from hoofbeat.store import Artefact, Manifest, open_artefact
from tests.reports import scored
from tests.reports.examples import finish
from tests.reports.parsing import parsed, words
from tests.reports.test_scores import build, pattern, rows_of

ASKED = scored.questions(40)


def run(target: Path, condition: str, right: int, asked: slice = slice(None), **settings: object) -> Artefact:
    chosen = ASKED[asked]
    answers = scored.choices(chosen, "m", condition, pattern(len(chosen), right=right))
    manifest = Manifest(kind="run", title="invented", settings={"models": ["m"], **settings}, seeds={"options": 0})
    return finish(target, manifest, {"questions.jsonl": ASKED, "answers.jsonl": answers})


def page(report: Artefact) -> str:
    return words(parsed(report.file("report.html").read_text("utf-8")))


def test_differing_settings_are_named_and_mark_the_differences(tmp_path: Path) -> None:
    closed = run(tmp_path / "closed", "closed", 10, temperature=0.0, instruction="best", samples=1)
    oracle = run(tmp_path / "oracle", "oracle", 30, temperature=1.0, instruction="brief", samples=1)
    report = build(tmp_path / "report", closed, oracle)
    text = page(report)
    assert "The folders differ in instruction, temperature, so a difference may not be due to the condition" in text
    assert "temperature: 0 in closed; 1 in oracle" in text
    assert "instruction: best in closed; brief in oracle" in text
    note = report.file("tables/run-1-differences.tex").read_text("utf-8")
    assert "The folders differ in instruction, temperature" in note
    alike = build(
        tmp_path / "alike", closed, run(tmp_path / "o2", "oracle", 30, temperature=0, instruction="best", samples=1)
    )
    assert "The folders differ" not in page(alike)


def test_one_system_with_two_settings_is_kept_apart(tmp_path: Path) -> None:
    first = run(tmp_path / "first", "closed", 10, slice(0, 20), temperature=0.0)
    second = run(tmp_path / "second", "closed", 20, slice(20, 40), temperature=1.0)
    report = build(tmp_path / "report", first, second)
    assert [row["planned"] for row in rows_of(report, "run-1-leaderboard")] == ["20"]
    assert [row["planned"] for row in rows_of(report, "run-2-leaderboard")] == ["20"]
    assert "Not read together with first (temperature)" in page(report)
    third = run(tmp_path / "third", "closed", 20, slice(20, 40), temperature=0.0)
    (row,) = rows_of(build(tmp_path / "joined", first, third), "run-1-leaderboard")
    assert (row["planned"], row["right"]) == ("40", "30")


def test_judge_prompts_that_differ_are_named(tmp_path: Path) -> None:
    folders = []
    for condition, prompt in (("closed", "equivalence@1"), ("oracle", "equivalence@2")):
        answers, judgments = scored.free(ASKED, "m", condition, pattern(40, right=20))
        made = Manifest(kind="judgments", title="x", models={"judge": "j"}, prompts={"judge": prompt})
        tables: dict[str, Sequence[object]] = {
            "questions.jsonl": ASKED,
            "answers.jsonl": answers,
            "judgments.jsonl": judgments,
        }
        folders.append(finish(tmp_path / condition, made, tables))
    assert "prompt judge: equivalence@1 in closed; equivalence@2 in oracle" in page(build(tmp_path / "r", *folders))


def test_judgments_know_their_run_s_settings(tmp_path: Path) -> None:
    folders = []
    for condition, temperature in (("closed", 0.0), ("oracle", 0.7)):
        answers, judgments = scored.free(ASKED, "m", condition, pattern(40, right=20))
        kept = {"temperature": temperature, "seeds": {"options": 3}}
        made = Manifest(kind="judgments", title="x", settings={"asked": kept}, models={"judge": "j"})
        tables: dict[str, Sequence[object]] = {
            "questions.jsonl": ASKED,
            "answers.jsonl": answers,
            "judgments.jsonl": judgments,
        }
        folders.append(finish(tmp_path / condition, made, tables))
    assert "temperature: 0 in closed; 0.7 in oracle" in page(build(tmp_path / "r", *folders))


def test_what_a_name_says_needs_no_word() -> None:
    one = FolderSettings({}, {"m": {"temperature": "0"}, "m[temperature=0.6]": {"temperature": "0.6"}})
    assert differing([("a", one), ("b", FolderSettings({}, {"m": {"temperature": "0"}}))]) == []
    other = FolderSettings({"temperature": "0"})
    assert clashing(one, other, ["m", "m[temperature=0.6]"]) == []
    assert clashing(FolderSettings({"temperature": "1"}), other, ["m"]) == ["temperature"]
    assert clashing(FolderSettings({"temperature": "1"}), other, ["m[temperature=0.6]"]) == []


def test_labels_by_people_alone_score(tmp_path: Path) -> None:
    answers, judgments = scored.free(ASKED, "m", "closed", pattern(40, right=30))
    ada = [replace(each, judge="human:ada") for each in judgments[:20]]
    bo = [replace(each, judge="human:bo") for each in judgments[:10]]
    bo[0] = replace(bo[0], label="mismatch")
    other, unseen = scored.free(ASKED, "n", "oracle", pattern(40, right=30))
    manifest = Manifest(kind="judgments", title="x", settings={"annotators": ["ada", "bo"]})
    people: list[Judgment] = [*ada, *bo]
    tables: dict[str, Sequence[object]] = {
        "questions.jsonl": ASKED,
        "answers.jsonl": [*answers, *other],
        "judgments.jsonl": people,
    }
    assert unseen
    report = build(tmp_path / "report", finish(tmp_path / "labelled", manifest, tables))
    text = page(report)
    assert "free text judged by labels by ada, bo" in text
    assert "an unnamed judge" not in text
    assert "Labelled by people alone: 19 of 40 planned answers, and 1 on which they disagree" in text
    assert "This free text was not judged for equivalence, so it has no accuracy: n · oracle" in text
    (row,) = rows_of(report, "judgments-1-leaderboard")
    assert (row["model"], row["right"], row["unscored"], row["planned"]) == ("m", "19", "21", "40")
    (alone,) = rows_of(report, "judgments-1-people-alone")
    assert [alone[name] for name in ("labelled", "contested", "unlabelled", "right")] == ["19", "1", "20", "19"]
    reasons = {row["stage and reason"]: row["count"] for row in rows_of(report, "judgments-1-unscored")}
    assert reasons == {"judgment: no-majority": "1", "unjudged": "20"}


def test_a_folder_of_judgments_keeps_how_its_answers_were_asked(tmp_path: Path) -> None:
    folders = []
    for condition, temperature in (("closed", 0.0), ("oracle", 0.7)):
        answers, _ = scored.free(ASKED, "m", condition, pattern(40, right=20))
        made = Manifest(kind="run", title="x", settings={"temperature": temperature}, seeds={"options": 1})
        finish(tmp_path / f"run-{condition}", made, {"questions.jsonl": ASKED, "answers.jsonl": answers})
        words_given = ["judge", str(tmp_path / f"run-{condition}"), "--by", "exact", "-o", str(tmp_path / condition)]
        with pytest.raises(SystemExit) as ended:
            main(words_given)
        assert ended.value.code == 0
        folders.append(open_artefact(tmp_path / condition))
    report = build(tmp_path / "report", *folders)
    assert "temperature: 0 in closed; 0.7 in oracle" in page(report)
