"""Checks of the invented teaching cases, their gold file and their figures."""

from __future__ import annotations

import importlib.util
import itertools
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "src" / "hoofbeat" / "teaching" / "cases"
FIGURES = CASES / "figures"
SCRIPT = ROOT / "tools" / "teaching_figures.py"
XLINK = "{http://www.w3.org/1999/xlink}href"
IDS = [f"hbt-case-{n:02d}" for n in range(1, 25)]
TRAPS = ["leak", "promotional", "near-duplicate", "retracted", "standard-procedure"]
FIELDS = {
    "id",
    "title",
    "specialty",
    "diagnosis",
    "synonyms",
    "abbreviations",
    "icd10",
    "rare",
    "differentials",
    "decisive_step",
    "limitations",
    "significance",
    "trap",
    "twin",
    "question",
    "mcq",
}
FRAME = re.compile(r"introduction|background|discussion|conclusion|retraction", re.I)

GOLD: dict[str, dict[str, Any]] = {
    row["id"]: row for row in map(json.loads, (CASES / "gold.jsonl").read_text("utf-8").splitlines())
}


def article(case: str) -> Any:
    return etree.parse(str(CASES / f"{case}.xml")).getroot()


def text(element: Any) -> str:
    return " ".join("".join(element.itertext()).split())


def paragraphs(element: Any) -> list[str]:
    """Running text: paragraphs outside figures and tables."""
    return [text(p) for p in element.iter("p") if not any(a.tag in ("fig", "table-wrap") for a in p.iterancestors())]


