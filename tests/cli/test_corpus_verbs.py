"""`hoofbeat corpus`: import, filter, label, count, show and export by command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hoofbeat import teaching
from tests.cli.support import hoofbeat, json_of
from tests.models.fault_server import FaultServer


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("corpora")
    hoofbeat("corpus", "import", str(teaching.cases_folder()), "-o", "cases", "--workers", "2", folder=place)
    return place


def test_the_funnel_tells_every_step_and_the_traps_are_caught(folder: Path) -> None:
    line = "type=case-report; not retracted; unique(minhash, 0.3); not promotional"
    done = hoofbeat("corpus", "filter", "cases", "--keep", line, "-o", "kept", "--json", folder=folder)
    value = json_of(done)
    assert value["counts"]["kept"] == 21
    assert [step["rejected"] for step in value["funnel"]] == [0, 1, 1, 1]
    rejected = [json.loads(row) for row in (folder / "kept" / "rejected.jsonl").read_text().splitlines()]
    assert {row["id"] for row in rejected} == {"hbt-case-20", "hbt-case-21", "hbt-case-22"}
    hoofbeat("verify", "kept", folder=folder)


def test_a_wrong_filter_is_pointed_at(folder: Path) -> None:
    done = hoofbeat("corpus", "filter", "cases", "--keep", "yaer>=2022", "-o", "x", folder=folder, code=2)
    assert "yaer" in done.stderr
    assert not (folder / "x").exists()


def test_labels_by_rule_and_by_model(folder: Path) -> None:
    ruled = json_of(hoofbeat("corpus", "label", "cases", "-o", "ruled", "--json", folder=folder))
    assert ruled["counts"]["kept"] == 24
    assert sum(ruled["metrics"].values()) == 24
    with FaultServer() as server:
        words = ["corpus", "label", "cases", "--by-model", "--model", server.spec(), "-o", "asked", "--json"]
        estimate = json_of(hoofbeat(*words, "--estimate", folder=folder))["estimate"]
        asked = json_of(hoofbeat(*words, folder=folder))
        assert estimate["calls"] == asked["cost"]["calls"] == server.asked.total() == 24


def test_counts_and_one_document_are_shown(folder: Path) -> None:
    done = hoofbeat("corpus", "stats", "cases", "--tokenizer", "none", "--scheme", "clinbench", folder=folder)
    assert "24 documents" in done.stdout
    shown = hoofbeat("corpus", "show", "cases", "hbt-case-01", "--find", "caplacizumab", folder=folder)
    assert "# " in shown.stdout
    assert "[case]" in shown.stdout
    missing = hoofbeat("corpus", "show", "cases", "hbt-case-1", folder=folder, code=1)
    assert "the closest ids are hbt-case-" in missing.stderr


def test_rows_with_a_mapping(tmp_path: Path) -> None:
    rows = [{"nr": "a1", "body": "First text of enough words.", "who": "Invented centre"}, {"nr": "a2", "body": ""}]
    (tmp_path / "rows.jsonl").write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    words = ["corpus", "import", "rows.jsonl", "--mapping", "id=nr,text=body,facets.institution=who", "-o", "rows"]
    value = json_of(hoofbeat(*words, "--json", folder=tmp_path))
    assert (value["counts"]["kept"], value["counts"]["rejected"]) == (1, 1)
    wrong = hoofbeat("corpus", "import", "rows.jsonl", "--mapping", "id", "-o", "x", folder=tmp_path, code=2)
    assert "mapping" in wrong.stderr


def test_fetching_without_an_address_says_why(tmp_path: Path) -> None:
    (tmp_path / "ids.txt").write_text("PMC1\n", encoding="utf-8")
    done = hoofbeat("corpus", "fetch", "pmc", "--ids", "ids.txt", "-o", "f", folder=tmp_path, code=2)
    assert "email" in done.stderr


def test_how_many_are_kept_without_citation_data_is_said(folder: Path) -> None:
    (folder / "cited.csv").write_text("citing,cited,case_report\nx1,hbt-case-01,yes\n", encoding="utf-8")
    done = hoofbeat("corpus", "filter", "cases", "--keep", "rare(cited.csv, year>1900)", "-o", "rare", folder=folder)
    assert "rarity unknown (kept, with a mark): 23 of 24" in done.stderr
