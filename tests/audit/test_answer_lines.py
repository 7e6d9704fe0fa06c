"""Answers in one line: checked against the answer and the passages, shown with a warning where they say more."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoofbeat.audit.answer_lines import MAX_STRENGTH, NONE_GIVEN, given_strength, line_doubts, line_of
from hoofbeat.audit.answers_by_source import PlannedSourceAnswer, answer_from_sources, source_request
from hoofbeat.prompts import load_pack
from hoofbeat.records import Answer, Passage, Question
from tests.answering.support import Says, ScriptedServer
from tests.models.support import a_model, ledger_in

PACK = load_pack("guidelines")
TEXT = "Screen adults aged 55 to 80 years once a year (Grade B). Do not screen with chest radiography."
PASSAGE = Passage(id="d#1", document="d", text=TEXT, heading="Screening")
ANSWER = "Screen adults aged 55 to 80 years once a year; do not use chest radiography."


def _doubts(line: str, strength: str = NONE_GIVEN) -> list[str]:
    return line_doubts(line, strength, ANSWER, TEXT, [PASSAGE])


@pytest.mark.parametrize(
    "line", ["Screen at 55 to 80 years, once a year", "Yearly screening from 55", "Screen older adults"]
)
def test_a_line_that_says_no_more_than_the_answer_raises_no_doubt(line: str) -> None:
    assert _doubts(line, "Grade B") == []


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("Screen adults aged 50 to 80 years", "threshold"),
        ("Do not screen adults aged 55 to 80 years", "negation"),
        ("Use chest radiography", "negation"),
    ],
)
def test_a_line_that_says_otherwise_is_shown_with_a_warning(line: str, kind: str) -> None:
    (doubt,) = _doubts(line)
    assert doubt.startswith(f"its line for the table says otherwise than the answer: {kind}: ")


def test_a_strength_must_be_written_in_the_passages() -> None:
    assert _doubts("", "grade b") == []
    assert _doubts("", "Grade A") == ["the strength that it gives is not in what was shown: Grade A"]
    assert [given_strength(each) for each in ("None", " none given.", "N/A", "Grade  B")] == [
        *[NONE_GIVEN] * 3,
        "Grade B",
    ]


def test_the_strengths_of_two_recommendations_may_be_apart_in_the_passages() -> None:
    other = Passage(id="d#2", document="d", text="Advise against smoking (Strong; Low).", heading="Smoking")

    def doubts(strength: str) -> list[str]:
        return line_doubts("", strength, ANSWER, TEXT, [PASSAGE, other])

    assert doubts("Grade B; Strong; Low") == doubts("Strong; Low") == doubts("Grade B; none given") == []
    assert doubts("Grade B; Weak") == ["the strength that it gives is not in what was shown: Grade B; Weak"]


def test_the_answers_call_says_how_to_write_strengths_and_parts_of_an_answer() -> None:
    planned = PlannedSourceAnswer(question=Question(id="q", text="?"), condition="d", passages=(PASSAGE,))
    request = source_request(planned, PACK)
    text = " ".join(request.messages[0].content.split())
    assert "rests on two recommendations, give both strengths with a semicolon between them" in text
    assert "Text that explains a graded recommendation has its grade only if the document says so." in text
    assert "report that part and say which part they do not address" in text
    assert request.schema is not None
    assert request.schema["properties"]["strength"]["maxLength"] == MAX_STRENGTH  # type: ignore[index]


def test_an_answer_without_a_line_goes_by_its_first_sentence() -> None:
    old = Answer(question="q", model="m", condition="source", text="Aim for e.g. 130/80 mmHg. [Target] Check yearly.")
    assert line_of(old) == ("Aim for e.g. 130/80 mmHg.", True)
    assert line_of(Answer(question="q", model="m", condition="source", text="Long.", statement="Short")) == (
        "Short",
        False,
    )


def test_line_and_strength_come_with_the_answer(tmp_path: Path) -> None:
    said = {
        "passage": "Screening", "quote": "Screen adults aged 55 to 80 years once a year (Grade B).", "answer": ANSWER,
        "statement": "Screen yearly from 50 to 80", "strength": "Grade B",
    }  # fmt: skip
    planned = PlannedSourceAnswer(question=Question(id="q", text="Who?"), condition="d", passages=(PASSAGE,))
    script = [Says("passage", "", said), Says("addressed", "", {"addressed": "yes"})]
    with ScriptedServer(*script) as server, ledger_in(tmp_path) as ledger:
        (answer,) = answer_from_sources(a_model(server.spec(), ledger), [planned], PACK)
    assert (answer.statement, answer.strength) == ("Screen yearly from 50 to 80", "Grade B")
    (warning,) = answer.warnings
    assert warning.startswith("its line for the table says otherwise than the answer: threshold: 50")
