"""JSON lines by offset: what was read once is found again, and what is damaged is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoofbeat.errors import InputError
from hoofbeat.records import Hit
from hoofbeat.store.tables import IndexedTable, each_line, lines_at, spans_at, write_indexed, write_jsonl

HITS = [Hit(question="qé", document=f"d{rank}", rank=rank, score=1 / rank) for rank in range(1, 6)]


def test_lines_are_found_again_by_where_they_begin(tmp_path: Path) -> None:
    path = tmp_path / "hits.jsonl"
    write_jsonl(path, HITS)
    path.write_bytes(b"\n" + path.read_bytes())
    found = list(each_line(path, Hit))
    assert [hit for _, hit in found] == HITS
    offsets = [offset for offset, _ in found]
    assert lines_at(path, [offsets[3], offsets[0]], Hit) == [HITS[3], HITS[0]]
    assert spans_at(path, [(offsets[1], 2), (offsets[4], 1)], Hit) == [*HITS[1:3], HITS[4]]


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
    write_indexed(path, HITS)
    table = IndexedTable(path, Hit)
    assert list(table) == HITS
    assert (table[-1], table[1:3], len(table)) == (HITS[-1], HITS[1:3], 5)
    with pytest.raises(IndexError):
        table[5]
    write_indexed(path, [])
    assert list(IndexedTable(path, Hit)) == []


def test_an_indexed_table_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "hits.jsonl"
    write_indexed(path, HITS)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match="cut off"):
        IndexedTable(path, Hit)
