from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoofbeat.errors import UsageError
from hoofbeat.records import Document, Section
from hoofbeat.retrieval.chunking import chunk, indexed_text, whole

TEXT = "Preamble words here.\n\nCase\n\none two three four five six seven\n\nOutcome\n\nshe recovered\n\nfooter"


def sectioned() -> Document:
    case, outcome = TEXT.index("Case"), TEXT.index("Outcome")
    return Document(
        id="doc",
        title="A case",
        text=TEXT,
        sections=(
            Section(heading="Case", level=1, start=case, body=case + 6, end=outcome, page=3),
            Section(heading="Outcome", level=1, start=outcome, body=outcome + 9, end=TEXT.index("footer")),
        ),
    )


def test_windows_overlap_inside_sections() -> None:
    found = chunk(sectioned(), size_words=4, overlap_words=2)
    assert [(passage.id, passage.heading, passage.text, passage.page) for passage in found] == [
        ("doc#0", "A case", "Preamble words here.", None),
        ("doc#1", "Case", "one two three four", 3),
        ("doc#2", "Case", "three four five six", 3),
        ("doc#3", "Case", "five six seven", 3),
        ("doc#4", "Outcome", "she recovered", None),
        ("doc#5", "A case", "footer", None),
    ]
    assert indexed_text(found[4]) == "Outcome\nshe recovered"


@given(st.text(max_size=400), st.integers(1, 12), st.data())
def test_offsets_are_exact_and_no_word_is_lost(text: str, size: int, data: st.DataObject) -> None:
    overlap = data.draw(st.integers(0, size - 1))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    sections = tuple(
        Section(heading=f"h{start}", level=1, start=start, body=start, end=end) for start, end in pairwise(cuts)
    )
    document = Document(id="d", title="t", text=text, sections=sections)
    found = chunk(document, size, overlap)
    assert len({passage.id for passage in found}) == len(found)
    for passage in found:
        assert text[passage.start : passage.end] == passage.text
    covered = {place for passage in found for place in range(passage.start, passage.end)}
    assert all(place in covered for place, letter in enumerate(text) if not letter.isspace())


def test_scripts_without_spaces_are_cut_too() -> None:
    found = chunk(Document(id="d", title="", text="心不全" * 100), 100, 0)
    assert [len(passage.text) for passage in found] == [100, 100, 100]


@pytest.mark.parametrize("text", ["", " \n\t "])
def test_document_without_words_is_still_one_passage(text: str) -> None:
    document = Document(id="d", title="Only a title", text=text)
    assert chunk(document) == whole(document)
    assert indexed_text(whole(document)[0]).startswith("Only a title")


@pytest.mark.parametrize(("size", "overlap"), [(0, 0), (10, 10), (10, -1)])
def test_impossible_sizes_are_refused(size: int, overlap: int) -> None:
    with pytest.raises(UsageError, match="chunk"):
        chunk(sectioned(), size, overlap)
