"""Scores in a report: every figure against one computed here, and no section without its data."""

from __future__ import annotations

import csv
from math import comb
from pathlib import Path
from statistics import mean, stdev

import pytest
from msgspec.structs import replace

from hoofbeat.records import Answer, Failure, Judgment, Question, TraceStep
from hoofbeat.reports.report_build import build_report
from hoofbeat.reports.report_writer import ALL_FORMATS
from hoofbeat.reports.section import ReportOptions
from hoofbeat.reports.sections.published_section import papers
from hoofbeat.store import Artefact
from tests.reports import scored
from tests.reports.examples import HOSTILE
from tests.reports.parsing import parsed, words

SECTIONS = (
    "Leaderboard",
    "Models and conditions",
    "Differences to the closed book",
    "Models against each other",
    "By specialty",
    "Rare diseases",
    "How much of the case does a model need?",
    "Right every time: worst@k",
    "Runs and bootstrap samples",
    "Sensitivity and specificity",
    "Text against images",
    "Measured scores",
    "Failure modes",
    "Error types",
    "Relevance of the passages",
    "The judge",
    "Answers to doubt",
    "Cost",
)


def build(target: Path, *artefacts: Artefact, **more: object) -> Artefact:
    return build_report([item.path for item in artefacts], target, title="A test", **more)  # type: ignore[arg-type]


def rows_of(report: Artefact, name: str) -> list[dict[str, str]]:
    with report.file(f"tables/{name}.csv").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def headings(report: Artefact) -> list[str]:
    tree = parsed(report.file("report.html").read_text("utf-8"))
    return [words(node) for node in tree.xpath("//main//h3")]


def pattern(count: int, *, right: int, unread: int = 0) -> list[bool | None]:
    """The first so many right, the last so many unread, the rest wrong."""
    return [*[True] * right, *[False] * (count - right - unread), *[None] * unread]


@pytest.fixture(scope="module")
def asked() -> list[Question]:
    return scored.questions(40)


@pytest.fixture(scope="module")
def grid(asked: list[Question], tmp_path_factory: pytest.TempPathFactory) -> Artefact:
    """Two models, closed book and oracle and first parts, by letter; one run of each."""
    folder = tmp_path_factory.mktemp("grid")
    answers: list[Answer] = []
    for model, plan in {
        "one": {"closed": (20, 2), "oracle": (32, 0), "first 20%": (8, 1), "first 60%": (16, 0)},
        "two": {"closed": (10, 0), "oracle": (24, 4), "first 20%": (5, 0), "first 60%": (9, 0)},
    }.items():
        for condition, (right, unread) in plan.items():
            answers += scored.choices(asked, model, condition, pattern(40, right=right, unread=unread))
    return build(folder / "report", scored.run(folder / "run", asked, answers))


def test_leaderboard_keeps_the_planned_denominator(grid: Artefact) -> None:
    rows = {(row["model"], row["condition"]): row for row in rows_of(grid, "run-1-leaderboard")}
    assert list(rows) == [
        ("one", "oracle, letter"),
        ("two", "oracle, letter"),
        ("one", "closed, letter"),
        ("two", "closed, letter"),
    ]
    row = rows["one", "closed, letter"]
    assert float(row["accuracy, 95% interval"]) == 0.5
    assert (row["right"], row["unscored"], row["planned"]) == ("20", "2", "40")
    assert (float(row["sensitivity low"]), float(row["sensitivity high"])) == (0.5, 0.55)
    assert rows["two", "closed, letter"]["sensitivity low"] == ""
    assert [row["place, 95%"] for row in rows.values()] == ["1", "2", "3", "4"]
    for each in rows.values():
        assert float(each["accuracy, 95% interval low"]) <= float(each["accuracy, 95% interval"])
        assert int(each["place, 95% low"]) <= int(each["place, 95%"]) <= int(each["place, 95% high"])
    assert {(row["model"], row["stage and reason"], row["count"]) for row in rows_of(grid, "run-1-unscored")} == {
        ("one", "choice: ambiguous", "2"),
        ("two", "choice: ambiguous", "4"),
    }


def test_every_score_has_its_unscored_beside_it(grid: Artefact) -> None:
    for name in grid.manifest.files:
        if not name.startswith("tables/run-1-") or not name.endswith(".csv"):
            continue
        with grid.file(name).open(encoding="utf-8", newline="") as stream:
            header = next(csv.reader(stream))
        scores = ("accuracy", "worst@k", "sensitivity", "mean", "rare,", "closed, letter", "oracle, letter")
        if any(title.startswith(scores) for title in header):
            assert any("unscored" in title for title in header), (name, header)


