"""Answers in one line: checked against the answer and the passages, shown with a warning where they say more."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoofbeat.audit.answer_lines import MAX_STRENGTH, NONE_GIVEN, given_strength, line_doubts, line_of
from hoofbeat.audit.answers_by_source import PlannedSourceAnswer, absence_request, answer_from_sources, source_request
from hoofbeat.audit.pair_plan import Claim
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
    assert doubt.startswith(f"its table line differs from its answer: {kind}: ")


def test_a_strength_must_be_written_in_the_passages() -> None:
    assert _doubts("", "grade b") == []
    assert _doubts("", "Grade A") == ["the strength it gives is not in the passages shown: Grade A"]
    assert [given_strength(each) for each in ("None", " none given.", "N/A", "Grade  B")] == [
        *[NONE_GIVEN] * 3,
        "Grade B",
    ]


def test_the_strengths_of_two_recommendations_may_be_apart_in_the_passages() -> None:
    other = Passage(id="d#2", document="d", text="Advise against smoking (Strong; Low).", heading="Smoking")

    def doubts(strength: str) -> list[str]:
        return line_doubts("", strength, ANSWER, TEXT, [PASSAGE, other])

    assert doubts("Grade B / Strong; Low") == doubts("Strong; Low") == doubts("Grade B / none given") == []
    assert doubts("Grade B / Weak") == ["the strength it gives is not in the passages shown: Grade B / Weak"]
    assert given_strength("none given / none") == NONE_GIVEN


def test_a_grade_with_a_semicolon_is_one_strength_and_is_compared_in_full() -> None:
    """Real wording: a society that writes strength and quality with a semicolon, beside one that writes grades."""
    texts = (
        "We recommend screening adults aged 60 to 74 (Strong recommendation; moderate-quality evidence).",
        "We recommend screening adults aged 50 to 59 (Weak recommendation; moderate-quality evidence).",
        "We recommend not screening adults aged 75 and over (Weak recommendation; low-quality evidence).",
    )
    passages = [Passage(id=f"d#{n}", document="d", text=text, heading="Screening") for n, text in enumerate(texts)]
    grades = [text.partition("(")[2].rstrip(".").rstrip(")") for text in texts]
    strength = " / ".join(grades)
    assert given_strength(strength) == strength
    assert line_doubts("", strength, texts[0], texts[0], passages) == []
    answer = Answer(question="q", model="m", condition="source", source="d", text="Screen.", strength=strength)
    assert strength in Claim.of(answer, load_pack("clinicians"), {}).text, "the judge sees all three"


def test_the_answers_call_says_how_to_write_strengths_and_parts_of_an_answer() -> None:
    planned = PlannedSourceAnswer(question=Question(id="q", text="?"), condition="d", passages=(PASSAGE,))
    request = source_request(planned, PACK)
    text = " ".join(request.messages[0].content.split())
    assert 'give the strength of each, that of the quote first, with " / " between them' in text
    assert '"Strong; low certainty / none given"' in text
    assert "Text that explains a graded recommendation has its grade only if the document says so." in text
    assert "(which drug, but not its dose), report that part first and then say which part they do not address" in text
    assert "speak only of another group, treatment, test or time" in text
    assert "several documents" not in text
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
    assert warning.startswith("its table line differs from its answer: threshold: 50")


@pytest.mark.parametrize("pack", ["transplant", "clinicians"])
def test_the_check_for_absence_may_not_turn_down_an_answer_with_a_caveat(pack: str) -> None:
    """Real notes: honest caveats ("the passages give no dose") had turned answers into silence."""
    answer = "Tamoxifen is recommended for women at increased risk. The passages give no dose."
    request = absence_request(Question(id="q", text="Which drug, and at what dose?"), answer, load_pack(pack))
    text = " ".join(request.messages[0].content.split())
    assert "Leave aside sentences that say what the document does not mention: they never turn" in text
    assert "Write `no` only if nothing of what was asked is there" in text
    assert "A rule for a larger group or class that includes what is asked is an answer." in text
    examples = [
        line.rpartition("Answered: ")[2] for line in request.messages[0].content.splitlines() if "Text:" in line
    ]
    assert set(examples) == {"yes.", "no."}
    assert answer in request.messages[1].content
