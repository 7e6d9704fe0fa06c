from __future__ import annotations

from itertools import pairwise

import hypothesis.strategies as st
from hypothesis import given, settings

from hoofbeat.records import Document, DocumentTable, Figure, Section, Span
from hoofbeat.reports.marked_document import (
    DocumentBlock,
    contents,
    document_view,
    evidence_marks,
    layout,
    merge_marks,
    split_at_marks,
    split_into_parts,
)

TEXT = "Case\nA man fell.\n\nHe rose. Figure 1. A fall.\n\nDiscussion\nMen fall. a b"
_TALK, _FIGURE = TEXT.index("Discussion"), TEXT.index("Figure")
CASE = Section(heading="Case", level=1, start=0, body=5, end=_TALK - 2, role="case")
TALK = Section(heading="Discussion", level=1, start=_TALK, body=_TALK + 11, end=len(TEXT))
FIGURE = Figure(id="f", label="Figure 1", caption="A fall.", files=("i.png",), start=_FIGURE, end=_FIGURE + 17)


def a_document(**changes: object) -> Document:
    fields = {"id": "d", "title": "t", "text": TEXT, "sections": (CASE, TALK), "figures": (FIGURE,), **changes}
    return Document(**fields)  # type: ignore[arg-type]


def words(blocks: list[DocumentBlock]) -> list[tuple[str, str]]:
    return [(block.kind, "".join(piece.text for piece in block.pieces)) for block in blocks]


def test_a_document_is_laid_out_in_order_with_its_figures_in_place() -> None:
    assert words(layout(a_document(), [])) == [
        ("heading", "Case"),
        ("text", "A man fell."),
        ("text", "He rose. "),
        ("figure", "Figure 1. A fall."),
        ("heading", "Discussion"),
        ("text", "Men fall. a b"),
    ]


def test_marks_are_numbered_joined_and_cut_to_the_text() -> None:
    assert merge_marks([(5, 9), (0, 2), (8, 12), (12, 13), (30, 20), (-4, 1), (90, 99)], 40) == [(0, 2), (5, 13)]
    made = split_at_marks("abcdef", [(1, 2), (3, 5)])
    assert [(piece.text, piece.mark, piece.first) for piece in made] == [
        ("a", 0, False),
        ("b", 1, True),
        ("c", 0, False),
        ("de", 2, True),
        ("f", 0, False),
    ]
    rest = split_at_marks("abcdef", [(1, 5)], 3)
    assert [(piece.text, piece.mark, piece.first) for piece in rest] == [("de", 1, False), ("f", 0, False)]


def test_a_mark_that_crosses_paragraphs_and_a_caption_is_one_mark() -> None:
    blocks = layout(a_document(), merge_marks([(TEXT.index("fell"), TEXT.index("A fall"))], len(TEXT)))
    marked = [(block.kind, piece.text, piece.first) for block in blocks for piece in block.pieces if piece.mark]
    assert marked == [("text", "fell.", True), ("text", "He rose. ", False), ("figure", "Figure 1. ", False)]


def test_a_mark_that_begins_between_paragraphs_begins_where_something_is_shown() -> None:
    gap = TEXT.index("\n\nHe")
    blocks = layout(a_document(), [(gap, gap + 6)])
    marked = [(piece.text, piece.first) for block in blocks for piece in block.pieces if piece.mark]
    assert marked == [("He r", True)]


MARKS = st.lists(st.tuples(st.integers(-5, 60), st.integers(-5, 60)), max_size=6)


@given(st.text(max_size=50), MARKS, st.integers(0, 50), st.integers(0, 50))
@settings(max_examples=150, deadline=None)
def test_pieces_are_the_text_whatever_is_marked(text: str, marks: list[tuple[int, int]], one: int, two: int) -> None:
    start, end = sorted((min(one, len(text)), min(two, len(text))))
    found = merge_marks(marks, len(text))
    made = split_at_marks(text, found, start, end)
    assert "".join(piece.text for piece in made) == text[start:end]
    assert all(piece.text for piece in made)
    wanted = {place for low, high in marks for place in range(max(low, start), min(high, end))}
    assert sum(len(piece.text) for piece in made if piece.mark) == len(wanted)


OFFSETS = st.integers(-20, 120)
SECTIONS = st.lists(st.tuples(OFFSETS, OFFSETS, OFFSETS, st.integers(-1, 9)), max_size=5)


@given(SECTIONS, st.lists(st.tuples(OFFSETS, OFFSETS), max_size=4), MARKS)
@settings(max_examples=150, deadline=None)
def test_hostile_offsets_never_break_the_layout(
    places: list[tuple[int, int, int, int]], insets: list[tuple[int, int]], marks: list[tuple[int, int]]
) -> None:
    document = a_document(
        sections=tuple(Section(heading="h", level=d, start=a, body=b, end=c) for a, b, c, d in places),
        figures=tuple(Figure(id="f", start=a, end=b) for a, b in insets),
        tables=tuple(DocumentTable(id="t", start=b, end=a) for a, b in insets),
    )
    view = document_view(document, marks)
    assert all(block.place in view.figures for block in view.blocks if block.kind == "figure")
    assert all(1 <= block.level <= 4 for block in view.blocks if block.kind == "heading")
    shown = "".join(piece.text for block in view.blocks for piece in block.pieces if block.kind != "heading")
    assert len(shown) <= len(TEXT)


def test_a_long_text_comes_in_parts_and_the_mark_says_which() -> None:
    text = "\n\n".join(f"Paragraph {number} " + "word " * 150 for number in range(2_000))
    last = Section(heading="End", level=1, start=1_400_000, body=1_400_000, end=len(text))
    document = a_document(text=text, sections=(last,), figures=())
    every = split_into_parts(text)
    assert every[0].start == 0
    assert every[-1].end == len(text)
    assert all(one.end == two.start for one, two in pairwise(every))
    assert max(part.end - part.start for part in every) < 205_000
    place = text.index("Paragraph 1500")
    view = document_view(document, [(place, place + 14)])
    assert view.part.start <= place < view.part.end
    assert [piece.text for block in view.blocks for piece in block.pieces if piece.mark] == ["Paragraph 1500"]
    assert document_view(document, [], 99).part.number == len(every)
    listed = contents(document, every)[0]
    assert every[listed.part - 1].start <= 1_400_000 < every[listed.part - 1].end


def test_a_text_without_any_break_comes_in_parts_too() -> None:
    every = split_into_parts("x" * 5_000_000)
    assert len(every) == 25
    assert sum(part.end - part.start for part in every) == 5_000_000


def test_figures_and_tables_without_a_place_come_last_and_large_tables_are_cut() -> None:
    loose = Figure(id="g", label="Figure 2")
    table = DocumentTable(id="t", label="Table 1", rows=tuple((str(number), "x") for number in range(1000)))
    view = document_view(a_document(figures=(FIGURE, loose), tables=(table,)), [])
    assert (view.loose, view.loose_tables) == ((1,), (0,))
    assert len(view.tables[0].rows) == 300
    assert view.tables[0].left_out == 700


def test_evidence_that_is_not_there_is_told_and_not_marked() -> None:
    document = a_document()
    good = Span(document="d", start=5, end=10, quote="A man")
    wrong = Span(document="d", start=6, end=10, quote="A cat")
    other = Span(document="e", start=0, end=4, quote="Case")
    assert evidence_marks(document, [good, wrong, other]) == ([(5, 10)], ("A cat",))
