from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from hoofbeat.errors import InputError
from hoofbeat.records import Document, Question
from hoofbeat.store.table_listing import DocumentLine, Listing, QuestionLine, RejectedLine, read_listing
from hoofbeat.store.tables import write_jsonl


def a_listing(folder: Path, count: int = 40) -> Listing:
    documents = [
        Document(
            id=f"d{number}",
            title="" if number == 3 else f"Title {number}",
            text="words " * number,
            licence="CC BY",
            facets={
                "year": str(2000 + number % 4),
                "topics": ["heart", "lung"] if number % 2 else ["heart"],
                "doi": f"10.1/{number}",
            },
        )
        for number in range(1, count + 1)
    ]
    write_jsonl(folder / "documents.jsonl", documents)
    return read_listing(folder / "documents.jsonl", DocumentLine)


def test_rows_are_found_by_number_and_id_and_read_from_disk(tmp_path: Path) -> None:
    listing = a_listing(tmp_path)
    assert len(listing) == 40
    assert listing.number("d17") == 17
    assert listing.number("none") is None
    assert listing.listed(3).title == "d3"
    assert listing.record(17, Document).text == "words " * 17
    assert listing.totals["characters"] == sum(6 * number for number in range(1, 41))


def test_characters_are_counted_in_any_script(tmp_path: Path) -> None:
    texts = ("Σύνδρομο", "肝移植\n後", 'so-called "rare"', "")
    rows = [Document(id=f"d{number}", title="", text=text) for number, text in enumerate(texts)]
    write_jsonl(tmp_path / "documents.jsonl", rows)
    listing = read_listing(tmp_path / "documents.jsonl", DocumentLine)
    assert listing.totals["characters"] == sum(map(len, texts))


def test_rows_are_chosen_by_facets_together(tmp_path: Path) -> None:
    listing = a_listing(tmp_path)
    assert listing.matching({"year": "2001"}) == [number for number in range(1, 41) if number % 4 == 1]
    assert listing.matching({"year": "2001", "topics": "lung"}) == listing.matching({"year": "2001"})
    assert listing.matching({"year": "2002", "topics": "lung"}) == []
    assert listing.matching({"year": "1900"}) == []
    assert listing.matching({"nothing": "x"}) == []
    assert list(listing.matching({})) == list(range(1, 41))
    assert listing.matching({"topics": "lung"}, among=(1, 2, 3, 4)) == [1, 3]
    assert listing.matching({}, among=(2, 5)) == (2, 5)


def test_counts_of_a_facet_are_those_that_the_other_choices_leave(tmp_path: Path) -> None:
    listing = a_listing(tmp_path)
    facets = {facet.name: facet for facet in listing.facets({"topics": "lung"})}
    assert dict(facets["year"].values) == {"2001": 10, "2003": 10}
    assert dict(facets["topics"].values) == {"heart": 40, "lung": 20}
    assert facets["topics"].chosen == "lung"
    few = {facet.name: facet for facet in listing.facets({}, among=(1, 5))}
    assert few["year"].values == (("2001", 2),)


def test_facets_that_tell_nothing_apart_are_left_out_with_why(tmp_path: Path) -> None:
    listing = a_listing(tmp_path)
    assert listing.facet_names == ["topics", "year"]
    assert listing.left_out == {"doi": "a different value in every row", "licence": "all rows have 'CC BY'"}


def test_a_facet_of_too_many_or_too_long_values_takes_no_memory(tmp_path: Path) -> None:
    rows = [
        Question(
            id=str(number),
            text="What?",
            facets={"many": [str(number), "shared"], "long": "x" * 500, "ok": "ab"[number % 2]},
        )
        for number in range(1500)
    ]
    write_jsonl(tmp_path / "questions.jsonl", rows)
    listing = read_listing(tmp_path / "questions.jsonl", QuestionLine)
    assert listing.facet_names == ["ok"]
    assert listing.left_out == {"long": "values that are whole texts", "many": "too many values"}


def test_candidates_can_always_be_chosen_by_step_and_reason(tmp_path: Path) -> None:
    rows = [{"id": "a", "step": "one", "reason": "too short"}, {"id": "b", "step": "two", "reason": "too long"}]
    write_jsonl(tmp_path / "rejected.jsonl", rows)
    listing = read_listing(tmp_path / "rejected.jsonl", RejectedLine)
    assert listing.facet_names == ["reason", "step"]
    assert listing.matching({"reason": "too long"}) == [2]


def test_how_far_the_reading_is_is_told(tmp_path: Path) -> None:
    a_listing(tmp_path)
    told: list[int] = []
    read_listing(tmp_path / "documents.jsonl", DocumentLine, told=told.append, note=10)
    assert len(told) == 4
    assert told == sorted(told)
    assert told[-1] < (tmp_path / "documents.jsonl").stat().st_size


def test_a_damaged_table_is_told_readably(tmp_path: Path) -> None:
    (tmp_path / "documents.jsonl").write_bytes(b'{"id": "a"}\n{"id": 7}\n')
    with pytest.raises(InputError, match=r"documents\.jsonl can't be read"):
        read_listing(tmp_path / "documents.jsonl", DocumentLine)
    (tmp_path / "documents.jsonl").write_bytes(b'{"id": "a"}\n')
    listing = read_listing(tmp_path / "documents.jsonl", DocumentLine)
    with pytest.raises(InputError, match="can't be read"):
        listing.record(1, Document)


def test_an_empty_table_and_blank_lines(tmp_path: Path) -> None:
    path = tmp_path / "documents.jsonl"
    path.write_bytes(b"")
    assert len(read_listing(path, DocumentLine)) == 0
    line = msgspec.json.encode(Document(id="a", title="t", text="x"))
    path.write_bytes(b"\n" + line + b"\n\n" + line.replace(b'"a"', b'"b"'))
    listing = read_listing(path, DocumentLine)
    assert listing.ids == ["a", "b"]
    assert listing.record(2, Document).id == "b"
