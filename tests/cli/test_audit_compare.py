"""`hoofbeat audit compare`: what was planted in two audits comes back, to the last pair."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from hoofbeat.audit import AuditPlan, audit_sources
from hoofbeat.audit.answers_by_source import evidence_by_search
from hoofbeat.prompts import load_pack
from hoofbeat.records import Document, Question
from hoofbeat.store import open_artefact
from tests.answering.support import Says, ScriptedServer, a_document, search_in
from tests.cli.audit_folders import invented_pairs, write_audit
from tests.cli.support import hoofbeat, json_of
from tests.models.support import a_model, ledger_in

NAMES = ("alder", "brook", "cairn", "dell")
ASKED = {
    "bath": "May I have a bath?",
    "diet": "May I eat honey?",
    "pets": "May I keep a cat?",
    "sun": "May I sunbathe?",
}
WORDS = {"bath": "bath", "diet": "honey", "pets": "cat", "sun": "sunbathe"}
ODD = {"bath": "cairn", "diet": "alder", "sun": "dell"}
"""Who says otherwise on a question; on pets nobody does."""

HIDDEN = {("bath", "cairn"), ("bath", "dell"), ("pets", "brook"), ("sun", "dell")}
"""Where a chapter that only repeats the question's words comes before the one that answers it."""


def handbook(name: str) -> Document:
    sections = []
    for question, word in WORDS.items():
        rule = "OTHERWISE" if ODD.get(question) == name else "wait"
        padding = " Ask your nurse about rest, wounds, clinic visits, tablets, travel and sleep at home." * 2
        sections.append((f"Rules {question}", f"FACT-{name}-{question}: {rule} with the {word} here.{padding}"))
        if (question, name) in HIDDEN:
            sections.append((f"Index {question}", f"{word}, {word}: see {word}"))
    return a_document(name, *sections)


def says() -> list[Says]:
    """The model reports a fact where it is shown, else nothing; the judge goes by the word that makes the odd one."""
    script = [
        Says(
            "passage",
            f"FACT-{name}-{question}:",
            {
                "passage": f"Rules {question}",
                "quote": "",
                "answer": f"{name} on {question}: {'OTHERWISE' if ODD.get(question) == name else 'wait'}.",
                "statement": "",
                "strength": "",
            },
        )
        for question in ASKED
        for name in NAMES
    ]
    divergent = {
        "reasoning": "One says otherwise.",
        "classification": "Divergent",
        "topic": "the rule",
        "significance": "high",
    }
    same = {"reasoning": "The same rule.", "classification": "Consistent", "topic": "", "significance": "none"}
    return [
        *script,
        Says("passage", "", {"passage": "none", "quote": "", "answer": "", "statement": "", "strength": ""}),
        Says("addressed", "", {"addressed": "yes"}),
        Says("classification", "OTHERWISE", divergent),
        Says("classification", "", same),
    ]


@pytest.fixture
def audits(tmp_path: Path) -> Path:
    """Two audits of four handbooks: `before` sees one passage of each, `after` two."""
    documents = [handbook(name) for name in NAMES]
    questions = [Question(id=q, text=text, facets={"part": q[0]}) for q, text in ASKED.items()]
    with ledger_in(tmp_path) as ledger, ScriptedServer(*says()) as server:
        model = a_model(server.spec(), ledger)
        for name, count in (("before", 1), ("after", 2)):
            plan = AuditPlan(
                questions=questions,
                documents=documents,
                pack=load_pack("transplant"),
                find=evidence_by_search(search_in(documents, count), documents, 0),
                settings={"line": "bm25", "passages": count, "whole_up_to": 0},
            )
            audit_sources(plan, model, model, tmp_path / name, inputs=[])
    return tmp_path


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream, delimiter="\t"))


