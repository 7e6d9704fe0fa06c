"""Answers compared: the figures against independent ones, what is refused, what is marked, what flipped."""

from __future__ import annotations

import csv
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from hoofbeat.errors import InputError, UsageError
from hoofbeat.findings.accuracy import CHANGES, change
from hoofbeat.findings.outcomes import Outcome
from hoofbeat.judging import AnswerFolder, JudgingJob, judge_folder
from hoofbeat.records import Judgment
from hoofbeat.reports.comparison.answers import compare_answers, measurement_of, settings_that_differ
from hoofbeat.reports.comparison.answers_page import (
    FlippedQuestion,
    each_flipped,
    flips_of,
    flips_viewer,
    warnings_of,
    write_answers,
)
from hoofbeat.reports.report_build import build_report
from hoofbeat.store import open_artefact
from hoofbeat.store.tables import read_jsonl
from tests.reports.answer_runs import chosen, judged_run, questions, run_of
from tests.reports.parsing import parsed, words

BEFORE = "rrrrrrrrrrwwwwwwwwwwrrrrrrrrrruuuuffwwww"
AFTER = "rrwwrrrrrrrrrrrwwwwwrrrrrrruuurwrwrwwuww"


def test_differences_agree_with_independent_ones(tmp_path: Path) -> None:
    rng = random.Random(4)
    patterns = {
        (folder, condition): "".join(rng.choice("rrrwwu" if folder == "b" else "rrwwwu") for _ in range(40))
        for folder in "ab"
        for condition in ("closed", "oracle", "bm25 @3")
    }
    for folder in "ab":
        answers = [a for (f, c), pattern in patterns.items() if f == folder for a in chosen(pattern, condition=c)]
        run_of(tmp_path / folder, answers)
    compared = compare_answers([tmp_path / "a", tmp_path / "b"])
    assert len(compared.pairs) == 3
    expected = []
    for pair, row in zip(compared.pairs, compared.differences, strict=True):
        condition = pair.first.condition.removesuffix(", letter")
        first, second = (np.array([c == "r" for c in patterns[folder, condition]]) for folder in "ab")
        assert row.paired.difference == pytest.approx(second.mean() - first.mean())
        assert (row.accuracy_b, row.accuracy_a) == pytest.approx((first.mean(), second.mean()))
        table = [[int(((first == a) & (second == b)).sum()) for b in (True, False)] for a in (True, False)]
        expected.append(mcnemar(table, exact=True).pvalue)
        assert row.p == pytest.approx(expected[-1])
        missing = sum(pattern.count("u") for (_, c), pattern in patterns.items() if c == condition)
        assert row.unscored == missing
        assert row.sensitivity is not None
        assert row.paired.interval.low <= row.paired.difference <= row.paired.interval.high
    assert [row.p_holm for row in compared.differences] == pytest.approx(multipletests(expected, method="holm")[1])


