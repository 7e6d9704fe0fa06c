"""Stems: which parts of a report they take, that they stay verbatim, where they end; over invented and real reports."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from hoofbeat.corpus import Corpus
from hoofbeat.recipes.cases.stems import (
    complete,
    cut_before,
    long_enough,
    missing_parts,
    sentences,
    several_patients,
    spans_of,
    stem_evidence,
    stem_place,
    stem_spans,
    stem_text,
    take_stem,
    trim_treatment,
    with_stem,
)
from hoofbeat.recipes.context import RecipeSettings
from hoofbeat.recipes.recipe_items import ItemRejection, RecipeItem
from hoofbeat.records import Document, Figure, Section
from tests.recipes.support import a_context

OPENING = "A 40-year-old invented man presented with fever."
TESTS = "Haemoglobin was 80 g/L. CT showed a mass (Figure 1)."
CAPTION = "Figure 1. CT of the abdomen with the mass."


def _report(*parts: tuple[str, str, str], figure: str = "", files: tuple[str, ...] = ()) -> Document:
    """A report of (heading, role, text)."""
    text, sections = "", []
    for heading, role, body in parts:
        start = len(text)
        text += heading + "\n\n" if heading else ""
        begin = len(text)
        text += body
        sections.append(Section(heading=heading, level=1, start=start, body=begin, end=len(text), role=role))
        text += "\n\n"
    at = text.find(figure) if figure else -1
    figures = (
        (Figure(id="f1", label="Figure 1", caption=figure, files=files, start=at, end=at + len(figure)),)
        if at >= 0
        else ()
    )
    return Document(id="d", title="Invented", text=text.strip(), sections=tuple(sections), figures=figures)


STRUCTURED = _report(
    ("Introduction", "introduction", "Tumours are rare."),
    ("History", "patient", OPENING),
    ("Imaging", "tests", f"{TESTS}\n\n{CAPTION}"),
    ("Diagnosis", "diagnosis", "It was a lymphoma."),
    ("Treatment", "treatment", "Chemotherapy was given."),
    ("Imaging after treatment", "tests", "The mass was gone."),
    ("Discussion", "discussion", "Lymphoma is common."),
    figure=CAPTION,
)


def test_a_structured_report_gives_history_and_tests_with_their_headings_and_no_caption() -> None:
    spans = stem_spans(STRUCTURED)
    assert stem_text(STRUCTURED, spans) == f"History\n\n{OPENING}\n\nImaging\n\n{TESTS}"
    assert [span.quote for span in stem_evidence(STRUCTURED, spans)] == [
        STRUCTURED.text[start:end] for start, end in spans
    ]


def test_places_in_the_stem_are_places_in_the_source() -> None:
    spans = stem_spans(STRUCTURED)
    text = stem_text(STRUCTURED, spans)
    for word in ("History", "fever", "Imaging", "mass"):
        place = stem_place(STRUCTURED, spans, text.index(word))
        assert STRUCTURED.text[place : place + len(word)] == word
    assert stem_place(STRUCTURED, (), 5) == 0


def test_a_cut_takes_the_sentence_and_all_after_it_and_no_heading_stays_alone() -> None:
    spans = stem_spans(STRUCTURED)
    mass = STRUCTURED.text.index("a mass")
    assert stem_text(STRUCTURED, cut_before(STRUCTURED, spans, mass)).endswith("Haemoglobin was 80 g/L.")
    first = STRUCTURED.text.index("80 g/L")
    assert stem_text(STRUCTURED, cut_before(STRUCTURED, spans, first)) == f"History\n\n{OPENING}"
    assert cut_before(STRUCTURED, spans, 0) == ()
    assert cut_before(STRUCTURED, spans, len(STRUCTURED.text)) == spans


def _narrative(body: str) -> str:
    document = _report(("Case report", "case", body), ("Discussion", "discussion", "Nothing."))
    return stem_text(document, stem_spans(document))


def test_a_case_told_in_one_section_ends_at_its_outcome() -> None:
    assert _narrative(f"{OPENING} {TESTS} He was discharged. At follow-up he was well.") == f"{OPENING} {TESTS}"


def test_a_discharge_before_the_patient_comes_back_is_part_of_the_case() -> None:
    told = f"{OPENING} He was discharged. He returned to the clinic with pain. {TESTS}"
    assert _narrative(f"{told} At follow-up he was well.") == told


@pytest.mark.parametrize(
    "earlier",
    [
        "She was discharged with tonsillitis; six days later she presented with stridor.",
        "He was seen one day before admission and was discharged with an analgesic.",
        "He was discharged on antibiotics. The day following discharge the pain worsened.",
        "The patient was discharged home. Two days later he revisited the emergency department.",
        "Vital signs remained stable throughout the procedure.",
        "The patient remained stable throughout the procedure.",
        "Chronic hepatitis B had been known for years; he was not on regular follow-up.",
        "When the fascia was opened, pus was discharged.",
        "In 2014, during follow-up, a scan showed an endoleak, and she was admitted to our hospital.",
        "Ten years ago he had a tonsil cancer and there was no recurrence.",
    ],
)
def test_the_end_of_an_earlier_visit_is_not_the_end_of_the_case(earlier: str) -> None:
    told = f"{OPENING} {earlier} {TESTS}"
    assert _narrative(f"{told} She was discharged on day 9. At follow-up she was well.") == told


def test_few_real_cases_lose_most_of_their_text(real_reports: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Reports of odd number, on which nothing was tuned: 51 of 784 sections kept under a third of their text before."""
    corpus = Corpus.open(real_reports)
    shares = []
    for document in list(corpus)[1::2]:
        for section in document.sections:
            if section.role == "case" and section.end - section.body > 600:
                alone = msgspec.structs.replace(document, sections=(section,), figures=())
                spans = stem_spans(alone)
                shares.append(sum(end - start for start, end in spans) / (section.end - section.body))
    low = sum(share < 1 / 3 for share in shares)
    with capsys.disabled():
        print(f"\nstems: {low} of {len(shares)} case sections keep under a third of their text")
    assert low <= 0.01 * len(shares)


