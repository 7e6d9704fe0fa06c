"""Validation and ablation in a report: their figures, no foreign text that runs, and what is said of nothing."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import msgspec
import pytest

from hoofbeat.audit.findings.protocol_comparison import compare_protocols
from hoofbeat.audit.findings.relations import FIVE_RELATIONS
from hoofbeat.audit.findings.validation_figures import RatedPair, reference, validation
from hoofbeat.audit.findings.validation_folder import ABLATION, VALIDATION, ValidatedPair, write_tables
from hoofbeat.audit.sample_records import PairJudgedTwice, PairLabel, SampledPair
from hoofbeat.errors import ArtefactError
from hoofbeat.reports.report_build import build_report
from hoofbeat.store import Artefact, Cost, Counts, Manifest, create, open_artefact
from hoofbeat.store.artefact import TRUST_CHANGED

LEVELS = ("low", "medium", "high")
TRICK = "<script>alert(1)</script> =1+1 [x](javascript:y)"
VERDICTS = [
    *[("Consistent", "Consistent", "Consistent")] * 8, *[("Divergent", "Complementary", "Complementary")] * 3,
    *[("Divergent", "Divergent", "Divergent")] * 6, *[("Divergent", "Divergent", "Consistent")] * 2,
    *[("Absent", "Absent", "Absent")] * 5,
]  # fmt: skip


def folder(target: Path, kind: str, pairs: list[object], figures: object) -> Artefact:
    with create(target, replace_kind=kind) as draft:
        write_tables(draft.path, pairs, figures)
        settings: dict[str, object] = {"pack": "transplant@x", "audit": "audit", "notes": [TRICK]}
        draft.finish(
            Manifest(
                kind=kind, title=kind, settings=settings, models={"judge": "judge-1"}, counts=Counts(kept=len(pairs))
            )
        )
    return open_artefact(target, kind)


def a_validation(target: Path, verdicts: list[tuple[str, str, str]]) -> Artefact:
    rows = [
        RatedPair(
            item=f"I{number}", question=f"q{number:02d}", a="one", b="two", judge=judge, labels={"A": a, "B": b},
            judge_significance="low" if judge == "Divergent" else None,
            significances={name: "high" for name, label in (("A", a), ("B", b)) if label == "Divergent"},
        )
        for number, (judge, a, b) in enumerate(verdicts)
    ]  # fmt: skip
    counts = {label: 7 * sum(row.judge == label for row in rows) for label in FIVE_RELATIONS.order}
    figures = validation(rows, counts, FIVE_RELATIONS, LEVELS, unlabelled=3)
    pairs: list[object] = [
        ValidatedPair(
            rated=row, reference=reference(row), weight=7.0, question=f"Is it so? {TRICK}", answer_a=TRICK,
            answer_b="No.", reasoning=TRICK, notes={"A": TRICK},
        )
        for row in rows
    ]  # fmt: skip
    return folder(target, VALIDATION, pairs, figures)


def an_ablation(target: Path, *, exchanged: bool = True) -> Artefact:
    rows = [
        PairJudgedTwice(
            pair=SampledPair(question=f"q{number:02d}", a="one", b="two", label="Divergent"),
            structured=PairLabel(label="Divergent", topic="x", significance=LEVELS[number % 3]),
            label_only=PairLabel(label="Divergent" if number < 4 else "Complementary", topic="x", significance="high"),
            structured_exchanged=PairLabel(label="Complementary" if number == 0 else "Divergent")
            if exchanged
            else None,
            label_only_exchanged=PairLabel(label="Divergent") if exchanged else None,
            reference="Divergent" if exchanged else "",
        )
        for number in range(10)
    ]
    costs = {"structured": Cost(calls=10, tokens_out=800), "label-only": Cost(calls=20, tokens_out=250)}
    figures = compare_protocols(rows, {"Divergent": 40}, FIVE_RELATIONS, LEVELS, costs)
    return folder(target, ABLATION, list(rows), figures)


def report(target: Path, *artefacts: Artefact) -> tuple[str, str, Path]:
    build_report([each.path for each in artefacts], target, title="Trust")
    return (target / "report.html").read_text("utf-8"), (target / "report.md").read_text("utf-8"), target / "tables"


def rows_of(tables: Path, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO((tables / f"{name}.csv").read_text("utf-8-sig"))))


def test_a_validation_is_told(tmp_path: Path) -> None:
    html, text, tables = report(tmp_path / "report", a_validation(tmp_path / "validation", VERDICTS))
    assert "The audit's judge against people: validation" in text
    assert "24 pairs of the audit audit, labelled by 2 annotators" in text
    assert "2 pairs have no reference" in text
    overview = {row["figure"]: row for row in rows_of(tables, "validation-1-judge")}
    assert overview["agreement, 95% Wilson"]["in the sample"].startswith("86.4%")
    labels = {row["label"]: row for row in rows_of(tables, "validation-1-labels")}
    assert labels["Divergent"]["by people"] == "6"
    assert float(labels["Divergent"]["precision"]) == pytest.approx(6 / 9, abs=1e-3)
    (border,) = rows_of(tables, "validation-1-borders")
    assert (border["between"], border["errors"]) == ("Complementary / Divergent", "3")
    assert "3 of 3 errors confuse neighbouring labels" in text
    rates = {(row["rate"], row["absence"]): row for row in rows_of(tables, "validation-1-rates")}
    assert len(rates) == 5
    split = rates["R_div", "absent is what the audit found absent"]
    assert (split["labelled"], split["without a reference"]) == ("17", "2")
    low, high = (float(split[name]) for name in split if name.startswith("range with those"))
    assert (low, high) == pytest.approx((6 / 19, 8 / 19), abs=1e-3)
    strata = {row["judge's label"]: row for row in rows_of(tables, "validation-1-strata")}
    assert strata["Divergent"]["pairs in the audit"] == "77"
    assert "s agreement with people" in html
    assert "n\u00a0=\u00a022 pairs; 2 more pairs without a reference (79.2–87.5% with them)" in html
    assert "<script>alert(1)" not in html
    assert "alert(1)" in html
    assert 'href="javascript' not in html


def test_no_corrected_rate_stands_without_its_interval(tmp_path: Path) -> None:
    verdicts = [*VERDICTS, ("Contradictory", "Contradictory", "Contradictory")]
    _, text, tables = report(tmp_path / "report", a_validation(tmp_path / "validation", verdicts))
    rows = rows_of(tables, "validation-1-rates")
    assert {value for row in rows for name, value in row.items() if name.startswith("corrected")} == {""}
    assert "annotators labelled only one of the pairs that the judge calls Contradictory" in text


def test_an_ablation_is_told(tmp_path: Path) -> None:
    _, text, tables = report(tmp_path / "report", an_ablation(tmp_path / "ablation"))
    assert "Structured or label alone: ablation" in text
    (shift,) = rows_of(tables, "ablation-1-shifts")
    assert (shift["structured"], shift["pairs"], shift["becomes"]) == ("Divergent", "10", "Complementary 6 (60%)")
    flips = {row["way"]: row for row in rows_of(tables, "ablation-1-flips")}
    assert (flips["structured"]["flipped"], flips["structured"]["pairs"]) == ("1", "10")
    people = {row["way"]: row for row in rows_of(tables, "ablation-1-people")}
    assert people["structured"]["only this way is right"] == "6"
    levels = {row["way"]: row for row in rows_of(tables, "ablation-1-levels")}
    assert (levels["label-only"]["high"], levels["structured"]["low"]) == ("10", "4")
    costs = {row["way"]: row for row in rows_of(tables, "ablation-1-costs")}
    assert costs["structured"]["tokens out per pair"] == "80.0"
    _, plain, _ = report(tmp_path / "plain", an_ablation(tmp_path / "less", exchanged=False))
    assert "Against people" not in plain
    assert "exchanged" not in plain


def test_nothing_labelled_is_said(tmp_path: Path) -> None:
    _, text, _ = report(
        tmp_path / "report", a_validation(tmp_path / "validation", [("Divergent", "Absent", "Consistent")])
    )
    assert "No pair has a reference" in text


def test_figures_that_can_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TRUST_CHANGED, "1")
    made = a_validation(tmp_path / "validation", VERDICTS)
    made.file("figures.json").write_bytes(msgspec.json.encode({"pairs": "many"}))
    with pytest.raises(Exception, match="the figures can't be read") as caught:
        report(tmp_path / "report", made)
    assert not isinstance(caught.value, ArtefactError)
    assert not (tmp_path / "report").exists()