def test_every_flip_is_counted_and_listed(tmp_path: Path) -> None:
    run_of(tmp_path / "before", chosen(BEFORE))
    run_of(tmp_path / "after", chosen(AFTER))
    compared = compare_answers([tmp_path / "before", tmp_path / "after"])
    words_of = {"r": "right", "w": "wrong", "u": "unscored", "f": "unscored"}
    expected = Counter(
        f"{words_of[a]} → {words_of[b]}"
        for a, b in zip(BEFORE, AFTER, strict=True)
        if words_of[a] != words_of[b]
    )  # fmt: skip
    assert len(expected) == 6
    assert flips_of(compared, compared.pairs[0]) == expected
    made = write_answers(tmp_path / "out", compared)
    listed = list(read_jsonl(made.file("flipped.jsonl"), FlippedQuestion))
    assert Counter(each.change for each in listed) == expected
    first = listed[0]
    assert (first.question, first.change, first.gold, first.context) == (
        "q002", "right → wrong", "Beta", "An invented case."
    )  # fmt: skip
    assert (first.first.answers[0].choice, first.second.answers[0].choice) == ("Beta", "Alpha")
    assert first.first.standing == "right"
    viewer = flips_viewer(compared, "flipped")
    assert viewer.total == expected.total()
    assert set(viewer.states) == set(expected)
    assert made.verify() == []
    assert made.manifest.metrics["flipped"] == expected.total()
    text = words(parsed(made.file("report.html").read_text("utf-8")))
    assert "Questions that flipped" in text
    assert f"{expected.total()} questions flipped: " in text
    assert (
        f"{expected['right → unscored']} × right → unscored" in text
    )  # it was called "right for one, wrong for the other"
    with made.file("tables/pairs.csv").open(encoding="utf-8", newline="") as stream:
        [row] = list(csv.DictReader(stream))
    assert row["same measurement"] == "yes"
    assert int(row["only second right"]) == sum(a != "r" and b == "r" for a, b in zip(BEFORE, AFTER, strict=True))


def test_the_same_folders_give_the_same_bytes(tmp_path: Path) -> None:
    run_of(tmp_path / "a", chosen(BEFORE))
    run_of(tmp_path / "b", chosen(AFTER))
    made = [write_answers(tmp_path / name, compare_answers([tmp_path / "a", tmp_path / "b"])) for name in ("x", "y")]
    assert made[0].manifest.files == made[1].manifest.files


def outcomes(letters: str) -> list[Outcome]:
    return [
        Outcome(question="q", model="m", condition="c", sample=n, correct={"r": True, "w": False, "u": None}[letter])
        for n, letter in enumerate(letters)
    ]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("r", "r", ""),
        ("r", "w", "right → wrong"),
        ("u", "r", "unscored → right"),
        ("rrw", "rww", "fewer samples right"),
        ("rww", "rrr", "more samples right"),
        ("rww", "wrw", ""),
        ("rww", "uuu", "samples → unscored"),
        ("uuu", "rww", "unscored → samples"),
        ("uuu", "uuu", ""),
        ("r", "rrw", "fewer samples right"),
    ],
)
def test_changes(before: str, after: str, expected: str) -> None:
    found = change(outcomes(before), outcomes(after))
    assert found == expected
    assert not found or found in CHANGES


def test_several_samples_are_tested_by_randomisation(tmp_path: Path) -> None:
    for name, patterns in (("a", (BEFORE, AFTER, BEFORE)), ("b", (AFTER, AFTER, AFTER))):
        run_of(tmp_path / name, [a for n, pattern in enumerate(patterns) for a in chosen(pattern, sample=n)])
    compared = compare_answers([tmp_path / "a", tmp_path / "b"])
    [row] = compared.differences
    assert "randomisation" in row.test
    assert row.only_a is None
    flips = list(each_flipped(compared))
    assert {each.change for each in flips} <= set(CHANGES[6:])
    assert len(flips[0].first.answers) == 3


def test_another_protocol_is_marked_loudly(tmp_path: Path) -> None:
    run_of(tmp_path / "a", chosen(BEFORE))
    run_of(tmp_path / "b", chosen(AFTER, protocol="likelihood"))
    compared = compare_answers([tmp_path / "a", tmp_path / "b"])
    assert compared.pairs[0].against == ("likelihood against letter",)
    assert any("NOT MEASURED IN THE SAME WAY" in each for each in warnings_of(compared))
    made = write_answers(tmp_path / "out", compared)
    assert "NOT MEASURED IN THE SAME WAY" in made.file("report.md").read_text("utf-8")
    tree = parsed(made.file("report.html").read_text("utf-8"))
    assert "likelihood against letter" in words(tree.xpath("//header")[0])
    assert "NO: likelihood against letter" in made.file("pairs.tsv").read_text("utf-8")


