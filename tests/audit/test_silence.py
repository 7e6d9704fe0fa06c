"""A silence is kept with what was searched, the nearest passages, and an answer that was turned down."""

from __future__ import annotations

from hoofbeat.audit.silence import nearest_passages, silence_proof, silence_steps, was_searched
from hoofbeat.records import Answer, Passage, TraceStep

PASSAGES = (
    Passage(id="d#1", document="d", heading="Bathing", text="Showers are fine. No bath for four weeks. Dry the wound."),
    Passage(id="d#2", document="d", heading="Stent", text="The stent comes out at week six. Bring your card."),
    Passage(id="d#3", document="d", heading="Food", text="Eat what you like."),
)


def test_the_nearest_passage_has_most_words_of_the_question() -> None:
    found = nearest_passages("When does the stent come out, and may I bath?", PASSAGES)
    assert [each.passage for each in found] == ["d#2", "d#1"]
    assert 1 >= found[0].score > found[1].score > 0
    assert nearest_passages("Sauna?", PASSAGES) == []
    assert nearest_passages("", PASSAGES) == []


def test_the_part_of_a_long_passage_that_is_nearest_is_kept() -> None:
    text = " ".join(f"Sentence {number} is about the ward." for number in range(50)) + " Saunas wait for a year."
    (near,) = nearest_passages("When may I go to saunas?", [Passage(id="x", document="d", heading="H", text=text)])
    assert near.text.endswith("Saunas wait for a year.")
    assert len(near.text) < 200


def test_a_silence_says_how_the_source_was_read_and_what_was_turned_down() -> None:
    whole = (TraceStep(stage="hero", what="route: whole"),)
    steps = silence_steps("May I bath?", PASSAGES, whole, "The handbook has other topics.")
    assert [step.what for step in steps] == ["searched", "nearest", "turned down"]
    assert steps[0].text == "the model saw the whole source: 3 passages, 123 characters"
    assert steps[1].found == ("d#1",)
    searched = silence_steps("May I bath?", PASSAGES[:1], (TraceStep(stage="hero", what="route: retrieved"),))
    assert searched[0].text.startswith("the source was searched by hero; the model saw 1 passage")
    silent = Answer(question="q", model="m", condition="source", source="d", absent=True, trace=steps)
    assert len(silence_proof(silent)) == 3
    assert silence_proof(Answer(question="q", model="m", condition="source", absent=False, trace=steps)) == []


def test_only_parts_that_were_found_by_a_search_can_be_missed() -> None:
    for route, searched in (("whole", False), ("fallback", False), ("retrieved", True)):
        trace = (TraceStep(stage="hero", what=f"route: {route}"),)
        answer = Answer(question="q", model="m", condition="source", evidence=PASSAGES, trace=trace)
        assert was_searched(answer) is searched