def test_grid_and_deltas(grid: Artefact) -> None:
    table = {row["model"]: row for row in rows_of(grid, "run-1-grid")}
    assert float(table["one"]["oracle, letter"]) == 0.8
    assert table["two"]["oracle, letter, unscored"] == "4"
    deltas = {(row["model"], row["condition"]): row for row in rows_of(grid, "run-1-differences")}
    assert set(deltas) == {("one", "oracle, letter"), ("two", "oracle, letter")}
    row = deltas["one", "oracle, letter"]
    assert float(row["this − against, fraction"]) == pytest.approx(0.3)
    assert (row["only this right"], row["only that right"]) == ("12", "0")
    assert float(row["p"]) == pytest.approx(2 * 0.5**12)
    svg = grid.file("charts/run-1-grid.svg").read_text("utf-8")
    assert ">+30.0<" in svg
    assert ">80%<" in svg


def test_models_are_compared_under_the_same_condition(grid: Artefact) -> None:
    rows = rows_of(grid, "run-1-models")
    assert {(row["model"], row["against"], row["condition"]) for row in rows} == {
        ("one", "two", "closed, letter"),
        ("one", "two", "oracle, letter"),
    }
    by_condition = {row["condition"]: row for row in rows}
    assert float(by_condition["closed, letter"]["this − against, fraction"]) == pytest.approx(0.25)
    assert float(by_condition["closed, letter"]["Holm p"]) == pytest.approx(2 * 2 * 0.5**10)


def test_facets_and_rare(grid: Artefact, asked: list[Question]) -> None:
    right = {question.id for question in asked[:20]}
    for row in rows_of(grid, "run-1-by-specialty"):
        if (row["model"], row["condition"]) != ("one", "closed, letter"):
            continue
        members = [q.id for q in asked if q.facets["specialty"] == row["specialty"].removesuffix(" *")]
        assert int(row["questions"]) == len(members)
        assert float(row["accuracy, 95% interval"]) == pytest.approx(len(right & set(members)) / len(members))
    rare = {q.id for q in asked if q.facets["rare"] == "yes"}
    row = next(row for row in rows_of(grid, "run-1-rare") if row["model"] == "one" and "closed" in row["condition"])
    on_rare, on_others = len(right & rare) / len(rare), len(right - rare) / (len(asked) - len(rare))
    assert float(row["rare, 95%"]) == pytest.approx(on_rare)
    assert float(row["difference, fraction"]) == pytest.approx(on_rare - on_others)
    assert float(row["difference, fraction low"]) <= on_rare - on_others <= float(row["difference, fraction high"])


def test_the_curve_ends_at_the_whole_case(grid: Artefact) -> None:
    rows = [row for row in rows_of(grid, "run-1-cumulative-accuracy") if row["model"] == "one"]
    assert [row["part shown"] for row in rows] == ["20% of tokens", "60% of tokens", "all (closed, letter)"]
    assert [float(row["accuracy"]) for row in rows] == [0.2, 0.4, 0.5]
    assert [row["unscored"] for row in rows] == ["1", "0", "2"]
    assert float(rows[0]["share of the whole case's score"]) == pytest.approx(0.4)
    leaders = {row["condition"] for row in rows_of(grid, "run-1-leaderboard")}
    assert not any(condition.startswith("first") for condition in leaders)


def test_option_decisions(grid: Artefact) -> None:
    row = next(row for row in rows_of(grid, "run-1-options") if row["model"] == "two" and "oracle" in row["condition"])
    assert [int(row[name]) for name in ("TP", "FN", "FP", "TN", "unscored")] == [24, 16, 12, 108, 4]
    assert float(row["sensitivity"]) == 0.6
    assert float(row["specificity"]) == 0.9


def test_costs(grid: Artefact) -> None:
    rows = {row["model"]: row for row in rows_of(grid, "run-1-cost")}
    assert (rows["two"]["calls"], rows["two"]["tokens in"], rows["two"]["cost in $"]) == ("20", "2000", "1.0")
    assert float(rows["two"]["$ per 1,000 answers"]) == pytest.approx(1000 / 160)
    tokens = rows_of(grid, "run-1-tokens")
    assert {(row["tokens in per answer"], row["tokens out per answer"]) for row in tokens} == {("100.0", "10.0")}


