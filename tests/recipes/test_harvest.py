"""Harvest files: what is read of them, and what becomes of rows and files that can't be used."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path

import pytest

from hoofbeat.errors import HoofbeatError
from hoofbeat.recipes.messages.harvest import BadRow, HarvestedQuestion, HarvestLimits, asks, plain, read_harvest


def _csv(tmp_path: Path, text: str, name: str = "asked.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode())
    return path


def test_columns_are_found_by_their_names(tmp_path: Path) -> None:
    path = _csv(
        tmp_path,
        "ID,Question,URL,Date,Organ\n"
        '7,"Can I swim, and when?",https://old.reddit.com/r/transplant/comments/abc/my_story,2021-03-04,Kidney\n',
    )
    (row,) = read_harvest([path])
    assert row == HarvestedQuestion(
        file="asked.csv", line=2, text="Can I swim, and when?", site="reddit.com", year="2021", group="Kidney"
    )


def test_a_subject_stands_before_the_message(tmp_path: Path) -> None:
    path = tmp_path / "asked.jsonl"
    rows = [
        {"subject": "salts 20 mg", "message": "are they gluten free"},
        {"title": "Grapefruit?", "body": "Grapefruit? Can I?"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    first, second = read_harvest([path])
    assert isinstance(first, HarvestedQuestion)
    assert first.text == "salts 20 mg\nare they gluten free"
    assert isinstance(second, HarvestedQuestion)
    assert second.text == "Grapefruit? Can I?"


def test_bad_rows_are_named_by_their_line_and_the_others_go_on(tmp_path: Path) -> None:
    path = _csv(tmp_path, "text,source\nCan I eat this?,x\n,y\n???,y\nOne,two,three\nMay I drive?,z\n")
    rows = read_harvest([path])
    assert [(row.line, isinstance(row, BadRow)) for row in rows] == [
        (2, False), (3, True), (4, True), (5, True), (6, False),
    ]  # fmt: skip
    lines = tmp_path / "asked.jsonl"
    lines.write_text('{"text": "Is it safe?"}\nno json\n[1]\n{"text": ["a"]}\n{"text": "\\ud800?"}\n')
    found = read_harvest([lines])
    assert [isinstance(row, BadRow) for row in found[:4]] == [False, True, True, True]
    assert all("no json" not in row.why for row in found if isinstance(row, BadRow))


def test_a_question_that_is_far_too_long_is_not_taken(tmp_path: Path) -> None:
    path = _csv(tmp_path, "text\n" + "long " * 5_000 + "\nCan I?\n")
    long, _ = read_harvest([path])
    assert isinstance(long, BadRow)
    assert "longer" in long.why


@pytest.mark.parametrize(
    ("cell", "left"),
    [
        ('=HYPERLINK("http://x.example","Can I?")', 'HYPERLINK("http://x.example","Can I?")'),
        ("=cmd|' /C calc'!A0", "cmd|' /C calc'!A0"),
        ("'=1+1", "1+1"),
        ("+SUM(A1) can I?", "SUM(A1) can I?"),
        ("@SUM(A1)", "SUM(A1)"),
        ("- Can I swim?", "Can I swim?"),
        ("@kidneykat may I?", "@kidneykat may I?"),
        ("+1 555 0100 call me", "+1 555 0100 call me"),
        ("<p>Can I &amp; my <b>dog</b>?</p>", "Can I & my  dog ?"),
    ],
)
def test_cells_that_a_spreadsheet_would_run_are_plain(cell: str, left: str) -> None:
    assert plain(cell) == left


def test_what_leads_to_a_post_is_not_kept(tmp_path: Path) -> None:
    path = _csv(
        tmp_path,
        "text,source\nCan I?,https://www.bbc.co.uk/a/b?user=tom\nMay I?,a.example.org/u/tom\n"
        "Should I?,u/tom\nDo I?,Inspire\n",
    )
    assert [row.site for row in read_harvest([path]) if isinstance(row, HarvestedQuestion)] == [
        "bbc.co.uk",
        "example.org",
        "",
        "",
    ]


@pytest.mark.parametrize(
    ("source", "site"),
    [
        ("Jane Miller", ""),
        ("Jane.Miller", ""),
        ("dark.wanderer", ""),
        ("https://jane-miller.com/blog", ""),
        ("jane.miller.com", ""),
        ("tom@mail.com", ""),
        ("https://www.nhs.uk/a", "nhs.uk"),
        ("Reddit.com", "reddit.com"),
    ],
)
def test_a_site_is_a_host_that_names_nobody(tmp_path: Path, source: str, site: str) -> None:
    (row,) = read_harvest([_csv(tmp_path, f"text,source\nCan I swim?,{source}\n")])
    assert isinstance(row, HarvestedQuestion)
    assert row.site == site


def test_several_files_also_gzipped(tmp_path: Path) -> None:
    first = _csv(tmp_path, "text\nCan I?\n")
    second = tmp_path / "more.jsonl.gz"
    second.write_bytes(gzip.compress(b'{"question": "May I?"}\n'))
    assert [row.file for row in read_harvest([first, second])] == ["asked.csv", "more.jsonl.gz"]


def test_files_that_cant_be_used_say_so(tmp_path: Path) -> None:
    with pytest.raises(HoofbeatError, match="no such file"):
        read_harvest([tmp_path / "none.csv"])
    with pytest.raises(HoofbeatError, match="a table"):
        read_harvest([_csv(tmp_path, "x", "asked.docx")])
    with pytest.raises(HoofbeatError, match="no row holds a question"):
        read_harvest([_csv(tmp_path, "name,age\nTom,4\n")])
    with pytest.raises(HoofbeatError):
        read_harvest(
            [
                _csv(tmp_path, "text\n\udcff?\n".encode("utf-8", "surrogateescape").decode("latin-1"), "b.csv"),
                tmp_path / "c.csv",
            ]
        )
    with pytest.raises(HoofbeatError, match="larger than"):
        read_harvest([_csv(tmp_path, "text\nCan I?\n")], HarvestLimits(bytes=3))
    with pytest.raises(HoofbeatError, match="more than 1 rows"):
        read_harvest([_csv(tmp_path, "text\nCan I?\nMay I?\n")], HarvestLimits(rows=1))
    (row,) = read_harvest([_csv(tmp_path, "text\nCan I?\n")], HarvestLimits(characters=5))
    assert isinstance(row, BadRow)
    assert row.why == "the question is longer than 5 characters"


def test_an_empty_file_holds_nothing(tmp_path: Path) -> None:
    assert read_harvest([_csv(tmp_path, "")]) == []
    assert read_harvest([_csv(tmp_path, "text\n")]) == []


def test_long_runs_of_lines_are_looked_through_at_once() -> None:
    began = time.process_time()
    assert not asks("\n" * 50_000)
    assert asks("\n" * 50_000 + " - what helps")
    assert time.process_time() - began < 2
