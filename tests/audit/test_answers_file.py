"""Answers given in a file: which fields hold what, what belongs together, and what is silence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hoofbeat.audit.answers_file import SourceAnswer, decide_absence, parse_answer_fields, read_source_answers
from hoofbeat.errors import InputError, UsageError
from hoofbeat.prompts import load_pack
from hoofbeat.records import Question
from hoofbeat.store.call_ledger import Ledger
from tests.answering.support import Says, ScriptedServer
from tests.models.support import a_model, ledger_in

PACK = load_pack("guidelines")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with ledger_in(tmp_path) as opened:
        yield opened


def a_file(folder: Path, rows: list[dict[str, object]]) -> Path:
    path = folder / "answers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_rows_of_one_question_are_its_sources(tmp_path: Path) -> None:
    path = a_file(
        tmp_path,
        [
            {"question": "What is gout?", "source": "b", "answer": "Crystals."},
            {"question": "What  is gout?", "source": "a", "answer": " Urate crystals. "},
            {"question": "Who is alone?", "source": "a", "answer": "This one."},
        ],
    )
    given = read_source_answers(path)
    assert [question.text for question in given.questions] == ["What is gout?"]
    assert [(each.source, each.text, each.absent) for each in given.answers] == [
        ("a", "Urate crystals.", None), ("b", "Crystals.", None),
    ]  # fmt: skip
    assert (given.sources, given.left_out) == (("a", "b"), {"only one source answers": 1})
    assert given.questions[0].id.startswith("what-is-gout-")


def test_case_and_white_space_do_not_part_a_question(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"question": "What is (are) Gout ?", "source": "b", "answer": "Crystals."},
        {"question": "what is  (are) gout ?", "source": "a", "answer": "Urate crystals."},
        {"question": "Who is alone?", "source": "a", "answer": "This one."},
    ]
    given = read_source_answers(a_file(tmp_path, rows))
    assert [question.text for question in given.questions] == ["What is (are) Gout ?"]
    assert given.left_out == {"only one source answers": 1}
    rows[1]["source"] = "b"
    with pytest.raises(InputError, match="answers this question twice"):
        read_source_answers(a_file(tmp_path, rows))


def test_only_the_answers_of_some_sources_are_taken(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"question": question, "source": source, "answer": "x"} for question, source in ("1a", "1b", "1c", "2a", "2c")
    ]
    path = a_file(tmp_path, rows)
    given = read_source_answers(path, sources=["a", "b"])
    assert [(each.question[0], each.source) for each in given.answers] == [("1", "a"), ("1", "b")]
    assert (given.sources, given.left_out) == (("a", "b"), {"only one source answers": 1})
    with pytest.raises(UsageError, match="there is no answer from the source z") as caught:
        read_source_answers(path, sources=["a", "z"])
    assert "sources: a, b, c" in str(caught.value.fix)


def test_fields_can_be_named_and_joined(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    path.write_text(
        "focus,kind,asked,site,says,silent\nGout,cause,Why gout?,b,Urate.,\nGout,cause,Gout: why?,a,None.,yes\n"
    )
    fields = parse_answer_fields(
        "id=focus+kind, question=asked,source=site,answer=says,absent=silent,facets.topic=kind"
    )
    given = read_source_answers(path, fields)
    (question,) = given.questions
    assert (question.text, question.facets) == ("Why gout?", {"topic": "cause"})
    assert [(each.source, each.absent) for each in given.answers] == [("a", True), ("b", None)]


@pytest.mark.parametrize("text", ["question", "question=", "=x", "what=x", "facets.=x", "id=a++b"])
def test_fields_that_can_t_be_read_are_said(text: str) -> None:
    with pytest.raises(UsageError, match="can't be read"):
        parse_answer_fields(text)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"source": "a", "answer": "x"}], "no field 'question'"),
        ([{"question": "q", "source": "", "answer": "x"}], "no source"),
        ([{"question": "q", "source": "a", "answer": "x"}] * 2, "answers this question twice"),
        ([{"question": "q", "source": "a", "answer": "x", "absent": "perhaps"}], "`absent` holds 'perhaps'"),
        ([{"question": "q", "source": "a", "answer": 5}], "should hold text"),
        ([{"question": "q", "source": "a", "answer": "x"}], "no question has answers from two sources"),
        ([], "the file has no answers"),
    ],
)
def test_rows_that_are_wrong_are_said_with_their_line(
    tmp_path: Path, rows: list[dict[str, object]], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        read_source_answers(a_file(tmp_path, rows))


def test_silence_is_what_the_file_says_or_the_sentence_or_a_call(ledger: Ledger) -> None:
    questions = {"q": Question(id="q", text="Why gout?")}
    texts: list[tuple[str, str, bool | None]] = [
        ("a", "Urate.", False), ("b", "Urate.", True), ("c", PACK.not_addressed, None), ("d", "", None),
        ("e", "Ask your doctor.", None), ("f", "Urate crystals.", None), ("g", "Why? fault=400", None),
    ]  # fmt: skip
    script = [Says("addressed", "Ask your doctor.", {"addressed": "no"}), Says("addressed", "", {"addressed": "yes"})]
    given = [SourceAnswer(question="q", source=source, text=text, absent=absent) for source, text, absent in texts]
    with ScriptedServer(*script) as server:
        answers = decide_absence(a_model(server.spec(), ledger), questions, given, PACK)
    assert len(server.seen) == 3
    assert {answer.source: answer.absent for answer in answers} == {
        "a": False, "b": True, "c": True, "d": True, "e": True, "f": False, "g": None,
    }  # fmt: skip
    assert [answer.source for answer in answers if answer.failure] == ["g"]
    assert {answer.model for answer in answers} == {"given"}