def test_better_retrieval_shows_more_and_changes_nothing(audits: Path) -> None:
    told = json_of(hoofbeat("audit", "compare", "before", "after", "-o", "cmp", "--json", folder=audits))
    split = told["summary"]["split"]
    assert (split["questions"], split["pairs_in_both"], split["failed"]) == (4, 13, [0, 0])
    expected = {
        "r_abs": (11 / 24, 0.0),
        "r_div": (3 / 13, 9 / 24),
        "intensity": (3 / 13, 3 / 13),
        "any_div": (1 / 4, 3 / 4),
        "prevalence": (1 / 4, 1 / 4),
    }
    for rate, (before, after) in expected.items():
        found = split[rate]
        assert (found["before"], found["after"], found["change"]) == pytest.approx((before, after, after - before))
        assert found["interval"]["low"] <= found["change"] <= found["interval"]["high"]
    assert split["intensity"]["change"] == 0.0
    assert split["prevalence"]["change"] == 0.0
    assert split["by_coverage"] == 0.5
    covered = {row["source"]: (row["coverage"], row["gained"], row["lost"]) for row in told["summary"]["coverage"]}
    assert covered == {
        "alder": ([1.0, 1.0], 0, 0),
        "brook": ([0.75, 1.0], 1, 0),
        "cairn": ([0.75, 1.0], 1, 0),
        "dell": ([0.5, 1.0], 2, 0),
    }
    assert told["changed"] == 11
    assert told["altered"] == {"passages": [1, 2]}
    assert told["warnings"] == []
    changed = rows_of(audits / "cmp" / "changed" / "changed-0001.tsv")
    assert {(row["kind"], row["before"]) for row in changed} == {("answered now", "Absent")}
    now = {(row["question"], row["a"], row["b"]): row["after"] for row in changed}
    assert len(now) == 11
    for (question, a, b), label in now.items():
        assert label == ("Divergent" if ODD.get(question) in (a, b) else "Consistent")
    labels = {(row["before"], row["after"]): int(row["pairs"]) for row in rows_of(audits / "cmp" / "labels.tsv")}
    assert labels == {
        ("Absent", "Consistent"): 5,
        ("Absent", "Divergent"): 6,
        ("Consistent", "Consistent"): 10,
        ("Divergent", "Divergent"): 3,
    }
    assert open_artefact(audits / "cmp").verify() == []


