"""What fits the window is shown, what does not is recorded, and what is cut still points at its own characters."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoofbeat.records import Passage
from hoofbeat.window import beginning, ending, fit_beginnings, fit_passages, room_for, size

TEXT = "".join(f"Sentence {number} of an invented case. " for number in range(3000))
OUTPUT = 160


def fit(
    passages: list[Passage], question: str, window: int | None, output: int
) -> tuple[tuple[Passage, ...], tuple[str, ...]]:
    return fit_passages(passages, room_for(window, prompt=400, output=output, beside=[question]))


def piece(number: int, length: int, heading: str = "Case") -> Passage:
    start = 17 * number + 5
    text = TEXT[start : start + length]
    return Passage(id=f"d#{number}", document="d", text=text, start=start, end=start + length, heading=heading, page=3)


def test_all_that_fits_is_shown_whole() -> None:
    passages = [piece(number, 500) for number in range(4)]
    assert fit(passages, "Why?", 4096, OUTPUT) == (tuple(passages), ())


def test_what_follows_the_first_that_does_not_fit_is_dropped_even_if_it_would() -> None:
    passages = [piece(0, 1000), piece(1, 90_000), piece(2, 10)]
    kept, dropped = fit(passages, "Why?", 4096, OUTPUT)
    assert kept == (passages[0],)
    assert dropped == ("d#1", "d#2")


def test_a_first_passage_that_does_not_fit_is_cut_and_said_to_be() -> None:
    passages = [piece(4, 50_000), piece(5, 10)]
    kept, dropped = fit(passages, "Why?", 4096, OUTPUT)
    assert dropped == ("d#4 (cut)", "d#5")
    (cut,) = kept
    assert (cut.id, cut.document, cut.heading, cut.page) == ("d#4", "d", "Case", 3)
    assert passages[0].text.startswith(cut.text)
    assert 8000 < len(cut.text) < 3 * 4096
    assert TEXT[cut.start : cut.end] == cut.text


@pytest.mark.parametrize("heading", ["", "A heading of some words", "long " * 200])
def test_a_passage_near_the_limit_has_right_offsets(heading: str) -> None:
    room = 3 * (2048 - OUTPUT - 400) - len("Why?")
    for over in range(-200, 200, 7):
        ((shown,), _) = fit([piece(0, room - 60 + over, heading)], "Why?", 2048, OUTPUT)
        assert TEXT[shown.start : shown.end] == shown.text
        assert len(shown.text) + len(shown.heading[:120]) + 60 <= room


def test_a_question_longer_than_the_window_leaves_room_for_nothing() -> None:
    assert fit([piece(0, 10), piece(1, 10)], "why " * 2000, 2048, OUTPUT) == ((), ("d#0", "d#1"))


def test_an_output_as_long_as_the_window_leaves_room_for_nothing() -> None:
    assert fit([piece(0, 10)], "Why?", 2048, 2048) == ((), ("d#0",))


def test_an_unknown_window_is_taken_to_be_8192() -> None:
    passages = [piece(number, 3000) for number in range(12)]
    assert fit(passages, "Why?", None, OUTPUT) == fit(passages, "Why?", 8192, OUTPUT)
    assert fit(passages, "Why?", None, OUTPUT)[1]


def test_nothing_to_show_is_nothing_shown() -> None:
    assert fit([], "Why?", 4096, OUTPUT) == ((), ())


@settings(deadline=None)
@given(
    lengths=st.lists(st.integers(0, 9000), max_size=8),
    heading=st.text(max_size=300),
    question=st.text(max_size=2000),
    window=st.integers(1, 6000),
)
def test_every_passage_is_shown_or_dropped_once_and_in_order(
    lengths: list[int], heading: str, question: str, window: int
) -> None:
    passages = [piece(number, length, heading) for number, length in enumerate(lengths)]
    kept, dropped = fit(passages, question, window, OUTPUT)
    whole = [id for id in dropped if not id.endswith(" (cut)")]
    assert [passage.id for passage in kept] + whole == [passage.id for passage in passages]
    cut = [id for id in dropped if id.endswith(" (cut)")]
    assert cut in ([], ["d#0 (cut)"])
    assert all(TEXT[passage.start : passage.end] == passage.text for passage in kept)
    if cut:
        assert len(kept[0].text) < lengths[0]
    else:
        assert list(kept) == passages[: len(kept)]
    if kept:
        assert sum(len(passage.text) for passage in kept) + len(question) <= 3 * (window - OUTPUT - 400)


@given(
    st.lists(st.integers(0, 5000), max_size=12),
    st.integers(1, 3000),
    st.integers(-5000, 20000),
)
def test_beginnings_are_leading_cut_and_fit(lengths: list[int], reads: int, room: int) -> None:
    found = [
        Passage(id=str(number), document="d", text="x" * length, start=5, end=5 + length)
        for number, length in enumerate(lengths)
    ]
    kept = fit_beginnings(found, reads, room)
    assert [passage.id for passage in kept] == [str(number) for number in range(len(kept))]
    assert bool(kept) == bool(found)
    for passage, length in zip(kept, lengths, strict=False):
        assert len(passage.text) <= min(length, reads)
        assert passage.end - passage.start == len(passage.text)
    if len(kept) > 1:
        assert sum(len(passage.text) for passage in kept) <= room


@given(st.text(), st.integers(-5, 60))
def test_a_beginning_and_an_end_are_as_long_as_fits(text: str, room: int) -> None:
    first, last = beginning(text, room), ending(text, room)
    assert text.startswith(first)
    assert text.endswith(last)
    for part, following in ((first, text[len(first) : len(first) + 1]), (last, text[: len(text) - len(last)][-1:])):
        assert size(part) <= max(0, room)
        assert not following or size(part) + size(following) > room


def test_ideographs_take_three_times_the_room_of_letters() -> None:
    assert (size("患者"), size("ab")) == (6, 2)
    assert beginning("患者x", 5) == "患"
    assert beginning("a\ud800b", 9) == "a\ud800b"  # half a pair, as broken input has it
    (kept,), dropped = fit_passages([Passage(id="d#0", document="d", text="患" * 900, start=0, end=900)], 960)
    assert (kept.text, kept.end, dropped) == ("患" * 300, 300, ("d#0 (cut)",))
