from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoofbeat.corpus.parsers.prose import TextBuilder
from hoofbeat.errors import UsageError
from hoofbeat.records import Document, Section
from hoofbeat.retrieval.index.chunking import Chunking, chunk, cut, indexed_text, pieces, whole

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


@pytest.mark.parametrize("unit", ["words", "children"])
@given(st.text(max_size=400) | st.text("aB .\n:-|1", max_size=400), st.integers(1, 12), st.data())
def test_offsets_are_exact_and_no_word_is_lost(unit: str, text: str, size: int, data: st.DataObject) -> None:
    overlap = data.draw(st.integers(0, size - 1))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    sections = tuple(
        Section(heading=f"h{start}", level=1, start=start, body=start, end=end) for start, end in pairwise(cuts)
    )
    document = Document(id="d", title="t", text=text, sections=sections)
    found = cut(document, Chunking.parse(f"{unit}:{size}/{overlap}" if overlap else f"{unit}:{size}"))
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
    with pytest.raises(UsageError, match="can't cut into"):
        chunk(sectioned(), size, overlap)


def words(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(r"\S+", text)]


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("words", "words:160/32"),
        (" Words:100 ", "words:100"),
        ("tokens:512/128", "tokens:512/128"),
        ("sentences", "sentences:128"),
        ("truncate:256", "truncate:256"),
        ("whole", "whole"),
        ("sections", "sections"),
        ("headings", "headings"),
        ("children", "children:160/32"),
        ("subsections", "subsections"),
    ],
)
def test_the_way_of_cutting_reads_and_prints(text: str, canonical: str) -> None:
    assert str(Chunking.parse(text)) == canonical
    assert Chunking.parse(canonical) == Chunking.parse(text)


@pytest.mark.parametrize(
    "text", ["", "bites", "whole:3", "words:0", "words:5/5", "sentences:9/3", "words:-1", "tokens:1/2/3"]
)
def test_what_is_no_way_of_cutting(text: str) -> None:
    with pytest.raises(UsageError, match="cut"):
        Chunking.parse(text)


def test_tokens_run_over_sections_and_share() -> None:
    found = cut(sectioned(), Chunking.parse("tokens:6/2"), words)
    assert [passage.text.split()[0] for passage in found] == ["Preamble", "one", "five", "she"]
    assert [passage.text.split()[-1] for passage in found] == ["two", "six", "recovered", "footer"]
    assert {passage.heading for passage in found} == {"A case"}
    assert found[1].page == 3
    assert [passage.id for passage in found][:2] == ["doc#tokens:6/2#0", "doc#tokens:6/2#1"]


def test_truncation_keeps_the_beginning() -> None:
    (only,) = cut(sectioned(), Chunking.parse("truncate:3"), words)
    assert only.text == "Preamble words here."


def test_sentences_are_laid_together_while_they_fit() -> None:
    text = "One two. Three four five. Six. Seven eight nine ten eleven. Twelve."
    found = cut(Document(id="d", title="t", text=text), Chunking.parse("sentences:5"), words)
    assert [passage.text for passage in found] == [
        "One two. Three four five.",
        "Six.",
        "Seven eight nine ten eleven.",
        "Twelve.",
    ]


def test_sections_and_headings_stand_side_by_side() -> None:
    document = sectioned()
    bodies, headings = cut(document, Chunking.parse("sections")), cut(document, Chunking.parse("headings"))
    assert [passage.heading for passage in bodies] == [passage.heading for passage in headings]
    assert [passage.heading for passage in headings] == ["A case", "Case", "Outcome", "A case"]
    assert {passage.text for passage in headings} == {""}
    assert bodies[1].text == "one two three four five six seven"


@pytest.mark.parametrize(
    "way",
    [
        "words:5/2",
        "tokens:5/2",
        "sentences:5",
        "sections",
        "headings",
        "truncate:5",
        "whole",
        "children:5/2",
        "subsections",
        "subheadings",
    ],
)
def test_a_document_without_words_has_one_passage(way: str) -> None:
    for text in ("", " \n "):
        (only,) = cut(Document(id="d", title="Title", text=text), Chunking.parse(way), words)
        assert (only.heading, only.text.strip()) == ("Title", "")


@given(st.text(alphabet="ab .\n", max_size=120), st.sampled_from(["words:4/1", "tokens:4/1", "sentences:4"]))
def test_queries_are_cut_like_documents_and_lose_nothing(text: str, way: str) -> None:
    parts = pieces(text, Chunking.parse(way), words)
    assert parts
    assert set(" ".join(parts).split()) == set(text.split())


def test_queries_stay_whole_or_are_cut_off() -> None:
    assert pieces("a b c", Chunking.parse("whole")) == ["a b c"]
    assert pieces("a b c", Chunking.parse("truncate:2"), words) == ["a b"]
    assert pieces("", Chunking.parse("tokens:2"), words) == [""]


