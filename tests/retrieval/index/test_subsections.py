"""Sub-headings inside long sections and tiny sections, in the wording of published guidelines."""

from __future__ import annotations

from hoofbeat.corpus.parsers.prose import TextBuilder
from hoofbeat.records import Document
from hoofbeat.retrieval.index.chunking import CHILDREN, Chunking, cut
from hoofbeat.retrieval.index.subsections import with_subsections

PROFILE = (
    "Action Statement Profile", "Aggregate evidence quality:", "Grade C", "Level of confidence in evidence: High",
    "Intentional vagueness: The GDG used the word", "routine",
    "to specify that under certain circumstances, laboratory testing may be indicated.",
    "Policy level:", "Strong recommendation", "Differences of opinion: None",
)  # fmt: skip
BELL = (
    "The evidence grades (A-D, X) are defined at the end of this field.",
    "Statement 1. Patient History and Physical Examination",
    "Clinicians should assess the patient using history and physical examination to exclude identifiable causes of "
    "facial paresis or paralysis in patients presenting with acute-onset unilateral facial paresis or paralysis.",
    "Strong recommendation",
    "based on observational studies of alternative causes of facial paralysis and reasoning from first principles.",
    *PROFILE,
    "Statement 2. Laboratory Testing",
    "Clinicians should not obtain routine laboratory testing in patients with new-onset Bell's palsy.",
    *PROFILE,
    "Overweight Patients with Obesity-associated Condition(s)",
    "Recommendations",
    "Offer comprehensive lifestyle intervention to achieve weight loss and to improve blood pressure in such patients.",
    "[A]",
    "Definitions",
    "Level A",
    "= Established as effective, ineffective, or harmful for the given condition in the specified population.",
    "B",
    "The USPSTF recommends the service. There is high certainty that the net benefit is moderate. " + "More. " * 160,
)


def document(*sections: tuple[str, tuple[str, ...]]) -> Document:
    builder = TextBuilder()
    for heading, blocks in sections:
        builder.heading(heading, 1)
        for block in blocks:
            builder.paragraph(block)
    return Document(id="ngc", title="Bell's palsy", text=builder.text, sections=builder.sections())


def test_sub_headings_of_a_long_section_are_found() -> None:
    found = with_subsections(document(("Major Recommendations", BELL)))
    assert [section.heading for section in found.sections] == [
        "Major Recommendations",
        "Statement 1. Patient History and Physical Examination",
        "Statement 2. Laboratory Testing",
        "Overweight Patients with Obesity-associated Condition(s) › Recommendations",
        "Definitions",
    ]
    statement = found.sections[2]
    assert found.text[statement.start : statement.body].startswith("Statement 2. Laboratory Testing")
    assert found.section_text(statement).startswith("Clinicians should not obtain routine laboratory testing")
    assert found.section_text(statement).endswith("Differences of opinion: None")
    assert {section.level for section in found.sections[1:]} == {2}


def test_a_short_section_stays_as_it_is() -> None:
    short = document(("Major Recommendations", BELL[:4]))
    assert with_subsections(short) == short


def test_a_section_of_a_few_words_is_read_with_the_one_before_it() -> None:
    facts = document(
        ("Disease/Condition(s)", ("Bell's palsy",)),
        ("Guideline Category", ("Treatment",)),
        ("Intended Users", ("Physicians",)),
        ("Target Population", ("Adults and children aged 16 years or older with acute facial palsy",)),
    )
    (first, second) = cut(facts, CHILDREN)
    assert (first.heading, first.text) == (
        "Disease/Condition(s)",
        "Bell's palsy\n\nGuideline Category\n\nTreatment\n\nIntended Users\n\nPhysicians",
    )
    assert second.heading == "Target Population"


def test_lines_found_as_headings_are_borders_and_names_but_no_titles_to_search() -> None:
    bell = document(("Major Recommendations", BELL), ("Target Population", ("Patients of 16 years or older.",)))
    bodies, titles = (cut(bell, Chunking.parse(way)) for way in ("subsections", "subheadings"))
    assert len(bodies) == len(titles)
    assert [title.heading for title in titles if title.heading] == ["Major Recommendations", "Target Population"]
    assert "Statement 2. Laboratory Testing" in {body.heading for body in bodies}