def test_judges_and_scoring_that_differ_are_marked(tmp_path: Path) -> None:
    judged_run(tmp_path / "a", BEFORE)
    judged_run(tmp_path / "b", AFTER)
    judged_run(tmp_path / "c", AFTER, judge="judge-2")
    same = compare_answers([tmp_path / "a", tmp_path / "b"])
    assert same.pairs[0].against == ()
    assert next(each_flipped(same)).first.judgments[0].label == "equivalent"
    other = compare_answers([tmp_path / "a", tmp_path / "c"])
    assert other.pairs[0].against == ("judged by other judges: judge-2 against judge-1",)
    run_of(tmp_path / "d", chosen(AFTER))
    chosen_against_judged = compare_answers([tmp_path / "a", tmp_path / "d"])
    assert chosen_against_judged.pairs[0].against == ("letter against free text",)


def test_another_panel_of_judges_is_marked_loudly(tmp_path: Path) -> None:
    """A majority of three is one name for any three judges: who voted decides whether it is the same panel."""
    judged_run(tmp_path / "a", BEFORE, votes=("x", "y", "z"))
    judged_run(tmp_path / "b", AFTER, votes=("z", "y", "x"))
    judged_run(tmp_path / "c", AFTER, votes=("x", "y", "w"))
    judged_run(tmp_path / "d", AFTER, votes=("x", "y", "z"), models={"judge: z": "z-2; context=4096"})
    judged_run(tmp_path / "e", AFTER, votes=("x", "y", "z"), models={"judge: z": "z-2; context=512"})
    judged_run(tmp_path / "f", AFTER, judge="proxy", models={"judge": "judge-1"})
    judged_run(tmp_path / "g", AFTER)

    def against(one: str, other: str) -> tuple[str, ...]:
        return compare_answers([tmp_path / one, tmp_path / other]).pairs[0].against

    assert against("a", "b") == ()
    assert against("a", "c") == ("judged by other judges: x, y, w against x, y, z",)
    assert against("a", "d") == ("judged by other judges: x, y, z-2 against x, y, z",)
    assert against("d", "e") == ()  # the same weights, run otherwise
    assert against("f", "g") == ()  # the same model under two names
    made = write_answers(tmp_path / "out", compare_answers([tmp_path / "a", tmp_path / "c"]))
    assert "NOT MEASURED IN THE SAME WAY in 1 of 1 pair: judged by other judges" in made.file("report.md").read_text(
        "utf-8"
    )


def sampled(temperature: float, seed: int = 0, **more: object) -> dict[str, object]:
    sampling = {"m": {"temperature": temperature, "samples": 1, "seed": seed, "max_tokens": None}}
    return {"sampling": sampling, "instruction": "best", **more}


def test_settings_that_differ_are_listed_with_both_values(tmp_path: Path) -> None:
    run_of(tmp_path / "cold", chosen(BEFORE), settings=sampled(0.0), seeds={"options": 0})
    run_of(tmp_path / "seed", chosen(AFTER), settings=sampled(0.0, 7), seeds={"options": 0})
    run_of(tmp_path / "warm", chosen(AFTER), settings=sampled(0.9, 7), seeds={"options": 3, "sampling": 7})
    run_of(tmp_path / "brief", chosen(AFTER), settings=sampled(0.0) | {"instruction": "brief"}, seeds={"options": 0})

    def settings(*names: str) -> tuple[str, ...]:
        return compare_answers([tmp_path / name for name in names]).pairs[0].settings

    assert settings("cold", "seed") == ()  # nothing is drawn at temperature 0
    assert settings("cold", "brief") == ("instruction best / brief",)
    found = settings("cold", "warm")
    assert found == ("seed of the options' order 0 / 3", "temperature 0 / 0.9")
    compared = compare_answers([tmp_path / "cold", tmp_path / "warm"])
    assert compared.pairs[0].against == ()
    told = warnings_of(compared)
    assert any(
        each.startswith("ASKED DIFFERENTLY in 1 of 1 pair: differs in temperature 0 / 0.9 (first / second)")
        for each in told
    )
    assert not any("NOT MEASURED IN THE SAME WAY" in each for each in told)
    made = write_answers(tmp_path / "out", compared)
    [row] = made.manifest.metrics["pairs"].values()  # type: ignore[attr-defined]
    assert row["not_comparable"] == [f"differs in: {each}" for each in found]
    assert f"differs in: {'; '.join(found)}" in made.file("pairs.tsv").read_text("utf-8")


