"""Published figures: each as the paper prints it, and beside ours marked as theirs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hoofbeat.errors import UsageError
from hoofbeat.reports.section import ReportInputs, ReportOptions
from hoofbeat.reports.sections.published_section import SECTION, PaperTable, papers, published_chapter
from tests.helpers import shared_data
from tests.reports import examples, scored
from tests.reports.test_scores import build, pattern, rows_of

SEEDS = {"ogcare": "000", "cupcase": "001", "r2med": "002", "clinbench": "003", "transplantqa": "004"}
PRINTED = {"GPT-4o": "GPT-40", "BioMistral": "Bio Mistral"}  # as CUPCase's text was read from its pages
SPELLED = {
    "best specialised model": "specialized models",
    "second annotator": "Inter-annotator",
    "102 handbooks": "Per-handbook",
    "Query2Doc with GPT-4o": "Query2Doc with GPT-4o",
    "HyDE with Llama3.1-70B-Instruct": "Llama3.1-70B-Instruct",
    "HyDE with DeepSeek-R1-Distill-Llama-70B": "DeepSeek-R1-Distill-Llama-70B",
    "Search-o1 with QwQ-32B": "Search-o1 QwQ-32B",
}
FIGURES = [(name, table, row) for name, paper in papers().items() for table in paper.tables for row in table.rows]


def paper_lines(name: str) -> list[str]:
    folder = shared_data("README.md").parents[1] / "seeds"
    found = next(iter(folder.glob(f"{SEEDS[name]}_*.txt")), None)
    if found is None:
        pytest.skip("needs ../shared/seeds, which is not here")
    return [line.replace("\\", "").replace("Cohen’s", "") for line in found.read_text("utf-8").splitlines()]


def test_every_paper_has_a_text_to_be_checked_against() -> None:
    assert set(papers()) == set(SEEDS)
    assert len(FIGURES) > 80


@pytest.mark.parametrize(("name", "table", "row"), FIGURES, ids=lambda value: str(value)[:60])
def test_a_figure_stands_in_its_paper(name: str, table: PaperTable, row: tuple[str, ...]) -> None:
    system, _, *figures = row
    said = SPELLED.get(system, PRINTED.get(system, system) if name == "cupcase" else system)
    numbers = [rf"(?<![\d.]){re.escape(figure)}(?!\d|\.\d)" for figure in figures if figure]
    assert numbers
    for line in paper_lines(name):
        place = line.find(said)
        if place >= 0 and all(re.search(number, line) for number in numbers):
            return
    pytest.fail(f"{name}, {table.table}: no line names {said} with {', '.join(figures)}")


@pytest.mark.parametrize("name", ["cupcase", "clinbench"])
def test_figures_of_a_table_stand_in_one_column(name: str) -> None:
    """Rows printed as tables: the figure is in the same column for every system of a table."""
    lines = [line.split("\t") for line in paper_lines(name) if line.count("\t") > 1]
    for table in papers()[name].tables:
        if not table.table.startswith("table"):
            continue
        places: list[set[int]] = []
        for system, _, printed, *_ in table.rows:
            said = PRINTED.get(system, system) if name == "cupcase" else system
            cells = [[re.sub(r"</?u>| \^.*", "", cell) for cell in line] for line in lines if line[0] == said]
            places.append({place for line in cells for place, cell in enumerate(line) if place and cell == printed})
        assert set.intersection(*places), table.caption


def test_ours_stand_beside_theirs_and_are_told_apart(tmp_path: Path) -> None:
    asked = scored.questions(40)
    answers = scored.choices(asked, "mine", "closed", pattern(40, right=10, unread=2))
    free, judgments = scored.free(asked, "mine", "closed", pattern(40, right=30))
    made = [
        scored.run(tmp_path / "run", asked, answers),
        scored.judged(tmp_path / "judged", asked, free, judgments),
    ]
    report = build(tmp_path / "report", *made, options=ReportOptions(published=("cupcase", "ogcare")))
    rows = rows_of(report, "published-cupcase-1")
    assert [(row["origin"], row["condition"], row["unscored"]) for row in rows[:1]] == [
        ("this report", "closed, letter", "2")
    ]
    assert all(row["origin"].startswith("published") for row in rows[1:])
    theirs = {row["model"]: row for row in rows[1:]}
    assert float(theirs["Meditron-70B"]["accuracy"]) == pytest.approx(0.8555)
    assert float(theirs["Meditron-70B"]["sd"]) == pytest.approx(0.0092)
    closed = [row for row in rows_of(report, "published-ogcare-1") if row["origin"] == "this report"]
    assert [(row["condition"], float(row["accuracy"])) for row in closed] == [("closed", 0.75)]
    text = report.file("report.md").read_text("utf-8")
    assert "85.55%" in text
    assert "Questions, prompts, models and judges differ from ours" in text
    assert report.manifest.settings["published"] == ["cupcase", "ogcare"]


def test_rankings_stand_beside_published_retrieval(tmp_path: Path) -> None:
    """R2MED publishes averages over sets: ours over several sets stand beside them, and those of one set don't."""
    first = examples.rankings(tmp_path / "one", "bm25", 0.6, bed="Biology")
    second = examples.rankings(tmp_path / "two", "bm25", 0.2, bed="PMC-Clinical", searched="others")
    alone = build(tmp_path / "alone", first, options=ReportOptions(published=("r2med",)))
    assert rows_of(alone, "published-r2med-1")[0]["model"] == "BM25"
    report = build(tmp_path / "report", first, second, options=ReportOptions(published=("r2med",)))
    rows, column = rows_of(report, "published-r2med-1"), "nDCG@10, average over sets"
    assert [(row["model"], row["condition"]) for row in rows[:2]] == [("bm25", "2 sets"), ("BM25", "")]
    assert float(rows[1][column]) == pytest.approx(0.1513)
    [average] = rows_of(report, "sets-ndcg-10")
    ours = [float(average[name]) for name in ("Biology", "PMC-Clinical", "nDCG@10, average")]
    assert ours[2] == pytest.approx((ours[0] + ours[1]) / 2, abs=1e-9)
    assert float(rows[0][column]) == pytest.approx(ours[2])


def test_no_published_chapter_unless_asked() -> None:
    assert SECTION.build(ReportInputs(artefacts={}, options=ReportOptions())) == []
    with pytest.raises(UsageError, match="no published figures of 'medqa'"):
        published_chapter(("medqa",), [])