def test_the_folder_and_the_screen(audits: Path) -> None:
    done = hoofbeat("audit", "compare", "before", "after", "-o", "cmp", folder=audits)
    assert "Compared 24 pairs of answers → cmp" in done.stdout
    for words in (
        "13 pairs judged in both",
        "by coverage",
        "+50.0",
        "setting passages: 1 → 2",
        "11 pairs changed their label",
    ):
        assert words in done.stderr
    folder = audits / "cmp"
    assert sorted(path.name for path in folder.iterdir()) == [
        "answers.tsv", "cases.csv", "changed", "charts", "coverage.tsv", "labels.tsv", "manifest.json", "only.tsv",
        "rates.tsv", "report.html", "report.md", "same-label.tsv", "summary.json",
    ]  # fmt: skip
    rates = {(row["facet"], row["group"], row["rate"]): row for row in rows_of(folder / "rates.tsv")}
    assert rates["", "", "by coverage"]["change"] == "0.5"
    assert rates["part", "b", "pct_any_div"]["after"] == "1.0"
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "by coverage" in page
    assert "Pairs judged in both audits show no clear change: 0.0 points (95% interval −" in page
    assert "changed by +50.0 points, of which 0.0 are due to those pairs and +50.0 to pairs that only one" in page
    first = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    hoofbeat("audit", "compare", "before", "after", "-o", "cmp", folder=audits)
    assert first == {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_a_harder_judge_is_intensity_and_is_warned_of(tmp_path: Path) -> None:
    before = invented_pairs({"q1": "ccm", "q2": "c--", "q3": "dm-", "gone": "ccc"})
    after = invented_pairs({"q1": "dxm", "q2": "c--", "q3": "dd-", "new": "ddd"})
    write_audit(tmp_path / "a", before, settings={"mode": "full"})
    write_audit(tmp_path / "b", [*after, *invented_pairs({"q1": "d"}, ("brook", "elm"))], settings={"mode": "economy"})
    told = json_of(hoofbeat("audit", "compare", "a", "b", "-o", "cmp", "--json", "--page-rows", "100", folder=tmp_path))
    split = told["summary"]["split"]
    assert (split["questions"], split["one_audit_only"], split["pairs_in_both"]) == (3, 2, 6)
    assert (split["intensity"]["before"], split["intensity"]["after"]) == pytest.approx((1 / 6, 4 / 6))
    assert (split["prevalence"]["before"], split["prevalence"]["after"]) == pytest.approx((1 / 3, 2 / 3))
    assert split["by_coverage"] == pytest.approx(0.0)
    page = (tmp_path / "cmp" / "report.md").read_text(encoding="utf-8")
    assert "Pairs judged in both audits show no clear change: +50.0 points (95% interval " in page
    assert told["summary"]["sources_only"] == [[], ["elm"]]
    assert told["summary"]["questions_only"] == [["gone"], ["new"]]
    assert told["summary"]["shift"]["only_after"] == 4
    assert any("economy" in warning for warning in told["warnings"])
    assert {(row["what"], row["name"], row["in"]) for row in rows_of(tmp_path / "cmp" / "only.tsv")} == {
        ("source", "elm", "after"), ("question", "gone", "before"), ("question", "new", "after"),
    }  # fmt: skip
    changed = rows_of(tmp_path / "cmp" / "changed" / "changed-0001.tsv")
    assert [(row["question"], row["before"], row["after"]) for row in changed] == [
        ("q1", "Consistent", "Contradictory"), ("q1", "Consistent", "Divergent"), ("q3", "Complementary", "Divergent"),
    ]  # fmt: skip
    assert (changed[0]["topic_after"], changed[0]["significance_after"]) == ("time of q1", "medium")


def test_settings_with_parts_are_told_in_words(tmp_path: Path) -> None:
    pairs = invented_pairs({"q1": "ccm"})
    write_audit(tmp_path / "a", pairs)
    write_audit(tmp_path / "b", pairs, settings={"economy": {"check": 200, "sure": None}})
    done = hoofbeat("audit", "compare", "a", "b", "-o", "cmp", folder=tmp_path)
    assert "economy: none → check 200, sure none" in done.stderr


def test_the_list_of_changed_pairs_comes_in_pages(tmp_path: Path) -> None:
    sources = [f"s{number:02}" for number in range(22)]
    silent, heard = ({f"q{n}": mark * 231 for n in range(2)} for mark in "-m")
    write_audit(tmp_path / "a", invented_pairs(silent, sources))
    write_audit(tmp_path / "b", invented_pairs(heard, sources))
    hoofbeat("audit", "compare", "a", "b", "-o", "cmp", "--page-rows", "200", folder=tmp_path)
    pages = sorted((tmp_path / "cmp" / "changed").iterdir())
    assert [(page.name, len(rows_of(page))) for page in pages] == [
        ("changed-0001.tsv", 200), ("changed-0002.tsv", 200), ("changed-0003.tsv", 62),
    ]  # fmt: skip
    split = json_of(hoofbeat("audit", "compare", "a", "b", "-o", "cmp", "--json", folder=tmp_path))["summary"]["split"]
    assert split["intensity"] == {"before": None, "after": None, "change": None, "interval": None}


def test_audits_that_cannot_be_compared_are_refused_in_words(tmp_path: Path) -> None:
    write_audit(tmp_path / "a", invented_pairs({"q1": "cdm"}))
    other = [Question(id="q1", text="Another question under the same name?")]
    write_audit(tmp_path / "reworded", invented_pairs({"q1": "cdm"}), questions=other)
    write_audit(tmp_path / "elsewhere", invented_pairs({"q7": "cdm"}))
    write_audit(tmp_path / "guidelines", invented_pairs({"q1": "cdm"}), pack="guidelines")
    for name, words, code in (
        ("reworded", "same id but different text: q1", 1),
        ("elsewhere", "the two audits share no question", 1),
        ("guidelines", "different domain packs: transplant and guidelines", 2),
        ("nowhere", "there is no such folder", 1),
    ):
        done = hoofbeat("audit", "compare", "a", name, "-o", "cmp", folder=tmp_path, code=code)
        assert words in done.stderr
        assert not (tmp_path / "cmp").exists()
    assert "no question has the facet 'organ'" in hoofbeat(
        "audit", "compare", "a", "a", "--facet", "organ", folder=tmp_path, code=2
    ).stderr  # fmt: skip
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("x")
    done = hoofbeat("audit", "compare", "a", "a", "-o", "mine", folder=tmp_path, code=1)
    assert "not a Hoofbeat folder" in done.stderr
