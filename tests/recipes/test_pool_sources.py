"""Rows of posts and questions as candidates, what they cite, and the shelf of what is searched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hoofbeat.errors import UsageError
from hoofbeat.recipes.context import RecipeSettings
from hoofbeat.recipes.pools.pool_sources import PieceCollection, address_key, asked_items, cited, readable
from hoofbeat.recipes.recipe_items import ItemRejection, RecipeItem
from hoofbeat.records import Document, Section
from tests.recipes.support import a_context


def _rows(tmp_path: Path, *rows: object, name: str = "rows.jsonl") -> list[RecipeItem]:
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


def test_an_organism_at_its_own_letter_keeps_its_genus(tmp_path: Path) -> None:
    options = {"A": "A. Gout", "B": "B. cereus sepsis", "C": "C. difficile colitis"}
    (row,) = _rows(tmp_path, {"id": 1, "question": "Which?", "options": options, "answer": "C"})
    assert row["answer"] == "C. difficile colitis"
    assert row["options"] == ["Gout", "B. cereus sepsis", "C. difficile colitis"]


def test_more_options_than_letters_are_refused_not_cut(tmp_path: Path) -> None:
    many = [f"option {n}" for n in range(27)]
    listed, parted, named, all_letters = _rows(
        tmp_path,
        {"id": "l", "text": "?", "options": many, "answer": "A"},
        {"id": "p", "text": "?", "options": " | ".join(many), "answer": "A"},
        {"id": "n", "text": "?", "options": {str(n): text for n, text in enumerate(many)}, "answer": "option 0"},
        {"id": "z", "text": "?", "options": many[:26], "answer": "Z"},
    )
    for item in (listed, parted, named):
        assert "27 options are more than there are letters" in item["problem"]
    assert all_letters["answer"] == "option 25"


def test_a_letter_before_its_own_option_goes(tmp_path: Path) -> None:
    one, other = _rows(
        tmp_path,
        {"id": "a", "text": "?", "options": {"A": "A. Vasculitis", "B": "B.\u200bFever"}, "answer": "B"},
        {"id": "b", "text": "?", "options": ["C. difficile", "b) E. coli"], "answer": "B) E. coli"},
    )
    assert (one["answer"], one["options"]) == ("Fever", ["Vasculitis", "Fever"])
    assert (other["answer"], other["options"]) == ("E. coli", ["C. difficile", "E. coli"])


def test_the_later_of_two_rows_of_one_id_is_turned_away(tmp_path: Path) -> None:
    first, again, third, bare = _rows(
        tmp_path,
        {"id": "same", "text": "Why?", "answer": "So."},
        {"id": "same", "text": "How?", "answer": "Thus."},
        {"id": " same ", "text": "When?", "answer": "Now."},
        {"id": "row-4", "text": "Where?", "answer": "Here."},
    )
    assert first["query"] == "Why?"
    assert bare["query"] == "Where?"
    assert len({item.id for item in (first, again, third, bare)}) == 4
    assert again["problem"] == "rows.jsonl, line 2: the id same is that of line 1"
    with a_context(tmp_path, [Document(id="d", title="", text="x")], RecipeSettings(), lambda n, r: {}) as context:
        outcomes = readable("rows").run([first, again, third], context)
    assert [isinstance(each, ItemRejection) for each in outcomes] == [False, True, True]


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
    with a_context(tmp_path, [Document(id="d", title="", text="x")], RecipeSettings(), lambda n, r: {}) as context:
        outcomes = readable("rows", min_votes=4).run(items, context)
    reasons = {
        item.id: out.reason if isinstance(out, ItemRejection) else "kept"
        for item, out in zip(items, outcomes, strict=True)
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


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("https://doi.org/10.1/X", "10.1/x"),
        ("http://dx.doi.org/10.1016/s0140-6736%2820%29", "10.1016/s0140-6736(20)"),
        ("doi: 10.1/x", "10.1/x"),
        ("https://pubmed.ncbi.nlm.nih.gov/123/", "pmid:123"),
        ("https://www.ncbi.nlm.nih.gov/pubmed/123?dopt=Abstract", "pmid:123"),
        ("PMID: 123", "pmid:123"),
        ("https://europepmc.org/article/MED/123", "pmid:123"),
        ("https://www.ncbi.nlm.nih.gov/pmc/articles/PMC123/", "pmc123"),
        ("https://pmc.ncbi.nlm.nih.gov/articles/PMC123/#S2", "pmc123"),
        ("https://europepmc.org/article/PMC/PMC123", "pmc123"),
        ("https://example.org/10.1/x", "example.org/10.1/x"),
        ("ncbi.nlm.nih.gov/books/NBK123", "ncbi.nlm.nih.gov/books/nbk123"),
    ],
)
def test_an_address_of_a_number_is_the_number(address: str, key: str) -> None:
    assert address_key(address) == key


def test_articles_are_found_by_the_addresses_of_their_numbers(tmp_path: Path) -> None:
    documents = [
        Document(id="doi", title="", text=_TEXT, facets={"doi": "https://doi.org/10.1/x"}),
        Document(id="facet", title="", text=_TEXT, facets={"pmid": "123", "pmcid": "77"}),
        Document(id="12345678", title="", text=_TEXT),
        Document(id="PMC9", title="", text=_TEXT),
        Document(id="55", title="", text=_TEXT),
    ]
    wanted = {
        "10.1/X": ["doi"],
        "https://pubmed.ncbi.nlm.nih.gov/123": ["facet"],
        "123": ["facet"],
        "https://www.ncbi.nlm.nih.gov/pmc/articles/PMC77/": ["facet"],
        "https://pubmed.ncbi.nlm.nih.gov/12345678/": ["12345678"],
        "https://pmc.ncbi.nlm.nih.gov/articles/PMC9": ["PMC9"],
        "https://pubmed.ncbi.nlm.nih.gov/55/": [],  # a number that merely is some document's id
    }
    shelf = PieceCollection(chunking="words:5")
    with a_context(tmp_path, documents, RecipeSettings(), lambda n, r: {}) as context:
        assert {name: shelf.resolve(name, context) for name in wanted} == wanted


def test_cited_pages_are_found_by_id_and_address(tmp_path: Path) -> None:
    shelf = PieceCollection(chunking="words:5")
    items = [
        RecipeItem(id="url", values={"documents": ["https://a.org/page"]}),
        RecipeItem(id="many", values={"documents": ["10.1/X", "a.org/page", "https://a.org/page/"]}),
        RecipeItem(id="elsewhere", values={"documents": ["https://c.org"]}),
        RecipeItem(id="none"),
    ]
    with a_context(tmp_path, _PAGES, RecipeSettings(), lambda n, r: {}) as context:
        url, many, elsewhere, none = cited("cited", shelf, maximum=1).run(items, context)
        assert isinstance(url, RecipeItem)
        assert url["cited"] == ["a1", "a2"]  # one page that the corpus holds in two documents
        assert url["known"] == [f"{page}.p{n}" for page in ("a1", "a2") for n in (1, 2, 3)]
        assert isinstance(many, RecipeItem)
        assert many["cited"] == ["b"]
        assert isinstance(elsewhere, ItemRejection)
        assert elsewhere.reason == "the corpus holds none of the pages it cites"
        assert isinstance(none, ItemRejection)
        assert none.reason == "it cites no page"
        free = cited("cited", shelf, required=False).run(items[2:], context)
        assert [isinstance(each, RecipeItem) and each["known"] for each in free] == [[], []]


def test_pieces_are_exact_parts_of_their_documents(tmp_path: Path) -> None:
    shelf = PieceCollection(chunking="words:5")
    with a_context(tmp_path, _PAGES, RecipeSettings(), lambda n, r: {}) as context:
        pieces = shelf.pieces(context)
        assert len({piece.id for piece in pieces}) == len(pieces) == 9  # the empty document has none
        for piece, document in zip(pieces, shelf.documents(context), strict=True):
            source = context.document(piece.document).text
            assert (
                document.text == source[piece.start : piece.end] == piece.span(context.document(piece.document)).quote
            )
            assert document.id == piece.id
        shelf.withdraw({"a1"}, context)
        assert {piece.document for piece in shelf.pieces(context)} == {"a2", "b"}
        assert shelf.text("b.p1", context) == "B\nOne sentence stands here. Another"


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
    shelf = PieceCollection(cases=True)
    with a_context(tmp_path, [_report()], RecipeSettings(), lambda n, r: {}) as context:
        (piece,) = shelf.pieces(context)
        shown = shelf.text(piece.id, context)
    assert piece.id == "r"
    assert "text of the case" in shown
    assert "discussion" not in shown
