"""The invented handbooks, their questions, gold answers and planted relations."""

from __future__ import annotations

import importlib.util
import itertools
import json
import re
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
HANDBOOKS = ROOT / "src" / "hoofbeat" / "teaching" / "handbooks"
QUESTIONS = ROOT / "src" / "hoofbeat" / "teaching" / "questions"
TOOL = ROOT / "tools" / "teaching_pdfs.py"

KIDNEY = ["hb-alder-kidney", "hb-brook-kidney", "hb-cairn-kidney", "hb-dune-kidney"]
LIVER = ["hb-alder-liver", "hb-brook-liver", "hb-cairn-liver", "hb-elm-liver"]
GROUPS = {"general": sorted(KIDNEY + LIVER), "kidney": KIDNEY, "liver": LIVER}
LONG = "hb-brook-kidney"
RENDERED = ["hb-alder-kidney", "hb-brook-liver", "hb-cairn-kidney", "hb-elm-liver"]
LABELS = ["Absent", "Consistent", "Complementary", "Divergent", "Contradictory"]


def text_of(handbook: str) -> str:
    return (HANDBOOKS / f"{handbook}.md").read_text(encoding="utf-8")


def rows(name: str) -> list[dict[str, Any]]:
    lines = (QUESTIONS / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def headings(handbook: str) -> list[str]:
    return [m[1].strip() for m in re.finditer(r"^#{1,3} (.+)$", text_of(handbook), re.M)]


def squeezed(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def load_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("teaching_pdfs", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pdf_text(path: Path) -> tuple[int, str]:
    pdfium = pytest.importorskip("pypdfium2", reason="pypdfium2 is missing: the PDF text is not checked")
    document = pdfium.PdfDocument(path)
    try:
        pages = [page.get_textpage().get_text_bounded() for page in document]
    finally:
        document.close()
    return len(pages), squeezed(" ".join(pages))


# ---------------------------------------------------------------- handbooks


def test_the_eight_handbooks_are_there() -> None:
    assert sorted(p.stem for p in HANDBOOKS.glob("*.md")) == GROUPS["general"]
    assert not (HANDBOOKS / "chapters").exists()


@pytest.mark.parametrize("handbook", GROUPS["general"])
def test_front_matter_and_notice(handbook: str) -> None:
    text = text_of(handbook)
    _, front, body = text.split("---\n", 2)
    meta = dict(line.split(": ", 1) for line in front.strip().splitlines())
    assert list(meta) == ["id", "title", "institution", "organ", "phase", "year", "notice"]
    assert meta["id"] == handbook
    assert meta["organ"] == handbook.rsplit("-", 1)[1]
    assert meta["institution"].endswith("(invented)")
    assert "not medical advice" in meta["notice"].lower()
    assert int(meta["year"])
    first = body.strip().splitlines()
    assert first[0] == f"# {meta['title']}"
    assert "invented teaching material" in first[2].lower()
    assert "medical advice" in first[2].lower()


@pytest.mark.parametrize("handbook", GROUPS["general"])
def test_sizes(handbook: str) -> None:
    length = len(text_of(handbook))
    if handbook == LONG:
        assert length > 80_000
    else:
        assert 7_000 <= length <= 12_500


@pytest.mark.parametrize("handbook", GROUPS["general"])
def test_figures_are_small_and_exist(handbook: str) -> None:
    for name in re.findall(r"!\[.+\]\((.+)\)", text_of(handbook)):
        assert (HANDBOOKS / name).stat().st_size <= 15_000


# ------------------------------------------------- questions and gold answers


def test_questions() -> None:
    questions = rows("patient_questions.jsonl")
    assert [q["id"] for q in questions] == [f"tq-{n:02d}" for n in range(1, 25)]
    assert [q["group"] for q in questions] == ["general"] * 8 + ["kidney"] * 8 + ["liver"] * 8
    assert all(q["text"].strip() and q["topics"] for q in questions)
    assert len({q["text"] for q in questions}) == 24


def test_gold_covers_every_handbook_of_the_group_once() -> None:
    expected = [(q["id"], h) for q in rows("patient_questions.jsonl") for h in GROUPS[q["group"]]]
    assert [(g["question"], g["source"]) for g in rows("patient_gold.jsonl")] == expected


def test_gold_answers_and_quotes() -> None:
    for gold in rows("patient_gold.jsonl"):
        where = (gold["question"], gold["source"])
        if gold["absent"]:
            assert gold["answer"] == "", where
            assert gold["evidence"] == [], where
            continue
        assert gold["answer"].strip(), where
        assert gold["evidence"], where
        text = text_of(gold["source"])
        for item in gold["evidence"]:
            assert text.count(item["quote"]) == 1, where
            before = text[: text.index(item["quote"])]
            above = re.findall(r"^#{1,3} (.+)$", before, re.M)
            assert above[-1] == item["heading"], where


# ------------------------------------------------------------------ relations


def test_every_pair_is_covered_exactly_once() -> None:
    expected = [
        (q["id"], a, b)
        for q in rows("patient_questions.jsonl")
        for a, b in itertools.combinations(sorted(GROUPS[q["group"]]), 2)
    ]
    relations = rows("relations.jsonl")
    assert len(expected) == 320
    assert [(r["question"], r["a"], r["b"]) for r in relations] == expected


def test_absent_exactly_when_a_side_is_absent() -> None:
    absent = {(g["question"], g["source"]): g["absent"] for g in rows("patient_gold.jsonl")}
    for r in rows("relations.jsonl"):
        silent = absent[r["question"], r["a"]] or absent[r["question"], r["b"]]
        assert (r["label"] == "Absent") == silent, r


def test_significance_topic_and_reason() -> None:
    for r in rows("relations.jsonl"):
        assert list(r) == ["question", "a", "b", "label", "significance", "topic", "why"]
        assert r["label"] in LABELS
        assert r["why"].strip()
        if r["label"] in ("Divergent", "Contradictory"):
            assert r["significance"] in ("low", "medium", "high"), r
        else:
            assert r["significance"] is None, r
        if r["label"] in ("Absent", "Consistent"):
            assert r["topic"] is None, r
        else:
            assert r["topic"].strip(), r


def test_consistent_is_an_equivalence_within_a_question() -> None:
    """Two handbooks that agree with a third agree with each other and relate alike to the others."""
    by_pair = {}
    for r in rows("relations.jsonl"):
        by_pair[r["question"], r["a"], r["b"]] = by_pair[r["question"], r["b"], r["a"]] = r["label"]
    for (question, a, b), label in by_pair.items():
        if label == "Consistent":
            for (other, c, d), relation in by_pair.items():
                if other == question and c == a and d != b:
                    assert by_pair[question, b, d] == relation, (question, a, b, d)


def test_label_mix() -> None:
    relations = rows("relations.jsonl")
    counts = Counter(r["label"] for r in relations)
    assert 0.30 <= counts["Absent"] / len(relations) <= 0.45
    for label in LABELS[1:]:
        assert counts[label] >= 25, counts
    assert any(r["label"] == "Contradictory" and r["significance"] == "high" for r in relations)


# ----------------------------------------------------------------------- PDFs


@pytest.mark.parametrize("handbook", RENDERED)
def test_pdf_holds_every_heading(handbook: str) -> None:
    pages, text = pdf_text(HANDBOOKS / "pdf" / f"{handbook}.pdf")
    assert pages >= 3
    for heading in headings(handbook):
        assert squeezed(heading) in text
    for page in range(1, pages + 1):
        assert f"Page {page}" in text


def test_the_rendered_set() -> None:
    assert sorted(p.stem for p in (HANDBOOKS / "pdf").glob("*.pdf")) == RENDERED


@pytest.mark.parametrize("handbook", RENDERED)
def test_pdf_is_regenerated_byte_by_byte(handbook: str, tmp_path: Path) -> None:
    pytest.importorskip("reportlab", reason="reportlab is missing: the PDFs are not rendered again")
    pytest.importorskip("PIL", reason="pillow is missing: the PDFs are not rendered again")
    tool = load_tool()
    once = tool.render(handbook, tmp_path / "once").read_bytes()
    assert tool.render(handbook, tmp_path / "twice").read_bytes() == once
    if tool.versions() != tool.RENDERED_WITH:
        pytest.skip(f"two runs agree; the kept PDF was made with {tool.RENDERED_WITH}, here is {tool.versions()}")
    assert once == (HANDBOOKS / "pdf" / f"{handbook}.pdf").read_bytes()