def test_settings_that_can_t_have_mattered_are_passed_over(tmp_path: Path) -> None:
    """A likelihood knows no temperature, instruction or order of letters; a closed book no documents."""
    for name, temperature, seed in (("a", 0.0, 0), ("b", 0.9, 5)):
        more = sampled(temperature, seed, documents=[name * 64], limit=seed + 1, retrievers={"bm25": {"k": seed}})
        more |= {"instruction": name}
        prompts = {"answer-letter": f"answer-letter@{name}", "answer-evidence": f"answer-evidence@{name}"}
        answers = [a for condition in ("closed", "oracle", "bm25 @3") for a in chosen(AFTER, condition=condition,
                   protocol="likelihood")] + chosen(AFTER)  # fmt: skip
        run_of(tmp_path / name, answers, settings=more, seeds={"options": seed}, prompts=prompts)
    pairs = compare_answers([tmp_path / "a", tmp_path / "b"]).pairs
    found = {pair.first.condition: pair.settings for pair in pairs}
    assert found["closed, likelihood"] == ()
    assert found["oracle, likelihood"] == ("documents aaaaaaaaaaaa / bbbbbbbbbbbb",)
    assert found["bm25 @3, likelihood"] == (
        "documents aaaaaaaaaaaa / bbbbbbbbbbbb",
        "retriever {'k': 0} / {'k': 5}",
    )
    assert set(found["closed, letter"]) == {
        "temperature 0 / 0.9",
        "instruction a / b",
        "seed of the options' order 0 / 5",
        "prompt answer-letter answer-letter@a / answer-letter@b",
    }


def test_judgments_tell_how_their_run_was_asked(tmp_path: Path) -> None:
    """What the run's manifest said is kept by the judgments, so that it is seen when those are compared."""
    folders = []
    for name, instruction in (("a", "best"), ("b", "brief")):
        free = [replace(a, text="Advice.", choice=None) for a in chosen("rr", protocol="")]
        run = run_of(tmp_path / f"run-{name}", free, questions(2), settings={"instruction": instruction})
        verdicts = tuple(
            Judgment(question=a.question, model=a.model, condition=a.condition, judge="human:A", label="equivalent")
            for a in free
        )
        judge_folder(AnswerFolder.open(run.path), JudgingJob(humans=verdicts), tmp_path / name)
        folders.append(open_artefact(tmp_path / name))
    first, second = (measurement_of(each, ("m", "closed"), "") for each in folders)
    assert settings_that_differ(first, second) == ("instruction best / brief",)


def test_another_model_under_one_name_is_told(tmp_path: Path) -> None:
    for name, identity in (("a", "weights-1; threads=2"), ("b", "weights-2; threads=2"), ("c", "weights-1; threads=8")):
        run_of(tmp_path / name, chosen(AFTER), models={"answer": identity})
    other = compare_answers([tmp_path / "a", tmp_path / "b"])
    assert other.pairs[0].settings == ("model behind m weights-1 / weights-2",)
    assert compare_answers([tmp_path / "a", tmp_path / "c"]).pairs[0].settings == ()
    run_of(tmp_path / "d", chosen(AFTER, "m[temperature=0.6]"), models={"answer": "weights-1; threads=2"})
    warm = compare_answers([tmp_path / "a", tmp_path / "d"])
    assert warm.pairs[0].settings == ("temperature not recorded / 0.6",)


