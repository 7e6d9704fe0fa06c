"""The check of what was cut from a case."""

from __future__ import annotations

from hoofbeat.recipes.cases.cut_check import marked
from hoofbeat.recipes.cases.redaction import RedactedSpan, redact
from hoofbeat.records import Document

TEXT = "She had fever. Echocardiography showed a mass, a myxoma. It was removed."


def test_cut_words_are_marked_in_their_sentences() -> None:
    document = Document(id="d", title="", text=TEXT)
    named = TEXT.index(", a myxoma")
    holes = (RedactedSpan(named, named + 10, "name"), RedactedSpan(TEXT.index("It was"), len(TEXT), "after"))
    case = redact(document, (0, len(TEXT))).without(*holes)
    assert marked(case) == [
        "She had fever.",
        "Echocardiography showed a mass{-, a myxoma-} .",
        "{-It was removed.-}",
    ]


def test_words_put_back_leave_the_rest_of_their_hole() -> None:
    document = Document(id="d", title="", text=TEXT)
    start = TEXT.index("Echo")
    case = redact(document, (0, len(TEXT))).without(RedactedSpan(start, len(TEXT), "after"))
    back = case.with_back(start, TEXT.index(", a myxoma"))
    assert back.text == "She had fever. Echocardiography showed a mass"
    assert [hole.why for hole in back.removed] == ["after"]