def first_half(case: str) -> str:
    """First half of the case presentation: what stands before the discussion,
    without introduction and notices."""
    words: list[str] = []
    for sec in article(case).find("body").findall("sec"):
        if not FRAME.match(sec.findtext("title")):
            words += " ".join(paragraphs(sec)).split()
    return " ".join(words[: len(words) // 2])


def names(row: dict[str, Any], where: str) -> list[str]:
    """The names of the diagnosis that occur in a text."""
    full = [n for n in [row["diagnosis"], *row["synonyms"]] if n.lower() in where.lower()]
    short = [a for a in row["abbreviations"] if re.search(rf"\b{re.escape(a)}\b", where)]
    return full + short


def shingles(case: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", " ".join(paragraphs(article(case).find("body"))).lower())
    return set(zip(*(words[i:] for i in range(5)), strict=False))


def trapped(trap: str) -> dict[str, Any]:
    (row,) = [r for r in GOLD.values() if r["trap"] == trap]
    return row


def test_files_and_gold_agree() -> None:
    assert sorted(p.stem for p in CASES.glob("*.xml")) == IDS
    assert sorted(GOLD) == IDS
    assert len((CASES / "gold.jsonl").read_text("utf-8").splitlines()) == len(IDS)
    assert len({r["specialty"] for r in GOLD.values()}) >= 12
    assert sum(article(c).find(".//table") is not None for c in IDS) >= 8


@pytest.mark.parametrize("case", IDS)
def test_article(case: str) -> None:
    root = article(case)
    assert root.get("article-type") == "case-report"
    assert root.findtext(".//article-id[@pub-id-type='publisher-id']") == case
    assert text(root.find(".//title-group/article-title")) == GOLD[case]["title"]
    assert 2019 <= int(root.findtext(".//pub-date/year")) <= 2025
    assert "(invented)" in root.findtext(".//journal-title")
    assert root.find(".//contrib/name") is None
    assert "Apache-2.0" in text(root.find(".//license-p"))
    assert "invented" in text(root.find("back/notes"))
    assert 300 <= sum(len(p.split()) for p in paragraphs(root.find("body"))) <= 700
    ids = [e.get("id") for e in root.iter() if e.get("id")]
    assert len(ids) == len(set(ids))
    assert {x.get("rid") for x in root.iter("xref")} <= set(ids)


@pytest.mark.parametrize("case", IDS)
def test_figures_exist(case: str) -> None:
    figs = list(article(case).iter("fig"))
    assert 1 <= len(figs) <= 3
    cited = {x.get("rid") for x in article(case).iter("xref") if x.get("ref-type") == "fig"}
    for fig in figs:
        assert fig.findtext("label")
        assert text(fig.find("caption"))
        assert fig.get("id") in cited
        png = FIGURES / fig.find("graphic").get(XLINK)
        data = png.read_bytes()
        assert data.startswith(b"\x89PNG\r\n\x1a\n")
        assert len(data) < 12 * 1024


@pytest.mark.parametrize("case", IDS)
def test_gold_row(case: str) -> None:
    row = GOLD[case]
    assert set(row) == FIELDS
    body = article(case).find("body")
    discussion = text(body).lower()
    assert 4 <= len(row["differentials"]) <= 6
    assert all(d.lower() in discussion for d in row["differentials"])

    mcq = row["mcq"]
    assert 5 <= len(mcq["options"]) <= 7
    assert len({o.lower() for o in mcq["options"]}) == len(mcq["options"])
    assert mcq["answer"] in mcq["options"]
    assert mcq["answer"] == row["diagnosis"]
    assert 60 <= len(mcq["stem"].split()) <= 150
    assert names(row, mcq["stem"]) == []

    question = row["question"]
    if question is None:
        assert row["trap"] in set(TRAPS) - {"leak"}
        return
    assert 80 <= len(question["context"].split()) <= 180
    assert question["text"].endswith("?")
    assert question["answer"]
    assert question["evidence"]
    for quote in question["evidence"]:
        assert any(quote.replace("²", "2") in text(p) for p in body.iter("p")), quote  # exponents are marked up there


def test_traps_once_each() -> None:
    counts = Counter(r["trap"] or "none" for r in GOLD.values())
    assert counts == {"none": 18} | dict.fromkeys([*TRAPS, "prompt-injection"], 1)


def test_leak_is_the_only_leak() -> None:
    assert [c for c in IDS if names(GOLD[c], first_half(c))] == [trapped("leak")["id"]]


def test_near_duplicate_is_the_only_one() -> None:
    row = trapped("near-duplicate")
    pair = {row["id"], row["twin"]}
    sets = {c: shingles(c) for c in IDS}
    for a, b in itertools.combinations(IDS, 2):
        jaccard = len(sets[a] & sets[b]) / len(sets[a] | sets[b])
        assert jaccard >= 0.5 if {a, b} == pair else jaccard < 0.15, (a, b, jaccard)
    assert [r["id"] for r in GOLD.values() if r["twin"]] == [row["id"]]
    assert GOLD[row["twin"]]["title"] != row["title"]


def test_retracted_is_the_only_one() -> None:
    marked = [
        c for c in IDS if article(c).find(".//related-article[@related-article-type='retraction-forward']") is not None
    ]
    titled = [c for c in IDS if GOLD[c]["title"].startswith("Retracted:")]
    assert marked == titled == [trapped("retracted")["id"]]
    assert "was retracted" in text(article(marked[0]).find("body"))


def test_promotional_names_its_product() -> None:
    body = text(article(trapped("promotional")["id"]).find("body"))
    assert len(re.findall("Zelvoranta Pro", body)) >= 6
    assert "manufacturer" in body
    assert "invented product" in body
    others = [c for c in IDS if "®" in text(article(c))]
    assert others == [trapped("promotional")["id"]]


def test_standard_procedure_has_no_limitation() -> None:
    row = trapped("standard-procedure")
    assert row["rare"] is True
    assert row["limitations"] == []
    assert "as recommended" in text(article(row["id"]).find("body"))


def test_prompt_injection_sits_in_one_caption() -> None:
    row = trapped("prompt-injection")
    hits = [c for c in IDS if "ignore all previous instructions" in text(article(c))]
    assert hits == [row["id"]]
    assert any("ignore all previous instructions" in text(f.find("caption")) for f in article(row["id"]).iter("fig"))


def test_figures_regenerate(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="Pillow is missing: figures not redrawn")
    spec = importlib.util.spec_from_file_location("teaching_figures", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    drawn = module.draw_all(tmp_path / "one")
    again = module.draw_all(tmp_path / "two")
    assert [p.read_bytes() for p in drawn] == [p.read_bytes() for p in again]
    named = {g.get(XLINK) for c in IDS for g in article(c).iter("graphic")}
    assert {p.name for p in drawn} == named == {p.name for p in FIGURES.iterdir()}
    differing = [p for p in drawn if p.read_bytes() != (FIGURES / p.name).read_bytes()]
    for path in differing:
        with image.open(path) as new, image.open(FIGURES / path.name) as old:
            assert new.size == old.size
            assert new.convert("RGB").tobytes() == old.convert("RGB").tobytes(), path.name
    if differing:
        pytest.skip("same pixels, other bytes: this Pillow compresses differently")
