"""Published figures: each as the paper prints it, and beside ours marked as theirs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec import structs

from hoofbeat.errors import UsageError
from hoofbeat.reports.model import tables_in
from hoofbeat.reports.section import OwnFigure, ReportInputs, ReportOptions
from hoofbeat.reports.sections.published_section import SECTION, PaperTable, papers, published_chapter
from hoofbeat.reports.tables import Table
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
    "BMRetriever-410M": "BMRetriever†",
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


def test_ours_of_other_questions_are_never_beside_theirs(tmp_path: Path) -> None:
    asked = scored.questions(40)
    answers = scored.choices(asked, "mine", "closed", pattern(40, right=10, unread=2))
    free, judgments = scored.free(asked, "mine", "closed", pattern(40, right=30))
    made = [
        scored.run(tmp_path / "run", asked, answers),
        scored.judged(tmp_path / "judged", asked, free, judgments),
    ]
    report = build(tmp_path / "report", *made, options=ReportOptions(published=("cupcase", "ogcare")))
    rows = rows_of(report, "published-cupcase-1")
    assert all(row["origin"].startswith("published") for row in rows)
    [mine] = rows_of(report, "published-cupcase-1-ours")
    assert (mine["condition"], mine["unscored"], mine["why not"]) == (
        "closed, letter",
        "2",
        "40 questions; the paper has 3,562",
    )
    theirs = {row["model"]: row for row in rows}
    assert float(theirs["Meditron-70B"]["accuracy"]) == pytest.approx(0.8555)
    assert float(theirs["Meditron-70B"]["sd"]) == pytest.approx(0.0092)
    closed = rows_of(report, "published-ogcare-1-ours")
    assert [(row["condition"], float(row["accuracy"])) for row in closed] == [("closed", 0.75)]
    text = report.file("report.md").read_text("utf-8")
    assert "85.55%" in text
    assert "Prompts, models and judges differ from ours" in text
    assert report.manifest.settings["published"] == ["cupcase", "ogcare"]


def figure_of_ours(**changes: object) -> OwnFigure:
    known = {
        "measure": "accuracy",
        "model": "mine",
        "condition": "closed",
        "value": (0.5, 0.4, 0.6),
        "n": 639,
        "closed": True,
    }
    return OwnFigure(**{**known, **changes})  # type: ignore[arg-type]


def published(name: str, number: int, *ours: OwnFigure) -> dict[str, Table]:
    chapter = published_chapter((name,), ours)
    return {
        table.name: table for table in tables_in(chapter.blocks) if table.name.startswith(f"published-{name}-{number}")
    }


def test_ours_of_as_many_questions_are_beside_theirs() -> None:
    found = published("ogcare", 1, figure_of_ours(), figure_of_ours(model="part", n=100))
    assert [row[:2] for row in found["published-ogcare-1"].rows][:2] == [
        ("this report", "mine"),
        ("published, abstract and text on table 3", "GPT-5.2"),
    ]
    assert [row[0] for row in found["published-ogcare-1-ours"].rows] == ["part"]


def test_bertscore_by_another_encoder_is_never_beside_theirs() -> None:
    ours = figure_of_ours(measure="bertscore", n=3562, scorer="bertscore minilm layer 5")
    found = published("cupcase", 2, ours, structs.replace(ours, scorer="bertscore deberta-xlarge-mnli layer 40"))
    assert len([row for row in found["published-cupcase-2"].rows if row[0] == "this report"]) == 1
    [row] = found["published-cupcase-2-ours"].rows
    assert "minilm" in str(row[-1])


def test_all_fifteen_systems_by_set_as_the_reference_has_them() -> None:
    table = papers()["r2med"].tables[1]
    assert len(table.rows) == 15
    lines = (shared_data("README.md").parents[1] / "reference" / "r2med_ndcg10.tsv").read_text().splitlines()
    header = lines[0].split("\t")
    assert tuple(header[1:-1]) == table.columns
    known = [[float(cell) for cell in line.split("\t")[1:-1]] for line in lines if line.startswith("base retriever/")]
    for system, _, *printed in table.rows:
        mine = [float(each) / 100 for each in printed]
        close = [row for row in known if all(abs(a - b) < 0.0002 for a, b in zip(mine, row, strict=True))]
        assert close or system == "MedCPT"  # its later run has other figures


def test_a_set_is_beside_theirs_where_all_of_its_questions_were_asked(tmp_path: Path) -> None:
    whole = figure_of_ours(measure="nDCG@10", model="bm25", condition="biology", n=103)
    part = figure_of_ours(measure="nDCG@10", model="bm25", condition="PMC-Clinical", n=3)
    other = figure_of_ours(measure="nDCG@10", model="bm25", condition="another set", n=103)
    found = published("r2med", 2, whole, part, other)
    ours = found["published-r2med-2"].rows[0]
    assert ours[:4] == ("this report", "bm25", (0.5, 0.4, 0.6), None)
    assert [row[1] for row in found["published-r2med-2-ours"].rows] == ["PMC-Clinical"]
    first = examples.rankings(tmp_path / "one", "bm25", 0.6, bed="Biology")
    second = examples.rankings(tmp_path / "two", "bm25", 0.2, bed="PMC-Clinical", searched="others")
    report = build(tmp_path / "report", first, second, options=ReportOptions(published=("r2med",)))
    assert rows_of(report, "published-r2med-1")[0]["model"] == "BM25"
    [average] = rows_of(report, "sets-ndcg-10")
    [mine] = rows_of(report, "published-r2med-1-ours")
    assert float(mine["nDCG@10, average over sets"]) == pytest.approx(float(average["nDCG@10, average"]))


def test_no_published_chapter_unless_asked() -> None:
    assert SECTION.build(ReportInputs(artefacts={}, options=ReportOptions())) == []
    with pytest.raises(UsageError, match="no published figures of 'medqa'"):
        published_chapter(("medqa",), [])
