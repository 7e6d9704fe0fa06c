"""Plain text with inline headings, as real case reports come."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from hoofbeat.corpus import Corpus
from hoofbeat.corpus.readers.text import read_text
from hoofbeat.records import Document
from hoofbeat.store import open_artefact
from tests.corpus.checks import check_offsets
from tests.helpers import shared_data

LONG = "A sentence that is long enough to be the body of a paragraph in a published report, and not a heading."


def text(content: str) -> Document:
    document = read_text(content, "stem")
    check_offsets(document)
    return document


def headings(content: str) -> list[tuple[str, int]]:
    return [(section.heading, section.level) for section in text(content).sections]


@pytest.mark.parametrize(
    "content",
    [
        f"pmcIntroduction\n\n{LONG}\n\nCase report\n\n{LONG}\n\nDiscussion\n\n{LONG}",
        f"Introduction\n{LONG}\n\nCase report\n{LONG}\n\n{LONG}\n\nDiscussion\n{LONG}",
    ],
)
def test_headings_alone_and_before_their_text(content: str) -> None:
    assert headings(content) == [("Introduction", 1), ("Case report", 1), ("Discussion", 1)]


def test_levels_by_number_and_by_words() -> None:
    numbered = f"1 Introduction\n\n{LONG}\n\n2. Case presentation\n\n{LONG}\n\n2.1 Physical examination\n\n{LONG}"
    assert headings(numbered) == [("1 Introduction", 1), ("2. Case presentation", 1), ("2.1 Physical examination", 2)]
    words = f"CASE REPORT\n\n{LONG}\n\nPhysical signs\n\n{LONG}\n\nDISCUSSION\n\nMechanism of harm\n\n{LONG}"
    assert headings(words) == [("CASE REPORT", 1), ("Physical signs", 2), ("DISCUSSION", 1), ("Mechanism of harm", 2)]


@pytest.mark.parametrize(
    "line",
    [
        "Conflict of interest: none declared",
        "Grade A (Excellent): 0",
        "https://orcid.org/0000-0001",
        "and then he left",
        "This is a short sentence.",
        "Table 3 Doses",
    ],
)
def test_short_lines_that_are_no_headings(line: str) -> None:
    assert headings(f"Discussion\n\n{LONG}\n\n{line}\n\n{LONG}") == [("Discussion", 1)]


def test_a_list_of_short_lines_is_no_run_of_headings() -> None:
    names = "\n\n".join(["Apple pie", "Berry jam", "Cherry cake", "Date bread", "Elder wine"])
    assert headings(f"Discussion\n\n{LONG}\n\n{names}\n\n{LONG}") == [("Discussion", 1)]


def test_nothing_follows_so_it_is_no_heading() -> None:
    assert text("Funding\n\n" + LONG + "\n\nThe last line").text.endswith("The last line")
    assert headings("Only a line") == [("", 1)]


def test_figures_and_tables() -> None:
    table = "Table 1. Laboratory data\n\nTest\tDay 1\tDay 2\t\nSodium\t120\t\t\n\nFig. 1 A scan.\n\nFig. 1\n\n"
    content = (
        f"Case report\n{LONG}\n\n{table}Fig. 1Fig. 2 Another (arrow).\n\nFigure 3 shows that {LONG}\n\nFigure 4\n\nEnd."
    )
    document = text(content)
    assert [(figure.label, figure.caption) for figure in document.figures] == [
        ("Fig. 1", "A scan."),
        ("Fig. 2", "Another (arrow)."),
        ("Figure 4", ""),
    ]
    found = document.tables[0]
    assert (found.label, found.caption) == ("Table 1", "Laboratory data")
    assert found.rows == (("Test", "Day 1", "Day 2"), ("Sodium", "120"))
    assert "Figure 3 shows that A sentence" in document.text


def test_wrapped_text_keeps_its_known_headings() -> None:
    lines = "INTRODUCTION\nMarchiafava-Bignami disease is characterized by degeneration of the corpus\ncallosum."
    assert headings(lines) == [("INTRODUCTION", 1)]
    assert text("A first line of words\nthat goes on\n\nand a second.").sections[0].heading == ""


def test_all_real_case_reports_are_read_whole(real_reports: Path) -> None:
    path = shared_data("case_reports.jsonl.gz")
    artefact = open_artefact(real_reports, "corpus")
    assert (artefact.manifest.counts.kept, artefact.manifest.counts.rejected) == (1500, 0)
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        raw = {row["pmcid"]: row["text"] for row in map(json.loads, stream)}
    lost: Counter[str] = Counter()
    added: Counter[str] = Counter()
    figures = tables = with_headings = 0
    for document in Corpus(artefact):
        check_offsets(document)
        source = re.sub(r"^pmc(?=[A-Z0-9])", "", raw[document.id]).translate({0xAD: None, 0x200B: None, 0xFEFF: None})
        before, after = (Counter(re.findall(r"\w+", words)) for words in (source, document.text))
        lost.update(before - after)
        added.update(after - before)
        figures += len(document.figures)
        tables += len(document.tables)
        with_headings += any(section.heading for section in document.sections)
    label = re.compile(r"\d*[A-Za-z]?(Fig(ure)?)?")
    assert [word for word in (*lost, *added) if not label.fullmatch(word)] == []
    assert sum(lost.values()) < 500
    assert figures > 3_300
    assert tables > 900
    assert with_headings > 1_480
