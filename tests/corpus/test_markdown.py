"""Markdown and plain text: structure, markup, offsets."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hoofbeat.corpus.readers.markdown import read_markdown
from hoofbeat.corpus.readers.text import read_text
from hoofbeat.records import Document
from tests.corpus.checks import check_offsets

HANDBOOK = """---
id: hb one/two
title: "Living well"
licence: CC BY 4.0
notice: Invented.
institution: Alder: the centre
organs: [kidney, liver]
---

# Living *well*

> Quoted **bold *both* text** and [a link](https://x.example/a_b "t").

## Food ##

Raw fish is `not_allowed` for 3 * 4 weeks; snake_case stays, 5 < 6 &amp; H<sub>2</sub>O.<br>Next
line of the same paragraph. \\*Star\\*

- one
  goes on
* two
    1. deep

![Figure 2: Where it *lies*](figures/kidney.png)

Table 1. Doses
| Drug | Dose |
|------|:----:|
| A \\| B | **5** mg |

Setext
------
<!-- a comment -->
```
code  stays
```
"""


def markdown(text: str) -> Document:
    return read_markdown(text, "stem")


def test_a_handbook() -> None:
    document = markdown(HANDBOOK)
    assert (document.id, document.title, document.licence) == ("hb_one_two", "Living well", "CC BY 4.0")
    assert document.notices == ("Invented.",)
    assert document.facets == {"institution": "Alder: the centre", "organs": ["kidney", "liver"]}
    assert document.text.split("\n\n") == [
        "Living well",
        "Quoted bold both text and a link.",
        "Food",
        "Raw fish is not_allowed for 3 * 4 weeks; snake_case stays, 5 < 6 & H2O. Next line of the same paragraph. "
        "*Star*",
        "- one goes on\n- two\n  1. deep",
        "Figure 2. Where it lies",
        "Table 1. Doses\nDrug | Dose\nA | B | 5 mg",
        "Setext",
        "code  stays",
    ]
    assert [(s.heading, s.level) for s in document.sections] == [("Living well", 1), ("Food", 2), ("Setext", 2)]
    assert document.figures[0].files == ("figures/kidney.png",)
    assert (document.figures[0].label, document.figures[0].caption) == ("Figure 2", "Where it lies")
    assert document.tables[0].rows == (("Drug", "Dose"), ("A | B", "5 mg"))
    check_offsets(document)


def test_without_front_matter_the_first_heading_is_the_title() -> None:
    assert markdown("text\n\n## Second").title == "Second"
    assert markdown("only text").title == "stem"
    assert markdown("---\nnot closed\n").id == "stem"
    assert markdown("only text").sections[0].heading == ""


def test_plain_text_headings_and_wrapped_lines() -> None:
    document = read_text(
        "A leaflet about sun\n\nWear a hat when you\ngo out.\n\nAt home\n\n- rest\n- drink\n\nStop.", "x"
    )
    assert document.title == "A leaflet about sun"
    assert [s.heading for s in document.sections] == ["A leaflet about sun", "At home"]
    assert document.text.split("\n\n")[1:] == ["Wear a hat when you go out.", "At home", "- rest\n- drink", "Stop."]
    check_offsets(document)


def test_plain_text_with_a_paragraph_a_line() -> None:
    long = "word " * 60
    assert read_text(f"{long}end.\nshort one.\n", "x").text == f"{long}end.\n\nshort one."


pieces = st.sampled_from(
    [
        "# One",
        "## Two",
        "",
        "text *x*",
        "- item",
        "| a | b |",
        "|---|---|",
        "![c](f.png)",
        "```",
        "> q",
        "---",
        "1. n",
        "   ",
    ]
)
lines = st.lists(st.one_of(pieces, st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=20)))


@given(lines)
@example(["```", " 0"])
def test_offsets_hold_for_any_markdown(parts: list[str]) -> None:
    check_offsets(markdown("\n".join(parts)))


@given(lines)
@example(["\x1b", "1. n"])
def test_offsets_hold_for_any_text(parts: list[str]) -> None:
    check_offsets(read_text("\n".join(parts), "x"))


@given(st.lists(st.from_regex(r"[a-z]{1,8}( [a-z]{1,8}){0,5}\.", fullmatch=True), min_size=1))
def test_every_paragraph_is_kept_once(paragraphs: list[str]) -> None:
    assert markdown("\n\n".join(paragraphs)).text.split("\n\n") == paragraphs


def test_teaching_handbooks() -> None:
    folder = Path(__file__).parents[2] / "src" / "hoofbeat" / "teaching" / "handbooks"
    files = sorted(folder.glob("hb-*.md"))
    if not files:
        pytest.skip("the teaching handbooks are not here")
    for file in files:
        raw = file.read_text(encoding="utf-8")
        document = read_markdown(raw, file.stem)
        headings = re.findall(r"^#+ (.+)$", raw, flags=re.MULTILINE)
        assert [s.heading for s in document.sections] == headings
        assert document.id == file.stem
        assert {"institution", "organ", "year"} <= document.facets.keys()
        check_offsets(document)


def test_raised_numbers_are_exponents() -> None:
    assert "10⁹/L and 30 kg/m²" in read_markdown("# A\n\nPlatelets 10<sup>9</sup>/L and 30 kg/m^2^.\n", "a").text


def test_code_stands_between_runs_of_equally_many_backquotes() -> None:
    assert markdown("``a ` *b*`` and `*c*` and *d* ` *e*").text == "a ` *b* and *c* and d ` e"
    assert markdown("x ```` `*a*` ```").text == "x ```` *a* ```"
