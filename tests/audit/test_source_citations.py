"""What an answer rests on: sections and quotes that were shown, that were not, and that stand elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hoofbeat.answering import PlannedAnswer
from hoofbeat.audit.answers_by_source import answer_from_sources
from hoofbeat.audit.citations import cites_heading
from hoofbeat.audit.source_citations import check_citations, count_citations
from hoofbeat.prompts import load_pack
from hoofbeat.records import Answer, Failure, Passage, Question
from hoofbeat.store.call_ledger import Ledger
from tests.answering.support import Says, ScriptedServer
from tests.models.support import a_model, ledger_in

PASSAGES = (
    Passage(id="d#1", document="d", heading="Bathing", text="Showers only. No bath for four (4) weeks.", page=7),
    Passage(id="d#2", document="d", heading="Stent", text="The stent comes out at week six, in the day clinic."),
)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with ledger_in(tmp_path) as opened:
        yield opened


@pytest.mark.parametrize(
    ("quote", "what", "found"),
    [
        ("No bath for four (4) weeks.", "quoted", ("d#1",)),
        ("no bath for four (4)  weeks", "quoted", ("d#1",)),
        ("Showers only. … four (4) weeks", "quoted", ("d#1",)),
        ("The stent comes out at week six", "quote elsewhere", ("d#2",)),
        ("No bath for six weeks.", "quote not found", ()),
        ("No bath for four (4) weeks. The stent comes out at week six", "quote not found", ()),
    ],
)
def test_a_quote_is_looked_for_under_its_heading_first(quote: str, what: str, found: tuple[str, ...]) -> None:
    checked = check_citations("Bathing", quote, "Wait four weeks.", PASSAGES)
    ((step),) = checked.steps
    assert (step.what, step.found, step.text) == (what, found, quote)
    assert bool(checked.warnings) is (what != "quoted")


@pytest.mark.parametrize(
    ("quote", "cited"),
    [
        ("No bath for four (4) weeks.", ("Bathing (page 7)",)),
        ("The stent comes out at week six", ("Stent",)),
        ("No bath for six weeks.", ("Bathing (page 7)",)),
        ("", ("Bathing (page 7)",)),
    ],
)
def test_the_section_that_the_quote_stands_in_is_the_one_that_is_cited(quote: str, cited: tuple[str, ...]) -> None:
    assert check_citations("Bathing", quote, "Wait.", PASSAGES).citations == cited


def test_a_quote_inside_the_text_moves_no_citation() -> None:
    text = 'Wait: "The stent comes out at week six, in the day clinic."'
    checked = check_citations("Bathing", "No bath for four (4) weeks.", text, PASSAGES)
    assert checked.citations == ("Bathing (page 7)",)
    assert [step.what for step in checked.steps] == ["quoted", "quote elsewhere"]


DOSES = Passage(
    id="d#3",
    document="d",
    heading="Driving",
    text="You may drive six weeks after the operation; raw fish is unsafe. Take 10 mg of tacrolimus every morning, "
    "unless your surgeon says otherwise.",
    page=3,
)


@pytest.mark.parametrize(
    ("quote", "what"),
    [
        ("Take 10 mg of tacrolimus every mornin", "quoted"),
        ("Take 10 mg of tacrolimos every morning", "quoted"),
        ("Take 10mg of tacrolimus every morning", "quoted"),
        ("Take 10 mcg of tacrolimus every morning", "quote changed"),
        ("Take 10 g of tacrolimus every morning", "quote changed"),
        ("You may drive six weeks after the operation", "quoted"),
        ("You may drive six weeks after the opperation", "quoted"),
        ("You may drive ten weeks after the operation", "quote changed"),
        ("after the operation; raw fish is safe. Take 10 mg of tacrolimus", "quote changed"),
        ("Take 10 mg of tacrolimus every morning, unles your surgeon says otherwise", "quote changed"),
        ("may", "quote too short"),
        ("10 mg", "quote too short"),
        ("raw fish is", "quoted"),
    ],
)
def test_a_few_letters_may_differ_but_no_amount_and_no_denial(quote: str, what: str) -> None:
    checked = check_citations("Driving", quote, "Wait.", [DOSES])
    assert [step.what for step in checked.steps] == [what]
    assert bool(checked.warnings) is (what != "quoted")


def test_a_passage_of_two_words_can_be_quoted() -> None:
    short = Passage(id="d#4", document="d", heading="Bathing", text="No baths.")
    assert [step.what for step in check_citations("Bathing", "No baths", "", [DOSES, short]).steps] == ["quoted"]
    assert [step.what for step in check_citations("Bathing", "baths", "", [DOSES, short]).steps] == ["quote too short"]


@pytest.mark.parametrize(
    "name",
    ["Driving, page 3", "see Driving", "See also section Driving (p. 3)", "section: Driving", "pp. 3-4, Driving",
     "DRIVING p.3", "the Driving section", "page 3"],
)  # fmt: skip
def test_a_section_may_be_named_with_its_page_or_see(name: str) -> None:
    checked = check_citations("Bathing", "", f"Wait [{name}].", [*PASSAGES, DOSES])
    assert (checked.steps, checked.warnings) == ((), ())
    assert ("Driving (page 3)" in checked.citations) is (name != "page 3")


@pytest.mark.parametrize("name", ["see Diving, page 3", "Driving and more", "section on sauna"])
def test_a_section_not_shown_is_still_told_with_a_page(name: str) -> None:
    assert [step.text for step in check_citations("Bathing", "", f"Wait [{name}].", [DOSES, *PASSAGES]).steps] == [name]


def test_a_heading_that_begins_with_section_is_found_by_its_whole_name() -> None:
    passages = [Passage(id=f"d#{n}", document="d", heading=f"Section {n}", text="Rest well at home.") for n in (1, 2)]
    assert check_citations("Section 1", "", "Rest [see Section 2].", passages).citations == ("Section 1", "Section 2")


def test_an_answer_without_a_section_may_quote_any_and_is_told() -> None:
    checked = check_citations("none", "No bath for four (4) weeks.", "Wait.", PASSAGES)
    assert (checked.citations, checked.warnings) == ((), ("no section named",))
    assert [step.what for step in checked.steps] == ["no section named", "quoted"]
    assert check_citations("none", "", "Wait [Stent].", PASSAGES).warnings == ()


def test_a_citation_names_its_heading_with_or_without_a_page() -> None:
    assert cites_heading("Diet (page 4)", "Diet")
    assert cites_heading("Diet (page 4)", "Diet (page 4)")
    assert cites_heading("Diet", "Diet")
    assert not cites_heading("Diet (page 4)", "Intro")
    assert not cites_heading("Diet", "Diet (page 4)")


def test_quotes_inside_the_answer_are_checked_too() -> None:
    text = 'It says “No bath for four (4) weeks.” and "a sauna is fine from week two on".'
    checked = check_citations("Bathing", "", text, PASSAGES)
    assert [step.what for step in checked.steps] == ["quoted", "quote not found"]
    assert len(checked.warnings) == 1


def test_sections_are_cited_with_their_page() -> None:
    checked = check_citations("Bathing", "", "Wait [stent], [Sauna], [2], [ok].", PASSAGES)
    assert checked.citations == ("Bathing (page 7)", "Stent")
    assert [(step.what, step.text) for step in checked.steps] == [("section not shown", "Sauna")]


def test_only_answers_that_say_something_are_counted() -> None:
    def an_answer(**more: object) -> Answer:
        base = {"question": "q", "model": "m", "condition": "source", **more}
        return Answer(**base)  # type: ignore[arg-type]

    steps = check_citations("Bathing", "No bath in six weeks", "Wait [Sauna].", PASSAGES).steps
    counts = count_citations(
        [
            an_answer(trace=steps, citations=("Bathing",)),
            an_answer(absent=True, trace=steps),
            an_answer(failure=Failure(kind="timeout", message=""), trace=steps),
            an_answer(),
        ]
    )
    assert counts == {"answers": 2, "citing": 1, "quote not found": 1, "section not shown": 1}


def test_an_answer_keeps_what_was_checked(ledger: Ledger) -> None:
    said = {
        "passage": "Bathing",
        "quote": "No bath for four (4) weeks.",
        "answer": "Wait four weeks. [Diet]",
        "statement": "",
        "strength": "",
    }
    script = [Says("passage", "", said), Says("addressed", "", {"addressed": "yes"})]
    item = PlannedAnswer(question=Question(id="q", text="May I have a bath?"), condition="d", passages=PASSAGES)
    with ScriptedServer(*script) as server:
        model = a_model(server.spec(), ledger)
        (answer,) = answer_from_sources(model, [item], load_pack("transplant"))
    assert answer.citations == ("Bathing (page 7)",)
    assert answer.warnings == ("it names a section that was not shown: Diet",)
    assert [(step.what, step.text) for step in answer.trace] == [
        ("section not shown", "Diet"), ("quoted", "No bath for four (4) weeks."),
    ]  # fmt: skip
    (seen,) = server.calls("passage")
    assert (seen.body["temperature"], seen.body["max_tokens"]) == (0.0, 512)


GUIDE = Passage(
    id="g#1",
    document="g",
    heading="Pressure",
    text="Start drug treatment when systolic pressure is ≥160 mmHg in adults older than 60 years. The panel does not "
    "recommend aspirin in this group; the absolute risk reduction [ARR] is below 1%.",
)


@pytest.mark.parametrize(
    ("quote", "what", "why"),
    [
        ("Start drug treatment when systolic pressure is ≥ 160 mm Hg in adults", "quoted", ""),
        ("Start drug treatment when systolic pressure is ≤160 mmHg in adults", "quote changed", "comparator"),
        ("pressure is ≥160 mmHg in adults younger than 60 years", "quote changed", "comparator"),
        ("The panel does recommend aspirin in this group", "quote changed", "negation"),
        ("recommend aspirin in this group", "quote cut", "“not”"),
        ("160 mmHg in adults older than 60 years", "quote cut", "“≥”"),
    ],
)
def test_a_quote_keeps_comparators_denials_and_directions(quote: str, what: str, why: str) -> None:
    (step,) = check_citations("Pressure", quote, "Wait.", [GUIDE]).steps
    assert (step.what, why in step.reasoning) == (what, True)


def test_an_abbreviation_in_brackets_is_no_citation() -> None:
    text = "The absolute risk reduction [ARR] is below 1% [Pressure]."
    assert check_citations("Pressure", "", text, [GUIDE]).warnings == ()
    assert check_citations("Pressure", "", "It is small [Elsewhere].", [GUIDE]).warnings != ()


def test_what_the_answer_states_is_held_against_the_passage() -> None:
    faithful = "Adults over 60 years start drug treatment at a systolic pressure of at least 160 mm Hg."
    assert check_citations("Pressure", "", faithful, [GUIDE]).objections == []
    checked = check_citations("Pressure", "", faithful.replace("at least", "at most"), [GUIDE])
    assert [step.what for step in checked.steps] == ["statement differs"]
    (warning,) = checked.warnings
    assert warning.startswith("it may differ from the source (comparator)")
    (objection,) = checked.objections
    assert objection.startswith("a sentence of the field answer differs: comparator: ")


def test_a_denial_in_the_answer_is_shown_and_the_model_is_not_asked_again() -> None:
    faithful = "Adults over 60 years start drug treatment at a systolic pressure of at least 160 mm Hg."
    checked = check_citations("Pressure", "", faithful.replace("start", "should not start"), [GUIDE])
    (warning,) = checked.warnings
    assert warning.startswith("it may differ from the source (negation)")
    assert checked.objections == []


def test_an_answer_may_use_the_numbers_of_its_question() -> None:
    said = "A man aged 63 years starts drug treatment at a systolic pressure of at least 160 mmHg."
    assert len(check_citations("Pressure", "", said, [GUIDE]).objections) == 1
    assert check_citations("Pressure", "", said, [GUIDE], "When is a man of 63 treated?").objections == []


def test_a_model_is_asked_once_more_with_what_the_check_objects_to(ledger: Ledger) -> None:
    said = "Treatment of adults starts at a systolic pressure of at most 160 mm Hg."
    wrong = {"passage": "Pressure", "quote": "", "answer": said, "statement": "", "strength": ""}
    right = {**wrong, "answer": said.replace("at most", "at least")}
    plan = PlannedAnswer(question=Question(id="q", text="When to treat?"), condition="g", passages=(GUIDE,))
    for second, what in ((right, "asked again: changed"), (wrong, "asked again: kept")):
        script = [
            Says("passage", "A check of words compared", second),
            Says("passage", "", wrong),
            Says("addressed", "", {"addressed": "yes"}),
        ]
        with ScriptedServer(*script) as server:
            (answer,) = answer_from_sources(a_model(server.spec(), ledger), [plan], load_pack("transplant"))
        assert len(answer.calls) == 3
        assert answer.text == second["answer"]
        step = answer.trace[-1]
        assert (step.what, step.text) == (what, wrong["answer"])
        assert "at most" in step.reasoning
        assert bool(answer.warnings) is (second is wrong)
