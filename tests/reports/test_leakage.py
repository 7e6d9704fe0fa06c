"""The chapter on a leakage check: figures with n and intervals, controls beside them, caveats in words, nothing run."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoofbeat.errors import ArtefactError
from hoofbeat.leakage.leakage_figures import CAVEATS
from hoofbeat.reports.model import Chart, Notice, Text, charts_in, tables_in
from hoofbeat.reports.report_build import assemble, build_report
from hoofbeat.reports.tables import Table
from hoofbeat.store import Artefact, Manifest, create, open_artefact
from tests.reports.examples import HOSTILE
from tests.reports.leakage_folder import KNOWN, leakage_folder


@pytest.fixture(scope="module")
def artefact(tmp_path_factory: pytest.TempPathFactory) -> Artefact:
    return leakage_folder(tmp_path_factory.mktemp("leakage"))


def tables(artefact: Artefact) -> dict[str, Table]:
    return {table.name: table for table in tables_in(assemble([artefact], title="t").blocks)}


def test_the_memorising_model_stands_out_in_the_table(artefact: Artefact) -> None:
    table = tables(artefact)["leakage-1-overlap"]
    heads = [column.title for column in table.columns]
    rows = {(row[0], row[1]): dict(zip(heads, row, strict=True)) for row in table.rows}
    knowing, blank = (rows[model, "continuation"]["reproduced"] for model in ("knowing", "blank"))
    assert isinstance(knowing, tuple)
    assert isinstance(blank, tuple)
    assert knowing[0] == pytest.approx(len(KNOWN) / 12)
    assert blank[0] == 0.0
    assert {"leakage-1-overlap-edit", "leakage-1-likelihood-tokens"} <= set(tables(artefact))
    assert table.n == 12


def test_perplexity_stands_beside_its_control_and_is_missing_where_the_provider_gives_none(artefact: Artefact) -> None:
    table = tables(artefact)["leakage-1-likelihood"]
    heads = [column.title for column in table.columns]
    rows = {(row[0], row[1]): dict(zip(heads, row, strict=True)) for row in table.rows}
    ratio = rows["knowing", "question's second half"]["ratio"]
    same = rows["blank", "question's second half"]["ratio"]
    assert isinstance(ratio, tuple)
    assert ratio[0] > 1.5
    assert same == pytest.approx(1.0)  # twelve equal ratios: a value, and no interval to pretend
    assert rows["chats-only", "gold answer"]["perplexity"] is None
    told = [block.text for block in assemble([artefact], title="t").blocks if isinstance(block, Notice)]
    assert any(text.startswith("chats-only: ") and CAVEATS["no likelihood"] in text for text in told)


def test_every_caveat_and_every_part_is_there(artefact: Artefact) -> None:
    report = assemble([artefact], title="t")
    told = " ".join(block.text for block in report.blocks if isinstance(block, Text | Notice))
    for name, caveat in CAVEATS.items():
        assert caveat in told, name
    assert {"leakage-1-dates", "leakage-1-date-accuracy", "leakage-1-gap", "leakage-1-near", "leakage-1-canaries",
            "leakage-1-canaries-found", "leakage-1-overlap-groups", "leakage-1-likelihood-groups"} <= set(
        tables(artefact)
    )  # fmt: skip
    charts = [block for block in charts_in(report.blocks) if isinstance(block, Chart)]
    assert {chart.name for chart in charts} >= {
        "leakage-1-rouge", "leakage-1-ratio", "leakage-1-dates", "leakage-1-gap",
    }  # fmt: skip
    assert "reproduced word for word by knowing" in report.cards[0].label


def test_a_near_duplicate_is_listed_with_its_words(artefact: Artefact) -> None:
    [row] = tables(artefact)["leakage-1-near"].rows
    assert row[0] == "q-02"
    assert str(row[2]).startswith("copy")
    assert "Invented person 2 had" in str(row[5])


def test_hostile_words_do_nothing(tmp_path: Path) -> None:
    artefact = leakage_folder(tmp_path, hostile=HOSTILE[:120])
    build_report([artefact.path], tmp_path / "report", title="t")
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert "<img src=x" not in page
    assert "<script>window.owned" not in page
    assert "&lt;script&gt;window.owned" in page
    assert "Leakage: bench" in (tmp_path / "report" / "report.md").read_text(encoding="utf-8")


def test_a_damaged_summary_is_said(tmp_path: Path) -> None:
    with create(tmp_path / "bad") as draft:
        for name in ("overlaps.jsonl", "near.jsonl", "canaries.jsonl"):
            (draft.path / name).write_text("", encoding="utf-8")
        (draft.path / "summary.json").write_text('{"questions": "many"}', encoding="utf-8")
        draft.finish(Manifest(kind="leakage"))
    with pytest.raises(ArtefactError, match="can't be read"):
        assemble([open_artefact(tmp_path / "bad")], title="t")