def test_a_caption_run_into_a_paragraph_is_left_out() -> None:
    body = f"{OPENING} The scan was normal.Figure 2 Axial scan of the lymphoma.\n\nHe felt better."
    assert _narrative(body) == f"{OPENING} The scan was normal.\n\nHe felt better."


def test_treatment_at_the_end_is_trimmed_and_tests_stay() -> None:
    document = _report(("Case report", "case", f"{OPENING} {TESTS} He underwent surgery. Antibiotics were given."))
    trimmed = trim_treatment(document, stem_spans(document))
    assert stem_text(document, trimmed) == f"{OPENING} {TESTS}"
    for told in (
        "He underwent biopsy of the mass.",
        "During treatment bilirubin rose.",
        "Antibiotics brought no improvement.",
        "Prednisone therapy was stopped when a rash developed.",
    ):
        tested = _report(("Case report", "case", f"{OPENING} {told}"))
        assert trim_treatment(tested, stem_spans(tested)) == stem_spans(tested)


def test_parts_are_told_by_sections_or_by_the_case() -> None:
    assert missing_parts(STRUCTURED, by="sections") == []
    whole = f"{OPENING} CT showed a mass. Lymphoma was diagnosed. He underwent chemotherapy."
    narrative = _report(("Case report", "case", whole))
    assert missing_parts(narrative) == []
    assert missing_parts(narrative, by="sections") == ["patient", "tests", "diagnosis", "treatment"]
    assert missing_parts(_report(("Case report", "case", f"{OPENING} CT showed a mass. He felt better."))) == [
        "diagnosis",
        "treatment",
    ]
    concluded = _report(("Case report", "case", f"{OPENING} He underwent surgery after CT."),
                        ("Conclusion", "conclusion", "The diagnosis was a lymphoma."))  # fmt: skip
    assert missing_parts(concluded) == []
    assert missing_parts(Document(id="x", title="", text="")) == ["patient", "tests", "diagnosis", "treatment"]


@pytest.mark.parametrize(
    ("images", "files", "reason"),
    [
        ("any", (), ""),
        ("captions", (), ""),
        ("files", (), "no image in patient information or test results"),
        ("files", ("images/x.png",), ""),
    ],
)
def test_images_may_be_asked_for(tmp_path: Path, images: str, files: tuple[str, ...], reason: str) -> None:
    parts = [(s.heading, s.role, STRUCTURED.section_text(s)) for s in STRUCTURED.sections]
    document = _report(*parts, figure=CAPTION, files=files)
    with a_context(tmp_path, [document], RecipeSettings(), lambda *_: {}) as context:
        step = complete("complete", by="sections", images=images)  # type: ignore[arg-type]
        (outcome,) = step.run([RecipeItem(id="d", documents=("d",))], context)
    assert (outcome.reason if isinstance(outcome, ItemRejection) else "") == reason


def test_reports_of_several_patients_have_no_stem(tmp_path: Path) -> None:
    two = _report(("Case 1", "case", OPENING), ("Case 2", "case", OPENING))
    assert several_patients(two)
    assert not several_patients(STRUCTURED)
    none = Document(id="e", title="", text="Nothing.")
    with a_context(
        tmp_path, [two, none, msgspec.structs.replace(STRUCTURED, id="s")], RecipeSettings(), lambda *_: {}
    ) as context:
        items = [RecipeItem(id=id, documents=(id,)) for id in ("d", "e", "s")]
        first, second, third = take_stem("stem").run(items, context)
        assert first == ItemRejection(reason="the report describes several patients")
        assert second == ItemRejection(reason="no section with patient information or test results")
        assert isinstance(third, RecipeItem)
        assert third["stem"].startswith("History")
        (short,) = long_enough("length", 500).run([third], context)
        assert isinstance(short, ItemRejection)


def test_stems_of_real_reports_are_verbatim_and_without_captions(real_reports: Path) -> None:
    corpus = Corpus.open(real_reports)
    stems = 0
    for document in corpus:
        spans = stem_spans(document)
        stems += bool(spans)
        assert list(spans) == sorted(spans)
        assert all(start < end <= len(document.text) for start, end in spans)
        assert all(first[1] <= second[0] for first, second in pairwise(spans))
        for figure in document.figures:
            assert not any(
                start < figure.end and figure.start < end for start, end in spans if figure.end > figure.start
            )
        if spans:
            item = with_stem(RecipeItem(id="x"), document, spans)
            assert spans_of(item) == spans
            assert all(document.text[start:end] in item["stem"] for start, end in sentences(document, spans))
    assert stems > 0.95 * len(corpus)
