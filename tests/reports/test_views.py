"""What a question and an answer look like: the same as HTML and as packed data, with all that is known of them."""

from __future__ import annotations

import math
from typing import Any

import pytest
from msgspec.structs import replace

from hoofbeat.findings.outcomes import Outcome
from hoofbeat.records import (
    Answer,
    Failure,
    Judgment,
    OptionLikelihood,
    Passage,
    Question,
    Span,
    TraceStep,
    Vote,
)
from hoofbeat.reports.item_views import answer_view, question_view
from hoofbeat.reports.model import AnswerView, QuestionView
from hoofbeat.reports.viewers import Shared, block_nodes, element, markup, packed
from tests.reports.examples import HOSTILE
from tests.reports.parsing import parsed, words

OPTIONS = ("Alpha", "Beta", "Gamma")
QUESTION = Question(
    id="q1",
    text="Which?",
    context="An invented case.",
    answer="Beta",
    options=OPTIONS,
    evidence=(Span(document="d1", start=110, end=120, quote="give it at"),),
    facets={"specialty": "renal"},
)


def said(view: AnswerView | QuestionView) -> str:
    return words(parsed("<p></p>" + "".join(markup(node) for node in block_nodes(view))))


def outcome(correct: bool | None, unscored: str = "") -> Outcome:
    return Outcome(question="q1", model="m", condition="c", sample=0, correct=correct, unscored=unscored)


def unpacked(node: Any, shared: list[Any]) -> str:
    """What the page's script makes of packed data, as text."""
    if isinstance(node, str):
        return node
    if isinstance(node, int):
        return unpacked(shared[node], shared)
    return "".join(unpacked(child, shared) for child in node[2:])


def test_markup_escapes_texts_and_attributes() -> None:
    html = markup(element("p.a.b", HOSTILE, element("b", "<i>"), aria_label='"><script>'))
    tree = parsed(html)
    assert not tree.xpath("//script | //img | //i | //svg")
    assert tree.xpath("//p/@class") == ["a b"]
    assert "⟨U+202E⟩" in html


def test_packed_data_says_the_same_and_long_texts_once() -> None:
    long = "A passage that is shown to many models, word for word. " * 3
    shared = Shared()
    passage = element("blockquote", element("p", "shown twice"))
    tree = element("div", element("p.x", long, dir="auto"), "short", element("p", long), HOSTILE, passage, passage)
    data = packed(tree, shared)
    assert unpacked(data, shared.listed()) == words(parsed(markup(tree)))
    assert shared.listed().count(long) == 1
    assert len(shared.listed()) == 3


def test_options_are_shown_in_their_order_with_choice_and_gold() -> None:
    answer = Answer(
        question="q1", model="m", condition="c, letter", protocol="letter", text="C", choice="Gamma",
        options=("Gamma", "Beta", "Alpha"), reading="only-letter",
    )  # fmt: skip
    view = answer_view(QUESTION, answer, "m", outcome(False))
    assert [(o.text, o.chosen, o.gold) for o in view.options] == [
        ("Gamma", True, False), ("Beta", False, True), ("Alpha", False, False)
    ]  # fmt: skip
    assert "Option read: Gamma (only-letter)" in said(view)
    assert view.verdict_text == "✗ wrong"


def test_a_choice_that_was_not_read_says_why() -> None:
    answer = Answer(question="q1", model="m", condition="c", protocol="letter", reading="two options are named")
    view = answer_view(QUESTION, answer, "m", outcome(None, "choice:ambiguous"))
    assert view.verdict_text == "– unscored (choice: ambiguous)"
    assert "No option could be read (two options are named)" in said(view)


