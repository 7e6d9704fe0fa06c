"""Rows of posts and questions as candidates, what they cite, and the shelf of what is searched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hoofbeat.errors import UsageError
from hoofbeat.recipes.collecting import Shelf, address_key, asked_items, cited, readable
from hoofbeat.recipes.items import Item, Rejection
from hoofbeat.recipes.workshop import Settings
from hoofbeat.records import Document, Section
from tests.recipes.support import a_workshop


def _rows(tmp_path: Path, *rows: object, name: str = "rows.jsonl") -> list[Item]:
    file = tmp_path / name
    file.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
    return list(asked_items(str(file), "questions"))


def test_rows_become_candidates(tmp_path: Path) -> None:
    post, exam, bare = _rows(
        tmp_path,
        {"id": "p1", "title": "Why?", "body": "It hurts.", "answer": "Because.", "documents": ["a", "b"], "votes": 7},
        {"id": 2, "question": "Which one?", "options": {"A": "This", "B": "That"}, "answer": "b"},
        {"text": "What?", "answer": "It"},
    )
    assert (post.id, post["query"], post["documents"], post["votes"]) == ("p1", "Why?\n\nIt hurts.", ["a", "b"], "7")
    assert (exam.id, exam["answer"], exam["options"]) == ("2", "That", ["This", "That"])
    assert (bare.id, "options" in bare.values) == ("row-3", False)


def test_options_come_in_several_forms(tmp_path: Path) -> None:
    listed, parted, text = _rows(
        tmp_path,
        {"id": "l", "text": "?", "options": ["x", "y", ""], "answer": "B)"},
        {"id": "p", "text": "?", "options": "x | y", "answer": "A"},
        {"id": "t", "text": "?", "options": {"A": "x", "B": "y"}, "answer": "X"},
    )
    assert (listed["answer"], listed["options"]) == ("y", ["x", "y"])
    assert (parted["answer"], text["answer"]) == ("x", "x")


def test_a_csv_file_is_read_too(tmp_path: Path) -> None:
    (item,) = _rows(tmp_path, "id,text,answer,documents,votes", "c1,Why?,So.,https://a.org/x | b,4", name="rows.csv")
    assert item["documents"] == ["https://a.org/x", "b"]


def test_hostile_rows_are_turned_away_with_a_reason(tmp_path: Path) -> None:
    items = _rows(
        tmp_path,
        "{broken",
        "[1, 2]",
        {"id": "no-option", "text": "Which?", "options": ["x", "y"], "answer": "Z"},
        {"id": "ten", "text": "Which?", "options": [str(n) for n in range(60)], "answer": "zz"},
        {"id": "no-answer", "text": "Which?", "answer": ""},
        {"id": "no-question", "text": "  ", "answer": "x"},
        {"id": "nested", "text": {"a": 1}, "answer": ["x"]},
        {"id": "votes", "text": "Why?", "answer": "So.", "votes": "many"},
        {"id": "few", "text": "Why?", "answer": "So.", "votes": 3},
        {"id": "other", "text": "Why?", "answer": "So.", "accepted": False},
        {"id": "good", "text": "Why?", "answer": "So.", "votes": 4, "accepted": True},
    )
    with a_workshop(tmp_path, [Document(id="d", title="", text="x")], Settings(), lambda n, r: {}) as shop:
        outcomes = readable("rows", least_votes=4).run(items, shop)
    reasons = {
        item.id: out.reason if isinstance(out, Rejection) else "kept" for item, out in zip(items, outcomes, strict=True)
    }
    assert reasons == {
        "row-1": "the row can't be used",
        "row-2": "the row can't be used",
        "no-option": "the row can't be used",
        "ten": "the row can't be used",
        "no-answer": "there is no answer",
        "no-question": "there is no question",
        "nested": "there is no question",
        "votes": "the row can't be used",
        "few": "the answer has too few votes",
        "other": "the answer is not the accepted one",
        "good": "kept",
    }


def test_a_task_without_its_file_says_so() -> None:
    with pytest.raises(UsageError, match="a file of posts"):
        list(asked_items("", "posts"))


_TEXT = "One sentence stands here. Another one follows it. A third is the last."
_PAGES = [
    Document(id="a1", title="A", text=_TEXT, facets={"url": "https://www.a.org/page/"}),
    Document(id="a2", title="A again", text=_TEXT, facets={"url": "http://a.org/page#part"}),
    Document(id="b", title="B", text=_TEXT, facets={"doi": "10.1/x"}),
    Document(id="void", title="Void", text=""),
]


def test_addresses_are_compared_without_what_does_not_matter() -> None:
    same = {address_key(text) for text in ("https://www.A.org/page/", "http://a.org/page#top", " //a.org/page ")}
    assert same == {"a.org/page"}
    assert address_key("PMC123") == "pmc123"


def test_cited_pages_are_found_by_id_and_address(tmp_path: Path) -> None:
    shelf = Shelf(chunking="words:5")
    items = [
        Item(id="url", values={"documents": ["https://a.org/page"]}),
        Item(id="many", values={"documents": ["10.1/X", "a.org/page", "https://a.org/page/"]}),
        Item(id="elsewhere", values={"documents": ["https://c.org"]}),
        Item(id="none"),
    ]
    with a_workshop(tmp_path, _PAGES, Settings(), lambda n, r: {}) as shop:
        url, many, elsewhere, none = cited("cited", shelf, most=1).run(items, shop)
        assert isinstance(url, Item)
        assert url["cited"] == ["a1", "a2"]  # one page that the corpus holds in two documents
        assert url["known"] == [f"{page}.p{n}" for page in ("a1", "a2") for n in (1, 2, 3)]
        assert isinstance(many, Item)
        assert many["cited"] == ["b"]
        assert isinstance(elsewhere, Rejection)
        assert elsewhere.reason == "the corpus holds none of the pages it cites"
        assert isinstance(none, Rejection)
        assert none.reason == "it cites no page"
        free = cited("cited", shelf, required=False).run(items[2:], shop)
        assert [isinstance(each, Item) and each["known"] for each in free] == [[], []]


def test_pieces_are_exact_parts_of_their_documents(tmp_path: Path) -> None:
    shelf = Shelf(chunking="words:5")
    with a_workshop(tmp_path, _PAGES, Settings(), lambda n, r: {}) as shop:
        pieces = shelf.pieces(shop)
        assert len({piece.id for piece in pieces}) == len(pieces) == 9  # the empty document has none
        for piece, document in zip(pieces, shelf.documents(shop), strict=True):
            source = shop.document(piece.document).text
            assert document.text == source[piece.start : piece.end] == piece.span(shop.document(piece.document)).quote
            assert document.id == piece.id
        shelf.withdraw({"a1"}, shop)
        assert {piece.document for piece in shelf.pieces(shop)} == {"a2", "b"}
        assert shelf.text("b.p1", shop) == "B\nOne sentence stands here. Another"


def _report(id: str = "r") -> Document:
    parts = (("Introduction", "introduction"), ("Case", "case"), ("Discussion", "discussion"))
    text, sections = "", []
    for heading, role in parts:
        start = len(text)
        body = f"{heading}\n\nThe text of the {role} stands here.\n\n"
        sections.append(
            Section(
                heading=heading, level=1, start=start, body=start + len(heading) + 2, end=start + len(body), role=role
            )
        )
        text += body
    return Document(id=id, title="A title", text=text, sections=tuple(sections))


def test_a_case_stands_on_the_shelf_without_its_discussion(tmp_path: Path) -> None:
    shelf = Shelf(cases=True)
    with a_workshop(tmp_path, [_report()], Settings(), lambda n, r: {}) as shop:
        (piece,) = shelf.pieces(shop)
        shown = shelf.text(piece.id, shop)
    assert piece.id == "r"
    assert "text of the case" in shown
    assert "discussion" not in shown