def test_sections_stand_only_where_their_data_are(grid: Artefact, asked: list[Question], tmp_path: Path) -> None:
    here = headings(grid)
    for name in ("Text against images", "Measured scores", "Failure modes", "Error types", "The judge"):
        assert name not in here
    assert "Right every time: worst@k" not in here
    assert [name for name in SECTIONS if name in here] == [name for name in here if name in SECTIONS]
    bare = [replace(question, facets={}) for question in asked]
    answers = scored.choices(bare, "only", "closed", pattern(40, right=7))
    alone = build(tmp_path / "report", scored.run(tmp_path / "run", bare, answers))
    assert headings(alone) == [
        "Leaderboard",
        "Runs and bootstrap samples",
        "Sensitivity and specificity",
        "Cost",
        "Question by question",
        "run: run",
    ]


def test_samples_give_worst_at_k_and_the_mean_of_runs(asked: list[Question], tmp_path: Path) -> None:
    rights = [31, 20, 9]
    answers = [
        answer
        for sample, right in enumerate(rights)
        for answer in scored.choices(asked, "m", "closed", pattern(40, right=right), sample=sample)
    ]
    report = build(
        tmp_path / "report", scored.run(tmp_path / "run", asked, answers), options=ReportOptions(draws=4, size=25)
    )
    counts = [sum(number < right for right in rights) for number in range(40)]
    rows = rows_of(report, "run-1-worst")
    assert [int(row["k"]) for row in rows] == [1, 2, 3]
    for row in rows:
        expected = mean(comb(count, int(row["k"])) / comb(3, int(row["k"])) for count in counts)
        assert float(row["worst@k"]) == pytest.approx(expected)
    runs = rows_of(report, "run-1-runs")[0]
    assert float(runs["mean accuracy"]) == pytest.approx(mean(right / 40 for right in rights))
    assert float(runs["sd over runs"]) == pytest.approx(stdev(right / 40 for right in rights))
    few = rows_of(report, "run-1-bootstrap")[0]
    assert 0.3 < float(few["mean"]) < 0.7
    assert "4 bootstrap samples of 25 questions" in report.file("report.md").read_text("utf-8")
    assert report.manifest.settings["draws"] == 4


def test_two_protocols_are_not_ranked_together(asked: list[Question], tmp_path: Path) -> None:
    answers, judgments = scored.free(asked, "m", "closed", pattern(40, right=30, unread=4))
    free = scored.judged(tmp_path / "judged", asked, answers, judgments)
    choices = scored.run(tmp_path / "run", asked, scored.choices(asked, "m", "closed", pattern(40, right=10)))
    report = build(tmp_path / "report", free, choices)
    assert {"Leaderboard, free text", "Leaderboard, letter"} <= set(headings(report))
    first, second = rows_of(report, "judgments-1-leaderboard"), rows_of(report, "judgments-1-leaderboard-2")
    assert [(row["condition"], row["place, 95%"], row["unscored"]) for row in first] == [("closed", "1", "4")]
    assert [(row["condition"], row["place, 95%"]) for row in second] == [("closed, letter", "1")]
    assert not report.has("tables/judgments-1-differences.csv")
    assert "Folders of this chapter: judged, run." in words(parsed(report.file("report.html").read_text("utf-8")))


def test_free_text_without_equivalence_has_no_accuracy(asked: list[Question], tmp_path: Path) -> None:
    answers, judgments = scored.free(asked, "m", "closed", pattern(40, right=30))
    measured = [replace(each, aspect="rouge-l", label="", score=0.25, judge="rouge-l") for each in judgments]
    report = build(tmp_path / "report", scored.judged(tmp_path / "judged", asked, answers, measured))
    assert "Leaderboard" not in headings(report)
    assert "so it has no accuracy: m · closed" in words(parsed(report.file("report.html").read_text("utf-8")))
    assert float(rows_of(report, "judgments-1-measured")[0]["mean, 95% interval"]) == 0.25


