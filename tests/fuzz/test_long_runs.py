"""Long runs of one sign in what a model wrote are read at once: patterns that begin anew at every sign take minutes."""

from __future__ import annotations

import pytest

from hoofbeat.audit.answer_lines import line_of
from hoofbeat.audit.pair_judge import scan_label
from hoofbeat.benchmarks.text_overlap import _ELLIPSIS, find_quote
from hoofbeat.prompts.packs import load_pack
from hoofbeat.records import Answer, Document
from tests.fuzz.fuzzing import limited

SIGNS = (" ", "\n", "\t", "a", "-", "*", "[", ".", "…", "1", "# ")


@pytest.mark.parametrize("sign", SIGNS)
def test_a_long_run_of_one_sign_takes_no_time(sign: str) -> None:
    run = sign * (100_000 // len(sign)) + "x"
    document = Document(id="d", title="", text="The wound must be kept dry.")
    pack = load_pack("transplant")
    with limited(5.0):
        line_of(Answer(question="q", model="m", condition="c", text=f"Yes{run} [1: Care]"))
        scan_label(run, pack)
        find_quote(document, f"The wound{run}")


def test_ellipses_are_found_as_before() -> None:
    assert _ELLIPSIS.split("one … two [...] three . . . four… …five") == ["one", "two", "three", "four", "", "five"]


def test_a_label_is_found_after_empty_lines_and_marks() -> None:
    assert scan_label("\n\n \n> **Label:** Divergent\n", load_pack("transplant")) == "Divergent"