def test_questions_with_the_same_documents_are_drawn_together(tmp_path: Path) -> None:
    """Twenty pairs of questions with the same two documents: the interval is that of twenty, not of forty."""
    alone = [replace(q, documents=(f"own {n}",)) for n, q in enumerate(questions())]
    linked = [
        replace(q, documents=(f"a {n // 2}", f"b {n // 2}") if n % 2 else (f"b {n // 2}", f"a {n // 2}"))
        for n, q in enumerate(questions())
    ]
    widths = []
    for name, asked in (("alone", alone), ("linked", linked)):
        run_of(tmp_path / f"{name} a", chosen("w" * 40), asked)
        run_of(tmp_path / f"{name} b", chosen("rrww" * 10), asked)
        [row] = compare_answers([tmp_path / f"{name} a", tmp_path / f"{name} b"]).differences
        widths.append(row.paired.interval.high - row.paired.interval.low)
    assert widths[1] > 1.2 * widths[0]


def test_questions_that_read_otherwise_are_refused(tmp_path: Path) -> None:
    run_of(tmp_path / "a", chosen(BEFORE))
    changed = [replace(q, text="Another question?") if q.id == "q003" else q for q in questions()]
    run_of(tmp_path / "b", chosen(AFTER), changed)
    with pytest.raises(InputError, match="'q003' has another text in b than in a"):
        compare_answers([tmp_path / "a", tmp_path / "b"])
    more = [replace(q, options=(*q.options, "Delta")) for q in questions()]
    run_of(tmp_path / "b", chosen(AFTER), more)
    with pytest.raises(InputError, match="40 questions are not the same in these folders: 'q000' has other options"):
        compare_answers([tmp_path / "a", tmp_path / "b"])
    renamed = [replace(q, id=f"x{q.id}") for q in questions()]
    run_of(tmp_path / "c", [replace(a, question=f"x{a.question}") for a in chosen(AFTER)], renamed)
    with pytest.raises(UsageError, match="no question in common"):
        compare_answers([tmp_path / "a", tmp_path / "c"])


def test_questions_of_one_folder_only_are_counted(tmp_path: Path) -> None:
    run_of(tmp_path / "a", chosen(BEFORE))
    run_of(tmp_path / "b", chosen(AFTER[:30]), questions(30))
    compared = compare_answers([tmp_path / "a", tmp_path / "b"])
    assert compared.differences[0].paired.n == 30
    assert compared.differences[0].unpaired == 10
    assert any("10 questions" in each for each in warnings_of(compared))


def test_systems_that_were_asked_nothing_in_common_are_left_out_and_counted(tmp_path: Path) -> None:
    run_of(tmp_path / "a", [*chosen(BEFORE, "m1")[:20], *chosen(BEFORE, "m2")[20:]])
    run_of(tmp_path / "b", chosen(AFTER, "m9")[:20])
    compared = compare_answers([tmp_path / "a", tmp_path / "b"])
    assert [(pair.first.model, pair.second.model) for pair in compared.pairs] == [("m1", "m9")]
    assert compared.apart == 1
    assert any("1 pair of systems" in each for each in warnings_of(compared))
    with pytest.raises(UsageError, match="no two systems answered the same question"):
        compare_answers([tmp_path / "a", tmp_path / "b"], systems=["m2", "m9"])