def test_measured_scores_count_failures_as_zero(asked: list[Question], tmp_path: Path) -> None:
    answers, judgments = scored.free(asked, "m", "closed", pattern(40, right=30, unread=10))
    more = [
        replace(each, aspect="bertscore", label="", judge="tiny layer 2", score=None if each.failure else 0.8)
        for each in judgments
    ]
    report = build(tmp_path / "report", scored.judged(tmp_path / "judged", asked, answers, [*judgments, *more]))
    row = rows_of(report, "judgments-1-measured")[0]
    assert (row["scorer"], row["unscored"]) == ("tiny layer 2", "10")
    assert float(row["mean, 95% interval"]) == pytest.approx(0.6)
    assert float(row["mean of the scored"]) == pytest.approx(0.8)


def test_scores_of_different_encoders_are_kept_apart(asked: list[Question], tmp_path: Path) -> None:
    one, judgments = scored.free(asked, "m", "closed", pattern(40, right=30))
    two, others = scored.free(asked, "n", "closed", pattern(40, right=30))
    more = [replace(each, aspect="bertscore", label="", judge="bertscore: a; layer 2", score=0.8) for each in judgments]
    more += [replace(each, aspect="bertscore", label="", judge="bertscore: b; layer 9", score=0.4) for each in others]
    mixed = scored.judged(tmp_path / "judged", asked, [*one, *two], [*judgments, *others, *more])
    report = build(tmp_path / "report", mixed)
    rows = rows_of(report, "judgments-1-measured")
    assert [(row["score"], row["scorer"], row["model"], float(row["mean, 95% interval"])) for row in rows] == [
        ("bertscore, scorer 1", "bertscore: a; layer 2", "m", 0.8),
        ("bertscore, scorer 2", "bertscore: b; layer 9", "n", 0.4),
    ]
    told = words(parsed(report.file("report.html").read_text("utf-8")))
    assert "Values of different scorers can't be compared" in told
    assert "bertscore, scorer 2: bertscore: b; layer 9" in told


def test_failure_modes_count_second_labels_apart(asked: list[Question], tmp_path: Path) -> None:
    answers, judgments = scored.free(asked, "m", "oracle", pattern(40, right=30))
    labels = ["grounding"] * 4 + ["objective"] * 5
    wrong = [each for each in judgments if each.label == "mismatch"]
    modes = [
        replace(each, aspect="failure-mode", label=label, secondary="stage" if place < 3 else "")
        for place, (each, label) in enumerate(zip(wrong, labels, strict=False))
    ]
    failed = Failure(kind="schema", message="not one of the labels")
    modes.append(replace(wrong[9], aspect="failure-mode", label="", failure=failed))
    report = build(tmp_path / "report", scored.judged(tmp_path / "judged", asked, answers, [*judgments, *modes]))
    rows = {row["label"]: row for row in rows_of(report, "judgments-1-failure-mode")}
    assert (rows["grounding"]["first"], rows["grounding"]["explained"], rows["stage"]["second"]) == ("4", "10", "3")
    assert float(rows["objective"]["share, 95% Wilson"]) == 0.5
    assert {row["unscored"] for row in rows.values()} == {"1"}
    assert float(rows["stage"]["share, 95% Wilson"]) == 0.0


def test_images_against_text(asked: list[Question], tmp_path: Path) -> None:
    answers = scored.choices(asked, "m", "closed", pattern(40, right=20))
    answers += scored.choices(asked, "m", "images", pattern(40, right=14))
    report = build(tmp_path / "report", scored.run(tmp_path / "run", asked, answers))
    row = rows_of(report, "run-1-images")[0]
    assert (row["condition"], row["against"]) == ("images, letter", "closed, letter")
    assert float(row["this − against, fraction"]) == pytest.approx(-0.15)


def test_editions_with_and_without_images(asked: list[Question], tmp_path: Path) -> None:
    pictured = [replace(question, text="See the figure.", images=("figure.png",)) for question in asked]
    text = scored.run(tmp_path / "text", asked, scored.choices(asked, "m", "closed", pattern(40, right=20)))
    answers = scored.choices(pictured, "m", "closed", pattern(40, right=10))
    answers += scored.choices(pictured, "m", "images", pattern(40, right=26))
    image = scored.run(tmp_path / "image", pictured, answers)
    report = build(tmp_path / "report", text, image)
    rows = {row["condition"]: row for row in rows_of(report, "run-2-editions")}
    assert list(rows) == ["images, letter (image edition)", "closed, letter (image edition, text only)"]
    assert {row["against"] for row in rows.values()} == {"closed, letter"}
    assert float(rows["images, letter (image edition)"]["this − against, fraction"]) == pytest.approx(0.15)
    assert float(rows["closed, letter (image edition, text only)"]["this − against, fraction"]) == pytest.approx(-0.25)
    (within,) = rows_of(report, "run-2-images")
    assert (within["condition"], within["against"]) == ("images, letter", "closed, letter")
    assert float(within["this − against, fraction"]) == pytest.approx(0.4)


