"""Audits for others: matrices, and tables that carry question, names, answers, quotes and links."""

from __future__ import annotations

import csv
from pathlib import Path

import msgspec
import polars
import pytest

from hoofbeat.audit import Audit
from hoofbeat.audit.synthesis.audit_export import PAIR_WORDS, export_audit, file_name
from hoofbeat.audit.synthesis.synthesis_table import SynthesisTable, synthesis_tables
from tests.audit.test_audit_folder import ROWS, an_audit
from tests.cli.support import hoofbeat, json_of
from tests.reports.audits import made_audit, teaching_audit


def test_an_export_holds_a_matrix_for_each_question(tmp_path: Path) -> None:
    audit = an_audit(tmp_path / "audit", ROWS)
    made = export_audit(audit, tmp_path / "out")
    assert sorted(made.manifest.files) == [
        "pairs.csv", "pairs.parquet", "questions/q1.json", "questions/q2.json", "synthesis.csv", "synthesis.json"
    ]  # fmt: skip
    record = polars.read_json(tmp_path / "out" / "questions" / "q1.json").row(0, named=True)
    assert record["sources"] == ["a", "b", "c"]
    assert record["matrix"] == [[1, 0, 3], [0, 1, None], [3, None, 1]]
    assert [pair.get("divergence_topic") for pair in record["comparisons"]] == [None, "time", None]
    table = polars.read_csv(tmp_path / "out" / "pairs.csv")
    assert table.height == made.manifest.counts.kept == len(ROWS)
    assert table["calls"].to_list() == [None, "k1 k2", None, None]
    assert polars.read_parquet(tmp_path / "out" / "pairs.parquet").height == len(ROWS)
    assert made.verify() == []


def test_tables_for_others_carry_question_names_answers_quotes_and_links(tmp_path: Path) -> None:
    audit = Audit(teaching_audit(tmp_path / "audit"))
    export_audit(audit, tmp_path / "out", ["csv", "json"])
    with (tmp_path / "out" / "pairs.csv").open(encoding="utf-8", newline="") as stream:
        pairs = list(csv.DictReader(stream))
    said = {(answer.question, answer.source): answer for answer in audit.answers}
    asked = {question.id: question.full_text for question in audit.questions}
    judged = [row for row in pairs if row["basis"] == "judged"]
    assert judged
    for row in judged:
        assert set(PAIR_WORDS) <= set(row)
        assert row["question_text"] == asked[row["question"]]
        assert row["name_a"] == audit.names.full(row["a"])
        assert row["answer_b"] == said[row["question"], row["b"]].text
        assert row["quote_a"]
        assert row["link_b"].startswith(row["b"])
    with (tmp_path / "out" / "synthesis.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == len(audit.answers)
    assert all(row["answer"] and row["quotes"] and row["labels"] for row in rows if row["state"] == "answers")
    tables = msgspec.json.decode((tmp_path / "out" / "synthesis.json").read_bytes(), type=list[SynthesisTable])
    assert tables == synthesis_tables(audit)[0]


def test_a_formula_in_an_answer_is_neutralised(tmp_path: Path) -> None:
    audit = Audit(made_audit(tmp_path / "audit", 4, 2, text="=HYPERLINK(0)"))
    export_audit(audit, tmp_path / "out", ["csv"])
    for name in ("pairs.csv", "synthesis.csv"):
        with (tmp_path / "out" / name).open(encoding="utf-8", newline="") as stream:
            assert not [cell for row in csv.reader(stream) for cell in row if cell.startswith("=")]


@pytest.mark.parametrize("name", ["../../etc", "a/b", "a:b", "", "Ünï", ".", "x" * 300])
def test_a_question_s_name_is_no_path(name: str) -> None:
    safe = file_name(name)
    assert safe
    assert Path(safe).name == safe
    assert safe not in (".", "..")
    assert len(safe) < 100
    assert file_name("q-1") == "q-1"


def test_who_says_what_on_a_terminal_and_as_json(tmp_path: Path) -> None:
    audit = Audit(teaching_audit(tmp_path / "audit"))
    told = hoofbeat("audit", "table", "audit", folder=tmp_path)
    assert "⇄ Cairn Liver handbook (invented): Grapefruit is allowed" in told.stdout
    assert "– Cairn Liver handbook (invented): silent" in told.stdout
    assert "⇄ OPPOSITE to the one named" in told.stderr
    found = json_of(hoofbeat("audit", "table", "audit", "--json", folder=tmp_path))
    assert found["counts"]["kept"] == len(found["rows"]) == len(audit.answers)
    assert {"question_text", "institution", "answer", "quotes", "labels", "strength", "date"} <= set(found["rows"][0])
