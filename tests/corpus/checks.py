"""What holds for every document, whichever reader made it."""

from __future__ import annotations

from hoofbeat.records import Document


def check_offsets(document: Document) -> None:
    """Sections follow each other, cover the text, and hold what they say; figures and tables lie inside it."""
    text = document.text
    place = 0
    for section in document.sections:
        assert place <= section.start <= section.body <= section.end <= len(text)
        assert text[place : section.start].strip() == ""
        assert text[section.start : section.body].strip() == section.heading
        assert text[section.body : section.end] == text[section.body : section.end].strip()
        assert section.level >= 1
        place = section.end
    assert text[place:] == ""
    for figure in document.figures:
        assert 0 <= figure.start <= figure.end <= len(text)
        assert figure.caption in text[figure.start : figure.end]
    for table in document.tables:
        shown = text[table.start : table.end]
        assert all(" | ".join(row).strip(" |") in shown for row in table.rows)
        assert table.caption in shown
    assert "\n\n\n" not in text
    assert text == text.strip("\n")