def test_questions_without_options_under_a_choice_protocol(asked: list[Question], tmp_path: Path) -> None:
    mixed = [replace(asked[0], options=(), answer="Some words."), *asked[1:]]
    answers = scored.choices(asked, "m", "closed", pattern(40, right=20))
    failure = Failure(kind="input", message="the question has no options")
    answers[0] = replace(answers[0], choice=None, text="", options=(), reading="", usage=None, failure=failure)
    report = build(tmp_path / "report", scored.run(tmp_path / "run", mixed, answers))
    (row,) = rows_of(report, "run-1-leaderboard")
    assert (row["right"], row["unscored"], row["planned"]) == ("19", "1", "40")
    (options,) = rows_of(report, "run-1-options")
    assert [int(options[name]) for name in ("TP", "FN", "unscored")] == [19, 20, 1]


def test_wilson_in_place_of_no_spread_is_named_wherever_it_stands(asked: list[Question], tmp_path: Path) -> None:
    answers = []
    for model in ("one", "two"):
        answers += scored.choices(asked, model, "closed", pattern(40, right=0))
        answers += scored.choices(asked, model, "oracle", pattern(40, right=20))
    report = build(tmp_path / "report", scored.run(tmp_path / "run", asked, answers))
    tree = parsed(report.file("report.html").read_text("utf-8"))
    cards = [words(node) for node in tree.xpath("//*[contains(@class, 'card')]")]
    assert any("closed, letter" in card and "95% interval (Wilson's score)" in card for card in cards)
    assert any("oracle, letter" in card and "95% interval (cluster bootstrap)" in card for card in cards)
    named = "cluster bootstrap; Wilson's score for one · closed, letter, two · closed, letter"
    told = report.file("report.md").read_text("utf-8")
    assert told.count(named) >= 3  # leaderboard, grid and cost
    assert "95% bootstrap" not in told
    for name in ("run-1-leaderboard", "run-1-tokens"):
        by = {(row["condition"], row["interval by"]) for row in rows_of(report, name)}
        assert by == {("closed, letter", "Wilson's score"), ("oracle, letter", "cluster bootstrap")}
    assert "(95%, Wilson" in report.file("charts/run-1-grid.svg").read_text("utf-8")


def test_tied_systems_and_few_differing_questions(asked: list[Question], tmp_path: Path) -> None:
    several = [replace(question, documents=(f"d{number // 4}",)) for number, question in enumerate(asked)]
    answers = [
        answer for model in ("one", "two") for answer in scored.choices(several, model, "closed", pattern(40, right=10))
    ]
    answers += scored.choices(several, "three", "closed", pattern(40, right=9))
    report = build(tmp_path / "report", scored.run(tmp_path / "run", several, answers))
    places = {row["model"]: row for row in rows_of(report, "run-1-leaderboard")}
    assert [(row["place, 95%"], row["tied with"]) for row in places.values()] == [("1", "1"), ("1", "1"), ("3", "0")]
    assert (places["one"]["place, 95% low"], places["one"]["place, 95% high"]) == ("1", "3")
    assert "Tied systems share a rank" in report.file("report.md").read_text("utf-8")
    (same,) = [row for row in rows_of(report, "run-1-models") if {row["model"], row["against"]} == {"one", "two"}]
    assert same["interval by"] == "Tango's score"
    assert float(same["this − against, fraction low"]) < 0 < float(same["this − against, fraction high"])
    assert float(same["p by clusters"]) == 1.0


def test_chapters_with_one_title_name_their_folders(asked: list[Question], tmp_path: Path) -> None:
    others = [replace(each, id=f"other-{each.id}", text=f"And now: {each.text}") for each in asked]
    made = [
        scored.judged(tmp_path / name, questions, *scored.free(questions, "m", "closed", pattern(40, right=30)))
        for name, questions in (("one", asked), ("two", others))
    ]
    text = build(tmp_path / "report", *made).file("report.md").read_text("utf-8")
    assert "## Answers of m to 40 questions: one\n" in text
    assert "## Answers of m to 40 questions: two\n" in text
    alone = build(tmp_path / "alone", made[0]).file("report.md").read_text("utf-8")
    assert "Answers of m to 40 questions: one" not in alone
    assert "Folder of this chapter: one." in alone