@pytest.mark.parametrize(
    ("protocol", "expected"),
    [
        ("likelihood", [math.exp(-2), math.exp(-4), math.exp(-6)]),
        ("likelihood/token", [math.exp(-2 / 1), math.exp(-4 / 4), math.exp(-6 / 3)]),
        ("likelihood/byte", [math.exp(-2 / 5), math.exp(-4 / 4), math.exp(-6 / 10)]),
    ],
)
def test_bars_are_each_options_part_of_the_probability(protocol: str, expected: list[float]) -> None:
    measured = [("Alpha", -2.0, 1, 5), ("Beta", -4.0, 4, 4), ("Gamma", -6.0, 3, 10)]
    answer = Answer(
        question="q1", model="m", condition="c", protocol=protocol, options=OPTIONS, choice="Alpha",
        likelihoods=tuple(OptionLikelihood(option=o, total=t, tokens=k, bytes=b) for o, t, k, b in measured),
    )  # fmt: skip
    view = answer_view(QUESTION, answer, "m", outcome(False))
    assert [option.share for option in view.options] == pytest.approx([each / sum(expected) for each in expected])
    tree = parsed(markup(block_nodes(view)[0]))
    assert [float(value) for value in tree.xpath("//meter/@value")] == pytest.approx(
        [each / sum(expected) for each in expected], abs=1e-4
    )
    assert not tree.xpath("//@style")


def test_evidence_is_marked_in_the_passage_that_was_shown() -> None:
    text = "x" * 9 + " give it at once " + "y " * 800
    passage = Passage(id="d1#1", document="d1", text=text, start=100, end=100 + len(text))
    other = Passage(id="d2#1", document="d2", text="give it at noon")
    answer = Answer(question="q1", model="m", condition="c", text="t", evidence=(passage, other))
    view = answer_view(QUESTION, answer, "m", None)
    [(start, end)] = view.passages[0].marks
    assert view.passages[0].text[start:end] == "give it at"
    assert "900 of 1,626 characters" in view.passages[0].source
    assert view.passages[1].marks == ()
    asked = question_view(QUESTION, [answer])
    assert (asked.evidence[0].before, asked.evidence[0].text) == ("x" * 9 + " ", "give it at")
    assert "specialty: renal" in said(asked)


def test_evidence_late_in_a_long_passage_is_still_shown() -> None:
    text = "word " * 600 + "give it at once"
    passage = Passage(id="d1#1", document="d1", text=text)
    answer = Answer(question="q1", model="m", condition="c", text="t", evidence=(passage,))
    shown = answer_view(QUESTION, answer, "m", None).passages[0]
    [(start, end)] = shown.marks
    assert shown.text[start:end] == "give it at"
    assert shown.text.startswith("… word")


def test_all_judgments_votes_trace_warnings_and_dropped_documents_are_there() -> None:
    answer = Answer(
        question="q1", model="m", condition="c", text="t", reasoning="thinking", dropped=("doc-9",),
        trace=(TraceStep(stage="agent", what="searched", text="fever", found=("d3#1",)),),
        warnings=("it read the article itself",), evidence=(Passage(id="d1#1", document="d1", text="p"),),
    )  # fmt: skip
    base = Judgment(question="q1", model="m", condition="c", judge="majority of 3")
    votes = (
        Vote(judge="a", label="equivalent", reasoning="the same"),
        Vote(judge="b", label="mismatch"),
        Vote(judge="d", failure=Failure(kind="schema", message="no JSON")),
    )
    judgments = [
        replace(base, label="equivalent", reasoning="alike", votes=votes),
        replace(base, aspect="error-type", label="omission", secondary="context"),
        replace(base, aspect="rouge-l", score=0.25, judge="rouge-l"),
        replace(base, aspect="relevance", passage="d1#1", label="partly", score=5.0),
    ]
    text = said(answer_view(QUESTION, answer, "m", outcome(True), judgments))
    for told in (
        "equivalence, majority of 3: equivalent alike", "3 votes: 1 equivalent, 1 mismatch, 1 no label",
        "b: mismatch", "schema: no JSON", "omission and context", "rouge-l: 0.250", "d1 · relevance partly (5.000)",
        "thinking", "agent: searched", "Found: d3#1", "it read the article itself", "doc-9",
    ):  # fmt: skip
        assert told in text