def letters(text: str) -> list[tuple[int, int]]:
    """Tokens of a tokenizer that passes over all that is no letter, as encoders pass over accents."""
    return [match.span() for match in re.finditer(r"[^\W\d_]+", text)]


def test_what_an_encoder_passes_over_is_not_lost_between_windows() -> None:
    text = "\ufeffcafe\u0301 \U0001f600 na\u0308he  rot\u200b! \n"
    for way in ("tokens:1", "tokens:2/1"):
        found = cut(Document(id="d", title="", text=text), Chunking.parse(way), letters)
        assert all(text[each.start : each.end] == each.text for each in found)
        covered = {place for each in found for place in range(each.start, each.end)}
        assert all(place in covered for place, letter in enumerate(text) if not letter.isspace())
    assert pieces(text, Chunking.parse("tokens:1"), letters) == [
        "\ufeffcafe\u0301 \U0001f600", "na\u0308", "he", "rot\u200b!",
    ]  # fmt: skip


def test_tokens_need_a_tokenizer() -> None:
    with pytest.raises(UsageError, match="tokenizer"):
        pieces("a b", Chunking.parse("tokens:1"))


# HERO's children, with the wording of published guidelines

SCREENING = (
    "The USPSTF recommends screening for colorectal cancer starting at age 50 years and continuing until age 75 years "
    "(A recommendation). The risks and benefits of different screening methods vary. These models are not recommended "
    "for use in women with a possible family history of mutations in the\n\nBRCA1\n\nor\n\nBRCA2\n\ngenes. Only a "
    "small fraction of women are at increased risk for breast cancer.\n\nPolicy level:\n\nStrong recommendation"
)


def children(document: Document, way: str) -> list[str]:
    return [passage.text for passage in cut(document, Chunking.parse(way))]


def test_children_end_where_sentences_end() -> None:
    found = children(Document(id="d", title="t", text=SCREENING), "children:32")
    assert [text.split()[-1] for text in found] == ["vary.", "genes.", "recommendation"]
    assert (
        "in the\n\nBRCA1\n\nor\n\nBRCA2\n\ngenes." in found[1]
    )  # one sentence, though a web page broke it into five lines
    short = children(Document(id="d", title="t", text=SCREENING), "children:16")
    assert short[-1] == "Policy level:\n\nStrong recommendation"  # a label stays with its value


def test_children_share_whole_sentences() -> None:
    text = "Keep the wound dry. Change the plaster daily. Call us if you have a fever. Do not swim for six weeks."
    assert children(Document(id="d", title="t", text=text), "children:14/4") == [
        "Keep the wound dry. Change the plaster daily.",
        "Change the plaster daily. Call us if you have a fever.",
        "Do not swim for six weeks.",  # the sentence before it has more than four words
    ]


def test_a_sentence_longer_than_a_child_is_divided_and_items_of_lists_are_not() -> None:
    items = "- Give prednisone 60 mg daily\n- Taper over five days\n- Protect the eye at night"
    assert children(Document(id="d", title="t", text=items), "children:6") == items.split("\n")
    assert children(Document(id="d", title="t", text="one two three four five"), "children:2") == [
        "one two", "three four", "five",
    ]  # fmt: skip


def test_rows_of_a_long_table_keep_their_header() -> None:
    builder = TextBuilder()
    builder.heading("Immunosuppression", 1)
    builder.paragraph("Doses are given in the table.")
    drugs = ("tacrolimus", "cyclosporine", "sirolimus", "everolimus")
    rows = [("Drug", "Start", "Target level"), *((drug, "twice a day", "5 to 10 ng/mL") for drug in drugs)]
    builder.table(rows, label="Table 2", caption="Doses after a kidney transplant")
    builder.paragraph("Levels are taken in the morning.")
    document = Document(id="d", title="t", text=builder.text, sections=builder.sections(), tables=tuple(builder.tables))
    found = cut(document, Chunking.parse("children:30"))
    assert [(passage.heading, passage.text.split("\n")[-1]) for passage in found] == [
        ("Immunosuppression", "tacrolimus | twice a day | 5 to 10 ng/mL"),
        ("Immunosuppression › Table 2: Drug | Start | Target level", "everolimus | twice a day | 5 to 10 ng/mL"),
        ("Immunosuppression", "Levels are taken in the morning."),
    ]
    assert "Table 2. Doses after a kidney transplant\nDrug | Start | Target level\ntacrolimus" in found[0].text
    assert found[1].text.startswith("cyclosporine | ")
    (whole_table,) = [each for each in cut(document, Chunking.parse("children:90")) if "sirolimus" in each.text]
    assert "Drug | Start" in whole_table.text  # a table no longer than a child is not divided
