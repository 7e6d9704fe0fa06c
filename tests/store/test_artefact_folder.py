"""Artefact folders as objects: every kind of table as a data frame, and what a notebook shows."""

from __future__ import annotations

from pathlib import Path

import polars
import pytest

from hoofbeat.errors import UsageError
from hoofbeat.store import Counts, Manifest, create, open_artefact
from hoofbeat.store.artefact import ArtefactFolder
from hoofbeat.store.tables import write_csv, write_jsonl, write_parquet, write_tsv


@pytest.fixture
def folder(tmp_path: Path) -> ArtefactFolder:
    with create(tmp_path / "things") as draft:
        write_jsonl(
            draft.path / "rows.jsonl",
            [{"id": "a", "facets": {"organ": "kidney"}}, {"id": "b", "n": 2, "facets": {"organ": ["kidney", "liver"]}}],
        )
        write_jsonl(draft.path / "none.jsonl", [])
        write_tsv(draft.path / "figures.tsv", ("name", "value"), [("=SUM(A1)", 0.5), ('a "b"', 2)])
        write_csv(draft.path / "sheet.csv", ("name", "text"), [["x", "two\nlines, and a comma"]])
        write_parquet(draft.path / "big.parquet", polars.DataFrame({"n": [1, 2]}))
        (draft.path / "both.tsv").write_text("a\n1\n")
        (draft.path / "both.csv").write_text("a\n1\n")
        metrics: dict[str, object] = {"R@1": {"value": 0.25, "low": 0.1, "high": 0.4}, "rows": [1], "labels": {"x": 3}}
        counts = Counts(kept=2, rejected=1)
        draft.finish(Manifest(kind="things", title="<b>two</b> things", counts=counts, metrics=metrics))
    return ArtefactFolder(open_artefact(tmp_path / "things"))


def test_tables_of_every_format_are_data_frames(folder: ArtefactFolder) -> None:
    assert folder.tables == [
        "big.parquet", "both.csv", "both.tsv", "figures.tsv", "none.jsonl", "rows.jsonl", "sheet.csv"
    ]  # fmt: skip
    rows = folder.table("rows")
    assert rows["n"].to_list() == [None, 2]
    assert rows["facets"].to_list() == [{"organ": "kidney"}, {"organ": '["kidney", "liver"]'}]
    assert folder.table("none").is_empty()
    assert folder.table("figures.tsv").rows() == [("=SUM(A1)", 0.5), ('a "b"', 2.0)]
    assert folder.table("sheet").rows() == [("x", "two\nlines, and a comma")]
    assert folder.table("big")["n"].to_list() == [1, 2]
    assert list(folder.pandas("big")["n"]) == [1, 2]


@pytest.mark.parametrize(("name", "told"), [("both", "2 tables are called both"), ("rovs", "did you mean rows?")])
def test_an_unknown_table_is_answered_with_those_there_are(folder: ArtefactFolder, name: str, told: str) -> None:
    with pytest.raises(UsageError) as raised:
        folder.table(name)
    assert told in str(raised.value)


def test_what_is_shown_names_kind_counts_and_figures(folder: ArtefactFolder) -> None:
    assert repr(folder) == f"ArtefactFolder({str(folder.path)!r}, 2 kept, 1 rejected)"
    shown = folder._repr_html_()
    assert "&lt;b&gt;two&lt;/b&gt; things" in shown
    assert "0.250 [0.100, 0.400]" in shown
    assert "3 x" in shown
    assert folder.kind == "things"
