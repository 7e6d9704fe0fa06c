"""Section roles: by heading, by place, by content, and measured on real reports labelled by hand."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from hoofbeat.corpus import Corpus, read_file
from hoofbeat.corpus.parsers.prose import TextBuilder
from hoofbeat.corpus.roles import (
    Role,
    assign_roles,
    case_spans,
    find_case,
    heading_role,
    role_of,
    section_roles,
)
from hoofbeat.records import Document
from hoofbeat.teaching import cases_folder
from tests.corpus.checks import check_offsets
from tests.helpers import shared_data

LABELS = Path(__file__).parent / "role_labels.jsonl"
STORY = (
    "A 54-year-old man presented to the emergency department with fever. On examination he was pale; blood pressure "
    "was 90/60 mmHg. Laboratory tests showed a haemoglobin of 7.8 g/dL. He was admitted and treatment was started."
)
LITERATURE = (
    "Haemolysis is a rare complication and has been reported in patients with lymphoma [3, 4]. The incidence is "
    "unknown, and the pathogenesis is debated [5]. In the literature, risk factors have been described [6-9]."
)


def document(*sections: tuple[str, int, str], kind: str = "") -> Document:
    builder = TextBuilder()
    for heading, level, text in sections:
        builder.heading(heading, level)
        for paragraph in text.split("\n"):
            builder.paragraph(paragraph)
    return Document(id="d", title="t", text=builder.text, sections=builder.sections(), kind=kind)


def roles(*sections: tuple[str, int, str], kind: str = "") -> list[str]:
    found = assign_roles(document(*sections, kind=kind))
    check_offsets(found)
    assert assign_roles(found) == found
    assert all(type(section.role) is str for section in found.sections)
    return [section.role for section in found.sections]


@pytest.mark.parametrize(
    ("heading", "role"),
    [
        ("Case presentation", "case"),
        ("2. CASE REPORT", "case"),
        ("II. Case Reports", "case"),
        ("pmcCase report", "case"),
        ("3.1 Case 2", "case"),
        ("Patient 1: A boy", "case"),
        ("Presentation of the case:", "case"),
        ("Case summary", "case"),
        ("Timeline", "case"),
        ("Cases and controls", "methods"),
        ("Case-control study", "methods"),
        ("Case discussion", "discussion"),
        ("Patient Information", "patient"),
        ("Chief complaints", "patient"),
        ("History of present illness", "patient"),
        ("Relevant past medical history and family history", "patient"),
        ("Patient’s perspective", "patient"),
        ("Diagnostic assessment", "tests"),
        ("Laboratory and imaging examinations", "tests"),
        ("Further diagnostic work-up", "tests"),
        ("FINAL DIAGNOSES", "diagnosis"),
        ("Therapeutic interventions", "treatment"),
        ("Anaesthetic management", "treatment"),
        ("Outcome and follow-up", "outcome"),
        ("Follow-up (06/2019)", "outcome"),
        ("Patients and methods", "methods"),
        ("Results and Discussion", "results"),
        ("Discussion/Conclusion", "discussion"),
        ("Review of the literature", "discussion"),
        ("Background", "introduction"),
        ("Learning points", "conclusion"),
        ("Conclusions", "conclusion"),
        ("Authors’ contributions", "back"),
        ("CONFLICT OF INTERESTS STATEMENT", "back"),
        ("Acknowledgements", "back"),
        ("Supplementary data", "back"),
        ("Graphical abstract", "abstract"),
        ("The Pink Pigment", ""),
        ("", ""),
        ("42", ""),
    ],
)
def test_headings(heading: str, role: str) -> None:
    guess = heading_role(heading)
    assert (guess.role if guess else "") == role
    if guess:
        assert 0.5 < guess.confidence <= 1
        assert guess.reason
        assert Role(guess.role)


def test_readers_ask_for_headings_alone() -> None:
    assert role_of("Treatment") == ""
    assert role_of("Treatment", "case") == "case"
    assert role_of("Case report", "abstract") == "abstract"
    assert role_of("Final diagnosis", "discussion") == "discussion"
    assert role_of("Something", "methods") == "methods"


def test_parts_of_a_case_need_a_case() -> None:
    headings = [("Background", 1, LITERATURE), ("Diagnosis", 1, LITERATURE), ("Treatment", 1, LITERATURE)]
    guideline = assign_roles(document(*headings))
    assert find_case(guideline) is None
    care = roles(("Presentation", 1, STORY), ("Investigations", 1, STORY), ("Treatment", 1, "He got iron."))
    assert care == ["case", "tests", "treatment"]


def test_the_same_heading_in_the_discussion_is_the_discussion() -> None:
    found = roles(
        ("Case", 1, STORY),
        ("Treatment", 2, "He got iron."),
        ("Discussion", 1, LITERATURE),
        ("Treatment", 2, LITERATURE),
        ("Follow-up", 1, STORY),
        ("Diagnosis", 1, LITERATURE),
    )
    assert found == ["case", "treatment", "discussion", "discussion", "outcome", "discussion"]


def test_unknown_headings_go_with_their_parent_unless_the_text_says_otherwise() -> None:
    found = roles(("Case", 1, STORY), ("A turn", 2, "He got worse."), ("Pigments", 2, LITERATURE), ("End", 1, "x"))
    assert found == ["case", "case", "discussion", ""]


def test_a_case_without_a_heading_is_parted_from_what_surrounds_it() -> None:
    letter = assign_roles(
        document(("", 1, f"Sir,\n{LITERATURE}\n{STORY}\nHe was discharged after a week.\n{LITERATURE}"))
    )
    assert [section.role for section in letter.sections] == ["introduction", "case", "discussion"]
    span = find_case(letter)
    assert span
    assert letter.text[slice(*span)] == f"{STORY}\n\nHe was discharged after a week."
    check_offsets(letter)
    points = roles(("Key points", 1, f"Think of it.\n{STORY}\n{STORY}"), ("Discussion", 1, LITERATURE))
    assert points == ["abstract", "case", "discussion"]


def test_compound_headings_are_parted_by_content() -> None:
    found = roles(("Introduction", 1, LITERATURE), ("Case report and discussion", 1, f"{STORY}\n{LITERATURE}"))
    assert found == ["introduction", "case", "discussion"]


def test_what_is_no_case_is_not_made_one() -> None:
    review = document(("Introduction", 1, LITERATURE), ("", 1, f"{LITERATURE}\n{LITERATURE}"))
    assert find_case(assign_roles(review)) is None
    study = document(("Methods", 1, LITERATURE), ("Results", 1, STORY), kind="article")
    assert find_case(assign_roles(study)) is None
    assert case_spans(document()) == ()


def test_every_decision_has_a_confidence_and_a_reason() -> None:
    guesses = section_roles(document(("Case", 1, STORY), ("", 1, LITERATURE), ("Funding", 1, "None.")))
    assert [guess.role for guess in guesses] == ["case", "", "back"]
    assert all(guess.reason and 0 <= guess.confidence <= 1 for guess in guesses)


def test_teaching_cases_have_their_case() -> None:
    for path in sorted(cases_folder().glob("*.xml")):
        for each in read_file(path):
            span = find_case(each)
            assert span, path.name
            inside = [section for section in each.sections if span[0] <= section.start < span[1]]
            assert not {s.role for s in inside} & {"abstract", "introduction", "discussion", "back"}


def test_real_jats_case_reports_have_their_case() -> None:
    found = [d for path in sorted(shared_data("jats").iterdir()) for d in read_file(path)]
    assert all(find_case(each) for each in found if each.kind == "case-report")
    assert sum(1 for each in found if each.kind == "article" and find_case(each)) <= 1


class Label(msgspec.Struct):
    """A real report read by hand: whether it has a case presentation, under which headings, and where in the file."""

    id: str
    set: str
    seed: int
    case: bool
    headings: list[str]
    spans: list[tuple[int, int]]


def shingles(text: str) -> Counter[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return Counter(zip(*(words[start:] for start in range(5)), strict=False))


def test_the_case_of_real_reports_is_found(real_reports: Path) -> None:
    path = shared_data("case_reports.jsonl.gz")
    labels = [msgspec.json.decode(line, type=Label) for line in LABELS.read_bytes().splitlines()]
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        texts = {row["pmcid"]: row["text"] for row in map(json.loads, lines)}
    documents = {each.id: assign_roles(each) for each in Corpus.open(real_reports)}
    assert len(documents) == 1500
    counts: Counter[tuple[str, str]] = Counter()
    for label in labels:
        span = find_case(documents[label.id])
        counts[label.set, "labelled"] += label.case
        counts[label.set, "found"] += span is not None
        if not label.case or span is None:
            continue
        first, last = label.spans[0]
        wanted, found = shingles(texts[label.id][first:last]), shingles(documents[label.id].text[slice(*span)])
        shared = (wanted & found).total()
        counts[label.set, "right"] += shared >= 0.8 * wanted.total() and shared >= 0.8 * found.total()
    assert counts["random", "labelled"] == 50
    assert counts["random", "right"] / counts["random", "labelled"] >= 0.95, counts
    assert counts["random", "right"] / counts["random", "found"] >= 0.95, counts
    assert counts["hard", "right"] / counts["hard", "labelled"] >= 0.85, counts
    everywhere = sum(1 for each in documents.values() if find_case(each))
    assert everywhere / len(documents) >= 0.99


def test_labels_hold_no_text() -> None:
    for line in LABELS.read_bytes().splitlines():
        label = msgspec.json.decode(line, type=Label)
        assert all(len(heading) <= 60 for heading in label.headings)
        assert label.case == bool(label.spans)
