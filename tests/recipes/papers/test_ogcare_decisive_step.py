"""What can be said of a decisive step by rule, and what a model means by the numbers of sentences."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoofbeat.prompts import load_prompt
from hoofbeat.recipes.cases.decisive_step import (
    begins_at,
    failed_there,
    lies,
    may_begin_at,
    names_step,
    no_action,
    step_leaks,
    told_at,
)
from hoofbeat.recipes.cases.distraction import held_words, telling_words
from hoofbeat.recipes.context import CUT_MARK
from hoofbeat.recipes.guards.text_checks import numbered, pointed, report_sentences
from hoofbeat.recipes.papers.ogcare import OgcareSettings
from hoofbeat.recipes.recipe_items import ItemRejection
from hoofbeat.records import Document, Figure, Span
from tests.recipes.papers.ogcare_case import says
from tests.recipes.support import a_context


@pytest.mark.parametrize(
    "step",
    [
        "The patient described here achieved an HScore of 254 points",
        "Pulmonary embolism was ruled out by a spiral CT scan of the lungs",
        "Ultrasound examination of the central venous line revealed the guidewire",
        "Pneumonic infiltration and ground glass density were seen on chest X-ray",
        "Lactic acid had entirely normalized, and the patient was extubated",
        "First-line immunotherapy involves corticosteroids or plasma exchange",
        "The presence of unexpectedly severe pain",
        "severe bullous pemphigoid disease",
        "acute appendicitis in a neutropenic patient",
        "pain after the formula was started",
        "The platelet count recovered after tacrolimus was added",
        "Sepsis developed before antibiotics were begun",
        "the pain improved and the nerve block was stopped",
        "This report of a rare tumour",
        "The decisive step is the one test that is new",
    ],
)
def test_findings_and_remarks_are_not_actions(step: str) -> None:
    assert isinstance(no_action(step), ItemRejection)


@pytest.mark.parametrize(
    "step",
    [
        "exploratory laparotomy",
        "Extraventricular drainage to relieve hydrocephalus on the 22nd day",
        "IABP introduction",
        "Removal of the prostatic stent",
        "resection of a retroperitoneal sarcoma",
        "combination therapy with meropenem and RFP",
        "Navigation through a dormant AV fistula",
        "treating the infection with bacteriophages",
        "tumour lysis prophylaxis with rasburicase",
        "the patient underwent a cesarean section",
        "end-to-end anastomosis",
        "withholding heart failure drugs",
        "Two repeat TTEs were performed",
        "bleeding control with a tissue adhesive",
        "tacrolimus added once the platelet count recovered",
        "plasma exchange begun before liver failure",
        "hydrocortisone added after shock",
        "reinfusion of recovered stem cells",
        "the patient received an elemental formula and improved",
        "cyclosporine because antibodies were detected",
        "delayed closure until the swelling resolved",
        "ultrasound-guided improved fascia iliaca compartment block with light general anesthesia",
    ],
)
def test_what_physicians_did_is_an_action(step: str) -> None:
    assert no_action(step) is None


def test_common_verbs_of_a_step_tell_nothing_of_it() -> None:
    assert telling_words("tacrolimus added and begun before the marrow recovered") == telling_words("tacrolimus marrow")
    assert not held_words(
        "A second antibiotic was added and the fever recovered.", "tacrolimus added, marrow recovered"
    )


@pytest.mark.parametrize(
    ("sentence", "failed"),
    [
        ("Percutaneous drainage failed.", True),
        ("After percutaneous drainage failed, a stent was placed.", True),
        ("Percutaneous drainage of the abscess was attempted but was unsuccessful.", True),
        ("Failed percutaneous drainage led to surgery.", True),
        ("Despite percutaneous drainage the fever persisted.", True),
        ("Percutaneous drainage was tried without success.", True),
        ("Percutaneous drainage could not be performed.", True),
        ("Percutaneous drainage was performed because antibiotics had failed.", False),
        ("As antibiotics failed, percutaneous drainage was performed.", False),
        ("She failed to improve and underwent percutaneous drainage.", False),
        ("Percutaneous drainage failed once, and a second percutaneous drainage brought 300 mL.", False),
        ("Percutaneous drainage was successful.", False),
        ("The stent failed.", False),
    ],
)
def test_a_step_that_failed_right_there(sentence: str, failed: bool) -> None:
    assert failed_there(sentence, "percutaneous drainage") is failed


def test_a_step_that_failed_by_the_next_sentence() -> None:
    told = "Percutaneous drainage was performed."
    assert failed_there(told, "percutaneous drainage", "However, this was unsuccessful.")
    assert not failed_there(told, "percutaneous drainage", "The fever subsided.")
    assert not failed_there("A stent was placed.", "percutaneous drainage", "However, this was unsuccessful.")


def test_a_report_is_numbered_as_far_as_the_window_holds_it(tmp_path: Path) -> None:
    """An invented, overlong report: lines are whole, and no text of it begins a line of its own."""
    text = " ".join(f"The finding\n{number}. of day {number} was noted again by all." for number in range(1, 900))
    document = Document(id="invented-long", title="", text=text)
    with a_context(tmp_path, [document], OgcareSettings(), says()) as context:
        found, lines = numbered(document, context, load_prompt("ogcare-course"))
    spans = list(found.values())
    assert lines.endswith(CUT_MARK)
    shown = lines.removesuffix(CUT_MARK).splitlines()
    assert 100 < len(shown) == len(spans) < 899
    for number, (line, span) in enumerate(zip(shown, spans, strict=True), 1):
        assert line == f"{number}. {' '.join(span.quote.split())}"
        assert text[span.start : span.end] == span.quote


def test_a_sentence_has_one_number_whatever_is_shown_of_its_report() -> None:
    """Requests about one report numbered its sentences anew: legends counted in the final review, and not before."""
    caption = "Figure 1 shows the wire in the vein."
    text = f"He had a fever. {caption} It was pulled out."
    start = text.index(caption)
    figure = Figure(id="f", label="Figure 1", caption=caption, start=start, end=start + len(caption))
    found = report_sentences(Document(id="invented-4", title="", text=text, figures=(figure,)))
    assert [each.span.quote for each in found] == ["He had a fever.", "It was pulled out.", caption]
    assert [each.beside for each in found] == [False, False, True]


def test_numbers_point_at_sentences_each_once(tmp_path: Path) -> None:
    document = Document(id="invented-2", title="", text="He had a fever. She had a cough. No.")
    with a_context(tmp_path, [document], OgcareSettings(), says()) as context:
        spans, _ = numbered(document, context, load_prompt("ogcare-course"))
    assert {number: span.quote for number, span in spans.items()} == {1: "He had a fever.", 2: "She had a cough."}
    assert pointed([2, 2, 1], spans, "test") == [spans[2], spans[1]]
    assert pointed([1, 3], spans, "test", tolerated=1) == [spans[1]]
    for numbers, tolerated in (([1, 3], 0), ([0], 0), ([-1], 0), ([], 0), ([7], 1)):
        assert isinstance(pointed(numbers, spans, "test", tolerated=tolerated), ItemRejection)


def test_only_what_is_told_after_the_step_is_doubted_also_where_it_seems_to_begin_earlier(tmp_path: Path) -> None:
    """Invented: whether what lies shortly before the step was known by then, only the model can say."""
    text = (
        "He had a fever for a week. A bedside ultrasonography was arranged. A shadow was seen in the vein. "
        "The ultrasound picture showed a lost guidewire. It was pulled out."
    )
    document = Document(id="invented-3", title="", text=text)
    with a_context(tmp_path, [document], OgcareSettings(), says()) as context:
        spans = list(numbered(document, context, load_prompt("ogcare-course"))[0].values())
    step = "bedside ultrasound"
    told, doubt = told_at(step, [spans[3]], spans, document)
    assert (told, doubt) == ([spans[3]], None)
    step_at = [[spans[3].start, spans[3].end]]
    may_begin = may_begin_at(step, step_at, spans, document)
    assert may_begin == spans[1].start
    places = [lies(span, "before", step, step_at, begins=step_at[0][0], case=[(0, len(text))]) for span in spans]
    assert places == [("before", False), ("before", False), ("before", False), ("decisive", False), ("before", True)]


@pytest.mark.parametrize(
    ("step", "earlier"),
    [
        ("bronchoscopic closure with an endobronchial valve", "Bronchoscopy showed a leak in the lower lobe."),
        ("echocardiography-guided percutaneous closure of the leak", "Echocardiography showed a leak of 4 mm."),
        ("catheter ablation of the accessory pathway", "A catheter was in the bladder."),
        ("intrathecal nusinersen through a lumbar drain", "Lumbar imaging showed fused vertebrae."),
        ("early cranioplasty with lumbar drainage", "A lumbar puncture was normal."),
        (
            "bedside ultrasonography of the central vein and line to detect the missed guidewire",
            "A right internal jugular venous central line was placed and after initial volume resuscitation an "
            "extensive debridement was performed.",
        ),
    ],
)
def test_a_shared_word_is_not_the_beginning_of_the_step(tmp_path: Path, step: str, earlier: str) -> None:
    """Findings two sentences before the step stay among the facts that the question writer sees."""
    text = f"He had a cough. {earlier} The wound was dry. It was decided to do a {step}. He went home."
    document = Document(id="invented-4", title="", text=text)
    with a_context(tmp_path, [document], OgcareSettings(), says()) as context:
        spans = list(numbered(document, context, load_prompt("ogcare-course"))[0].values())
    told, _ = told_at(step, [spans[3]], spans, document)
    assert told == [spans[3]]
    step_at = [[spans[3].start, spans[3].end]]
    may_begin = may_begin_at(step, step_at, spans, document)
    assert may_begin == spans[3].start
    places = [lies(span, "before", step, step_at, begins=step_at[0][0], case=[(0, len(text))]) for span in spans[:3]]
    assert places == [("before", False)] * 3


@pytest.mark.parametrize(
    ("plan", "begins"),
    [
        ("A sequential heart and liver transplant was planned without interrupting circulatory support.", 2),
        ("It was decided that the liver transplant should be performed on ECMO.", 2),
        ("The team decided on ECMO and the circuit was started at once.", 0),
        ("ECMO was primed for the liver transplant.", 0),
        ("She had an informed consent discussion about a liver transplant on ECMO.", 2),
        ("The draft protocol for a liver transplant on ECMO includes a negative HIV test.", 2),
    ],
)
def test_a_plan_is_not_the_doing_of_the_step(tmp_path: Path, plan: str, begins: int) -> None:
    """What is told between the plan and the doing was known before the step (heart transplant on bypass)."""
    text = f"{plan} Heart transplantation was performed on bypass. Bypass was converted to ECMO. She went home."
    document = Document(id="invented-6", title="", text=text)
    with a_context(tmp_path, [document], OgcareSettings(), says()) as context:
        spans = list(numbered(document, context, load_prompt("ogcare-course"))[0].values())
    step_at = [[spans[0].start, spans[0].end], [spans[2].start, spans[2].end]]
    assert begins_at(step_at, text) == spans[begins].start
    assert begins_at(step_at[:1], text) == spans[0].start
    step = "converting bypass to ECMO for the liver transplant"
    at = begins_at(step_at, text)
    places = [lies(span, "before", step, step_at, begins=at, case=[(0, len(text))]) for span in spans[1:4:2]]
    assert places == [("before", begins == 0), ("before", True)]


@pytest.mark.parametrize(
    ("sentence", "doubted"),
    [
        ("The fever settled.", True),
        ("Before discharge the fever settled.", True),
        ("The renogram was worse than 7 months prior to the first visit.", True),
        ("Sodium had been normal throughout the stay before the splenectomy.", False),
        ("Prior to surgery the platelets were normal.", False),
        ("The preoperative film showed a fracture.", False),
        ("(B) The film of day 3 showed a fracture.", False),
    ],
)
def test_a_legend_or_a_sentence_that_says_that_it_was_before_is_not_doubted(sentence: str, doubted: bool) -> None:
    """Invented, in the wordings that a rule doubted wrongly: the report tells them after the step."""
    text = f"He was pale. A splenectomy was performed. {sentence}"
    start = text.index(sentence)
    span = Span(document="invented-7", start=start, end=len(text), quote=sentence)
    step_at = [[13, start - 1]]
    assert lies(span, "before", "urgent splenectomy", step_at, begins=13, case=[(0, len(text))]) == ("before", doubted)


def test_words_that_only_join_measures_are_no_name_of_a_step() -> None:
    """ "Then" was taken for a name of the answer in three rounds."""
    step = "drainage of the abscess and bowel resection, then after 48 h mesh repair"
    document = Document(id="invented-8", title="", text="The abdomen was then explored. The wound was then closed.")
    assert not step_leaks(document.text, step, document)
    assert not names_step("The wound was then closed.", step, document)
    assert [leak.text for leak in step_leaks("A bowel resection was planned.", step, document)] == ["bowel resection"]


def test_a_step_that_is_told_as_failed_is_doubted(tmp_path: Path) -> None:
    document = Document(id="invented-5", title="", text="He was pale. Percutaneous drainage failed. He went home.")
    with a_context(tmp_path, [document], OgcareSettings(), says()) as context:
        spans = list(numbered(document, context, load_prompt("ogcare-course"))[0].values())
    told, doubt = told_at("percutaneous drainage", [spans[1]], spans, document)
    assert told == [spans[1]]
    assert doubt is not None
    assert doubt.reason == "the step is told as one that failed"