def test_systems_are_paired_and_picked(tmp_path: Path) -> None:
    both = [*chosen(BEFORE, "m1"), *chosen(AFTER, "m2")]
    run_of(tmp_path / "a", both)
    run_of(tmp_path / "b", [*chosen(AFTER, "m1"), *chosen(AFTER, "m3", "oracle")])
    run_of(tmp_path / "c", [*chosen(AFTER, "m8"), *chosen(AFTER, "m9", "oracle")])
    paths = [tmp_path / name for name in "abc"]

    def pairs(*names: int, **more: object) -> list[tuple[str, str]]:
        found = compare_answers([paths[n] for n in names], **more)  # type: ignore[arg-type]
        return [(pair.first.model, pair.second.model) for pair in found.pairs]

    assert pairs(0, 1) == [("m1", "m1")]
    assert pairs(0, 2) == [("m1", "m8"), ("m1", "m9"), ("m2", "m8"), ("m2", "m9")]
    assert pairs(0, 1, 2) == [("m1", "m1"), ("m1", "m8"), ("m1", "m9"), ("m2", "m8"), ("m2", "m9")]
    assert pairs(0, 1, baseline="m2") == [("m2", "m1"), ("m2", "m1"), ("m2", "m3")]
    assert pairs(0, 1, systems=["m2 · closed, letter", "oracle, letter"]) == [("m2", "m3")]
    with pytest.raises(UsageError, match="several systems are called"):
        pairs(0, 1, baseline="closed, letter")
    with pytest.raises(UsageError, match="no system is called 'm7'"):
        pairs(0, 1, baseline="m7")
    with pytest.raises(UsageError, match="no system 'm7'"):
        pairs(0, 1, systems=["m7"])
    with pytest.raises(UsageError, match="nothing to compare"):
        pairs(0, 1, systems=["m3"])
    with pytest.raises(UsageError, match="each named once"):
        pairs(0, 0)


def test_too_many_pairs_are_refused(tmp_path: Path) -> None:
    for name in "ab":
        run_of(tmp_path / name, [a for n in range(30) for a in chosen("rw", f"{name}{n}")], questions(2))
    with pytest.raises(UsageError, match="900 pairs"):
        compare_answers([tmp_path / "a", tmp_path / "b"])


def test_free_text_that_nobody_judged_is_refused(tmp_path: Path) -> None:
    free = [replace(a, protocol="", choice=None) for a in chosen("rr", protocol="")]
    run_of(tmp_path / "a", free, questions(2))
    run_of(tmp_path / "b", [*chosen("rw"), *free], questions(2))
    with pytest.raises(UsageError, match="have not been judged"):
        compare_answers([tmp_path / "b", tmp_path / "a"])
    run_of(tmp_path / "c", chosen("ww"), questions(2))
    assert any(
        "2 answers in b are free text" in each
        for each in warnings_of(compare_answers([tmp_path / "b", tmp_path / "c"]))
    )


def test_cut_text_is_said_before_the_differences(tmp_path: Path) -> None:
    cut = [replace(each, dropped=("d1", "d2 (cut)")) if n < 3 else each for n, each in enumerate(chosen("rwrw"))]
    windows = {"windows": {"answer": {"tokens": 2048, "source": "configured"}}}
    first = run_of(tmp_path / "first", chosen("rrrr", model="other"))
    second = run_of(tmp_path / "second", cut, settings=windows)
    compared = compare_answers([first.path, second.path])
    written = write_answers(tmp_path / "out", compared)
    page = written.file("report.html").read_text("utf-8")
    said = "for 3 of 4 answers (m · closed, letter)"
    assert said in warnings_of(compared)[0]
    assert "(2,048 tokens, as configured)" in warnings_of(compared)[0]
    assert page.index(said) < page.index("What was found")
    assert not any("Text was cut in first" in each for each in warnings_of(compared))


def test_a_report_says_what_was_cut_before_its_findings(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [replace(each, dropped=("d1",)) for each in chosen("rwrwrw")])
    whole = run_of(tmp_path / "whole", chosen("rwrwrw"))
    report = build_report([run.path, whole.path], tmp_path / "report")
    page, plain = (report.file(f"report.{name}").read_text("utf-8") for name in ("html", "md"))
    for text in (page, plain):
        assert text.count("Text was cut in") == 1
    assert page.index("6 of 6 answers") < page.index("What was found")