def test_bootstrap_samples_larger_than_the_benchmark_say_so(asked: list[Question], tmp_path: Path) -> None:
    answers, judgments = scored.free(asked, "m", "closed", pattern(40, right=30))
    more = [replace(each, aspect="rouge-l", label="", judge="rouge-l", score=0.8) for each in judgments]
    made = scored.judged(tmp_path / "judged", asked, answers, [*judgments, *more])
    report = build(tmp_path / "report", made)
    text = report.file("report.md").read_text("utf-8")
    assert "8 bootstrap samples of 500 questions, more than the 40 there are" in text
    assert "mean of 8 × 500 (of 40)" in rows_of(report, "judgments-1-measured")[0]
    small = build(tmp_path / "small", made, options=ReportOptions(draws=4, size=40))
    assert "more than the" not in small.file("report.md").read_text("utf-8")


def test_a_run_is_not_scored_twice_with_its_judgments(asked: list[Question], tmp_path: Path) -> None:
    answers = scored.choices(asked, "m", "closed", pattern(40, right=20))
    run = scored.run(tmp_path / "run", asked, answers)
    judged = scored.judged(tmp_path / "judged", asked, answers, [], inputs=[run.reference()])
    report = build(tmp_path / "report", run, judged)
    assert [name for name in report.manifest.files if "leaderboard" in name and name.endswith("csv")] == [
        "tables/judgments-1-leaderboard.csv"
    ]
    assert rows_of(report, "judgments-1-cost")[0]["cost in $"] == "0.5"


def test_systems_that_share_no_question_have_no_place(asked: list[Question], tmp_path: Path) -> None:
    answers = scored.choices(asked[:10], "one", "closed", pattern(10, right=4))
    answers += scored.choices(asked[10:], "two", "closed", pattern(30, right=15))
    report = build(tmp_path / "report", scored.run(tmp_path / "run", asked, answers))
    rows = rows_of(report, "run-1-leaderboard")
    assert [(row["model"], row["place, 95%"]) for row in rows] == [("two", ""), ("one", "")]
    assert "no two of them were asked the same questions" in report.file("report.md").read_text("utf-8")


def test_hostile_names_in_scores(asked: list[Question], tmp_path: Path) -> None:
    nasty = [
        replace(question, facets={"specialty": HOSTILE if n % 2 else "=cmd()"}) for n, question in enumerate(asked)
    ]
    answers = scored.choices(nasty, HOSTILE, "closed", pattern(40, right=20, unread=3))
    answers += scored.choices(nasty, r"\input{/etc/passwd} 50% & a_b", "closed", pattern(40, right=9))
    report = build(tmp_path / "report", scored.run(tmp_path / "run", nasty, answers))
    tree = parsed(report.file("report.html").read_text("utf-8"))
    assert not tree.xpath("//main//script | //img | //iframe | //*[@onload] | //*[@onerror]")
    for name in report.manifest.files:
        if name.endswith(".csv"):
            with report.file(name).open(encoding="utf-8", newline="") as stream:
                assert not any(cell.lstrip().startswith(("=", "@")) for row in csv.reader(stream) for cell in row)
        if name.endswith(".tex"):
            assert r"\input{/etc" not in report.file(name).read_text("utf-8")
    assert report.verify() == []


def test_the_docs_name_every_section_paper_and_format() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "reports.md").read_text(encoding="utf-8")
    for name in SECTIONS:
        assert name.partition(":")[0] in text, name
    for name in (*papers(), *(word for word in ALL_FORMATS if word not in {"html", "markdown"})):
        assert f"`{name}`" in text or f"--format {name}" in text, name


def test_answers_that_read_their_own_source_are_counted(tmp_path: Path) -> None:
    asked = scored.questions(6)
    closed = scored.choices(asked, "m", "closed", pattern(6, right=2))
    agent = scored.choices(asked, "m", "agent over bm25", pattern(6, right=5))
    copied = "read PMC2, which has its source's title"
    agent[0] = replace(agent[0], warnings=("read its own source report: PMC1", copied), dropped=("PMC3",))
    agent[1] = replace(agent[1], warnings=("read its own source report: PMC1",))
    report = build(tmp_path / "report", scored.run(tmp_path / "run", asked, [*closed, *agent]))
    (row,) = rows_of(report, "run-1-doubts")
    assert row["condition"] == "agent over bm25, letter"
    counts = [row[name] for name in ("answers", "read their own source", "read its title elsewhere")]
    assert [*counts, row["documents left out"]] == ["6", "2", "1", "1"]
    plain = build(tmp_path / "plain", scored.run(tmp_path / "closed", asked, closed))
    assert "Answers to doubt" not in headings(plain)


