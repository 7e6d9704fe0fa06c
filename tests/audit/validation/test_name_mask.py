"""Names of sources out of texts: as they are written, short forms, initials, words and places; all of it counted."""

from __future__ import annotations

import pytest

from hoofbeat.audit.source_names import AuditSource
from hoofbeat.audit.validation.name_mask import MASK, RULES, NameMask


def test_names_are_masked_as_they_are_written() -> None:
    sources = [
        AuditSource(id="hb-fen", title="Fen Handbook", facets={"institution": ["Fen Hospital", "Fen"]}),
        AuditSource(id="kidney", title="", facets={}),
        AuditSource(id="x", title="Of", facets={"institution": "Elm"}),
    ]
    mask = NameMask(sources, "institution")
    assert mask("Call Fen\nHospital, or Fen. See hb-fen and the Fen Handbook.") == (
        f"Call {MASK}, or {MASK}. See {MASK} and the {MASK}."
    )
    assert mask("A kidney in the fen; Elms. Of course, x.") == "A kidney in the fen; Elms. Of course, x."
    assert NameMask([], "institution")("Fen") == "Fen"


def source(number: int, title: str, institution: str, **facets: str) -> AuditSource:
    return AuditSource(id=f"s-{number}", title=title, facets={"institution": institution, **facets})


SOURCES = [
    source(1, "Chest pain", "National Institute for Chest Care and Excellence"),
    source(2, "Pain of the chest", "Nordic Heart Board (NHB)", city="Oslo"),
    source(3, "Chest", "Marlowe University Hospital", country="Freedonia"),
    source(4, "Heart", "Pinewick Cardiology Institute"),
    source(5, "Lungs", "Society of Respiratory Friends"),
    source(6, "Brook", "Brook Trust"),
]


@pytest.mark.parametrize(
    ("text", "masked", "rules"),
    [
        ("NICE and NICCE ask for a test.", "[source] and [source] ask for a test.", ["initials", "initials"]),
        ("The NHB's advice, as in Oslo.", "The [source]'s advice, as in [source].", ["brackets", "place"]),
        ("The Nordic guideline differs in Nordic people.", "The [source] differs in Nordic people.", ["place"]),
        ("At Marlowe, and in Freedonia.", "At [source], and in [source].", ["word", "place"]),
        ("PCI within two hours at Pinewick.", "PCI within two hours at [source].", ["word"]),
        (
            "The Society of Respiratory Friends (SoReF) says so. SoReF again.",
            "The [source] ([source]) says so. [source] again.",
            ["brackets", "brackets", "institution"],
        ),
        ("Call if the brook floods; Brook is near.", "Call if the brook floods; [source] is near.", ["title"]),
        ("The University Hospital of another town, and the Heart Failure Clinic.", None, ["title"]),
        ("Give ACE inhibitors; do an ECG and an MRI.", None, []),
    ],
)
def test_short_forms_initials_words_and_places(text: str, masked: str | None, rules: list[str]) -> None:
    mask = NameMask(SOURCES, "institution", [text])
    said = mask(text)
    if masked is not None:
        assert said == masked
    found = [rule for _, rule, count in mask.rows() for _ in range(count)]
    assert sorted(found) == sorted(RULES[rule] for rule in rules)


def test_what_was_replaced_is_listed_and_only_that() -> None:
    texts = ["NICE says yes. NICE says so often.", "Nothing here."]
    mask = NameMask(SOURCES, "institution", texts)
    assert [mask(text) for text in texts] == [f"{MASK} says yes. {MASK} says so often.", "Nothing here."]
    assert mask.rows() == [("NICE", RULES["initials"], 2)]
