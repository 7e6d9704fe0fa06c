"""The page that sets rankings side by side, from plain mappings."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import numpy as np
import pytest
from lxml import etree

from hoofbeat.errors import UsageError
from hoofbeat.findings.breakdown import by_facet, over_sets, values_of
from hoofbeat.findings.systems import Ablation, AnswersAndRetrieval, ablation, answers_and_retrieval, compare_systems
from hoofbeat.records import Facets
from hoofbeat.reports.comparison.rankings import compare_rankings
from hoofbeat.reports.comparison.rankings_page import ablation_table, rankings_report, write_rankings
from hoofbeat.reports.model import Report, charts_in, tables_in
from hoofbeat.reports.page import to_html
from hoofbeat.reports.report_build import build_report
from hoofbeat.reports.report_writer import report_files
from hoofbeat.reports.tables import Column, Table, flat_rows
from hoofbeat.store.tables import read_tsv, write_tsv
from tests.reports.examples import HOSTILE, rankings
from tests.reports.parsing import parsed, words

Rows = dict[str, dict[str, float]]
DEPTHS = (1, 3, 5, 10, 20, 50, 100, 1000)
SETS = ("Biology", "MedXpertQA-Exam", "PMC-Treatment")
SPECIALTIES = ("Cardiology", "Infectious diseases and tropical medicine", "Kidney")


def system(skill: float, seed: int, questions: int = 40) -> Rows:
    rng = np.random.default_rng(seed)
    rows: Rows = {}
    for number in range(questions):
        rank = 1 + int(rng.exponential(30 * (1 - skill) * (1 + number % 5)))
        rows[f"q{number}"] = {"nDCG@10": float(1 / np.log2(rank + 1)) if rank <= 10 else 0.0, "RR": 1 / rank} | {
            f"R@{depth}": float(rank <= depth) for depth in DEPTHS
        }
    return rows


SYSTEMS = {
    "bm25": system(0.2, 1),
    "minilm": system(0.5, 2),
    "bm25 + 0.5*minilm > crossencoder[window=512,stride=128]@100": system(0.97, 3),
}
FACETS: dict[str, Facets] = {f"q{n}": {"specialty": SPECIALTIES[n % 3], "id": f"only {n}"} for n in range(38)}


def answers() -> list[AnswersAndRetrieval]:
    scores = {f"model {n}": values_of(system(0.1 + n / 7, 20 + n), "nDCG@10") for n in range(6)}
    correct = {
        model: {q: None if q == "q7" else value + number / 9 > 0.4 for q, value in rows.items()}
        for number, (model, rows) in enumerate(scores.items())
    }
    return answers_and_retrieval(correct, scores)


def grids() -> list[Ablation]:
    runs = [({"chunk": c, "stride": s}, system(c / 600, c + s)) for c in (128, 512) for s in (0, 128) if c + s != 640]
    return [ablation(runs, "R@10", down="chunk", across="stride"), ablation(runs[:2], "RR", down="stride")]


def whole() -> Report:
    return rankings_report(
        SYSTEMS,
        title="Retrievers",
        baseline="bm25",
        facets=FACETS,
        sets={f"q{number}": SETS[number % 3] for number in range(40)},
        ablations=grids(),
        answers=answers(),
    )


def table(report: Report, name: str) -> Table:
    return next(found for found in tables_in(report.blocks) if found.name == name)


def test_the_whole_report_has_every_chapter() -> None:
    report = whole()
    assert [heading.text for heading in report.headings] == [
        "Measures",
        "Differences",
        "Recall over depth",
        "By specialty",
        "By set",
        "Settings",
        "Answers against retrieval",
    ]
    assert [chart.name for chart in charts_in(report.blocks)] == [
        "measures",
        "difference-2",
        "difference-1",
        "recall",
        "by-specialty",
        "by-set",
        "ablation-chunk-stride-R@10",
        "ablation-stride--RR",
        "answers",
    ]
    assert report == whole()


def test_tables_tell_what_the_findings_found() -> None:
    report = whole()
    compared = compare_systems(SYSTEMS, "nDCG@10", baseline="bm25")
    measures = table(report, "measures")
    assert [row[0] for row in measures.rows] == [row.system for row in compared.ranked]
    best = compared.ranked[0]
    assert measures.rows[0][3] == pytest.approx((best.mean, best.interval.low, best.interval.high))
    first = table(report, "differences").rows[0]
    found = compared.comparisons[0]
    assert first == (
        "bm25",
        "minilm",
        (found.paired.difference, found.paired.interval.low, found.paired.interval.high),
        found.paired.interval.by,
        found.better,
        found.same,
        found.worse,
        found.test.p,
        found.p_holm,
    )
    facet = by_facet(values_of(SYSTEMS[best.system], "nDCG@10"), FACETS, "specialty")
    rows = table(report, "by-specialty").rows
    assert [(row[0], row[1]) for row in rows] == [*((g.value, g.n) for g in facet.groups), ("all", 40)]
    assert rows[-2][0] == "(none)"
    assert rows[0][2] == (facet.groups[0].mean, facet.groups[0].interval.low, facet.groups[0].interval.high)
    values = values_of(SYSTEMS[best.system], "nDCG@10")
    sets = over_sets({name: {q: v for q, v in values.items() if int(q[1:]) % 3 == n} for n, name in enumerate(SETS)})
    assert table(report, "by-set").rows[0][-1] == (
        sets.macro.mean,
        sets.macro.interval.low,
        sets.macro.interval.high,
    )


def test_the_page_is_whole_and_says_the_same() -> None:
    report = whole()
    page = to_html(
        rankings_report(
            SYSTEMS,
            title="Retrievers",
            baseline="bm25",
            facets=FACETS,
            sets={f"q{number}": SETS[number % 3] for number in range(40)},
            ablations=grids(),
            answers=answers(),
        )
    )
    assert page == to_html(report)
    assert not re.search(r'(?:src|href)="(?!#)', page)
    root = parsed(page)
    text = words(root)
    assert "3 systems over the 40 questions for which all have a value" in text
    assert "Pearson's r" in text
    assert len(root.findall(".//figure")) == 9


def test_files_of_a_folder() -> None:
    report = whole()
    files = dict(report_files(report))
    assert len([name for name in files if name.endswith(".csv")]) == len(list(tables_in(report.blocks)))
    for name, data in files.items():
        if name.endswith(".svg"):
            assert etree.fromstring(data).get("role") == "img"
            assert f"({name})" in files["report.md"].decode()
    rows = list(csv.DictReader(io.StringIO(files["tables/measures.csv"].decode())))
    assert float(rows[0]["nDCG@10"]) >= float(rows[1]["nDCG@10"])
    assert files == dict(report_files(whole()))


def test_tables_as_tsv(tmp_path: Path) -> None:
    header, rows = flat_rows(ablation_table(grids()[0]))
    write_tsv(tmp_path / "t.tsv", header, rows)
    first, last = read_tsv(tmp_path / "t.tsv")
    assert (first["chunk"], first["stride 0 gained"], first["stride 0 gained low"]) == ("128", "baseline", "")
    gain = grids()[0].cell("512", "0")
    assert gain is not None
    assert gain.gain is not None
    assert float(last["stride 0 gained"]) == pytest.approx(gain.gain.difference)
    assert float(last["stride 0 gained low"]) == pytest.approx(gain.gain.interval.low)
    assert last["stride 128"] == ""


def test_one_system_and_one_measure_are_enough() -> None:
    report = rankings_report({"bm25": {"q1": {"RR": 0.5}, "q2": {"RR": 1.0}}})
    assert [heading.text for heading in report.headings] == ["Measures"]
    assert report.cards[0].label == "RR of bm25"
    assert "n = 2" in report.cards[0].detail.replace("\u00a0", " ")


def test_questions_that_are_left_out_are_told() -> None:
    report = rankings_report({"a": {"q1": {"RR": 0.5}, "q2": {"RR": 1.0}}, "b": {"q2": {"RR": 0.0}}})
    text = words(parsed(to_html(report)))
    assert "Questions left out, because another system has no value for them: a 1." in text


def test_without_a_baseline_every_pair_is_told() -> None:
    rows = table(rankings_report(SYSTEMS), "differences").rows
    assert [(row[0], row[1]) for row in rows] == [
        ("bm25", "minilm"),
        ("bm25", list(SYSTEMS)[2]),
        ("minilm", list(SYSTEMS)[2]),
    ]


def test_many_systems_say_what_is_not_drawn() -> None:
    many = {f"system {n}": system(n / 10, n) for n in range(8)}
    report = rankings_report(many, baseline="system 0", facets=FACETS)
    captions = {chart.name: chart.caption for chart in charts_in(report.blocks)}
    assert "The 6 best systems by nDCG@10; 2 more are in the table." in captions["recall"]
    assert "Drawn are the 6 best of 8 systems." in captions["by-specialty"]
    assert len(table(report, "by-specialty").columns) == 10


def test_measures_of_ones_own() -> None:
    report = rankings_report({"a": {"q": {"latency": 3.5, "cost": 2.0}}, "b": {"q": {"latency": 1.5}}})
    assert [column.title for column in table(report, "measures").columns][3:] == ["latency", "interval by"]


def test_hostile_names_stay_text() -> None:
    facets: dict[str, Facets] = {f"q{n}": {HOSTILE: [HOSTILE, str(n % 2)]} for n in range(4)}
    systems = {HOSTILE: system(0.3, 1, 4), "b": system(0.5, 2, 4)}
    page = to_html(
        rankings_report(systems, title=HOSTILE, facets=facets, sets=dict.fromkeys(systems[HOSTILE], HOSTILE))
    )
    assert "<script>window.owned" not in page
    assert "\u202e" not in page
    assert len(parsed(page).findall(".//script")) == 1


def test_nothing_to_compare() -> None:
    with pytest.raises(UsageError, match="no systems"):
        rankings_report({})
    with pytest.raises(UsageError, match="share no measure"):
        rankings_report({"a": {"q": {"RR": 1.0}}, "b": {"q": {"P@1": 1.0}}})
    with pytest.raises(UsageError, match="no question"):
        rankings_report({"a": {"q": {"RR": 1.0}}, "b": {"r": {"RR": 1.0}}})
    with pytest.raises(UsageError, match="no question has a value of nDCG@7"):
        rankings_report({"a": {"q": {"RR": 1.0}}}, main="nDCG@7")


def test_intervals_are_named_by_the_method_that_made_them() -> None:
    rng = np.random.default_rng(4)
    values = rng.random(40)
    systems = {
        name: {f"q{n}": {"nDCG@10": float(value), "R@10": 1.0} for n, value in enumerate(shown)}
        for name, shown in (("a", values), ("b", np.where(np.arange(40) < 3, values / 2, values)), ("c", values[::-1]))
    }
    clusters = {f"q{n}": f"d{n // 2}" for n in range(40)}
    report = rankings_report(systems, baseline="a", clusters=clusters)
    measures, pairs = table(report, "measures"), table(report, "differences")
    assert {row[-1] for row in measures.rows} == {"cluster bootstrap; Wilson's score for R@10"}
    assert (
        "95% intervals: cluster bootstrap (1,000 samples, seed 0) or Wilson's score; see “interval by”."
        in measures.note
    )
    by = pairs.columns.index(Column("interval by"))
    assert [row[by] for row in pairs.rows] == ["Tango's score", "cluster bootstrap"]
    assert measures.counted == pairs.counted == "40 questions in 20 clusters"
    found = compare_systems(systems, "nDCG@10", baseline="a", clusters=clusters)
    assert [row[by] for row in pairs.rows] == [row.paired.interval.method for row in found.comparisons]
    for name, content in report_files(report):
        if name in ("report.md", "tables/measures.csv", "tables/measures.tex", "report.html"):
            text = content.decode()
            assert "Wilson" in text
            assert name.endswith("csv") or "in 20 clusters" in text
            assert "percentile bootstrap" not in text
            assert "Paired bootstrap" not in text


def test_a_report_and_a_comparison_of_the_same_rankings_print_the_same_figures(tmp_path: Path) -> None:
    folders = [
        rankings(tmp_path / name, line, quality, seed=seed, bed="invented", shared=2).path
        for seed, (name, line, quality) in enumerate((("a", "bm25", 0.4), ("b", "dense", 0.5), ("c", "both", 0.55)))
    ]
    compared = compare_rankings(folders, baseline="bm25")
    assert (compared.tables[0].n, compared.tables[0].clusters) == (20, 10)
    write_rankings(tmp_path / "compared", compared)
    assert "compared on invented" in (tmp_path / "compared" / "report.md").read_text("utf-8")
    build_report(folders, tmp_path / "report")
    page = (tmp_path / "compared" / "tables" / "differences.csv").read_text("utf-8")
    assert (tmp_path / "report" / "tables" / "rankings-1-gains.csv").read_text("utf-8") == page
    rows = {row["second"]: row for row in csv.DictReader(io.StringIO(page))}
    [(_, mean), *_] = measured = [(row.system, row.mean) for row in compared.tables[0].means]
    assert {name: float(rows[name]["nDCG@10, second − first"]) for name, _ in measured[1:]} == pytest.approx(
        {name: value - mean for name, value in measured[1:]}
    )
    every = {(row.first, row.second): row.paired for row in compare_rankings(folders).tables[0].comparisons}
    for pair in compared.tables[0].comparisons:  # without a baseline, the same sign
        assert every[pair.first, pair.second] == pair.paired
    alone = compare_systems(compared.systems, "nDCG@10", baseline="bm25").comparisons[1].paired
    assert float(rows["both"]["nDCG@10, second − first"]) == pytest.approx(alone.difference)
    assert float(rows["both"]["nDCG@10, second − first low"]) != pytest.approx(alone.interval.low)
