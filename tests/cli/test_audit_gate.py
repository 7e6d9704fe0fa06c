"""`hoofbeat audit gate` and `cases`: conditions, exit codes, and the files that continuous integration reads."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from msgspec.structs import replace

from hoofbeat.audit import Audit
from hoofbeat.audit.audit_gate import FIGURES, judge_condition, parse_condition
from hoofbeat.audit.disagreement_cases import read_cases, read_decisions
from hoofbeat.errors import UsageError
from hoofbeat.records import Answer, Failure, TraceStep
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.store import open_artefact
from tests.cli.audit_folders import invented_pairs, write_audit
from tests.cli.support import hoofbeat, json_of

SOURCES = ("alder", "brook", "cairn")


def an_audit(path: Path, labels: dict[str, str], **words: str) -> Path:
    """An audit whose sources say what `question_source="…"` gives (nothing: silent), or their own name."""
    answers = []
    for question in labels:
        for source in SOURCES:
            text = words.get(f"{question}_{source}", f"{source} says six weeks on {question}.")
            quote = TraceStep(stage="citations", what="quoted", text=f"{text} (quoted)")
            answers.append(
                Answer(question=question, model="m", condition="source", source=source, text=text, absent=not text,
                       trace=(quote,) if text else ())
            )  # fmt: skip
    return write_audit(path, invented_pairs(labels), answers=answers)


@pytest.fixture
def audits(tmp_path: Path) -> Path:
    """Before: brook differs on q1, all differ on q2. After: brook says otherwise on q2, and cairn differs on q1."""
    an_audit(tmp_path / "before", {"q1": "dcd", "q2": "ddx", "q3": "ccc"})
    an_audit(
        tmp_path / "after", {"q1": "ddd", "q2": "ddx", "q3": "c--"},
        q2_brook="brook says <four> weeks & no more.", q3_cairn="",
    )  # fmt: skip
    return tmp_path


def decide(folder: Path, audit: str, decided: dict[tuple[str, str, str], str], base: int = 0) -> None:
    """Decide on cases of an audit in `review.db`."""
    cases = {(case.question, *case.sources): case for case in read_cases(Audit.open(folder / audit))}
    with ReviewStore.open(str(folder / "review.db")) as store:
        person, _ = store.invite("Dr. Ada", "adjudicator", by="test")
        for number, (key, status) in enumerate(decided.items()):
            store.decide_case(
                cases[key], person.id, status=status, follow="brook", owner="Ward 3", position="Six weeks here.",
                note="=1+1", audit=audit, base=base, request=f"r{number}",
            )  # fmt: skip


def test_conditions_fail_the_gate_by_its_exit_code(audits: Path) -> None:
    ok = hoofbeat("audit", "gate", "before", "after", "--fail-if", "new_disagreements > 1", folder=audits)
    assert "The gate passes" in ok.stderr
    assert "Checked 4 conditions → gate" in ok.stdout
    done = hoofbeat(
        "audit", "gate", "before", "after", "--fail-if", "new_disagreements > 0", "--fail-if", "share_disagree > 90%",
        "--json", folder=audits, code=5,
    )  # fmt: skip
    told = json.loads(done.stdout)
    assert (told["passed"], [each["failed"] for each in told["conditions"]]) == (
        False,
        [True, False, False, False, False],
    )
    figures = told["metrics"]
    assert figures["disagreements"] == 6
    assert figures["new_disagreements"] == 1
    assert figures["share_disagree"] == pytest.approx(6 / 7)
    assert figures["share_disagree_change"] == pytest.approx(6 / 7 - 5 / 9)
    assert (figures["changed_answers"], figures["changed_quotes"], figures["newly_silent"]) == (1, 1, 1)
    assert (figures["changed_labels"], figures["failed_pairs"]) == (3, 0)
    assert "reopened" not in figures
    assert open_artefact(audits / "gate").verify() == []
    shown = hoofbeat("show", "gate", folder=audits).stdout
    assert "The gate fails." in shown
    assert "it fails if new_disagreements > 0" in shown


def test_what_was_decided_is_carried_into_the_next_audit(audits: Path) -> None:
    decide(
        audits, "before",
        {
            ("q1", "alder", "brook"): "accepted",
            ("q2", "alder", "brook"): "follow",
            ("q2", "alder", "cairn"): "escalated",
        },
    )  # fmt: skip
    gate = ("audit", "gate", "before", "after", "--decisions", "review.db", "--json")
    told = json_of(hoofbeat(*gate, "--fail-if", "reopened > 1", folder=audits))
    assert {name: told["metrics"][name] for name in ("closed", "reopened", "escalated", "undecided")} == {
        "closed": 1, "reopened": 1, "escalated": 1, "undecided": 3,
    }  # fmt: skip
    hoofbeat(*gate, "--fail-if", "reopened > 0", folder=audits, code=5)
    page = (audits / "gate" / "report.md").read_text(encoding="utf-8")
    assert "the answer and the quote of brook changed" in page
    assert "follow brook, Dr. Ada, 20" in page
    listed = json_of(hoofbeat("audit", "cases", "after", "--decisions", "review.db", "--json", folder=audits))
    assert listed["states"] == {"reopened": 1, "escalated": 1, "new": 3, "open": 0, "closed": 1, "gone": 0}
    written = ("audit", "cases", "after", "--decisions", "review.db", "-o", "cases.json")
    assert "replaced" not in hoofbeat(*written, folder=audits).stdout
    assert "→ cases.json (replaced the earlier file)" in hoofbeat(*written, folder=audits).stdout
    again = json_of(hoofbeat("audit", "cases", "after", "--decisions", "cases.json", "--json", folder=audits))
    assert again == listed
    hoofbeat("audit", "cases", "after", "--decisions", "review.db", "--state", "closed", "-o", "c.csv", folder=audits)
    with (audits / "c.csv").open(encoding="utf-8", newline="") as stream:
        (row,) = csv.DictReader(stream)
    assert [row[name] for name in ("question", "state", "status", "owner", "local position", "note", "signed by")] == [
        "q1", "closed", "accepted", "Ward 3", "Six weeks here.", "'=1+1", "Dr. Ada",
    ]  # fmt: skip


def test_a_file_of_decisions_keeps_them_all_and_is_not_lost(audits: Path) -> None:
    decide(audits, "before", {("q1", "alder", "brook"): "accepted", ("q2", "alder", "brook"): "open"})
    decide(audits, "before", {("q1", "alder", "brook"): "escalated"}, base=1)
    three = ("audit", "cases", "before", "--decisions", "review.db", "-o", "team.json")
    hoofbeat(*three, folder=audits)
    there = read_decisions(audits / "team.json")
    assert len(there) == 3
    write_audit(audits / "smaller", invented_pairs({"q2": "ddx"}))
    words = ("audit", "cases", "smaller", "-o", "team.json")
    refused = hoofbeat(*words, folder=audits, code=1).stderr
    assert "this file has 3 decisions that this command did not read" in refused
    done = hoofbeat(*words, "--decisions", "team.json", folder=audits)
    assert "3 cases and 2 decisions (1 on no case of this audit) → team.json" in done.stdout
    assert read_decisions(audits / "team.json") == there
    for name in ("mine.csv", "mine.json"):
        (audits / name).write_text("my own notes\n", encoding="utf-8")
        refused = hoofbeat("audit", "cases", "after", "-o", name, folder=audits, code=1).stderr
        assert "Not overwritten: not a file that Hoofbeat wrote" in refused
        assert (audits / name).read_text(encoding="utf-8") == "my own notes\n"


def test_the_reference_ranks_who_contradicts_us(audits: Path) -> None:
    done = hoofbeat("audit", "cases", "after", "--reference", "Cairn", folder=audits)
    lines = done.stdout.splitlines()
    assert "Who disagrees with cairn" in done.stdout
    ranked = [line.split() for line in lines[-2:]]
    assert [(words[0], words[1], words[-1]) for words in ranked] == [("brook", "1", "2"), ("alder", "0", "2")]
    told = json_of(
        hoofbeat("audit", "gate", "before", "after", "--reference", "cairn", "--json", "--fail-if",
                 "new_against_reference > 1", folder=audits)
    )  # fmt: skip
    assert (told["metrics"]["against_reference"], told["metrics"]["new_against_reference"]) == (4, 1)


def test_junit_names_each_condition_and_lists_the_cases(audits: Path) -> None:
    conditions = ("--fail-if", "new_disagreements > 0", "--fail-if", "failed_pairs > 0")
    hoofbeat("audit", "gate", "before", "after", *conditions, folder=audits, code=5)
    root = ET.parse(audits / "gate" / "junit.xml").getroot()
    assert root.tag == "testsuites"
    (suite,) = root.findall("testsuite")
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "4", "failures": "1", "errors": "0", "skipped": "0",
    }  # fmt: skip
    first, second, third, fourth = suite.findall("testcase")
    assert fourth.get("name") == "not (changed_judges > 0)"
    assert third.get("name") == "not (lost_pairs > 0)"
    assert (first.get("name"), second.find("failure")) == ("not (new_disagreements > 0)", None)
    failure = first.find("failure")
    assert failure is not None
    assert failure.get("message") == "new_disagreements is 1"
    assert "q1: alder and cairn (Divergent, medium): time of q1" in (failure.text or "")


def test_pairs_that_nobody_judged_are_not_resolved_and_fail_the_gate(tmp_path: Path) -> None:
    """A judge that answered nothing, or a source that was left out, is no progress."""
    an_audit(tmp_path / "before", {"q1": "dcd", "q2": "ccc"})
    failed_call = Failure(kind="rate-limited", message="come back later")
    lost = [replace(each, label="", failure=failed_call) for each in invented_pairs({"q1": "xxx"})]
    write_audit(tmp_path / "broken", [*lost, *invented_pairs({"q2": "ccc"})])
    write_audit(tmp_path / "smaller", invented_pairs({"q2": "ccc"}))
    for after, failed in (("broken", 3), ("smaller", 0)):
        done = hoofbeat(
            "audit", "gate", "before", after, "--fail-if", "new_disagreements > 0", "--json", folder=tmp_path, code=5
        )
        told = json.loads(done.stdout)
        assert [each["failed"] for each in told["conditions"]] == [False, True, failed > 0, False]
        figures = told["metrics"]
        assert (figures["lost_pairs"], figures["failed_pairs"], figures["resolved_disagreements"]) == (3, failed, 0)
        page = (tmp_path / "gate" / "report.md").read_text(encoding="utf-8")
        assert f"The gate fails on {'2 conditions' if failed else '1 condition'}: lost" in page
        assert "3 pairs judged before are not judged now" in page
        assert ("3 pairs have no label because a call failed" in page) == bool(failed)
        assert "no reopened case among the pairs that were judged" in page
    allowed = ("--fail-if", "lost_pairs > 3", "--fail-if", "failed_pairs > 3")
    assert "passes" in hoofbeat("audit", "gate", "before", "broken", *allowed, folder=tmp_path).stderr


def test_another_judge_fails_the_gate_and_is_named(tmp_path: Path) -> None:
    """A judge that finds everything consistent would let every change pass."""
    an_audit(tmp_path / "before", {"q1": "dcd"})
    an_audit(tmp_path / "after", {"q1": "ccc"})
    manifest = tmp_path / "after" / "manifest.json"
    told = json.loads(manifest.read_text("utf-8"))
    told["models"] = {**told.get("models", {}), "judge": "http://127.0.0.1:1/v1#lenient"}
    manifest.write_text(json.dumps(told), "utf-8")
    words = ("audit", "gate", "before", "after", "--fail-if", "new_disagreements > 0")
    done = hoofbeat(*words, "--json", folder=tmp_path, code=5)
    told = json.loads(done.stdout)
    assert [each["condition"] for each in told["conditions"] if each["failed"]] == ["changed_judges > 0"]
    assert "lenient. Another judge gives other labels" in (tmp_path / "gate" / "report.md").read_text("utf-8")
    hoofbeat(*words, "--fail-if", "changed_judges > 2", folder=tmp_path)
    assert open_artefact(tmp_path / "gate").manifest.metrics["changed_judges"] in (1, 2)


SARIF: dict[str, dict[str, type]] = {
    "log": {"version": str, "runs": list},
    "run": {"tool": dict},
    "tool": {"driver": dict},
    "driver": {"name": str},
    "rule": {"id": str},
    "result": {"message": dict},
    "message": {"text": str},
    "invocation": {"executionSuccessful": bool},
}
"""The properties that SARIF 2.1.0 requires of its objects (sections 3.13 to 3.58), with their types."""


def check_sarif(kind: str, value: dict[str, Any]) -> None:
    for name, type_ in SARIF[kind].items():
        assert isinstance(value.get(name), type_), f"{kind} has no {name}"


def test_sarif_has_what_the_standard_requires(audits: Path) -> None:
    decide(audits, "before", {("q2", "alder", "brook"): "accepted"})
    hoofbeat(
        "audit", "gate", "before", "after", "--fail-if", "new_disagreements > 0", "--decisions", "review.db",
        folder=audits, code=5,
    )  # fmt: skip
    log = json.loads((audits / "gate" / "gate.sarif").read_text(encoding="utf-8"))
    check_sarif("log", log)
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    check_sarif("run", run)
    check_sarif("tool", run["tool"])
    check_sarif("driver", run["tool"]["driver"])
    rules = run["tool"]["driver"]["rules"]
    for rule in rules:
        check_sarif("rule", rule)
        check_sarif("message", rule["shortDescription"])
    for invocation in run["invocations"]:
        check_sarif("invocation", invocation)
        assert invocation["exitCode"] == 5
    assert len({rule["id"] for rule in rules}) == len(rules)
    lines = (audits / "after" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    for result in run["results"]:
        check_sarif("result", result)
        check_sarif("message", result["message"])
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("none", "note", "warning", "error")
        (location,) = result["locations"]
        physical = location["physicalLocation"]
        assert physical["artifactLocation"]["uri"] == "after/questions.jsonl"
        start = physical["region"]["startLine"]
        assert start >= 1
        for logical in location.get("logicalLocations", ()):
            assert json.loads(lines[start - 1])["id"] == logical["name"]
        assert all(isinstance(value, str) for value in result["partialFingerprints"].values())
    assert sorted(result["ruleId"] for result in run["results"]) == [
        "failed-condition", "new-disagreement", "newly-silent", "reopened-case",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "words", "more"),
    [
        ("new_disagreement > 0", "did you mean new_disagreements", ()),
        ("disagreements >> 3", "can't be read at 'disagreements >> 3'", ()),
        ("disagreements > many", "can't be read", ()),
        ("disagreements > 1 or closed > 1", "can't be read", ()),
        ("zebra > 1", "use one of: disagreements, new_disagreements", ()),
        ("reopened > 0", "reopened in 'reopened > 0' needs --decisions", ()),
        ("against_reference > 0", "needs --reference", ()),
        ("", "can't be read", ()),
        ("share_disagree > 50", 'write "share_disagree > 50%"', ()),
        ("share_disagree >= 120%", "it is a number from 0 to 1, or from 0% to 100%", ()),
        ("share_disagree > 1", "can never hold", ()),
        ("share_disagree_change < -1", "can never hold", ()),
        ("lost_pairs < 0", "lost_pairs is a whole number, 0 or more", ()),
        ("changed_judges == 0.5", "can never hold", ()),
        ("disagreements > 3 and disagreements < 4", "can never hold", ()),
        ("failed_pairs > 5%", "leave out the % after 5", ()),
        ("reopened > 0", "no decisions found", ("--decisions", "nowhere.db")),
        ("against_reference > 0", "'Elm' is not a source", ("--reference", "Elm")),
    ],
)
def test_what_is_wrong_with_a_condition_is_said(
    audits: Path, condition: str, words: str, more: tuple[str, ...]
) -> None:
    done = hoofbeat("audit", "gate", "before", "after", "--fail-if", condition, *more, folder=audits, code=2)
    assert words in done.stderr
    assert not (audits / "gate").exists()
    assert not (audits / "nowhere.db").exists()


def test_a_gate_without_a_condition_and_a_file_of_another_kind_are_refused(audits: Path) -> None:
    assert "needs a condition" in hoofbeat("audit", "gate", "before", "after", folder=audits, code=2).stderr
    assert "name a .csv" in hoofbeat("audit", "cases", "after", "-o", "x.txt", folder=audits, code=2).stderr


def test_a_figure_without_a_value_fails_its_condition_and_says_so(tmp_path: Path) -> None:
    silent = write_audit(tmp_path / "silent", invented_pairs({"q1": "---"}))
    assert silent.is_dir()
    done = hoofbeat("audit", "gate", "silent", "silent", "--fail-if", "share_disagree > 1%", folder=tmp_path, code=5)
    assert "No pair was judged." in (tmp_path / "gate" / "report.md").read_text("utf-8")
    assert "share_disagree has no value: no pair was judged" in done.stderr
    figures = dict.fromkeys(FIGURES, 0.0) | {"share_disagree": None}
    both = parse_condition("share_disagree > 0 and  disagreements>0")
    assert judge_condition(both, figures).failed is False
    with pytest.raises(UsageError):
        parse_condition("disagreements")


def test_a_condition_that_can_hold_is_taken() -> None:
    for each in (
        "share_disagree > 99.9%", "share_disagree >= 1", "share_disagree_change > 5%", "share_disagree_change < 0",
        "lost_pairs > 1000000000000000000", "changed_judges <= 0", "disagreements > 3 and disagreements < 5",
        "undecided != 0 and undecided != 1", "share_disagree > 20% and share_disagree < 20.1%",
    ):  # fmt: skip
        assert parse_condition(each).text == each


def test_compare_shows_old_and_new_words_also_under_the_same_label(audits: Path) -> None:
    told = json_of(hoofbeat("audit", "compare", "before", "after", "-o", "cmp", "--json", folder=audits))
    assert told["changed_answers"] == 2
    with (audits / "cmp" / "answers.tsv").open(encoding="utf-8", newline="") as stream:
        rows = {(row["question"], row["source"]): row for row in csv.DictReader(stream, delimiter="\t")}
    changed = rows["q2", "brook"]
    assert (changed["what"], changed["labels_changed"], changed["labels_kept"]) == ("answer, quote", "0", "2")
    assert changed["before"] == "brook says six weeks on q2."
    assert changed["after"] == "brook says <four> weeks & no more."
    assert rows["q3", "cairn"]["what"] == "silent now"
    with (audits / "cmp" / "same-label.tsv").open(encoding="utf-8", newline="") as stream:
        same = [(row["a"], row["b"], row["answers_changed"]) for row in csv.DictReader(stream, delimiter="\t")]
    assert same == [("alder", "brook", "brook"), ("brook", "cairn", "brook")]
    page = (audits / "cmp" / "report.html").read_text(encoding="utf-8")
    assert "<mark>&lt;four&gt;</mark> weeks <mark>&amp; no more</mark>" in page
    assert "Whether the text of 3 sources changed is unknown" in page
    done = hoofbeat(
        "audit", "compare", "before", "after", "-o", "cmp", "--decisions", "nowhere.json", folder=audits, code=1
    )
    assert "nowhere.json" in done.stderr


def test_a_comparison_begins_with_what_is_new_and_what_is_gone(tmp_path: Path) -> None:
    an_audit(tmp_path / "before", {"q1": "dcc", "q2": "ccc"})
    an_audit(tmp_path / "after", {"q1": "ccc", "q2": "ccd"})
    shown = hoofbeat("audit", "compare", "before", "after", folder=tmp_path).stderr
    new, gone = shown.index("1 disagreement is new: “"), shown.index("1 disagreement is gone: “")
    assert new < gone < shown.index("R_div")
    page = (tmp_path / "audit-comparison" / "report.md").read_text("utf-8")
    assert page.index("1 disagreement is new: “") < page.index("show no clear change")
    assert "brook and cairn: divergent" in page[: page.index("1 disagreement is gone")]
    assert "alder and brook: divergent" in page[page.index("1 disagreement is gone") :]


def test_decided_cases_of_a_document_with_another_id_are_missed_aloud(audits: Path) -> None:
    decide(audits, "before", {("q2", "alder", "brook"): "accepted"})
    pairs = [replace(each, b="brook-2") if each.b == "brook" else each for each in invented_pairs({"q2": "ddx"})]
    pairs = [replace(each, a="brook-2") if each.a == "brook" else each for each in pairs]
    ordered = [replace(each, a=min(each.a, each.b), b=max(each.a, each.b)) for each in pairs]
    write_audit(audits / "renamed", ordered)
    shown = hoofbeat("audit", "cases", "renamed", "--decisions", "review.db", folder=audits).stderr
    assert "1 decided case was not found again, because the audit has no source with the id brook." in " ".join(
        shown.split()
    )
    kept = hoofbeat("audit", "cases", "after", "--decisions", "review.db", folder=audits).stderr
    assert "not found again" not in kept
