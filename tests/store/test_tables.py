"""Tables: the same records give the same bytes, bad lines are named, spreadsheets run nothing."""

from __future__ import annotations

import csv
import errno
import os
from pathlib import Path

import msgspec
import numpy as np
import polars
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hoofbeat.errors import InputError, OutputError
from hoofbeat.records import Failure, Hit
from hoofbeat.store.files import output_errors, read_bytes, write_bytes
from hoofbeat.store.tables import (
    IndexedTable,
    canonical_json,
    each_line,
    lines_at,
    plain_cell,
    read_jsonl,
    read_parquet,
    read_tsv,
    spans_at,
    write_csv,
    write_indexed,
    write_jsonl,
    write_parquet,
    write_tsv,
)

HITS = [Hit(question="q", document="d", rank=rank, score=1 / rank) for rank in (1, 2, 3)]


def test_records_come_back_from_jsonl(tmp_path: Path) -> None:
    path = tmp_path / "hits.jsonl"
    assert write_jsonl(path, iter(HITS)) == 3
    assert list(read_jsonl(path, Hit)) == HITS
    first = path.read_bytes()
    write_jsonl(path, HITS)
    assert path.read_bytes() == first


@pytest.mark.parametrize(
    "line", [b"{", b'{"question": 5}', b'{"kind": "no such kind", "message": ""}', b"\xff", b"[" * 99999]
)
def test_a_bad_line_is_named_by_its_number(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "failures.jsonl"
    path.write_bytes(b'{"kind":"timeout","message":"x"}\n\n' + line + b"\n")
    records = read_jsonl(path, Failure)
    assert next(records).kind == "timeout"
    with pytest.raises(InputError, match="line 3") as caught:
        next(records)
    assert "failures.jsonl" in str(caught.value)


def test_a_missing_table_is_said(tmp_path: Path) -> None:
    for read in (lambda path: list(read_jsonl(path, Hit)), lambda path: list(read_tsv(path)), read_parquet, read_bytes):
        with pytest.raises(InputError):
            read(tmp_path / "none")


def test_a_writer_that_breaks_leaves_the_earlier_file(tmp_path: Path) -> None:
    path = tmp_path / "hits.jsonl"
    write_jsonl(path, HITS)
    with pytest.raises(ZeroDivisionError):
        write_jsonl(path, (1 // 0 for _ in range(2)))
    assert list(read_jsonl(path, Hit)) == HITS
    assert [entry.name for entry in tmp_path.iterdir()] == ["hits.jsonl"]


def test_a_full_disk_leaves_the_earlier_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    write_bytes(tmp_path / "file", b"old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match="No space left"):
        write_bytes(tmp_path / "file", b"new")
    assert [entry.read_bytes() for entry in tmp_path.iterdir()] == [b"old"]


def test_a_device_that_takes_nothing_is_said(tmp_path: Path) -> None:
    (tmp_path / ".x.part").symlink_to("/dev/full")
    with pytest.raises(OutputError, match="No space left"), output_errors(tmp_path):
        (tmp_path / ".x.part").write_bytes(b"x")


@pytest.mark.parametrize(
    "text",
    ["=cmd|' /C calc'!A0", "+1", "-2", "@x", "=1+1", "'=x", " =1", "\u00a0@x", '"=1+1"', "\ufeff=1", "＝1", "＠x"],
)
def test_formulas_are_neutralised(text: str, tmp_path: Path) -> None:
    assert plain_cell(text) == "'" + text
    write_tsv(tmp_path / "t.tsv", ["a"], [[text]])
    assert [row["a"] for row in read_tsv(tmp_path / "t.tsv")] == [text]


def test_a_formula_behind_a_tab_or_a_return_is_one(tmp_path: Path) -> None:
    for text in ('\t=HYPERLINK("http://x")', "\r=1+1", "\r\n-1", "\n@x", "\x0b+1"):
        assert plain_cell(text)[:1] == "'"
        write_csv(tmp_path / "t.csv", ["a", "b"], [["x", text]])
        ((_, cell),) = list(csv.reader((tmp_path / "t.csv").open(encoding="utf-8", newline="")))[1:]
        assert cell == "'" + text.replace("\r\n", "\n").replace("\r", "\n")


def test_csv_comes_back_with_its_lines(tmp_path: Path) -> None:
    rows = [["one\ntwo", 'a "quoted", cell'], ["", "three\r\nfour\rfive"]]
    assert write_csv(tmp_path / "t.csv", ["a", "b"], rows) == 2
    assert b"\r" not in (tmp_path / "t.csv").read_bytes()
    with (tmp_path / "t.csv").open(encoding="utf-8", newline="") as stream:
        assert list(csv.reader(stream)) == [["a", "b"], rows[0], ["", "three\nfour\nfive"]]


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (-2, "-2"),
        (-0.5, "-0.5"),
        (np.float64(-1.5), "-1.5"),
        (None, ""),
        ("a-b", "a-b"),
        ("a\tb\r\nc", "a b  c"),
        ("", ""),
    ],
)
def test_numbers_and_plain_words_stay(value: object, cell: str) -> None:
    assert plain_cell(value) == cell


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.lists(st.tuples(st.text(), st.text()), max_size=5))
def test_tsv_comes_back_but_for_tabs_and_line_ends(tmp_path: Path, rows: list[tuple[str, str]]) -> None:
    path = tmp_path / "table.tsv"
    write_tsv(path, ["id", "text"], rows)
    flat = str.maketrans("\t\r\n", "   ")
    assert [tuple(row.values()) for row in read_tsv(path)] == [(a.translate(flat), b.translate(flat)) for a, b in rows]
    for line in path.read_text(encoding="utf-8").split("\n")[1:-1]:
        assert not any(cell.strip()[:1] and cell.strip()[0] in "=+-@" for cell in line.split("\t"))


def test_a_row_of_another_length_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("a\tb\n1\t2\n1\t2\t3\n")
    with pytest.raises(InputError, match="line 3 has 3 cells"):
        list(read_tsv(tmp_path / "t.tsv"))


def test_a_byte_order_mark_is_no_part_of_the_header(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_bytes(b"\xef\xbb\xbfid\ttext\n1\tx\n")
    assert list(read_tsv(tmp_path / "t.tsv")) == [{"id": "1", "text": "x"}]


def test_a_table_that_is_no_text_is_said(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_bytes(b"id\n\xff\n")
    with pytest.raises(InputError):
        list(read_tsv(tmp_path / "t.tsv"))


def test_parquet_comes_back_with_the_same_bytes(tmp_path: Path) -> None:
    frame = polars.DataFrame({"id": ["a", "b"], "score": [0.5, -1.0]})
    assert write_parquet(tmp_path / "one.parquet", frame) == 2
    write_parquet(tmp_path / "two.parquet", frame)
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()
    assert read_parquet(tmp_path / "one.parquet").equals(frame)
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 or not")
    with pytest.raises(InputError, match="Parquet"):
        read_parquet(tmp_path / "bad.parquet")


@given(st.dictionaries(st.text(), st.none() | st.integers(-5, 5) | st.text(), max_size=6))
def test_one_json_form_for_one_content(value: dict[str, object]) -> None:
    turned = dict(reversed(value.items()))
    assert canonical_json(value) == canonical_json(turned)
    assert msgspec.json.decode(canonical_json(value)) == value


MANY_HITS = [Hit(question="qé", document=f"d{rank}", rank=rank, score=1 / rank) for rank in range(1, 6)]


def test_lines_are_found_again_by_where_they_begin(tmp_path: Path) -> None:
    path = tmp_path / "hits.jsonl"
    write_jsonl(path, MANY_HITS)
    path.write_bytes(b"\n" + path.read_bytes())
    found = list(each_line(path, Hit))
    assert [hit for _, hit in found] == MANY_HITS
    offsets = [offset for offset, _ in found]
    assert lines_at(path, [offsets[3], offsets[0]], Hit) == [MANY_HITS[3], MANY_HITS[0]]
    assert spans_at(path, [(offsets[1], 2), (offsets[4], 1)], Hit) == [*MANY_HITS[1:3], MANY_HITS[4]]


def test_a_table_that_shrank_or_is_gone_is_said(tmp_path: Path) -> None:
    path = tmp_path / "hits.jsonl"
    path.write_bytes(b"{}\n")
    for offsets in ([0], [2], [99]):
        with pytest.raises(InputError, match=r"a line of hits\.jsonl can't be read"):
            lines_at(path, offsets, Hit)
    path.unlink()
    with pytest.raises(InputError, match="can't read the table: No such file"):
        lines_at(path, [0], Hit)


def test_an_indexed_table_is_a_sequence(tmp_path: Path) -> None:
    path = tmp_path / "hits.jsonl"
    write_indexed(path, MANY_HITS)
    table = IndexedTable(path, Hit)
    assert list(table) == MANY_HITS
    assert (table[-1], table[1:3], len(table)) == (MANY_HITS[-1], MANY_HITS[1:3], 5)
    with pytest.raises(IndexError):
        table[5]
    longest = len(max(path.read_bytes().splitlines(keepends=True), key=len))
    for records, size in ((2, 1 << 20), (9, 2 * longest), (9, 1)):
        stretches = list(table.stretches(records, size))
        assert [place for stretch in stretches for place in stretch] == [0, 1, 2, 3, 4]
        assert all(len(stretch) <= records for stretch in stretches)
    assert [list(stretch) for stretch in stretches] == [[0], [1], [2], [3], [4]], "a long record is alone"
    write_indexed(path, [])
    assert list(IndexedTable(path, Hit)) == []


def test_an_indexed_table_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "hits.jsonl"
    write_indexed(path, MANY_HITS)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match="cut off"):
        IndexedTable(path, Hit)