def test_people_beside_models_are_pooled_and_change_no_place(asked: list[Question], tmp_path: Path) -> None:
    models = scored.choices(asked, "good", "closed", pattern(40, right=30))
    models += scored.choices(asked, "weak", "closed", pattern(40, right=12))
    people = []
    for person, first in (("human:A", 0), ("human:B", 5)):
        for number, answer in enumerate(
            scored.choices(asked[first : first + 10], person, "closed", pattern(10, right=6))
        ):
            why = "inside" if number < 5 else "outside"
            people.append(replace(answer, trace=(TraceStep(stage="exam", what="answered", text=f"3.0 s, {why}"),)))
    alone = build(tmp_path / "alone", scored.run(tmp_path / "models", asked, models))
    both = build(tmp_path / "both", scored.run(tmp_path / "run", asked, [*models, *people]))
    places = [{row["model"]: row["place, 95%"] for row in rows_of(each, "run-1-leaderboard")} for each in (alone, both)]
    assert {name: places[1][name] for name in places[0]} == places[0] == {"good": "1", "weak": "2"}
    board = {row["model"]: row for row in rows_of(both, "run-1-leaderboard")}
    assert (board["human:A"]["placed among"], board["human:A"]["by questions"]) == ("3", "10")
    assert (board["good"]["placed among"], board["good"]["by questions"]) == ("2", "40")
    pooled = {row["who"]: row for row in rows_of(both, "run-1-experts")}
    assert list(pooled) == [
        "human experts",
        "human experts, inside their specialty",
        "human experts, outside their specialty",
    ]
    experts = pooled["human experts"]
    assert (experts["people"], experts["questions"], experts["answers"]) == ("2", "15", "20")
    assert float(experts["accuracy, 95% interval"]) == pytest.approx(0.6)
    assert experts["models asked the same questions"] == "2"
    beside = {(row["who"], row["model"]): row for row in rows_of(both, "run-1-experts-models")}
    assert beside["human experts", "good"]["shared questions"] == "15"
    assert float(beside["human experts", "good"]["model's accuracy, 95%"]) == 1.0
    assert "Inside minus outside their specialty" in both.file("report.md").read_text("utf-8")


def test_the_curve_of_a_score_needs_no_judge(asked: list[Question], tmp_path: Path) -> None:
    """CUPCase's figure 4: BERTScore over the first part of the case, where nobody judged right and wrong."""
    answers, scores = [], []
    for condition, start in (("first 20%", 0.6), ("first 100%", 0.8)):
        free, _ = scored.free(asked, "m", condition, pattern(40, right=40))
        answers += free
        scores += [
            Judgment(question=each.question, model="m", condition=condition, judge="bertscore-x", aspect="bertscore",
                     score=start + 0.001 * place)
            for place, each in enumerate(free)
        ]  # fmt: skip
    report = build(tmp_path / "report", scored.judged(tmp_path / "scored", asked, answers, scores, judge=""))
    (first, last) = rows_of(report, "judgments-1-cumulative-bertscore")
    assert float(first["bertscore"]) == pytest.approx(0.6195)
    assert float(last["bertscore"]) == pytest.approx(0.8195)
    assert float(first["share of the whole case's score"]) == pytest.approx(0.6195 / 0.8195)


def test_failure_modes_count_first_or_second(asked: list[Question], tmp_path: Path) -> None:
    answers, judgments = scored.free(asked, "m", "oracle", pattern(40, right=0))
    modes = [
        replace(each, aspect="failure-mode", label="grounding" if place < 10 else "objective",
                secondary="grounding" if 10 <= place < 16 else "")
        for place, each in enumerate(judgments)
    ]  # fmt: skip
    report = build(tmp_path / "report", scored.judged(tmp_path / "judged", asked, answers, [*judgments, *modes]))
    row = next(row for row in rows_of(report, "judgments-1-failure-mode") if row["label"] == "grounding")
    assert (row["first"], row["second"]) == ("10", "6")
    assert float(row["first or second, 95% Wilson"]) == pytest.approx(16 / 40)
