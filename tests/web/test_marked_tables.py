"""Documents with tables and figures as the page writes them: whatever is marked, wherever it begins and ends."""

from __future__ import annotations

import re
from typing import Any

import hypothesis.strategies as st
from hypothesis import given, settings

from hoofbeat.records import Document, DocumentTable, Figure, Section
from hoofbeat.reports.marked_document import Mark, document_view
from hoofbeat.web.page_rendering import environment

TEXT = "Case\nHe fell.\n\nDay 1 12\nDay 2 24\n\nThen.\n\nNo rows\n\nTalk\nFig 1. A fall.\n\nEnd."
ROWS = (("Day 1", "12"), ("Day 2", "24"))


def table(words: str, rows: tuple[tuple[str, ...], ...] = (), until: str = "") -> DocumentTable:
    start = TEXT.index(words)
    return DocumentTable(
        id="t", label="Table", rows=rows, start=start, end=TEXT.index(until or words) + len(until or words)
    )


FULL, EMPTY = table("Day 1 12", ROWS, "Day 2 24"), table("No rows")
FIGURE = Figure(id="f", files=("i.png",), start=TEXT.index("Fig"), end=TEXT.index("Fig") + 14)
SECTIONS = (
    Section(heading="Case", level=1, start=0, body=5, end=TEXT.index("Talk")),
    Section(heading="Talk", level=1, start=TEXT.index("Talk"), body=TEXT.index("Fig"), end=len(TEXT)),
)


def page_of(document: Document, marks: list[Mark]) -> str:
    """The document as the page has it. Marks have names of their own, and whoever follows one gets somewhere."""
    view = document_view(document, marks)
    macros: Any = environment().get_template("browse/reading.html").module
    written = str(macros.text(view, "/corpora/c/files/1"))
    named = re.findall(r'id="(mark-\d+)"', written)
    assert len(named) == len(set(named)), named
    pieces = [piece for block in view.blocks for piece in block.pieces if piece.mark and piece.text.strip()]
    if pieces and pieces[0].mark == 1:
        assert named[:1] == ["mark-1"], "the link to the first mark leads there"
    return written


def test_a_mark_may_begin_and_end_at_every_character() -> None:
    document = Document(id="d", title="t", text=TEXT, sections=SECTIONS, tables=(FULL, EMPTY), figures=(FIGURE,))
    for start in range(len(TEXT)):
        for end in range(start + 1, len(TEXT) + 1):
            written = page_of(document, [(start, end)])
            touched = start < FULL.end and end > FULL.start
            assert ("In this table</mark>" in written) == touched, (start, end)


PLACES = st.integers(-3, len(TEXT) + 3)
RANGES = st.tuples(PLACES, PLACES)


@given(
    st.lists(RANGES, max_size=5), st.lists(st.tuples(RANGES, st.booleans()), max_size=4), st.lists(RANGES, max_size=2)
)
@settings(max_examples=300, deadline=None)
def test_tables_and_marks_may_be_anywhere(
    marks: list[Mark], tables: list[tuple[Mark, bool]], figures: list[Mark]
) -> None:
    document = Document(
        id="d",
        title="t",
        text=TEXT,
        sections=SECTIONS,
        tables=tuple(DocumentTable(id="t", rows=ROWS if full else (), start=a, end=b) for (a, b), full in tables),
        figures=tuple(Figure(id="f", start=a, end=b) for a, b in figures),
    )
    page_of(document, marks)
